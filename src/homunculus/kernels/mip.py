"""Levels of 8-bit images at memory speed: the Triton twin of `pyramid.gaussian` with its usual weights.

One launch makes three levels: a program takes a piece of the third, makes the pieces of the first and second that it
needs, a little of what lies around included, and reads them back while they are in its cache. So an image is read
once. A lane takes eight pixels and makes four of the next level; sums of 16 bits go two in a number.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

DEEP = 3  # levels of a launch
LANES = tl.constexpr(64)  # of a program: each makes four pixels of the first of these levels, in a row
COLUMNS = tl.constexpr(56)  # pixels of the last that this suffices for
DOWN = 16  # rows of the last, fewer for small images
BYTES = tl.constexpr(0x00FF00FF)
FIELDS = tl.constexpr(6)  # of an image in the table: height, width, its place and pitch, its levels, its programs
PLAIN = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "0")  # the interpreter knows no instructions
ACROSS = tl.constexpr(
    """
    { .reg .u32 a, b, c, d;
      prmt.b32 a, $4, $2, 0x6540;  prmt.b32 b, $2, $3, 0x4321;
      prmt.b32 c, $2, $3, 0x6543;  prmt.b32 d, $3, $5, 0x4321;
      dp4a.u32.u32 a, a, 0x01030301, 0;  dp4a.u32.u32 b, b, 0x01030301, 0;
      dp4a.u32.u32 c, c, 0x01030301, 0;  dp4a.u32.u32 d, d, 0x01030301, 0;
      mad.lo.u32 $0, b, 65536, a;  mad.lo.u32 $1, d, 65536, c; }
    """
)


# ---- the kernel ---------------------------------------------------------------------------------------------------


@triton.jit
def _weighed(low, high, before, after):  # type: ignore[no-untyped-def]
    """Four pixels from eight, `low` and `high`, and the two beside them: eight times the mean, two in a number each."""
    if PLAIN:
        even, odd = low & BYTES, (low >> 8) & BYTES
        first = 3 * (even + odd) + ((odd << 16) | before) + ((even >> 16) | ((high & 255) << 16))
        even, odd = high & BYTES, (high >> 8) & BYTES
        second = 3 * (even + odd) + ((odd << 16) | (low >> 24)) + ((even >> 16) | (after << 16))
        return first, second
    else:  # noqa: RET505
        return tl.inline_asm_elementwise(
            ACROSS, "=r,=r,r,r,r,r", [low, high, before, after], (tl.uint32, tl.uint32), is_pure=True, pack=1
        )


@triton.jit
def _filled(word, x, w, final):  # type: ignore[no-untyped-def]
    """Four pixels from x on, of which those beyond the row are `final`, its last pixel in all bytes."""
    missing = x + 4 - w
    off = (8 * tl.minimum(tl.maximum(missing, 0), 3)).to(tl.uint32)
    ends = ((word << off) >> off) | (final << ((32 - off) & 31))
    return tl.where(missing > 3, final, tl.where(missing > 0, ends, word))


@triton.jit
def _across(plane, y, h, w, pitch, q, raw: tl.constexpr, edge: tl.constexpr):  # type: ignore[no-untyped-def]
    """A row, held inside the plane, weighed from left to right at lanes q."""
    begin = tl.minimum(tl.maximum(y, 0), h - 1) * pitch  # in bytes
    line = plane + begin
    skew = (line.to(tl.int64, bitcast=True) & 3).to(tl.int32) if raw else 0  # rows may begin between words
    words, last = (line - skew).to(tl.pointer_type(tl.uint32), bitcast=True), (skew + w - 1) // 4
    at = tl.maximum(tl.minimum(2 * q, last), 0) if edge else 2 * q
    low, high = tl.load(words + at), tl.load(words + (tl.minimum(at + 1, last) if edge else at + 1))
    if raw:
        more, off = tl.load(words + tl.minimum(at + 2, last)), tl.cast(8 * skew, tl.uint32)
        low = tl.where(off > 0, (low >> off) | (high << ((32 - off) & 31)), low)
        high = tl.where(off > 0, (high >> off) | (more << ((32 - off) & 31)), high)
    before, after = 8 * q - 1, 8 * q + 8
    if edge:
        before, after = tl.minimum(tl.maximum(before, 0), w - 1), tl.maximum(tl.minimum(after, w - 1), 0)
        final = tl.load(line + (w - 1)).to(tl.uint32) * 0x01010101 + tl.zeros_like(low)
        low, high = _filled(low, 8 * q, w, final), _filled(high, 8 * q + 4, w, final)
    return _weighed(low, high, tl.load(line + before).to(tl.uint32), tl.load(line + after).to(tl.uint32))


@triton.jit
def _pitch(w):  # type: ignore[no-untyped-def]
    """Bytes from row to row of a level: rows begin at words."""
    return (w + 3) // 4 * 4


@triton.jit
def _rounded(above, here, below, last):  # type: ignore[no-untyped-def]
    """Two pixels from sums of four rows, rounded half up."""
    return ((above + 3 * (here + below) + last + 0x00200020) >> 6) & BYTES


@triton.jit
def _level(  # type: ignore[no-untyped-def]
    plane, h, w, pitch, out, floats, H, W, top, left, until, rows: tl.constexpr, lanes: tl.constexpr,
    raw: tl.constexpr, edge: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """The piece of a level, in as many strips of rows as there are lanes for; each row takes two more of the plane."""
    strips: tl.constexpr = LANES // lanes
    each: tl.constexpr = (rows + strips - 1) // strips
    q = left + tl.arange(0, lanes)[None] + tl.zeros((strips, 1), tl.int32)
    y = top + each * tl.arange(0, strips)[:, None] + tl.zeros((1, lanes), tl.int32)
    above, beside_above = _across(plane, 2 * y - 1, h, w, pitch, q, raw, edge)
    here, beside_here = _across(plane, 2 * y, h, w, pitch, q, raw, edge)
    there = (q >= 0) & (q < until) & (4 * q < W)
    to = out.to(tl.pointer_type(tl.uint32), bitcast=True)
    for _ in range(each):
        below, beside_below = _across(plane, 2 * y + 1, h, w, pitch, q, raw, edge)
        last, beside_last = _across(plane, 2 * y + 2, h, w, pitch, q, raw, edge)
        one, two = _rounded(above, here, below, last), _rounded(beside_above, beside_here, beside_below, beside_last)
        keep, at = there & (y >= 0) & (y < H), y * _pitch(W) + 4 * q
        packed = ((one | (one >> 8)) & 0xFFFF) | (((two << 8) | (two << 16)) & 0xFFFF0000)
        tl.store(to + at // 4, packed, mask=keep)
        if wide:
            kind: tl.constexpr = floats.dtype.element_ty
            tl.store(floats + at, (one & 255).to(tl.int32).to(kind), mask=keep)
            tl.store(floats + at + 1, (one >> 16).to(tl.int32).to(kind), mask=keep)
            tl.store(floats + at + 2, (two & 255).to(tl.int32).to(kind), mask=keep)
            tl.store(floats + at + 3, (two >> 16).to(tl.int32).to(kind), mask=keep)
        above, beside_above, here, beside_here = below, beside_below, last, beside_last
        y += 1


@triton.jit
def _piece(  # type: ignore[no-untyped-def]
    plane, h, w, pitch, out, floats, one, two, three, top, left, down: tl.constexpr, raw: tl.constexpr,
    edge: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Three levels, each from the one before, which the program made itself as far as it needs it."""
    h1, w1 = (h + 1) // 2, (w + 1) // 2
    h2, w2 = (h1 + 1) // 2, (w1 + 1) // 2
    h3, w3 = (h2 + 1) // 2, (w2 + 1) // 2
    to, more = out + one, floats + one
    _level(
        plane, h, w, pitch, to, more, h1, w1, 4 * top - 3, left - 3, left + 59, 4 * down + 6, LANES, raw, edge, wide
    )  # fmt: skip
    tl.debug_barrier()
    plane, to, more = to, out + two, floats + two
    _level(
        plane, h1, w1, _pitch(w1), to, more, h2, w2, 2 * top - 1, left // 2 - 1, left // 2 + 29, 2 * down + 2,
        LANES // 2, False, edge, wide,
    )  # fmt: skip
    tl.debug_barrier()
    plane, to, more = to, out + three, floats + three
    _level(
        plane, h2, w2, _pitch(w2), to, more, h3, w3, top, left // 4, left // 4 + 14, down, LANES // 4, False, edge, wide
    )  # fmt: skip


