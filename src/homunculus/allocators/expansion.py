"""Top-down expansion: the visible cells split wave by wave, and only they are ever measured.

A cell is its index in tree order; level, row and column follow from it by arithmetic, so a tree of 20 levels costs no
more than one of 5: nothing here asks for a tensor of the whole tree.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from homunculus.cells import CellTree

NEAR_BEST = 4.0  # a cell splits in one wave with the best cell if its gain is at least a quarter of it

Measure = Callable[[Tensor], Tensor]  # cells [B, n], -1 where there is none -> gain of splitting each, float64 [B, n]


def place_of(tree: CellTree, cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Level, row and column of cells [..]; of -1 those of the first cell."""
    coarse_first = torch.tensor(tree.offsets[::-1], device=cells.device)
    columns = torch.tensor([across for _, across in tree.shapes], device=cells.device)
    cells = cells.clamp(min=0)
    level = tree.levels - torch.searchsorted(coarse_first, cells, right=True)
    within = cells - coarse_first[tree.levels - 1 - level]
    return level, within // columns[level], within % columns[level]


def cell_at(tree: CellTree, level: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Index in tree order of the cells at these places. [..]"""
    offsets = torch.tensor(tree.offsets, device=level.device)
    columns = torch.tensor([across for _, across in tree.shapes], device=level.device)
    return offsets[level] + row * columns[level] + column


def children_of(tree: CellTree, cells: Tensor) -> Tensor:
    """The up to four cells below each, row by row, -1 where there is none: [B, n] -> [B, n, 4]."""
    level, row, column = (part[..., None] for part in place_of(tree, cells))
    corner = torch.arange(4, device=cells.device)
    below, row, column = (level - 1).clamp(min=0), 2 * row + corner // 2, 2 * column + corner % 2
    span = tree.cell * 2**below
    height, width = tree.sizes[:, :1, None], tree.sizes[:, 1:, None]
    there = (cells[..., None] >= 0) & (level > 0) & (row * span < height) & (column * span < width)
    return torch.where(there, cell_at(tree, below.expand_as(row), row, column), -1)


def boxes_of(tree: CellTree, cells: Tensor) -> Tensor:
    """Boxes x0, y0, x1, y1 in pixels, cut off at the border of the image: float64 [B, n, 4]."""
    level, row, column = place_of(tree, cells)
    span = (tree.cell * 2**level)[..., None]
    low = torch.stack((column, row), -1) * span
    return torch.cat((low, torch.minimum(low + span, tree.sizes.flip(1)[:, None])), -1).double()


def nearness(boxes: Tensor, points: Tensor, reach: float) -> Tensor:
    """1 for boxes [B, n, 4] that hold one of the points [B, F, 2], a half `reach` pixels away, and so on. [B, n]"""
    at = points[:, None].double()  # [B, 1, F, 2]
    low, high = boxes[:, :, None, :2], boxes[:, :, None, 2:]
    away = (torch.maximum(low - at, at - high).clamp(min=0)).square().sum(3).sqrt().amin(2)
    return reach / (away + reach)


def expand(tree: CellTree, start: Tensor, measure: Measure, quota: Tensor, wave: int) -> tuple[Tensor, Tensor]:
    """The visible cells [B, K] once no split fits the quota [B, 1] any more, in tree order, -1 last; and their gains.

    It begins with the cells `start` [B, R]. In a wave, up to `wave` cells whose gain is near that of the best give way
    to their children, which are measured then. At most 2 cells stay over, because a split costs at most 3. A row whose
    quota is below its start keeps the best of it.
    """
    cells, gain = _best_of(start, measure(start).double(), quota)
    done = quota < (start >= 0).sum(1, keepdim=True)
    width = max(int(quota.max()), 1)
    while True:
        children = children_of(tree, cells)
        price = (children >= 0).sum(2) - 1  # [B, n]
        key = torch.where((price >= 0) & ~done, gain, -torch.inf)
        order = key.argsort(dim=1, descending=True, stable=True)[:, :wave]  # [B, w]
        key, room = key.gather(1, order), quota - (cells >= 0).sum(1, keepdim=True)
        split = (key > -torch.inf) & (key * NEAR_BEST >= key[:, :1]) & (price.gather(1, order).cumsum(1) <= room)
        if not bool(split.any()):
            return cells, gain
        born = torch.where(split[..., None], children.gather(1, order[..., None].expand(-1, -1, 4)), -1).flatten(1)
        kept = cells.scatter(1, order, torch.where(split, -1, cells.gather(1, order)))
        cells, gain = torch.cat((kept, born), 1), torch.cat((gain, measure(born).double()), 1)
        last = torch.where(cells >= 0, cells, torch.iinfo(torch.int64).max).argsort(dim=1, stable=True)[:, :width]
        cells, gain = cells.gather(1, last), gain.gather(1, last)


def _best_of(cells: Tensor, gain: Tensor, quota: Tensor) -> tuple[Tensor, Tensor]:
    """The `quota` cells of highest gain in each row, in tree order, -1 in the place of the others."""
    rank = torch.where(cells >= 0, gain, -torch.inf).argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return torch.where(rank < quota, cells, -1), gain
