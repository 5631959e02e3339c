"""Weights on disk: safetensors, int8 with a scale per output channel where that is small, checked by hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from homunculus.errors import InputError
from homunculus.runtime.files import replacing

SHIPPED = Path(__file__).parent / "weights"
SMALL = 4096  # numbers from which a tensor is stored in int8
SCALE = ".scale"


def device_of(name: torch.device | str) -> torch.device:
    """A device by its name, if this machine has it."""
    try:
        torch.zeros(1, device=name).item()
        return torch.device(name)
    except (RuntimeError, AssertionError, ImportError) as error:
        raise InputError(f"this machine has no device {str(name)!r}; use cpu, or cuda where there is a GPU") from error


def usual_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the hardware works in it, else float32."""
    if device.type == "cuda":
        return torch.bfloat16
    has_bfloat16 = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    return torch.bfloat16 if has_bfloat16 else torch.float32


def save(model: nn.Module, path: Path, header: dict[str, Any], int8: bool = True) -> None:
    """Write a model's weights; `header` (its sizes, how it was trained) goes into the file as JSON."""
    tensors: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        value = value.detach().cpu().float()
        if int8 and value.ndim >= 2 and value.numel() >= SMALL:
            tensors[name], tensors[name + SCALE] = quantised(value)
        else:
            tensors[name] = value.half() if int8 else value.contiguous()
    with replacing(path) as unfinished:
        save_file(tensors, unfinished, {"about": json.dumps(header)})


def relabel(path: Path, header: dict[str, Any]) -> None:
    """Give a file another header."""
    tensors = load_file(path)
    with replacing(path) as unfinished:
        save_file(tensors, unfinished, {"about": json.dumps(header)})


def about(path: Path) -> dict[str, Any]:
    """What the header of a file says: the network's name, its sizes where they are not the usual ones, its recipe."""
    with _opened(path) as file:
        return cast(dict[str, Any], json.loads((file.metadata() or {}).get("about", "{}")))


def load(model: nn.Module, path: Path) -> None:
    """Fill a model from a file, numbers brought back to its own precision."""
    with _opened(path) as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    state = {}
    for name, value in stored.items():
        if not name.endswith(SCALE):
            state[name] = value.float() * stored[name + SCALE].float() if name + SCALE in stored else value.float()
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{path} holds the weights of another network than {type(model).__name__}") from error


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"cannot read weights from {path}: {error}") from error


def quantised(value: Tensor) -> tuple[Tensor, Tensor]:
    """int8 numbers and a scale per first axis, float32, so that their product is about the value."""
    flat = value.flatten(1)
    scale = (flat.abs().amax(1) / 127).clamp(min=1e-12)
    whole = (flat / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
    return whole.view_as(value), scale.view(-1, *[1] * (value.ndim - 1))


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_hashes(folder: Path) -> None:
    """Note the hashes of all weights in a folder beside them."""
    hashes = {file.name: digest(file) for file in sorted(folder.glob("*.safetensors"))}
    with replacing(folder / "hashes.json") as unfinished:
        unfinished.write_text(json.dumps(hashes, indent=1) + "\n")


def checked(folder: Path, name: str) -> Path:
    """The file of a folder's weights; it must be there and, where the folder notes hashes, unaltered."""
    path, noted = folder / f"{name}.safetensors", folder / "hashes.json"
    if not path.is_file():
        raise InputError(f"there are no weights {path.name} in {folder}; give the folder that `homunculus train` wrote")
    if noted.is_file() and json.loads(noted.read_text()).get(path.name) not in (None, digest(path)):
        raise InputError(f"{path} is damaged: its hash is not the noted one; install the package again")
    return path