@triton.jit
def _needed(boxes, levels, mask, b, many, left, top, down, base: tl.constexpr, room: tl.constexpr):  # type: ignore[no-untyped-def]  # fmt: skip
    """Whether any chosen cell needs the piece of level base + 3 that begins at (left, top)."""
    k = tl.arange(0, room)
    row = b * many + k
    there = (k < many) & (tl.load(mask + row, mask=k < many, other=0) != 0)
    level = tl.load(levels + row, mask=there, other=0).to(tl.int32)
    third: tl.constexpr = base + 3
    around = (1 << tl.maximum(level - third, 0)) - 1  # pixels of that level that coarser ones weigh in
    box, more = boxes + 4 * row, (4 << level) if boxes.dtype.element_ty.is_floating() else 0  # between pixels
    x0, y0 = tl.load(box, mask=there, other=0), tl.load(box + 1, mask=there, other=0)
    x1, y1 = tl.load(box + 2, mask=there, other=1), tl.load(box + 3, mask=there, other=1)
    x0, y0 = (x0.to(tl.int32) - more) >> third, (y0.to(tl.int32) - more) >> third
    x1, y1 = (x1.to(tl.int32) + more) >> third, (y1.to(tl.int32) + more) >> third
    met = (x0 - around < left + COLUMNS) & (x1 + around >= left) & (y0 - around < top + down) & (y1 + around >= top)
    return tl.max((there & (level > base) & met).to(tl.int32), 0)


