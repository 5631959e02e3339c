"""Nobody ever sees half a file, and what is not a file is not replaced by one."""

import os
import threading

import pytest

from homunculus.errors import InputError
from homunculus.runtime.files import replacing


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    with replacing(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("new")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"
    with pytest.raises(RuntimeError), replacing(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("half")
        raise RuntimeError
    assert (tmp_path / "a.txt").read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_links_are_followed(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with replacing(tmp_path / "link.txt") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    with replacing(tmp_path / "pipe") as unfinished:
        unfinished.write_text("through")
    reader.join(10)
    assert got == ["through"] and not (tmp_path / "pipe").is_file()


def test_the_longest_name_works_and_impossible_ones_are_named(tmp_path):
    with replacing(tmp_path / ("n" * 251 + ".txt")) as unfinished:
        unfinished.write_text("x")
    for wrong in (tmp_path / "no" / "folder.txt", tmp_path, tmp_path / ("n" * 300)):
        with pytest.raises(InputError, match="cannot write"), replacing(wrong) as unfinished:
            unfinished.write_text("x")


def test_several_files_are_written_into_one_folder_at_the_same_time(tmp_path):
    with replacing(tmp_path / "a.txt") as first, replacing(tmp_path / "b.txt") as second:
        first.write_text("a")
        second.write_text("b")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.txt": "a", "b.txt": "b"}
