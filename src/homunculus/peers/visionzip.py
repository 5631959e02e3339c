"""VisionZip: dominant tokens by attention, the rest merged into a few contextual ones."""

from __future__ import annotations

import torch

from homunculus.allocators.frame import as_indices
from homunculus.peers.base import ReducedTokens, VisualTokens, evenly, exact, merge, nearest, pick, top

DOMINANT, CONTEXTUAL = 54, 10  # the paper's split of 64 tokens


@exact
def visionzip(visual: VisualTokens, budget: int) -> ReducedTokens:
    """54 of 64 tokens by attention; the others merge onto evenly taken targets whose keys are most like theirs."""
    dominant = round(budget * DOMINANT / (DOMINANT + CONTEXTUAL))
    chosen = top(visual.attention, dominant, visual.mask)
    if dominant == budget:
        return pick(visual.tokens, chosen, budget)
    rest = visual.mask & ~chosen
    targets = evenly(rest, budget - dominant)
    itself = torch.arange(rest.shape[1], device=rest.device)
    owner = torch.where(rest, nearest(visual.keys, as_indices(targets, budget - dominant)), -1)
    owner = torch.where(chosen | targets, itself, owner)
    return merge(visual.tokens, chosen | targets, owner, budget)