@triton.jit(do_not_specialize=["images", "planes", "many"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x, out, floats, table, images, planes, boxes, levels, mask, many,
    held: tl.constexpr, raw: tl.constexpr, wide: tl.constexpr, base: tl.constexpr, room: tl.constexpr,
    down: tl.constexpr,
):  # fmt: skip
    """One program makes COLUMNS x `down` pixels of the third level of a plane, and what these take of the other two."""
    entry, spot = tl.arange(0, held), tl.program_id(0)
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
    if room > 0:  # noqa: SIM102
        if _needed(boxes, levels, mask, b, many, left, top, down, base, room) == 0:
            return
    read = x + (source + plane * h * pitch)
    one = begin + plane * h1 * _pitch(w1)
    begin += planes.to(tl.int64) * h1 * _pitch(w1)
    two = begin + plane * h2 * _pitch(w2)
    three = begin + planes.to(tl.int64) * h2 * _pitch(w2) + plane * h3 * _pitch(w3)
    if (left > 0) & (8 * left + 8 * LANES <= w):  # nothing of the piece lies at the left or right border
        _piece(read, h, w, pitch, out, floats, one, two, three, top, left, down, raw, False, wide)
    else:
        _piece(read, h, w, pitch, out, floats, one, two, three, top, left, down, raw, True, wide)


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
        pitch = -(-width // 4) * 4
        found.append(Place(height, width, pitch, start))
        start += planes * height * pitch
    return found, start


class Chosen(NamedTuple):
    """Cells whose levels alone are wanted: boxes [B, K, 4], levels [B, K] and mask [B, K] of a `Selection`."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor


class Launch(NamedTuple):
    """The table of images, and how many programs make so many rows each of the third level."""

    table: Tensor
    programs: int
    down: int


def _pieces(place: Place, planes: int, down: int) -> int:
    """Programs that make a level and the two before it."""
    return planes * triton.cdiv(place.width, COLUMNS.value) * triton.cdiv(place.height, down)


def _down(thirds: Sequence[Place]) -> int:
    return min(DOWN, triton.next_power_of_2(max(place.height for place in thirds)))


@cache  # small, and graphs that were captured read them
def _launches(images: int, planes: int, height: int, width: int, count: int, device: Any) -> list[Launch]:
    """What it takes for equal images."""
    level, total = places(height, width, planes, count)
    found = []
    for first in range(0, len(level), DEEP):
        source = level[first - 1] if first else Place(height, width, width, 0)
        whole, down = total if first else planes * height * width, _down(level[first + 2 : first + 3])
        pieces = _pieces(level[first + 2], planes, down)
        height_, width_, pitch, start = source
        begin = level[first].start
        rows = [[height_, width_, start + b * whole, pitch, begin + b * total, b * pieces] for b in range(images)]
        found.append(Launch(torch.tensor(rows, device=device), images * pieces, down))
    return found


# ---- calls --------------------------------------------------------------------------------------------------------


def build(x: Tensor, count: int, dtype: torch.dtype = torch.uint8, chosen: Chosen | None = None) -> list[Tensor]:
    """`count` levels of uint8 [..., H, W] below the image itself: [..., h, w] each, rows begin at words.

    Floats have the values of the 8-bit levels. With `chosen`, for [B, C, H, W], only what those cells need is made: the
    rest of the levels is left as the memory was.
    """
    x = x.contiguous()
    x = x.clone() if x.data_ptr() % 4 else x
    *outer, height, width = x.shape
    planes = outer[-1] if outer else 1
    images = x.numel() // max(1, planes * height * width)
    level, total = places(height, width, planes, count)
    out = torch.empty(images, total, dtype=torch.uint8, device=x.device)
    wide = torch.empty_like(out, dtype=dtype) if dtype != torch.uint8 else out
    if x.numel() and count:
        launches = _launches(images, planes, height, width, count, x.device)
        _launch(x, out, wide, launches, images, planes, width % 4 > 0, chosen)
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
    images = [image.clone() if image.data_ptr() % 4 else image for image in images]
    planes, device, most = len(images[0]), images[0].device, max(counts)
    level = [places(image.shape[1], image.shape[2], planes, most) for image in images]
    starts = [0]
    for _, total in level:
        starts.append(starts[-1] + total)
    out, begin = torch.empty(starts[-1], dtype=torch.uint8, device=device), images[0].data_ptr()
    launches = []
    for first in range(0, len(level[0][0]), DEEP):
        rows, programs, down = list[list[int]](), 0, _down([listed[first + 2] for listed, _ in level])
        for image, (listed, _), start in zip(images, level, starts, strict=False):
            height, width = image.shape[1:]
            raw = Place(height, width, width, image.data_ptr() - begin - start)
            source = listed[first - 1] if first else raw
            rows.append([source.height, source.width, source.start + start, source.pitch])
            rows[-1] += [listed[first].start + start, programs]
            programs += _pieces(listed[first + 2], planes, down)
        launches.append(Launch(torch.tensor(rows, device=device), programs, down))
    if out.numel():
        odd = any(image.shape[2] % 4 for image in images)
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
    chosen: Chosen | None = None,
) -> None:
    cells = chosen or Chosen(out, out, out)
    many = cells.mask.shape[1] if chosen else 0
    with torch.cuda.device_of(x):
        for n, (table, programs, down) in enumerate(launches):
            _kernel[(programs,)](
                out if n else x, out, wide, table, images, planes, *cells, many,
                held=triton.next_power_of_2(images), raw=odd and not n, wide=wide is not out, base=DEEP * n,
                room=triton.next_power_of_2(many) if chosen else 0, down=down, num_warps=LANES.value // 32,
            )  # fmt: skip


def _view(out: Tensor, place: Place, outer: Sequence[int]) -> Tensor:
    """A level among those of its images, [..., h, w]."""
    height, width, pitch, start = place
    shape = [len(out), outer[-1] if outer else 1, height, width]
    level = out.as_strided(shape, [out.stride(0), height * pitch, pitch, 1], out.storage_offset() + start)
    return level.unflatten(0, list(outer[:-1])) if len(outer) > 1 else level[0] if outer else level[0, 0]
