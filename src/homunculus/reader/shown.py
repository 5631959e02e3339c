"""What a look shows of text lines: how large their print is in the chosen cells, and their strips from these alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus import tokens
from homunculus.cells import Selection
from homunculus.pyramid import gaussian
from homunculus.reader.strips import (
    STRIP_HEIGHT,
    axes_of,
    bilinear,
    columns_of,
    sample_strips,
    strip_grid,
    strip_level,
    widths_of,
)

SHARE = 0.8  # of a line that must be shown
ROWS, COLUMNS = 3, 32  # points of a line at which the shown level is looked up
UNKNOWN = 127.5  # grey of what no chosen cell shows
OFF_TREE = 8  # pixels of the map of cells that are on no tree


@dataclass(frozen=True, eq=False)
class CellMap:
    """The finest chosen cell at every place of a page.

    Shape:
        cell int64 [rows, columns], -1 where none is; `side` pixels a place; levels [K], boxes [K, 4] of the cells.
    """

    cell: Tensor
    side: int
    levels: Tensor
    boxes: Tensor

    @classmethod
    def of(cls, selection: Selection) -> CellMap:
        """From a selection of one image."""
        there = selection.mask[0]
        levels, boxes = selection.levels[0][there].float(), selection.boxes[0][there].float()
        height, width = selection.sizes[0].tolist()
        on_tree = selection.indices is not None
        side = selection.cell if on_tree else OFF_TREE
        shape = -(-height // side), -(-width // side)
        paint = _paint_tree if on_tree else _paint_boxes
        return cls(paint(levels, boxes, shape, side), side, levels, boxes)

    def at(self, spots: Tensor) -> Tensor:
        """The cell under each spot [..., 2] in pixels: int64 [...], -1 for none and beyond the page."""
        rows, columns = self.cell.shape
        x, y = (spots / self.side).floor().long().unbind(-1)
        inside = (x >= 0) & (y >= 0) & (x < columns) & (y < rows)
        return torch.where(inside, self.cell[y.clamp(0, rows - 1), x.clamp(0, columns - 1)], -1)


def _paint_tree(levels: Tensor, boxes: Tensor, shape: tuple[int, int], side: int) -> Tensor:
    """Cells of a tree on the grid of its finest level, finer ones over coarser ones."""
    painted = torch.full(shape, -1, device=boxes.device)
    row, column = (torch.arange(n, device=boxes.device) for n in shape)
    for level in sorted({int(value) for value in levels.tolist()}, reverse=True):
        index = (levels == level).nonzero()[:, 0]
        x, y = (boxes[index, :2] / (side << level)).long().unbind(1)
        grid = torch.full(((shape[0] >> level) + 1, (shape[1] >> level) + 1), -1, device=boxes.device)
        grid[y, x] = index
        here = grid[row >> level][:, column >> level]
        painted = torch.where(here >= 0, here, painted)
    return painted


def _paint_boxes(levels: Tensor, boxes: Tensor, shape: tuple[int, int], side: int) -> Tensor:
    """Any boxes, finer ones over coarser ones."""
    painted = torch.full(shape, -1, device=boxes.device)
    for k in levels.argsort(descending=True).tolist():
        x0, y0, x1, y1 = (boxes[k] / side).round().long().tolist()
        painted[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)] = k
    return painted


def shown_levels(cells: CellMap, lines: Tensor) -> Tensor:
    """The level that SHARE of each line [n, 5] is shown at, or finer; inf where less of it is shown. float [n]"""
    if not len(lines):
        return lines.new_zeros(0)
    cell = cells.at(points_on(lines)).flatten(1)  # [n, points]
    level = torch.where(cell >= 0, cells.levels[cell.clamp(min=0)], torch.inf)
    place = min(level.shape[1] - 1, int(SHARE * level.shape[1]))
    return level.sort(1).values[:, place]


def points_on(lines: Tensor) -> Tensor:
    """Points spread over each line: [n, ROWS, COLUMNS, 2] in pixels."""
    along, across, length = axes_of(lines)
    u = (torch.arange(COLUMNS, device=lines.device) + 0.5) / COLUMNS
    v = (torch.arange(ROWS, device=lines.device) + 0.5) / ROWS - 0.5
    run = (u * length[:, None])[:, None, :, None] * along[:, None, None]
    rise = (v * lines[:, 4:])[:, :, None, None] * across[:, None, None]
    return lines[:, None, None, :2] + run + rise


def strips_of(
    levels: Sequence[Tensor], selection: Selection, cells: CellMap, lines: Tensor, height: int = STRIP_HEIGHT
) -> tuple[Tensor, Tensor]:
    """Strips of lines from the pixels of the chosen cells only, each pixel at the level that it was chosen at.

    Print that is larger there than the strip is high is made smaller cell by cell.

    Args:
        levels: the pyramid of one grey page, uint8 [h, w] each.
        lines: [n, 5], on the device of the levels.

    Returns:
        uint8 [n, 1, height, W], grey where nothing is shown, and widths [n].
    """
    if selection.indices is None:
        whole = tokens.reconstruct([level[None, None] for level in levels], selection).to(torch.uint8)
        pages = gaussian(whole.expand(-1, 3, -1, -1).contiguous(), len(levels))
        return sample_strips([page[0, 0] for page in pages], lines, height)
    widths = widths_of(lines, height)
    columns = columns_of(int(widths.max()) if len(lines) else 0)
    spots = strip_grid(lines, widths, columns, height)
    cell = cells.at(spots)
    known = cell >= 0
    cell = cell.clamp(min=0)
    shown = cells.levels[cell].long()
    most = (selection.cell & -selection.cell).bit_length() - 1  # halvings whose pixels lie in one cell each
    coarser = (strip_level(lines, height)[:, None, None] - shown).clamp(0, most)
    scale = 2.0 ** (shown + coarser)[..., None]
    low, high = (cells.boxes[cell][..., part] / scale for part in (slice(0, 2), slice(2, 4)))
    spots = torch.minimum(torch.maximum(spots / scale, low + 0.5), torch.maximum(high - 0.5, low + 0.5))
    images = list(levels)
    for _ in range(int(coarser.max()) if len(lines) else 0):
        images += [_halved(image) for image in images[-len(levels) :]]
    place = shown + coarser * len(levels)
    flat = torch.cat([image.flatten() for image in images])
    starts = torch.tensor([0, *(image.numel() for image in images[:-1])], device=lines.device).cumsum(0)
    sizes = torch.tensor([image.shape for image in images], device=lines.device)
    strips = bilinear(flat, starts[place], sizes[place], spots)
    inside = torch.arange(columns, device=lines.device) < widths[:, None, None]
    strips = torch.where(inside & known, strips, UNKNOWN)
    return strips.round().to(torch.uint8)[:, None], widths


def _halved(image: Tensor) -> Tensor:
    """Means of 2 x 2 pixels [h, w]: unlike those of a pyramid they know nothing of the next cell."""
    return F.avg_pool2d(image[None, None].float(), 2, ceil_mode=True)[0, 0].round().to(torch.uint8)
