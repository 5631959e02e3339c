"""What a lane of `mip` does with its pixels: a few instructions of the GPU's own, and the same in plain arithmetic."""

from __future__ import annotations

import os

import triton
import triton.language as tl

LANES = tl.constexpr(32)  # of a program, and of a warp
PLAIN = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "0")  # the interpreter knows no instructions

# Pixels are weighed (4, 12, 12, 4) and a sixteenth is added, so that the upper byte of 16 bits is the rounded mean when
# four rows have been weighed (1, 3, 3, 1).
EIGHT = tl.constexpr(
    """
    { .reg .u32 before, after, a, b, c, d;
      shfl.sync.up.b32 before, $3, 1, 0, -1;  shfl.sync.down.b32 after, $2, 1, 31, -1;
      prmt.b32 a, before, $2, $4;  prmt.b32 b, $2, $3, $5;  prmt.b32 c, $2, $3, $6;  prmt.b32 d, $3, after, $7;
      dp4a.u32.u32 a, a, 0x040C0C04, 16;  dp4a.u32.u32 b, b, 0x040C0C04, 16;
      dp4a.u32.u32 c, c, 0x040C0C04, 16;  dp4a.u32.u32 d, d, 0x040C0C04, 16;
      prmt.b32 $0, a, b, 0x5410;  prmt.b32 $1, c, d, 0x5410; }
    """
)
FOUR = tl.constexpr(
    """
    { .reg .u32 before, after, a, b;
      shfl.sync.up.b32 before, $1, 1, 0, -1;  shfl.sync.down.b32 after, $1, 1, 31, -1;
      prmt.b32 a, before, $1, $2;  prmt.b32 b, $1, after, $3;
      dp4a.u32.u32 a, a, 0x040C0C04, 16;  dp4a.u32.u32 b, b, 0x040C0C04, 16;
      prmt.b32 $0, a, b, 0x5410; }
    """
)
TWO = tl.constexpr(
    """
    { .reg .u32 before, after, a;
      shfl.sync.up.b32 before, $1, 1, 0, -1;  shfl.sync.down.b32 after, $1, 1, 31, -1;
      prmt.b32 a, $1, after, $3;  prmt.b32 a, before, a, $2;
      dp4a.u32.u32 $0, a, 0x040C0C04, 16; }
    """
)


@triton.jit
def _picked(low, high, which):  # type: ignore[no-untyped-def]
    """Four bytes of eight, as `prmt` picks them."""
    both = low.to(tl.uint64) | (high.to(tl.uint64) << 32)
    found = tl.zeros_like(low)
    for i in tl.static_range(4):
        place = ((which >> (4 * i)) & 7).to(tl.uint64) * 8
        found |= ((both >> place) & 255).to(tl.uint32) << (8 * i)
    return found


@triton.jit
def _beside(x, step: tl.constexpr):  # type: ignore[no-untyped-def]
    """What the lane before or after has."""
    lane = tl.arange(0, LANES) + step
    return tl.gather(x, tl.minimum(tl.maximum(lane, 0), LANES - 1), 0)


@triton.jit
def _mean(four):  # type: ignore[no-untyped-def]
    first, last = (four & 255) + (four >> 24), ((four >> 8) & 255) + ((four >> 16) & 255)
    return 4 * first + 12 * last + 16


@triton.jit
def _eight(row, one, two, three, four):  # type: ignore[no-untyped-def]
    """Eight pixels and those beside them, weighed to four; which pixels each of them weighs is given."""
    low, high = row.to(tl.uint32), (row >> 32).to(tl.uint32)
    if PLAIN:
        a, b = _mean(_picked(_beside(high, -1), low, one)), _mean(_picked(low, high, two))
        c, d = _mean(_picked(low, high, three)), _mean(_picked(high, _beside(low, 1), four))
        return a | (b << 16), c | (d << 16)
    else:  # noqa: RET505
        return tl.inline_asm_elementwise(
            EIGHT, "=r,=r,r,r,r,r,r,r", [low, high, one, two, three, four], (tl.uint32, tl.uint32), True, 1
        )


@triton.jit
def four_of(word, one, two):  # type: ignore[no-untyped-def]
    """Four pixels, weighed to two."""
    if PLAIN:
        a, b = _mean(_picked(_beside(word, -1), word, one)), _mean(_picked(word, _beside(word, 1), two))
        return a | (b << 16)
    else:  # noqa: RET505
        return tl.inline_asm_elementwise(FOUR, "=r,r,r,r", [word, one, two], tl.uint32, True, 1)


@triton.jit
def two_of(pair, one, two):  # type: ignore[no-untyped-def]
    """Two pixels, weighed to one."""
    if PLAIN:
        return _mean(_picked(_beside(pair, -1), _picked(pair, _beside(pair, 1), two), one))
    else:  # noqa: RET505
        return tl.inline_asm_elementwise(TWO, "=r,r,r,r", [pair, one, two], tl.uint32, True, 1)


@triton.jit
def bytes_of(low, high, which: tl.constexpr):  # type: ignore[no-untyped-def]
    """Four bytes of eight, as the digits of `which` say."""
    if PLAIN:
        return _picked(low, high, which + tl.zeros_like(low))
    else:  # noqa: RET505
        return tl.inline_asm_elementwise("prmt.b32 $0, $1, $2, $3;", "=r,r,r,r", [low, high, which], tl.uint32, True, 1)


