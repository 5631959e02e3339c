"""Peers that work between layers of the language model: what they see, and when they cut.

Their budget is the mean number of visual tokens over all layers, which is how papers compare them with methods that
work before the language model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from homunculus.errors import InputError, whole_number
from homunculus.peers.base import ReducedTokens, only_where_needed, pick, top


class Stage(NamedTuple):
    """Before layer `layer` runs (from 0), only `keep` visual tokens are left."""

    layer: int
    keep: int


@dataclass(frozen=True, eq=False)
class LayerState:
    """What a method may know between two layers.

    Shape:
        hidden_states [B, N, D] of the visual tokens; attention [B, T, N] mean over heads, in the layer that just ran,
        from the text tokens behind the image to the visual tokens; text_mask [B, T] which text tokens are there;
        mask [B, N] which visual tokens are there.
    """

    hidden_states: Tensor
    attention: Tensor
    text_mask: Tensor
    mask: Tensor

    @cached_property
    def last(self) -> Tensor:
        """Number of the last text token that is there. [B]"""
        return (torch.arange(self.text_mask.shape[1], device=self.text_mask.device) * self.text_mask).amax(1)

    @cached_property
    def from_last(self) -> Tensor:
        """Attention of the last text token. [B, N]"""
        return self.attention.gather(1, self.last[:, None, None].expand(-1, 1, self.attention.shape[2]))[:, 0]


class InnerMethod(Protocol):
    """A method that works between layers."""

    def plan(self, layers: int, count: int, budget: int) -> list[Stage]:
        """When to cut and to how many, for `count` tokens that enter and a mean of `budget` over all layers."""

    def keep(self, inner: LayerState, count: int) -> ReducedTokens:
        """The `count` tokens that go on, hidden states in the place of tokens."""


def checked_inner(inner: LayerState) -> LayerState:
    """The same with fitting shapes, zeros on padding, attention in float64."""
    (B, N), T = inner.mask.shape, inner.text_mask.shape[1]
    shapes = {"hidden_states": [B, N, inner.hidden_states.shape[-1]], "attention": [B, T, N], "text_mask": [B, T]}
    for name, shape in shapes.items():
        if list(getattr(inner, name).shape) != shape:
            raise InputError(f"{name} must be {shape}, got {list(getattr(inner, name).shape)}")
    if not B or not N or not T:
        raise InputError(f"there must be at least one image, visual token and text token, got attention {[B, T, N]}")
    mask, text_mask = inner.mask.bool(), inner.text_mask.bool()
    return replace(
        inner,
        hidden_states=torch.where(mask[..., None], inner.hidden_states, 0),
        attention=torch.where(mask[:, None] & text_mask[..., None], inner.attention.double(), 0),
        text_mask=text_mask,
        mask=mask,
    )


def last_token(inner: LayerState, count: int) -> ReducedTokens:
    """The `count` tokens that the last text token attends to most."""
    count, inner = whole_number("count", count), checked_inner(inner)

    def rule() -> ReducedTokens:
        return pick(inner.hidden_states, top(inner.from_last, count, inner.mask), count)

    return only_where_needed(inner.hidden_states, inner.mask, count, rule)


# ---- plans --------------------------------------------------------------------------------------------------------


def mean_tokens(plan: Sequence[Stage], layers: int, count: int) -> float:
    """Visual tokens a layer has on average when `count` enter."""
    total, left = 0, count
    for layer in range(layers):
        left = min([left, *(stage.keep for stage in plan if stage.layer == layer)])
        total += left
    return total / layers


def shrink(layers: int, count: int, budget: int, at: Sequence[int]) -> list[Stage]:
    """Stages before the layers `at`, each keeping the same share of what is left, so that the mean is the budget.

    The mean is as close below the budget as whole tokens allow. Where the layers before the first stage alone spend
    too much, the first stage keeps a quarter of the budget, and `mean_tokens` says what that comes to.
    """
    layers, count = whole_number("layers", layers, 2), whole_number("count", count)
    budget = whole_number("budget", budget)
    if count <= budget:
        return []

    def kept(share: float) -> list[Stage]:
        return [Stage(layer, max(1, int(count * share ** (i + 1)))) for i, layer in enumerate(at)]

    low, high = 0.0, 1.0
    if mean_tokens(kept(low), layers, count) > budget:
        return [Stage(at[0], max(1, budget // 4))]
    for _ in range(60):
        middle = (low + high) / 2
        fits = mean_tokens(kept(middle), layers, count) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return kept(low)


def halfway(layers: int) -> int:
    """The layer in the middle."""
    return max(1, layers // 2)


def scaled(at: Sequence[int], of: int, layers: int) -> list[int]:
    """Layers of a model that is `of` deep, at the same depth of one with `layers`; those that coincide count once."""
    found = {min(max(1, round(layer * layers / of)), layers - 1) for layer in at}
    return sorted(found)
