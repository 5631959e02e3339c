"""HiRED: early attention says how much each part of the image gets, late attention which tokens of it."""

from __future__ import annotations

import torch

from homunculus.allocators.seats import top_of_each
from homunculus.peers.base import ReducedTokens, VisualTokens, exact, members, pick, share_out, tile_of

SIDE = 2  # quadrants


@exact
def hired(visual: VisualTokens, budget: int) -> ReducedTokens:
    """The budget over the four quadrants by their share of early attention, the best by late attention in each."""
    tile = tile_of(visual, torch.full_like(visual.grid, SIDE))
    belongs = members(tile, visual.mask, SIDE * SIDE).double()  # [B, G, N]
    worth = (belongs @ visual.early[..., None])[..., 0]
    quota = share_out(worth, belongs.sum(2), budget)
    return pick(visual.tokens, top_of_each(tile, visual.attention, quota, visual.mask), budget)
