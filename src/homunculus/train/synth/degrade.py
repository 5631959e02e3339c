"""What scanners, fax machines, cameras and compression do to a page, on batches of images in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def chance(images: Tensor, share: float) -> Tensor:
    """True for about that share of the images. [B, 1, 1, 1]"""
    return torch.rand(len(images), 1, 1, 1, device=images.device) < share


def between(images: Tensor, low: float, high: float) -> Tensor:
    """A random number for each image. [B, 1, 1, 1]"""
    return low + (high - low) * torch.rand(len(images), 1, 1, 1, device=images.device)


def texture(images: Tensor, octaves: int = 5) -> Tensor:
    """Smooth random clouds of several sizes, about 0 with deviation 1: [B, 1, H, W]."""
    B, _, H, W = images.shape
    total = torch.zeros(B, 1, H, W, device=images.device)
    for o in range(octaves):
        side = 3 * 2**o
        noise = torch.randn(B, 1, side, side, device=images.device) * between(images, 0, 1)
        total = total + F.interpolate(noise, (H, W), mode="bilinear")
    return total / math.sqrt(octaves / 3)


def warp(images: Tensor, matrix: Tensor, fill: str = "border") -> Tensor:
    """Images seen through affine maps [B, 2, 3] from output to input, in the -1..1 coordinates of `affine_grid`."""
    grid = F.affine_grid(matrix.to(images.dtype), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode=fill, align_corners=False)


def blur(images: Tensor, sigma: Tensor) -> Tensor:
    """Gaussian blur by a sigma per image [B, 1, 1, 1], up to about 1.6 pixels."""
    B, C, H, W = images.shape
    steps = torch.arange(-3, 4, device=images.device)
    kernel = torch.exp(-(steps**2) / (2 * sigma.view(B, 1) ** 2 + 1e-6))
    kernel = (kernel / kernel.sum(1, keepdim=True)).repeat_interleave(C, 0).to(images.dtype)
    flat = F.pad(images.reshape(1, B * C, H, W), (3, 3, 3, 3), mode="replicate")
    flat = F.conv2d(flat, kernel[:, None, None, :], groups=B * C)
    return F.conv2d(flat, kernel[:, None, :, None], groups=B * C).view(B, C, H, W)


def coarse(images: Tensor, scale: float) -> Tensor:
    """Scanned at a fraction of the resolution and brought back."""
    size = [max(8, int(side * scale)) for side in images.shape[2:]]
    small = F.interpolate(images, size, mode="bilinear", antialias=True)
    return F.interpolate(small, list(images.shape[2:]), mode="bilinear")


def binary(images: Tensor) -> Tensor:
    """Black and white, by a threshold and hardness of its own for each image."""
    threshold, hardness = between(images, 0.45, 0.75), between(images, 6, 40)
    return ((images - threshold) * hardness).sigmoid()


def fax(images: Tensor) -> Tensor:
    """Rows that slip sideways, rows that drop out, then black and white."""
    B, _, H, W = images.shape
    slip = (torch.rand(B, H, device=images.device) < 0.02).float() * torch.randn(B, H, device=images.device) * 1.5
    slip = slip.round().long()
    at = (torch.arange(W, device=images.device) + slip[..., None]).clamp(0, W - 1)
    images = images.gather(3, at[:, None].expand_as(images))
    lost = torch.rand(B, 1, H, 1, device=images.device) < 0.006
    return binary(torch.where(lost, torch.ones_like(images), images))


def jpeg(images: Tensor, quality: Tensor) -> Tensor:
    """Quantised 8 x 8 cosine blocks; quality [B, 1, 1, 1] from 5 (worst) to 95. Sides must divide by 8."""
    n = torch.arange(8, device=images.device)
    basis = torch.cos((2 * n[None] + 1) * n[:, None] * math.pi / 16) * math.sqrt(1 / 4)
    basis[0] = math.sqrt(1 / 8)
    basis = basis.to(images.dtype)
    step = (10 + 5.5 * (n[:, None] + n)) / 255  # coarser for finer waves, about as the standard's table
    step = step * torch.where(quality < 50, 50 / quality, (2 - quality / 50).clamp(min=0.05)).view(-1, 1, 1, 1, 1, 1)
    B, C, H, W = images.shape
    blocks = images.view(B, C, H // 8, 8, W // 8, 8).transpose(3, 4) - 0.5
    waves = basis @ blocks @ basis.T
    waves = (waves / step).round() * step
    return (basis.T @ waves @ basis + 0.5).transpose(3, 4).reshape(B, C, H, W)


def some(images: Tensor, share: float, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change about that share of the images, drawn by lot, in place; the others cost nothing."""
    count = int(share * len(images) + float(torch.rand(())))
    if count:
        picked = torch.randperm(len(images), device=images.device)[:count]
        images.index_copy_(0, picked, change(images[picked]).to(images.dtype))
    return images


def wear(images: Tensor, hard: float = 1.0) -> Tensor:
    """A random mixture of all of it: [B, C, H, W] in [0, 1] -> the same; `hard` scales how often."""
    images = images.contiguous()
    scale = float(torch.empty(()).uniform_(0.45, 0.8))
    some(images, 0.55 * hard, lambda x: blur(x, between(x, 0.3, 1.3)))
    some(images, 0.2 * hard, lambda x: coarse(x, scale))
    some(images, 0.6 * hard, lambda x: x + torch.randn_like(x) * between(x, 0, 0.09))
    some(images, 0.3 * hard, lambda x: x + 0.04 * texture(x))
    some(images, 0.28 * hard, binary)
    some(images, 0.06 * hard, fax)
    some(images, 0.25 * hard, specks)
    some(images, 0.4 * hard, lambda x: jpeg(x, between(x, 8, 60)))
    some(images, 0.4 * hard, lambda x: x.clamp(0, 1) ** between(x, 0.7, 1.5) * between(x, 0.75, 1.1))
    return images.clamp_(0, 1)


def specks(images: Tensor) -> Tensor:
    """Single pixels of black and white."""
    noise = torch.rand_like(images[:, :1])
    rare = between(images, 0, 0.0015)
    return torch.where(noise < rare, (noise < rare / 2).to(images.dtype), images)
