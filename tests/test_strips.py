"""Text lines as geometry: strips of a page, and strips of what a look shows of it."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from homunculus import CellTree, Selection
from homunculus.allocators import allocate
from homunculus.pyramid import gaussian
from homunculus.reader.shown import CellMap, shown_levels, strips_of
from homunculus.reader.strips import (
    MARGIN,
    MAX_WIDTH,
    STRIP_HEIGHT,
    axes_of,
    boxes_of,
    columns_of,
    grey,
    grey_pyramid,
    sample_strips,
    strip_level,
    widths_of,
)
from homunculus.relevance import Scene
from lined import letter, lines_in, sheet
from small import scene_of

LEVELS = 4
HEIGHT, WIDTH = 250, 380  # neither side divides by a cell
LINES = torch.tensor(
    [
        [20.0, 40.0, 350.0, 40.0, 14.0],
        [15.0, 90.0, 300.0, 115.0, 20.0],  # slanted
        [100.0, 200.0, 250.0, 170.0, 9.0],
        [10.0, 128.0, 370.0, 128.0, 60.0],  # strips of print so large are made from level 1
        [40.0, 150.0, 340.0, 130.0, 110.0],  # and of this from level 2
    ]
)


def line(*numbers: float) -> torch.Tensor:
    return torch.tensor([numbers], dtype=torch.float32)


def noisy(seed: int = 0, height: int = HEIGHT, width: int = WIDTH) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (height, width), dtype=torch.uint8, generator=generator)


def chance(scene: Scene) -> torch.Tensor:
    """A relevance by lot for each cell."""
    return torch.rand(1, len(scene.tree), generator=torch.Generator().manual_seed(0))


def chosen(*cells: tuple[int, int, int], height: int = HEIGHT, width: int = WIDTH) -> Selection:
    """The selection of cells given by level, row and column."""
    tree = CellTree(height, width, 32, LEVELS)
    index = [tree.offsets[level] + row * tree.shapes[level][1] + column for level, row, column in cells]
    return Selection.of(tree, torch.tensor([sorted(index)]))


def mixed() -> Selection:
    """Fine cells on the left, then coarser and coarser ones, nothing on the right; one fine cell on a coarse one."""
    fine = [(0, row, column) for row in range(8) for column in range(4)]
    middle = [(1, row, column) for row in range(4) for column in (2, 3)]
    return chosen(*fine, *middle, (2, 0, 2), (0, 1, 9))


def inside(selection: Selection, levels: list[torch.Tensor], level: int) -> torch.Tensor:
    """Which pixels of a level are those of chosen cells."""
    mask = torch.zeros_like(levels[level], dtype=torch.bool)
    for box, at in zip(selection.boxes[0].tolist(), selection.levels[0].tolist(), strict=True):
        if at == level:
            x0, y0, x1, y1 = (math.ceil(v / 2**level) for v in box)
            mask[y0:y1, x0:x1] = True
    return mask


# -- lines -----------------------------------------------------------------------------------------------------


def test_boxes_and_axes_of_lines_that_stand_and_lie():
    lines = torch.tensor([[10.0, 20, 110, 20, 12], [50, 10, 50, 90, 8], [0, 0, 30, 40, 10]])
    found = boxes_of(lines)
    assert torch.allclose(found[0], torch.tensor([10.0, 14, 110, 26]))
    assert torch.allclose(found[1], torch.tensor([46.0, 10, 54, 90]))
    assert torch.allclose(found[2], torch.tensor([-4.0, -3, 34, 43]))
    along, across, length = axes_of(lines)
    assert torch.allclose(length, torch.tensor([100.0, 80, 50])) and torch.allclose(along[2], torch.tensor([0.6, 0.8]))
    assert torch.allclose((along * across).sum(1), torch.zeros(3)) and across[0].tolist() == [0, 1]  # downwards


numbers = st.floats(-500, 500, width=32)


@given(st.lists(st.tuples(numbers, numbers, numbers, numbers, st.floats(1, 200, width=32)), min_size=1, max_size=5))
def test_a_box_is_the_smallest_around_the_corners_of_its_line(rows):
    lines = torch.tensor(rows)
    boxes = boxes_of(lines)
    along, across, _ = axes_of(lines)
    assert torch.isfinite(boxes).all() and torch.isfinite(along).all()
    long = (lines[:, 2:4] - lines[:, :2]).norm(dim=1) > 1
    half = across * lines[:, 4:] / 2
    corners = torch.stack([lines[:, i : i + 2] + sign * half for i in (0, 2) for sign in (-1, 1)], 1)
    expected = torch.cat((corners.amin(1), corners.amax(1)), 1)
    assert torch.allclose(boxes[long], expected[long], atol=1e-2)


def test_widths_keep_the_proportions_of_a_line_up_to_the_longest():
    lines = torch.tensor([[0.0, 0, 200, 0, 20], [0, 0, 1, 0, 30], [0, 0, 9000, 0, 10], [0, 0, 160, 120, 20]])
    expected = round((200 + 2 * MARGIN * 20) * STRIP_HEIGHT / (20 * (1 + 2 * MARGIN)))
    assert widths_of(lines).tolist() == [expected, 8, MAX_WIDTH, expected]
    assert widths_of(lines, 48).tolist()[1:3] == [round((1 + 9) * 48 / 39), MAX_WIDTH * 48 // 32]
    for width in (0, 1, 31, 32, 33, 500):
        assert columns_of(width) % 32 == 0 and 32 <= columns_of(width) - width < 64


def test_a_strip_pixel_is_one_to_two_pixels_of_the_level_that_it_is_made_from():
    lines = torch.tensor([[0.0, 0, 100, 0, high] for high in (3, 24, 25, 49, 50, 98, 99, 400)])
    assert strip_level(lines).tolist() == [0, 0, 0, 0, 1, 1, 2, 4]


def test_a_strip_of_a_level_line_is_that_part_of_the_page_resized():
    page, _ = letter()
    high = 20.0
    strips, widths = sample_strips(grey_pyramid(page, LEVELS), line(63, 84, 303, 84, high))
    part = page[71:97, 60:306].float()  # a margin of 3 pixels on each side
    assert part.std() > 20 and strips.shape == (1, 1, STRIP_HEIGHT, columns_of(int(widths[0])))
    expected = F.interpolate(part[None, None], (STRIP_HEIGHT, int(widths[0])), mode="bilinear")[0, 0]
    found = strips[0, 0, :, : widths[0]].float()
    assert (found - expected)[2:-2, 2:-2].abs().max() <= 1
    assert (strips[0, 0, :, widths[0] :] == 128).all()


def test_a_strip_of_large_print_is_smoothed_before_it_becomes_small():
    page, boxes = sheet([("Harbour 21", 60, 70, 100)])
    strips, widths = sample_strips(grey_pyramid(page, LEVELS), lines_in(boxes[:1]))
    x0, y0, x1, y1 = boxes[0]
    pad = round(MARGIN * (y1 - y0))
    part = page[y0 - pad : y1 + pad, x0 - pad : x1 + pad][None, None].float()
    expected = F.interpolate(part, (STRIP_HEIGHT, int(widths[0])), mode="bilinear", antialias=True)[0, 0]
    found = strips[0, 0, :, : widths[0]].float()[:, : part.shape[3]]
    assert np.corrcoef(found[2:-2, 2:-2].flatten(), expected[2:-2, 2:-2].flatten())[0, 1] > 0.97


@pytest.mark.parametrize("degrees", [5, -5])
def test_a_slanted_line_gives_a_straight_strip(degrees):
    page, boxes = letter()
    level = lines_in(boxes)
    turned = torch.from_numpy(
        np.array(Image.fromarray(page.numpy()).rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255))
    )
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = torch.tensor([[cos, -sin], [sin, cos]])  # rows times it: counter-clockwise on the picture, y downwards
    middle = torch.tensor([page.shape[1] / 2, page.shape[0] / 2])
    ends = [(level[:, i : i + 2] - middle) @ turn + middle for i in (0, 2)]
    slanted = torch.cat((*ends, level[:, 4:]), 1)
    straight, widths = sample_strips(grey_pyramid(page, 2), level)
    found, same = sample_strips(grey_pyramid(turned, 2), slanted)
    assert torch.equal(same, widths) and (slanted[:, 1] - slanted[:, 3]).abs().min() > 10
    for mine, theirs, wide in zip(found, straight, widths, strict=True):
        pair = mine[0, :, :wide].flatten(), theirs[0, :, :wide].flatten()
        assert np.corrcoef(*pair)[0, 1] > 0.96


def test_the_pyramid_of_a_grey_page_is_that_of_its_colours():
    page = noisy()
    found = grey_pyramid(page, LEVELS)
    assert torch.equal(found[0], page)
    assert [tuple(level.shape) for level in found] == [(250, 380), (125, 190), (63, 95), (32, 48)]
    colours = torch.stack([noisy(seed) for seed in (1, 2, 3)])[None]
    mine, theirs = grey_pyramid(grey(colours)[0], LEVELS), [grey(level)[0] for level in gaussian(colours, LEVELS)]
    for one, other in zip(mine, theirs, strict=True):
        assert (one.int() - other.int()).abs().max() <= 2
    assert all((level == 90).all() for level in grey_pyramid(torch.full((77, 33), 90, dtype=torch.uint8), 3))


def test_grey_is_luminance():
    colours = torch.tensor([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [7, 7, 7]], dtype=torch.uint8)
    assert grey(colours[:, :, None, None]).flatten().tolist() == [76, 150, 29, 255, 7]


def test_no_lines_give_no_strips():
    nothing = torch.zeros(0, 5)
    selection = mixed()
    for strips, widths in (
        sample_strips(grey_pyramid(noisy(), 2), nothing),
        strips_of(grey_pyramid(noisy(), LEVELS), selection, CellMap.of(selection), nothing),
    ):
        assert strips.shape == (0, 1, STRIP_HEIGHT, 32) and widths.shape == (0,)
    assert shown_levels(CellMap.of(selection), nothing).shape == (0,)


# -- what a look shows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("allocator", ["dag", "uniform", "mixed"])
def test_the_map_of_cells_tells_the_finest_cell_at_every_place(allocator):
    if allocator == "mixed":
        selection = mixed()
    else:
        scene = scene_of(HEIGHT, WIDTH)
        selection = allocate(allocator, scene.tree, chance(scene), 40)
    cells = CellMap.of(selection)
    spots = torch.rand(300, 2, generator=torch.Generator().manual_seed(3)) * torch.tensor([WIDTH, HEIGHT])
    found = cells.at(spots).tolist()
    boxes, levels = selection.boxes[0].tolist(), selection.levels[0].tolist()
    for (x, y), cell in zip(spots.tolist(), found, strict=True):
        under = [
            k
            for k, (x0, y0, x1, y1) in enumerate(boxes)
            if x0 <= x < x1 and y0 <= y < y1 and bool(selection.mask[0, k])
        ]
        near = any(min(abs(x - x0), abs(x - x1), abs(y - y0), abs(y - y1)) <= cells.side for x0, y0, x1, y1 in boxes)
        if selection.indices is not None or not near:  # elsewhere borders of cells are rounded to places
            assert cell == (min(under, key=lambda k: levels[k]) if under else -1)
    beyond = torch.tensor([[-1.0, 5], [5, -0.5], [WIDTH + 40, 5], [5, HEIGHT + 40]])
    assert cells.at(beyond).tolist() == [-1] * 4


def test_the_tail_of_a_selection_is_no_cell():
    tree = CellTree(HEIGHT, WIDTH, 32, LEVELS)
    last = len(tree) - 1
    cells = CellMap.of(Selection.of(tree, torch.tensor([[last, -1, -1]])))
    assert len(cells.levels) == 1 and (cells.cell >= 0).sum() == 1 and cells.cell[-1, -1] == 0


def test_a_line_is_shown_at_the_level_of_four_fifths_of_it():
    cells = CellMap.of(mixed())  # level 0 up to 128, level 1 up to 256, then level 2 at the top and nothing below
    lines = [(20, 120), (20, 145), (20, 250), (150, 250), (20, 380), (20, 275), (20, 330), (300, 340)]
    found = shown_levels(cells, torch.tensor([[x0, 200.0, x1, 200.0, 10.0] for x0, x1 in lines]))
    assert found.tolist() == [0, 0, 1, 1, math.inf, 1, math.inf, math.inf]
    assert shown_levels(cells, line(270, 100, 370, 100, 10)).tolist() == [2]
    assert shown_levels(cells, line(60, 230, 60, 300, 10)).tolist() == [math.inf]  # beyond the page in part


@pytest.mark.parametrize("height", [STRIP_HEIGHT, 48])
def test_strips_have_pixels_of_chosen_cells_only(height):
    """Noise in place of all that was not chosen, level by level, changes nothing at all."""
    selection, levels = mixed(), grey_pyramid(noisy(), LEVELS)
    cells = CellMap.of(selection)
    masks = [inside(selection, levels, level) for level in range(LEVELS)]
    noise = grey_pyramid(noisy(seed=1), LEVELS)
    other = [torch.where(mask, mine, theirs) for mask, mine, theirs in zip(masks, levels, noise, strict=True)]
    assert all((one != two).any() for one, two in zip(levels, other, strict=True))
    shown = [torch.where(mask, 255 - mine, mine) for mask, mine in zip(masks, levels, strict=True)]
    for n in range(len(LINES)):
        mine, widths = strips_of(levels, selection, cells, LINES[n : n + 1], height)
        assert mine.shape == (1, 1, height, columns_of(int(widths[0]))) and mine[..., : widths[0]].float().std() > 10
        assert torch.equal(strips_of(other, selection, cells, LINES[n : n + 1], height)[0], mine), n
        assert (strips_of(shown, selection, cells, LINES[n : n + 1], height)[0] != mine).float().mean() > 0.1


def test_strips_of_fine_cells_do_not_depend_on_the_page_around_them():
    selection = chosen(*((0, row, column) for row in range(1, 6) for column in range(1, 10)))
    page, cells = noisy(), CellMap.of(selection)
    other = torch.where(inside(selection, [page], 0), page, noisy(seed=1))
    for n in range(len(LINES)):
        mine, theirs = (
            strips_of(grey_pyramid(pixels, LEVELS), selection, cells, LINES[n : n + 1])[0] for pixels in (page, other)
        )
        assert torch.equal(mine, theirs), n


def test_detail_that_a_level_does_not_have_changes_nothing_in_its_strips():
    selection, levels = chosen((2, 0, 0), (2, 0, 1), (2, 0, 2)), grey_pyramid(noisy(), LEVELS)
    other = [*grey_pyramid(noisy(seed=1), LEVELS)[:2], *levels[2:]]
    cells, lines = CellMap.of(selection), line(20, 60, 360, 66, 40)
    assert shown_levels(cells, lines).tolist() == [2]
    mine = strips_of(levels, selection, cells, lines)[0]
    assert torch.equal(strips_of(other, selection, cells, lines)[0], mine)
    other[2] = 255 - other[2]
    assert not torch.equal(strips_of(other, selection, cells, lines)[0], mine)


def test_what_no_cell_shows_is_grey():
    selection = chosen(*((0, row, column) for row in range(8) for column in range(4)))
    levels = [torch.zeros_like(level) for level in grey_pyramid(noisy(), LEVELS)]
    strips, widths = strips_of(levels, selection, CellMap.of(selection), line(28, 60, 228, 60, 20))
    columns = strips[0, 0].unique(dim=0)
    assert len(columns) == 1 and set(columns[0].tolist()) == {0, 128}
    black = int((columns[0] == 0).sum())
    assert black == pytest.approx(int(widths[0]) * (103 / 206), abs=1)  # up to 128 of the strip from 25 to 231
    assert (columns[0, :black] == 0).all()


@pytest.mark.parametrize("size", [24, 90])
def test_a_line_that_is_wholly_shown_at_its_best_has_the_strip_of_the_page(size):
    page, boxes = letter() if size < 30 else sheet([("Harbour 21", 60, 70, size), ("and more", 60, 300, size)])
    levels = grey_pyramid(page, LEVELS)
    selection = chosen(*((0, row, column) for row in range(25) for column in range(20)), height=800, width=640)
    lines = lines_in(boxes[:2])
    mine, widths = strips_of(levels, selection, CellMap.of(selection), lines)
    whole, same = sample_strips(levels, lines)
    assert torch.equal(widths, same) and whole.float().std() > 20
    difference = (mine.float() - whole.float()).abs()
    assert difference.mean() < 4  # cells have no pixels of their neighbours to mix with
    assert np.corrcoef(mine.flatten(), whole.flatten())[0, 1] > 0.98


def test_cells_off_the_tree_show_what_they_hold():
    scene = scene_of(HEIGHT, WIDTH)
    levels = [grey(level)[0] for level in scene.levels]
    selection = allocate("uniform", scene.tree, chance(scene), 40)
    assert selection.indices is None
    cells = CellMap.of(selection)
    strips, widths = strips_of(levels, selection, cells, LINES)
    assert strips.dtype == torch.uint8 and strips.shape == (5, 1, STRIP_HEIGHT, columns_of(int(widths.max())))
    shown = shown_levels(cells, LINES)
    assert torch.allclose(shown, selection.levels[0, 0].float().expand(5))
