"""Coverage as something to train for: a loss against empty regions, and plain top-K once trained."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import Request
from homunculus.allocators.grid import grid
from homunculus.allocators.strata import stratum_of
from homunculus.cells import CellTree
from homunculus.errors import InputError, whole_number


def coverage(request: Request) -> Tensor:
    """Like grid, for relevance trained with `coverage_loss` to leave no region empty."""
    return grid(request)


def coverage_loss(
    scores: Tensor, tree: CellTree, budget: int = 273, regions: int = 8, weight: float = 0.1, temperature: float = 0.1
) -> Tensor:
    """Penalty for regions of an 8 x 8 grid that the `budget` highest scores leave empty; add it to the training loss.

    Scores are [B, N] as in `allocate`, chosen softly (`soft_topk`) so that gradients flow; returned is `weight` times
    the expected share of empty regions, averaged over the batch.
    """
    whole_number("budget", budget), whole_number("regions along a side", regions, 1, 256)
    if scores.ndim != 2 or scores.shape[1] != tree.size:
        raise InputError(f"scores must be [B, {tree.size}] for {tree!r}, got {list(scores.shape)}")
    tree = tree.to(scores.device)
    here = tree.at(0)
    valid = tree.valid[:, here].expand(len(scores), -1)
    chosen = soft_topk(scores[:, here], valid, budget, temperature)
    region = stratum_of(tree, torch.tensor([[regions, regions]], device=scores.device)).expand_as(valid)
    none = torch.log1p(-chosen.clamp(max=1 - 1e-6)) * valid  # log of the probability that a cell is not chosen
    empty = none.new_zeros(len(scores), regions**2).scatter_add(1, region, none).exp()  # [B, regions^2]
    cells = torch.zeros_like(empty).scatter_add(1, region, valid.to(empty.dtype))
    return weight * ((empty * (cells > 0)).sum(1) / (cells > 0).sum(1)).mean()


def soft_topk(scores: Tensor, valid: Tensor, count: int, temperature: float) -> Tensor:
    """Probability of each score to be among the `count` highest: a sigmoid around a threshold that makes them add up.

    Raising all scores changes nothing, so no loss can be cheated that way. scores, valid [B, n] -> [B, n]
    """
    if not temperature > 0:
        raise InputError(f"temperature must be above 0, got {temperature!r}")
    scores = torch.where(valid, scores, 0)  # what lies on padding does not matter
    target = valid.sum(1, keepdim=True).clamp(max=count) - 0.5  # half a cell less: all of them needs no threshold
    with torch.no_grad():
        low = torch.where(valid, scores, torch.inf).amin(1, keepdim=True) - 20 * temperature
        high = torch.where(valid, scores, -torch.inf).amax(1, keepdim=True) + 20 * temperature
        for _ in range(50):
            middle = (low + high) / 2
            many = (torch.sigmoid((scores - middle) / temperature) * valid).sum(1, keepdim=True) > target
            low, high = torch.where(many, middle, low), torch.where(many, high, middle)
        probs = torch.sigmoid((scores - low) / temperature) * valid
        slope = (probs * (1 - probs)).sum(1, keepdim=True).clamp(min=1e-12) / temperature
    first = torch.sigmoid((scores - low) / temperature) * valid
    threshold = low + (first.sum(1, keepdim=True) - target) / slope  # one Newton step: its gradient is the threshold's
    return torch.sigmoid((scores - threshold) / temperature) * valid
