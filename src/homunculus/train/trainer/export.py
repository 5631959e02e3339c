"""From a run's weights in full precision to the small files that the package carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from homunculus.errors import InputError
from homunculus.reader.encoder import Encoder
from homunculus.reader.finder import LineFinder
from homunculus.reader.lora import Lora
from homunculus.reader.recognizer import Recognizer
from homunculus.reader.scout import Scout
from homunculus.reader.weights import about, load, save, write_hashes

NETWORKS: dict[str, type[nn.Module]] = {
    "encoder": Encoder,
    "scout": Scout,
    "finder": LineFinder,
    "recognizer": Recognizer,
    "answer": Lora,
}
FILES = {"answer": "lora"}  # names of files that differ from their section's


def shipped(run: Path, out: Path, which: str = "last") -> dict[str, int]:
    """Write int8 weights of the networks that a run has trained, with their hashes; bytes of each file."""
    found = {name: run / name / f"{which}.safetensors" for name in NETWORKS}
    found = {name: path for name, path in found.items() if path.is_file()}
    if not found:
        raise InputError(f"there is no {which}.safetensors in {run}/{{{','.join(NETWORKS)}}}; train first")
    out.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name, path in found.items():
        header: dict[str, Any] = about(path)
        model = NETWORKS[name](**header.get("sizes", {}))
        load(model, path)
        file = out / f"{FILES.get(name, name)}.safetensors"
        save(model, file, header)
        sizes[file.stem] = file.stat().st_size
    write_hashes(out)
    return sizes
