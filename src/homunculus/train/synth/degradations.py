"""What scanners, fax machines, cameras and compression do to a page, on batches of images in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def random_mask(images: Tensor, p: float) -> Tensor:
    """True with probability p for each image. [B, 1, 1, 1]"""
    return torch.rand(len(images), 1, 1, 1, device=images.device) < p


def uniform(images: Tensor, low: float, high: float) -> Tensor:
    """A random number for each image. [B, 1, 1, 1]"""
    return low + (high - low) * torch.rand(len(images), 1, 1, 1, device=images.device)


def smooth_noise(images: Tensor, octaves: int = 5) -> Tensor:
    """Smooth random clouds of several sizes, about 0 with deviation 1: [B, 1, H, W]."""
    B, _, H, W = images.shape
    total = torch.zeros(B, 1, H, W, device=images.device)
    for o in range(octaves):
        side = 3 * 2**o
        noise = torch.randn(B, 1, side, side, device=images.device) * uniform(images, 0, 1)
        total = total + F.interpolate(noise, (H, W), mode="bilinear")
    return total / math.sqrt(octaves / 3)


def affine(images: Tensor, matrix: Tensor, fill: str = "border") -> Tensor:
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


def downscale(images: Tensor, scale: float) -> Tensor:
    """Scanned at a fraction of the resolution and brought back."""
    size = [max(8, int(side * scale)) for side in images.shape[2:]]
    small = F.interpolate(images, size, mode="bilinear", antialias=True)
    return F.interpolate(small, list(images.shape[2:]), mode="bilinear")


def binarize(images: Tensor) -> Tensor:
    """Black and white, by a threshold and hardness of its own for each image."""
    threshold, hardness = uniform(images, 0.45, 0.75), uniform(images, 6, 40)
    return ((images - threshold) * hardness).sigmoid()


def fax(images: Tensor) -> Tensor:
    """Rows that slip sideways, rows that drop out, then black and white."""
    B, _, H, W = images.shape
    slip = (torch.rand(B, H, device=images.device) < 0.02).float() * torch.randn(B, H, device=images.device) * 1.5
    slip = slip.round().long()
    at = (torch.arange(W, device=images.device) + slip[..., None]).clamp(0, W - 1)
    images = images.gather(3, at[:, None].expand_as(images))
    lost = torch.rand(B, 1, H, 1, device=images.device) < 0.006
    return binarize(torch.where(lost, torch.ones_like(images), images))


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


def random_apply(images: Tensor, p: float, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change a share p of the images, drawn at random, in place; the others cost nothing."""
    count = int(p * len(images) + float(torch.rand(())))
    if count:
        picked = torch.randperm(len(images), device=images.device)[:count]
        images.index_copy_(0, picked, change(images[picked]).to(images.dtype))
    return images


def degrade(images: Tensor, strength: float = 1.0) -> Tensor:
    """A random mixture of all of it: [B, C, H, W] in [0, 1] -> the same; `strength` scales how often."""
    images = images.contiguous()
    scale = float(torch.empty(()).uniform_(0.45, 0.8))
    random_apply(images, 0.55 * strength, lambda x: blur(x, uniform(x, 0.3, 1.3)))
    random_apply(images, 0.2 * strength, lambda x: downscale(x, scale))
    random_apply(images, 0.6 * strength, lambda x: x + torch.randn_like(x) * uniform(x, 0, 0.09))
    random_apply(images, 0.3 * strength, lambda x: x + 0.04 * smooth_noise(x))
    random_apply(images, 0.28 * strength, binarize)
    random_apply(images, 0.06 * strength, fax)
    random_apply(images, 0.25 * strength, salt_and_pepper)
    random_apply(images, 0.4 * strength, lambda x: jpeg(x, uniform(x, 8, 60)))
    random_apply(images, 0.4 * strength, lambda x: x.clamp(0, 1) ** uniform(x, 0.7, 1.5) * uniform(x, 0.75, 1.1))
    return images.clamp_(0, 1)


def salt_and_pepper(images: Tensor) -> Tensor:
    """Single pixels of black and white."""
    noise = torch.rand_like(images[:, :1])
    rare = uniform(images, 0, 0.0015)
    return torch.where(noise < rare, (noise < rare / 2).to(images.dtype), images)
