"""The kernels of `gather`: pixels of chosen cells, normalised, in the layout of a vision tower.

A lane takes up to eight pixels of a row at once, of all three channels, and writes them as they lie together in the
result. That is one word where cells begin at words and lie in their image, as most of a tree do; two words and a shift
where they do not.
"""

from __future__ import annotations

import triton
import triton.language as tl

from homunculus.kernels.warp import pitch_of

START_BIAS, START_UNIT = tl.constexpr(3), tl.constexpr(4)  # starts of levels are given in fours, as odd numbers
TAPS = tl.constexpr(8)  # pixels of the finer level, each way, that one between levels weighs
UNSPECIALIZED = ["sizes_stride", "height", "width", "image_stride", "coarse_stride"]


@triton.jit
def _antialias_weight(u, index, scale):  # type: ignore[no-untyped-def]
    """Weight of pixel `index` in pixel u of the image scaled down by 1 to 2, antialiased."""
    middle = scale * (u + 0.5)
    begin, end = (middle - scale + 0.5).to(tl.int32), (middle + scale + 0.5).to(tl.int32)
    begin, total = tl.maximum(begin, 0), tl.zeros_like(middle)
    for tap in tl.static_range(5):
        weight = tl.maximum(1 - tl.abs((begin + tap - middle + 0.5) / scale), 0.0)
        total += tl.where(begin + tap < end, weight, 0.0)
    weight = tl.maximum(1 - tl.abs((index - middle + 0.5) / scale), 0.0)
    return tl.where((index >= begin) & (index < end), weight / total, 0.0)


@triton.jit
def _blended_weight(origin, step, tap, scale, size):  # type: ignore[no-untyped-def]
    """Which pixel a tap is, for those `step` from an origin between scaled pixels, and its weight."""
    whole = tl.floor(origin + 1e-6)
    blend = tl.minimum(tl.maximum(origin - whole, 0.0), 1.0).to(tl.float32)
    near, far = tl.minimum(whole.to(tl.int32) + step, size - 1), tl.minimum(whole.to(tl.int32) + step + 1, size - 1)
    index = tl.maximum((scale * (near + 0.5) - scale + 0.5).to(tl.int32), 0) + tap
    return index, _antialias_weight(near, index, scale) * (1 - blend) + _antialias_weight(far, index, scale) * blend


@triton.jit
def _sample(  # type: ignore[no-untyped-def]
    plane, pitch, last_x, last_y, x, y, fractional_level, level, h, w, mask, block: tl.constexpr
):  # fmt: skip
    """Pixels of a cell that lies between levels or between pixels, antialiased from the finer level."""
    i, j = tl.arange(0, block)[:, None], tl.arange(0, block)[None]
    side, scale = tl.exp2(fractional_level.to(tl.float64)), tl.exp2((fractional_level - level).to(tl.float32))
    rows, columns = tl.ceil(h / side - 1e-6).to(tl.int32), tl.ceil(w / side - 1e-6).to(tl.int32)
    value = tl.zeros((block, block), tl.float32)
    for down in range(TAPS):
        row, row_weight = _blended_weight(y / side, i, down, scale, rows)
        row_start = plane + tl.minimum(row, last_y).to(tl.int64) * pitch
        for across in range(TAPS):
            column, column_weight = _blended_weight(x / side, j, across, scale, columns)
            pixel = tl.load(row_start + tl.minimum(column, last_x), mask=mask, other=0)
            value += row_weight * column_weight * pixel.to(tl.float32)
    return value


@triton.jit
def _level_size(size, level):  # type: ignore[no-untyped-def]
    """Pixels of a level along a side of an image."""
    return (size + (1 << level) - 1) >> level


@triton.jit
def _level_plane(image, coarse, starts, b, level, height, width, image_stride, coarse_stride):  # type: ignore[no-untyped-def]
    """Where a level of image b begins, and how far it is from row to row and from channel to channel."""
    start = tl.zeros_like(level)
    for l in tl.static_range(1, len(starts)):
        start = tl.where(level == l, starts[l] - START_BIAS, start)
    pitch = tl.where(level > 0, pitch_of(_level_size(width, level)), width)
    first, others = image.to(tl.int64, bitcast=True), coarse.to(tl.int64, bitcast=True)
    first, others = first + b * image_stride, others + b * coarse_stride
    pointer = tl.where(level > 0, others, first) + start.to(tl.int64) * START_UNIT
    return pointer.to(image.dtype, bitcast=True), pitch, _level_size(height, level).to(tl.int64) * pitch


