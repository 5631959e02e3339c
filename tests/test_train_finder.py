"""What the line finder is taught: targets, crops, turned pages."""

import math
import random

import pytest
import torch

from homunculus.reader.finder import STRIDE, lines_of
from homunculus.reader.shown import points_on
from homunculus.train.scans.page_store import PageStore
from homunculus.train.tasks import finder
from homunculus.train.tasks.finder import SIDE, FinderTask, PageLines, crops_of, targets_of
from ocr_pages import FIGURES, FINDER
from training import CPU


@pytest.mark.parametrize("rise", [0.0, 12.0])
def test_targets_are_maps_from_which_the_lines_are_found_again(rise):
    lines = torch.tensor([[40.0, 60, 280, 60 + rise, 24], [100, 150, 300, 150 + rise * 5 / 6, 14]])
    core, height, offset, weight = targets_of(lines, 320)
    assert core.shape == (80, 80) and set(core.unique().tolist()) == {0, 1} == {0, *core.unique().tolist()}
    assert (weight[core > 0] == 1).all() and 0 < (weight < 1).float().mean() < 0.1 and weight.min() > 0
    maps = torch.stack(((core * 2 - 1) * 9, height, offset)).numpy()
    found, scores = lines_of(maps)
    found = torch.from_numpy(found) * torch.tensor([STRIDE] * 5)
    order = found[:, 4].argsort(descending=True)
    assert len(found) == 2 and scores.min() > 0.99
    torch.testing.assert_close(found[order], lines, atol=3.0, rtol=0)


def test_a_place_of_two_lines_belongs_to_the_nearer_and_no_lines_are_targets_too():
    core, height, _, _ = targets_of(torch.tensor([[20.0, 40, 200, 40, 40], [20, 60, 200, 60, 20]]), 224)
    assert core[9, 25] == core[15, 25] == 1
    assert float(height[9, 25]) == pytest.approx(math.log(40)) and float(height[15, 25]) == pytest.approx(math.log(20))
    nothing = targets_of(torch.zeros(0, 5), 224)
    assert nothing.shape == (4, 56, 56) and (nothing[:3] == 0).all() and (nothing[3] == 1).all()


def bars() -> tuple[PageLines, torch.Tensor]:
    """A white page with two black bars, which are its lines."""
    page = torch.full((620, 500), 255, dtype=torch.uint8)
    lines = torch.tensor([[60.0, 110, 440, 110, 20], [100, 520, 300, 520, 40]])
    page[100:120, 60:440] = page[500:540, 100:300] = 0
    return PageLines(PageStore.of([page], CPU), [lines], [1.0]), lines


def test_crops_show_their_lines_where_they_say(monkeypatch):
    monkeypatch.setattr(finder, "TILTED", 1.0)
    (store, known), seen = bars(), 0
    for plain, seed in ((True, 0), (False, 1), (False, 2)):
        crops, lines = crops_of(store, 1, random.Random(seed), jitter=not plain)
        assert crops.shape == (1, 1, SIDE, SIDE) and crops.min() >= 0 and crops.max() <= 1 + 1e-5
        for line in lines[0]:
            x, y = points_on(line[None] * torch.tensor([1, 1, 1, 1, 0.8]))[0].flatten(0, 1).long().unbind(1)
            inside = (x > 2) & (y > 2) & (x < SIDE - 2) & (y < SIDE - 2)
            seen += bool(inside.any())  # a crop may leave out a part of the page
            assert not inside.any() or crops[0, 0, y[inside], x[inside]].mean() < 0.1
        slopes = (lines[0][:, 3] - lines[0][:, 1]) / (lines[0][:, 2] - lines[0][:, 0])
        assert (slopes == 0).all() if plain else (slopes != 0).all()
        zoom = lines[0][:, 4] / known[:, 4]
        assert zoom[0] == zoom[1] and 1 < zoom[0] < 2.5
    assert seen >= 4


@torch.no_grad()
def test_turned_crops_are_brought_upright_by_their_label_and_not_searched(monkeypatch):
    monkeypatch.setattr(finder, "TURNED", 1.0)
    store, _ = bars()
    task = FinderTask(finder.LineFinder(**FINDER), seed=3)
    pages, targets, turns = task.make_batch(store, 2, 0.0)
    crops, _ = crops_of(store, 2, random.Random(3), jitter=False)
    assert (targets[:, 3] == 0).all() and set(turns.tolist()) <= {1, 2, 3}
    for page, upright, turn in zip(pages, crops, turns.tolist(), strict=True):
        assert (torch.rot90(page.float(), turn, (1, 2)) - upright).abs().max() < 0.01
        assert (page.float() - upright).abs().mean() > 0.01
    losses = task(*(part[:1] for part in (pages, targets, turns)))
    assert losses.keys() == FIGURES["finder"] and all(map(torch.isfinite, losses.values()))
    assert float(losses["dice"]) == float(losses["height"]) == 0 and float(losses["turn"]) > 0
