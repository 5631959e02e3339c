"""The parts that encoder and scout are built from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from homunculus.kernels.dispatch import use_triton
from homunculus.positions import rotary

SCALE = 3.0  # radians per fine cell of the fastest rotary frequency: tells places within a cell apart
BASE = 1000.0
LEVEL_SHARE = (1, 3, 3)
TEXT = 1 / 3  # fine cells that one letter of a text counts as
ATTN_SCALE = 0.2  # of products of queries and keys, which have unit size

Rope = tuple[Tensor, Tensor]


@contextmanager
def steady() -> Iterator[None]:
    """Attention without cuDNN's, which makes a plan for each new length and keeps it."""
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        yield


def rope_of(places: Tensor, head: int) -> Rope:
    """Cosines and sines of rotary angles of places [..., K, 3] (level, x, y in fine cells): [..., K, 1, head / 2]."""
    places = places.double()
    angles = rotary(torch.cat((places[..., :1], places[..., 1:] * SCALE), -1), head, BASE, LEVEL_SHARE)
    return angles.cos().unsqueeze(-2), angles.sin().unsqueeze(-2)


def rope_along(count: int, head: int, device: torch.device, step: float = 1.0) -> Rope:
    """Rope of the 1st, 2nd, ... place along a row, column or text, `step` fine cells apart: [n, 1, head / 2]."""
    places = torch.arange(count, device=device, dtype=torch.float64)[:, None] * step
    return rope_of(F.pad(places, (1, 1)), head)


def apply_rotary(x: Tensor, rope: Rope) -> Tensor:
    """Queries or keys [B, K, heads, width] turned by their places."""
    cos, sin = (part.to(x.dtype) for part in rope)
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def norm_and_rotate(x: Tensor, rope: Rope | None) -> Tensor:
    """Queries or keys of unit size, turned by their places if they have any."""
    x = F.rms_norm(x, x.shape[-1:], eps=1e-6)
    return x if rope is None else apply_rotary(x, rope)


class Attention(nn.Module):
    """Multi-head attention over tokens, to themselves or to others, with rotary places and normed queries and keys."""

    def __init__(self, width: int, heads: int, source: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(source or width, 2 * width, bias=False)
        self.out = nn.Linear(width, width)

    def keys(self, source: Tensor, rope: Rope | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of what is attended to: [B, N, heads, width / heads] each."""
        k, v = self.kv(source).unflatten(-1, (2, self.heads, -1)).unbind(-3)
        return self._norm(k, rope), v

    def forward(
        self,
        x: Tensor,
        keys: tuple[Tensor, Tensor] | None = None,
        rope: Rope | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """x [B, K, width] attends to keys, or to itself; mask is True where it may look, [B, 1, K or 1, N]."""
        q = self._norm(self.q(x).unflatten(-1, (self.heads, -1)), rope)
        k, v = self.keys(x, rope) if keys is None else keys
        q, k, v = (part.transpose(-2, -3) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=ATTN_SCALE)
        return cast(Tensor, self.out(y.transpose(-2, -3).flatten(-2)))

    def _norm(self, x: Tensor, rope: Rope | None) -> Tensor:
        """Queries or keys of unit size, turned by their places."""
        if use_triton(x):
            from homunculus.kernels.rotary import norm_and_rotate as fast

            return fast(x, rope)
        return norm_and_rotate(x, rope)


class Mlp(nn.Sequential):
    """Two layers with a GELU between."""

    def __init__(self, width: int, times: int = 4) -> None:
        super().__init__(nn.Linear(width, times * width), nn.GELU(), nn.Linear(times * width, width))


class Block(nn.Module):
    """A transformer layer, pre-norm: attention, then an MLP."""

    def __init__(self, width: int, heads: int, times: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, heads), Mlp(width, times)

    def forward(self, x: Tensor, rope: Rope | None = None, mask: Tensor | None = None) -> Tensor:
        """x [B, K, width] -> the same."""
        x = x + self.attn(self.norm1(x), rope=rope, mask=mask)
        return x + cast(Tensor, self.mlp(self.norm2(x)))


class LocalBlock(nn.Module):
    """A ConvNeXt layer on a map [B, width, h, w]: a 7 x 7 depthwise convolution, then an MLP."""

    def __init__(self, width: int, times: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.mlp = nn.LayerNorm(width), Mlp(width, times)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, width, h, w] -> the same."""
        y = self.mlp(self.norm(self.conv(x).permute(0, 2, 3, 1)))
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
