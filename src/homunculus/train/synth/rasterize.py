"""Laid-out pages become pixels, a batch at a time on the GPU: glyphs from an atlas, fills and strokes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.train.synth.atlas import BASELINE, EM, ORIGIN, Atlas

SIZES = (13, 17, 22, 28, 38, 56, 90, 220)  # pixels per em up to which glyphs are drawn together
CHUNK = 1 << 26  # pixels written at a time
LEFT, ABOVE, WIDE, TALL = 0.22, 0.95, 1.4, 1.3  # of an em: the window around the pen that is drawn
SHAPE = {"em": EM, "origin": ORIGIN, "baseline": BASELINE, "left": LEFT, "above": ABOVE, "wide": WIDE, "tall": TALL}


@dataclass(frozen=True, eq=False)
class Glyphs:
    """An atlas ready for drawing: its tiles at full, half and quarter size in one flat tensor."""

    texels: Tensor  # uint8, flat
    starts: Tensor  # [3] where each size begins

    @classmethod
    def of(cls, atlas: Atlas, device: torch.device | str) -> Glyphs:
        """Halve the tiles twice."""
        maps = [atlas.glyphs.to(device).flatten(0, 1)]
        for _ in range(2):
            maps.append(F.avg_pool2d(maps[-1][:, None].float(), 2)[:, 0].round().to(torch.uint8))
        starts = torch.tensor([0, maps[0].numel(), maps[0].numel() + maps[1].numel()], device=device)
        return cls(torch.cat([m.flatten() for m in maps]), starts)


def ink(glyphs: Tensor, font: Glyphs, size: tuple[int, int, int]) -> Tensor:
    """Coverage of text: glyphs [G, 7] (page, code, font, x, baseline, pixels per em, ink) -> [B, H, W].

    Ink below zero is light text, above dark; where glyphs touch, they add up.
    """
    B, H, W = size
    canvas = torch.zeros(B * H * W, device=glyphs.device)
    if glyphs.is_cuda:
        from homunculus.kernels.glyphs import stamp as fast

        fast(canvas, glyphs, font.texels, font.starts, H, W, **SHAPE)
    else:
        stamp(canvas, glyphs, font.texels, font.starts, H, W)
    return canvas.view(B, H, W).clamp(-1, 1)


def stamp(canvas: Tensor, glyphs: Tensor, texels: Tensor, starts: Tensor, H: int, W: int) -> None:
    """Draw glyphs onto a flat canvas, those of about one size together."""
    low = 0.0
    for high in SIZES:
        group = glyphs[(glyphs[:, 5] > low) & (glyphs[:, 5] <= high)]
        low = high
        rows, columns = int(TALL * high) + 2, int(WIDE * high) + 2
        for part in group.split(max(1, CHUNK // (rows * columns))):
            if len(part):
                _stamp(canvas, part, texels, starts, rows, columns, H, W)


def _stamp(
    canvas: Tensor, glyphs: Tensor, texels: Tensor, starts: Tensor, rows: int, columns: int, H: int, W: int
) -> None:
    """Draw glyphs into windows of rows x columns pixels around their pens."""
    page, code, font, x, y, size, strength = glyphs.unbind(1)
    mip = (EM / size * 1.2).log2().floor().clamp(0, 2)  # the tile that is about as large as the letter
    side = (64 / 2**mip).long()[:, None, None]
    scale = EM / 2**mip / size  # texels per pixel
    left, top = (x - LEFT * size).floor(), (y - ABOVE * size).floor()
    across = torch.arange(columns, device=glyphs.device)
    down = torch.arange(rows, device=glyphs.device)
    px, py = left[:, None] + across, top[:, None] + down  # [n, columns], [n, rows]
    u = (px + 0.5 - x[:, None]) * scale[:, None] + (ORIGIN / 2**mip)[:, None] - 0.5
    v = (py + 0.5 - y[:, None]) * scale[:, None] + (BASELINE / 2**mip)[:, None] - 0.5
    u, v = u[:, None, :], v[:, :, None]
    u0, v0 = u.floor(), v.floor()
    du, dv = u - u0, v - v0
    tile = starts[mip.long()][:, None, None] + (font.long() * 94 + code.long())[:, None, None] * side * side
    value = torch.zeros(len(glyphs), rows, columns, device=glyphs.device)
    for i, wide in ((0, 1 - du), (1, du)):
        for j, tall in ((0, 1 - dv), (1, dv)):
            cu, cv = (u0 + i).long(), (v0 + j).long()
            inside = (cu >= 0) & (cu < side) & (cv >= 0) & (cv < side)
            at = tile + cv.clamp(min=0) * side + cu.clamp(min=0)
            value = value + torch.where(inside, texels[torch.where(inside, at, 0)].float() * wide * tall, 0.0)
    value = value * (strength / 255)[:, None, None]
    on = (py >= 0) & (py < H)
    seen = on[:, :, None] & ((px >= 0) & (px < W))[:, None, :]
    at = (page[:, None] * H + py).long()[:, :, None] * W + px.long()[:, None, :]
    canvas.index_add_(0, torch.where(seen, at, 0).flatten(), torch.where(seen, value, 0.0).flatten())


def strokes(segments: Tensor, size: tuple[int, int, int]) -> Tensor:
    """Coverage of lines: segments [S, 7] (page, x0, y0, x1, y1, width, darkness) -> [B, H, W]."""
    B, H, W = size
    canvas = torch.zeros(B * H * W, device=segments.device)
    if len(segments):
        page, x0, y0, x1, y1, width, dark = segments.unbind(1)
        length = torch.hypot(x1 - x0, y1 - y0)
        along, across = (2 * length).ceil().long() + 1, (2 * width).ceil().long().clamp(min=1)
        which = torch.repeat_interleave(torch.arange(len(segments), device=segments.device), along * across)
        order = torch.arange(len(which), device=which.device) - (along * across).cumsum(0).sub(along * across)[which]
        t = (order // across[which]) / (along[which] - 1).clamp(min=1)
        o = ((order % across[which]) + 0.5) / across[which] - 0.5
        nx, ny = (-(y1 - y0) / length.clamp(min=1e-3))[which], ((x1 - x0) / length.clamp(min=1e-3))[which]
        x = x0[which] + t * (x1 - x0)[which] + o * width[which] * nx - 0.5
        y = y0[which] + t * (y1 - y0)[which] + o * width[which] * ny - 0.5
        weight = dark[which] * 0.3 * width[which].clamp(max=1.5)
        corner = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1]], device=x.device)
        cx, cy = x.floor() + corner[:, :1], y.floor() + corner[:, 1:]  # [4, points]
        share = (1 - (x - cx).abs()) * (1 - (y - cy).abs()) * weight
        seen = (cx >= 0) & (cx < W) & (cy >= 0) & (cy < H)
        at = (page[which] * H + cy).long() * W + cx.long()  # float32 cannot count a batch's pixels
        canvas.index_add_(0, torch.where(seen, at, 0).flatten(), torch.where(seen, share, 0.0).flatten())
    return canvas.view(B, H, W).clamp(0, 1)


def fills(boxes: Tensor, size: tuple[int, int, int], channels: int) -> Tensor:
    """What filled rectangles take from the light: boxes [M, 7] (page, x0, y0, x1, y1, darkness, tint) -> [B, C, H, W].

    Corners are added and summed up twice, so any number of rectangles costs the same.
    """
    B, H, W = size
    edges = torch.zeros(B, channels, H + 1, W + 1, device=boxes.device)
    if len(boxes):
        page = boxes[:, 0].long()
        x0, x1 = boxes[:, 1].round().long().clamp(0, W), boxes[:, 3].round().long().clamp(0, W)
        y0, y1 = boxes[:, 2].round().long().clamp(0, H), boxes[:, 4].round().long().clamp(0, H)
        dark, tint = boxes[:, 5:6], boxes[:, 6:7]
        hue = 0.5 + 0.5 * torch.cos(2 * torch.pi * (tint + torch.arange(3, device=boxes.device) / 3))  # [M, 3]
        taken = dark * torch.where(tint > 0, hue, 1.0)
        taken = taken.mean(1, keepdim=True) if channels == 1 else taken
        for y, x, sign in ((y0, x0, 1.0), (y0, x1, -1.0), (y1, x0, -1.0), (y1, x1, 1.0)):
            for c in range(channels):
                edges.index_put_((page, torch.full_like(page, c), y, x), sign * taken[:, c], accumulate=True)
    return edges.cumsum(2).cumsum(3)[..., :H, :W].clamp(0, 1)
