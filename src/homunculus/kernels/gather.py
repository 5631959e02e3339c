"""Chosen cells as a vision tower wants them, in one launch: the Triton twin of `tokens.patches` and what follows it.

With levels that are there already it reads what was chosen and nothing else. Without, only those pieces of levels are
made that a chosen cell needs, and they are left where they are: nobody writes a whole pyramid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from homunculus.kernels import mip

TAPS = tl.constexpr(8)  # pixels of the finer level, each way, that one between levels weighs


class Layout(NamedTuple):
    """How pixels come out: as [B, K, 3, cell, cell], or with `merge` as towers of Qwen read them, in patches of blocks.

    Blocks give [B K merge merge, 3 times p p] with p = cell / merge, each patch `times` over. `colours` [3, 256] says
    what each value of a channel becomes, in the type that comes out; without, pixels stay uint8.
    """

    colours: Tensor | None = None
    merge: int = 0
    times: int = 1

    @classmethod
    def normalised(
        cls,
        dtype: torch.dtype,
        mean: Sequence[float],
        deviation: Sequence[float],
        merge: int = 0,
        times: int = 1,
        device: torch.device | str = "cuda",
    ) -> Layout:
        """(value / 255 - mean) / deviation."""
        middle, spread = torch.tensor(mean)[:, None], torch.tensor(deviation)[:, None]
        colours = (torch.arange(256) / 255 - middle) / spread
        return cls(colours.to(device, dtype), merge, times)


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


@triton.jit(do_not_specialize=["many", "height", "width", "total"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    image, rest, boxes, levels, mask, sizes, colours, out, many, height, width, total,
    cell: tl.constexpr, room: tl.constexpr, count: tl.constexpr, between: tl.constexpr, merge: tl.constexpr,
    times: tl.constexpr,
):  # fmt: skip
    """One program writes a channel of a cell."""
    spot, c = tl.program_id(0), tl.program_id(1)
    b = (spot // many).to(tl.int64)
    fine = tl.load(levels + spot)
    level = fine.to(tl.int32)
    x0, y0 = tl.load(boxes + 4 * spot), tl.load(boxes + 4 * spot + 1)
    h, w = tl.load(sizes + 2 * b), tl.load(sizes + 2 * b + 1)  # of this image; those of the batch may be larger
    tall, wide = height + 0, width + 0
    start, begin, pitch = tl.zeros((), tl.int64), tl.zeros((), tl.int64), wide + 0
    for l in tl.static_range(1, count):
        tall, wide = (tall + 1) // 2, (wide + 1) // 2
        padded = (wide + 7) // 8 * 8
        begin, pitch = tl.where(level == l, start, begin), tl.where(level == l, padded, pitch)
        start += 3 * tall.to(tl.int64) * padded
    tall, wide = (height + (1 << level) - 1) >> level, (width + (1 << level) - 1) >> level
    plane = image + b * 3 * height * width
    if level > 0:
        plane = rest + b * total + begin
    plane += c * tall.to(tl.int64) * pitch
    i, j = tl.arange(0, room)[:, None], tl.arange(0, room)[None]
    inside = (i < cell) & (j < cell)
    there = inside & (tl.load(mask + spot) != 0)
    if between:
        value = (_sampled(plane, pitch, wide - 1, tall - 1, x0, y0, fine, level, h, w, there, room) + 0.5).to(tl.uint8)
    else:
        x = tl.minimum((x0 >> level) + j, ((w + (1 << level) - 1) >> level) - 1)
        y = tl.minimum((y0 >> level) + i, ((h + (1 << level) - 1) >> level) - 1)
        value = tl.load(plane + y * pitch + x, mask=there, other=0)
    if out.dtype.element_ty != tl.uint8:
        value = tl.load(colours + c * 256 + value.to(tl.int32))
    spot = spot.to(tl.int64)
    if merge == 0:
        tl.store(out + ((spot * 3 + c) * cell + i) * cell + j, value, mask=inside)
    else:
        p: tl.constexpr = cell // merge
        patch = (spot * merge + i // p) * merge + j // p
        for time in tl.static_range(times):
            tl.store(out + (((patch * 3 + c) * times + time) * p + i % p) * p + j % p, value, mask=inside)


# ---- calls --------------------------------------------------------------------------------------------------------


class Cells(NamedTuple):
    """Chosen cells as a `Selection` has them: boxes [B, K, 4], levels [B, K], mask [B, K], sizes [B, 2]."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor
    sizes: Tensor


def gather(levels: Sequence[Tensor], cells: Cells, cell: int, layout: Layout | None = None) -> Tensor:
    """Pixels of chosen cells from an image [B, 3, H, W] and the levels that `mip.build` made of it."""
    layout, image = layout or Layout(), levels[0].contiguous()
    rest = mip.rest_of(levels)
    (batch, many), (height, width) = cells.mask.shape, image.shape[2:]
    between = cells.boxes.is_floating_point() or cells.levels.is_floating_point()
    p = cell // layout.merge if layout.merge else cell
    shape = (batch * many * layout.merge**2, 3 * layout.times * p * p) if layout.merge else (batch, many, 3, cell, cell)
    colours = image if layout.colours is None else layout.colours.contiguous()
    out = torch.empty(shape, dtype=colours.dtype, device=image.device)
    if out.numel():
        with torch.cuda.device_of(image):
            _kernel[(batch * many, 3)](
                image, rest, *(part.contiguous() for part in cells), colours, out, many, height, width, rest.stride(0),
                cell=cell, room=triton.next_power_of_2(cell), count=len(levels),
                between=between, merge=layout.merge, times=layout.times,
            )  # fmt: skip
    return out


def touched(image: Tensor, count: int, cells: Cells, cell: int, layout: Layout | None = None) -> Tensor:
    """The same from the image [B, 3, H, W] alone: of its `count` levels only what these cells need is made."""
    image = image.contiguous()
    levels = [image, *mip.build(image, count - 1, chosen=mip.Chosen(cells.boxes, cells.levels, cells.mask))]
    return gather(levels, cells, cell, layout)
