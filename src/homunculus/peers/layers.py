"""A language model's decoder layers with visual tokens leaving in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from homunculus.peers.stages import InnerMethod, LayerState, Stage
from homunculus.runtime.attention import attention_of, attention_probs, capture_attention
from homunculus.runtime.decoder import cache_of, causal_mask, run_layers


class TextState(NamedTuple):
    """What a language model reads, padded in front.

    Shape:
        hidden_states [B, L, D], attention_mask and visual_mask bool [B, L], position_ids [B, L] or [1 + axes, B, L],
        the first of which counts; token_index [B, L] of each visual token in its image; deepstack [B, L, D] each, added
        behind the first layers.
    """

    hidden_states: Tensor
    attention_mask: Tensor
    visual_mask: Tensor
    position_ids: Tensor
    token_index: Tensor
    deepstack: tuple[Tensor, ...] = ()

    @classmethod
    def of(
        cls,
        hidden_states: Tensor,
        attention_mask: Tensor,
        visual_mask: Tensor,
        position_ids: Tensor,
        deepstack: Sequence[Tensor] = (),
    ) -> TextState:
        """Visual tokens numbered as they stand."""
        attention_mask = attention_mask.bool()
        visual_mask = visual_mask & attention_mask
        token_index = (visual_mask.cumsum(1) - 1).clamp(min=0)
        return cls(hidden_states, attention_mask, visual_mask, position_ids, token_index, tuple(deepstack))

    def take(self, stay: Tensor) -> TextState:
        """Only those that stay, bool [B, L]."""
        stay = stay & self.attention_mask
        order = stay.long().argsort(dim=1, stable=True)[:, -int(stay.sum(1).max()) :]

        def moved(values: Tensor) -> Tensor:
            return values.gather(1, order[..., None].expand(-1, -1, values.shape[-1]))

        position_ids = self.position_ids.gather(-1, order.expand(*self.position_ids.shape[:-2], *order.shape))
        attention_mask, visual_mask = stay.gather(1, order), (self.visual_mask & stay).gather(1, order)
        deepstack = tuple(moved(part) for part in self.deepstack)
        token_index = self.token_index.gather(1, order)
        return TextState(moved(self.hidden_states), attention_mask, visual_mask, position_ids, token_index, deepstack)


class PrunedDecoder:
    """One answer of a language model under a method that drops visual tokens between its layers."""

    def __init__(self, language: Any, head: Callable[[Tensor], Tensor]) -> None:
        self.language, self.head = language, head
        self.cache = cache_of(language.config)
        self.parts: list[tuple[range, Tensor]] = []  # layers between two stages, and the mask [B, L] of their tokens
        self.next: Tensor | None = None  # positions of the next token

    def begin(self, text: TextState, method: InnerMethod, plan: Sequence[Stage]) -> tuple[Tensor, Tensor]:
        """Logits of the first token [B, vocabulary], and which visual tokens are left at last, bool [B, N]."""
        stages = {stage.layer: stage.keep for stage in plan}
        depth, total = len(self.language.layers), int(text.visual_mask.sum(1).max())
        self.next = text.position_ids.amax(-1)
        attention: Tensor | None = None
        for first, end in pairwise(sorted({0, *stages, depth})):
            if attention is not None and first in stages:
                text = _prune(text, method, stages[first], attention)
            layers = range(first, end)
            with self._capture(text, end - 1 if end in stages else None) as captured:
                x = run_layers(
                    self.language,
                    text.hidden_states,
                    text.position_ids,
                    causal_mask(text.attention_mask),
                    self.cache,
                    text.deepstack,
                    layers,
                )
            text, attention = text._replace(hidden_states=x), captured[0] if captured else None
            self.parts.append((layers, text.attention_mask))
        left = torch.zeros(len(x), total + 1, dtype=torch.bool, device=x.device)
        left.scatter_(1, torch.where(text.visual_mask, text.token_index, total), True)
        return self._logits(x), left[:, :total]

    def step(self, x: Tensor) -> Tensor:
        """Logits after one more token [B, 1, width]."""
        assert self.next is not None  # `begin` came first
        self.next = self.next + 1
        for n, (layers, mask) in enumerate(self.parts):
            mask = torch.cat((mask, mask.new_ones(len(x), 1)), 1)
            x = run_layers(self.language, x, self.next[..., None], mask[:, None, None], self.cache, layers=layers)
            self.parts[n] = layers, mask
        return self._logits(x)

    def _logits(self, x: Tensor) -> Tensor:
        return self.head(self.language.norm(x[:, -1:]))[:, 0]

    @contextmanager
    def _capture(self, text: TextState, layer: int | None) -> Iterator[list[Tensor]]:
        """Attention of the text behind the image in a layer, [B, T, L], once that has run."""
        found: list[Tensor] = []
        if layer is None:
            yield found
            return
        rows = _text_rows(text)[0][:, None, :, None]  # [B, 1, T, 1]

        def note(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> None:
            assert mask is not None  # that of `begin`
            asks = query.gather(2, rows.expand(-1, query.shape[1], -1, query.shape[3]))
            found.append(attention_probs(asks, key, mask.gather(2, rows.expand(-1, 1, -1, mask.shape[3])), scaling))

        with capture_attention({attention_of(self.language.layers[layer]): note}):
            yield found


def flagged(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of what is flagged in each row of bool [B, L], in order: [B, n], and the mask of these."""
    count = flags.sum(1)
    order = (~flags).long().argsort(dim=1, stable=True)[:, : max(1, int(count.max()))]
    return order, torch.arange(order.shape[1], device=flags.device) < count[:, None]


def _text_rows(text: TextState) -> tuple[Tensor, Tensor]:
    """The text behind the image, see `flagged`."""
    order = torch.arange(text.visual_mask.shape[1], device=text.visual_mask.device)
    last = torch.where(text.visual_mask, order, -1).amax(1, keepdim=True)
    return flagged(text.attention_mask & (order > last))


def _prune(text: TextState, method: InnerMethod, keep: int, attention: Tensor) -> TextState:
    """The text with the visual tokens that a method keeps, by attention [B, T, L] of the text behind the image."""
    index, mask = flagged(text.visual_mask)
    if keep >= int(mask.sum(1).max()):
        return text
    _, text_mask = _text_rows(text)
    attention = attention.gather(2, index[:, None].expand(-1, attention.shape[1], -1))  # [B, T, N]
    hidden = text.hidden_states.gather(1, index[..., None].expand(-1, -1, text.hidden_states.shape[2]))
    kept = method.keep(LayerState(hidden_states=hidden, attention=attention, text_mask=text_mask, mask=mask), keep)
    place = kept.index.clamp(min=0)
    chosen = torch.zeros_like(mask).scatter(1, place, kept.index >= 0)
    hidden = hidden.scatter(1, place[..., None].expand_as(kept.tokens), kept.tokens.to(hidden.dtype))
    ordinal = (text.visual_mask.cumsum(1) - 1).clamp(min=0)
    back = hidden.gather(1, ordinal[..., None].expand(-1, -1, hidden.shape[2]))
    text = text._replace(hidden_states=torch.where(text.visual_mask[..., None], back, text.hidden_states))
    return text.take(~text.visual_mask | chosen.gather(1, ordinal))
