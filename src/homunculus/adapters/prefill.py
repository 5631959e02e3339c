"""The first token of inputs of a fixed shape: a language model's layers one by one, so that they can be captured.

A fixed number of visual tokens makes the shape the same for every image, and a CUDA graph of it is captured once and
replayed: at batch 1 a language model otherwise waits for its launches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from homunculus.reader.replay import Replay


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
        self._run = Replay(self._first)

    @torch.no_grad()
    def __call__(self, inputs: dict[str, Any]) -> tuple[Tensor, Any]:
        """Logits [B, vocabulary] and a cache that `generate` takes."""
        from transformers import DynamicCache

        seen = inputs["mm_encoder_outputs"]["image"]
        deeper = getattr(seen, "deepstack_features", None) or []
        features = [_joined(part) for part in (seen.pooler_output, *deeper)]
        first = self._run(inputs["input_ids"], inputs["attention_mask"], inputs["position_ids"], *features)
        cache = DynamicCache(config=self.text.config)
        for layer, (keys, values) in enumerate(zip(first.keys, first.values, strict=True)):
            cache.update(keys, values, layer)
        return first.logits, cache

    def _first(self, ids: Tensor, mask: Tensor, places: Tensor, *features: Tensor) -> First:
        """Shapes alone decide what is done, so that it can be captured."""
        from transformers import DynamicCache

        text, length = self.text, ids.shape[1]
        x = text.embed_tokens(ids)
        here = (ids == self.image_token)[..., None]
        seen, *deeper = (x.new_zeros(x.shape).masked_scatter(here, part.to(x.dtype)) for part in features)
        x = torch.where(here, seen, x)
        order = torch.arange(length, device=ids.device)
        allowed = (order <= order[:, None]) & mask[:, None].bool()  # [B, L, L]
        allowed = (allowed | (order == order[:, None]))[
            :, None
        ]  # what is empty sees itself: a row without is no number
        counted, turning = (places[0], places[1:]) if places.ndim == 3 else (places, places)
        turns = text.rotary_emb(x, turning)
        cache = DynamicCache(config=text.config)
        for n, layer in enumerate(text.layers):
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
        keys, values = (torch.stack([getattr(layer, name) for layer in cache.layers]) for name in ("keys", "values"))
        return First(self.model.lm_head(text.norm(x[:, -1:]))[:, 0], keys, values)


def _joined(parts: Any) -> Tensor:
    return parts if torch.is_tensor(parts) else torch.cat(list(parts))
