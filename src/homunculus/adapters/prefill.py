"""The first token of inputs of a fixed shape: a language model's layers one by one, so that they can be captured.

A fixed number of visual tokens makes the shape the same for every image, and a CUDA graph of it is captured once and
replayed: at batch 1 a language model otherwise waits for its launches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from homunculus.runtime.graphs import Replay

V = TypeVar("V")


class First(NamedTuple):
    """Logits of the first token [B, vocabulary], keys and values of all layers [layers, B, heads, L, width]."""

    logits: Tensor
    keys: Tensor
    values: Tensor


class Prefill:
    """What a model says first to prepared inputs, and the cache to go on from.

    On a GPU it is captured at the second call with the same shapes. The model must be one with a language model of
    plain layers (Qwen-VL, LLaVA), and in inference.
    """

    def __init__(self, model: Any, image_token: int) -> None:
        self.model, self.text, self.image_token = model, model.model.language_model, image_token
        self._run = Replay(self.first)
        self.passes: dict[int, Replay[Any]] = {}  # first passes of `attention`, by the length that is kept of them

    @torch.no_grad()
    def __call__(self, inputs: dict[str, Any]) -> tuple[Tensor, Any]:
        """Logits [B, vocabulary] and a cache that `generate` takes."""
        first = self.run(inputs, self._run)
        return first.logits, cache_of(self.text.config, first.keys, first.values)

    def run(self, inputs: dict[str, Any], call: Callable[..., V]) -> V:
        """Call with what inputs hold: what a cache of theirs has is not worked on again."""
        seen = inputs["mm_encoder_outputs"]["image"]
        deeper = getattr(seen, "deepstack_features", None) or []
        features = [_joined(part) for part in (seen.pooler_output, *deeper)]
        known = inputs.get("past_key_values")
        kept = [stacked_cache(known, name) for name in ("keys", "values")] if known is not None else self._none(inputs)
        done = kept[0].shape[3]
        ids, places = inputs["input_ids"][:, done:], inputs["position_ids"][..., done:]
        return call(ids, inputs["attention_mask"], places, *kept, *features)

    def _none(self, inputs: dict[str, Any]) -> list[Tensor]:
        """Keys and values of nothing."""
        config = self.text.config
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        shape = (config.num_hidden_layers, len(inputs["input_ids"]), config.num_key_value_heads, 0, width)
        return [torch.zeros(shape, dtype=self.model.dtype, device=inputs["input_ids"].device)] * 2

    def first(
        self, ids: Tensor, mask: Tensor, places: Tensor, keys: Tensor, values: Tensor, *features: Tensor
    ) -> First:
        """Shapes alone decide what is done, so that it can be captured."""
        from transformers import DynamicCache

        text, (length, done) = self.text, (ids.shape[1], keys.shape[3])
        x = text.embed_tokens(ids)
        here = (ids == self.image_token)[..., None]
        seen, *deeper = (x.new_zeros(x.shape).masked_scatter(here, part.to(x.dtype)) for part in features)
        x = torch.where(here, seen, x)
        order = torch.arange(done + length, device=ids.device)
        allowed = (order <= order[done:, None]) & mask[:, None].bool()  # [B, L, done + L]
        allowed = (allowed | (order == order[done:, None]))[:, None]  # what is empty sees itself: none is no number
        counted, turning = (places[0], places[1:]) if places.ndim == 3 else (places, places)
        turns = text.rotary_emb(x, turning)
        cache = DynamicCache(config=text.config)
        for n, layer in enumerate(text.layers):
            if done:
                cache.update(keys[n], values[n], n)
            out = layer(
                x,
                attention_mask=allowed,
                position_ids=counted,
                past_key_values=cache,
                use_cache=True,
                position_embeddings=turns,
            )
            x = out[0] if isinstance(out, tuple) else out
            if n < len(deeper):
                x = x + deeper[n]
        all_keys, all_values = (stacked_cache(cache, name) for name in ("keys", "values"))
        return First(self.model.lm_head(text.norm(x[:, -1:]))[:, 0], all_keys, all_values)


def cache_of(config: Any, keys: Tensor, values: Tensor) -> Any:
    """A cache with keys and values of all layers."""
    from transformers import DynamicCache

    cache = DynamicCache(config=config)
    for layer, (key, value) in enumerate(zip(keys, values, strict=True)):
        cache.update(key, value, layer)
    return cache


def stacked_cache(cache: Any, name: str) -> Tensor:
    """Keys or values of all layers, [layers, B, heads, L, width]."""
    return torch.stack([getattr(layer, name) for layer in cache.layers])


def _joined(parts: Any) -> Tensor:
    return parts if torch.is_tensor(parts) else torch.cat(list(parts))
