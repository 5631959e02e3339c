"""What all allocators share: the request, choosing the best, filling up to the budget, an exact order.

A rule is a function `rule(request, **options) -> mask [B, N]` with exactly `request.quota` cells a row (or a Selection
when it leaves the tree, or the indices [B, max_count] that a kernel found), or that gives a Ranking for the cut.
Everything here has static shapes, no loop over cells or images, and breaks ties in tree order, so that a row comes out
the same alone, in a batch, and in a bucket of images of other sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.errors import InputError, shown
from homunculus.fixation import eccentricity
from homunculus.kernels.dispatch import capturing

LONG = 2**16  # cells


@dataclass(frozen=True, eq=False)
class Request:
    """What a rule gets: checked, on one device, relevance in float64.

    Shape:
        relevance [B, N]; fixation [B, F, 2] in pixels; budget as asked for; finest: the level of the tree's finest
        cells as seen from the page's own tree, above 0 where they are larger, see `scales`.
    """

    tree: CellTree
    relevance: Tensor
    fixation: Tensor
    budget: int
    finest: float = 0.0

    @cached_property
    def weight(self) -> Tensor:
        """The relevance as a factor: what is below zero counts as nothing. [B, N]"""
        return self.relevance.clamp(min=0)

    @property
    def max_count(self) -> int:
        """The longest row of the selection."""
        return min(self.budget, max(self.tree.counts))

    @cached_property
    def quota(self) -> Tensor:
        """How many cells each image gets: the budget, or all that it has. [B, 1]"""
        counts = self.tree.layout("counts", lambda: torch.tensor(self.tree.counts, device=self.tree.device))
        return counts.clamp(max=self.budget)[:, None].expand(len(self.relevance), 1)

    # -- a row is an image, except in a forest, where one row holds the cells of all images ----------------------

    @property
    def images(self) -> int:
        """How many images there are."""
        return len(self.relevance)

    @property
    def image(self) -> Tensor:
        """Of which image each cell is. [B, 1], in a forest [1, N]"""
        return torch.arange(self.images, device=self.tree.device)[:, None]

    def by_tree(self, make: Callable[[CellTree, range], Tensor]) -> Tensor:
        """A value for each cell [B, N] from `make(tree, images)`, which gives them for images that share a tree."""
        return make(self.tree, range(self.images))

    def eccentricity(self, degrees: float) -> Tensor:
        """Distance of each cell from the nearest fixation in its image, in degrees. float64 [B, N]"""
        return eccentricity(self.tree, self.fixation, degrees)


def best(score: Tensor, count: Tensor, among: Tensor, max_count: int) -> Tensor:
    """Mask of the `count` [B, 1] highest scores among the allowed cells; ties go to the first in tree order.

    `max_count` bounds count from above. Rows with fewer allowed cells than asked for give all of them.
    """
    score = torch.where(among, score, -torch.inf)
    if max_count < 1:
        return torch.zeros_like(among).expand_as(score)
    if is_long(score):
        threshold = score.new_tensor([[kth_largest(score[0], min(max(int(count), 1), score.shape[1]))]])
    else:
        top = score.topk(min(max_count, score.shape[1]), dim=1).values
        threshold = top.gather(1, (count - 1).clamp(0, top.shape[1] - 1))  # [B, 1]
    threshold = torch.where(count > 0, threshold, torch.inf)
    chosen = (score >= threshold) & among
    if not score.is_cuda and not bool((counted(chosen) > count).any()):
        return chosen  # no ties at the threshold, as a rule; a GPU is not made to wait for the answer
    above = score > threshold
    remaining = count - counted(above)
    return above | (chosen & ((chosen & ~above).cumsum(1) <= remaining))


def is_long(values: Tensor) -> bool:
    """Whether values [B, N] are one row that is so long that sorting all of it on a CPU is slow."""
    return len(values) == 1 and values.shape[1] > LONG and not values.is_cuda


def kth_largest(row: Tensor, k: int) -> float:
    """The k-th largest of a row [N] on the CPU, counted from 1, without a sort."""
    return float(np.partition(row.detach().numpy(), len(row) - k)[len(row) - k])


def counted(mask: Tensor) -> Tensor:
    """How many cells each row of a mask has. [B, N] -> [B, 1]"""
    return mask.count_nonzero().view(1, 1) if len(mask) == 1 else mask.sum(1, keepdim=True)


def fill(request: Request, mask: Tensor, score: Tensor) -> Tensor:
    """Bring every row to its quota: the best remaining fine cells, and when there are none, the best of the rest."""
    tree = request.tree
    remaining = request.quota - counted(mask)
    bound = request.max_count if score.is_cuda else int(remaining.max())  # a GPU is not made to wait for it
    mask = mask | best(score, remaining, tree.fine & ~mask, bound)
    if request.budget > min(tree.fine_counts):
        remaining = request.quota - counted(mask)
        mask = mask | best(score, remaining, tree.valid & ~mask, request.max_count)
    return mask


def as_indices(mask: Tensor, max_count: int) -> Tensor:
    """The cells of a mask [B, N] in tree order, -1 behind the last: [B, max_count]. Indices stay what they are."""
    if mask.dtype == torch.int64:
        return mask
    slot = torch.where(mask, mask.cumsum(1) - 1, max_count)  # the unchosen share one slot that is thrown away
    cells = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return cells.new_full((len(mask), max_count + 1), -1).scatter_(1, slot, cells)[:, :max_count]


def as_whole(values: Tensor) -> Tensor:
    """Values >= 0 [B, N] as whole numbers of 40 bits, relative to each row's largest.

    Sums of whole numbers do not depend on their order, so shares are the same on every device and in every batch.
    """
    return (relative(values) * 2.0**40).round().long()


def relative(values: Tensor) -> Tensor:
    """Values >= 0 [B, N] as shares of each row's largest; all zero stays zero."""
    largest = values.amax(1, keepdim=True)
    return values / torch.where(largest > 0, largest, 1.0)


def per_cell(name: str, values: Tensor, request: Request, several: bool = False) -> Tensor:
    """An option that has a value >= 0 for each cell, checked, on the device: [B, N], or [B, N, O] where it may."""
    values = values.to(request.relevance.device)
    if values.shape[:2] != request.relevance.shape or values.ndim > 2 + several or values.numel() == 0:
        raise InputError(f"{name} must be {list(request.relevance.shape)} like the relevance, got {list(values.shape)}")
    if request.tree.is_bucket:  # what lies on padding does not matter
        valid = request.tree.valid if values.ndim == 2 else request.tree.valid[..., None]
        values = torch.where(valid, values, 0)
    low, high = torch.aminmax(values)
    if not capturing(values) and not (low >= 0 and high < torch.inf):  # false for NaN too
        raise InputError(f"{name} must hold finite numbers of at least 0, got {low.item()} to {high.item()}")
    return values


def numbers(name: str, values: Any) -> Tensor:
    """Values as a tensor of real numbers."""
    try:
        tensor = torch.as_tensor(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be a tensor of numbers, got {shown(values)}") from None
    if tensor.is_complex():
        raise InputError(f"{name} must be real numbers, got {tensor.dtype}")
    return tensor


def share_of_tokens(name: str, share: float) -> float:
    """A share from 0 to 1, checked."""
    if not 0 <= share <= 1:
        raise InputError(f"{name} must be a share of the tokens from 0 to 1, got {share!r}")
    return share
