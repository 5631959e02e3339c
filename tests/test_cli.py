"""The command line as a person uses it: files out, one sentence when something is wrong, exit codes."""

import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import homunculus as hm
from readers import tiny_reader


@pytest.fixture
def file(page, tmp_path):
    page.save(tmp_path / "page.png")
    return tmp_path / "page.png"


def test_look_writes_picture_and_json_and_says_where(homunculus, file, tmp_path):
    code, out, err = homunculus(
        "look",
        file,
        "What is at the top?",
        "--budget",
        100,
        "--png",
        tmp_path / "look.png",
        "--json",
        tmp_path / "look.json",
    )
    assert code == 0 and err == ""
    assert "100 tokens" in out and str(tmp_path / "look.png") in out and str(tmp_path / "look.json") in out
    assert json.loads((tmp_path / "look.json").read_text())["budget"] == 100
    assert (tmp_path / "look.png").read_bytes()[:4] == b"\x89PNG"


def test_json_on_standard_output_is_json_alone(homunculus, file):
    code, out, err = homunculus(
        "look", file, "", "--json", "-", "-a", "dag", "-k", 30, "-r", "saliency", "--fixation", "5,9"
    )
    data = json.loads(out)
    assert code == 0 and len(data["tokens"]) == 30 and data["allocator"] == "dag" and data["fixations"] == [[5.0, 9.0]]
    assert "30 tokens" in err


def test_options_reach_the_allocator(homunculus, file):
    def levels(*more: str) -> list[int]:
        code, out, _ = homunculus("look", file, "", "-a", "pyramid", "-k", 40, "--json", "-", *more)
        assert code == 0
        return sorted(token["level"] for token in json.loads(out)["tokens"])

    assert levels("-o", "split=(1, 0, 0, 0)") == [0] * 40 != levels()
    assert levels("-o", "split=auto") != levels()


def test_several_images_get_their_own_files(homunculus, file, page, tmp_path):
    (tmp_path / "more").mkdir()
    page.save(tmp_path / "more" / "page.png")
    page.save(tmp_path / "other.png")
    code, _, _ = homunculus(
        "look",
        file,
        tmp_path / "other.png",
        tmp_path / "more" / "page.png",
        "top",
        "-k",
        9,
        "--json",
        tmp_path / "out.json",
    )
    names = sorted(p.name for p in tmp_path.glob("out*.json"))
    assert code == 0 and names == ["out-1-page.json", "out-3-page.json", "out-other.json"]


def test_the_same_image_twice_gets_two_files(homunculus, file, tmp_path):
    code, _, _ = homunculus("look", file, file, "top", "-k", 9, "--json", tmp_path / "out.json")
    assert code == 0 and (tmp_path / "out-1-page.json").exists() and (tmp_path / "out-2-page.json").exists()


def test_a_fixation_outside_one_image_loses_none_of_the_others(homunculus, file, page, tmp_path):
    page.resize((20, 20)).save(tmp_path / "small.png")
    code, out, err = homunculus("look", tmp_path / "small.png", file, "", "--fixation", "50,50")
    assert code == 2 and "small.png: fixation [50.0, 50.0] lies outside its 20 x 20" in err and "273 tokens" in out


def test_any_budget_and_any_question_will_do(homunculus, file):
    for budget in (10**4, 2**63 - 1, 10**30):
        code, out, _ = homunculus("look", file, "", "-k", budget, "-a", "logpolar")
        assert code == 0 and "tokens" in out
    for question in ("first column of " + "9" * 5000, "top left 🙂 左上 أعلى", "x" * 5000, "[bold]:warning:"):
        assert homunculus("look", file, question, "-k", 5)[0] == 0


def test_odd_names_are_printed_as_they_are(homunculus, page, tmp_path):
    for name in ("a:warning:b.png", "c[red]d.png", "e\\[f]g.png", "ü ñ 字.png"):
        page.resize((40, 40)).save(tmp_path / name)
        code, out, _ = homunculus("look", tmp_path / name, "")
        assert code == 0 and str(tmp_path / name) in out
        assert str(tmp_path / f"no{name}") in homunculus("look", tmp_path / f"no{name}", "")[2]


