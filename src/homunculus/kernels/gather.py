"""Chosen cells as a vision tower wants them, in one launch: the Triton twin of `tokens.patches` and what follows it.

With levels that are there already it reads what was chosen and nothing else. Without, only those pieces of levels are
made that a chosen cell needs, and they are left where they are: nobody writes a whole pyramid.

A lane takes up to eight pixels of a row at once, of all three channels, and writes them as they lie together in the
result. That is one word where cells begin at words and lie in their image, as most of a tree do; two words and a shift
where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from homunculus.kernels import mip
from homunculus.kernels.lanes import pitch_of

KINDS = {1: tl.uint8, 2: tl.uint16, 4: tl.uint32, 8: tl.uint64}  # words of so many pixels
WORDS = 128  # most of a program, of each channel: those of a cell of 32 pixels
WARPS, CROWDED = 4, 1  # of a program: few are done sooner so, more than CROWD all run at once so
CROWD = 1024
ODD, BYTES = tl.constexpr(3), tl.constexpr(4)  # starts of levels are told in fours, as odd numbers
TAPS = tl.constexpr(8)  # pixels of the finer level, each way, that one between levels weighs


class PatchLayout(NamedTuple):
    """How pixels come out: as [B, K, 3, cell, cell], or with `merge` as towers of Qwen read them, in patches of blocks.

    Blocks give [B K merge merge, 3 times p p] with p = cell / merge, each patch `times` over. `colours` [3, 256] says
    what each value of a channel becomes, in the type that comes out; without, pixels stay uint8. A `line` [3, 2],
    slopes and offsets, that says the same to the bit spares the kernel the table.
    """

    colours: Tensor | None = None
    merge: int = 0
    times: int = 1
    line: Tensor | None = None

    @classmethod
    def rounded(cls, colours: Tensor, dtype: torch.dtype, merge: int = 0, times: int = 1) -> PatchLayout:
        """Colours [3, 256] of whatever kind, with a line if it gives all of them, rounded to this type."""
        exact, values = colours.double(), torch.arange(256, device=colours.device).double()
        line = torch.cat(((exact[:, 255:] - exact[:, :1]) / 255, exact[:, :1]), 1).float()
        on_it = (values * line[:, :1].double() + line[:, 1:].double()).float()  # as the GPU does, rounded once
        table = colours.to(dtype).contiguous()
        return cls(table, merge, times, line if torch.equal(on_it.to(dtype), table) else None)

    @classmethod
    def normalised(
        cls,
        dtype: torch.dtype,
        mean: Sequence[float],
        deviation: Sequence[float],
        merge: int = 0,
        times: int = 1,
        device: torch.device | str = "cuda",
    ) -> PatchLayout:
        """(value / 255 - mean) / deviation."""
        middle, spread = torch.tensor(mean)[:, None], torch.tensor(deviation)[:, None]
        colours = (torch.arange(256) / 255 - middle) / spread
        return cls.rounded(colours.to(device), dtype, merge, times)


# ---- the kernel ---------------------------------------------------------------------------------------------------


@triton.jit
def _share(u, at, scale):  # type: ignore[no-untyped-def]
    """How much pixel `at` counts in pixel u of the image scaled down by 1 to 2, antialiased."""
    middle = scale * (u + 0.5)
    begin, end = (middle - scale + 0.5).to(tl.int32), (middle + scale + 0.5).to(tl.int32)
    begin, total = tl.maximum(begin, 0), tl.zeros_like(middle)
    for tap in tl.static_range(5):
        weight = tl.maximum(1 - tl.abs((begin + tap - middle + 0.5) / scale), 0.0)
        total += tl.where(begin + tap < end, weight, 0.0)
    weight = tl.maximum(1 - tl.abs((at - middle + 0.5) / scale), 0.0)
    return tl.where((at >= begin) & (at < end), weight / total, 0.0)


@triton.jit
def _shares(origin, step, tap, scale, size):  # type: ignore[no-untyped-def]
    """Which pixel a tap is, for those `step` from an origin between scaled pixels, and how much it counts."""
    whole = tl.floor(origin + 1e-6)
    blend = tl.minimum(tl.maximum(origin - whole, 0.0), 1.0).to(tl.float32)
    near, far = tl.minimum(whole.to(tl.int32) + step, size - 1), tl.minimum(whole.to(tl.int32) + step + 1, size - 1)
    at = tl.maximum((scale * (near + 0.5) - scale + 0.5).to(tl.int32), 0) + tap
    return at, _share(near, at, scale) * (1 - blend) + _share(far, at, scale) * blend


@triton.jit
def _sampled(plane, pitch, last_x, last_y, x, y, fine, level, h, w, there, room: tl.constexpr):  # type: ignore[no-untyped-def]
    """Pixels of a cell that lies between levels or between pixels, antialiased from the finer level."""
    i, j = tl.arange(0, room)[:, None], tl.arange(0, room)[None]
    side, scale = tl.exp2(fine.to(tl.float64)), tl.exp2((fine - level).to(tl.float32))
    rows, columns = tl.ceil(h / side - 1e-6).to(tl.int32), tl.ceil(w / side - 1e-6).to(tl.int32)
    value = tl.zeros((room, room), tl.float32)
    for down in range(TAPS):
        row, counts = _shares(y / side, i, down, scale, rows)
        line = plane + tl.minimum(row, last_y).to(tl.int64) * pitch
        for across in range(TAPS):
            column, weighs = _shares(x / side, j, across, scale, columns)
            pixel = tl.load(line + tl.minimum(column, last_x), mask=there, other=0)
            value += counts * weighs * pixel.to(tl.float32)
    return value


@triton.jit
def _halved(size, level):  # type: ignore[no-untyped-def]
    """Pixels of a level along a side of an image."""
    return (size + (1 << level) - 1) >> level


@triton.jit
def _plane(image, rest, starts, b, level, height, width, whole, total):  # type: ignore[no-untyped-def]
    """Where a level of image b begins, and how far it is from row to row and from channel to channel."""
    start = tl.zeros_like(level)
    for l in tl.static_range(1, len(starts)):
        start = tl.where(level == l, starts[l] - ODD, start)
    pitch = tl.where(level > 0, pitch_of(_halved(width, level)), width)
    first, others = image.to(tl.int64, bitcast=True) + b * whole, rest.to(tl.int64, bitcast=True) + b * total
    place = tl.where(level > 0, others, first) + start.to(tl.int64) * BYTES
    return place.to(image.dtype, bitcast=True), pitch, _halved(height, level).to(tl.int64) * pitch


@triton.jit
def _word(line, there, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """As many pixels as a word has bytes, from where one begins."""
    return tl.load(line.to(tl.pointer_type(kind), bitcast=True), mask=there, other=0)


@triton.jit
def _anywhere(line, at, last, there, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """As many pixels from column `at` of a row that begins anywhere and beyond its last pixel goes on as that."""
    unit: tl.constexpr = kind.primitive_bitwidth // 8
    size: tl.constexpr = 8 if unit == 8 else 4
    wide: tl.constexpr = tl.uint64 if unit == 8 else tl.uint32
    first = tl.maximum(tl.minimum(at, last - unit + 1), 0)
    skip, most = tl.minimum(at, last) - first, tl.minimum(last - first, unit - 1)  # bytes from `first` on that count
    line += first
    skew = (line.to(tl.int64, bitcast=True) & (unit - 1)).to(tl.int32)
    line -= skew
    this = _word(line, there, kind).to(wide)
    next = _word(line + unit, there & (skew + most >= unit), kind).to(wide)
    word = (this >> (8 * skew).to(wide)) | ((next << (8 * (unit - 1 - skew)).to(wide)) << 8)
    edge = ((word >> (8 * most).to(wide)) & 255) * (0x0101010101010101 if unit == 8 else 0x01010101)
    most, word = most - skip, word >> (8 * skip).to(wide)
    spare = (8 * (size - 1 - most)).to(wide)
    return (((word << spare) >> spare) | ((edge << (8 * most).to(wide)) << 8)).to(kind)


@triton.jit
def _coloured(colours, word, channel: tl.constexpr, part: tl.constexpr, run: tl.constexpr, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """What `run` pixels of each word become, [words, run], by a table or, if `kind` is told, by a line."""
    pixel = word[:, None] >> (8 * (part * run + tl.arange(0, run)[None])).to(word.dtype)
    pixel = (pixel & 255).to(tl.int32)
    if kind is None:
        return tl.load(colours + 256 * channel + pixel)
    else:  # noqa: RET505
        slope, offset = tl.load(colours + 2 * channel), tl.load(colours + 2 * channel + 1)
        return tl.fma(pixel.to(tl.float32), slope, offset).to(kind)


@triton.jit
def _store(out, at, inside, red, green, blue, times: tl.constexpr, area: tl.constexpr):  # type: ignore[no-untyped-def]
    """Three channels, each `times` over."""
    for n in tl.static_range(3 * times):
        value = red if n < times else green if n < 2 * times else blue
        to = (out + at + n * area).to(tl.pointer_type(value.dtype), bitcast=True)
        tl.store(to, value, mask=inside)


@triton.jit(do_not_specialize=["apart", "height", "width", "whole", "total"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    image, rest, boxes, levels, mask, sizes, apart, colours, out, starts, height, width, whole, total,
    cell: tl.constexpr, merge: tl.constexpr, times: tl.constexpr, kind: tl.constexpr, words: tl.constexpr,
    run: tl.constexpr, straight: tl.constexpr, early: tl.constexpr, known: tl.constexpr,
):  # fmt: skip
    """One program writes so many words of pixels of each channel of a cell, `run` pixels at once."""
    b = tl.program_id(1)
    spot = b * tl.num_programs(0) + tl.program_id(0)
    if early and not known:
        tl.extra.cuda.gdc_wait()
    level = tl.load(levels + spot).to(tl.int32)
    x, y = tl.load(boxes + 4 * spot).to(tl.int32) >> level, tl.load(boxes + 4 * spot + 1).to(tl.int32) >> level
    sizes += apart * b  # of this image; those of the batch may be larger
    bottom = _halved(tl.load(sizes).to(tl.int32), level) - 1
    last = _halved(tl.load(sizes + 1).to(tl.int32), level) - 1
    shown = tl.load(mask + spot) != 0
    plane, pitch, channel = _plane(image, rest, starts, b.to(tl.int64), level, height, width, whole, total)

    unit: tl.constexpr = kind.primitive_bitwidth // 8
    across: tl.constexpr = cell // unit
    n = tl.arange(0, words)
    if words < cell * across:
        n += words * tl.program_id(2)
    i, j = n // across, n % across * unit
    inside = i < cell
    there, line = inside & shown, plane + tl.minimum(y + i, bottom).to(tl.int64) * pitch
    if early:
        if known:  # cells were there before the levels
            tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    if (x + cell - 1 <= last) & (((plane.to(tl.int64, bitcast=True) | pitch | x) & (unit - 1)) == 0):
        line += x + j
        red, green = _word(line, there, kind), _word(line + channel, there, kind)
        blue = _word(line + 2 * channel, there, kind)
    else:
        red = _anywhere(line, x + j, last, there, kind)
        green = _anywhere(line + channel, x + j, last, there, kind)
        blue = _anywhere(line + 2 * channel, x + j, last, there, kind)

    p: tl.constexpr = cell // merge
    by: tl.constexpr = out.dtype.element_ty if straight else None
    out += spot.to(tl.int64) * (3 * times * cell * cell)
    for part in tl.static_range(unit // run):
        at = j + part * run
        at = (i // p * merge + at // p) * (3 * times * p * p) + i % p * p + at % p
        if out.dtype.element_ty == tl.uint8:
            _store(out, at, inside, red, green, blue, times, p * p)
        else:  # all is looked up before any of it is written, so that nothing waits for it twice
            one, two = _coloured(colours, red, 0, part, run, by), _coloured(colours, green, 1, part, run, by)
            three, at = _coloured(colours, blue, 2, part, run, by), at[:, None] + tl.arange(0, run)[None]
            _store(out, at, inside[:, None], one, two, three, times, p * p)


@triton.jit(do_not_specialize=["apart", "height", "width", "whole", "total"])  # type: ignore[untyped-decorator]
def _between(  # type: ignore[no-untyped-def]
    image, rest, boxes, levels, mask, sizes, apart, colours, out, starts, height, width, whole, total,
    cell: tl.constexpr, merge: tl.constexpr, times: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """One program writes a channel of a cell that may lie between levels and between pixels."""
    b, c = tl.program_id(1), tl.program_id(2)
    spot = b * tl.num_programs(0) + tl.program_id(0)
    fine = tl.load(levels + spot)
    level = fine.to(tl.int32)
    x, y = tl.load(boxes + 4 * spot), tl.load(boxes + 4 * spot + 1)
    h, w = tl.load(sizes + apart * b), tl.load(sizes + apart * b + 1)
    plane, pitch, channel = _plane(image, rest, starts, b.to(tl.int64), level, height, width, whole, total)
    i, j = tl.arange(0, room)[:, None], tl.arange(0, room)[None]
    inside = (i < cell) & (j < cell)
    there = inside & (tl.load(mask + spot) != 0)
    right, bottom = _halved(width, level) - 1, _halved(height, level) - 1
    value = _sampled(plane + c * channel, pitch, right, bottom, x, y, fine, level, h, w, there, room)
    value = (value + 0.5).to(tl.uint8)
    if out.dtype.element_ty != tl.uint8:
        value = tl.load(colours + c * 256 + value.to(tl.int32))
    p: tl.constexpr = cell // merge
    at = (i // p * merge + j // p) * (3 * times * p * p) + i % p * p + j % p
    out += spot.to(tl.int64) * (3 * times * cell * cell) + c * (times * p * p)
    for time in tl.static_range(times):
        tl.store(out + at + time * p * p, value, mask=inside)


# ---- calls --------------------------------------------------------------------------------------------------------


class Cells(NamedTuple):
    """Chosen cells as a `Selection` has them: boxes [B, K, 4], levels [B, K], mask [B, K], sizes [B, 2]."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor
    sizes: Tensor


