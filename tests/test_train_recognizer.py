"""What the recogniser is taught: strips, widths, texts."""

import random

import pytest
import torch

from homunculus.reader.recognizer import CLASSES
from homunculus.reader.strips import MAX_WIDTH, grey_pyramid, sample_strips
from homunculus.train.scans.page_store import LEVELS, PageStore
from homunculus.train.tasks import recognizer
from homunculus.train.tasks.recognizer import LineStore, RecognizerTask, jittered
from lined import TEXTS, letter, lines_in
from ocr_pages import RECOGNIZER
from training import CPU


def line_store() -> tuple[LineStore, torch.Tensor, torch.Tensor]:
    page, boxes = letter()
    lines, count = lines_in(boxes), len(TEXTS)
    store = LineStore(PageStore.of([page], CPU), torch.zeros(count).long(), lines, list(TEXTS), torch.ones(count))
    return store, lines, page


def test_strips_of_training_are_those_of_reading_when_nothing_is_degraded():
    store, lines, page = line_store()
    expected, widths = sample_strips(grey_pyramid(page, LEVELS), lines)
    strips, found = recognizer.strips_of(store, torch.arange(len(lines)), 512, 0.0)
    assert torch.equal(found, widths.clamp(max=512))
    for strip, other, width in zip(strips, expected, widths.tolist(), strict=True):
        assert (strip[..., :width] * 255 - other[..., :width]).abs().max() <= 0.51
    torch.manual_seed(0)
    degraded, _ = recognizer.strips_of(store, torch.arange(len(lines)), 512, 1.0)
    assert degraded.shape == strips.shape and not torch.equal(degraded, strips)
    assert degraded.min() >= 0 and degraded.max() <= 1


def test_some_strips_go_through_cells_of_two_levels():
    lines = line_store()[1]
    spots = recognizer.strip_grid(lines, recognizer.widths_of(lines), 512)
    level = torch.ones(len(lines), dtype=torch.long)
    torch.manual_seed(0)
    chosen = recognizer._random_cells(spots, level)
    cell = (spots / 64).floor()
    for n in range(len(lines)):
        for place in cell[n].view(-1, 2).unique(dim=0):
            inside = (cell[n] == place).all(-1)
            assert chosen[n][inside].unique().numel() == 1  # a cell is at one level as a whole
    assert 0.3 < chosen.float().mean() < 0.7


def test_lines_are_off_by_little():
    lines = line_store()[1]
    torch.manual_seed(0)
    other = jittered(lines, 1.0)
    difference = (other - lines).abs() / lines[:, 4:]
    assert jittered(lines, 0.0) is lines and difference.max() < 0.5 and (difference > 0).all()


def test_batches_are_of_lines_of_about_one_width():
    store, lines, _ = line_store()
    assert len(store.lines) == len(lines)
    rows, columns = store.batch(2 * 32 * 512, random.Random(0))
    assert len(rows) == 2 * 32 * 512 // (32 * columns) and columns in recognizer.BUCKETS
    assert all(recognizer.widths_of(store.lines[rows]) <= columns)
    page = torch.full((60, MAX_WIDTH), 255, dtype=torch.uint8)
    wrong = torch.tensor([[0.0, 30, 20, 30, 20], [0, 30, 400, 30, 4], [0, 30, 400, 30, 20]])
    texts = ["too many letters for it", "print too small", "请问"]
    empty = LineStore(PageStore.of([page], CPU), torch.zeros(3).long(), wrong, texts, torch.ones(3))
    assert len(empty.lines) == 0 and empty.batch(1000, random.Random(0)) is None


def test_a_batch_of_the_recogniser_is_learned(monkeypatch):
    monkeypatch.setattr(recognizer, "BUCKETS", (256, 384, 512))
    store, _, _ = line_store()
    torch.manual_seed(0)
    task = RecognizerTask(recognizer.Recognizer(**RECOGNIZER))
    batch = task.make_batch(store, 4, 0.0)
    optimizer, losses = torch.optim.AdamW(task.parameters(), 3e-3), []
    for _ in range(12):
        found = task(*batch)
        optimizer.zero_grad()
        found["ctc"].backward()
        optimizer.step()
        losses.append(float(found["ctc"].detach()))
    assert losses[-1] < 0.7 * losses[0] and 0 <= found["exact"] <= 1


def test_strips_read_exactly_are_counted_as_they_are_decoded():
    paths = ["hheel_llo_", "_abc______", "hello_____"]
    best = torch.tensor([[0 if c == "_" else ord(c) - 31 for c in path] for path in paths])
    logits = torch.nn.functional.one_hot(best, CLASSES).float()
    codes = recognizer.encode(["hello", "abc", "hello"], 12)
    assert recognizer._exact(logits, torch.full((3,), 40), codes) == pytest.approx(2 / 3)  # "hello" needs a blank
    assert recognizer._exact(logits, torch.full((3,), 12), codes) == pytest.approx(0)
