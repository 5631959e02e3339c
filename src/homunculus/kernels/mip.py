"""Levels of 8-bit images at memory speed: the Triton twin of `pyramid.gaussian` with its usual weights.

One launch makes three levels. A warp goes down a strip of an image: a lane takes sixteen pixels of each row, keeps
eight of the first level, four of the second and two of the third, and asks the lanes beside it for the pixels between
them. So an image is read once and nothing is read back. A program is one warp, or several on pieces of a strip, one
above the other, that share what they have to know of chosen cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from homunculus.kernels.lanes import LANES, asked, bordered, ended, ends_of, halved, keep, pitch_of, row_of, settled
from homunculus.kernels.wanted import COLUMNS, DEEP, OUTER, cells_of, wanted

AHEAD, AHEAD_RAW = 8, 4  # rows that are on their way while others are weighed
DOWN = 16  # rows of the third level that one makes where there are many times more of them than run at once
LEAST = 2  # and where there are few: each reads 14 rows of an image beside the 8 of every one of these
STACK = 8  # pieces of a program, if cells are given
EARLY = True  # whether kernels begin while those before them end: they wait before they read
WARPS = 16  # that a multiprocessor has registers for
FIELDS = tl.constexpr(6)  # of an image in the table: height, width, pitch, its place, its levels, its programs

# ---- the kernels --------------------------------------------------------------------------------------------------


NUMBERS = ["h", "w", "pitch", "source", "whole", "begin", "total", "images", "planes", "down", "many"]


@triton.jit(do_not_specialize=NUMBERS)  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x, out, floats, table, h, w, pitch, source: tl.int64, whole: tl.int64, begin: tl.int64, total: tl.int64,
    boxes, levels, mask, images, planes, down, many,
    listed: tl.constexpr, room: tl.constexpr, odd: tl.constexpr, raw: tl.constexpr, wide: tl.constexpr,
    some: tl.constexpr, ahead: tl.constexpr, stack: tl.constexpr, early: tl.constexpr, soon: tl.constexpr,
):  # fmt: skip
    """A warp makes COLUMNS x `down` pixels of the third level of a plane, and the other two levels above them."""
    spot = tl.program_id(0)
    if early and soon:  # what comes next may stand ready
        tl.extra.cuda.gdc_launch_dependents()
    if early and (listed or some):  # what comes after those that know cells may read them at once
        tl.extra.cuda.gdc_wait()
    if listed:
        h, w, pitch, source, begin, spot = _entry(table, images, spot, room)
    h1, w1, h2, w2, h3, w3 = _sizes(h, w)
    strips, below = tl.cdiv(tl.maximum(w3 - 2 * OUTER, 1), COLUMNS), tl.cdiv(tl.cdiv(h3, down), stack)
    plane, piece, strip = spot // strips // below, spot // strips % below * stack, spot % strips
    if not listed:  # images are equal
        b = plane // planes
        plane -= b * planes
        source += b.to(tl.int64) * whole
        begin += b.to(tl.int64) * total
    plane, highest = plane.to(tl.int64), piece * down

    warp, lane = tl.arange(0, stack * LANES) // LANES, tl.arange(0, stack * LANES) % LANES
    up, rows3, top = _piece(piece, highest, warp, down, h, h3)
    q, at, ours, borders = _lanes(strip, lane, w, w1, w2)
    start = tl.maximum(8 * top - 7, 0)  # the first row that it needs
    x += source + _row(plane, h, start, up) * pitch + 16 * (tl.zeros_like(at) if raw else at)
    place = plane, planes.to(tl.int64), top, rows3, up, q, ours
    written = _levels(out, floats, begin, (h1, w1, h2, w2, h3, w3), place, wide)

    y, bottom = 8 * top - 9 - start, tl.minimum(h - 1, 8 * (top + rows3) + 6) - start
    image = x, bottom, w, tl.where(up, -pitch, pitch), at
    if early and not (listed or some):
        tl.extra.cuda.gdc_wait()
    if some:  # asked for before the first rows, and looked at while others are on their way
        skip = b.to(tl.int64) * many  # those of images before
        boxes, levels, mask = boxes + 4 * skip, levels + skip, mask + skip
        cells = cells_of(boxes, levels, mask, 0, many, stack)
    rows: tl.tuple = ()
    for i in tl.static_range(ahead):
        rows += (row_of(image, y + i, raw),)
    heights, y, none = (top, h1, h2), y + 16 + ahead, (tl.zeros_like(at).to(tl.uint32),)
    before = none * 2, none, none * 8, none * 4, none * 2
    if some:
        asked()
        rows, before = _step(-2, rows, before, image, y, written, borders, heights, raw, odd, wide, True)
        flags = wanted(cells, boxes, levels, mask, many, strip, strips, highest, down, stack)
        if flags == 0:
            return
        written = _only(written, flags >> (warp * DEEP))
    for t in range(-1 if some else -2, down):
        rows, before = _step(t, rows, before, image, y, written, borders, heights, raw, odd, wide, False)
    if early and not soon:  # where some are done long before others, all of those that come would be put there
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def _step(  # type: ignore[no-untyped-def]
    t, rows, before, image, y, levels, borders, heights,
    raw: tl.constexpr, odd: tl.constexpr, wide: tl.constexpr, quiet: tl.constexpr,
):  # fmt: skip
    """Row t of the third level from `top`, 2t + 1 and 2t + 2 of the second, and so on; `quiet` if they lie above it.

    Rows that are on their way are followed by those from `y` on; `before` is what rows before left behind: themselves,
    and what they have added to those that come.
    """
    one, two, three, again = levels
    left, right, ends, ends1, ends2 = borders
    top, h1, h2 = heights
    here1, here2, above, above1, above2 = before
    second: tl.tuple = ()
    for half in tl.static_range(2):
        first: tl.tuple = ()
        for i in tl.static_range(2 * half, 2 * half + 2):
            row, next = rows[0], rows[1]
            if raw:
                row, next = settled(row), settled(next)
            if odd:
                row, next = ended(row, ends), ended(next, ends)
            words, above = halved(row, next, above, left, right)
            at = y + 8 * t + 2 * i
            more = row_of(image, at, raw), row_of(image, at + 1, raw)
            rows = rows[2:] + more
            if not quiet:
                keep(one, 4 * t + 3 + i, words, 8)
            first += (ended(words, ends1) if odd else words,)
        row, here1 = bordered(here1, first[0], first[1], 4 * (top + t) + 3 + 2 * half, h1)
        words, above1 = halved(row, here1, above1, left, right)
        if not quiet:
            keep(two, 2 * t + 1 + half, words, 4)
        second += (ended(words, ends2) if odd else words,)
    row, here2 = bordered(here2, second[0], second[1], 2 * (top + t) + 1, h2)
    words, above2 = halved(row, here2, above2, left, right)
    if not quiet:
        keep(three, t, words, 2)
        if wide:
            keep(again, t, words, 2)
    return rows, (here1, here2, above, above1, above2)


@triton.jit
def _sizes(h, w):  # type: ignore[no-untyped-def]
    """Of the three levels."""
    h1, w1 = (h + 1) // 2, (w + 1) // 2
    h2, w2 = (h1 + 1) // 2, (w1 + 1) // 2
    return h1, w1, h2, w2, (h2 + 1) // 2, (w2 + 1) // 2


@triton.jit
def _piece(piece, highest, warp, down, h, h3):  # type: ignore[no-untyped-def]
    """Whether the piece of a warp is made upwards, how many rows of the third level it has, and how many lie above it.

    Every other one is, where levels are the same then: neighbours read what both need at one time.
    """
    over, up = highest + warp * down, ((piece + warp) % 2 > 0) & (h % 8 == 0)
    rows, over = tl.maximum(tl.minimum(down, h3 - over), 0), tl.minimum(over, h3 - 1)
    return up, rows, tl.where(up, h3 - over - rows, over)


@triton.jit
def _lanes(strip, lane, w, w1, w2):  # type: ignore[no-untyped-def]
    """Which sixteen pixels of a row are a lane's, which it reads, whether it writes, what it does where rows end."""
    q, end = strip * (COLUMNS // OUTER) + lane, (w - 1) // 16  # strips begin where sectors of 32 bytes do
    left = tl.where(q == 0, 0x7676, 0x7610).to(tl.uint32)  # at a border its own column stands beside it
    right = tl.where(q == end, 0x1010, 0x7610).to(tl.uint32)
    ends, ends1, ends2 = ends_of(w - 1 - 16 * q, 4), ends_of(w1 - 1 - 8 * q, 2), ends_of(w2 - 1 - 4 * q, 1)
    ours = ((lane > 0) | (q == 0)) & ((lane < LANES - 1) | (q == end))
    return q, tl.minimum(q, end), ours, (left, right, ends, ends1, ends2)


@triton.jit
def _entry(table, images, spot, room: tl.constexpr):  # type: ignore[no-untyped-def]
    """What the table says of the image of a program, and which of the image's programs it is."""
    entry = tl.arange(0, room)
    starts = tl.load(table + entry * FIELDS + 5, mask=entry < images, other=1 << 62)
    table += (tl.sum((starts <= spot).to(tl.int32), 0) - 1) * FIELDS
    h, w, pitch = tl.load(table).to(tl.int32), tl.load(table + 1).to(tl.int32), tl.load(table + 2).to(tl.int32)
    return h, w, pitch, tl.load(table + 3), tl.load(table + 4), spot - tl.load(table + 5).to(tl.int32)


@triton.jit
def _levels(out, floats, begin, sizes, place, wide: tl.constexpr):  # type: ignore[no-untyped-def]
    """For `keep`; the third is written in 8 bits whatever comes out, for the next launch."""
    h1, w1, h2, w2, h3, w3 = sizes
    one, begin = _level(floats if wide else out, begin, h1, w1, place, 8)
    two, begin = _level(floats if wide else out, begin, h2, w2, place, 4)
    return one, two, _level(out, begin, h3, w3, place, 2)[0], _level(floats, begin, h3, w3, place, 2)[0]


@triton.jit
def _level(to, begin, h, w, place, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """A level for `keep`, of which lanes write `count` pixels each, and where the next one begins."""
    plane, planes, top, rows, up, q, ours = place
    pitch, first, rows = pitch_of(w), count // 2 * top, count // 2 * rows
    to += begin + _row(plane, h, first, up) * pitch + count * q
    level = to, tl.where(up, -pitch, pitch), ours & (count * q < w), tl.minimum(rows, h - first)
    return level, begin + planes * h * pitch


@triton.jit
def _only(levels, flags):  # type: ignore[no-untyped-def]
    """Levels that are written only where they are wanted."""
    one, two, three, again = levels
    return _if(one, flags & 1), _if(two, flags & 2), _if(three, flags & 4), _if(again, flags & 4)


@triton.jit
def _if(level, flag):  # type: ignore[no-untyped-def]
    """A level that is written only where it is wanted."""
    to, pitch, ours, rows = level
    return to, pitch, ours & (flag != 0), rows


@triton.jit
def _row(plane, h, row, up):  # type: ignore[no-untyped-def]
    """Rows before this one of a plane, whether they are counted from its top or upwards from its bottom."""
    return plane * h + tl.where(up, h - 1 - row, row)


# ---- where levels lie ---------------------------------------------------------------------------------------------


class LevelPlace(NamedTuple):
    """A level: its size, bytes from row to row, and where it begins among the levels of its image."""

    height: int
    width: int
    pitch: int
    start: int


def places(height: int, width: int, planes: int, count: int) -> tuple[list[LevelPlace], int]:
    """Levels 1 and up, filled up to whole launches, and how many bytes an image has of all of them."""
    found, start = [], 0
    for _ in range(-(-count // DEEP.value) * DEEP.value):
        height, width = -(-height // 2), -(-width // 2)
        pitch = -(-width // 16) * 16
        found.append(LevelPlace(height, width, pitch, start))
        start += planes * height * pitch
    return found, start


class Chosen(NamedTuple):
    """Cells whose levels alone are wanted: boxes [B, K, 4], levels [B, K] and mask [B, K] of a `Selection`."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor


class Launch(NamedTuple):
    """The images, how many programs there are, of how many pieces, and how many rows of the third level a piece has.

    Equal images are told by height, width and pitch, where the first begins and how far the next is, and the same of
    their levels; others by a table. `odd` where rows of an image end within the sixteen pixels of a lane.
    """

    images: tuple[int, ...] | Tensor
    programs: int
    stack: int
    down: int
    odd: bool


def _strips(third: LevelPlace) -> int:
    """Side by side, of this level and the two before it."""
    return triton.cdiv(max(third.width - 2 * OUTER.value, 1), COLUMNS.value)


def _tiles(third: LevelPlace, down: int, stack: int) -> int:
    """Programs that make a level of a plane and the two before it."""
    return _strips(third) * triton.cdiv(triton.cdiv(third.height, down), stack)


def _down(thirds: Sequence[LevelPlace], planes: int, stack: int, device: torch.device) -> int:
    """How many rows of these levels a piece has: so many that all run at once, unless there is far more to do."""
    several = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 0
    slots, tallest = WARPS * several or 8, max(third.height for third in thirds)
    pieces = slots // stack // (planes * sum(_strips(third) for third in thirds)) * stack
    return max(triton.cdiv(tallest, min(tallest, pieces)), LEAST) if pieces > 3 else min(tallest, DOWN)


@cache
def _launches(images: int, planes: int, height: int, width: int, count: int, stack: int, device: Any) -> list[Launch]:
    """What it takes for equal images."""
    level, total = places(height, width, planes, count)
    found = []
    for first in range(0, len(level), DEEP.value):
        source = level[first - 1] if first else LevelPlace(height, width, width, 0)
        whole, third = total if first else planes * height * width, level[first + 2]
        down = _down([third] * images, planes, stack, device)
        programs = images * planes * _tiles(third, down, stack)
        each = *source, whole, level[first].start, total
        found.append(Launch(each, programs, stack, down, source.width % 16 > 0))
        stack = 1  # cells are looked at in the first
    return found


# ---- calls --------------------------------------------------------------------------------------------------------


def build(x: Tensor, count: int, dtype: torch.dtype = torch.uint8, chosen: Chosen | None = None) -> list[Tensor]:
    """`count` levels of uint8 [..., H, W] below the image itself: [..., h, w] each, in rows of whole sixteens.

    Floats have the values of the 8-bit levels. With `chosen`, for [B, C, H, W], only what those cells need is made: the
    rest of the levels is left as the memory was.
    """
    x = _aligned(x)
    *outer, height, width = x.shape
    planes = outer[-1] if outer else 1
    images = x.numel() // max(1, planes * height * width)
    level, total = places(height, width, planes, count)
    out = torch.empty(images, total, dtype=torch.uint8, device=x.device)
    wide = torch.empty_like(out, dtype=dtype) if dtype != torch.uint8 else out
    if x.numel() and count:
        launches = _launches(images, planes, height, width, count, STACK if chosen else 1, x.device)
        _launch(x, out, wide, launches, images, planes, chosen)
    return [_view(wide, place, outer) for place in level[:count]]


def made(levels: Sequence[Tensor]) -> bool:
    """Whether these are an image [B, C, H, W] in one piece and the levels that `build` made of it."""
    images, planes, height, width = levels[0].shape
    place, total = places(height, width, planes, len(levels) - 1)
    first = levels[1] if total else levels[0]
    there = first.untyped_storage().nbytes() // first.element_size() - int(first.storage_offset())
    return (
        levels[0].is_contiguous()
        and there >= images * total
        and all(
            level.shape[2:] == (h, w)
            and level.stride()[images == 1 :] == (total, h * pitch, pitch, 1)[images == 1 :]
            and level.data_ptr() == first.data_ptr() + start
            for level, (h, w, pitch, start) in zip(levels[1:], place, strict=False)
        )
    )


def rest_of(levels: Sequence[Tensor]) -> Tensor:
    """The memory [B, bytes] of levels that were `made` so."""
    images, planes, height, width = levels[0].shape
    total = places(height, width, planes, len(levels) - 1)[1]
    return (levels[1] if total else levels[0]).as_strided((images, total), (total, 1))


def halve(x: Tensor) -> Tensor:
    """uint8 [..., H, W] -> [..., ceil(H/2), ceil(W/2)], weighed (1, 3, 3, 1) / 8 each way and rounded half up."""
    return build(x, 1)[0]


def build_each(images: Sequence[Tensor], counts: Sequence[int]) -> list[list[Tensor]]:
    """`build` for images [C, H, W] of different sizes in the same few launches."""
    images = [_aligned(image) for image in images]
    planes, device, most = len(images[0]), images[0].device, max(counts)
    level = [places(image.shape[1], image.shape[2], planes, most) for image in images]
    starts = [0]
    for _, total in level:
        starts.append(starts[-1] + total)
    out, begin = torch.empty(starts[-1], dtype=torch.uint8, device=device), images[0].data_ptr()
    launches = []
    for first in range(0, len(level[0][0]), DEEP.value):
        rows, programs = list[list[int]](), 0
        down = _down([listed[first + 2] for listed, _ in level], planes, 1, device)
        for image, (listed, _), start in zip(images, level, starts, strict=False):
            height, width = image.shape[1:]
            raw = LevelPlace(height, width, width, image.data_ptr() - begin - start)
            source = listed[first - 1] if first else raw
            rows.append([*source[:3], source.start + start, listed[first].start + start, programs])
            programs += planes * _tiles(listed[first + 2], down, 1)
        odd = any(width % 16 for _, width, *_ in rows)
        launches.append(Launch(torch.tensor(rows, device=device), programs, 1, down, odd))
    if out.numel():
        _launch(images[0], out, out, launches, len(images), planes)
    parts = zip(images, level, starts, counts, strict=False)
    return [
        [_view(out[None, start:], place, image.shape[:1]) for place in listed[:count]]
        for image, (listed, _), start, count in parts
    ]


def _launch(
    x: Tensor,
    out: Tensor,
    wide: Tensor,
    launches: Sequence[Launch],
    images: int,
    planes: int,
    chosen: Chosen | None = None,
) -> None:
    boxes, levels, mask = chosen or (out, out, out)
    if chosen:
        boxes = boxes.double() if boxes.is_floating_point() else boxes.long()
        boxes, levels, mask = _aligned(boxes), _aligned(levels), _aligned(mask)
    with torch.cuda.device_of(x):
        for n, (each, programs, stack, down, odd) in enumerate(launches):
            raw, listed = odd and not n, isinstance(each, Tensor)
            table, *given = (each, *(0,) * 7) if listed else (out, *each)
            room = max(LANES.value, triton.next_power_of_2(images)) if listed else 0
            _kernel[(programs,)](
                out if n else x, out, wide, table, *given, boxes, levels, mask, images, planes, down, mask.shape[-1],
                listed=listed, room=room, odd=odd, raw=raw, wide=wide is not out, some=chosen is not None and not n,
                soon=n > 0, stack=stack, ahead=AHEAD_RAW if raw else AHEAD, num_warps=stack, **overlap(x.device),
            )  # fmt: skip


def overlap(device: torch.device) -> dict[str, bool]:
    """How to launch a kernel that may begin before the one before it has ended, where that is wanted and can be."""
    early = EARLY and device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
    return {"early": True, "launch_pdl": True} if early else {"early": False}


def _aligned(x: Tensor) -> Tensor:
    """In one piece that begins where a lane may read sixteen bytes."""
    x = x.contiguous()
    return x.clone() if x.data_ptr() % 16 else x


def _view(out: Tensor, place: LevelPlace, outer: Sequence[int]) -> Tensor:
    """A level among those of its images, [..., h, w]."""
    height, width, pitch, start = place
    shape = [len(out), outer[-1] if outer else 1, height, width]
    level = out.as_strided(shape, [out.stride(0), height * pitch, pitch, 1], out.storage_offset() + start)
    return level.unflatten(0, list(outer[:-1])) if len(outer) > 1 else level[0] if outer else level[0, 0]
