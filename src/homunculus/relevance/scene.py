"""What is known of an image before any model looks at it: its levels, and what each cell holds of every band.

One pass over the pixels of each level, in strips of rows, so that the largest image never has a float copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.pyramid import double, gaussian

STRIP = 1 << 20  # pixels worked on at a time
LUMINANCE = (0.299, 0.587, 0.114)
GREYS, STEPS = (
    16,
    17,
)  # bins of the two histograms: 16 greys, and the logarithm of a band's value either side of 0


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
        return self._accumulate(self.bands.energy[..., None])[..., 0]

    def lost_along(self, orientations: int = 4) -> Tensor:
        """The same by orientation of the detail, 0 for horizontal. [B, N, O]"""
        return self._accumulate(self.bands.along(orientations))

    def _accumulate(self, energy: Tensor) -> Tensor:
        """Sum over all finer bands inside each cell, per pixel of the image: energy [B, N, C] -> [B, N, C]."""
        tree = self.tree
        lost = [torch.zeros_like(tree.grid(energy, 0))]
        for l in range(1, tree.levels):
            (rows, columns), (h, w) = tree.shapes[l], tree.shapes[l - 1]
            finer = lost[-1] + tree.grid(energy, l - 1) * 4.0 ** (l - 1)
            even = F.pad(finer, (0, 0, 0, 2 * columns - w, 0, 2 * rows - h))
            lost.append(even.unflatten(2, (columns, 2)).unflatten(1, (rows, 2)).sum((2, 4)))
        return torch.cat([m.flatten(1, 2) for m in reversed(lost)], 1)


def _measure(level: Tensor, coarser: Tensor, cell: int) -> tuple[Tensor, ...]:
    """The entries of Bands for one level: uint8 [B, 3, h, w] and the next coarser one -> [B, cells(, 3)] each."""
    strips = []
    for top, bottom in _strips(level, cell):
        grey = _luminance(level[..., top : bottom + 1, :])  # [B, rows (+ 1), w]; one more row for the gradient
        band = grey[:, : bottom - top] - _doubled_rows(coarser, top, bottom, level.shape[-1])
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
    """Rows from, to of strips that hold whole cells."""
    height = level.shape[-2]
    rows = max(1, STRIP // (level.shape[0] * level.shape[-1] * cell)) * cell
    return ((top, min(top + rows, height)) for top in range(0, height, rows))


def _luminance(pixels: Tensor) -> Tensor:
    red, green, blue = pixels.float().unbind(1)
    return red * LUMINANCE[0] + green * LUMINANCE[1] + blue * LUMINANCE[2]


def _doubled_rows(coarser: Tensor, top: int, bottom: int, width: int) -> Tensor:
    """Rows top to bottom of the coarser level's luminance at twice its size. [B, rows, width]"""
    low, high = (
        max(top // 2 - 1, 0),
        min(-(-bottom // 2) + 1, coarser.shape[-2]),
    )  # bilinear looks one row further
    grey = _luminance(coarser[..., low:high, :])
    up = double(grey, (2 * grey.shape[1], 2 * grey.shape[2]))
    return up[:, top - 2 * low : bottom - 2 * low, :width]


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
