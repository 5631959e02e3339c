"""Which levels chosen cells need, so that `mip` makes no others: what a strip is, and which cells lie over it."""

from __future__ import annotations

import triton
import triton.language as tl

from homunculus.kernels.warp import WARP_SIZE, load_box, load_int32, warp_fence

LEVELS_PER_LAUNCH = tl.constexpr(3)  # levels of a launch
LEVEL3_SCALE = tl.constexpr(8)  # pixels of an image along one of the third level
STRIP_COLUMNS = tl.constexpr(60)  # pixels of the third level that a warp keeps: the outer lanes are there for the inner
LANE_COLUMNS = tl.constexpr(2)  # of the third level in a lane: at the borders of an image outer ones are kept too
CELLS_PER_LANE = tl.constexpr(2)  # that a lane looks at at once: 512 of a program


@triton.jit
def load_cells(boxes, levels, mask, start, num_cells, warps: tl.constexpr):  # type: ignore[no-untyped-def]
    """Chosen cells from `start` on, CELLS_PER_LANE for each lane: box, level, whether it is valid."""
    cells: tl.tuple = ()
    for part in tl.static_range(CELLS_PER_LANE):
        k = tl.minimum(start + part * warps * WARP_SIZE + tl.arange(0, warps * WARP_SIZE), num_cells - 1)
        cells += ((load_box(boxes + 4 * k), load_int32(levels + k), tl.load(mask + k)),)
    return cells


@triton.jit
def needed_levels(  # type: ignore[no-untyped-def]
    cells, boxes, levels, mask, num_cells, strip, strips, first_row, rows_per_piece, warps: tl.constexpr
):  # fmt: skip
    """Which of the three levels chosen cells of an image need above each piece of a strip: three bits a piece.

    `cells` are the first of them, loaded before.
    """
    fractional: tl.constexpr = boxes.dtype.element_ty.is_floating() or levels.dtype.element_ty.is_floating()
    left = (STRIP_COLUMNS * strip + tl.where(strip > 0, LANE_COLUMNS, 0)) * LEVEL3_SCALE
    right = (STRIP_COLUMNS * (strip + 1) + tl.where(strip + 1 < strips, LANE_COLUMNS, 2 * LANE_COLUMNS)) * LEVEL3_SCALE
    flags = _level_flags(cells, left, right, first_row, rows_per_piece, warps, fractional)
    for start in range(CELLS_PER_LANE * warps * WARP_SIZE, num_cells, CELLS_PER_LANE * warps * WARP_SIZE):
        more = load_cells(boxes, levels, mask, start, num_cells, warps)
        warp_fence()  # all of them, before the first is looked at
        flags |= _level_flags(more, left, right, first_row, rows_per_piece, warps, fractional)
    return tl.reduce_or(flags, 0)


@triton.jit
def _level_flags(  # type: ignore[no-untyped-def]
    cells, left, right, first_row, rows_per_piece, warps: tl.constexpr, fractional: tl.constexpr
):  # fmt: skip
    """The same of the cells that each lane has."""
    flags = tl.zeros((warps * WARP_SIZE,), tl.int32)
    for part in tl.static_range(CELLS_PER_LANE):
        box, level, valid = cells[part]
        x0, y0, x1, y1 = box
        level = tl.where(valid != 0, level, 0)
        margin = (1 << tl.maximum(level, LEVELS_PER_LAUNCH)) - LEVEL3_SCALE  # what coarser ones weigh in
        margin += (4 << level) if fractional else 0  # and those between pixels
        overlaps = (x0 < right + margin) & (x1 >= left - margin) & (level > 0)
        bit = tl.where(overlaps, 1 << (tl.minimum(level, LEVELS_PER_LAUNCH) - 1), 0)
        for i in tl.static_range(warps):
            row = first_row + i * rows_per_piece
            top, bottom = row * LEVEL3_SCALE, (row + rows_per_piece) * LEVEL3_SCALE
            flags |= tl.where((y0 < bottom + margin) & (y1 >= top - margin), bit << (LEVELS_PER_LAUNCH * i), 0)
    return flags
