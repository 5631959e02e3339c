"""Photographs in memory, and random crops of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus.errors import InputError
from homunculus.train.scans.folders import in_parallel, is_val

SIDE = 512  # pixels: larger photographs are made smaller
ENDINGS = (".webp", ".jpg", ".jpeg", ".png")
SMALLEST = 0.2  # of a photograph's area that a crop shows
STRETCH = 1.33  # of a crop's aspect ratio against its canvas
GREY = 0.1  # share of crops that lose their colour
JITTER = 0.3  # of brightness, contrast and saturation


@dataclass(frozen=True, eq=False)
class Photos:
    """Photographs on one device.

    Shape:
        pixels uint8 [n, 3, SIDE, SIDE], grey beyond each photograph; sizes [n, 2] height and width.
    """

    pixels: Tensor
    sizes: Tensor

    def __len__(self) -> int:
        return len(self.pixels)

    @classmethod
    def read(cls, folders: Sequence[Path], device: torch.device, val: bool = False) -> Photos:
        """The photographs in `images/` of data folders, those kept for validation or all others."""
        files = [
            file
            for folder in folders
            for file in sorted((folder / "images").glob("*"))
            if file.suffix in ENDINGS and is_val(f"images/{file.name}") == val
        ]
        if not files:
            raise InputError(f"there are no photographs in images/ of {', '.join(map(str, folders)) or 'no folder'}")
        found = in_parallel(_read, [(file,) for file in files])
        pixels = torch.full((len(found), 3, SIDE, SIDE), 127, dtype=torch.uint8, device=device)
        for row, photo in zip(pixels, found, strict=True):
            row[:, : photo.shape[0], : photo.shape[1]] = torch.from_numpy(photo).permute(2, 0, 1)
        return cls(pixels, torch.tensor([photo.shape[:2] for photo in found], device=device))

    def crops(
        self,
        rows: Tensor,
        size: tuple[int, int],
        generator: torch.Generator,
        plain: bool = False,
        smallest: float = SMALLEST,
    ) -> Tensor:
        """Crops of photographs [B] at random places and scales, mirrored and recoloured: uint8 [B, 3, *size].

        They show at least a share `smallest` of the area; `plain` ones the whole photograph as it is.
        """
        device, n = self.pixels.device, len(rows)
        height, width = self.sizes[rows].float().unbind(1)

        def rand(low: float, high: float) -> Tensor:
            return (low + (high - low) * torch.rand(n, generator=generator)).to(device)

        share = torch.ones(n, device=device) if plain else rand(smallest, 1.0)
        stretch = torch.zeros(n, device=device) if plain else rand(-math.log(STRETCH), math.log(STRETCH))
        aspect = size[1] / size[0] * stretch.exp()
        area = share * height * width
        high, wide = (area / aspect).sqrt(), (area * aspect).sqrt()
        if plain:
            high, wide = height, width
        high, wide = torch.minimum(high, height), torch.minimum(wide, width)
        top = (height - high) * (0 if plain else rand(0, 1))
        left = (width - wide) * (0 if plain else rand(0, 1))
        mirrored = torch.zeros(n, device=device) if plain else (rand(0, 1) > 0.5).float()
        found = self._sampled(rows, size, (top, left, high, wide), mirrored)
        if not plain:
            found = _recoloured(found, rand)
        return found.round().clamp(0, 255).to(torch.uint8)

    def _sampled(
        self, rows: Tensor, size: tuple[int, int], box: tuple[Tensor, Tensor, Tensor, Tensor], mirrored: Tensor
    ) -> Tensor:
        """The pixels of a box of each photograph at another size: float [B, 3, *size]."""
        top, left, high, wide = box
        v, u = ((torch.arange(side, device=top.device) + 0.5) / side for side in size)
        u = torch.where(mirrored[:, None] > 0, 1 - u, u)
        most = self.sizes[rows].float() - 0.5
        y = (top[:, None] + v * high[:, None]).clamp(min=0.5).minimum(most[:, :1])
        x = (left[:, None] + u * wide[:, None]).clamp(min=0.5).minimum(most[:, 1:])
        grid = torch.stack(
            (
                (2 * x / SIDE - 1)[:, None].expand(-1, size[0], -1),
                (2 * y / SIDE - 1)[:, :, None].expand(-1, -1, size[1]),
            ),
            -1,
        )
        return F.grid_sample(self.pixels[rows].float(), grid, "bilinear", "border", align_corners=False)


def _recoloured(pixels: Tensor, rand: Callable[[float, float], Tensor]) -> Tensor:
    """Other brightness, contrast and saturation; some without colour."""
    grey = pixels.mean(1, keepdim=True)
    saturation = torch.where(rand(0, 1) < GREY, 0.0, rand(1 - JITTER, 1 + JITTER))[:, None, None, None]
    pixels = grey + saturation * (pixels - grey)
    mean = pixels.mean((1, 2, 3), keepdim=True)
    contrast, brightness = (rand(1 - JITTER, 1 + JITTER)[:, None, None, None] for _ in range(2))
    return (mean + contrast * (pixels - mean)) * brightness


def _read(file: Path) -> np.ndarray:
    """A photograph as uint8 [h, w, 3], at most SIDE pixels a side."""
    with Image.open(file) as image:
        photo = image.convert("RGB")
        photo.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
        return np.array(photo)
