"""The vision encoder: what things cells show, one vector a cell, for any set of cells of an image.

A vision transformer of the shape of DINOv2's ViT-S, whose weights it is trained from. Every cell is one token, whatever
its level; where it lies on the image enters as a learned position, how coarse it is as a learned level.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.errors import InputError

CELL = 32
WIDTH, DEPTH, HEADS = 384, 12, 6
GRID = 37  # positions along each side of an image
LEVELS = 8  # coarser ones are taken as the last
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the pixels that it was trained on
EPSILON = 1e-6


def normalised(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Pixels [n, 3, h, w] from 0 to 255 with the mean and deviation that the encoder was trained on."""
    mean, std = (torch.tensor(values, device=pixels.device, dtype=dtype)[:, None, None] for values in (MEAN, STD))
    return (pixels.to(dtype) / 255 - mean) / std


class VisionBlock(nn.Module):
    """A transformer layer, pre-norm, with a learned scale of both branches."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale1, self.scale2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x [B, N, D] -> the same; mask [B, 1, 1, N] is False for tokens that a row does not have."""
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # [B, heads, N, D / heads]
        x = x + self.scale1 * self.out(y.transpose(1, 2).flatten(2))
        return x + self.scale2 * cast(Tensor, self.mlp(self.norm2(x)))


class CellEmbedding(nn.Module):
    """Pixels of cells to vectors: one linear map, and a small convolutional network beside it for what that misses."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * CELL * CELL, width)
        self.detail = nn.Sequential(
            nn.Conv2d(3, 48, 4, 4), nn.GELU(), nn.Conv2d(48, 96, 2, 2), nn.GELU(), nn.Flatten(),
            nn.Linear(96 * 16, width),
        )  # fmt: skip
        last = cast(nn.Linear, self.detail[-1])
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, pixels: Tensor) -> Tensor:
        """pixels [n, 3, 32, 32], normalised -> [n, width]."""
        return cast(Tensor, self.linear(pixels.flatten(1)) + self.detail(pixels))


class VisionEncoder(nn.Module):
    """About 23 million parameters: cells of any levels in, a vector for each cell and one for the image out."""

    def __init__(self, width: int = WIDTH, depth: int = DEPTH, heads: int = HEADS) -> None:
        super().__init__()
        self.stem = CellEmbedding(width)
        self.level = nn.Parameter(torch.zeros(LEVELS, width))
        self.position = nn.Parameter(torch.zeros(1, width, GRID, GRID))
        self.summary = nn.Parameter(torch.zeros(1, 1, width))  # the token that stands for the whole image
        self.blocks = nn.ModuleList(VisionBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, EPSILON)
        self.saliency = nn.Linear(width, 1)

    def forward(
        self, patches: Tensor, places: Tensor, sizes: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """A vector for each cell [B, K, D] and one for each image [B, D].

        Args:
            patches: uint8 [B, K, 3, 32, 32], see `homunculus.tokens.patches`.
            places: [B, K, 3] level and centre in fine cells, see `homunculus.positions.coordinates`.
            sizes: [B, 2] height and width of the images in pixels.
            mask: [B, K] False for places that a row does not have.
        """
        x = self.embed(patches, places, sizes)
        x = torch.cat((self.summary.to(x.dtype).expand(len(x), -1, -1), x), 1)
        allowed = None if mask is None else F.pad(mask, (1, 0), value=True)[:, None, None]
        for block in self.blocks:
            x = block(x, allowed)
        x = cast(Tensor, self.norm(x))
        return x[:, 1:], x[:, 0]

    def embed(self, patches: Tensor, places: Tensor, sizes: Tensor) -> Tensor:
        """What each cell looks like, where it lies and how coarse it is: [B, K, D]."""
        if patches.shape[2:] != (3, CELL, CELL):
            raise InputError(f"the encoder takes cells of 3 x {CELL} x {CELL}, got {list(patches.shape[2:])}")
        dtype = self.level.dtype
        x = self.stem(normalised(patches.flatten(0, 1), dtype)).view(*patches.shape[:2], -1)
        share = places[..., 1:].to(sizes.device).float() * CELL / sizes.flip(1)[:, None]  # [B, K, 2] x, y from 0 to 1
        grid = (2 * share - 1).to(dtype)[:, None]  # [B, 1, K, 2]
        table = self.position.expand(len(x), -1, -1, -1)
        position = F.grid_sample(table, grid, "bicubic", "border", align_corners=False)[:, :, 0].transpose(1, 2)
        low = places[..., 0].clamp(0, LEVELS - 1)
        below = low.floor().long()
        part = (low - below).to(dtype)[..., None]
        level = torch.lerp(self.level[below], self.level[(below + 1).clamp(max=LEVELS - 1)], part)
        return cast(Tensor, x + position + level)
