"""The parts that encoder and scout are built from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from homunculus.kernels.choice import kernels_for
from homunculus.positions import rotary

SCALE = 3.0  # radians per fine cell of the fastest rotary frequency: tells places within a cell apart
BASE = 1000.0
LEVEL_SHARE = (1, 3, 3)
TEXT = 1 / 3  # fine cells that one letter of a text counts as
SHARPNESS = 0.2  # of attention between queries and keys of unit size

Turn = tuple[Tensor, Tensor]


@contextmanager
def steady() -> Iterator[None]:
    """Attention without cuDNN's, which makes a plan for each new length and keeps it."""
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        yield


def turn_of(places: Tensor, head: int) -> Turn:
    """Cosines and sines of rotary angles of places [..., K, 3] (level, x, y in fine cells): [..., K, 1, head / 2]."""
    places = places.double()
    angles = rotary(torch.cat((places[..., :1], places[..., 1:] * SCALE), -1), head, BASE, LEVEL_SHARE)
    return angles.cos().unsqueeze(-2), angles.sin().unsqueeze(-2)


def turn_along(count: int, head: int, device: torch.device, step: float = 1.0) -> Turn:
    """The turn of the 1st, 2nd, ... place along a row, column or text, `step` fine cells apart: [n, 1, head / 2]."""
    places = torch.arange(count, device=device, dtype=torch.float64)[:, None] * step
    return turn_of(F.pad(places, (1, 1)), head)


def turned(x: Tensor, turn: Turn) -> Tensor:
    """Queries or keys [B, K, heads, width] turned by their places."""
    cos, sin = (part.to(x.dtype) for part in turn)
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def normed(x: Tensor, turn: Turn | None) -> Tensor:
    """Queries or keys of unit size, turned by their places if they have any."""
    x = F.rms_norm(x, x.shape[-1:], eps=1e-6)
    return x if turn is None else turned(x, turn)


class Attention(nn.Module):
    """Multi-head attention over tokens, to themselves or to others, with rotary places and normed queries and keys."""

    def __init__(self, width: int, heads: int, source: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(source or width, 2 * width, bias=False)
        self.out = nn.Linear(width, width)

    def keys(self, source: Tensor, turn: Turn | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of what is attended to: [B, N, heads, width / heads] each."""
        k, v = self.kv(source).unflatten(-1, (2, self.heads, -1)).unbind(-3)
        return self._ready(k, turn), v

    def forward(
        self,
        x: Tensor,
        keys: tuple[Tensor, Tensor] | None = None,
        turn: Turn | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """x [B, K, width] attends to keys, or to itself; mask is True where it may look, [B, 1, K or 1, N]."""
        q = self._ready(self.q(x).unflatten(-1, (self.heads, -1)), turn)
        k, v = self.keys(x, turn) if keys is None else keys
        q, k, v = (part.transpose(-2, -3) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=SHARPNESS)
        return cast(Tensor, self.out(y.transpose(-2, -3).flatten(-2)))

    def _ready(self, x: Tensor, turn: Turn | None) -> Tensor:
        """Queries or keys of unit size, turned by their places: what they say counts, not how loudly."""
        if kernels_for(x):
            from homunculus.reader.turning import ready

            return ready(x, turn)
        return normed(x, turn)


class Mlp(nn.Sequential):
    """Two layers with a GELU between."""

    def __init__(self, width: int, times: int = 4) -> None:
        super().__init__(nn.Linear(width, times * width), nn.GELU(), nn.Linear(times * width, width))


class Block(nn.Module):
    """A transformer layer, pre-norm: tokens look at each other, then each thinks."""

    def __init__(self, width: int, heads: int, times: int = 4) -> None:
        super().__init__()
        self.look, self.think = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp = Attention(width, heads), Mlp(width, times)

    def forward(self, x: Tensor, turn: Turn | None = None, mask: Tensor | None = None) -> Tensor:
        """x [B, K, width] -> the same."""
        x = x + self.attention(self.look(x), turn=turn, mask=mask)
        return x + cast(Tensor, self.mlp(self.think(x)))


class LocalBlock(nn.Module):
    """A ConvNeXt layer on a map [B, width, h, w]: each place sees its 7 x 7 neighbours, then thinks."""

    def __init__(self, width: int, times: int = 4) -> None:
        super().__init__()
        self.near = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.mlp = nn.LayerNorm(width), Mlp(width, times)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, width, h, w] -> the same."""
        y = self.mlp(self.norm(self.near(x).permute(0, 2, 3, 1)))
        return x + cast(Tensor, y).permute(0, 3, 1, 2)


class ConvBlock(nn.Module):
    """A residual 3 x 3 convolution; `crop` cuts off so much of each side behind it."""

    def __init__(self, width: int, crop: int = 0) -> None:
        super().__init__()
        self.conv, self.crop = nn.Conv2d(width, width, 3, padding=1), crop

    def forward(self, x: Tensor) -> Tensor:
        """x [B, width, h, w] -> [B, width, h - 2 crop, w - 2 crop]."""
        x = x + F.gelu(self.conv(x))
        return x[..., self.crop : x.shape[2] - self.crop, self.crop : x.shape[3] - self.crop]
