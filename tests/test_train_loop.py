"""Training runs: they learn, resume, share the work, ship their weights, and say what is wrong with a plan."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from homunculus.errors import InputError
from homunculus.reader import Encoder, Scout, load_encoder, load_scout
from homunculus.reader.weights import save
from homunculus.train.config import DataSources, read_plan
from homunculus.train.synth.text import Texts
from homunculus.train.tasks.page_source import PageSource
from homunculus.train.tasks.page_stream import PageStream
from homunculus.train.trainer.plot import read_log
from homunculus.train.trainer.trainer import Trainer
from training import CPU, SMOKE, font


def changed(folder: Path, **entries: object) -> Path:
    """configs/smoke.toml with other entries, in both sections."""
    lines = [line for line in SMOKE.read_text().splitlines() if line.split(" = ")[0] not in entries]
    text = "\n".join(lines)
    for section in ("[encoder]", "[scout]"):
        text = text.replace(section, "\n".join((section, *(f"{k} = {json.dumps(v)}" for k, v in entries.items()))))
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_the_smoke_run_learns_and_a_finished_run_started_again_does_nothing(homunculus, tmp_path):
    (tmp_path / "plan.toml").write_text(re.sub(r"batch = \d+", "batch = 1", SMOKE.read_text()))  # a page at a time
    arguments = ("train", "eye", "--config", tmp_path / "plan.toml", "--out", tmp_path, "--device", "cpu")
    start = time.process_time()
    code, out, err = homunculus(*arguments)
    assert code == 0 and err == "" and time.process_time() - start < 60
    for name, figures in (
        ("encoder", {"dense"}),
        ("scout", {"find", "query_free", "dense", "hit"}),
    ):
        rows = read_log(tmp_path / name / "log.jsonl")
        assert [row["step"] for row in rows] == list(range(5, 41, 5))
        assert all(figures | {"seconds", "pages", "lr"} == row.keys() - {"step"} for row in rows)
        assert sum(row["pages"] for row in rows) == 40 and rows[1]["lr"] > rows[-1]["lr"]
        assert np.mean([r["dense"] for r in rows[-3:]]) < np.mean([r["dense"] for r in rows[:3]])
        assert out.count(f"{name} {{") == len(rows)
        assert {"state.pt", "last.safetensors", "log.jsonl"} <= {file.name for file in (tmp_path / name).iterdir()}
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    code, out, err = homunculus(*arguments)
    assert code == 0 and out == "" and err == ""
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}


def test_a_killed_run_goes_on_where_it_was_saved(tmp_path):
    plan = changed(tmp_path, steps=100_000, save_seconds=0.2, log_every=1)
    out = tmp_path / "run"
    command = [sys.executable, "-m", "homunculus", "train", "eye", "--config", plan, "--out", out]
    process = subprocess.Popen(
        [*command, "--only", "scout", "--device", "cpu"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 90
    while not (out / "scout" / "state.pt").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = [row["step"] for row in read_log(out / "scout" / "log.jsonl")]
    saved = torch.load(out / "scout" / "state.pt", weights_only=True)["step"]
    assert 0 < saved <= done[-1] and done == list(range(1, done[-1] + 1))
    steps = done[-1] + 5
    recipe = read_plan(plan, steps=steps).recipes["scout"]
    trainer = Trainer("scout", recipe, PageSource(DataSources(), CPU), out / "scout")
    assert trainer.step == saved
    trainer.run()
    rows = read_log(out / "scout" / "log.jsonl")
    assert [row["step"] for row in rows][len(done) :] == list(range(saved + 1, steps + 1))
    assert all(b["seconds"] >= a["seconds"] for a, b in zip(rows[len(done) :], rows[len(done) + 1 :], strict=False))
    assert torch.load(out / "scout" / "state.pt", weights_only=True)["step"] == steps
    with pytest.raises(InputError, match="another network size"):
        Trainer(
            "scout",
            replace(recipe, sizes={**recipe.sizes, "joint_depth": 2}),
            PageSource(DataSources(), CPU),
            out / "scout",
        )


def test_a_run_taken_up_again_has_all_that_it_had(tmp_path):
    recipe, pages = read_plan(SMOKE, steps=5, log_every=1).recipes["scout"], PageSource(DataSources(), CPU)
    first = Trainer("scout", recipe, pages, tmp_path)
    for until in (0, 0, 0, 0):
        first.run(until)
    assert first.step == 4
    state = torch.get_rng_state()
    second = Trainer("scout", recipe, pages, tmp_path)
    assert second.step == 4 and second.seconds > 0 and torch.equal(torch.get_rng_state(), state)
    for name, value in first.model.state_dict().items():
        assert torch.equal(second.model.state_dict()[name], value)
        assert torch.equal(second.average[name], first.average[name])
    for mine, theirs in zip(first.optimizers, second.optimizers, strict=True):
        before, after = mine.state_dict()["state"], theirs.state_dict()["state"]
        assert before.keys() == after.keys() and len(before) > 5
        for key, entries in before.items():
            assert all(torch.equal(torch.as_tensor(after[key][k]), torch.as_tensor(v)) for k, v in entries.items())
    second.run()
    assert [row["step"] for row in read_log(tmp_path / "log.jsonl")] == [1, 2, 3, 4, 5]
    assert any((second.average[n] != v).any() for n, v in second.model.state_dict().items())


def test_a_batch_is_the_same_whichever_process_makes_it():
    recipe, atlas = read_plan(SMOKE).recipes["scout"], font()[0]
    streams = [PageStream(recipe, atlas, Texts.builtin(seed), None, first) for seed, first in ((0, 0), (1, 2))]
    batches = iter(streams[0])
    later = [next(batches) for _ in range(3)][2]
    other = next(iter(streams[1]))
    assert torch.equal(later.glyphs, other.glyphs) and torch.equal(later.labels.questions, other.labels.questions)
    assert not torch.equal(later.glyphs, streams[0].batch(1).glyphs)


CANVAS = "canvases = [{height = 64, width = 64, batch = 1}]"
WRONG = {
    "unknown key": (f"[encoder]\nsteps = 1\nspeed = 3\n{CANVAS}", "no entry 'speed'"),
    "unknown section": ("[decoder]\nsteps = 1", "unknown section 'decoder'"),
    "unknown source": ("[sources]\nfonts = 'x'", "sources has no entry 'fonts'"),
    "no canvas": ("[scout]\nsteps = 1", "scout.canvases must be given"),
    "odd canvas": (f"[scout]\nsteps = 1\n{CANVAS.replace('64', '60')}", "divide by 32"),
    "half a canvas": ("[scout]\nsteps = 1\ncanvases = [{height = 64, width = 64}]", "batch"),
    "no steps": (f"[scout]\n{CANVAS}", "steps"),
    "no section": ("[sources]\nworkers = 0", r"no section \[encoder\]"),
    "no toml": ("[encoder", "no TOML file"),
    "unknown size": (f"[scout]\nsteps = 1\nsizes = {{widht = 96}}\n{CANVAS}", "widht"),
    "no scans": (f"[sources]\nscans = ['nowhere']\n[scout]\nsteps = 1\n{CANVAS}", "nowhere is no data folder"),
}


def said(result: tuple[int, str, str]) -> str:
    """The one sentence of a command that failed for wrong input."""
    code, out, err = result
    assert code == 2 and out == "" and err.startswith("homunculus: ") and err.count("\n") == 1
    return err


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_plan_is_one_sentence_and_exit_code_2(homunculus, tmp_path, wrong):
    text, message = WRONG[wrong]
    (tmp_path / "plan.toml").write_text(text)
    result = homunculus(
        "train", "eye", "--config", tmp_path / "plan.toml", "--out", tmp_path / "run", "--device", "cpu"
    )
    assert re.search(message, said(result))


def test_a_wrong_command_is_one_sentence_and_exit_code_2(homunculus, tmp_path):
    eye = ("train", "eye", "--out", tmp_path / "run", "--device", "cpu")
    assert "cannot read" in said(homunculus(*eye, "--config", tmp_path / "missing.toml"))
    assert "--only must be encoder or scout, got 'ears'" in said(homunculus(*eye, "--config", SMOKE, "--only", "ears"))
    assert "no weights encoder.safetensors" in said(homunculus(*eye, "--config", SMOKE, "--start", tmp_path))
    assert "there is no log" in said(homunculus("train", "plot", tmp_path))


def test_plot_draws_the_log(homunculus, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [{"step": s, "seconds": s, "pages": 4, "lr": 0.1, "find": 9 / s} for s in (1, 2, 3)]
    rows.append({"step": 3, "val_find": 4.0})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 4, "fi')
    code, out, _ = homunculus("train", "plot", tmp_path)
    assert code == 0 and str(tmp_path / "log.png") in out
    assert np.asarray(Image.open(tmp_path / "log.png").convert("L")).std() > 5


def test_shipped_weights_are_int8_with_hashes_and_load(homunculus, tmp_path):
    torch.manual_seed(0)
    models = {"encoder": Encoder(), "scout": Scout()}
    for name, model in models.items():
        (tmp_path / "run" / name).mkdir(parents=True)
        save(model, tmp_path / "run" / name / "last.safetensors", {"network": name, "step": 7}, int8=False)
    code, out, _ = homunculus("train", "ship", tmp_path / "run", tmp_path / "out")
    assert code == 0 and "encoder: 2" in out and "scout: " in out
    hashes = json.loads((tmp_path / "out" / "hashes.json").read_text())
    assert sorted(hashes) == ["encoder.safetensors", "scout.safetensors"]
    assert sum((tmp_path / "out" / name).stat().st_size for name in hashes) < 31e6
    for name, loader in (("encoder", load_encoder), ("scout", load_scout)):
        for p, q in zip(loader(tmp_path / "out").parameters(), models[name].parameters(), strict=True):
            most = q.detach().abs().amax()
            assert ((p - q).abs().amax() <= most / 250 + 1e-3 * most).item()


def test_shipping_a_run_that_holds_no_weights_says_so(homunculus, tmp_path):
    assert "there is no last.safetensors" in said(homunculus("train", "ship", tmp_path, tmp_path / "out"))


SEVERAL = """
import sys
from pathlib import Path
from homunculus.train.trainer import trainer

run, out, plan = trainer.Trainer.run, *sys.argv[1:]

def traced(self, seconds):
    run(self, seconds)
    sums = [float(p.double().sum()) for p in self.model.parameters()]
    Path(out, f"rank{self.rank.rank}").write_text(repr(sums))

trainer.Trainer.run = traced
sys.argv = ["homunculus", "train", "eye", "--config", plan, "--out", out, "--only", "scout", "--device", "cpu"]
from homunculus import cli
cli.main()
"""


def test_two_processes_train_one_network(tmp_path):
    (tmp_path / "several.py").write_text(SEVERAL)
    plan = changed(tmp_path, steps=3, log_every=1)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = subprocess.run(
        [*command, tmp_path / "several.py", tmp_path / "run", plan],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    if run.returncode and ("bind" in run.stderr or "listen" in run.stderr):
        pytest.skip("torchrun cannot bind a port here")
    assert run.returncode == 0, run.stderr[:4000]
    rows = read_log(tmp_path / "run" / "scout" / "log.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3] and run.stdout.count("scout {") == 3
    sums = [json.loads((tmp_path / "run" / f"rank{rank}").read_text()) for rank in range(2)]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4, abs=1e-4), "the processes train different networks"
