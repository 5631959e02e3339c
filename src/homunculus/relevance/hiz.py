"""Hi-Z relevance: max-pooled over the tree, so that one look at the right level rules out a whole region."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.errors import InputError


class HiZ:
    """Largest relevance below every cell of the tree, for questions about regions.

    Shape:
        relevance [B, N] -> peak [B, N].
    """

    def __init__(self, tree: CellTree, relevance: Tensor) -> None:
        self.tree = tree.to(relevance.device)
        self.peak = self.tree.subtree_max(relevance)

    def bound(self, boxes: Tensor) -> Tensor:
        """No fine cell in a box is more relevant than this: boxes [B, R, 4] in pixels -> [B, R].

        Each box is looked up once, at the level where it touches at most 2 x 2 cells; one that touches more even at
        the roots gets the peak of the image. Cells that stick out of the box count too: the bound is never too low.
        """
        if boxes.ndim != 3 or boxes.shape[2] != 4 or len(boxes) != len(self.peak):
            raise InputError(f"boxes must be [{len(self.peak)}, R, 4], got {list(boxes.shape)}")
        level_of_box = self._level(boxes)
        bounds = self.peak.amax(1, keepdim=True).expand(boxes.shape[:2])
        for l in range(self.tree.levels):  # a handful; every box takes part at its own level only
            bounds = torch.where(level_of_box == l, self._corners(boxes, l), bounds)
        return bounds

    def prune(self, threshold: float | Tensor) -> Tensor:
        """Cells in whose whole subtree nothing reaches the threshold (a number or [B, 1]): they need no second look."""
        return (self.peak < threshold) & self.tree.valid

    def _level(self, boxes: Tensor) -> Tensor:
        """The finest level at which a box touches at most two cells along each side; -1 where there is none. [B, R]"""
        level = torch.full(boxes.shape[:2], -1, device=boxes.device)
        for l in reversed(range(self.tree.levels)):
            low, high = self._cells(boxes, l)
            level = torch.where((high - low <= 1).all(2), l, level)
        return level

    def _cells(self, boxes: Tensor, level: int) -> tuple[Tensor, Tensor]:
        """First and last (x, y) cell that each box touches. [B, R, 2]"""
        span = self.tree.cell << level
        rows, columns = self.tree.shapes[level]
        last = torch.tensor([columns, rows], device=boxes.device) - 1
        low = torch.minimum((boxes[..., :2] // span).long().clamp(min=0), last)
        high = torch.minimum((torch.ceil(boxes[..., 2:] / span).long() - 1).clamp(min=0), last)
        return low, torch.maximum(low, high)

    def _corners(self, boxes: Tensor, level: int) -> Tensor:
        low, high = self._cells(boxes, level)
        columns, start = self.tree.shapes[level][1], self.tree.offsets[level]
        corners = [(x, y) for x in (low[..., 0], high[..., 0]) for y in (low[..., 1], high[..., 1])]
        return torch.stack([self.peak.gather(1, start + y * columns + x) for x, y in corners]).amax(0)
