"""Text lines on maps, on drawn pages and on pages that lie on their side."""

import copy
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from homunculus import CellTree, InputError, image
from homunculus.reader import LineFinder, Recognizer, load_finder, load_recognizer, load_scout
from homunculus.reader.convs import ConvNorm, fused
from homunculus.reader.finder import MAX_LINES, MULTIPLE, PIXELS, SHRINK, STRIDE, lines_of, small_copy
from homunculus.reader.orientation import find_upright
from homunculus.reader.session import PageReader
from homunculus.reader.strips import boxes_of, grey
from homunculus.relevance import Scene
from lined import TEXTS, Box, letter, shared, sheet

EXAMPLE = Path(__file__).parents[1] / "examples" / "invoice.png"
TINY = {"widths": [4, 8, 8, 8, 12], "neck": 8}
HIGH = 6.0  # print height in places of the maps


@pytest.fixture(scope="module")
def finder() -> LineFinder:
    return load_finder()


def empty_maps(rows: int = 60, columns: int = 120) -> np.ndarray:
    maps = np.zeros((3, rows, columns), np.float32)
    maps[0], maps[1] = -9, math.log(HIGH * STRIDE)
    return maps


def mark(maps: np.ndarray, x0: int, x1: int, y: float, slope: float = 0.0, sure: float = 9.0) -> None:
    """A core of three places about the line that is at y at column x0."""
    for x in range(x0, x1):
        middle = y + slope * (x + 0.5 - x0)
        for row in range(int(middle) - 1, int(middle) + 2):
            maps[0, row, x], maps[2, row, x] = sure, (middle - row - 0.5) / HIGH


def noisy_norms(model: nn.Module, seed: int = 0) -> nn.Module:
    """A network whose batch norms have seen something."""
    torch.manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.running_mean, module.bias.data):
                nn.init.normal_(values, std=0.3)
            for values in (module.running_var, module.weight.data):
                nn.init.uniform_(values, 0.5, 2)
    return model.eval()


def told(finder: LineFinder, turns: int) -> LineFinder:
    """The finder when it takes every page to need these turns."""
    other = copy.deepcopy(finder)
    nn.init.zeros_(other.turn.weight)
    other.turn.bias.data = 9 * torch.eye(4)[turns]
    return other


def turned_box(box: Box, shape: tuple[int, int], turns: int) -> list[int]:
    """Where a box of a page of this shape lies when the page is turned clockwise."""
    x0, y0, x1, y1 = map(round, box)
    mask = np.zeros(shape, bool)
    mask[y0:y1, x0:x1] = True
    rows, columns = np.nonzero(np.rot90(mask, -turns))
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


# -- from maps to lines ----------------------------------------------------------------------------------------


def test_a_core_is_a_line_somewhat_longer_than_it():
    maps = empty_maps()
    mark(maps, 20, 90, 30.5)
    lines, scores = lines_of(maps)
    assert lines.shape == (1, 5) and lines.dtype == np.float32 and scores[0] > 0.99
    assert lines[0] == pytest.approx([20 - SHRINK * HIGH, 30.5, 90 + SHRINK * HIGH, 30.5, HIGH], abs=1e-3)


def test_two_cores_are_two_lines_and_faint_ones_none():
    maps = empty_maps()
    mark(maps, 10, 50, 20.5)
    mark(maps, 60, 100, 20.5)
    mark(maps, 10, 100, 40.5, sure=-0.1)  # about one half: found, but not believed
    maps[0, 50, 50] = 9  # a speck
    lines, scores = lines_of(maps)
    assert len(lines) == len(scores) == 2 and (lines[:, 2] - lines[:, 0]).round().tolist() == [42, 42]
    assert sorted(round(float(x)) for x in lines[:, 0]) == [9, 59]


