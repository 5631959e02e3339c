"""The reference model: an encoder that reads any set of cells, a scout that finds what was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from homunculus.reader.encoder import Encoder
from homunculus.reader.scout import Scout
from homunculus.reader.weights import SHIPPED, checked, load

M = TypeVar("M", bound=nn.Module)
__all__ = ["Encoder", "Scout", "load_encoder", "load_scout"]


def load_encoder(weights: str | Path | None = None, device: torch.device | str = "cpu") -> Encoder:
    """The trained encoder: the one shipped with the package, or from a folder of weights. No network is used."""
    return _loaded(Encoder, "encoder", weights, device)


def load_scout(weights: str | Path | None = None, device: torch.device | str = "cpu") -> Scout:
    """The trained scout: the one shipped with the package, or from a folder of weights. No network is used."""
    return _loaded(Scout, "scout", weights, device)


def _loaded(kind: type[M], name: str, weights: str | Path | None, device: torch.device | str) -> M:
    with torch.device("meta"):
        model = kind()
    model.to_empty(device="cpu")
    load(model, checked(Path(weights) if weights else SHIPPED, name))
    return model.to(device).eval().requires_grad_(False)
