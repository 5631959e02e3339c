"""From a run's weights in full precision to the small files that the package carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from homunculus.errors import InputError
from homunculus.reader import Encoder, Scout
from homunculus.reader.bridge import Bridge
from homunculus.reader.weights import about, load, save, write_hashes
from homunculus.train.answering import Joint

EYE: dict[str, type[Encoder | Scout]] = {"encoder": Encoder, "scout": Scout}


def shipped(run: Path, out: Path, which: str = "last") -> dict[str, int]:
    """Write int8 weights of an eye's run, or of a stage of the reader, with their hashes; bytes of each file."""
    parts = _reader(run / f"{which}.safetensors") or _eye(run, which)
    if not parts:
        raise InputError(f"there is no {which}.safetensors in {run}, {run}/encoder or {run}/scout; train first")
    out.mkdir(parents=True, exist_ok=True)
    for name, (model, header) in parts.items():
        save(model, out / f"{name}.safetensors", header)
    write_hashes(out)
    return {name: (out / f"{name}.safetensors").stat().st_size for name in parts}


def _eye(run: Path, which: str) -> dict[str, tuple[nn.Module, dict[str, Any]]]:
    parts: dict[str, tuple[nn.Module, dict[str, Any]]] = {}
    for name, kind in EYE.items():
        path = run / name / f"{which}.safetensors"
        if path.is_file():
            header = about(path)
            model = kind(**header.get("sizes", {}))
            load(model, path)
            parts[name] = model, header
    return parts


def _reader(path: Path) -> dict[str, tuple[nn.Module, dict[str, Any]]]:
    """Encoder and bridge of a stage of the reader; nothing if it is no such file."""
    header = about(path) if path.is_file() else {}
    if "bridge" not in header:
        return {}
    joint = Joint(Bridge(**header["bridge"]), Encoder())
    load(joint, path)
    told = {"network": "bridge", "sizes": header["bridge"], "fits": header["fits"], "recipe": header["recipe"]}
    return {"encoder": (joint.encoder, header | {"sizes": {}}), "bridge": (joint.bridge, told)}