def test_a_corrupt_image_among_others_is_named_and_loses_none(homunculus, file, page, tmp_path):
    (tmp_path / "broken.png").write_bytes(file.read_bytes()[:1500])
    page.save(tmp_path / "last.png")
    code, out, err = homunculus(
        "look", file, tmp_path / "broken.png", tmp_path / "last.png", "", "--json", tmp_path / "o.json"
    )
    assert code == 2 and "broken.png" in err and err.count("\n") == 1
    assert (tmp_path / "o-page.json").exists() and (tmp_path / "o-last.json").exists() and out.count("273 tokens") == 2


WRONG = [
    (["look", "missing.png", "x"], "missing.png"),
    (["look", ".", "x"], "folder|directory"),
    (["look", "{text}", "x"], "no image"),
    (["look", "{page}", "x", "-k", "0"], "budget must be"),
    (["look", "{page}", "x", "-k", "-4"], "budget must be"),
    (["look", "{page}", "x", "-a", "gird"], "no allocator 'gird'"),
    (["look", "{page}", "x", "-r", "gird"], "no relevance 'gird'"),
    (["look", "{page}", "x", "-o", "fovea"], "NAME=VALUE"),
    (["look", "{page}", "x", "-o", "fovea=2"], "fovea must be"),
    (["look", "{page}", "x", "-o", "fovea=wide"], "fovea of foveated must be float"),
    (["look", "{page}", "x", "-o", "fovae=1"], "no option 'fovae'"),
    (["look", "{page}", "x", "--fixation", "here"], "fixation is written X,Y"),
    (["look", "{page}", "x", "--fixation", "-5,2"], "lies outside"),
    (["look", "{page}", "x", "--page", "3"], "1 page"),
    (["look", "{page}", "x", "--max-pixels", "100"], "--max-pixels"),
    (["look", "{page}", "x", "--cell", "0"], "cell must be"),
    (["look", "{page}", "x", "--png", "no/such/folder.png"], "no folder"),
    (["look", "{page}", "x", "--png", "look.xyz"], "ending"),
    (["look", "{page}", "x", "--json", "n" * 300], "cannot write"),
    (["look", "{page}"], "a question is missing"),
    (["look", "{page}", "{page}"], "a question is missing"),
    (["look", "{page}", "x", "-o", "cell=5"], "no option 'cell'"),
    (["look", "{page}", "x", "-o", "scout=1"], "no option 'scout'"),
    (["look", "{page}", "x", "-a", "logpolar", "-o", "fovea=1e308"], "fovea must be"),
    (["look", "{page}", "x", "-a", "logpolar", "-o", "rings=1000000000"], "rings must be"),
    (["look", "{page}", "x", "-a", "stratified", "-o", "strata=100000"], "strata along a side must be"),
    (["look", "{page}", "x", "-a", "pyramid", "-o", "depth=1100"], "depth must be"),
    (["look", "{page}", "x", "-a", "atlas", "--segmenter", "knife"], "no segmenter 'knife'"),
    (["look", "{page}", "x", "--png", "look.psd"], "its ending must be"),
    (["look", "{page}", "x", "--png", "noext"], "noext: its ending must be"),
    (["look"], "Missing argument"),
    (["look", "{page}", "x", "--nonsense"], "No such option"),
    (["look", "{page}", "x", "-k", "many"], "valid integer"),
    (["look", "{page}", "x", "--fixations", "1000000"], "count of fixations must be"),
    (["ask", "{page}", "x", "--device", "abacus"], "no device 'abacus'"),
    (["ask", "{page}", "x", "--device", "meta"], "no device 'meta'"),
    (["ask", "{page}", "x", "--model", "m", "--fixation", "5,5"], "--fixation would have no effect with --model"),
    (["ask", "{page}", "x", "--model", "m", "--weights", "w"], "--weights would have no effect with --model"),
    (["ask", "{page}", "x", "--model", "m", "--language", "l"], "--language would have no effect with --model"),
    (["ask", "{page}", "x", "--model", "m", "--where", "crops", "-a", "dag"], "--allocator would .* --where crops"),
    (["ask", "{page}", "x", "--where", "before"], "--where would have no effect without --model"),
    (["view", "{page}", "x", "--out", "{page}", "-r", "information"], "cannot write .*page.png: File exists"),
    (["allocators", "gird"], "no allocator 'gird'"),
    (["bench", "--allocators", "gird"], "no allocator 'gird'"),
    (["bench", "--budgets", "64,many"], "budget must be a whole number"),
    (["bench", "--budgets", ","], "nothing to measure"),
    (["bench", "--device", "abacus"], "no device 'abacus'"),
    (["stare"], "No such command"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_wrong_input_is_one_sentence_and_exit_code_2(homunculus, file, tmp_path, arguments, message):
    (tmp_path / "text.png").write_text("no picture at all")
    code, out, err = homunculus(*(a.format(page=file, text=tmp_path / "text.png") for a in arguments))
    assert code == 2 and out == ""
    assert re.search(message, err) and err.startswith("homunculus: ") and err.count("\n") == 1


def test_a_view_leaves_no_pieces_of_another_behind(homunculus, file, tmp_path):
    views = []
    for budget in (273, 1):
        code, out, err = homunculus("view", file, "", "-r", "information", "-k", budget, "--out", tmp_path / "view")
        assert code == 0, err
        views.append(sorted(made.name for made in (tmp_path / "view").iterdir()))
        assert len(views[-1]) == out.count("tokens, of")
    assert len(views[0]) > 1 and views[1] == ["0-whole.png"]


def test_bench_tells_what_an_answer_takes(homunculus, file, tmp_path):

    weights, language = tiny_reader(tmp_path)
    own = ("--weights", weights, "--language", language, "--repeat", 2, "--json", "-")
    for page in ((file,), ()):
        code, out, err = homunculus("bench", *page, *own, "--allocators", "grid,foveated", "--budgets", "5,9")
        assert code == 0, err
        rows = json.loads(out)["rows"]
        assert [(row["allocator"], row["budget"]) for row in rows] == list(product(("grid", "foveated"), (5, 9)))
        for row in rows:
            parts = [row[part] for part in ("open", "look", "read", "prefill")]
            assert min(parts) > 0 and row["answer"] >= 0  # an answer may end with its first token
            assert max(parts) / 2 < row["total"] < 10 * (sum(parts) + row["answer"])
        assert err.count("foveated") == 2 and "in all" in err


def test_the_limits_of_the_service_reach_it(homunculus, monkeypatch):
    from homunculus.studio import serving

    seen = []
    monkeypatch.setattr(serving, "serve", lambda config, load: seen.append(config))
    words = ("--max-queue", 3, "--batch-size", 2, "--max-pixels", 1000, "--max-upload", 5, "--token", "t", "--port", 0)
    assert homunculus("serve", *words)[0] == 0
    assert seen == [serving.ServeConfig("127.0.0.1", 0, "t", 3, 2, 1000, 5 << 20)]


def test_help_teaches(homunculus):
    code, out, _ = homunculus("look", "--help")
    assert code == 0 and 'homunculus look page.png "What is the total?"' in out and "--budget" in out
    relevances = out[out.index("--relevance") :]
    assert all(name in relevances for name in hm.list_relevances())
    code, out, _ = homunculus("--version")
    assert code == 0 and out.strip() == hm.__version__


def test_allocators_are_listed_and_described(homunculus):
    code, out, _ = homunculus("allocators")
    assert code == 0 and all(name in out for name in hm.list_allocators())
    code, out, _ = homunculus("allocators", "logpolar")
    assert code == 0 and "rings = None" in out and "offgrid = False" in out and "16 rings" in out
    code, out, _ = homunculus("allocators", "grid")
    assert code == 0 and "no options" in out


def test_it_runs_as_a_program_without_colours_when_piped(file):
    run = subprocess.run([sys.executable, "-m", "homunculus", "look", file, "top"], capture_output=True, text=True)
    assert run.returncode == 0 and "273 tokens" in run.stdout and "\x1b" not in run.stdout
    run = subprocess.run([sys.executable, "-m", "homunculus", "look", "x.png", "top"], capture_output=True, text=True)
    assert run.returncode == 2 and run.stderr == "homunculus: x.png does not exist\n"


def test_a_full_disk_and_a_closed_pipe_are_no_tracebacks(file):
    program = [sys.executable, "-m", "homunculus", "look", str(file), "", "--json", "-"]
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 2 and "cannot write" in run.stderr and "Traceback" not in run.stderr
    run = subprocess.run(f"{' '.join(program)} | head -c 1", shell=True, capture_output=True, text=True)
    assert "Traceback" not in run.stderr


def test_names_that_the_terminal_cannot_show_are_escaped(page, tmp_path):
    page.resize((40, 40)).save(tmp_path / "字.png")
    program = [sys.executable, "-m", "homunculus", "look", str(tmp_path / "字.png"), ""]
    run = subprocess.run(program, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert run.returncode == 0 and "\\u5b57.png" in run.stdout
