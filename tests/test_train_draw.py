"""Glyphs, fills and strokes are drawn where they are told to be, to the pixel."""

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from homunculus.train.synth import rasterize as drawing
from homunculus.train.synth.atlas import BASELINE, EM, ORIGIN
from training import font, glyph, middle_of


@pytest.mark.parametrize("size", [9.0, 14.5, 24.0, 40.0, 80.0])
def test_a_glyph_lands_where_its_pen_is_at_any_size(size):
    atlas, glyphs = font()
    for char in "gWi,":
        x, y = 60.3, 110.7
        found = drawing.ink(torch.tensor([glyph(char, x, y, size)]), glyphs, (1, 160, 200))[0]
        tile = atlas.glyphs[0, ord(char) - 33].float() / 255
        u, v = middle_of(tile)
        expected = x + (u - ORIGIN) * size / EM, y + (v - BASELINE) * size / EM
        assert middle_of(found) == pytest.approx(expected, abs=1)
        assert float(found.sum()) == pytest.approx(float(tile.sum()) * (size / EM) ** 2, rel=0.1)


def test_light_ink_is_negative_pages_are_apart_and_ink_adds_up_to_1():
    _, glyphs = font()
    rows = [glyph("A", 20, 50, 30, 0.8), glyph("A", 20, 50, 30, -0.5, page=1), *[glyph("A", 20, 50, 30, page=2)] * 3]
    dark, light, much, none = drawing.ink(torch.tensor(rows), glyphs, (4, 64, 64))
    torch.testing.assert_close(light, dark * -0.625)
    assert dark.min() >= 0 and 0.7 < dark.max() <= 0.8 and much.max() == 1 and not none.any()
    assert not drawing.ink(torch.zeros(0, 7), glyphs, (1, 8, 8)).any()


def test_glyphs_that_leave_the_page_are_cut_off():
    _, glyphs = font()
    whole = drawing.ink(torch.tensor([glyph("M", 40, 60, 40)]), glyphs, (1, 100, 100))[0]
    for dx, dy in ((-50, 0), (40, 0), (0, -50), (0, 55), (-500, 0)):
        part = drawing.ink(torch.tensor([glyph("M", 40 + dx, 60 + dy, 40)]), glyphs, (1, 100, 100))[0]
        expected = F.pad(whole, (100, 100, 100, 100)).roll((dy, dx), (0, 1))[100:200, 100:200]
        torch.testing.assert_close(part, expected if abs(dx) < 100 else torch.zeros(100, 100), rtol=0, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_fills_are_exact_to_the_pixel(channels):
    rng = np.random.default_rng(0)
    low = rng.uniform(-10, 50, (20, 2))
    boxes = np.concatenate(
        (rng.integers(0, 2, (20, 1)), low, low + rng.uniform(0, 25, (20, 2)), rng.uniform(0, 0.4, (20, 2))), 1
    ).astype(np.float32)
    boxes[::2, 6] = 0
    expected = np.zeros((2, channels, 40, 60))
    for page, x0, y0, x1, y1, dark, tint in boxes:
        hue = 0.5 + 0.5 * np.cos(2 * np.pi * (tint + np.arange(3) / 3)) if tint > 0 else np.ones(3)
        hue = hue.mean(keepdims=True) if channels == 1 else hue
        for y in range(max(0, int(np.rint(y0))), min(40, int(np.rint(y1)))):
            for x in range(max(0, int(np.rint(x0))), min(60, int(np.rint(x1)))):
                expected[int(page), :, y, x] += dark * hue
    found = drawing.fills(torch.from_numpy(boxes), (2, 40, 60), channels)
    np.testing.assert_allclose(found.numpy(), expected.clip(0, 1), atol=1e-4)


@pytest.mark.parametrize("end", [(100, 20), (100, 90), (20, 95)])
@pytest.mark.parametrize("width", [1.0, 2.5])
def test_strokes_cover_their_ends_and_nothing_beyond(end, width):
    start = np.array([20, 20])
    way = (np.array(end) - start) / np.linalg.norm(np.array(end) - start)
    found = drawing.strokes(torch.tensor([[1, *start, *end, width, 0.9]], dtype=torch.float32), (2, 110, 120))
    assert not found[0].any()

    def most(point: np.ndarray) -> float:
        x, y = np.rint(point).astype(int)
        return float(found[1, y - 1 : y + 1, x - 1 : x + 1].max())

    assert most((start + end) / 2) > 0.4 and most(start) > 0.2 and most(np.array(end)) > 0.2
    assert most(start - 5 * way) == 0 and most(end + 5 * way) == 0
    across = np.array([-way[1], way[0]])
    assert most((start + end) / 2 + 5 * across) == 0


@pytest.mark.parametrize("device", ["cpu"])
def test_the_triton_kernel_draws_what_torch_draws(device, kernels):
    from homunculus.kernels.glyphs import stamp

    if "TRITON_INTERPRET" not in os.environ:
        pytest.skip("on a GPU pages are drawn by the kernel in other tests")
    _, glyphs = font()
    lots, n = torch.Generator().manual_seed(0), 12
    parts = torch.arange(n) % 2, torch.randint(0, 94, (n,), generator=lots), torch.zeros(n)
    places = torch.rand(n, generator=lots) * 100 - 5, torch.rand(n, generator=lots) * 80 + 10
    sizes = torch.tensor([9.0, 13, 16, 24, 33, 60]).repeat(2)
    rows = torch.stack((*parts, *places, sizes, torch.rand(n, generator=lots) * 2 - 1), 1)
    slow, fast = torch.zeros(2 * 96 * 100), torch.zeros(2 * 96 * 100)
    drawing.stamp(slow, rows, glyphs.texels, glyphs.starts, 96, 100)
    stamp(fast, rows, glyphs.texels, glyphs.starts, 96, 100, **drawing.SHAPE)
    assert slow.abs().max() > 0.3
    torch.testing.assert_close(fast, slow, rtol=0, atol=2e-3)


def test_a_stroke_on_the_last_page_of_a_large_batch_lies_where_it_should():
    size = (24, 1024, 1024)  # more pixels than float32 can count one by one
    drawn = drawing.strokes(torch.tensor([[23.0, 101, 501, 141, 541, 2, 1]]), size)
    rows, columns = drawn[23].nonzero().unbind(1)
    assert drawn[:23].sum() == 0 and drawn[23, 520, 120] > 0
    assert (rows - columns - 400).abs().max() <= 3
