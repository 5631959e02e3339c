"""Where a token came from, in the forms that models take: rotary (level, x, y), M-RoPE ids, log-polar.

A token's position depends on its own cell alone, never on what was selected beside it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.cells import Selection
from homunculus.errors import InputError
from homunculus.fixation import PAGE_DEGREES


def coordinates(selection: Selection) -> Tensor:
    """Level and centre of each token, x and y in cells of level 0. float64 [B, K, 3]"""
    return torch.cat((selection.levels.double()[..., None], selection.centre / selection.cell), 2)


def rotary(places: Tensor, width: int, base: float = 10_000.0, share: tuple[int, int, int] = (1, 3, 3)) -> Tensor:
    """Angles of a rotary embedding of places [B, K, 3], (level, x, y), for heads of `width`: float32 [B, K, width / 2].

    `share` divides the width / 2 frequencies between level, x and y; each gets the usual geometric series, in float32
    whatever the model computes in: positions must not be rounded to bfloat16.
    """
    if width < 6 or width % 2 or min(share) < 0 or not sum(share):
        raise InputError(f"width must be even and at least 6 and share three numbers, got {width!r} and {share!r}")
    pairs = width // 2
    counts = [pairs * part // sum(share) for part in share]
    counts[1] += pairs - sum(counts)  # what division leaves goes to x
    angles = []
    for place, count in zip(places.double().unbind(-1), counts, strict=True):
        series = base ** (-torch.arange(count, device=places.device, dtype=torch.float64) / max(count, 1))
        angles.append(place[..., None] * series)
    return torch.cat(angles, -1).float()


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn queries or keys [B, heads, K, width] by angles [B, K, width / 2]; halves pair up as (i, i + width / 2)."""
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]  # [B, 1, K, width / 2]
    first, second = x.float().chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)


def mrope_ids(selection: Selection, start: int = 0, whole: bool = False) -> Tensor:
    """Temporal, height and width ids as M-RoPE models (Qwen-VL) count them, in cells of level 0: [3, B, K].

    A cell of level 0 in row i has id i; a coarse cell lies in the middle of those that it covers, (i + 0.5) 2^l - 0.5,
    which is fractional: float64, or rounded down to whole ids for models that take no others (`whole`). `start` is
    added to all three.
    """
    middle = selection.centre / selection.cell - 0.5  # [B, K, 2] x, y
    ids = torch.stack((torch.zeros_like(middle[..., 0]), middle[..., 1], middle[..., 0])) + start
    return ids.floor().long() if whole else ids


def logpolar(selection: Selection, fixation: Tensor, alpha: float = 0.35, degrees: float = PAGE_DEGREES) -> Tensor:
    """Log eccentricity log((e + alpha) / alpha) and angle in radians around the fixation [B, 2]: float64 [B, K, 2]."""
    if fixation.shape != (len(selection), 2) or not alpha > 0:
        raise InputError(
            f"fixation must be [{len(selection)}, 2] and alpha above 0, got {list(fixation.shape)} and {alpha!r}"
        )
    away = selection.centre - fixation.to(selection.boxes.device).double()[:, None]
    e = away.square().sum(2).sqrt() / (selection.sizes[:, :1].double() / degrees)
    return torch.stack((torch.log1p(e / alpha), torch.atan2(away[..., 1], away[..., 0])), 2)
