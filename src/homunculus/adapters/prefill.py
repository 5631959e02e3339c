"""The first token of inputs of a fixed shape, captured.

A fixed number of visual tokens makes the shape the same for every image, and a CUDA graph of it is captured once and
replayed: at batch 1 a language model otherwise waits for its launches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from homunculus.runtime.cache import LRUCache
from homunculus.runtime.decoder import cache_of, causal_mask, embed_images, joined_features, run_layers, stacked_cache
from homunculus.runtime.graphs import KEPT, Replay

V = TypeVar("V")


class PrefillOutput(NamedTuple):
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
        self._forward = Replay(self.forward)
        self.passes = LRUCache[int, Replay[Any]](KEPT)  # first passes of `attention`, by the length kept of them

    @torch.no_grad()
    def __call__(self, inputs: dict[str, Any]) -> tuple[Tensor, Any]:
        """Logits [B, vocabulary] and a cache that `generate` takes."""
        out = self.run(inputs, self._forward)
        return out.logits, cache_of(self.text.config, out.keys, out.values)

    def run(self, inputs: dict[str, Any], call: Callable[..., V]) -> V:
        """Call with what inputs hold: what a cache of theirs has is not worked on again."""
        features = joined_features(inputs["mm_encoder_outputs"]["image"])
        known = inputs.get("past_key_values")
        keys, values = stacked_cache(known) if known is not None else self._empty(inputs)
        done = keys.shape[3]
        ids, position_ids = inputs["input_ids"][:, done:], inputs["position_ids"][..., done:]
        return call(ids, inputs["attention_mask"], position_ids, keys, values, *features)

    def _empty(self, inputs: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Keys and values of nothing."""
        config = self.text.config
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        shape = (config.num_hidden_layers, len(inputs["input_ids"]), config.num_key_value_heads, 0, width)
        nothing = torch.zeros(shape, dtype=self.model.dtype, device=inputs["input_ids"].device)
        return nothing, nothing

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor,
        keys: Tensor,
        values: Tensor,
        *features: Tensor,
    ) -> PrefillOutput:
        """Shapes alone decide what is done, so that it can be captured."""
        text, done = self.text, keys.shape[3]
        x, deepstack = embed_images(text.embed_tokens, ids, self.image_token, features)
        cache = cache_of(text.config, keys, values) if done else cache_of(text.config)
        x = run_layers(text, x, position_ids, causal_mask(attention_mask, done), cache, deepstack)
        return PrefillOutput(self.model.lm_head(text.norm(x[:, -1:]))[:, 0], *stacked_cache(cache))