@pytest.mark.parametrize("slope", [0.08, -0.05])
def test_a_slanted_core_is_a_slanted_line_and_short_ones_take_the_usual_slope(slope):
    maps = empty_maps()
    mark(maps, 10, 100, 20, slope)
    mark(maps, 40, 52, 40)
    lines, _ = lines_of(maps)
    found = (lines[:, 3] - lines[:, 1]) / (lines[:, 2] - lines[:, 0])
    assert found == pytest.approx([slope, slope], abs=0.005)
    long = lines[lines[:, 2].argmax()]
    assert long[1] == pytest.approx(20 - slope * SHRINK * HIGH, abs=0.1)


def test_lines_are_not_believed_to_be_steep():
    maps = empty_maps()
    mark(maps, 20, 100, 8, 0.5)
    lines, _ = lines_of(maps)
    assert len(lines) == 1 and lines[0, 1] == lines[0, 3]


def test_maps_without_a_core_hold_no_lines():
    lines, scores = lines_of(empty_maps())
    assert lines.shape == (0, 5) and scores.shape == (0,)


def test_of_too_many_lines_the_surest_stay():
    maps = empty_maps(200, 400)
    for row in range(1, 199, 4):
        for column in range(0, 390, 8):
            mark(maps, column, column + 5, row + 0.5, sure=1 + (row + column) % 9)
    lines, scores = lines_of(maps)
    assert len(lines) == MAX_LINES < 50 * 49 and np.isfinite(lines).all()
    assert scores.min() > 1 / (1 + math.exp(-4))


def test_finding_lines_needs_scipy_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    maps = empty_maps()
    mark(maps, 10, 40, 20.5)
    with pytest.raises(InputError, match=r"needs scipy: pip install 'homunculus\[hf\]'"):
        lines_of(maps)


# -- the network -----------------------------------------------------------------------------------------------


