"""The kernel of `mip`: three levels of an image in one launch.

A warp goes down a strip of an image: a lane takes sixteen pixels of each row, keeps eight of the first level, four of
the second and two of the third, and takes the pixels between them from the lanes beside it. So an image is read once
and nothing is read back. A program is one warp, or several on pieces of a strip, one above the other, that share what
they have to know of chosen cells.
"""

from __future__ import annotations

import triton
import triton.language as tl

from homunculus.kernels.needed_levels import LANE_COLUMNS, LEVELS_PER_LAUNCH, STRIP_COLUMNS, load_cells, needed_levels
from homunculus.kernels.warp import (
    WARP_SIZE,
    align_row,
    clamp_columns,
    clamp_rows,
    downsample,
    edge_selectors,
    load_row,
    pitch_of,
    store_row,
    warp_fence,
)

TABLE_FIELDS = tl.constexpr(6)  # of an image in the table: height, width, pitch, its place, its levels, its programs

UNSPECIALIZED = [
    "h", "w", "pitch", "source_start", "source_stride", "out_start", "out_stride", "images", "planes", "rows_per_piece",
    "num_cells",
]  # fmt: skip


@triton.jit(do_not_specialize=UNSPECIALIZED)  # type: ignore[untyped-decorator]
def kernel(  # type: ignore[no-untyped-def]
    x, out, floats, table, h, w, pitch,
    source_start: tl.int64, source_stride: tl.int64, out_start: tl.int64, out_stride: tl.int64,
    boxes, levels, mask, images, planes, rows_per_piece, num_cells,
    from_table: tl.constexpr, table_block: tl.constexpr, partial_lanes: tl.constexpr, unaligned: tl.constexpr,
    to_float: tl.constexpr, only_needed: tl.constexpr, prefetch: tl.constexpr, warps: tl.constexpr, pdl: tl.constexpr,
    release_early: tl.constexpr,
):  # fmt: skip
    """A warp makes STRIP_COLUMNS x `rows_per_piece` pixels of a plane's third level, and the two levels above them."""
    pid = tl.program_id(0)
    if pdl and release_early:  # what comes next may stand ready
        tl.extra.cuda.gdc_launch_dependents()
    if pdl and (from_table or only_needed):  # what comes after those that know cells may read them at once
        tl.extra.cuda.gdc_wait()
    if from_table:
        h, w, pitch, source_start, out_start, pid = _table_entry(table, images, pid, table_block)
    h1, w1, h2, w2, h3, w3 = _level_sizes(h, w)
    strips = tl.cdiv(tl.maximum(w3 - 2 * LANE_COLUMNS, 1), STRIP_COLUMNS)
    programs_down = tl.cdiv(tl.cdiv(h3, rows_per_piece), warps)
    plane, piece, strip = pid // strips // programs_down, pid // strips % programs_down * warps, pid % strips
    if not from_table:  # images are equal
        b = plane // planes
        plane -= b * planes
        source_start += b.to(tl.int64) * source_stride
        out_start += b.to(tl.int64) * out_stride
    plane, first_row = plane.to(tl.int64), piece * rows_per_piece

    warp, lane = tl.arange(0, warps * WARP_SIZE) // WARP_SIZE, tl.arange(0, warps * WARP_SIZE) % WARP_SIZE
    upwards, rows3, top = _piece_rows(piece, first_row, warp, rows_per_piece, h, h3)
    group, read_group, writes, borders = _lane_layout(strip, lane, w, w1, w2)
    start = tl.maximum(8 * top - 7, 0)  # the first row that it needs
    x += source_start + _row_index(plane, h, start, upwards) * pitch
    x += 16 * (tl.zeros_like(read_group) if unaligned else read_group)
    place = plane, planes.to(tl.int64), top, rows3, upwards, group, writes
    written = _output_levels(out, floats, out_start, (h1, w1, h2, w2, h3, w3), place, to_float)

    y, bottom = 8 * top - 9 - start, tl.minimum(h - 1, 8 * (top + rows3) + 6) - start
    image = x, bottom, w, tl.where(upwards, -pitch, pitch), read_group
    if pdl and not (from_table or only_needed):
        tl.extra.cuda.gdc_wait()
    if only_needed:  # loaded before the first rows, and looked at while others are on their way
        skip = b.to(tl.int64) * num_cells  # those of images before
        boxes, levels, mask = boxes + 4 * skip, levels + skip, mask + skip
        cells = load_cells(boxes, levels, mask, 0, num_cells, warps)
    rows: tl.tuple = ()
    for i in tl.static_range(prefetch):
        rows += (load_row(image, y + i, unaligned),)
    heights, y, none = (top, h1, h2), y + 16 + prefetch, (tl.zeros_like(read_group).to(tl.uint32),)
    before = none * 2, none, none * 8, none * 4, none * 2
    if only_needed:
        warp_fence()
        rows, before = _step(
            -2, rows, before, image, y, written, borders, heights, unaligned, partial_lanes, to_float, True
        )
        flags = needed_levels(cells, boxes, levels, mask, num_cells, strip, strips, first_row, rows_per_piece, warps)
        if flags == 0:
            return
        written = _mask_levels(written, flags >> (warp * LEVELS_PER_LAUNCH))
    for t in range(-1 if only_needed else -2, rows_per_piece):
        rows, before = _step(
            t, rows, before, image, y, written, borders, heights, unaligned, partial_lanes, to_float, False
        )
    if pdl and not release_early:  # where some are done long before others, all of those that come would be put there
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def _step(  # type: ignore[no-untyped-def]
    t, rows, before, image, y, levels, borders, heights,
    unaligned: tl.constexpr, partial_lanes: tl.constexpr, to_float: tl.constexpr, warm_up: tl.constexpr,
):  # fmt: skip
    """Row t of the third level from `top`, 2t + 1 and 2t + 2 of the second, and so on; `warm_up` if they lie above it.

    Rows that are on their way are followed by those from `y` on; `before` is what rows before left behind: themselves,
    and what they have added to those that come.
    """
    one, two, three, three_float = levels
    left, right, ends, ends1, ends2 = borders
    top, h1, h2 = heights
    row1, row2, carry0, carry1, carry2 = before
    second: tl.tuple = ()
    for half in tl.static_range(2):
        first: tl.tuple = ()
        for i in tl.static_range(2 * half, 2 * half + 2):
            row, next = rows[0], rows[1]
            if unaligned:
                row, next = align_row(row), align_row(next)
            if partial_lanes:
                row, next = clamp_columns(row, ends), clamp_columns(next, ends)
            words, carry0 = downsample(row, next, carry0, left, right)
            ahead = y + 8 * t + 2 * i
            more = load_row(image, ahead, unaligned), load_row(image, ahead + 1, unaligned)
            rows = rows[2:] + more
            if not warm_up:
                store_row(one, 4 * t + 3 + i, words, 8)
            first += (clamp_columns(words, ends1) if partial_lanes else words,)
        row, row1 = clamp_rows(row1, first[0], first[1], 4 * (top + t) + 3 + 2 * half, h1)
        words, carry1 = downsample(row, row1, carry1, left, right)
        if not warm_up:
            store_row(two, 2 * t + 1 + half, words, 4)
        second += (clamp_columns(words, ends2) if partial_lanes else words,)
    row, row2 = clamp_rows(row2, second[0], second[1], 2 * (top + t) + 1, h2)
    words, carry2 = downsample(row, row2, carry2, left, right)
    if not warm_up:
        store_row(three, t, words, 2)
        if to_float:
            store_row(three_float, t, words, 2)
    return rows, (row1, row2, carry0, carry1, carry2)


