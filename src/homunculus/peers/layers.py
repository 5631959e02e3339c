"""A language model of plain layers run one by one, with visual tokens leaving in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from homunculus.peers.stages import Inner, Inside, Stage

NAME = "homunculus_rows"


class Rows(NamedTuple):
    """Whose attention is wanted, as places [B, T] of the text; found is their mean over heads, [B, T, L]."""

    places: Tensor
    found: list[Tensor]


_rows: list[Rows] = []


class Text(NamedTuple):
    """What a language model reads, filled up in front.

    Shape:
        x [B, L, width], there and visual bool [B, L], places [B, L] or [1 + axes, B, L], the first of which counts;
        deeper [B, L, width] each: what is added behind the first layers; number [B, L] of each visual token in its
        image.
    """

    x: Tensor
    there: Tensor
    visual: Tensor
    places: Tensor
    number: Tensor
    deeper: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, x: Tensor, there: Tensor, visual: Tensor, places: Tensor, deeper: Sequence[Tensor] = ()) -> Text:
        """Visual tokens numbered as they stand."""
        there = there.bool()
        visual = visual & there
        return cls(x, there, visual, places, (visual.cumsum(1) - 1).clamp(min=0), tuple(deeper))

    def take(self, stay: Tensor) -> Text:
        """Only those that stay, bool [B, L]."""
        stay = stay & self.there
        order = stay.long().argsort(dim=1, stable=True)[:, -int(stay.sum(1).max()) :]

        def moved(values: Tensor) -> Tensor:
            return values.gather(1, order[..., None].expand(-1, -1, values.shape[-1]))

        places = self.places.gather(-1, order.expand(*self.places.shape[:-2], *order.shape))
        there, visual, number = (part.gather(1, order) for part in (stay, self.visual & stay, self.number))
        return Text(moved(self.x), there, visual, places, number, tuple(moved(part) for part in self.deeper))


def gathered(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Places of what is flagged in each row of bool [B, L], in order: [B, n], and which of these are there."""
    count = flags.sum(1)
    order = (~flags).long().argsort(dim=1, stable=True)[:, : max(1, int(count.max()))]
    return order, torch.arange(order.shape[1], device=flags.device) < count[:, None]


