"""The next level of 8-bit planes in one launch: the Triton twin of `pyramid.halve` with its usual weights."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, COLUMNS = 8, 128  # pixels of the next level that one program makes


@triton.jit
def _across(plane, y, h, w, column):  # type: ignore[no-untyped-def]
    """One row of a plane, y held inside of it, weighed from left to right: 8 times the mean."""
    line = plane + tl.minimum(tl.maximum(y, 0), h - 1).to(tl.int64) * w
    right = tl.minimum(2 * column + 1, w - 1)
    outer = tl.load(line + tl.maximum(2 * column - 1, 0)).to(tl.int32)
    outer += tl.load(line + tl.minimum(2 * column + 2, w - 1)).to(tl.int32)
    return outer + 3 * (tl.load(line + 2 * column).to(tl.int32) + tl.load(line + right).to(tl.int32))


@triton.jit(do_not_specialize=["h", "w"])  # type: ignore[untyped-decorator]
def _kernel(x, out, h, w, rows: tl.constexpr, columns: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program makes `rows` x `columns` pixels of a plane. Sizes are not specialised: one kernel for all images."""
    H, W = (h + 1) // 2, (w + 1) // 2
    down, across = tl.cdiv(H, rows), tl.cdiv(W, columns)
    spot = tl.program_id(0)
    first = spot // across % down * rows
    column = spot % across * columns + tl.arange(0, columns)  # lanes lie along a row, whose memory they share
    inside = column < W
    column = tl.minimum(column, W - 1)
    b = (spot // across // down).to(tl.int64)
    plane, halved = x + b * h * w, out + (b * H + first) * W + column
    above, here = _across(plane, 2 * first - 1, h, w, column), _across(plane, 2 * first, h, w, column)
    for i in tl.static_range(rows):
        y = 2 * (first + i)
        below, last = _across(plane, y + 1, h, w, column), _across(plane, y + 2, h, w, column)
        total = above + 3 * (here + below) + last  # in 64ths
        tl.store(halved + i * W, ((total + 32) >> 6).to(tl.uint8), mask=inside & (first + i < H))
        above, here = below, last


def halve(x: Tensor) -> Tensor:
    """uint8 [..., H, W] -> [..., ceil(H/2), ceil(W/2)], weighed (1, 3, 3, 1) / 8 each way and rounded half up."""
    x = x.contiguous()
    h, w = x.shape[-2:]
    H, W = -(-h // 2), -(-w // 2)
    out = x.new_empty(*x.shape[:-2], H, W)
    if out.numel():
        programs = out.numel() // (H * W) * triton.cdiv(H, ROWS) * triton.cdiv(W, COLUMNS)
        with torch.cuda.device_of(x):
            _kernel[(programs,)](x, out, h, w, rows=ROWS, columns=COLUMNS)
    return out
