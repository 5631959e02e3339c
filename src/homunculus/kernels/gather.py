"""Chosen cells as the input of a vision tower, in one launch: the Triton twin of `tokens.patches` and what follows it.

With levels that are made already it reads what was chosen and nothing else. Without, only those pieces of levels are
made that a chosen cell needs, and they are left where they are: nobody writes a whole pyramid.
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
from homunculus.kernels.gather_kernel import START_BIAS, START_UNIT, fractional_kernel, kernel

WORD_TYPES = {1: tl.uint8, 2: tl.uint16, 4: tl.uint32, 8: tl.uint64}  # words of so many pixels
MAX_WORDS = 128  # most of a program, of each channel: those of a cell of 32 pixels
WARPS, WARPS_MANY = 4, 1  # of a program: few are done sooner so, more than MANY_PROGRAMS all run at once so
MANY_PROGRAMS = 1024


class PatchLayout(NamedTuple):
    """How pixels come out: as [B, K, 3, cell, cell], or with `merge_size` in patches, as towers of Qwen read them.

    Blocks give [B K m m, 3 T p p] with m = merge_size, T = temporal_patch_size (copies of each patch) and p = cell / m.
    `table` [3, 256] says what each value of a channel becomes, in the type that comes out; without, pixels stay uint8.
    `affine` [3, 2], slopes and offsets, that gives the same to the bit spares the kernel the table.
    """

    table: Tensor | None = None
    merge_size: int = 0
    temporal_patch_size: int = 1
    affine: Tensor | None = None

    @classmethod
    def rounded(
        cls, table: Tensor, dtype: torch.dtype, merge_size: int = 0, temporal_patch_size: int = 1
    ) -> PatchLayout:
        """A table [3, 256] of any type rounded to this one, with slopes and offsets if these give all of it."""
        exact, values = table.double(), torch.arange(256, device=table.device).double()
        affine = torch.cat(((exact[:, 255:] - exact[:, :1]) / 255, exact[:, :1]), 1).float()
        by_affine = (values * affine[:, :1].double() + affine[:, 1:].double()).float()  # as the GPU does, rounded once
        rounded_table = table.to(dtype).contiguous()
        exact_affine = affine if torch.equal(by_affine.to(dtype), rounded_table) else None
        return cls(rounded_table, merge_size, temporal_patch_size, exact_affine)

    @classmethod
    def normalised(
        cls,
        dtype: torch.dtype,
        mean: Sequence[float],
        std: Sequence[float],
        merge_size: int = 0,
        temporal_patch_size: int = 1,
        device: torch.device | str = "cuda",
    ) -> PatchLayout:
        """(value / 255 - mean) / std."""
        centre, scale = torch.tensor(mean)[:, None], torch.tensor(std)[:, None]
        table = (torch.arange(256) / 255 - centre) / scale
        return cls.rounded(table.to(device), dtype, merge_size, temporal_patch_size)


class Cells(NamedTuple):
    """Chosen cells as a `Selection` has them: boxes [B, K, 4], levels [B, K], mask [B, K], sizes [B, 2]."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor
    sizes: Tensor


def gather(levels: Sequence[Tensor], cells: Cells, cell: int, layout: PatchLayout | None = None) -> Tensor:
    """Pixels of chosen cells from an image [B, 3, H, W] and the levels that `mip.build` made of it."""
    return _gather(levels, cells, cell, layout, cells_ready=False)


def _gather(levels: Sequence[Tensor], cells: Cells, cell: int, layout: PatchLayout | None, cells_ready: bool) -> Tensor:
    """`cells_ready`: cells were made before the kernel that made the levels began."""
    layout, image = layout or PatchLayout(), levels[0].contiguous()
    coarse = mip.levels_memory(levels)
    (batch, count), (height, width) = cells.mask.shape, image.shape[2:]
    merge_size, copies = (layout.merge_size, layout.temporal_patch_size) if layout.merge_size else (1, 1)
    p = cell // merge_size
    blocks = batch * count * merge_size**2, 3 * copies * p * p
    out_shape = blocks if layout.merge_size else (batch, count, 3, cell, cell)
    table = image if layout.table is None else layout.table.contiguous()
    out = torch.empty(out_shape, dtype=table.dtype, device=image.device)
    if not out.numel():
        return out
    *chosen, sizes = cells
    sizes = sizes if sizes.stride(1) == 1 else sizes.contiguous()  # images of one size may share it
    inputs = image, coarse, *(part.contiguous() for part in chosen), sizes, sizes.stride(0)
    strides = _starts(height, width, len(levels)), height, width, image[0].numel(), coarse.stride(0)
    shape = {"cell": cell, "merge_size": merge_size, "temporal_patch_size": copies}
    with torch.cuda.device_of(image):
        if cells.boxes.is_floating_point() or cells.levels.is_floating_point():
            block = triton.next_power_of_2(cell)
            fractional_kernel[count, batch, 3](*inputs, table, out, *strides, **shape, block=block, num_warps=4)
            return out
        pixels_per_store = math.gcd(p, max(WORD_TYPES), 16 // out.element_size())  # as many as one may write at once
        word_pixels = pixels_per_store if out.dtype == torch.uint8 else math.gcd(cell, max(WORD_TYPES))
        words = min(MAX_WORDS, triton.next_power_of_2(cell * cell // word_pixels))
        programs_per_cell = triton.cdiv(cell * cell // word_pixels, words)
        warps = WARPS if batch * count * programs_per_cell <= MANY_PROGRAMS else WARPS_MANY
        kernel[count, batch, programs_per_cell](
            *inputs, table if layout.affine is None else layout.affine, out, *strides, **shape,
            word_type=WORD_TYPES[word_pixels], words=words, pixels_per_store=pixels_per_store,
            use_affine=layout.affine is not None, cells_ready=cells_ready, num_warps=max(1, min(warps, words // 32)),
            **mip.launch_options(image.device),
        )  # fmt: skip
    return out


@cache
def _starts(height: int, width: int, count: int) -> tuple[int, ...]:
    """Where each level begins among those of its image. Triton compiles anew for 1 and for what 16 divides, so: odd."""
    places, _ = mip.level_places(height, width, 3, count - 1)
    starts = (place.start // START_UNIT.value + START_BIAS.value for place in places)
    return (START_BIAS.value, *starts)[:count]


def build_and_gather(image: Tensor, count: int, cells: Cells, cell: int, layout: PatchLayout | None = None) -> Tensor:
    """The same from the image [B, 3, H, W] alone: of its `count` levels only what these cells need is made."""
    image = image.contiguous()
    boxes, levels, mask, sizes = cells
    cells = Cells(boxes.contiguous(), levels.contiguous(), mask.contiguous(), sizes)
    built = mip.build(image, count - 1, chosen=mip.ChosenCells(*cells[:3]))
    return _gather([image, *built], cells, cell, layout, cells_ready=count > 1 and sizes.stride(1) == 1)
