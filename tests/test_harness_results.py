"""Results of the harness: they survive kills, and results of others are not mixed in."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

from harness import SETTINGS, Toy, batches, timeless
from homunculus import InputError
from homunculus.eval.backends import EvalSample
from homunculus.eval.data import collect
from homunculus.eval.runner import Batch, ModelSpec, Results, _lines, plan, read, run
from homunculus.eval.settings import Setting


def test_a_line_that_was_cut_off_is_made_again(eval_data, eval_spec, eval_backend, eval_run, tmp_path):
    whole = (eval_run / "results.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "run.json").write_text((eval_run / "run.json").read_text())
    (tmp_path / "results.jsonl").write_text("".join(lines[:30]) + lines[30][:50])
    run(batches(eval_data), eval_spec, tmp_path, load=lambda: eval_backend)
    assert timeless(read(tmp_path / "results.jsonl")) == timeless(read(eval_run / "results.jsonl"))
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == len(lines)


def test_a_kill_while_a_cut_line_is_cleared_away_loses_nothing(eval_run, tmp_path):
    lines = (eval_run / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "results.jsonl").write_text("".join(lines[:9]) + lines[9][:50])
    child = os.fork()
    if child == 0:
        Results._settle = lambda self: os._exit(0)
        Results(tmp_path, {"fingerprint": "me"})
        os._exit(0)
    os.waitpid(child, 0)
    assert len(read(tmp_path / "results.jsonl")) == 9


def test_texts_may_hold_any_end_of_line(tmp_path):
    odd = "one\u2028two\x85three\x0cfour"
    place = tmp_path / "odd" / "val"
    place.mkdir(parents=True)
    line = json.dumps({"image": "0.png", "question": odd, "answers": [odd], "qid": "0"}, ensure_ascii=False)
    (place / "questions.jsonl").write_text(line + "\n", encoding="utf-8")
    (item,) = collect([str(tmp_path)])
    assert item.question == odd
    work = plan([item], [Setting.parse("grid/query/4")])
    run(work, Toy(), tmp_path / "out")
    assert [row["question"] for row in run(work, Toy(), tmp_path / "out")] == [odd]


def test_other_questions_and_other_splits_are_not_taken_for_those_that_were_asked(eval_data, tmp_path):
    work = batches(eval_data, ["grid/query/4"], ())
    run(work, Toy(), tmp_path / "out", config={"split": "val"})
    with pytest.raises(InputError, match="split"):
        run(work, Toy(), tmp_path / "out", config={"split": "train"})
    others = [
        Batch(tuple(EvalSample(replace(sample.item, question="?"), sample.item) for sample in b.samples), b.settings)
        for b in work
    ]
    with pytest.raises(InputError, match="another question"):
        run(others, Toy(), tmp_path / "out")
    run(work, Toy(), tmp_path / "out")


def test_progress_counts_what_is_there(eval_data, tmp_path):
    bars = []
    for names in (["grid/query/4"], ["grid/query/4", "grid/query/5"]):
        (tmp_path / "out").mkdir(exist_ok=True)
        lines = _lines(tmp_path / "out" / "results.jsonl")[:7]  # some of a batch
        (tmp_path / "out" / "results.jsonl").write_text("".join(lines))
        console = Console(file=io.StringIO(), width=100)
        run(batches(eval_data, names, ()), Toy(), tmp_path / "out", console=console)
        bars.append(console.file.getvalue())
    assert "12/12" in bars[0] and "24/24" in bars[1]


def test_results_of_others_are_not_mixed(eval_data, eval_run, tmp_path):
    with pytest.raises(InputError, match="holds answers of"):
        run([], ModelSpec(model="somebody/else"), eval_run)
    with pytest.raises(InputError, match="holds answers of"):
        run([], ModelSpec(), eval_run)  # the shipped reader
    first = Results(tmp_path, {"fingerprint": "me"})
    with pytest.raises(InputError, match="another run is writing"):
        Results(tmp_path, {"fingerprint": "me"})
    first.close()
    Results(tmp_path, {"fingerprint": "me"}).close()


def test_twenty_kills_lose_nothing_and_double_nothing(eval_data, tmp_path):
    work = batches(eval_data, [f"grid/query/{n}" for n in range(1, 40)], (), batch_size=2)
    run(work, Toy(), tmp_path / "whole")
    rng, kills = random.Random(0), 0
    while kills < 20:
        child = os.fork()
        if child == 0:
            try:
                run(work, Toy(), tmp_path / "killed")
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0.0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    run(work, Toy(), tmp_path / "killed")
    lines = (tmp_path / "killed" / "results.jsonl").read_text().splitlines()
    assert len(lines) == 12 * 39
    assert sorted(lines) == sorted((tmp_path / "whole" / "results.jsonl").read_text().splitlines())


@pytest.mark.slow
def test_twenty_kills_of_the_command_line(eval_data, eval_spec, eval_run, tmp_path):
    words = ["eval", str(eval_data), "--settings", ",".join(SETTINGS), "--regions", "foveated/query/24"]
    words += ["--batch-size", "5", "--weights", eval_spec.weights, "--language", eval_spec.language]
    words += ["--out", str(tmp_path / "out")]
    call, rng = [sys.executable, "-m", "homunculus", *words], random.Random(1)
    whole = [sys.executable, "-m", "homunculus", *words[:-1], str(tmp_path / "whole")]
    subprocess.run(whole, check=True, capture_output=True)
    for _ in range(20):
        child = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(4, 12))
        child.kill()
        child.wait()
    subprocess.run(call, check=True, capture_output=True)
    assert timeless(read(tmp_path / "out" / "results.jsonl")) == timeless(read(tmp_path / "whole" / "results.jsonl"))
