"""Levels of 8-bit images at memory speed: the Triton twin of `pyramid.gaussian` with its usual weights.

One launch makes three levels. A program is one warp that goes down a strip of an image: a lane takes eight pixels of
each row, keeps four of the first level, two of the second and one of the third, and asks the lanes beside it for the
pixels between them. So an image is read once and nothing is read back; sums of 16 bits go two in a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from homunculus.kernels.lanes import (
    LANES,
    bordered,
    bytes_of,
    down_four,
    first_of,
    four_of,
    keep,
    picks,
    pitch_of,
    row_of,
    two_of,
)

DEEP = 3  # levels of a launch
COLUMNS = tl.constexpr(30)  # pixels of the third level that a program keeps: the outer lanes are there for the inner
DOWN = 16  # rows of the third level that one makes where there are many times more of them than run at once
WARPS = 24  # that a multiprocessor has registers for
TILES, CELLS = tl.constexpr(32), tl.constexpr(64)  # that are compared at once
FIELDS = tl.constexpr(6)  # of an image in the table: height, width, its place and pitch, its levels, its programs

# ---- the kernels --------------------------------------------------------------------------------------------------


@triton.jit(do_not_specialize=["images", "planes", "down", "tiles", "first"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x, out, floats, table, images, planes, down, need, tiles, first,
    room: tl.constexpr, raw: tl.constexpr, wide: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """One program makes COLUMNS x `down` pixels of the third level of a plane, and the other two levels above them."""
    entry, spot = tl.arange(0, room), tl.program_id(0)
    starts = tl.load(table + entry * FIELDS + 5, mask=entry < images, other=1 << 62)
    b = tl.sum((starts <= spot).to(tl.int32), 0) - 1
    row = table + b * FIELDS
    h, w, pitch = tl.load(row).to(tl.int32), tl.load(row + 1).to(tl.int32), tl.load(row + 3).to(tl.int32)
    source, begin = tl.load(row + 2), tl.load(row + 4)
    spot -= tl.load(row + 5).to(tl.int32)
    h1, w1 = (h + 1) // 2, (w + 1) // 2
    h2, w2 = (h1 + 1) // 2, (w1 + 1) // 2
    h3, w3 = (h2 + 1) // 2, (w2 + 1) // 2
    across, below = tl.cdiv(w3, COLUMNS), tl.cdiv(h3, down)
    plane = (spot // across // below).to(tl.int64)
    top, left = spot // across % below * down, spot % across * COLUMNS
    one, two, three = True, True, True
    if some:
        flags = tl.load(need + b.to(tl.int64) * tiles + first + spot % (across * below))
        if flags == 0:
            return
        one, two, three = (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0

    x += source + plane * h * pitch
    p1, p2, p3 = pitch_of(w1), pitch_of(w2), pitch_of(w3)
    to1 = begin + (plane * h1 + 4 * top) * p1
    begin += planes.to(tl.int64) * h1 * p1
    to2 = begin + (plane * h2 + 2 * top) * p2
    to3 = begin + planes.to(tl.int64) * h2 * p2 + (plane * h3 + top) * p3

    lane = tl.arange(0, LANES)
    q = left - 1 + lane
    ours, start = (lane > 0) & (lane <= COLUMNS), tl.where(q > 0, 0, 1)  # at the left border a row begins twice
    at = tl.minimum(tl.maximum(q, 0), (w - 1) // 8)
    k0, k1, k2, k3, k4, k5, k6, k7 = picks(q, start, w, w1, w2)

    x += 8 * (tl.zeros_like(at) if raw else at)
    at1, at2, at3 = to1 + 4 * q, to2 + 2 * q, to3 + q
    ours1, ours2, ours3 = ours & (4 * q < w1) & one, ours & (2 * q < w2) & two, ours & (q < w3) & three
    down = tl.minimum(down, h3 - top)
    end1, end2 = tl.minimum(4 * down, h1 - 4 * top), tl.minimum(2 * down, h2 - 2 * top)

    nothing, bottom = tl.zeros((LANES,), tl.uint32), tl.minimum(h - 1, 8 * (top + down) + 6)
    above, above_, here, here_ = nothing, nothing, nothing, nothing  # of the rows before, weighed from left to right
    above1, here1, above2, here2 = nothing, nothing, nothing, nothing
    y = 8 * top - 9 + tl.zeros_like(lane)
    r0, r1 = row_of(x, y, bottom, w, pitch, at, raw), row_of(x, y + 1, bottom, w, pitch, at, raw)
    r2, r3 = row_of(x, y + 2, bottom, w, pitch, at, raw), row_of(x, y + 3, bottom, w, pitch, at, raw)
    r4, r5 = row_of(x, y + 4, bottom, w, pitch, at, raw), row_of(x, y + 5, bottom, w, pitch, at, raw)
    r6, r7 = row_of(x, y + 6, bottom, w, pitch, at, raw), row_of(x, y + 7, bottom, w, pitch, at, raw)
    for t in range(-2, down):  # makes row t of the third level from `top`, 2t + 1 and 2t + 2 of the second, and so on
        for half in tl.static_range(2):
            y = 8 * (top + t) + 15 + 4 * half + tl.zeros_like(lane)
            s0, s1, s2, s3 = (r0, r1, r2, r3) if half == 0 else (r4, r5, r6, r7)
            word, above, above_, here, here_ = first_of(s0, s1, above, above_, here, here_, k0, k1, k2, k3)
            s0, s1 = row_of(x, y, bottom, w, pitch, at, raw), row_of(x, y + 1, bottom, w, pitch, at, raw)
            keep(out + at1, floats + at1, 4 * t + 3 + 2 * half, p1, word, ours1, end1, 4, not wide, wide)
            below1 = four_of(word, k4, k5)
            word, above, above_, here, here_ = first_of(s2, s3, above, above_, here, here_, k0, k1, k2, k3)
            s2, s3 = row_of(x, y + 2, bottom, w, pitch, at, raw), row_of(x, y + 3, bottom, w, pitch, at, raw)
            keep(out + at1, floats + at1, 4 * t + 4 + 2 * half, p1, word, ours1, end1, 4, not wide, wide)
            below1, last1 = bordered(here1, below1, four_of(word, k4, k5), 4 * (top + t) + 3 + 2 * half, h1)
            pair = bytes_of(down_four(above1, here1, below1, last1), nothing, 0x4431)
            above1, here1 = below1, last1
            keep(out + at2, floats + at2, 2 * t + 1 + half, p2, pair, ours2, end2, 2, not wide, wide)
            if half == 0:
                r0, r1, r2, r3, below2 = s0, s1, s2, s3, two_of(pair, k6, k7)
            else:
                r4, r5, r6, r7, last2 = s0, s1, s2, s3, two_of(pair, k6, k7)
        below2, last2 = bordered(here2, below2, last2, 2 * (top + t) + 1, h2)
        pixel = (down_four(above2, here2, below2, last2) >> 8) & 255
        above2, here2 = below2, last2
        keep(out + at3, floats + at3, t, p3, pixel, ours3, down, 1, True, wide)


@triton.jit(do_not_specialize=["many", "tiles"])  # type: ignore[untyped-decorator]
def _mark(boxes, levels, mask, blocks, need, many, tiles):  # type: ignore[no-untyped-def]
    """Which of its three levels each program has to write for chosen cells, one bit each."""
    b, block = tl.program_id(0), blocks + 6 * tl.program_id(1)
    base, down, across = tl.load(block), tl.load(block + 1), tl.load(block + 2)
    begin, count, third = tl.load(block + 3), tl.load(block + 4), base + 3
    tile = begin + tl.arange(0, TILES)
    left, top = (tile % across * COLUMNS)[:, None], (tile // across * down)[:, None]
    flags = tl.zeros((TILES,), tl.int32)
    for start in range(0, many, CELLS):
        k = start + tl.arange(0, CELLS)
        row = b * many + k
        there = (k < many) & (tl.load(mask + row, mask=k < many, other=0) != 0)
        level = tl.load(levels + row, mask=there, other=0).to(tl.int32)
        around = (1 << tl.maximum(level - third, 0)) - 1  # pixels of that level that coarser ones weigh in
        box, more = boxes + 4 * row, (4 << level) if boxes.dtype.element_ty.is_floating() else 0  # between pixels
        x0, y0 = tl.load(box, mask=there, other=0), tl.load(box + 1, mask=there, other=0)
        x1, y1 = tl.load(box + 2, mask=there, other=1), tl.load(box + 3, mask=there, other=1)
        x0, y0 = ((x0.to(tl.int32) - more) >> third) - around, ((y0.to(tl.int32) - more) >> third) - around
        x1, y1 = ((x1.to(tl.int32) + more) >> third) + around, ((y1.to(tl.int32) + more) >> third) + around
        met = (x0[None] < left + COLUMNS) & (x1[None] >= left) & (y0[None] < top + down) & (y1[None] >= top)
        bit = tl.where(level > base, 1 << tl.minimum(level - base - 1, 2), 0) * there.to(tl.int32)
        for one in tl.static_range(3):
            flags |= tl.max((met & (bit == 1 << one)[None]).to(tl.int32), 1) << one
    tl.store(need + b.to(tl.int64) * tiles + tl.load(block + 5) + tile, flags.to(tl.uint8), mask=tile < count)


# ---- where levels lie ---------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A level: its size, bytes from row to row, and where it begins among the levels of its image."""

    height: int
    width: int
    pitch: int
    start: int