def gather(levels: Sequence[Tensor], cells: Cells, cell: int, layout: PatchLayout | None = None) -> Tensor:
    """Pixels of chosen cells from an image [B, 3, H, W] and the levels that `mip.build` made of it."""
    return _gather(levels, cells, cell, layout, known=False)


def _gather(levels: Sequence[Tensor], cells: Cells, cell: int, layout: PatchLayout | None, known: bool) -> Tensor:
    """`known` cells were there before the kernel that made the levels began."""
    layout, image = layout or PatchLayout(), levels[0].contiguous()
    rest = mip.rest_of(levels)
    (batch, many), (height, width) = cells.mask.shape, image.shape[2:]
    merge, times = (layout.merge, layout.times) if layout.merge else (1, 1)
    p = cell // merge
    shape = (batch * many * merge**2, 3 * times * p * p) if layout.merge else (batch, many, 3, cell, cell)
    colours = image if layout.colours is None else layout.colours.contiguous()
    out = torch.empty(shape, dtype=colours.dtype, device=image.device)
    if out.numel():
        *chosen, sizes = cells
        sizes = sizes if sizes.stride(1) == 1 else sizes.contiguous()  # images of one size may share it
        given = image, rest, *(part.contiguous() for part in chosen), sizes, sizes.stride(0)
        lies = _starts(height, width, len(levels)), height, width, image[0].numel(), rest.stride(0)
        with torch.cuda.device_of(image):
            if cells.boxes.is_floating_point() or cells.levels.is_floating_point():
                room = triton.next_power_of_2(cell)
                _between[many, batch, 3](
                    *given, colours, out, *lies, cell=cell, merge=merge, times=times, room=room, num_warps=4
                )
            else:
                run = math.gcd(p, max(KINDS), 16 // out.element_size())  # as many as one may write at once
                unit = run if out.dtype == torch.uint8 else math.gcd(cell, max(KINDS))
                words = min(WORDS, triton.next_power_of_2(cell * cell // unit))
                pieces = triton.cdiv(cell * cell // unit, words)
                warps = WARPS if batch * many * pieces <= CROWD else CROWDED
                _kernel[many, batch, pieces](
                    *given, colours if layout.line is None else layout.line, out, *lies, cell=cell, merge=merge,
                    times=times, kind=KINDS[unit], words=words, run=run, straight=layout.line is not None, known=known,
                    num_warps=max(1, min(warps, words // 32)), **mip.overlap(image.device),
                )  # fmt: skip
    return out


@cache
def _starts(height: int, width: int, count: int) -> tuple[int, ...]:
    """Where each level begins among those of its image. Triton compiles anew for 1 and for what 16 divides, so: odd."""
    found = (place.start // BYTES.value + ODD.value for place in mip.places(height, width, 3, count - 1)[0])
    return (ODD.value, *found)[:count]


def touched(image: Tensor, count: int, cells: Cells, cell: int, layout: PatchLayout | None = None) -> Tensor:
    """The same from the image [B, 3, H, W] alone: of its `count` levels only what these cells need is made."""
    image = image.contiguous()
    boxes, levels, mask, sizes = cells
    cells = Cells(boxes.contiguous(), levels.contiguous(), mask.contiguous(), sizes)
    made = mip.build(image, count - 1, chosen=mip.Chosen(*cells[:3]))
    return _gather([image, *made], cells, cell, layout, known=count > 1 and sizes.stride(1) == 1)
