"""DivPrune: the tokens that lie furthest from each other."""

from __future__ import annotations

import torch

from homunculus.peers.base import ReducedTokens, VisualTokens, at, cosines, exact, pick, unit


@exact
def divprune(visual: VisualTokens, budget: int) -> ReducedTokens:
    """Greedy max-min on cosine distance between tokens, from the one that is furthest from its nearest neighbour."""
    tokens = unit(visual.tokens)
    distance = 1 - cosines(tokens, tokens)  # [B, N, N]
    distance.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    distance = torch.where(visual.mask[:, None], distance, torch.inf)
    chosen = torch.zeros_like(visual.mask)
    score, nearest = distance.amin(2), torch.full_like(distance[:, 0], torch.inf)
    for _ in range(budget):
        following = torch.where(visual.mask & ~chosen, score, -torch.inf).argmax(1, keepdim=True)
        chosen = chosen.scatter(1, following, True)
        score = nearest = torch.minimum(nearest, at(distance, following)[:, 0])
    return pick(visual.tokens, chosen & visual.mask, budget)