@triton.jit
def _level_sizes(h, w):  # type: ignore[no-untyped-def]
    """Height and width of the three levels."""
    h1, w1 = (h + 1) // 2, (w + 1) // 2
    h2, w2 = (h1 + 1) // 2, (w1 + 1) // 2
    return h1, w1, h2, w2, (h2 + 1) // 2, (w2 + 1) // 2


@triton.jit
def _piece_rows(piece, first_row, warp, rows_per_piece, h, h3):  # type: ignore[no-untyped-def]
    """Whether the piece of a warp is made upwards, how many rows of the third level it has, and how many lie above it.

    Every other one is, where levels are the same then: neighbours read what both need at one time.
    """
    over, upwards = first_row + warp * rows_per_piece, ((piece + warp) % 2 > 0) & (h % 8 == 0)
    rows, over = tl.maximum(tl.minimum(rows_per_piece, h3 - over), 0), tl.minimum(over, h3 - 1)
    return upwards, rows, tl.where(upwards, h3 - over - rows, over)


@triton.jit
def _lane_layout(strip, lane, w, w1, w2):  # type: ignore[no-untyped-def]
    """Which sixteen pixels of a row are a lane's, which it reads, whether it writes, what it does where rows end."""
    group = strip * (STRIP_COLUMNS // LANE_COLUMNS) + lane  # strips begin where sectors of 32 bytes do
    end = (w - 1) // 16
    left = tl.where(group == 0, 0x7676, 0x7610).to(tl.uint32)  # at a border its own column stands beside it
    right = tl.where(group == end, 0x1010, 0x7610).to(tl.uint32)
    ends, ends1 = edge_selectors(w - 1 - 16 * group, 4), edge_selectors(w1 - 1 - 8 * group, 2)
    ends2 = edge_selectors(w2 - 1 - 4 * group, 1)
    writes = ((lane > 0) | (group == 0)) & ((lane < WARP_SIZE - 1) | (group == end))
    return group, tl.minimum(group, end), writes, (left, right, ends, ends1, ends2)


@triton.jit
def _table_entry(table, images, pid, table_block: tl.constexpr):  # type: ignore[no-untyped-def]
    """What the table says of the image of a program, and which of the image's programs it is."""
    entry = tl.arange(0, table_block)
    starts = tl.load(table + entry * TABLE_FIELDS + 5, mask=entry < images, other=1 << 62)
    table += (tl.sum((starts <= pid).to(tl.int32), 0) - 1) * TABLE_FIELDS
    h, w, pitch = tl.load(table).to(tl.int32), tl.load(table + 1).to(tl.int32), tl.load(table + 2).to(tl.int32)
    return h, w, pitch, tl.load(table + 3), tl.load(table + 4), pid - tl.load(table + 5).to(tl.int32)


@triton.jit
def _output_levels(out, floats, out_start, sizes, place, to_float: tl.constexpr):  # type: ignore[no-untyped-def]
    """For `store_row`; the third is written in 8 bits whatever comes out, for the next launch."""
    h1, w1, h2, w2, h3, w3 = sizes
    one, out_start = _output_level(floats if to_float else out, out_start, h1, w1, place, 8)
    two, out_start = _output_level(floats if to_float else out, out_start, h2, w2, place, 4)
    three = _output_level(out, out_start, h3, w3, place, 2)[0]
    return one, two, three, _output_level(floats, out_start, h3, w3, place, 2)[0]


@triton.jit
def _output_level(base, out_start, h, w, place, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """A level for `store_row`, of which lanes write `count` pixels each, and where the next one begins."""
    plane, planes, top, rows, upwards, group, writes = place
    pitch, first, rows = pitch_of(w), count // 2 * top, count // 2 * rows
    base += out_start + _row_index(plane, h, first, upwards) * pitch + count * group
    level = base, tl.where(upwards, -pitch, pitch), writes & (count * group < w), tl.minimum(rows, h - first)
    return level, out_start + planes * h * pitch


@triton.jit
def _mask_levels(levels, flags):  # type: ignore[no-untyped-def]
    """Levels that are written only where they are needed."""
    one, two, three, three_float = levels
    one, two = _mask_level(one, flags & 1), _mask_level(two, flags & 2)
    return one, two, _mask_level(three, flags & 4), _mask_level(three_float, flags & 4)


@triton.jit
def _mask_level(level, flag):  # type: ignore[no-untyped-def]
    """A level that is written only where it is needed."""
    base, pitch, writes, rows = level
    return base, pitch, writes & (flag != 0), rows


@triton.jit
def _row_index(plane, h, row, upwards):  # type: ignore[no-untyped-def]
    """Rows before this one of a plane, whether they are counted from its top or upwards from its bottom."""
    return plane * h + tl.where(upwards, h - 1 - row, row)
