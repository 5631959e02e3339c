"""ToMe: the most similar pairs of two alternating halves merge, round after round."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.peers.base import ReducedTokens, VisualTokens, cosines, exact, merge, top, unit


@exact
def tome(visual: VisualTokens, budget: int) -> ReducedTokens:
    """Bipartite soft matching on keys, at most half of the tokens a round, until the budget is met.

    A merged token is the mean of all tokens in it, which is ToMe's mean weighted by size, and stands where its target
    stood.
    """
    itself = torch.arange(visual.mask.shape[1], device=visual.mask.device)
    owner = torch.where(visual.mask, itself, -1)
    left = int(visual.mask.sum(1).max())
    while left > budget:
        alive = owner == itself
        owner = _round(visual.keys, alive, owner, left, budget)
        left -= min(left - budget, left // 2)
    return merge(visual.tokens, owner == itself, owner, budget)


def _round(keys: Tensor, alive: Tensor, owner: Tensor, most: int, budget: int) -> Tensor:
    """Who owns whom after one round: every other token looks for its match among the rest, the best pairs merge."""
    key, index = merge(keys, alive, owner, most)
    key, mask = unit(key), index >= 0
    likeness = torch.where(mask[:, None, 1::2], cosines(key[:, ::2], key[:, 1::2]), -torch.inf)  # [B, first, second]
    best, match = likeness.max(2)
    count = mask.sum(1, keepdim=True)
    merges = torch.minimum(count - budget, count // 2).clamp(min=0)
    goes = top(best, merges, mask[:, ::2])
    target = torch.arange(most, device=keys.device).repeat(len(keys), 1)
    target[:, ::2] = torch.where(goes, 2 * match + 1, target[:, ::2])
    place = (alive.cumsum(1) - 1).gather(1, owner.clamp(min=0))  # of each token's owner among the living
    return torch.where(owner >= 0, index.gather(1, target.gather(1, place.clamp(min=0))), -1)