@torch.no_grad()
def test_a_fused_network_computes_the_same():
    model = noisy_norms(LineFinder(**TINY))
    pages = torch.rand(2, 1, 64, 96) * 2 - 1
    whole = fused(copy.deepcopy(model))
    assert not any(isinstance(module, nn.BatchNorm2d) for module in whole.modules())
    assert all(isinstance(m.norm, nn.Identity) for m in whole.modules() if isinstance(m, ConvNorm))
    for found, expected in zip(whole(pages), model(pages), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert model(pages)[0].shape == (2, 3, 16, 24) and model(pages)[1].shape == (2, 4)
    reads = noisy_norms(Recognizer([8, 8, 16, 16], 24, 1, 2))
    strips, widths = torch.rand(2, 1, 32, 160) * 2 - 1, torch.tensor([128, 70])
    expected = reads.logits(strips, widths)
    torch.testing.assert_close(fused(reads).logits(strips, widths), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("shape", [(800, 640), (3000, 2400), (1, 1), (7, 200_000), (90, 90), (40, 20_000)])
def test_the_small_copy_has_about_as_many_pixels_as_it_may(shape):
    small = small_copy(torch.full(shape, 255, dtype=torch.uint8))
    height, width = small.shape[2:]
    assert small.shape[:2] == (1, 1) and height % MULTIPLE == width % MULTIPLE == 0
    assert height * width < 2.2 * PIXELS and small.min() > 0.99


@pytest.mark.parametrize("size", [18, 24])
def test_drawn_lines_are_found_with_the_height_of_their_print(finder, size):
    page, boxes = letter(size)
    found = finder.find(page)
    around = boxes_of(found.lines).tolist()
    assert found.turns == 0 and len(TEXTS) - 1 <= len(around) <= len(TEXTS) + 2 and found.scores.min() > 0.5
    best = [max(range(len(around)), key=lambda n: shared(box, around[n])) for box in boxes]
    assert sum(shared(box, around[n]) > 0.4 for box, n in zip(boxes, best, strict=True)) >= len(TEXTS) - 1
    heights = found.lines[best, 4]
    assert 0.7 * size < heights.median() < 1.4 * size and heights.max() < 1.5 * heights.min()


def test_print_twice_as_large_on_a_page_twice_as_large_is_found_twice_as_high(finder):
    page, _ = letter()
    small, large = (finder.find(pixels) for pixels in (page, page.repeat_interleave(2, 0).repeat_interleave(2, 1)))
    assert float(large.lines[:, 4].median()) == pytest.approx(2 * float(small.lines[:, 4].median()), rel=0.2)


def test_lines_of_a_scene_come_as_the_allocators_want_them(finder):
    page, _ = letter()
    pages = torch.stack([page, torch.full_like(page, 255)])[:, None].expand(-1, 3, -1, -1)
    first, second = finder.boxes(Scene(pages, CellTree(800, 640)))
    lines = finder.find(page).lines
    assert torch.allclose(first, torch.cat((boxes_of(lines), lines[:, 4:]), 1)) and second.shape == (0, 5)


BLANK = {
    "white": torch.full((800, 600), 255, dtype=torch.uint8),
    "black": torch.zeros(800, 600, dtype=torch.uint8),
    "one pixel": torch.zeros(1, 1, dtype=torch.uint8),
    "thin": torch.full((1, 5000), 255, dtype=torch.uint8),
    "tall": torch.full((20_000, 40), 255, dtype=torch.uint8),
    "shaded": (torch.arange(800) / 3.2)[:, None].expand(-1, 600).to(torch.uint8),
}


@pytest.mark.parametrize("name", BLANK)
def test_where_nothing_is_written_there_are_no_lines(finder, name):
    found = finder.find(BLANK[name])
    assert found.lines.shape == (0, 5) and found.scores.shape == (0,) and found.turns == 0


def test_lines_on_a_long_thin_image_are_found(finder):
    page, [box] = sheet([("A very long line of text that goes on and on", 20, 10, 20)], 60, 3000)
    around = boxes_of(finder.find(page).lines).tolist()
    assert max(shared(box, other) for other in around) > 0.5 and len(around) < 4


# -- pages that lie on their side ------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", range(4))
def test_a_turned_page_is_read_upright_and_its_boxes_lie_on_the_text_as_given(finder, turns):
    page, boxes = letter()
    expected = [turned_box(box, tuple(page.shape), turns) for box in boxes]
    reader = PageReader(told(finder, turns), load_scout(), load_recognizer())
    opened = reader.open(torch.rot90(page, -turns).expand(3, -1, -1).contiguous())
    assert opened.turns == turns and opened.scene.pixels.shape[2:] == page.shape
    assert torch.equal(opened.scene.pixels[0, 0], page)
    read = opened.read_look(400)
    assert len(read.lines) >= len(TEXTS) - 1
    for line in read.lines:
        assert max(shared(line.box, box) for box in expected) > 0.4
    told_of = read.to_dict()
    height, width = (640, 800) if turns % 2 else (800, 640)
    assert told_of["image"] == {"width": width, "height": height}
    covered = np.zeros((height, width), bool)
    for token in told_of["tokens"]:
        x0, y0, x1, y1 = token["box"]
        assert 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height
        covered[int(y0) : int(y1), int(x0) : int(x1)] = True
    assert covered.mean() == pytest.approx(float(read.glance.selection.coverage()), abs=0.01)


@pytest.mark.parametrize("turns", range(4))
def test_pages_are_turned_upright_by_the_shipped_weights(finder, turns):
    recognizer = load_recognizer()
    for file in (EXAMPLE, *sorted((Path(__file__).parent / "documents" / "images").glob("*.png"))[:2]):
        page = torch.rot90(grey(image.load(file)[None])[0], -turns).contiguous()
        found = find_upright(finder, recognizer, page)
        assert found.turns == turns and len(found.lines) > 40


def test_a_page_without_text_is_left_as_it_lies(finder):
    noise = torch.randint(0, 256, (400, 600), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    for page in (torch.full((400, 600), 255, dtype=torch.uint8), noise):
        assert find_upright(finder, load_recognizer(), page).turns == 0
