"""FastV: after the second layer most visual tokens go."""

from __future__ import annotations

from homunculus.peers.base import ReducedTokens
from homunculus.peers.stages import LayerState, Stage, last_token, shrink

AFTER = 2  # layers that see every token


class FastV:
    """One cut after layer 2, by the attention of the last token."""

    def plan(self, layers: int, count: int, budget: int) -> list[Stage]:
        """One stage before the third layer."""
        return shrink(layers, count, budget, [max(1, min(AFTER, layers - 1))])

    def keep(self, inner: LayerState, count: int) -> ReducedTokens:
        """The `count` tokens with most attention of the last token."""
        return last_token(inner, count)
