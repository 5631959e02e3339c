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
    grey_pyramid,
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

    Cells that lie on the grids of one tree of the page at some scale are mapped on that page, which has 2^-`finest` of
    the pixels along each side; others on the page itself.

    Shape:
        cell int64 [rows, columns], -1 where none is; `side` pixels of the scaled page a place; levels [K] of the cells,
        boxes [K, 4] in pixels of the scaled page.
    """

    cell: Tensor
    side: int
    levels: Tensor
    boxes: Tensor
    finest: float = 0.0
    on_grid: bool = True

    @classmethod
    def of(cls, selection: Selection) -> CellMap:
        """From a selection of one image."""
        mask = selection.mask[0]
        levels, boxes = selection.levels[0][mask].double(), selection.boxes[0][mask].double()
        finest = 0.0 if selection.indices is not None else _finest(levels, boxes, selection.cell)
        on_grid = finest is not None
        finest = finest or 0.0
        boxes, side = boxes / 2.0**finest, selection.cell if on_grid else OFF_TREE
        shape = [-(-length // side) for length in tokens.scaled(selection.sizes[0], finest).tolist()]
        paint = _paint_grid if on_grid else _paint_boxes
        cell = paint(levels - finest, boxes, shape, side)
        return cls(cell, side, levels.float(), boxes.float(), finest, on_grid)

    def at(self, spots: Tensor) -> Tensor:
        """The cell under each spot [..., 2] in pixels of the page: int64 [...], -1 for none and beyond the page."""
        rows, columns = self.cell.shape
        x, y = (spots / (self.side * 2.0**self.finest)).floor().long().unbind(-1)
        inside = (x >= 0) & (y >= 0) & (x < columns) & (y < rows)
        return torch.where(inside, self.cell[y.clamp(0, rows - 1), x.clamp(0, columns - 1)], -1)


def _finest(levels: Tensor, boxes: Tensor, cell: int) -> float | None:
    """The part of their levels [K] by which cells off the tree are all coarser than whole levels; None off all grids.

    Whole levels then have their cells on the grids of a tree of the page scaled by 2^-that.
    """
    whole = (levels + 1e-6).floor()
    part = levels - whole
    finest = float(part[0]) if len(part) else 0.0
    at = boxes[:, :2] / (cell * 2.0 ** levels[:, None])
    on_grid = ((part - finest).abs() < 1e-6).all() & ((at - at.round()).abs() < 1e-3).all()
    return max(finest, 0.0) if bool(on_grid) else None


def _paint_grid(levels: Tensor, boxes: Tensor, shape: Sequence[int], side: int) -> Tensor:
    """Cells of a tree on the grid of its finest level, finer ones over coarser ones."""
    painted = torch.full(tuple(shape), -1, device=boxes.device)
    row, column = (torch.arange(n, device=boxes.device) for n in shape)
    levels = levels.round()
    for level in sorted({int(value) for value in levels.tolist()}, reverse=True):
        index = (levels == level).nonzero()[:, 0]
        x, y = (boxes[index, :2] / (side << level)).round().long().unbind(1)
        grid = torch.full(((shape[0] >> level) + 1, (shape[1] >> level) + 1), -1, device=boxes.device)
        grid[y, x] = index
        cell_index = grid[row >> level][:, column >> level]
        painted = torch.where(cell_index >= 0, cell_index, painted)
    return painted


def _paint_boxes(levels: Tensor, boxes: Tensor, shape: Sequence[int], side: int) -> Tensor:
    """Any boxes, finer ones over coarser ones."""
    painted = torch.full(tuple(shape), -1, device=boxes.device)
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


def page_at(levels: Sequence[Tensor], finest: float) -> list[Tensor]:
    """The pyramid of a grey page that is scaled by 2^-finest, from that of the page: uint8 [h, w] each."""
    if not finest:
        return list(levels)
    height, width = tokens.scaled(torch.tensor(levels[0].shape), finest).tolist()
    page = tokens.at_scale([levels[0][None, None]], finest)[0, 0, :height, :width]
    return grey_pyramid((page + 0.5).clamp(0, 255).to(torch.uint8), len(levels))


def strips_of(
    levels: Sequence[Tensor], selection: Selection, cells: CellMap, lines: Tensor, height: int = STRIP_HEIGHT
) -> tuple[Tensor, Tensor]:
    """Strips of lines from the pixels of the chosen cells only, each pixel at the level that it was chosen at.

    Print that is larger there than the strip is high is made smaller cell by cell.

    Args:
        levels: the pyramid of one grey page, uint8 [h, w] each, at the scale of the cells, see `page_at`.
        lines: [n, 5] in pixels of the page, on the device of the levels.

    Returns:
        uint8 [n, 1, height, W], grey where nothing is shown, and widths [n].
    """
    if not cells.on_grid:
        whole = tokens.reconstruct([level[None, None] for level in levels], selection).to(torch.uint8)
        pages = gaussian(whole.expand(-1, 3, -1, -1).contiguous(), len(levels))
        return sample_strips([page[0, 0] for page in pages], lines, height)
    widths = widths_of(lines, height)
    columns = columns_of(int(widths.max()) if len(lines) else 0)
    spots = strip_grid(lines, widths, columns, height)
    cell = cells.at(spots)
    known = cell >= 0
    cell = cell.clamp(min=0)
    shown = (cells.levels[cell] - cells.finest).round().long()
    most = (selection.cell & -selection.cell).bit_length() - 1  # halvings whose pixels lie in one cell each
    lines, spots = lines / 2.0**cells.finest, spots / 2.0**cells.finest
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
