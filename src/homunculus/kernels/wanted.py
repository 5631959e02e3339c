"""Which levels chosen cells want, so that `mip` makes no others: what a strip is, and which cells lie over it."""

from __future__ import annotations

import triton
import triton.language as tl

from homunculus.kernels.lanes import LANES, asked, box_of, number_of

DEEP = tl.constexpr(3)  # levels of a launch
UNIT = tl.constexpr(8)  # pixels of an image along one of the third level
COLUMNS = tl.constexpr(60)  # pixels of the third level that a warp keeps: the outer lanes are there for the inner
OUTER = tl.constexpr(2)  # of the third level in a lane: at the borders of an image outer ones are kept too
CELLS = tl.constexpr(2)  # that a lane looks at at once: 512 of a stack


@triton.jit
def cells_of(boxes, levels, mask, start, many, stack: tl.constexpr):  # type: ignore[no-untyped-def]
    """Chosen cells from `start` on, CELLS for each lane: box, level, whether it is there."""
    cells: tl.tuple = ()
    for part in tl.static_range(CELLS):
        k = tl.minimum(start + part * stack * LANES + tl.arange(0, stack * LANES), many - 1)
        cells += ((box_of(boxes + 4 * k), number_of(levels + k), tl.load(mask + k)),)
    return cells


@triton.jit
def wanted(cells, boxes, levels, mask, many, strip, strips, highest, down, stack: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which of the three levels chosen cells of an image want above each piece of a strip: three bits a piece.

    `cells` are the first of them, asked for before.
    """
    between: tl.constexpr = boxes.dtype.element_ty.is_floating() or levels.dtype.element_ty.is_floating()
    left = (COLUMNS * strip + tl.where(strip > 0, OUTER, 0)) * UNIT
    right = (COLUMNS * (strip + 1) + tl.where(strip + 1 < strips, OUTER, 2 * OUTER)) * UNIT
    flags = _flags(cells, left, right, highest, down, stack, between)
    for start in range(CELLS * stack * LANES, many, CELLS * stack * LANES):
        more = cells_of(boxes, levels, mask, start, many, stack)
        asked()  # all of them, before the first is looked at
        flags |= _flags(more, left, right, highest, down, stack, between)
    return tl.reduce_or(flags, 0)


@triton.jit
def _flags(cells, left, right, highest, down, stack: tl.constexpr, between: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same of the cells that each lane has."""
    flags = tl.zeros((stack * LANES,), tl.int32)
    for part in tl.static_range(CELLS):
        box, level, there = cells[part]
        x0, y0, x1, y1 = box
        level = tl.where(there != 0, level, 0)
        around = (1 << tl.maximum(level, DEEP)) - UNIT  # what coarser ones weigh in
        around += (4 << level) if between else 0  # and those between pixels
        met = (x0 < right + around) & (x1 >= left - around) & (level > 0)
        bit = tl.where(met, 1 << (tl.minimum(level, DEEP) - 1), 0)
        for i in tl.static_range(stack):
            top, bottom = (highest + i * down) * UNIT, (highest + i * down + down) * UNIT
            flags |= tl.where((y0 < bottom + around) & (y1 >= top - around), bit << (DEEP * i), 0)
    return flags
