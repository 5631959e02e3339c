"""Average pooling of the grid: no paper's method, but what every method has to beat."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.seats import rank_in_group
from homunculus.peers.base import ReducedTokens, VisualTokens, at, exact, mean_by, members, pick, precise, tile_of, top


@exact
def pooling(visual: VisualTokens, budget: int) -> ReducedTokens:
    """The grid pooled to the largest r x c of its aspect, then single tokens that differ most from their bin's mean.

    A bin stands at its token nearest to its middle.
    """
    group = tile_of(visual, pooled_shape(visual.grid, budget))
    group = torch.where(visual.mask, group, budget)
    belongs = precise(members(group, visual.mask, budget))  # [B, G, N]
    inside = group.clamp(max=budget - 1)
    mean = at(mean_by(belongs, visual.tokens), inside)  # [B, N, D]: of the bin that each token is in
    middle = at(mean_by(belongs, visual.positions), inside)
    away = (visual.positions - middle).square().sum(2)
    bins = (rank_in_group(group, -away, budget + 1) == 0) & visual.mask
    lost = precise(visual.tokens - mean).square().sum(2)
    single = top(lost, budget - bins.sum(1, keepdim=True), visual.mask & ~bins)
    return pick(torch.where(bins[..., None], mean, visual.tokens), bins | single, budget)


def pooled_shape(grid: Tensor, budget: int) -> Tensor:
    """The largest r x c of at most `budget` bins with the aspect of the grid [B, 2], to within one bin. [B, 2]"""
    side = torch.arange(1, int(grid.max()) + 1, device=grid.device).expand(len(grid), -1)
    rows, columns = grid[:, :1], grid[:, 1:]
    high, wide = side * rows / columns, side * columns / rows  # what goes with a width, with a height
    down = torch.cat((side, side, high.floor().long(), high.ceil().long()), 1).clamp(min=1)
    across = torch.cat((wide.floor().long(), wide.ceil().long(), side, side), 1).clamp(min=1)
    fits = (down <= rows) & (across <= columns) & (down * across <= budget)
    largest = torch.where(fits, down * across, 0).argmax(1, keepdim=True)
    return torch.cat((down.gather(1, largest), across.gather(1, largest)), 1)
