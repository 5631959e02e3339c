"""What a lane of a warp does in `mip_kernel`: a few GPU instructions, and the same in plain arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

WARP_SIZE = tl.constexpr(32)  # lanes
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "0")  # the interpreter knows no instructions


def _device_function(fn: Any) -> Any:
    """A function that kernels call; left as it is for the interpreter, whose calls of Triton functions take long."""
    return fn if INTERPRETED.value else triton.jit(fn)


def _intrinsic(emulate: Callable[..., Any]) -> Callable[[Any], Any]:
    """One GPU instruction; the interpreter knows none and takes the same from NumPy."""

    def emulated(*arguments: Any) -> tl.tensor:
        from triton.runtime.interpreter import TensorHandle

        values = (part.handle.data.astype("u8") if isinstance(part, tl.tensor) else part for part in arguments)
        return tl.tensor(TensorHandle(emulate(*values).astype("u4"), tl.uint32), arguments[0].type)

    return lambda fn: emulated if INTERPRETED.value else triton.jit(fn)


# ---- instructions -------------------------------------------------------------------------------------------------


@_intrinsic(lambda a, b, selector: sum(((a | b << 32) >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i for i in range(4)))
def byte_perm(low, high, selector):  # type: ignore[no-untyped-def]
    """Four bytes of eight, as the digits of `selector` say, the first the lowest."""
    return tl.inline_asm_elementwise("prmt.b32 $0, $1, $2, $3;", "=r,r,r,r", [low, high, selector], tl.uint32, True, 1)


@_intrinsic(lambda a, b, total: total + sum((a >> 8 * i & 255) * (b >> 8 * i & 255) for i in range(4)))
def _dp4a(pixels, weights: tl.constexpr, total):  # type: ignore[no-untyped-def]
    """The dot product of four bytes and four weights, added to a total."""
    return tl.inline_asm_elementwise(
        "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r", [pixels, weights, total], tl.uint32, True, 1
    )


@_device_function
def _shuffle(x, delta: tl.constexpr):  # type: ignore[no-untyped-def]
    """The value of the lane before (-1) or after (1)."""
    if INTERPRETED:
        lane = tl.arange(0, x.shape[0])
        source = tl.minimum(tl.maximum(lane % WARP_SIZE + delta, 0), WARP_SIZE - 1)
        return tl.gather(x, lane // WARP_SIZE * WARP_SIZE + source, 0)
    elif delta < 0:  # noqa: RET505
        return tl.inline_asm_elementwise("shfl.sync.up.b32 $0, $1, 1, 0, -1;", "=r,r", [x], tl.uint32, True, 1)
    else:
        return tl.inline_asm_elementwise("shfl.sync.down.b32 $0, $1, 1, 31, -1;", "=r,r", [x], tl.uint32, True, 1)


@_device_function
def _row_pointer(base, y, pitch):  # type: ignore[no-untyped-def]
    """The place `y` rows further, by one instruction."""
    if INTERPRETED:
        return base + y.to(tl.int64) * pitch
    else:  # noqa: RET505
        pointer = tl.inline_asm_elementwise(
            "mad.wide.s32 $0, $1, $2, $3;", "=l,r,r,l", [y, pitch, base.to(tl.int64, bitcast=True)], tl.int64, True, 1
        )
        return pointer.to(base.dtype, bitcast=True)


@_device_function
def warp_fence():  # type: ignore[no-untyped-def]
    """Loads before it are not put off: the compiler would, to spare registers."""
    if not INTERPRETED:
        tl.inline_asm_elementwise("bar.warp.sync -1; // $0", "=r", [], tl.int32, False, 1)


@_device_function
def load_int32(pointer):  # type: ignore[no-untyped-def]
    """A number without its fraction; of 64 bits only the lower half is read, which has it all."""
    if pointer.dtype.element_ty == tl.int64:
        pointer = pointer.to(tl.pointer_type(tl.int32), bitcast=True)
    return tl.load(pointer).to(tl.int32)


@_device_function
def load_box(box):  # type: ignore[no-untyped-def]
    """The four numbers of a box, in whole pixels: each lane reads its own."""
    return load_int32(box), load_int32(box + 1), load_int32(box + 2), load_int32(box + 3)


# ---- rows ---------------------------------------------------------------------------------------------------------


@_device_function
def pitch_of(w):  # type: ignore[no-untyped-def]
    """Bytes from row to row of a level: rows begin where a lane may read sixteen."""
    return (w + 15) // 16 * 16


@_device_function
def load_row(image, y, unaligned: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sixteen pixels for each lane of a row held inside the strip, in four words.

    `image` is where lanes begin, the last row, how wide rows are, from one to the next, and which sixteen are a lane's.
    If `unaligned`, rows begin anywhere: lanes do where rows do, and there are six words and how far off the first is.
    """
    plane, bottom, w, pitch, group = image
    line = _row_pointer(plane, tl.maximum(tl.minimum(y, bottom), 0), pitch)
    if unaligned:
        skew = line.to(tl.int64, bitcast=True) & 7
        last = (skew.to(tl.int32) + w - 1) // 8 - 2 * group  # of the pairs of words that a lane may read
        pair = (line - skew).to(tl.pointer_type(tl.uint64), bitcast=True) + 2 * group
        a, b, c = tl.load(pair), tl.load(pair + 1, mask=last > 0), tl.load(pair + 2, mask=last > 1)
        words: tl.tuple = (a.to(tl.uint32), (a >> 32).to(tl.uint32), b.to(tl.uint32), (b >> 32).to(tl.uint32))
        words += (c.to(tl.uint32), (c >> 32).to(tl.uint32), skew.to(tl.int32))
        return words
    elif INTERPRETED:  # noqa: RET505
        word = line.to(tl.pointer_type(tl.uint32), bitcast=True)
        return tl.load(word), tl.load(word + 1), tl.load(word + 2), tl.load(word + 3)
    else:
        types: tl.constexpr = (tl.uint32, tl.uint32, tl.uint32, tl.uint32)
        return tl.inline_asm_elementwise(
            "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l", [line], types, False, 1
        )