@triton.jit
def down_four(above, here, below, last):  # type: ignore[no-untyped-def]
    """Four rows, weighed: the upper byte of each 16 bits is the mean, rounded half up."""
    return 3 * (here + below) + (above + last)


@triton.jit
def _along(line, y, pitch):  # type: ignore[no-untyped-def]
    """The place `y` rows further, by one instruction."""
    if PLAIN:
        return line + y.to(tl.int64) * pitch
    else:  # noqa: RET505
        place = tl.inline_asm_elementwise(
            "mad.wide.s32 $0, $1, $2, $3;", "=l,r,r,l", [y, pitch, line.to(tl.int64, bitcast=True)], tl.int64, True, 1
        )
        return place.to(line.dtype, bitcast=True)


@triton.jit
def _which(a, b, c, d):  # type: ignore[no-untyped-def]
    """Four digits that name bytes, the first the lowest."""
    return (a | (b << 4) | (c << 8) | (d << 12)).to(tl.uint32)


@triton.jit
def picks(q, start, w, w1, w2):  # type: ignore[no-untyped-def]
    """Which pixels lanes q weigh, of their own and of those beside them: four times for the first level, twice, once.

    A row ends with its last pixel over and over; with `start` 1 it begins so too.
    """
    m = tl.maximum(tl.minimum(w - 8 * q - 1, 8), 0)  # the last pixel that there is, of those a lane asks for
    k0 = _which(3 + start, 4, 4 + tl.minimum(m, 1), 4 + tl.minimum(m, 2))
    k1 = _which(tl.minimum(m, 1), tl.minimum(m, 2), tl.minimum(m, 3), tl.minimum(m, 4))
    k2 = _which(tl.minimum(m, 3), tl.minimum(m, 4), tl.minimum(m, 5), tl.minimum(m, 6))
    m = tl.maximum(m - 4, 0)
    k3 = _which(tl.minimum(m, 1), tl.minimum(m, 2), tl.minimum(m, 3), m)
    m = tl.maximum(tl.minimum(w1 - 4 * q - 1, 4), 0)
    k4 = _which(3 + start, 4, 4 + tl.minimum(m, 1), 4 + tl.minimum(m, 2))
    k5 = _which(tl.minimum(m, 1), tl.minimum(m, 2), tl.minimum(m, 3), m)
    m = tl.maximum(tl.minimum(w2 - 2 * q - 1, 2), 0)
    k6 = _which(1 + 3 * start, 4, 5, 6)
    k7 = _which(0, tl.minimum(m, 1), tl.where(m > 1, 4, m), 0)
    return k0, k1, k2, k3, k4, k5, k6, k7


@triton.jit
def pitch_of(w):  # type: ignore[no-untyped-def]
    """Bytes from row to row of a level: rows begin where a lane may read eight."""
    return (w + 7) // 8 * 8


@triton.jit
def row_of(plane, y, bottom, w, pitch, at, raw: tl.constexpr):  # type: ignore[no-untyped-def]
    """Eight pixels for each lane of a row, held inside the strip. `plane` is where lanes begin, or the row if `raw`."""
    line = _along(plane, tl.minimum(tl.maximum(y, 0), bottom), pitch)
    if raw:  # rows begin anywhere
        skew = line.to(tl.int64, bitcast=True) & 7
        words, last = (line - skew).to(tl.pointer_type(tl.uint64), bitcast=True), (skew.to(tl.int32) + w - 1) // 8
        off = (8 * skew).to(tl.uint64)
        this = tl.load(words + tl.minimum(at, last))
        next = tl.load(words + tl.minimum(at + 1, last))
        return tl.where(off > 0, (this >> off) | (next << ((64 - off) & 63)), this)
    else:  # noqa: RET505
        return tl.load(line.to(tl.pointer_type(tl.uint64), bitcast=True))


@triton.jit
def first_of(row, next, above, above_, here, here_, a, b, c, d):  # type: ignore[no-untyped-def]
    """Four pixels of the first level from two rows and the two before, and these two rows for the next time."""
    below, below_ = _eight(row, a, b, c, d)
    last, last_ = _eight(next, a, b, c, d)
    word = bytes_of(down_four(above, here, below, last), down_four(above_, here_, below_, last_), 0x7531)
    return word, below, below_, last, last_


@triton.jit
def bordered(here, below, last, row, h):  # type: ignore[no-untyped-def]
    """Two rows of a level, `row` the first of them, of which those outside it are its border's."""
    below = tl.where(row < h, below, here)
    last = tl.where(row + 1 < h, last, below)
    return tl.where(row < 0, last, below), last


@triton.jit
def keep(  # type: ignore[no-untyped-def]
    out, floats, y, pitch, pixels, ours, end, count: tl.constexpr, bytes: tl.constexpr, wide: tl.constexpr
):  # fmt: skip
    """Writes `count` pixels of each lane into row y if it is one of the program's: 8 bits, or floats of that value."""
    y += tl.zeros_like(pixels).to(tl.int32)
    keep = ours & (y.to(tl.uint32) < end.to(tl.uint32))
    if bytes:
        kind: tl.constexpr = tl.uint32 if count == 4 else tl.uint16 if count == 2 else tl.uint8
        tl.store(_along(out, y, pitch).to(tl.pointer_type(kind), bitcast=True), pixels.to(kind), mask=keep)
    if wide:
        for i in tl.static_range(count):
            pixel = ((pixels >> (8 * i)) & 255).to(tl.int32)
            tl.store(floats + y.to(tl.int64) * pitch + i, pixel.to(floats.dtype.element_ty), mask=keep)
