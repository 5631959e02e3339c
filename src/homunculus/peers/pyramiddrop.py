"""PyramidDrop: fewer visual tokens from stage to stage."""

from __future__ import annotations

from homunculus.peers.base import ReducedTokens
from homunculus.peers.stages import LayerState, Stage, last_token, scaled, shrink


class PyramidDrop:
    """Cuts at a quarter, half and three quarters of the depth, each by the same factor."""

    def plan(self, layers: int, count: int, budget: int) -> list[Stage]:
        """Three stages that shrink geometrically."""
        return shrink(layers, count, budget, scaled((1, 2, 3), 4, layers))

    def keep(self, inner: LayerState, count: int) -> ReducedTokens:
        """The `count` tokens with most attention of the last instruction token."""
        return last_token(inner, count)