@_device_function
def align_row(row):  # type: ignore[no-untyped-def]
    """The four words of an unaligned row."""
    a, b, c, d, e, f, skew = row
    off = skew > 3
    a, b, c = tl.where(off, b, a), tl.where(off, c, b), tl.where(off, d, c)
    d, e = tl.where(off, e, d), tl.where(off, f, e)
    selector = (0x3210 + 0x1111 * (skew & 3)).to(tl.uint32)
    return byte_perm(a, b, selector), byte_perm(b, c, selector), byte_perm(c, d, selector), byte_perm(d, e, selector)


@_device_function
def edge_selectors(last, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """For `clamp_columns`: which bytes of each word and of the one before continue a row after pixel `last`."""
    found: tl.tuple = ()
    for i in tl.static_range(count):
        selector = tl.zeros_like(last)
        for j in tl.static_range(4):
            selector |= tl.where(last < 4 * i + j, (last - 4 * i) & 7, j) << (4 * j)
        found += (selector.to(tl.uint32),)
    return found


@_device_function
def clamp_columns(words, selectors):  # type: ignore[no-untyped-def]
    """The same words, where after the last pixel of a row it comes twice more: further no level looks."""
    found: tl.tuple = ()
    for i in tl.static_range(len(words)):
        found += (byte_perm(words[i], words[i - 1 if i else 0], selectors[i]),)
    return found


@_device_function
def clamp_rows(current, below, last, row, h):  # type: ignore[no-untyped-def]
    """Two rows of a level, `row` the first of them and `current` the one before: those outside it are its border's."""
    first: tl.tuple = ()
    second: tl.tuple = ()
    for i in tl.static_range(len(current)):
        under = tl.where(row < h, below[i], current[i])
        lower = tl.where(row + 1 < h, last[i], under)
        first += (tl.where(row < 0, lower, under),)
        second += (lower,)
    return first, second


@_device_function
def downsample(row, next, carry, left, right):  # type: ignore[no-untyped-def]
    """Half as many words of the next level from two rows and the two before, and what these two will add to the next.

    Sixteen pixels are weighed four at once: two columns of two rows. Weights make 256, so that a mean is the upper byte
    of a sum with its half. `left` and `right` say where to take the column before a lane's first and after its last.
    """
    count: tl.constexpr = len(row)
    outer: tl.tuple = ()  # the last and the first column of each word
    for i in tl.static_range(count):
        outer += (byte_perm(row[i], next[i], 0x4073),)
    pairs: tl.tuple = (byte_perm(_shuffle(outer[count - 1], -1), outer[0], left),)  # columns -1 and 0, 1 and 2, ...
    for i in tl.static_range(count):
        pairs += (byte_perm(row[i], next[i], 0x6251),)
        if i + 1 < count:
            pairs += (byte_perm(outer[i], outer[i + 1], 0x7610),)
        else:
            pairs += (byte_perm(outer[i], _shuffle(outer[0], 1), right),)
    sums: tl.tuple = ()
    carried: tl.tuple = ()
    half = tl.full(row[0].shape, 128, tl.uint32)
    for i in tl.static_range(2 * count):
        sums += (_dp4a(pairs[i], 0x0C24040C, _dp4a(pairs[i + 1], 0x040C0C24, carry[i])),)
        carried += (_dp4a(pairs[i], 0x240C0C04, _dp4a(pairs[i + 1], 0x0C04240C, half)),)
    words: tl.tuple = ()
    if count == 1:
        words += (byte_perm(sums[0], sums[1], 0x3351),)
    for i in tl.static_range(count // 2):
        low, high = byte_perm(sums[4 * i], sums[4 * i + 1], 0x51), byte_perm(sums[4 * i + 2], sums[4 * i + 3], 0x51)
        words += (byte_perm(low, high, 0x5410),)
    return words, carried


@_device_function
def _pixel(words, i: tl.constexpr, dtype: tl.constexpr):  # type: ignore[no-untyped-def]
    """Pixel i of words as a float."""
    return ((words[i // 4] >> (8 * (i % 4))) & 255).to(tl.int32).to(tl.float32).to(dtype)


@_device_function
def store_row(level, y, words, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Writes `count` pixels of each lane into row y if it is one of the program's: 8 bits, or floats of that value.

    A level is where lanes begin, from row to row, which lanes write, and how many rows.
    """
    base, pitch, writes, num_rows = level
    y += (words[0] & 0).to(tl.int32)
    mask = writes & (y.to(tl.uint32) < num_rows.to(tl.uint32))
    if base.dtype.element_ty == tl.uint8:
        dtype: tl.constexpr = tl.uint64 if count == 8 else tl.uint32 if count == 4 else tl.uint16
        pixels = words[0].to(dtype)
        if count == 8:
            pixels |= words[1].to(dtype) << 32
        pointer = _row_pointer(base, y, pitch).to(tl.pointer_type(dtype), bitcast=True)
        tl.store(pointer, pixels, mask=mask, eviction_policy="evict_last")  # what is read next is to be in the cache
    elif base.dtype.element_ty.primitive_bitwidth == 16:  # as many as a lane can write at once
        pixels_per_store: tl.constexpr = 4 if count > 2 else 2
        store_type: tl.constexpr = tl.uint64 if pixels_per_store == 4 else tl.uint32
        pointer = base + y.to(tl.int64) * pitch
        for first in tl.static_range(0, count, pixels_per_store):
            floats = tl.zeros_like(words[0]).to(store_type)
            for i in tl.static_range(pixels_per_store):
                pixel = _pixel(words, first + i, base.dtype.element_ty).to(tl.uint16, bitcast=True)
                floats |= pixel.to(store_type) << (16 * i)
            tl.store((pointer + first).to(tl.pointer_type(store_type), bitcast=True), floats, mask=mask)
    else:
        for i in tl.static_range(count):
            tl.store(base + y.to(tl.int64) * pitch + i, _pixel(words, i, base.dtype.element_ty), mask=mask)
