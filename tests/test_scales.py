"""The same cut at several scales of the page: still a cut, and never with more illegible print than the first."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from homunculus import CellTree, InputError, Selection, allocate
from homunculus.allocators import ALLOCATORS
from homunculus.allocators.legibility import legible
from homunculus.allocators.scales import moved
from homunculus.reader.shown import CellMap, page_at, strips_of
from homunculus.reader.strips import grey_pyramid
from trees import PAGE, flat

RULES = [name for name, entry in ALLOCATORS.items() if entry.cuts_by_legibility]


def column_of(height: float, count: int = 40) -> torch.Tensor:
    """Lines of one print height over most of PAGE. [count, 5]"""
    y0 = 60 + 50.0 * torch.arange(count)
    full = torch.full_like
    return torch.stack([full(y0, 60), y0, full(y0, 1600), y0 + height, full(y0, height)], 1)


def looked(name: str, lines: torch.Tensor, budget: int, scales: int, tree: CellTree = PAGE, **options) -> Selection:
    how = {"error": "legibility", "lines": [lines], "min_print": 6.0, "scales": scales} | options
    return allocate(name, tree, flat(tree), budget, **how)


def shown(selection: Selection, lines: torch.Tensor) -> float:
    return float(legible(selection, [lines], 6.0)[0].double().mean())


@pytest.mark.parametrize("name", RULES)
def test_print_that_just_misses_a_level_is_legible_with_half_the_tokens_at_another_scale(name):
    lines = column_of(20)  # 5 pixels high at level 2, but 6.7 pixels with cells of 45 at level 1
    alone, several = (looked(name, lines, 450, scales) for scales in (1, 4))
    assert alone.indices is not None and several.indices is None
    assert shown(alone, lines) < 0.6 and shown(several, lines) > shown(alone, lines) + 0.3
    fraction = several.levels[0] % 1
    assert (fraction - fraction[0]).abs().max() < 1e-9 and 0.2 < float(fraction[0]) < 0.8


@pytest.mark.parametrize("name", RULES)
def test_the_pages_own_tree_is_taken_where_no_other_shows_more(name):
    lines = column_of(24.5)  # 6.1 pixels at level 2: any other scale needs the next level
    assert looked(name, lines, 200, 4).indices is not None
    few = looked(name, lines[:2], 273, 4)
    assert shown(few, lines[:2]) == 1 and few.indices is not None


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=40, deadline=None)
@given(
    st.integers(40, 900), st.integers(40, 900), st.integers(1, 200), st.integers(2, 6), st.floats(6, 60), st.integers()
)
def test_a_cut_at_any_scale_tiles_the_page_with_the_exact_count(name, height, width, budget, scales, print_, seed):
    tree, generator = CellTree(height, width), torch.Generator().manual_seed(seed % 1000)
    start = torch.rand(20, 2, generator=generator) * torch.tensor([width, height])
    lines = torch.cat((start, start + torch.tensor([200, print_]), torch.full((20, 1), print_)), 1)
    selection = looked(name, lines, budget, scales, tree)
    assert int(selection.mask.sum()) == min(budget, len(tree))
    assert selection.boxes.shape[1] == min(budget, len(tree))
    if budget >= tree.root_counts[0]:
        assert float(selection.coverage()[0]) == pytest.approx(1)
    boxes = selection.boxes[0].double()
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 2:] <= torch.tensor([width, height])).all()
    assert (boxes[:, 2:] - boxes[:, :2] <= selection.span[0, :, None] + 1e-6).all()
    if int(selection.mask.sum()) < len(tree):  # otherwise fine cells lie over coarse ones
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1).sum()
        left_over = (selection.levels[0] < 1).sum() * 32.0**2 * 4
        assert area <= height * width + left_over


def test_rows_of_a_batch_choose_each_for_itself():
    pages = [column_of(20), column_of(24.5), column_of(30)]
    how = {"error": "legibility", "min_print": 6.0, "scales": 4}
    together = allocate("dag", PAGE, flat(PAGE, 3), 400, lines=pages, **how)
    for b, lines in enumerate(pages):
        alone = allocate("dag", PAGE, flat(PAGE), 400, lines=[lines], **how)
        assert torch.equal(together.boxes[b].double(), alone.boxes[0].double())
        assert torch.equal(together.levels[b].double(), alone.levels[0].double())
    assert len({round(float(level) % 1, 3) for level in together.levels[:, 0]}) > 1


@pytest.mark.parametrize("scales", [0, 9, -1])
def test_scales_out_of_range_are_an_error(scales):
    with pytest.raises(InputError, match="scales must be from 1 to 8"):
        looked("dag", column_of(20), 100, scales)


@pytest.mark.parametrize("name", RULES)
def test_scales_without_lines_are_an_error(name):
    with pytest.raises(InputError, match="scales above 1 need lines"):
        allocate(name, PAGE, flat(PAGE), 100, scales=2)


@pytest.mark.parametrize("cell", [32, 38, 45, 54])
def test_moved_values_keep_their_mean_and_their_place(cell):
    tree = CellTree(500, 730)
    other = tree.with_cell(cell)
    assert other is tree.with_cell(cell) and other.levels == tree.levels
    values = torch.rand(2, len(tree), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = moved(values, tree, other)
    area = [(t.box[:, 2:] - t.box[:, :2]).prod(1).double() for t in (tree, other)]
    for level in range(tree.levels):
        before = (values * area[0])[:, tree.at(level)].sum(1)
        assert torch.allclose((found * area[1])[:, other.at(level)].sum(1), before)
    if cell == tree.cell:
        assert torch.allclose(found, values)
    spot = torch.zeros(1, len(tree), dtype=torch.float64)
    spot[0, tree.locate(torch.tensor([[[400.0, 200]]]))[0, 0]] = 1
    best = int(moved(spot, tree, other)[0, other.at(0)].argmax()) + other.offsets[0]
    x0, y0, x1, y1 = other.box[best].tolist()
    assert x0 <= 416 and x1 >= 384 and y0 <= 224 and y1 >= 192  # it meets the cell from (384, 192)


def test_strips_of_a_look_at_another_scale_have_pixels_of_its_cells_only():
    """Noise in place of all that was not chosen, level by level of the scaled page, changes nothing."""
    lines = column_of(20)[:12]
    generator = torch.Generator().manual_seed(0)
    size = (PAGE.height, PAGE.width)
    page, noise = (torch.randint(0, 256, size, dtype=torch.uint8, generator=generator) for _ in "12")
    selection = looked("dag", torch.cat((lines, column_of(20)[25:])), 300, 4)
    cells = CellMap.of(selection)
    assert cells.on_grid and 0 < cells.finest < 1
    scaled, other = (page_at(grey_pyramid(pixels, PAGE.levels), cells.finest) for pixels in (page, noise))
    assert scaled[0].shape == tuple(math.ceil(side / 2**cells.finest) for side in (PAGE.height, PAGE.width))
    mixed, changed = [], 0
    for level, (mine, theirs) in enumerate(zip(scaled, other, strict=True)):
        inside = torch.zeros_like(mine, dtype=torch.bool)
        here = (cells.levels - cells.finest).round() == level
        for x0, y0, x1, y1 in (cells.boxes[here] / 2**level).round().long().tolist():
            inside[y0 : y1 + 1, x0 : x1 + 1] = True
        mixed.append(torch.where(inside, mine, theirs))
        changed += int((~inside).sum())
    assert changed > 100_000
    mine, theirs = (strips_of(levels, selection, cells, lines)[0] for levels in (scaled, mixed))
    assert torch.equal(mine, theirs) and mine.float().std() > 10


def test_a_look_at_another_scale_shows_the_lines_where_they_stand():
    """A page with a bar in each line: the strips show it, whatever the scale."""
    lines, page = column_of(20), torch.full((PAGE.height, PAGE.width), 255, dtype=torch.uint8)
    for x0, y0, *_ in lines.long().tolist():
        page[y0 + 2 : y0 + 18, x0 + 700 : x0 + 800] = 0
    along = torch.stack((lines[:, 0], lines[:, 1] + 10, lines[:, 2], lines[:, 1] + 10, lines[:, 4]), 1)
    selection = looked("dag", lines, 450, 4)
    cells = CellMap.of(selection)
    strips, widths = strips_of(page_at(grey_pyramid(page, PAGE.levels), cells.finest), selection, cells, along)
    dark = (strips[:, 0, 10:22].float().mean(1) < 128).float()
    where = torch.arange(dark.shape[1])
    middle = (dark * where).sum(1) / dark.sum(1) / widths
    assert ((middle - 750 / 1540).abs() < 0.01).all()