@triton.jit
def _load_word(row_start, mask, word_type: tl.constexpr):  # type: ignore[no-untyped-def]
    """As many pixels as a word has bytes, from where one begins."""
    return tl.load(row_start.to(tl.pointer_type(word_type), bitcast=True), mask=mask, other=0)


@triton.jit
def _load_unaligned(row_start, index, last, mask, word_type: tl.constexpr):  # type: ignore[no-untyped-def]
    """As many pixels from column `index` of a row that begins anywhere and beyond its last pixel goes on as that."""
    word_pixels: tl.constexpr = word_type.primitive_bitwidth // 8
    size: tl.constexpr = 8 if word_pixels == 8 else 4
    wide: tl.constexpr = tl.uint64 if word_pixels == 8 else tl.uint32
    first = tl.maximum(tl.minimum(index, last - word_pixels + 1), 0)
    skip = tl.minimum(index, last) - first
    last_byte = tl.minimum(last - first, word_pixels - 1)  # of those from `first` on that count
    row_start += first
    skew = (row_start.to(tl.int64, bitcast=True) & (word_pixels - 1)).to(tl.int32)
    row_start -= skew
    this = _load_word(row_start, mask, word_type).to(wide)
    next = _load_word(row_start + word_pixels, mask & (skew + last_byte >= word_pixels), word_type).to(wide)
    word = (this >> (8 * skew).to(wide)) | ((next << (8 * (word_pixels - 1 - skew)).to(wide)) << 8)
    edge = ((word >> (8 * last_byte).to(wide)) & 255) * (0x0101010101010101 if word_pixels == 8 else 0x01010101)
    last_byte, word = last_byte - skip, word >> (8 * skip).to(wide)
    spare = (8 * (size - 1 - last_byte)).to(wide)
    return (((word << spare) >> spare) | ((edge << (8 * last_byte).to(wide)) << 8)).to(word_type)


@triton.jit
def _normalize(  # type: ignore[no-untyped-def]
    table, word, channel: tl.constexpr, part: tl.constexpr, pixels_per_store: tl.constexpr, affine_type: tl.constexpr
):  # fmt: skip
    """Pixels of each word, [words, pixels_per_store], by a table or, given `affine_type`, a slope and an offset."""
    pixel = word[:, None] >> (8 * (part * pixels_per_store + tl.arange(0, pixels_per_store)[None])).to(word.dtype)
    pixel = (pixel & 255).to(tl.int32)
    if affine_type is None:
        return tl.load(table + 256 * channel + pixel)
    else:  # noqa: RET505
        slope, offset = tl.load(table + 2 * channel), tl.load(table + 2 * channel + 1)
        return tl.fma(pixel.to(tl.float32), slope, offset).to(affine_type)


@triton.jit
def _store(  # type: ignore[no-untyped-def]
    out, index, inside, red, green, blue, temporal_patch_size: tl.constexpr, patch_area: tl.constexpr
):  # fmt: skip
    """Three channels, each `temporal_patch_size` times."""
    for n in tl.static_range(3 * temporal_patch_size):
        value = red if n < temporal_patch_size else green if n < 2 * temporal_patch_size else blue
        pointer = (out + index + n * patch_area).to(tl.pointer_type(value.dtype), bitcast=True)
        tl.store(pointer, value, mask=inside)


