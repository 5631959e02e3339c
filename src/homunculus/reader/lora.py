"""LoRA for the language model: trained beside its linear layers, merged into them for inference.

Not peft: the matrices are a module of their own that knows no language model, saved and quantised like every other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ALPHA = 2.0  # alpha / rank: the product of the two matrices is scaled by it


class LoraWeights(nn.Module):
    """A [rank, in] and B [out, rank] of one linear layer; B starts at zero, so at first nothing is added."""

    def __init__(self, in_features: int, out_features: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(rank, in_features))
        self.b = nn.Parameter(torch.zeros(out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out]."""
        return ALPHA * F.linear(F.linear(x, self.a), self.b)

    def delta(self) -> Tensor:
        """The matrix that is added to the layer's weight, in float32. [out, in]"""
        return ALPHA * (self.b.float() @ self.a.float())


class LoraLinear(nn.Module):
    """A frozen linear layer and its LoRA matrices. The matrices belong to a `Lora`, which saves them."""

    def __init__(self, base: nn.Linear, lora: LoraWeights) -> None:
        super().__init__()
        self.base, self.lora = base, lora

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out]."""
        return cast(Tensor, self.base(x) + self.lora(x))


class Lora(nn.Module):
    """The LoRA matrices of all linear layers of a causal language model of the Llama architecture.

    Args:
        hidden, intermediate, kv, layers: of the language model, see `sizes_of`.
        rank: of the matrices.
    """

    def __init__(
        self, hidden: int = 576, intermediate: int = 1536, kv: int = 192, layers: int = 30, rank: int = 64
    ) -> None:
        super().__init__()
        self.sizes = {"hidden": hidden, "intermediate": intermediate, "kv": kv, "layers": layers, "rank": rank}
        shapes = {"k_proj": (hidden, kv), "v_proj": (hidden, kv), "down_proj": (intermediate, hidden)}
        shapes |= {"gate_proj": (hidden, intermediate), "up_proj": (hidden, intermediate)}
        self.weights = nn.ModuleList(
            LoraWeights(*shapes.get(name, (hidden, hidden)), rank) for _ in range(layers) for name in TARGETS
        )

    def attach(self, model: nn.Module) -> None:
        """Replace the model's linear layers by `LoraLinear`, for training."""
        for (owner, name), lora in zip(linears_of(model), self.weights, strict=True):
            setattr(owner, name, LoraLinear(cast(nn.Linear, getattr(owner, name)), cast(LoraWeights, lora)))

    @torch.no_grad()
    def merge(self, model: nn.Module) -> None:
        """Add the matrices to the weights of a model that nothing is attached to: inference then costs no more."""
        for (owner, name), lora in zip(linears_of(model), self.weights, strict=True):
            weight = getattr(owner, name).weight  # [out, in]
            weight.copy_(weight.float() + cast(LoraWeights, lora).delta().to(weight.device))


def sizes_of(model: Any) -> dict[str, int]:
    """The arguments of a `Lora` that fits a language model, except its rank."""
    config = model.config
    kv = config.num_key_value_heads * (config.hidden_size // config.num_attention_heads)
    sizes = {"hidden": config.hidden_size, "intermediate": config.intermediate_size, "kv": kv}
    return sizes | {"layers": config.num_hidden_layers}


def linears_of(model: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """Owner and name of each adapted layer, in the order of `Lora.weights`."""
    for layer in cast(Any, model).model.layers:
        for name in TARGETS:
            yield (layer.self_attn if hasattr(layer.self_attn, name) else layer.mlp), name
