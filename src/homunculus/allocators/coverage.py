"""Coverage as something to train for: a loss against empty regions, and plain top-K once trained."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.allocators.frame import Request
from homunculus.allocators.grid import grid
from homunculus.allocators.strata import stratum_of
from homunculus.cells import CellTree


def coverage(request: Request) -> Tensor:
    """Like grid, for relevance trained with `coverage_loss` to leave no region empty."""
    return grid(request)


def coverage_loss(
    scores: Tensor,
    tree: CellTree,
    budget: int = 273,
    regions: int = 8,
    weight: float = 0.1,
    temperature: float = 0.1,
) -> Tensor:
    """Penalty for regions of an 8 x 8 grid that the `budget` highest scores leave empty; add it to the training loss.

    A cell counts as chosen by a sigmoid around the score of the last one that gets in, so gradients flow. Scores are
    [B, N] as in `allocate`; returned is `weight` times the expected share of empty regions, averaged over the batch.
    """
    here = tree.at(0)
    fine, there = scores[:, here], tree.valid[:, here].expand(len(scores), -1)
    held = torch.where(there, fine, -torch.inf).detach()
    least = held.topk(min(budget, min(tree.fine_counts)), dim=1).values[:, -1:]
    missed = F.logsigmoid((least - fine) / temperature) * there  # log of the chance that a cell is not chosen
    region = stratum_of(tree, torch.tensor([[regions, regions]], device=scores.device)).expand_as(there)
    blank = missed.new_zeros(len(scores), regions**2).scatter_add(1, region, missed).exp()  # [B, regions^2]
    cells = torch.zeros_like(blank).scatter_add(1, region, there.to(blank.dtype))
    return weight * ((blank * (cells > 0)).sum(1) / (cells > 0).sum(1)).mean()
