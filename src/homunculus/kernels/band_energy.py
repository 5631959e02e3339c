"""Energy of a level's Laplacian band in each cell, in one launch: the Triton twin of `relevance.scene.energy`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

CELLS = (2, 4, 8, 16, 32, 64)  # sides of a cell that the kernel knows
COLUMNS = 128  # pixels of the coarser level, side by side, that one program takes; each lies under 2 x 2 of the level


@triton.jit
def _residual(fine, inside, near_row, far_row, x, far_x):  # type: ignore[no-untyped-def]
    """16 times what a channel of the level has and the doubled coarser one lacks: whole numbers, so exact."""
    up = 9 * tl.load(near_row + x).to(tl.int32) + tl.load(far_row + far_x).to(tl.int32)
    up += 3 * (tl.load(near_row + far_x).to(tl.int32) + tl.load(far_row + x).to(tl.int32))
    return (16 * tl.load(fine, mask=inside, other=0).to(tl.int32) - up).to(tl.float32)


@triton.jit(do_not_specialize=["h", "w"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    level, coarser, out, h, w, red: tl.constexpr, green: tl.constexpr, blue: tl.constexpr, cell: tl.constexpr,
    columns: tl.constexpr,
):  # fmt: skip
    """One program takes a row of cells, `columns` coarse pixels wide. Sizes are not specialised, as in `mip`."""
    half: tl.constexpr = cell // 2
    cells_per_program: tl.constexpr = columns // half  # cells next to each other
    H, W = (h + 1) // 2, (w + 1) // 2
    cells_down, programs_across = tl.cdiv(H, half), tl.cdiv(W, columns)
    pid = tl.program_id(0)
    b = (pid // programs_across // cells_down).to(tl.int64)
    top, left = pid // programs_across % cells_down * half, pid % programs_across * columns
    x = left + tl.arange(0, columns)
    near_x = tl.minimum(x, W - 1)
    squares = tl.zeros((columns,), tl.float32)
    for step in range(half):
        y = top + step
        near_y = tl.minimum(y, H - 1)
        for i in tl.static_range(2):
            far_y = tl.minimum(tl.maximum(y + (2 * i - 1), 0), H - 1)
            for j in tl.static_range(2):
                far_x = tl.minimum(tl.maximum(x + (2 * j - 1), 0), W - 1)
                inside = (2 * x + j < w) & (2 * y + i < h)
                band = tl.zeros((columns,), tl.float32)
                for c in tl.static_range(3):
                    fine, coarse = (b * 3 + c) * h + (2 * y + i), (b * 3 + c) * H  # rows, of all images and channels
                    near_row, far_row = coarser + (coarse + near_y) * W, coarser + (coarse + far_y) * W
                    residual = _residual(level + fine * w + (2 * x + j), inside, near_row, far_row, near_x, far_x)
                    band += residual * (red if c == 0 else (green if c == 1 else blue))
                squares += tl.where(inside, band * band, 0)
    total = tl.sum(tl.reshape(squares, (cells_per_program, half)), 1) / 256  # [cells_per_program]
    cell_column, cells = left // half + tl.arange(0, cells_per_program), tl.cdiv(w, cell)
    valid = cell_column < cells
    pixels = tl.minimum(h - 2 * top, cell) * tl.minimum(w - cell_column * cell, cell)  # pixels inside the image
    tl.store(out + (b * cells_down + top // half) * cells + cell_column, total / tl.where(valid, pixels, 1), mask=valid)


def energy(level: Tensor, coarser: Tensor, cell: int, luminance: tuple[float, float, float]) -> Tensor:
    """Mean square of the band in each cell: uint8 [B, 3, h, w] and the next level -> float32 [B, rows, columns]."""
    level, coarser = level.contiguous(), coarser.contiguous()
    B, _, h, w = level.shape
    out = torch.empty(B, triton.cdiv(h, cell), triton.cdiv(w, cell), dtype=torch.float32, device=level.device)
    if B:
        programs = B * out.shape[1] * triton.cdiv(coarser.shape[3], COLUMNS)
        with torch.cuda.device_of(level):
            _kernel[(programs,)](level, coarser, out, h, w, *luminance, cell=cell, columns=COLUMNS)
    return out
