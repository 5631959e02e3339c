"""What is known of an image before any model looks at it: its levels, and what each cell holds of every band.

One pass over the pixels of each level, in strips of rows, so that the largest image never has a float copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.kernels.dispatch import use_triton
from homunculus.pyramid import gaussian

STRIP = 1 << 18  # pixels worked on at a time: their floats stay in cache
LUMINANCE = (0.299, 0.587, 0.114)
GREYS, STEPS = (16, 17)  # bins of the two histograms: 16 greys, and the logarithm of a band's value either side of 0


@dataclass(frozen=True, eq=False)
class Bands:
    """Per cell, from the pixels of its own level: all float32, energies in squared grey levels (0..255).

    Shape:
        energy [B, N] mean square of the Laplacian band; tensor [B, N, 3] mean of gx^2, gy^2 and gx gy;
        colour [B, N, 3] mean red, green, blue; greys, steps [B, N] entropy in bits of the pixels and of the band.
    """

    energy: Tensor
    tensor: Tensor
    colour: Tensor
    greys: Tensor
    steps: Tensor

    def along(self, orientations: int) -> Tensor:
        """Energy of the detail that runs at 0, 180/O, ... degrees, counter-clockwise from horizontal. [B, N, O]

        The gradient of a line stands across it; the first derivative is steerable, so three means give all angles.
        """
        turn = torch.arange(orientations, device=self.tensor.device) * (math.pi / orientations)
        steer = torch.stack((turn.sin() ** 2, turn.cos() ** 2, 2 * turn.sin() * turn.cos()))  # [3, O]
        return (self.tensor @ steer).clamp(min=0)


class Scene:
    """A batch of images of one size with their tree; levels and bands are made when first asked for, and kept."""

    def __init__(self, pixels: Tensor, tree: CellTree) -> None:
        if pixels.dtype != torch.uint8 or pixels.ndim != 4 or pixels.shape[1] != 3:
            raise InputError(f"pixels must be uint8 [B, 3, H, W], got {pixels.dtype} {list(pixels.shape)}")
        if tree.rows != 1 or tuple(pixels.shape[2:]) != (tree.height, tree.width):
            raise InputError(f"the tree must be that of one {pixels.shape[2]} x {pixels.shape[3]} image, got {tree!r}")
        self.pixels, self.tree = pixels, tree.to(pixels.device)
        self.segments: dict[Any, Tensor] = {}  # of the first image, by segmenter
        self.lines: dict[Any, list[Tensor]] = {}  # [n, 5] of each image, by line finder
        self.features: dict[Any, Any] = {}  # what a scout has made of the images, by scout

    @cached_property
    def levels(self) -> list[Tensor]:
        """The Gaussian pyramid, finest first: uint8 [B, 3, h, w] each, one for every level of the tree."""
        return gaussian(self.pixels, self.tree.levels)

    @cached_property
    def bands(self) -> Bands:
        """What each cell holds of the band of its own level."""
        levels = gaussian(self.levels[-1], 2)  # the coarsest level needs one below it to have a band
        levels = [*self.levels, levels[1]]
        per_level = [_measure(levels[l], levels[l + 1], self.tree.cell) for l in reversed(range(self.tree.levels))]
        return Bands(*(torch.cat(parts, 1) for parts in zip(*per_level, strict=True)))

    @cached_property
    def lost(self) -> Tensor:
        """Energy that each cell would lose if it were left as coarse as it is: of all finer bands in it. [B, N]"""
        tree = self.tree
        if "bands" in self.__dict__:
            energies = [tree.grid(self.bands.energy, l) for l in range(tree.levels - 1)]
        else:  # a light pass: the other bands take many times longer
            energies = [energy(fine, coarser, tree.cell) for fine, coarser in pairwise(self.levels)]
        return self._accumulate([e[:, None] for e in energies], 1)[:, 0]

    def lost_along(self, orientations: int = 4) -> Tensor:
        """The same by orientation of the detail, 0 for horizontal. [B, N, O]"""
        along = self.bands.along(orientations)
        energies = [self.tree.grid(along, l).movedim(3, 1) for l in range(self.tree.levels - 1)]
        return self._accumulate(energies, orientations).transpose(1, 2)

    def _accumulate(self, energies: Sequence[Tensor], channels: int) -> Tensor:
        """Sum over all finer bands inside each cell, per pixel of the image, from those of all levels but the coarsest.

        Shape:
            energies [B, C, rows, columns] each, finest first -> [B, C, N].
        """
        size = (len(self.pixels), channels, *self.tree.shapes[0])
        lost = [torch.zeros(size, device=self.pixels.device)]
        for l, band in enumerate(energies):
            finer = lost[-1].add(band, alpha=4.0**l)
            lost.append(F.avg_pool2d(finer, 2, ceil_mode=True, divisor_override=1))  # the sum of up to four
        return torch.cat([m.flatten(2) for m in reversed(lost)], 2)


def energy(level: Tensor, coarser: Tensor, cell: int) -> Tensor:
    """Bands.energy alone, for one level: uint8 [B, 3, h, w] and the next coarser one -> [B, rows, columns]."""
    if use_triton(level):
        from homunculus.kernels import band_energy

        if cell in band_energy.CELLS:
            return band_energy.energy(level, coarser, cell, LUMINANCE)
    strips = []
    for top, bottom in _strips(level, cell):
        squares = _band(_luminance(level[..., top:bottom, :]), coarser, top).square_()  # [B, rows, w]
        down = squares.unflatten(1, (-1, min(cell, bottom - top))).mean(2)  # rows first: pooling both ways is slow
        strips.append(F.avg_pool1d(down, cell, ceil_mode=True))  # [B, rows / cell, w / cell]
    return torch.cat(strips, 1)


def _measure(level: Tensor, coarser: Tensor, cell: int) -> tuple[Tensor, ...]:
    """The entries of Bands for one level: uint8 [B, 3, h, w] and the next coarser one -> [B, cells(, 3)] each."""
    strips = []
    for top, bottom in _strips(level, cell):
        grey = _luminance(level[..., top : bottom + 1, :])  # [B, rows (+ 1), w]; one more row for the gradient
        band = _band(grey[:, : bottom - top], coarser, top)
        gx = F.pad(grey[:, : bottom - top].diff(dim=2), (0, 1))
        gy = F.pad(grey.diff(dim=1), (0, 0, 0, bottom - top - grey.shape[1] + 1))
        planes = torch.stack((band.square(), gx.square(), gy.square(), gx * gy), 1)  # [B, 4, rows, w]
        planes = torch.cat((planes, level[..., top:bottom, :].float()), 1)
        means = F.avg_pool2d(
            planes, cell, ceil_mode=True
        )  # [B, 7, rows / cell, w / cell]; border cells count what is there
        greys = _entropy((level[:, 1, top:bottom] >> 4).long(), GREYS, cell)
        step = band.abs().add_(1).log2_().long()  # 0..8
        steps = _entropy(torch.where(band < 0, -step, step) + STEPS // 2, STEPS, cell)
        strips.append(torch.cat((means, greys[:, None], steps[:, None]), 1))
    cells = torch.cat(strips, 2).flatten(2).transpose(1, 2)  # [B, cells, 9]
    return cells[..., 0], cells[..., 1:4], cells[..., 4:7], cells[..., 7], cells[..., 8]


def _strips(level: Tensor, cell: int) -> Iterator[tuple[int, int]]:
    """Rows from, to of strips that hold whole cells; those that the border cuts off are a strip of their own."""
    height = level.shape[-2]
    whole = height - height % cell
    strip = STRIP if level.device.type == "cpu" else 16 * STRIP  # a GPU waits for launches, not for cache
    rows = max(1, strip // (level.shape[0] * level.shape[-1] * cell)) * cell
    return pairwise(sorted({*range(0, whole, rows), whole, height}))


def _luminance(pixels: Tensor) -> Tensor:
    red, green, blue = pixels.float().unbind(1)
    return red.mul(LUMINANCE[0]).add_(green, alpha=LUMINANCE[1]).add_(blue, alpha=LUMINANCE[2])


def _band(grey: Tensor, coarser: Tensor, top: int) -> Tensor:
    """Luminance of a level's rows from top on, [B, rows, w], without the coarser level's at twice its size.

    That is `pyramid.double`, one axis after the other: half the work.
    """
    bottom, last = top + grey.shape[1], coarser.shape[-2] - 1
    row = torch.arange(top, bottom, device=grey.device)
    near, far = row // 2, (row // 2 + row % 2 * 2 - 1).clamp(0, last)
    low, high = max(top // 2 - 1, 0), min(bottom // 2, last)
    wide = F.interpolate(_luminance(coarser[..., low : high + 1, :]), scale_factor=2, mode="linear")
    wide = wide[..., : grey.shape[2]]  # [B, rows / 2 (+ 2), w]
    near, far = (wide.index_select(1, rows - low) for rows in (near, far))
    return grey.sub(near, alpha=0.75).sub_(far, alpha=0.25)


def _entropy(bins: Tensor, count: int, cell: int) -> Tensor:
    """Entropy in bits of the bins that each cell's pixels fall into: [B, rows, w] -> [B, rows / cell, w / cell]."""
    B, height, width = bins.shape
    rows, columns = -(-height // cell), -(-width // cell)
    image = torch.arange(B, device=bins.device)[:, None, None] * rows
    down = (torch.arange(height, device=bins.device) // cell)[:, None]
    across = torch.arange(width, device=bins.device) // cell
    place = ((image + down) * columns + across) * count + bins
    histogram = place.flatten().bincount(minlength=B * rows * columns * count).view(B, rows, columns, count).float()
    share = histogram / histogram.sum(3, keepdim=True)
    return -torch.xlogy(share, share).sum(3) / math.log(2)
