"""Many trees as one, so that the rules and the cut of a single tree choose from all of them under one budget.

A forest stands in a single row: level by level, coarse first, and within a level shape by shape, cell by cell, tree by
tree. Whatever a rule compares or normalises in a row, it then does over all images, and one sort decides for all.

The layout ends ties as well: coarse first, then in the order of shapes, then in tree order, then in the order of trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from homunculus.cells import CellTree


class Forest(CellTree):
    """Several trees as one tree of one image, for rules that are cuts: it has cells, but no grid and no boxes."""

    def __init__(self, shapes: Sequence[tuple[CellTree, int]]) -> None:
        self.parts = list(shapes)  # a tree and how many there are of it
        self.device, self.is_bucket, self.image_sizes = shapes[0][0].device, False, ()
        self.levels = max(tree.levels for tree, _ in shapes)
        order = [(level, g) for level in reversed(range(self.levels)) for g in range(len(shapes))]
        self.blocks = [(level, g) for level, g in order if level < shapes[g][0].levels]
        lengths = [len(self._cells(level, g)) * shapes[g][1] for level, g in self.blocks]
        ends = list(accumulate(lengths))
        self.where = {block: slice(end - n, end) for block, end, n in zip(self.blocks, ends, lengths, strict=True)}
        self.size = ends[-1]
        self.fine_counts = [sum(tree.fine_counts[0] * count for tree, count in shapes)]
        self.inner = self.size - self.fine_counts[0]
        self.counts = [self.size]
        self.root_counts = [sum(tree.root_counts[0] * count for tree, count in shapes)]
        self._layouts = {}

    def __repr__(self) -> str:
        return f"Forest({sum(count for _, count in self.parts)} trees, levels={self.levels}, size={self.size})"

    @property
    def rows(self) -> int:
        """One: all cells stand in a single row."""
        return 1

    def _cells(self, level: int, g: int) -> range:
        """The cells of a level in the tree order of shape g."""
        return range(self.parts[g][0].size)[self.parts[g][0].at(level)]

    # -- from the values of each shape to those of the forest and back ------------------------------------------

    def lay(self, values: Sequence[Tensor]) -> Tensor:
        """Values of each shape [T, N, ...], or [1, N, ...] for all its trees, as those of the forest. [1, N, ...]"""
        turned = [
            own.expand(count, *own.shape[1:]).transpose(0, 1).contiguous()  # [N, T, ...]
            for own, (_, count) in zip(values, self.parts, strict=True)
        ]
        if len(turned) == 1:  # then it is in order: coarse to fine, cell by cell, tree by tree
            return turned[0].flatten(0, 1)[None]
        return torch.cat([turned[g][self.parts[g][0].at(level)].flatten(0, 1) for level, g in self.blocks])[None]

    def gather(self, values: Tensor) -> list[Tensor]:
        """Values of the forest [1, N] as those of each shape [T, N]."""
        found: list[list[Tensor]] = [[] for _ in self.parts]
        for level, g in self.blocks:
            found[g].append(values[0, self.where[level, g]].view(-1, self.parts[g][1]).T.contiguous())  # [T, n]
        return [torch.cat(levels, 1) for levels in found]

    def per_block(self, values: Sequence[int] | Sequence[float], dtype: torch.dtype) -> Tensor:
        """A number for each of `blocks` as one for each of its cells. [N]"""
        laid = torch.empty(self.size, dtype=dtype, device=self.device)
        for block, value in zip(self.blocks, values, strict=True):
            laid[self.where[block]] = value
        return laid

    def of_level(self, values: Tensor) -> Tensor:
        """A value for each level [L] as one for each cell. [N]"""
        each = values.tolist()
        return self.per_block([each[level] for level, _ in self.blocks], values.dtype)

    def of_parent(self, values: Tensor) -> Tensor:
        """For each cell the value of the cell above; at the top any. [1, N] -> [1, N]"""
        found = torch.empty_like(values)
        for level, g in self.blocks:
            (tree, count), up = self.parts[g], level + 1
            above = values[0, self.where[up, g] if up < tree.levels else self.where[level, g]].view(-1, count)
            if up < tree.levels:
                above = above[tree.parent[tree.at(level)] - tree.offsets[up]]
            found[0, self.where[level, g]] = above.flatten()
        return found

    # -- what rules and cut read of a tree -----------------------------------------------------------------------

    @cached_property
    def level(self) -> Tensor:
        """Level of each cell in its own tree. [N]"""
        return self.per_block([level for level, _ in self.blocks], torch.int64)

    @cached_property
    def span(self) -> Tensor:
        """Side of each cell in pixels of its image. [N]"""
        return self.per_block([self.parts[g][0].cell << level for level, g in self.blocks], torch.int64)

    @cached_property
    def tree_of(self) -> Tensor:
        """To which tree each cell belongs, counted shape by shape. [1, N]"""
        first = [0, *accumulate(count for _, count in self.parts)]
        trees = [torch.arange(first[g], first[g + 1], device=self.device) for g in range(len(self.parts))]
        return self.lay([own[:, None].expand(-1, tree.size) for own, (tree, _) in zip(trees, self.parts, strict=True)])

    @cached_property
    def valid(self) -> Tensor:
        """All cells are there. [1, N]"""
        return torch.ones(1, self.size, dtype=torch.bool, device=self.device)

    @cached_property
    def roots(self) -> Tensor:
        """The cells at the top of each tree. [1, N]"""
        top = torch.zeros_like(self.valid)
        for g, (tree, _) in enumerate(self.parts):
            top[:, self.where[tree.levels - 1, g]] = True
        return top

    @cached_property
    def fine(self) -> Tensor:
        """The cells of level 0. [1, N]"""
        fine = torch.zeros_like(self.valid)
        fine[:, self.inner :] = True
        return fine

    @cached_property
    def split_price(self) -> Tensor:
        """Tokens that it costs to put each cell's children in its place. [1, inner]"""
        price = torch.empty(1, self.inner, dtype=torch.int64, device=self.device)
        for level, g in self.blocks:
            if level > 0:
                (tree, count), at = self.parts[g], self.where[level, g]
                price[0, at].view(-1, count)[:] = tree.split_price[0, tree.at(level), None]
        return price

    def subtree_max(self, values: Tensor) -> Tensor:
        """For each cell the largest value in the tree below it, itself included. [1, N] -> [1, N]"""
        found = values.clone()
        for g, (tree, count) in enumerate(self.parts):
            for level in range(1, tree.levels):
                below, here = (
                    found[0, self.where[l, g]].view(*tree.shapes[l], count) for l in (level - 1, level)
                )  # [rows, columns, T]
                torch.maximum(here, _halve(_halve(below, 0), 1), out=here)
        return found


def _halve(values: Tensor, dim: int) -> Tensor:
    """The larger of each two neighbours along a side; the last of an odd number stays."""
    length = values.shape[dim]
    even, odd = (values.narrow(dim, i, length - i)[(slice(None),) * dim + (slice(None, None, 2),)] for i in (0, 1))
    if length % 2 == 0:
        return torch.maximum(even, odd)
    last = values.narrow(dim, length - 1, 1)
    return torch.cat((torch.maximum(even.narrow(dim, 0, length // 2), odd), last), dim)
