"""A LoRA to start from: the matrices of rank 24 that version 0.1 trained for the same language model.

git show v0.1-reader:src/homunculus/reader/weights/bridge.safetensors > bridge.safetensors
python tools/lora_from_bridge.py bridge.safetensors runs/start
homunculus train reader --config configs/reader_cpu.toml --stage answer --start runs/start
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from homunculus.reader.lora import ALPHA, Lora
from homunculus.reader.weights import SCALE, save

RANK = 64


def main(bridge: Path, out: Path) -> None:
    """Write last.safetensors: the old matrices, and fresh rows beside them."""
    stored = load_file(bridge)

    def old(name: str) -> torch.Tensor:
        value = stored[name].float()
        return value * stored[name + SCALE].float() if name + SCALE in stored else value

    torch.manual_seed(0)
    lora = Lora(rank=RANK)
    with torch.no_grad():
        for i, weights in enumerate(lora.weights):
            down, up = old(f"added.{i}.down.weight"), old(f"added.{i}.up.weight")  # [r, in], [out, r]
            size = (down.norm(dim=1) / up.norm(dim=0).clamp(min=1e-6) * ALPHA).sqrt()  # both matrices of one size
            weights.a[: len(down)] = down / size[:, None]
            weights.b[:, : len(down)] = up * size / ALPHA
    out.mkdir(parents=True, exist_ok=True)
    save(lora, out / "last.safetensors", {"sizes": lora.sizes}, int8=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
