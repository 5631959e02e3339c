"""PruMerge+: tokens whose attention stands out, filled up evenly, each taking in some of its nearest."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import as_indices
from homunculus.peers.base import ReducedTokens, VisualTokens, at, cosines, evenly, exact, mean_by, top, unit

NEAREST = 32  # tokens that each kept one takes in
FENCE = 1.5  # interquartile ranges above the third quartile: from there on a token stands out


@exact
def prumerge(visual: VisualTokens, budget: int) -> ReducedTokens:
    """Outliers of attention, cut by rank or filled up by evenly spaced tokens; each merges its 32 nearest by keys.

    In the mean a kept token weighs 1 and each neighbour its share of the image's attention.
    """
    outliers = top(visual.attention, budget, standing_out(visual.attention, visual.mask))
    fill = evenly(visual.mask & ~outliers, budget - outliers.sum(1, keepdim=True))
    index = as_indices(outliers | fill, budget)
    weight = _weight(visual, index)
    return ReducedTokens(torch.where(index[..., None] >= 0, mean_by(weight, visual.tokens), 0), index)


def standing_out(attention: Tensor, mask: Tensor) -> Tensor:
    """Mask [B, N] of the tokens above the upper fence of a box plot."""
    values = torch.where(mask, attention, torch.nan)
    low, high = (torch.nanquantile(values, q, dim=1, keepdim=True) for q in (0.25, 0.75))
    return mask & (attention > high + FENCE * (high - low))


def _weight(visual: VisualTokens, index: Tensor) -> Tensor:
    """What each token weighs in each kept one. [B, K, N]"""
    keys = unit(visual.keys)
    arange = torch.arange(keys.shape[1], device=keys.device)
    itself = arange == index[..., None]  # [B, K, N]
    others = visual.mask[:, None] & ~itself
    near = top(cosines(at(keys, index), keys).flatten(0, 1), NEAREST, others.flatten(0, 1)).view_as(others)
    share = visual.attention / visual.attention.sum(1, keepdim=True).clamp(min=1e-300)
    return torch.where(near, share[:, None], 0) + itself
