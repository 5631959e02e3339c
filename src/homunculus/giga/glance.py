"""The glance at a tiled image: the picture is made from the overview, the tokens from the tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from homunculus import tokens
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError, whole_number
from homunculus.giga.tiled import TileCounts
from homunculus.glance import Glance


@dataclass(frozen=True, eq=False, kw_only=True)
class GiantGlance(Glance):
    """A look at an image that was never decoded whole.

    Args:
        whole: the tree that the cells were chosen from; `scene` holds the overview, `relevance` is that of its cells.
        each: relevance of the chosen cells, from the finest pixels seen there. [K]
        tiles: what all looks at this image have cost so far.
    """

    whole: CellTree
    each: Tensor
    tiles: TileCounts

    @property
    def tree(self) -> CellTree:
        """The cells that could be chosen; too many for a tensor with an entry for each."""
        return self.whole

    def in_rows(self) -> GiantGlance:
        """The same look with its cells as one reads them."""
        order = _reading_order(self.selection)
        cells = None if self.cells is None else self.cells[order]
        return replace(self, selection=self.selection.take(order[None]), cells=cells, each=self.each[order])

    def reconstruct(self, at: int = 0) -> Tensor:
        """The overview, scaled by 2^-at, as these tokens still know it. uint8 [3, h, w]"""
        return tokens.reconstruct(self.scene.levels, self._on_overview(), at)[0].to(torch.uint8)

    def crop(self, box: Sequence[int]) -> Tensor:
        """What the tokens show of a box x0, y0, x1, y1 in pixels, in full size: uint8 [3, y1 - y0, x1 - x0].

        Coarse cells are enlarged.
        """
        x0, y0, x1, y1 = (whole_number("a side of the box", side, 0) for side in box)
        if not (x0 < x1 <= self.tree.width and y0 < y1 <= self.tree.height):
            raise InputError(f"box must lie inside {self.tree.width} x {self.tree.height} pixels, got {list(box)}")
        boxes, y, x = self.selection.boxes[0], torch.arange(y0, y1), torch.arange(x0, x1)
        shown = torch.zeros(3, y1 - y0, x1 - x0, dtype=torch.uint8)
        patches = self.patches()
        low, high = torch.tensor((x0, y0)), torch.tensor((x1, y1))
        touching = ((boxes[:, 2:] > low) & (boxes[:, :2] < high)).all(1).nonzero()[:, 0]
        for k in touching.tolist():  # coarse first; the cells of a place to read, not those of an image
            left, top, right, bottom = boxes[k].tolist()
            rows, columns = (y >= top) & (y < bottom), (x >= left) & (x < right)
            scale = 2.0 ** float(self.selection.levels[0, k])
            of_row, of_column = ((y[rows] - top) // scale).long(), ((x[columns] - left) // scale).long()
            shown[:, rows.nonzero(), columns.nonzero()[:, 0]] = patches[k][:, of_row[:, None], of_column]
        return shown

    def token_relevance(self) -> Tensor:
        """Relevance of each chosen cell. [K]"""
        return self.each

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and text, with the tiles that were decoded and all there are."""
        tiles = {"decoded": self.tiles.decoded, "all": self.tiles.all, "streamed": self.tiles.streamed}
        return super().to_dict() | {"tiles": tiles}

    def _on_overview(self) -> Selection:
        """The selection on the overview's tree: its finest cells stand for all that is finer."""
        tree = self.scene.tree
        top = self.whole.levels - tree.levels
        level = (self.selection.levels[0] - top).clamp(min=0)
        column, row = (self.selection.boxes[0, :, :2] // (tree.cell * 2.0 ** (level + top))[:, None]).long().unbind(1)
        offsets, across = (torch.tensor(each) for each in (tree.offsets, [columns for _, columns in tree.shapes]))
        return Selection.of(tree, (offsets[level] + row * across[level] + column).unique()[None])


def _reading_order(selection: Selection) -> Tensor:
    """By upper edge, then from left to right. [K]"""
    by_x = selection.boxes[0, :, 0].argsort(stable=True)
    return by_x[selection.boxes[0, by_x, 1].argsort(stable=True)]
