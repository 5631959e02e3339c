"""Drawing glyphs in one launch: the Triton twin of `draw.stamp`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 512


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    canvas, glyphs, texels, starts, H, W, em: tl.constexpr, origin: tl.constexpr, baseline: tl.constexpr,
    left: tl.constexpr, above: tl.constexpr, wide: tl.constexpr, tall: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """One program draws one glyph, `block` pixels of its window at a time."""
    row = glyphs + tl.program_id(0) * 7
    page = tl.load(row).to(tl.int64)
    code = tl.load(row + 1).to(tl.int64)
    font = tl.load(row + 2).to(tl.int64)
    x, y, size, strength = tl.load(row + 3), tl.load(row + 4), tl.load(row + 5), tl.load(row + 6)
    mip = tl.minimum(tl.maximum(tl.floor(tl.log2(em / size * 1.2)), 0.0), 2.0)
    shrink = tl.exp2(mip)
    side = (64 / shrink).to(tl.int32)
    scale = em / shrink / size
    tile = tl.load(starts + mip.to(tl.int32)) + (font * 94 + code) * side * side
    x0, y0 = tl.floor(x - left * size), tl.floor(y - above * size)
    columns, rows = (wide * size).to(tl.int32) + 2, (tall * size).to(tl.int32) + 2
    for first in range(0, columns * rows, block):
        index = first + tl.arange(0, block)
        px, py = x0 + (index % columns).to(tl.float32), y0 + (index // columns).to(tl.float32)
        u = (px + 0.5 - x) * scale + origin / shrink - 0.5
        v = (py + 0.5 - y) * scale + baseline / shrink - 0.5
        u0, v0 = tl.floor(u), tl.floor(v)
        du, dv = u - u0, v - v0
        value = tl.zeros((block,), tl.float32)
        for i in tl.static_range(2):
            for j in tl.static_range(2):
                cu, cv = u0.to(tl.int32) + i, v0.to(tl.int32) + j
                inside = (cu >= 0) & (cu < side) & (cv >= 0) & (cv < side)
                texel = tl.load(texels + tile + cv * side + cu, mask=inside, other=0).to(tl.float32)
                value += texel * (du if i else 1 - du) * (dv if j else 1 - dv)
        mask = (index < columns * rows) & (px >= 0) & (px < W) & (py >= 0) & (py < H) & (value > 0)
        pixel = (page * H + py.to(tl.int64)) * W + px.to(tl.int64)
        tl.atomic_add(canvas + pixel, value * strength / 255, mask=mask)


def stamp(canvas: Tensor, glyphs: Tensor, texels: Tensor, starts: Tensor, H: int, W: int, **shape: float) -> None:
    """Draw all glyphs [G, 7] onto the flat canvas; `shape` holds the measures of tiles and windows."""
    if len(glyphs):
        with torch.cuda.device(canvas.device) if canvas.is_cuda else torch.no_grad():
            _kernel[(len(glyphs),)](canvas, glyphs.contiguous(), texels, starts, H, W, **shape, block=BLOCK)
