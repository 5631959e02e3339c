"""The speed of training pages: the command from end to end, and checks that can fail."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import pages
from homunculus.train.config import Canvas, DataSources, Recipe
from homunculus.train.tasks.page_source import PageSource
from homunculus.train.tasks.page_stream import PageStream

SMOKE = Path(__file__).parents[1] / "configs" / "smoke.toml"


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    for name, count in (("COUNTED", 8), ("WARM", 1), ("CHECKED", 2)):
        monkeypatch.setattr(pages, name, count)


@pytest.fixture
def small():
    """What pages are made of, a stream of two small ones at a time, and its first two batches."""
    made = PageSource(DataSources(), torch.device("cpu"))
    stream = PageStream(Recipe(1, [Canvas(160, 160, 2)]), made.atlas, made.texts, None, 0)
    return made, stream, [stream.batch(n) for n in range(2)]


def results_of(tmp_path, *more):
    out = tmp_path / "new" / "pages.json"
    pages.main(["--out", str(out), "--batch", "2", "--batches", "2", *more])
    assert [path.name for path in out.parent.iterdir()] == ["pages.json"]
    return json.loads(out.read_text())


def test_the_command_from_end_to_end(tmp_path, capsys):
    results = results_of(tmp_path, "--config", str(SMOKE), "--workers", "1")
    assert results["config"] == "smoke.toml" and results["workers"] == 1 and "commit" in results["machine"]
    assert [row["recipe"] for row in results["rows"]] == ["encoder", "scout"]
    for row in results["rows"]:
        assert (row["height"], row["width"], row["batch"]) == (320, 320, 2)
        assert all(row[f"{what}_pages_s"] > 0 for what in ("layout", "draw", "draw_mean", "both"))
        assert row["characters"] > row["words"] > 0 and row["questions"] > 0
        assert 0 < row["questions_asked"] <= 8
        assert row["same_drafts"] is row["same_pixels"] is True and row["share_of_pixels_that_differ"] == 0
    said = capsys.readouterr().out
    assert "scout" in said and "same pixels" in said and "true" in said


def test_no_files_and_no_workers_are_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "CANVAS", Canvas(192, 160, 3))
    results = results_of(tmp_path, "--workers", "0")
    (row,) = results["rows"]
    assert results["config"] == row["recipe"] == "built-in"
    assert (row["height"], row["width"], row["batch"], row["same_drafts"]) == (192, 160, 2, True)


def test_another_letter_is_another_draft(small):
    _, stream, (draft, other) = small
    letters = draft.labels.letters.clone()
    letters[-1, 1] += 1
    assert pages.same(draft, stream.batch(0)) and not pages.same(draft, other)
    assert not pages.same(draft, replace(draft, labels=replace(draft.labels, letters=letters)))
    assert not pages.same(draft, replace(draft, size=(2, 160, 192)))


def test_drafts_and_pixels_that_do_not_repeat_are_noticed(small, monkeypatch):
    made, stream, drafts = small
    assert pages.repeats(stream, made, drafts)["same_drafts"]
    assert not pages.repeats(replace(stream, recipe=replace(stream.recipe, seed=1)), made, drafts)["same_drafts"]
    monkeypatch.setattr(torch, "manual_seed", lambda seed: None)
    found = pages.repeats(stream, made, drafts)
    assert found["same_drafts"] and not found["same_pixels"] and 0 < found["share_of_pixels_that_differ"] <= 1


def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        pages.main(["--config", str(tmp_path / "none.toml"), "--out", str(tmp_path / "pages.json")])
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and said.count("\n") == 1 and "none.toml" in said
    assert not (tmp_path / "pages.json").exists()
