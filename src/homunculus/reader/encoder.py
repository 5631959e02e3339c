"""The encoder: any set of cells in, one vector per cell out, and a head that names the characters in each cell.

Every cell is a small picture of the same size, whatever its level; where it came from (level, x, y) enters as a rotary
embedding, so a vector depends on a cell, its neighbours and their distances, never on which rule chose them.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.errors import InputError
from homunculus.reader.blocks import Block, ConvBlock, rope_of
from homunculus.reader.halo import HALO, haloed
from homunculus.reader.letters import CLASSES

CELL = 32
LEVELS = 10  # deeper ones are taken as the last
ROWS, COLUMNS = 4, 8  # slots of a cell in which the dense head names the character centred there


class Stem(nn.Sequential):
    """One cell's pixels with a rim of its neighbours' to one vector: [n, 3, 40, 40] -> [n, width]."""

    def __init__(self, width: int) -> None:
        super().__init__(
            nn.Conv2d(3, 48, 4, 2, 1),
            nn.GELU(),
            nn.Conv2d(48, 96, 3, 2, 1),
            nn.GELU(),
            ConvBlock(96, crop=HALO // 4),  # the rim has told the border what it needs to know
            nn.Conv2d(96, 192, 3, 2, 1),
            nn.GELU(),
            ConvBlock(192),
            nn.Flatten(),
            nn.Linear(192 * 16, width),
        )


class Encoder(nn.Module):
    """About 20 million parameters: a convolutional stem per cell, a transformer over the cells, a dense head."""

    def __init__(self, width: int = 384, depth: int = 10, heads: int = 6) -> None:
        super().__init__()
        self.head = width // heads
        self.stem = Stem(width)
        self.level = nn.Embedding(LEVELS, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.slots = nn.Linear(width, ROWS * COLUMNS * 40)
        self.letters = nn.Linear(40, CLASSES)

    def forward(self, patches: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """One vector per cell.

        Args:
            patches: uint8 [B, K, 3, 32, 32], see `homunculus.tokens.patches`.
            places: [B, K, 3] level and centre in fine cells, see `homunculus.positions.coordinates`.
            mask: [B, K] False for places that a row does not have.
        """
        x = self.embed(patches, places, mask)
        rope = rope_of(places, self.head)
        allowed = None if mask is None or bool(mask.all()) else mask[:, None, None]
        for block in self.blocks:
            x = block(x, rope, allowed)
        return cast(Tensor, self.norm(x))

    def embed(self, patches: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """What each cell looks like up to its borders: uint8 [B, K, 3, 32, 32], places [B, K, 3] -> [B, K, width]."""
        if patches.shape[2:] != (3, CELL, CELL):
            raise InputError(f"the encoder reads cells of 3 x {CELL} x {CELL}, got {list(patches.shape[2:])}")
        dtype = self.level.weight.dtype
        pixels = haloed(patches.to(dtype) / 127.5 - 1, places, mask).flatten(0, 1)
        pixels, levels = pixels.contiguous(memory_format=torch.channels_last), places[..., 0]
        low = levels.clamp(0, LEVELS - 1).floor().long()
        high, part = (low + 1).clamp(max=LEVELS - 1), (levels - low).clamp(0, 1).to(dtype)[..., None]
        level = torch.lerp(self.level(low), self.level(high), part)  # `uniform` has fractional levels
        return cast(Tensor, self.stem(pixels)).view(*patches.shape[:2], -1) + level

    def characters(self, x: Tensor) -> Tensor:
        """Dense reading: which character, if any, has its centre in each slot of each cell: logits [B, K, 4, 8, 96]."""
        return cast(Tensor, self.letters(F.gelu(self.slots(x)).unflatten(-1, (ROWS, COLUMNS, 40))))