def places(height: int, width: int, planes: int, count: int) -> tuple[list[Place], int]:
    """Levels 1 and up, filled up to whole launches, and how many bytes an image has of all of them."""
    found, start = [], 0
    for _ in range(-(-count // DEEP) * DEEP):
        height, width = -(-height // 2), -(-width // 2)
        pitch = -(-width // 8) * 8
        found.append(Place(height, width, pitch, start))
        start += planes * height * pitch
    return found, start


class Chosen(NamedTuple):
    """Cells whose levels alone are wanted: boxes [B, K, 4], levels [B, K] and mask [B, K] of a `Selection`."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor


class Launch(NamedTuple):
    """The table of images, how many programs there are, and how many rows of the third level each makes."""

    table: Tensor
    programs: int
    down: int
    first: int = 0  # where marks of an image's programs begin


def _tiles(place: Place, down: int) -> int:
    """Programs that make a level of a plane and the two before it."""
    return triton.cdiv(place.width, COLUMNS.value) * triton.cdiv(place.height, down)


def _down_each(thirds: Sequence[Place], planes: int, device: torch.device) -> int:
    """How many rows of these levels a program makes: all programs run at once, unless there is far more to do."""
    slots = WARPS * torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 8
    columns = planes * sum(triton.cdiv(place.width, COLUMNS.value) for place in thirds)
    tallest = max(place.height for place in thirds)
    return triton.cdiv(tallest, min(tallest, slots // columns)) if slots // columns > 3 else min(tallest, DOWN)


@cache  # small, and graphs that were captured read them
def _launches(
    images: int, planes: int, height: int, width: int, count: int, device: Any
) -> tuple[list[Launch], Tensor, int]:
    """What it takes for equal images, and which programs `_mark` looks at together, of how many."""
    level, total = places(height, width, planes, count)
    found, blocks, marks = list[Launch](), list[list[int]](), 0
    for first in range(0, len(level), DEEP):
        source = level[first - 1] if first else Place(height, width, width, 0)
        whole, third = total if first else planes * height * width, level[first + 2]
        down = _down_each([third] * images, planes, device)
        tiles, across = _tiles(third, down), triton.cdiv(third.width, COLUMNS.value)
        height_, width_, pitch, start = source
        begin = level[first].start
        rows = [
            [height_, width_, start + b * whole, pitch, begin + b * total, b * planes * tiles] for b in range(images)
        ]
        found.append(Launch(torch.tensor(rows, device=device), images * planes * tiles, down, marks))
        blocks += [[first, down, across, begin, tiles, marks] for begin in range(0, tiles, TILES.value)]
        marks += tiles
    return found, torch.tensor(blocks, dtype=torch.int32, device=device), marks


# ---- calls --------------------------------------------------------------------------------------------------------


def build(x: Tensor, count: int, dtype: torch.dtype = torch.uint8, chosen: Chosen | None = None) -> list[Tensor]:
    """`count` levels of uint8 [..., H, W] below the image itself: [..., h, w] each, in rows of whole eights.

    Floats have the values of the 8-bit levels. With `chosen`, for [B, C, H, W], only what those cells need is made: the
    rest of the levels is left as the memory was.
    """
    x = x.contiguous()
    x = x.clone() if x.data_ptr() % 8 else x
    *outer, height, width = x.shape
    planes = outer[-1] if outer else 1
    images = x.numel() // max(1, planes * height * width)
    level, total = places(height, width, planes, count)
    out = torch.empty(images, total, dtype=torch.uint8, device=x.device)
    wide = torch.empty_like(out, dtype=dtype) if dtype != torch.uint8 else out
    if x.numel() and count:
        launches, blocks, marks = _launches(images, planes, height, width, count, x.device)
        need = None
        if chosen:
            need = torch.empty(images, marks, dtype=torch.uint8, device=x.device)
            with torch.cuda.device_of(x):
                _mark[(images, len(blocks))](
                    *(part.contiguous() for part in chosen), blocks, need, chosen.mask.shape[1], marks, num_warps=4
                )
        _launch(x, out, wide, launches, images, planes, width % 8 > 0, need)
    return [_view(wide, place, outer) for place in level[:count]]


def made(levels: Sequence[Tensor]) -> bool:
    """Whether these are an image [B, C, H, W] in one piece and the levels that `build` made of it."""
    images, planes, height, width = levels[0].shape
    place, total = places(height, width, planes, len(levels) - 1)
    begin = levels[1].data_ptr() if len(levels) > 1 else 0
    return levels[0].is_contiguous() and all(
        level.shape[2:] == (h, w)
        and level.stride()[images == 1 :] == (total, h * pitch, pitch, 1)[images == 1 :]
        and level.data_ptr() == begin + start
        for level, (h, w, pitch, start) in zip(levels[1:], place, strict=False)
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
    images = [image.contiguous() for image in images]
    images = [image.clone() if image.data_ptr() % 8 else image for image in images]
    planes, device, most = len(images[0]), images[0].device, max(counts)
    level = [places(image.shape[1], image.shape[2], planes, most) for image in images]
    starts = [0]
    for _, total in level:
        starts.append(starts[-1] + total)
    out, begin = torch.empty(starts[-1], dtype=torch.uint8, device=device), images[0].data_ptr()
    launches = []
    for first in range(0, len(level[0][0]), DEEP):
        rows, programs = list[list[int]](), 0
        down = _down_each([listed[first + 2] for listed, _ in level], planes, device)
        for image, (listed, _), start in zip(images, level, starts, strict=False):
            height, width = image.shape[1:]
            raw = Place(height, width, width, image.data_ptr() - begin - start)
            source = listed[first - 1] if first else raw
            rows.append([source.height, source.width, source.start + start, source.pitch])
            rows[-1] += [listed[first].start + start, programs]
            programs += planes * _tiles(listed[first + 2], down)
        launches.append(Launch(torch.tensor(rows, device=device), programs, down))
    if out.numel():
        odd = any(image.shape[2] % 8 for image in images)
        _launch(images[0], out, out, launches, len(images), planes, odd)
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
    odd: bool,
    need: Tensor | None = None,
) -> None:
    with torch.cuda.device_of(x):
        for n, (table, programs, down, first) in enumerate(launches):
            _kernel[(programs,)](
                out if n else x, out, wide, table, images, planes, down, out if need is None else need,
                0 if need is None else need.shape[1], first, room=triton.next_power_of_2(images),
                raw=odd and not n, wide=wide is not out, some=need is not None, num_warps=1,
            )  # fmt: skip


def _view(out: Tensor, place: Place, outer: Sequence[int]) -> Tensor:
    """A level among those of its images, [..., h, w]."""
    height, width, pitch, start = place
    shape = [len(out), outer[-1] if outer else 1, height, width]
    level = out.as_strided(shape, [out.stride(0), height * pitch, pitch, 1], out.storage_offset() + start)
    return level.unflatten(0, list(outer[:-1])) if len(outer) > 1 else level[0] if outer else level[0, 0]
