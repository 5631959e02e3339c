"""What a lane of `mip` does with its pixels: a few instructions of the GPU's own, and the same in plain arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

LANES = tl.constexpr(32)  # of a warp
PLAIN = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "0")  # the interpreter knows no instructions


def _inner(fn: Any) -> Any:
    """What a kernel calls. To the interpreter every call of a function of Triton's is a long one."""
    return fn if PLAIN.value else triton.jit(fn)


def _instruction(plain: Callable[..., Any]) -> Callable[[Any], Any]:
    """One of the GPU's own. The interpreter knows none, and would take long over the same in Triton: it has NumPy."""

    def by_numpy(*given: Any) -> tl.tensor:
        from triton.runtime.interpreter import TensorHandle

        wide = (part.handle.data.astype("u8") if isinstance(part, tl.tensor) else part for part in given)
        return tl.tensor(TensorHandle(plain(*wide).astype("u4"), tl.uint32), given[0].type)

    return lambda fn: by_numpy if PLAIN.value else triton.jit(fn)


# ---- instructions -------------------------------------------------------------------------------------------------


@_instruction(lambda a, b, which: sum(((a | b << 32) >> (which >> 4 * i & 7) * 8 & 255) << 8 * i for i in range(4)))
def bytes_of(low, high, which):  # type: ignore[no-untyped-def]
    """Four bytes of eight, as the digits of `which` say, the first the lowest."""
    return tl.inline_asm_elementwise("prmt.b32 $0, $1, $2, $3;", "=r,r,r,r", [low, high, which], tl.uint32, True, 1)


@_instruction(lambda a, b, more: more + sum((a >> 8 * i & 255) * (b >> 8 * i & 255) for i in range(4)))
def _dot(four, weights: tl.constexpr, more):  # type: ignore[no-untyped-def]
    """Four bytes, weighed by four bytes, and what there is already."""
    return tl.inline_asm_elementwise(
        "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r", [four, weights, more], tl.uint32, True, 1
    )


