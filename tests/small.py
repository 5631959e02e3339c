"""Small networks and noisy pages that several tests use."""

import torch

from homunculus import CellTree, Selection, positions, tokens
from homunculus.reader import Encoder
from homunculus.relevance import Scene


def small_encoder(seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    return Encoder(width=96, depth=2, heads=3).eval()


def noise(height: int, width: int, pages: int = 1) -> torch.Tensor:
    return torch.randint(0, 256, (pages, 3, height, width), dtype=torch.uint8, generator=torch.manual_seed(1))


def scene_of(height: int, width: int, pages: int = 1, cell: int = 32) -> Scene:
    return Scene(noise(height, width, pages), CellTree(height, width, cell))


def seen(scene: Scene, selection: Selection) -> tuple[torch.Tensor, torch.Tensor]:
    """What the encoder takes: patches and places."""
    return tokens.patches(scene.levels, selection), positions.coordinates(selection)
