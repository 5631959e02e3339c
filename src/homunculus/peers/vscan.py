"""VScan: global and local scans before the language model, one cut in the middle of it."""

from __future__ import annotations

import torch

from homunculus.allocators.frame import as_indices
from homunculus.allocators.seats import rank_in_group
from homunculus.peers.base import ReducedTokens, VisualTokens, exact, merge, nearest, stretched, tile_of, top
from homunculus.peers.stages import LayerState, Stage, halfway, last_token, shrink

WINDOW = 6  # tokens along a window's side, as in the paper for 24 x 24
LEFT = 1 / 3  # of the tokens that enter the language model go on behind the middle


@exact
def vscan(visual: VisualTokens, budget: int) -> ReducedTokens:
    """Half local by early attention, the same number from each window, half global by late attention; the rest merges.

    Merging goes to the kept token whose features are most alike.
    """
    windows = -(-visual.grid // WINDOW)
    window = torch.where(visual.mask, tile_of(visual, windows), int(windows.prod(1).max()))
    place = rank_in_group(window, visual.early, int(window.max()) + 1)
    order = stretched(visual.early, visual.mask) / 2 - place  # the first of all windows, then the second of all, ...
    local = top(order, budget // 2, visual.mask)
    chosen = local | top(visual.attention, budget - budget // 2, visual.mask & ~local)
    itself = torch.arange(chosen.shape[1], device=chosen.device)
    owner = nearest(visual.tokens, as_indices(chosen, budget))
    owner = torch.where(chosen, itself, torch.where(visual.mask, owner, -1))
    return merge(visual.tokens, chosen, owner, budget)


class VScan:
    """The second stage: at half depth the tokens that the last token attends to most."""

    def entering(self, layers: int, budget: int) -> int:
        """How many tokens the first stage should leave so that a third of them go on: 1.5 times the budget."""
        middle = halfway(layers)
        return max(1, round(budget * layers / (middle + (layers - middle) * LEFT)))

    def plan(self, layers: int, count: int, budget: int) -> list[Stage]:
        """One stage at half depth."""
        return shrink(layers, count, budget, [halfway(layers)])

    def keep(self, inner: LayerState, count: int) -> ReducedTokens:
        """The `count` tokens with most attention of the last token."""
        return last_token(inner, count)
