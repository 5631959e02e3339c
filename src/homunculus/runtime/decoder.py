"""A text model's decoder layers one by one: the caller gives mask, positions, cache and DeepStack features.

Shapes alone decide what is done, so that it can be captured as a CUDA graph; a model's own loop builds its mask on the
way, which cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor


def run_layers(
    text_model: Any,
    hidden_states: Tensor,
    position_ids: Tensor,
    attention_mask: Tensor | None = None,
    cache: Any = None,
    deepstack: Sequence[Tensor] = (),
    layers: range | None = None,
) -> Tensor:
    """Hidden states [B, L, D] behind the decoder layers, or some of them.

    Args:
        position_ids: [B, L], or [1 + axes, B, L] where the rotary embedding has several axes; the first counts tokens.
        attention_mask: bool [B, 1, L, S], see `causal_mask`; None is causal.
        deepstack: [B, L, D] each, added behind the first layers.
        layers: which layers run; all unless given.
    """
    several = position_ids.ndim == 3
    counted, rotated = (position_ids[0], position_ids[1:]) if several else (position_ids, position_ids)
    rope, x = text_model.rotary_emb(hidden_states, rotated), hidden_states
    for n in layers if layers is not None else range(len(text_model.layers)):
        out = text_model.layers[n](
            x,
            attention_mask=attention_mask,
            position_ids=counted,
            past_key_values=cache,
            use_cache=cache is not None,
            position_embeddings=rope,
        )
        x = out[0] if isinstance(out, tuple) else out
        if n < len(deepstack):
            x = x + deepstack[n]
    return x


def causal_mask(attention_mask: Tensor, cached: int = 0) -> Tensor:
    """Bool [B, 1, L, S] from a mask [B, S] of `cached` and L further tokens; padding sees itself alone."""
    order = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    rows = order[cached:, None]
    return (((order <= rows) & attention_mask[:, None].bool()) | (order == rows))[:, None]


def embed_images(
    embeddings: Any, ids: Tensor, image_token: int, features: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Embedded ids [B, L, D] with image features in their places, and DeepStack features [B, L, D] each.

    `features` are those that `joined_features` gives.
    """
    x = embeddings(ids)
    mask = (ids == image_token)[..., None]
    first, *deepstack = (torch.zeros_like(x).masked_scatter(mask, part.to(x.dtype)) for part in features)
    return torch.where(mask, first, x), deepstack


def joined_features(output: Any) -> list[Tensor]:
    """Features [n, D] of all images of a vision output, then those of each DeepStack layer."""
    parts = (output.pooler_output, *(getattr(output, "deepstack_features", None) or []))
    return [part if torch.is_tensor(part) else torch.cat(list(part)) for part in parts]


def cache_of(config: Any, keys: Iterable[Tensor] = (), values: Iterable[Tensor] = ()) -> Any:
    """A cache with the keys and values [B, heads, S, d] of all layers."""
    from transformers import DynamicCache

    cache = DynamicCache(config=config)
    for layer, (key, value) in enumerate(zip(keys, values, strict=True)):
        cache.update(key, value, layer)
    return cache


def stacked_cache(cache: Any) -> tuple[Tensor, Tensor]:
    """Keys and values of all layers, [layers, B, heads, S, d] each."""
    keys, values = (torch.stack([getattr(layer, name) for layer in cache.layers]) for name in ("keys", "values"))
    return keys, values
