"""Queries and keys of chosen attention modules of a transformers model, beside the model's own `sdpa` result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

NAME = "homunculus_capture"  # of the attention function that transformers is given
OBSERVER = "_attention_observer"  # the attribute of a module that is captured
MODULES = ("self_attn", "attn", "attention")  # what layers call their attention
Observer = Callable[[Tensor, Tensor, "Tensor | None", float], None]  # query, key, mask, scaling


@contextmanager
def capture_attention(observers: Mapping[Any, Observer]) -> Iterator[None]:
    """While this lasts, observers of attention modules receive query, key, mask and scaling whenever these run.

    The model computes what it always computes with `sdpa`; afterwards modules and configs are as they were.

    Shape:
        query [B, heads, L, d], key [B, kv heads, S, d], mask bool [B, 1, L, S] or None.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    usual = [(module.config, module.config._attn_implementation) for module in observers]
    try:
        for module, observer in observers.items():
            setattr(module, OBSERVER, observer)
            module.config._attn_implementation = NAME
        yield
    finally:
        for config, implementation in usual:
            config._attn_implementation = implementation
        for module in observers:
            module.__dict__.pop(OBSERVER, None)


def attention_of(layer: nn.Module) -> nn.Module:
    """The attention module of a transformer layer."""
    return next(getattr(layer, name) for name in MODULES if hasattr(layer, name))


def attention_probs(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """Attention probabilities in float32, mean over heads, of the given queries alone. [B, rows, S]

    Shape:
        query [B, heads, rows, d], key [B, kv heads, S, d], mask bool [B, 1, rows, S] or None.
    """
    groups = query.shape[1] // key.shape[1]
    keys = (key.repeat_interleave(groups, 1) if groups > 1 else key).float()
    logits = query.float() @ keys.transpose(2, 3) * scaling  # [B, heads, rows, S]
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    return logits.softmax(-1).mean(1)


def _attend(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **how: Any) -> Any:
    """`sdpa`, after a module that is captured has told its observer."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    observer: Observer | None = getattr(module, OBSERVER, None)
    if observer is not None:
        observer(query, key, attention_mask, how.get("scaling") or query.shape[-1] ** -0.5)
    return sdpa_attention_forward(module, query, key, value, attention_mask, **how)
