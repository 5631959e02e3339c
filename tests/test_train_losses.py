"""Losses that teach the right thing, and selections of as many cells as asked for."""

import random
from collections import Counter
from dataclasses import replace

import torch

from homunculus.allocators import ALLOCATORS
from homunculus.cells import CellTree, Selection
from homunculus.reader.letters import BLANK
from homunculus.reader.scout import QUESTION
from homunculus.train.pages import Labels
from homunculus.train.tasks import selections
from homunculus.train.tasks.encoder import fixations
from homunculus.train.tasks.scout import cells_under, find_loss
from homunculus.train.tasks.selections import nearest, padded, random_selection
from homunculus.train.tasks.slots import IGNORE, LEGIBLE, dense_loss, slot_map, slots_of


def labels_of(letters: list[list[float]]) -> Labels:
    """Labels of one page: letters [code, x, y, em]."""
    rows, nothing = torch.tensor([[0.0, *row] for row in letters]).view(-1, 5), torch.zeros(1, 1, 4)
    return Labels(rows, torch.ones(1, dtype=torch.bool), torch.zeros(1, 1, QUESTION), nothing[None], nothing)


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
    assert dense_loss(right, slots) < dense_loss(logits, slots)
    torch.testing.assert_close(dense_loss(right, slots), dense_loss(wild, slots))
    assert dense_loss(logits, torch.full((1, 3), IGNORE)) == 0


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


def test_the_encoder_looks_near_a_letter_of_its_page():
    corner, edge = [35.0, 40.0, 10.0, 16.0], [36.0, 600.0, 300.0, 16.0]
    letters = [[0.0, *corner]] * 3 + [[2.0, *edge]] + [[2.0, 37.0, 900.0, 300.0, 16.0]] * 50  # those are not shown
    labels = replace(labels_of([]), letters=torch.tensor(letters))
    torch.manual_seed(0)
    found = torch.stack([fixations(labels, 4, (480, 640)) for _ in range(300)])
    assert (found >= 0).all() and (found <= torch.tensor([639.0, 479.0])).all()
    expected = torch.tensor([[40.0, 10.0], [320.0, 240.0], [600.0, 300.0], [320.0, 240.0]])
    torch.testing.assert_close(found.median(0).values, expected, rtol=0, atol=12)
    assert fixations(labels_of([]), 1, (480, 640)).shape == (1, 2)


def test_every_allocator_is_drawn_as_often_as_its_entry_says(monkeypatch):
    drawn, nearest = Counter(), Selection.of(CellTree(32, 32), torch.zeros(1, 1, dtype=torch.long))
    monkeypatch.setattr(selections, "allocate", lambda name, *rest: drawn.update([name]))
    monkeypatch.setattr(selections, "nearest", lambda *rest: nearest)
    tree, rng, draws = CellTree(32, 32), random.Random(0), 4000
    for _ in range(draws):
        selections.random_selection(tree, torch.tensor([[9.0, 9.0]]), 1, rng)
    weights = {name: entry.training_weight for name, entry in ALLOCATORS.items() if entry.training_weight}
    total = sum(weights.values()) + selections.NEAREST
    assert drawn.keys() == weights.keys()
    for name, weight in weights.items():
        assert abs(drawn[name] / draws - weight / total) < 0.03


def test_selections_have_as_many_cells_as_asked_for():
    tree, rng = CellTree(320, 320), random.Random(0)
    fixation = torch.tensor([[50.0, 60.0], [300.0, 10.0]])
    for _ in range(25):
        selection = padded(random_selection(tree, fixation, 64, rng), 64)
        assert selection.mask.shape == (2, 64) and selection.mask.all()
    near = nearest(tree, fixation, 0, 9)
    away = (near.centre - fixation[:, None]).norm(dim=2)
    assert (near.levels == 0).all() and away[0].max() < 75
    assert tree.locate(fixation[:1, None])[0, 0] in near.indices[0]
