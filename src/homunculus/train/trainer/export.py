"""From a run's weights in full precision to the small files that the package carries."""

from __future__ import annotations

from pathlib import Path

from homunculus.errors import InputError
from homunculus.reader.weights import about, load, save, write_hashes
from homunculus.train.tasks.registry import TASKS


def export_weights(run: Path, out: Path, which: str = "last") -> dict[str, int]:
    """Write int8 weights of the networks that a run has trained, with their hashes; bytes of each file."""
    found = {name: run / name / f"{which}.safetensors" for name in TASKS}
    found = {name: path for name, path in found.items() if path.is_file()}
    if not found:
        raise InputError(f"there is no {which}.safetensors in {run}/{{{','.join(TASKS)}}}; train first")
    out.mkdir(parents=True, exist_ok=True)
    bytes_of = {}
    for name, path in found.items():
        header, spec = about(path), TASKS[name]
        model = spec.network(**header.get("sizes", {}))
        load(model, path)
        file = out / f"{spec.weights}.safetensors"
        save(model, file, header)
        bytes_of[spec.weights] = file.stat().st_size
    write_hashes(out)
    return bytes_of
