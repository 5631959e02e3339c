"""The reference model: an encoder that reads any set of cells, a scout that finds what was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from homunculus.reader.encoder import Encoder
from homunculus.reader.scout import Scout
from homunculus.reader.weights import SHIPPED, about, checked, load

M = TypeVar("M", bound=nn.Module)
__all__ = ["Encoder", "Scout", "load_encoder", "load_scout"]


def load_encoder(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Encoder:
    """The trained encoder: the one shipped with the package, or from a folder of weights. No network is used.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    return _loaded(Encoder, "encoder", weights, torch.device(device), dtype)


def load_scout(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Scout:
    """The trained scout: the one shipped with the package, or from a folder of weights. No network is used.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    return _loaded(Scout, "scout", weights, torch.device(device), dtype)


def _loaded(kind: type[M], name: str, weights: str | Path | None, device: torch.device, dtype: torch.dtype | None) -> M:
    path = checked(Path(weights) if weights else SHIPPED, name)
    model = kind(**about(path).get("sizes", {}))
    load(model, path)
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    return model.to(device, dtype).eval().requires_grad_(False)
