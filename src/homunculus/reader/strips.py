"""Text lines as geometry, and strips: the pixels along a line, straightened and brought to one height.

A line is five numbers: the two ends of its centre line and its print height, all in pixels of the page, [n, 5] as
x0, y0, x1, y1, height. A strip reaches MARGIN of the print height beyond it on every side.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.pyramid import gaussian

MARGIN = 0.15  # of the print height, on each side of a line
STRIP_HEIGHT = 32  # pixels
MAX_WIDTH = 1536  # pixels; longer lines are squeezed
STEP = 32  # widths of a batch are multiples of this
LUMINANCE = (0.299, 0.587, 0.114)
TAIL = 32  # pixels at least behind the end of the longest strip of a batch


def grey(pixels: Tensor) -> Tensor:
    """Luminance of colour pages uint8 [B, 3, H, W], rounded: uint8 [B, H, W]."""
    weights = torch.tensor(LUMINANCE, device=pixels.device)[None, :, None, None]
    return (pixels.float() * weights).sum(1).round().to(torch.uint8)


def grey_pyramid(page: Tensor, levels: int) -> list[Tensor]:
    """The Gaussian pyramid of a grey page uint8 [H, W]: levels [h, w] each, finest first."""
    channels = 3 if page.is_cuda else 1  # the GPU's kernel takes colour
    return [level[0, 0] for level in gaussian(page.expand(1, channels, -1, -1).contiguous(), levels)]


def boxes_of(lines: Tensor) -> Tensor:
    """Boxes around lines: [n, 5] -> [n, 4] as x0, y0, x1, y1."""
    along, across, length = axes_of(lines)
    half = across.abs() * lines[:, 4:] / 2 + along.abs() * length[:, None] / 2
    centre = (lines[:, :2] + lines[:, 2:4]) / 2
    return torch.cat((centre - half, centre + half), 1)


def axes_of(lines: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Unit vectors along and across lines, [n, 2] each, and their lengths [n]."""
    direction = lines[:, 2:4] - lines[:, :2]
    length = direction.norm(dim=1).clamp(min=1e-3)
    along = direction / length[:, None]
    return along, torch.stack((-along[:, 1], along[:, 0]), 1), length


def widths_of(lines: Tensor, height: int = STRIP_HEIGHT) -> Tensor:
    """Widths of the strips of lines, in pixels of the strip. int64 [n]"""
    *_, length = axes_of(lines)
    scale = height / (lines[:, 4] * (1 + 2 * MARGIN)).clamp(min=1e-3)
    width = ((length + 2 * MARGIN * lines[:, 4]) * scale).round().long()
    return width.clamp(8, MAX_WIDTH * height // STRIP_HEIGHT)


def columns_of(width: int) -> int:
    """Columns of a batch whose longest strip has this width."""
    return -(-(width + TAIL) // STEP) * STEP


def strip_level(lines: Tensor, height: int = STRIP_HEIGHT) -> Tensor:
    """The pyramid level from which strips of lines are sampled: a strip pixel is 1 to 2 of its pixels. int64 [n]"""
    step = lines[:, 4] * (1 + 2 * MARGIN) / height
    return step.clamp(min=1).log2().floor().long()


def strip_grid(lines: Tensor, widths: Tensor, columns: int, height: int = STRIP_HEIGHT) -> Tensor:
    """Where on the page each pixel of the strips lies: [n, height, columns, 2] as x, y; exact for `widths` columns."""
    along, across, length = axes_of(lines)
    u = (torch.arange(columns, device=lines.device) + 0.5) / widths[:, None]  # [n, columns], 1 at the strip's end
    v = (torch.arange(height, device=lines.device) + 0.5) / height - 0.5  # [height]
    pad = MARGIN * lines[:, 4:]
    run = u * (length[:, None] + 2 * pad) - pad  # [n, columns]
    rise = v * lines[:, 4:] * (1 + 2 * MARGIN)  # [n, height]
    points = lines[:, None, None, :2] + run[:, None, :, None] * along[:, None, None]
    return points + rise[:, :, None, None] * across[:, None, None]


def bilinear(flat: Tensor, base: Tensor, sizes: Tensor, spots: Tensor) -> Tensor:
    """Values between pixels of many images in one flat tensor; edges are repeated.

    Shape:
        flat [P]; base [n, h, w] or [n, 1, 1] where the image of each spot begins; sizes [..., 2] its height and width;
        spots [n, h, w, 2] x, y in its pixels -> float [n, h, w].
    """
    high, width = sizes.unbind(-1)
    x, y = (spots - 0.5).unbind(-1)
    x0, y0 = x.floor(), y.floor()
    dx, dy = x - x0, y - y0
    left, top = x0.long(), y0.long()
    columns = [(left + i).clamp(min=0).minimum(width - 1) for i in (0, 1)]
    rows = [base + (top + j).clamp(min=0).minimum(high - 1) * width for j in (0, 1)]
    upper, lower = (flat[row + columns[0]].float() * (1 - dx) + flat[row + columns[1]].float() * dx for row in rows)
    return upper * (1 - dy) + lower * dy


def sample_strips(
    levels: Sequence[Tensor], lines: Tensor, height: int = STRIP_HEIGHT, shown: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Strips of lines from the pyramid of one grey page, levels [h, w] each, finest first.

    With `shown` int64 [n] each line is seen at that level, or at a coarser one if the strip needs no finer one. Returns
    uint8 [n, 1, height, W], grey behind the end of each strip, and their widths [n].
    """
    widths = widths_of(lines, height)
    columns = columns_of(int(widths.max()) if len(lines) else 0)
    level = strip_level(lines, height)
    level = (level if shown is None else torch.maximum(level, shown)).clamp(max=len(levels) - 1)
    flat = torch.cat([page.flatten() for page in levels])
    starts = torch.tensor([0, *(page.numel() for page in levels[:-1])], device=lines.device).cumsum(0)
    sizes = torch.tensor([page.shape for page in levels], device=lines.device)
    spots = strip_grid(lines, widths, columns, height) / 2.0 ** level[:, None, None, None]
    strips = bilinear(flat, starts[level][:, None, None], sizes[level][:, None, None], spots)
    inside = torch.arange(columns, device=lines.device) < widths[:, None, None]
    strips = torch.where(inside, strips, 127.5)
    return strips.round().to(torch.uint8)[:, None], widths
