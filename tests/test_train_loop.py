"""Training: losses that teach the right thing, steps that are taken, runs that resume."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.reader import Encoder, Scout, load_encoder, load_scout
from homunculus.reader.letters import BLANK, encode
from homunculus.reader.scout import QUESTION
from homunculus.reader.weights import save
from homunculus.train import looks, losses, optim
from homunculus.train.atlas import Atlas
from homunculus.train.draw import Glyphs
from homunculus.train.loop import Pages, Trainer
from homunculus.train.losses import IGNORE, LEGIBLE, cells_under, find_loss, legible, slot_map, slots_of
from homunculus.train.pages import LETTERS, Labels
from homunculus.train.plot import read_log
from homunculus.train.recipe import Sources, read_plan
from homunculus.train.stream import Stream
from homunculus.train.text import Texts

SMOKE = Path(__file__).parents[1] / "configs" / "smoke.toml"
CPU = torch.device("cpu")


@cache
def font() -> tuple[Atlas, Glyphs]:
    atlas = Atlas.builtin()
    return atlas, Glyphs.of(atlas, CPU)


# -- losses ----------------------------------------------------------------------------------------------------


def labels_of(letters: list[list[float]], reads: list[tuple[str, list[tuple[float, float]], float]] = ()) -> Labels:
    """Labels of one page: letters [code, x, y, em], and words with the centres of their letters and their em."""
    text, count = torch.zeros(1, max(1, len(reads)), LETTERS, dtype=torch.uint8), max(1, len(reads))
    centres, ems = torch.zeros(1, count, LETTERS, 2), torch.zeros(1, count)
    for row, (word, spots, em) in enumerate(reads):
        text[0, row] = encode([word], LETTERS, end=True)[0]
        centres[0, row, : len(spots)] = torch.tensor(spots).view(-1, 2)
        ems[0, row] = em
    nothing = torch.zeros(1, 1, 4)
    return Labels(
        torch.tensor([[0.0, *row] for row in letters]).view(-1, 5), torch.ones(1, dtype=torch.bool), text, centres,
        torch.zeros(1, count, dtype=torch.bool), nothing, ems, torch.zeros(1, 1, QUESTION), nothing[None], nothing,
    )  # fmt: skip


def test_letters_fall_into_their_slots_at_every_level():
    tree = CellTree(160, 200, levels=3)
    labels = labels_of([[35, 70, 45, 16], [36, 71, 90, 10], [37, 199, 159, 7], [38, -3, 5, 20], [39, 500, 5, 20]])
    fine = slot_map(labels, 1, (5, 7), (32, 32), LEGIBLE)
    coarse = slot_map(labels, 1, (3, 4), (64, 64), 2 * LEGIBLE)
    assert fine.shape == (1, 20, 56) and coarse.shape == (1, 12, 32)
    assert fine[0, 5, 17] == 35 and fine[0, 11, 17] == 36 and fine[0, 19, 49] == IGNORE
    assert (fine != 0).sum() == 3
    assert coarse[0, 2, 8] == 35 and coarse[0, 5, 8] == IGNORE and (coarse > 0).sum() == 1
    everything = Selection.of(tree, torch.arange(tree.size)[None])
    slots = slots_of(labels, everything, (160, 200), 3)
    assert slots.shape == (1, tree.size, 4, 8)
    cell = int(tree.locate(torch.tensor([[[70.0, 45.0]]]), 0))
    assert slots[0, cell, 1, 1] == 35 and (slots[0, cell] != 0).sum() == 1
    above = int(tree.locate(torch.tensor([[[70.0, 45.0]]]), 1))
    assert slots[0, above, 2, 0] == 35
    top = int(tree.locate(torch.tensor([[[70.0, 45.0]]]), 2))
    assert slots[0, top, 1, 4] == IGNORE, "16 pixels per em are 4 at level 2"
    off = replace(everything, indices=None)
    assert (slots_of(labels, off, (160, 200), 3) == IGNORE).all()
    unsure = replace(labels, dense=torch.zeros(1, dtype=torch.bool))
    assert (slot_map(unsure, 1, (5, 7), (32, 32), LEGIBLE) == IGNORE).all()


def test_ignored_slots_cost_nothing_and_right_ones_cost_less():
    slots = torch.tensor([[5, IGNORE, BLANK]])
    logits = torch.zeros(1, 3, 96)
    right = logits.clone()
    right[0, 0, 5] = right[0, 2, BLANK] = 5
    wild = right.clone()
    wild[0, 1] = torch.randn(96) * 50
    assert losses.dense_loss(right, slots) < losses.dense_loss(logits, slots)
    torch.testing.assert_close(losses.dense_loss(right, slots), losses.dense_loss(wild, slots))
    assert losses.dense_loss(logits, torch.full((1, 3), IGNORE)) == 0


def test_cells_under_boxes_are_those_of_brute_force():
    torch.manual_seed(0)
    low = torch.rand(2, 5, 3, 2) * 220
    boxes = torch.cat((low, low + torch.rand(2, 5, 3, 2) * 90), 3)
    boxes[0, 0] = 0
    boxes[1, 2, 1:] = 0
    found = cells_under(boxes, (6, 8), (32, 32))
    assert found.shape == (2, 5, 6, 8)
    for b in range(2):
        for q in range(5):
            for row in range(6):
                for column in range(8):
                    touched = False
                    for x0, y0, x1, y1 in boxes[b, q].tolist():
                        rx, ry = min(3, 0.15 * (x1 - x0)), min(3, 0.15 * (y1 - y0))
                        wide = x0 + rx < 32 * column + 32 and x1 - rx > 32 * column
                        touched |= x1 > x0 and wide and y0 + ry < 32 * row + 32 and y1 - ry > 32 * row
                    assert bool(found[b, q, row, column]) == touched


def test_the_loss_of_finding_falls_when_the_right_place_rises():
    target = torch.zeros(1, 2, 9, dtype=torch.bool)
    target[0, 0, 4] = True
    asked = target.any(2)

    def loss(place: int, question: int, height: float) -> float:
        logits = torch.full((1, 2, 9), -4.0)
        logits[0, question, place] = height
        return float(find_loss(logits, target, asked))

    right, wrong = ([loss(place, 0, height) for height in (-4, -2, 0, 2, 4)] for place in (4, 3))
    assert right == sorted(right, reverse=True) and wrong == sorted(wrong) and right[-1] < 0.2 < right[0]
    assert loss(3, 1, 4) == loss(3, 1, -4), "a question without an answer counts"
    assert float(find_loss(torch.zeros(1, 2, 9), target & False, asked & False)) == 0


def test_what_is_legible_is_shown_finely_enough_and_wholly():
    tree = CellTree(128, 128, levels=3)
    spots = [(40.0, 40.0), (50.0, 40.0), (60.0, 40.0)]
    across = [(40.0, 80.0), (66.0, 80.0), (90.0, 80.0)]
    reads = [
        ("abc", spots, 10),
        ("abc", spots, 16),
        ("abc", spots, 31),
        ("abc", spots, 7),
        ("abc", across, 10),
        ("", [], 0),
    ]
    labels = labels_of([], reads)

    def at(*cells: tuple[float, float, int]) -> list[bool]:
        indices = [int(tree.locate(torch.tensor([[[x, y]]]), level)) for x, y, level in cells]
        return legible(labels, Selection.of(tree, torch.tensor([indices])))[0].tolist()

    assert at((40, 40, 0)) == [True, True, True, False, False, False]
    assert at((40, 40, 1)) == [False, True, True, False, False, False]
    assert at((40, 40, 2)) == [False, False, True, False, False, False]
    assert at((40, 40, 2), (40, 40, 0)) == [True, True, True, False, False, False]
    assert at((40, 80, 0), (66, 80, 0)) == [False, False, False, False, True, False]
    assert at((40, 80, 0)) == [False] * 6
    hidden = Selection.of(tree, torch.tensor([[int(tree.locate(torch.tensor([[[90.0, 9.0]]]), 0)), -1]]))
    assert not legible(labels, hidden).any()


def test_looks_have_as_many_cells_as_asked_for():
    tree, rng = CellTree(320, 320), random.Random(0)
    fixation = torch.tensor([[50.0, 60.0], [300.0, 10.0]])
    for _ in range(25):
        selection = looks.padded(looks.drawn_look(tree, fixation, 64, rng), 64)
        assert selection.mask.shape == (2, 64) and selection.mask.all()
    near = looks.nearest(tree, fixation, 0, 9)
    away = (near.centre - fixation[:, None]).norm(dim=2)
    assert (near.levels == 0).all() and away[0].max() < 75
    assert tree.locate(fixation[:1, None])[0, 0] in near.indices[0]


# -- optimiser -------------------------------------------------------------------------------------------------


def test_muon_in_batches_is_torchs_muon():
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this torch has no Muon")
    torch.manual_seed(0)
    shapes = [(24, 24), (24, 24), (48, 16), (16, 48), (48, 16)]
    start = [torch.randn(shape) for shape in shapes]
    mine, theirs = ([torch.nn.Parameter(p.clone()) for p in start] for _ in range(2))
    optimizers = (
        optim.Muon(mine, lr=0.02, weight_decay=0.1),
        torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(3):
        grads = [torch.randn(shape) for shape in shapes]
        for params, optimizer in zip((mine, theirs), optimizers, strict=True):
            for p, grad in zip(params, grads, strict=True):
                p.grad = grad.clone()
            optimizer.step()
    for p, q, before in zip(mine, theirs, start, strict=True):
        moved = (q - before).norm()
        assert (p - q).norm() < 0.02 * moved and moved > 0.1
    untouched = torch.nn.Parameter(torch.ones(3, 3))
    optim.Muon([untouched]).step()
    assert torch.equal(untouched, torch.ones(3, 3))


def test_an_update_clips_moves_and_lets_the_average_follow():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.ones(6, 4))
    average = [torch.zeros(6, 4)]
    adam = torch.optim.AdamW([{"params": [weight], "pace": 2.0}], lr=1.0, weight_decay=0.0)
    update = optim.Update([weight.data], average, [adam])
    weight.grad = torch.full((6, 4), 100.0)
    update(0.05, 0.25)
    assert weight.grad.norm() == pytest.approx(1.0, rel=1e-4)  # clipped
    torch.testing.assert_close(weight.data, torch.full((6, 4), 0.9))  # the first step of Adam is rate times pace
    torch.testing.assert_close(average[0], 0.25 * weight.data)


@pytest.mark.gpu
def test_a_captured_update_is_the_plain_one():
    runs = []
    for warm in (optim.WARM, 100):
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(32, 32, device="cuda"))
        other = torch.nn.Parameter(torch.randn(32, device="cuda"))
        average = [torch.zeros_like(weight), torch.zeros_like(other)]
        optimizers = [
            optim.Muon([{"params": [weight], "pace": 1.5}], 0.1),
            torch.optim.AdamW([{"params": [other], "pace": 1.0}], lr=0.1, fused=True, capturable=True),
        ]
        update = optim.Update([weight.data, other.data], average, optimizers)
        update.warm = warm
        for step in range(8):
            weight.grad, other.grad = torch.sin(weight.data * step), torch.cos(other.data * step)
            if step == 0:
                grads = weight.grad, other.grad
            else:
                for kept, p in zip(grads, (weight, other), strict=True):
                    kept.copy_(p.grad)
                    p.grad = kept
            update(0.1 / (step + 1), 0.5)
        runs.append((weight.data, other.data, *average))
    assert update.graph is None
    for captured, plain in zip(*runs, strict=True):
        torch.testing.assert_close(captured, plain, rtol=1e-4, atol=1e-5)


# -- the loop --------------------------------------------------------------------------------------------------


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
        ("encoder", {"dense", "read", "move", "exact"}),
        ("scout", {"find", "usual", "dense", "hit"}),
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
    command = [sys.executable, "-m", "homunculus.cli", "train", "eye", "--config", plan, "--out", out]
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
    trainer = Trainer("scout", recipe, Pages(Sources(), CPU), out / "scout")
    assert trainer.step == saved
    trainer.run()
    rows = read_log(out / "scout" / "log.jsonl")
    assert [row["step"] for row in rows][len(done) :] == list(range(saved + 1, steps + 1))
    assert all(b["seconds"] >= a["seconds"] for a, b in zip(rows[len(done) :], rows[len(done) + 1 :], strict=False))
    assert torch.load(out / "scout" / "state.pt", weights_only=True)["step"] == steps
    with pytest.raises(InputError, match="another network size"):
        Trainer("scout", replace(recipe, sizes={**recipe.sizes, "joining": 2}), Pages(Sources(), CPU), out / "scout")


def test_a_run_taken_up_again_has_all_that_it_had(tmp_path):
    recipe, pages = read_plan(SMOKE, steps=5, log_every=1).recipes["scout"], Pages(Sources(), CPU)
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
    streams = [Stream(recipe, atlas, Texts.builtin(seed), None, first) for seed, first in ((0, 0), (1, 2))]
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
    rows.append({"step": 3, "held_find": 4.0})
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
    assert sum((tmp_path / "out" / name).stat().st_size for name in hashes) < 36e6
    for name, loader in (("encoder", load_encoder), ("scout", load_scout)):
        for p, q in zip(loader(tmp_path / "out").parameters(), models[name].parameters(), strict=True):
            most = q.detach().abs().amax()
            assert ((p - q).abs().amax() <= most / 250 + 1e-3 * most).item()


def test_shipping_a_run_that_holds_no_weights_says_so(homunculus, tmp_path):
    assert "there is no last.safetensors" in said(homunculus("train", "ship", tmp_path, tmp_path / "out"))


SEVERAL = """
import sys
from pathlib import Path
from homunculus.train import loop

run, out, plan = loop.Trainer.run, *sys.argv[1:]

def traced(self, until):
    run(self, until)
    sums = [float(p.double().sum()) for p in self.model.parameters()]
    Path(out, f"rank{self.rank}").write_text(repr(sums))

loop.Trainer.run = traced
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