class Dropping:
    """One answer of a language model under a method that drops visual tokens between its layers."""

    def __init__(self, language: Any, head: Callable[[Tensor], Tensor]) -> None:
        from transformers import DynamicCache

        self.language, self.head = language, head
        self.cache = DynamicCache(config=language.config)
        self.masks: list[Tensor] = []  # of each layer, which of its tokens are there
        self.next: Tensor | None = None

    def begin(self, text: Text, method: Inside, plan: Sequence[Stage], choosing: bool = False) -> tuple[Tensor, Tensor]:
        """Logits of the first token [B, vocabulary], and which visual tokens are left at last, bool [B, N].

        `choosing` goes no further than it takes to know these.
        """
        stages = {stage.layer: stage.keep for stage in plan}
        total = int(text.visual.sum(1).max())
        self.next = text.places.amax(-1)
        last = max(stages, default=0)
        watched: Rows | None = None
        for n, layer in enumerate(self.language.layers):
            if n in stages:
                text = self._dropped(text, method, stages[n], watched)
            if choosing and n >= last:
                break
            watched = Rows(self._asking(text)[0], []) if n + 1 in stages else None
            with rows_of(self.language.config, watched):
                text = text._replace(x=self._through(layer, n, text))
            if n < len(text.deeper):
                text = text._replace(x=text.x + text.deeper[n])
            self.masks.append(text.there)
        left = torch.zeros(len(text.x), total + 1, dtype=torch.bool, device=text.x.device)
        left.scatter_(1, torch.where(text.visual, text.number, total), True)
        logits = text.x[:, -1] if choosing else self.head(self.language.norm(text.x[:, -1:]))[:, 0]
        return logits, left[:, :total]

    def step(self, x: Tensor) -> Tensor:
        """Logits after one more token [B, 1, width]."""
        assert self.next is not None  # `begin` came first
        self.next = self.next + 1
        counted, turning = _by_use(self.next[..., None])
        turns = self.language.rotary_emb(x, turning)
        for n, layer in enumerate(self.language.layers):
            self.masks[n] = torch.cat((self.masks[n], self.masks[n].new_ones(len(x), 1)), 1)
            out = layer(
                x,
                attention_mask=self.masks[n][:, None, None],
                position_ids=counted,
                past_key_values=self.cache,
                use_cache=True,
                position_embeddings=turns,
            )
            x = out[0] if isinstance(out, tuple) else out
        return self.head(self.language.norm(x))[:, 0]

    def _through(self, layer: Any, n: int, text: Text) -> Tensor:
        order = torch.arange(text.x.shape[1], device=text.x.device)
        allowed = (order <= order[:, None]) & text.there[:, None]
        allowed = (allowed | (order == order[:, None]))[:, None]  # what is empty sees itself
        counted, turning = _by_use(text.places)
        out = layer(
            text.x,
            attention_mask=allowed,
            position_ids=counted,
            past_key_values=self.cache,
            use_cache=True,
            position_embeddings=self.language.rotary_emb(text.x, turning),
        )
        x: Tensor = out[0] if isinstance(out, tuple) else out
        return x

    def _asking(self, text: Text) -> tuple[Tensor, Tensor]:
        """The text behind the image."""
        order = torch.arange(text.x.shape[1], device=text.x.device)
        last = torch.where(text.visual, order, -1).amax(1, keepdim=True)
        return gathered(text.there & (order > last))

    def _dropped(self, text: Text, method: Inside, keep: int, watched: Rows | None) -> Text:
        at, mask = gathered(text.visual)
        if watched is None or keep >= int(mask.sum(1).max()):
            return text
        _, asked = self._asking(text)
        attention = watched.found[0].gather(2, at[:, None].expand(-1, watched.found[0].shape[1], -1))  # [B, T, N]
        hidden = text.x.gather(1, at[..., None].expand(-1, -1, text.x.shape[2]))
        kept = method.keep(Inner(hidden=hidden, attention=attention, asked=asked, mask=mask), keep)
        place = kept.index.clamp(min=0)
        chosen = torch.zeros_like(mask).scatter(1, place, kept.index >= 0)
        hidden = hidden.scatter(1, place[..., None].expand_as(kept.tokens), kept.tokens.to(hidden.dtype))
        ordinal = (text.visual.cumsum(1) - 1).clamp(min=0)
        back = hidden.gather(1, ordinal[..., None].expand(-1, -1, hidden.shape[2]))
        text = text._replace(x=torch.where(text.visual[..., None], back, text.x))
        return text.take(~text.visual | chosen.gather(1, ordinal))


def _by_use(places: Tensor) -> tuple[Tensor, Tensor]:
    """Places that count, and those that turn queries and keys."""
    return (places[0], places[1:]) if places.ndim == 3 else (places, places)


@contextmanager
def rows_of(config: Any, rows: Rows | None) -> Iterator[None]:
    """While this lasts, attention of the given places is noted beside the model's own."""
    if rows is None:
        yield
        return
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attend)
    usual = config._attn_implementation
    _rows.append(rows)
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = usual
        _rows.pop()


def _attend(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **how: Any) -> Any:
    """`sdpa`, and beside it the rows that are wanted."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    places, found = _rows[-1]
    scale = how.get("scaling") or query.shape[-1] ** -0.5
    at = places[:, None, :, None]
    asks = query.gather(2, at.expand(-1, query.shape[1], -1, query.shape[3])).float()
    keys = key.repeat_interleave(query.shape[1] // key.shape[1], 1).float()
    weight = asks @ keys.transpose(2, 3) * scale  # [B, heads, T, L]
    allowed = attention_mask.gather(2, at.expand(-1, 1, -1, attention_mask.shape[3]))
    found.append(weight.masked_fill(~allowed, -torch.inf).softmax(-1).mean(1))
    return sdpa_attention_forward(module, query, key, value, attention_mask, **how)