@_inner
def _beside(x, step: tl.constexpr):  # type: ignore[no-untyped-def]
    """What the lane before (-1) or after (1) has."""
    if PLAIN:
        lane = tl.arange(0, x.shape[0])
        return tl.gather(x, lane // LANES * LANES + tl.minimum(tl.maximum(lane % LANES + step, 0), LANES - 1), 0)
    elif step < 0:  # noqa: RET505
        return tl.inline_asm_elementwise("shfl.sync.up.b32 $0, $1, 1, 0, -1;", "=r,r", [x], tl.uint32, True, 1)
    else:
        return tl.inline_asm_elementwise("shfl.sync.down.b32 $0, $1, 1, 31, -1;", "=r,r", [x], tl.uint32, True, 1)


@_inner
def _along(line, y, pitch):  # type: ignore[no-untyped-def]
    """The place `y` rows further, by one instruction."""
    if PLAIN:
        return line + y.to(tl.int64) * pitch
    else:  # noqa: RET505
        place = tl.inline_asm_elementwise(
            "mad.wide.s32 $0, $1, $2, $3;", "=l,r,r,l", [y, pitch, line.to(tl.int64, bitcast=True)], tl.int64, True, 1
        )
        return place.to(line.dtype, bitcast=True)


@_inner
def asked():  # type: ignore[no-untyped-def]
    """What is read before is not put off: the compiler would, to spare registers."""
    if not PLAIN:
        tl.inline_asm_elementwise("bar.warp.sync -1; // $0", "=r", [], tl.int32, False, 1)


@_inner
def number_of(place):  # type: ignore[no-untyped-def]
    """A number without its fraction; of 64 bits only the lower half is read, which has it all."""
    if place.dtype.element_ty == tl.int64:
        place = place.to(tl.pointer_type(tl.int32), bitcast=True)
    return tl.load(place).to(tl.int32)


@_inner
def box_of(box):  # type: ignore[no-untyped-def]
    """The four numbers of a box, in whole pixels: each lane reads its own."""
    return number_of(box), number_of(box + 1), number_of(box + 2), number_of(box + 3)


# ---- rows ---------------------------------------------------------------------------------------------------------


@_inner
def pitch_of(w):  # type: ignore[no-untyped-def]
    """Bytes from row to row of a level: rows begin where a lane may read sixteen."""
    return (w + 15) // 16 * 16


@_inner
def row_of(image, y, raw: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sixteen pixels for each lane of a row held inside the strip, in four words.

    `image` is where lanes begin, the last row, how wide rows are, from one to the next, and which sixteen are a lane's.
    If `raw` rows begin anywhere: lanes do where rows do, and there are six words and how far off the first is.
    """
    plane, bottom, w, pitch, at = image
    line = _along(plane, tl.maximum(tl.minimum(y, bottom), 0), pitch)
    if raw:
        skew = line.to(tl.int64, bitcast=True) & 7
        last = (skew.to(tl.int32) + w - 1) // 8 - 2 * at  # of the pairs of words that a lane may read
        pair = (line - skew).to(tl.pointer_type(tl.uint64), bitcast=True) + 2 * at
        a, b, c = tl.load(pair), tl.load(pair + 1, mask=last > 0), tl.load(pair + 2, mask=last > 1)
        words: tl.tuple = (a.to(tl.uint32), (a >> 32).to(tl.uint32), b.to(tl.uint32), (b >> 32).to(tl.uint32))
        words += (c.to(tl.uint32), (c >> 32).to(tl.uint32), skew.to(tl.int32))
        return words
    elif PLAIN:  # noqa: RET505
        word = line.to(tl.pointer_type(tl.uint32), bitcast=True)
        return tl.load(word), tl.load(word + 1), tl.load(word + 2), tl.load(word + 3)
    else:
        kinds: tl.constexpr = (tl.uint32, tl.uint32, tl.uint32, tl.uint32)
        return tl.inline_asm_elementwise(
            "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l", [line], kinds, False, 1
        )


@_inner
def settled(row):  # type: ignore[no-untyped-def]
    """The four words of a raw row."""
    a, b, c, d, e, f, skew = row
    off = skew > 3
    a, b, c = tl.where(off, b, a), tl.where(off, c, b), tl.where(off, d, c)
    d, e = tl.where(off, e, d), tl.where(off, f, e)
    which = (0x3210 + 0x1111 * (skew & 3)).to(tl.uint32)
    return bytes_of(a, b, which), bytes_of(b, c, which), bytes_of(c, d, which), bytes_of(d, e, which)


@_inner
def ends_of(last, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """For `ended`: of each word of a lane, which bytes of it and of the word before go on after pixel `last`."""
    found: tl.tuple = ()
    for i in tl.static_range(count):
        which = tl.zeros_like(last)
        for j in tl.static_range(4):
            which |= tl.where(last < 4 * i + j, (last - 4 * i) & 7, j) << (4 * j)
        found += (which.to(tl.uint32),)
    return found


@_inner
def ended(words, ends):  # type: ignore[no-untyped-def]
    """The same words, where after the last pixel of a row it comes twice more: further no level looks."""
    found: tl.tuple = ()
    for i in tl.static_range(len(words)):
        found += (bytes_of(words[i], words[i - 1 if i else 0], ends[i]),)
    return found


@_inner
def bordered(here, below, last, row, h):  # type: ignore[no-untyped-def]
    """Two rows of a level, `row` the first of them and `here` the one before: those outside it are its border's."""
    first: tl.tuple = ()
    second: tl.tuple = ()
    for i in tl.static_range(len(here)):
        under = tl.where(row < h, below[i], here[i])
        end = tl.where(row + 1 < h, last[i], under)
        first += (tl.where(row < 0, end, under),)
        second += (end,)
    return first, second


@_inner
def halved(row, next, above, left, right):  # type: ignore[no-untyped-def]
    """Half as many words of the next level from two rows and the two before, and what these two will add to the next.

    Sixteen pixels are weighed four at once: two columns of two rows. Weights make 256, so that a mean is the upper byte
    of a sum with its half. `left` and `right` say where to take the column before a lane's first and after its last.
    """
    count: tl.constexpr = len(row)
    outer: tl.tuple = ()  # the last and the first column of each word
    for i in tl.static_range(count):
        outer += (bytes_of(row[i], next[i], 0x4073),)
    pairs: tl.tuple = (bytes_of(_beside(outer[count - 1], -1), outer[0], left),)  # columns -1 and 0, 1 and 2, and so on
    for i in tl.static_range(count):
        pairs += (bytes_of(row[i], next[i], 0x6251),)
        if i + 1 < count:
            pairs += (bytes_of(outer[i], outer[i + 1], 0x7610),)
        else:
            pairs += (bytes_of(outer[i], _beside(outer[0], 1), right),)
    sums: tl.tuple = ()
    own: tl.tuple = ()
    half = tl.full(row[0].shape, 128, tl.uint32)
    for i in tl.static_range(2 * count):
        sums += (_dot(pairs[i], 0x0C24040C, _dot(pairs[i + 1], 0x040C0C24, above[i])),)
        own += (_dot(pairs[i], 0x240C0C04, _dot(pairs[i + 1], 0x0C04240C, half)),)
    words: tl.tuple = ()
    if count == 1:
        words += (bytes_of(sums[0], sums[1], 0x3351),)
    for i in tl.static_range(count // 2):
        low, high = bytes_of(sums[4 * i], sums[4 * i + 1], 0x51), bytes_of(sums[4 * i + 2], sums[4 * i + 3], 0x51)
        words += (bytes_of(low, high, 0x5410),)
    return words, own


@_inner
def _pixel(words, i: tl.constexpr, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """Pixel i of words as a float."""
    return ((words[i // 4] >> (8 * (i % 4))) & 255).to(tl.int32).to(tl.float32).to(kind)


@_inner
def keep(level, y, words, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Writes `count` pixels of each lane into row y if it is one of the program's: 8 bits, or floats of that value.

    A level is where lanes begin, from row to row, which lanes write, and how many rows.
    """
    to, pitch, ours, end = level
    y += (words[0] & 0).to(tl.int32)
    there = ours & (y.to(tl.uint32) < end.to(tl.uint32))
    if to.dtype.element_ty == tl.uint8:
        kind: tl.constexpr = tl.uint64 if count == 8 else tl.uint32 if count == 4 else tl.uint16
        pixels = words[0].to(kind)
        if count == 8:
            pixels |= words[1].to(kind) << 32
        place = _along(to, y, pitch).to(tl.pointer_type(kind), bitcast=True)
        tl.store(place, pixels, mask=there, eviction_policy="evict_last")  # what is read next is to be in the cache
    elif to.dtype.element_ty.primitive_bitwidth == 16:  # as many as a lane can write at once
        few: tl.constexpr = 4 if count > 2 else 2
        several: tl.constexpr = tl.uint64 if few == 4 else tl.uint32
        place = to + y.to(tl.int64) * pitch
        for first in tl.static_range(0, count, few):
            floats = tl.zeros_like(words[0]).to(several)
            for i in tl.static_range(few):
                pixel = _pixel(words, first + i, to.dtype.element_ty).to(tl.uint16, bitcast=True)
                floats |= pixel.to(several) << (16 * i)
            tl.store((place + first).to(tl.pointer_type(several), bitcast=True), floats, mask=there)
    else:
        for i in tl.static_range(count):
            tl.store(to + y.to(tl.int64) * pitch + i, _pixel(words, i, to.dtype.element_ty), mask=there)
