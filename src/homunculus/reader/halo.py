"""Cells that lie side by side share their borders, so that a letter on a border is seen whole.

Only chosen cells give and take: nothing of the page is shown that was not selected.
"""

from __future__ import annotations

import torch
from torch import Tensor

HALO = 4  # pixels taken over from each neighbour
OFF_GRID = 0.02  # of a cell: patches further off the grid of their level have no neighbours
SIDES = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]


def neighbours(places: Tensor, mask: Tensor | None = None) -> Tensor:
    """Which chosen cells adjoin each on the grid of its own level: indices [B, K, 8] in the order of SIDES, K for none.

    places [B, K, 3] are level, x, y in fine cells; what mask [B, K] leaves out adjoins nothing.
    """
    level, position = places[..., :1].double(), places[..., 1:].double()
    at = position / 2**level - 0.5  # column, row
    whole = at.round()
    off = ((at - whole).abs() > OFF_GRID).any(2)
    off = off if mask is None else off | ~mask
    column, row = whole.long().clamp(-1, 2**19).unbind(2)
    depth = (level[..., 0] * 256).round().long().clamp(min=0)
    key = _key(depth, row, column)
    key = torch.where(off, -1 - torch.arange(key.shape[1], device=key.device), key)  # met by no one
    ordered, order = key.sort(1)
    neighbour_keys = torch.stack([_key(depth, row + dy, column + dx) for dy, dx in SIDES], 2)  # [B, K, 8]
    slot = torch.searchsorted(ordered, neighbour_keys.flatten(1)).clamp(max=key.shape[1] - 1)
    found = (ordered.gather(1, slot) == neighbour_keys.flatten(1)) & ~off.repeat_interleave(len(SIDES), 1)
    return torch.where(found, order.gather(1, slot), key.shape[1]).view(neighbour_keys.shape)


def _key(depth: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return (depth << 42) + ((row + 1) << 21) + column + 1


def haloed(cells: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
    """Cells [B, K, C, p, p] with the rim of their chosen neighbours around them, 0 where there is none: p + 2 HALO."""
    B, K, C, p, _ = cells.shape
    out = cells.new_zeros(B, K, C, p + 2 * HALO, p + 2 * HALO)
    out[..., HALO:-HALO, HALO:-HALO] = cells
    given = {-1: slice(p - HALO, p), 0: slice(0, p), 1: slice(0, HALO)}
    taken = {-1: slice(0, HALO), 0: slice(HALO, p + HALO), 1: slice(p + HALO, p + 2 * HALO)}
    near = neighbours(places, mask)
    for side, (dy, dx) in enumerate(SIDES):
        strip = cells[..., given[dy], given[dx]]
        strip = torch.cat((strip, strip.new_zeros(B, 1, *strip.shape[2:])), 1)
        index = near[:, :, side, None, None, None].expand(-1, -1, *strip.shape[2:])
        out[..., taken[dy], taken[dx]] = strip.gather(1, index)
    return out