@triton.jit(do_not_specialize=UNSPECIALIZED)  # type: ignore[untyped-decorator]
def kernel(  # type: ignore[no-untyped-def]
    image, coarse, boxes, levels, cell_mask, sizes, sizes_stride, table, out, starts, height, width, image_stride,
    coarse_stride,
    cell: tl.constexpr, merge_size: tl.constexpr, temporal_patch_size: tl.constexpr, word_type: tl.constexpr,
    words: tl.constexpr, pixels_per_store: tl.constexpr, use_affine: tl.constexpr, pdl: tl.constexpr,
    cells_ready: tl.constexpr,
):  # fmt: skip
    """One program writes so many words of pixels of each channel of a cell, `pixels_per_store` at once."""
    b = tl.program_id(1)
    slot = b * tl.num_programs(0) + tl.program_id(0)
    if pdl and not cells_ready:
        tl.extra.cuda.gdc_wait()
    level = tl.load(levels + slot).to(tl.int32)
    x, y = tl.load(boxes + 4 * slot).to(tl.int32) >> level, tl.load(boxes + 4 * slot + 1).to(tl.int32) >> level
    sizes += sizes_stride * b  # of this image; those of the batch may be larger
    bottom = _level_size(tl.load(sizes).to(tl.int32), level) - 1
    last = _level_size(tl.load(sizes + 1).to(tl.int32), level) - 1
    valid = tl.load(cell_mask + slot) != 0
    plane, pitch, channel = _level_plane(
        image, coarse, starts, b.to(tl.int64), level, height, width, image_stride, coarse_stride
    )

    word_pixels: tl.constexpr = word_type.primitive_bitwidth // 8
    words_per_row: tl.constexpr = cell // word_pixels
    n = tl.arange(0, words)
    if words < cell * words_per_row:
        n += words * tl.program_id(2)
    i, j = n // words_per_row, n % words_per_row * word_pixels
    inside = i < cell
    mask, row_start = inside & valid, plane + tl.minimum(y + i, bottom).to(tl.int64) * pitch
    if pdl:
        if cells_ready:  # before the levels
            tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    if (x + cell - 1 <= last) & (((plane.to(tl.int64, bitcast=True) | pitch | x) & (word_pixels - 1)) == 0):
        row_start += x + j
        red, green = _load_word(row_start, mask, word_type), _load_word(row_start + channel, mask, word_type)
        blue = _load_word(row_start + 2 * channel, mask, word_type)
    else:
        red = _load_unaligned(row_start, x + j, last, mask, word_type)
        green = _load_unaligned(row_start + channel, x + j, last, mask, word_type)
        blue = _load_unaligned(row_start + 2 * channel, x + j, last, mask, word_type)

    p: tl.constexpr = cell // merge_size
    affine_type: tl.constexpr = out.dtype.element_ty if use_affine else None
    out += slot.to(tl.int64) * (3 * temporal_patch_size * cell * cell)
    for part in tl.static_range(word_pixels // pixels_per_store):
        index = j + part * pixels_per_store
        index = (i // p * merge_size + index // p) * (3 * temporal_patch_size * p * p) + i % p * p + index % p
        if out.dtype.element_ty == tl.uint8:
            _store(out, index, inside, red, green, blue, temporal_patch_size, p * p)
        else:  # all is looked up before any of it is written, so that nothing waits for it twice
            red_out = _normalize(table, red, 0, part, pixels_per_store, affine_type)
            green_out = _normalize(table, green, 1, part, pixels_per_store, affine_type)
            blue_out = _normalize(table, blue, 2, part, pixels_per_store, affine_type)
            index = index[:, None] + tl.arange(0, pixels_per_store)[None]
            _store(out, index, inside[:, None], red_out, green_out, blue_out, temporal_patch_size, p * p)


@triton.jit(do_not_specialize=UNSPECIALIZED)  # type: ignore[untyped-decorator]
def fractional_kernel(  # type: ignore[no-untyped-def]
    image, coarse, boxes, levels, cell_mask, sizes, sizes_stride, table, out, starts, height, width, image_stride,
    coarse_stride,
    cell: tl.constexpr, merge_size: tl.constexpr, temporal_patch_size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """One program writes a channel of a cell that may lie between levels and between pixels."""
    b, c = tl.program_id(1), tl.program_id(2)
    slot = b * tl.num_programs(0) + tl.program_id(0)
    fractional_level = tl.load(levels + slot)
    level = fractional_level.to(tl.int32)
    x, y = tl.load(boxes + 4 * slot), tl.load(boxes + 4 * slot + 1)
    h, w = tl.load(sizes + sizes_stride * b), tl.load(sizes + sizes_stride * b + 1)
    plane, pitch, channel = _level_plane(
        image, coarse, starts, b.to(tl.int64), level, height, width, image_stride, coarse_stride
    )
    i, j = tl.arange(0, block)[:, None], tl.arange(0, block)[None]
    inside = (i < cell) & (j < cell)
    mask = inside & (tl.load(cell_mask + slot) != 0)
    right, bottom = _level_size(width, level) - 1, _level_size(height, level) - 1
    value = _sample(plane + c * channel, pitch, right, bottom, x, y, fractional_level, level, h, w, mask, block)
    value = (value + 0.5).to(tl.uint8)
    if out.dtype.element_ty != tl.uint8:
        value = tl.load(table + c * 256 + value.to(tl.int32))
    p: tl.constexpr = cell // merge_size
    index = (i // p * merge_size + j // p) * (3 * temporal_patch_size * p * p) + i % p * p + j % p
    out += slot.to(tl.int64) * (3 * temporal_patch_size * cell * cell) + c * (temporal_patch_size * p * p)
    for time in tl.static_range(temporal_patch_size):
        tl.store(out + index + time * p * p, value, mask=inside)
