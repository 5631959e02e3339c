"""The tree of cells that every allocator chooses from, and the Selection that it returns.

A cell at level l is a patch of `cell x cell` pixels of the image scaled by 2^-l; its parent is the cell above it.
The tree holds only cells that touch the image, so no token is ever spent on padding and a cell has 1 to 4 children.

Axis legend, here and everywhere: B images, N cells of the tree, K chosen cells, L levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.errors import InputError, shown, whole_number

MOST_ROOTS = 16  # levels=None stops at the first level that has no more cells than this
MOST_LEVELS = 32


def _grid(height: int, width: int, span: int) -> tuple[int, int]:
    return -(-height // span), -(-width // span)


def default_levels(height: int, width: int, cell: int) -> int:
    """As many levels as it takes to leave at most 16 roots."""
    levels = 1
    while math.prod(_grid(height, width, cell << (levels - 1))) > MOST_ROOTS:
        levels += 1
    return levels


class CellTree:
    """All cells of an image's pyramid in tree order: coarse to fine, row by row.

    Args:
        height, width: size of the image in pixels.
        cell: side of a cell in pixels of its own level.
        levels: number of levels; None takes as many as leave at most 16 roots.

    Shape:
        level, parent [N], children [N, 4] (-1 where there is none), box [N, 4] as x0, y0, x1, y1 inside the image.
        In a tree made by `CellTree.bucket` box is [B, N, 4] and valid [B, N] says which cells each image has.
    """

    def __init__(self, height: int, width: int, cell: int = 32, levels: int | None = None) -> None:
        height, width, cell = whole_number("height", height), whole_number("width", width), whole_number("cell", cell)
        depth = (
            default_levels(height, width, cell) if levels is None else whole_number("levels", levels, 1, MOST_LEVELS)
        )
        self._lay_out(((height, width),), (depth,), cell)

    @classmethod
    def bucket(cls, sizes: Sequence[tuple[int, int]], cell: int = 32, levels: int | None = None) -> CellTree:
        """One tree for images of different (height, width): each row of `valid` is one image's own tree."""
        if not sizes:
            raise InputError("a bucket needs the size of at least one image, got none")
        if not all(isinstance(size, Sequence) and len(size) == 2 for size in sizes):
            raise InputError(f"a bucket needs a (height, width) for each image, got {shown(sizes)}")
        singles = [cls(height, width, cell, levels) for height, width in sizes]
        return cls._of(tuple((t.height, t.width) for t in singles), tuple(t.levels for t in singles), cell, bucket=True)

    @classmethod
    def _of(
        cls,
        sizes: tuple[tuple[int, int], ...],
        depths: tuple[int, ...],
        cell: int,
        device: torch.device | str = "cpu",
        bucket: bool = False,
    ) -> CellTree:
        tree = cls.__new__(cls)
        tree._lay_out(sizes, depths, cell, device)
        tree.is_bucket = bucket
        return tree

    def _lay_out(
        self,
        sizes: tuple[tuple[int, int], ...],
        depths: tuple[int, ...],
        cell: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.image_sizes, self.depths, self.cell, self.is_bucket = sizes, depths, cell, False
        self.device = torch.device(device)
        self.height, self.width = max(h for h, _ in sizes), max(w for _, w in sizes)
        self.levels = max(depths)
        self.shapes = [_grid(self.height, self.width, cell << l) for l in range(self.levels)]  # finest first
        areas = [rows * columns for rows, columns in self.shapes]
        self.offsets = [sum(areas[l + 1 :]) for l in range(self.levels)]  # where each level starts
        self.size = sum(areas)
        self.inner = self.offsets[0]  # cells above level 0 come first: tree[:inner]
        per_image = [
            [math.prod(_grid(h, w, cell << l)) for l in range(depth)]
            for (h, w), depth in zip(sizes, depths, strict=True)
        ]
        self.counts = [sum(cells) for cells in per_image]
        self.fine_counts = [cells[0] for cells in per_image]
        self.root_counts = [cells[-1] for cells in per_image]
        self._copies: dict[torch.device, CellTree] = {}
        self._resized: dict[int, CellTree] = {}
        self._layouts: dict[Hashable, Tensor] = {}

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        several = f", {self.rows} images" if self.rows > 1 else ""
        return (
            f"CellTree({self.height}x{self.width}, cell={self.cell}, levels={self.levels}, size={self.size}{several})"
        )

    @property
    def rows(self) -> int:
        """Number of images that the tree was laid out for: 1, or the size of a bucket."""
        return len(self.image_sizes)

    def to(self, device: torch.device | str) -> CellTree:
        """The same tree with its tensors on another device; made once."""
        device = torch.device(device)
        if device == self.device:
            return self
        if device not in self._copies:
            self._copies[device] = CellTree._of(self.image_sizes, self.depths, self.cell, device, self.is_bucket)
        return self._copies[device]

    def with_cell(self, cell: int) -> CellTree:
        """The tree of the same images and as many levels with finest cells of another size; made once."""
        if cell not in self._resized:
            self._resized[cell] = CellTree._of(self.image_sizes, self.depths, cell, self.device, self.is_bucket)
        return self._resized[cell]

    def restrict(self, valid: Tensor) -> CellTree:
        """The bucket of images whose cells are those that `valid` [B, N] keeps; sizes come from its finest cells."""
        if valid.dtype != torch.bool or valid.ndim != 2 or valid.shape[1] != self.size:
            raise InputError(f"valid must be bool [B, {self.size}], got {valid.dtype} {list(valid.shape)}")
        sizes, depths = [], []
        for row in valid.cpu():
            fine = self.grid(row[None], 0)[0]
            rows, columns = int(fine.any(1).sum()), int(fine.any(0).sum())
            sizes.append((min(rows * self.cell, self.height), min(columns * self.cell, self.width)))
            depths.append(sum(bool(self.grid(row[None], l).any()) for l in range(self.levels)))
        if any(rows * columns == 0 for rows, columns in sizes):
            raise InputError("valid leaves an image without any finest cell; every image needs at least one")
        tree = CellTree._of(tuple(sizes), tuple(depths), self.cell, self.device, bucket=True)
        if tree.shapes != self.shapes:
            raise InputError(
                f"valid leaves cells of the tree to no image: lay it out for {tree.height} x {tree.width} pixels and "
                f"{tree.levels} levels, as CellTree.bucket does"
            )
        if not torch.equal(tree.valid.expand_as(valid), valid.to(tree.device)):
            raise InputError(
                "valid must keep, for each image, the cells of a tree anchored top left; see CellTree.bucket"
            )
        return tree

    # -- one entry per cell ------------------------------------------------------------------------------------

    @cached_property
    def level(self) -> Tensor:
        """Level of each cell, 0 is the finest. [N]"""
        return torch.cat([torch.full((r * c,), l) for l, (r, c) in self._coarse_first()]).to(self.device)

    @cached_property
    def row(self) -> Tensor:
        """Row of each cell in the grid of its level. [N]"""
        return torch.cat([torch.arange(r).repeat_interleave(c) for _, (r, c) in self._coarse_first()]).to(self.device)

    @cached_property
    def column(self) -> Tensor:
        """Column of each cell in the grid of its level. [N]"""
        return torch.cat([torch.arange(c).repeat(r) for _, (r, c) in self._coarse_first()]).to(self.device)

    @cached_property
    def span(self) -> Tensor:
        """Side of each cell in pixels of the image, whether or not the image fills it. [N]"""
        return self.cell * 2**self.level

    @cached_property
    def centre(self) -> Tensor:
        """Centre (x, y) of each cell in pixels, as if the image filled it: float64 [N, 2]."""
        return (torch.stack((self.column, self.row), 1) + 0.5) * self.span[:, None].double()

    @cached_property
    def parent(self) -> Tensor:
        """Index of the cell above; -1 at the top. [N]"""
        above = torch.full((self.size,), -1, device=self.device)
        for l in range(self.levels - 1):
            index = self.at(l)
            above[index] = self._index(l + 1, self.row[index] // 2, self.column[index] // 2)
        return above

    @cached_property
    def children(self) -> Tensor:
        """Indices of the up to four cells below, row by row; -1 where there is none. [N, 4]"""
        below = torch.full((self.size, 4), -1, device=self.device)
        for l in range(1, self.levels):
            index, (rows, columns) = self.at(l), self.shapes[l - 1]
            for corner in range(4):
                r, c = 2 * self.row[index] + corner // 2, 2 * self.column[index] + corner % 2
                below[index, corner] = torch.where((r < rows) & (c < columns), self._index(l - 1, r, c), -1)
        return below

    @cached_property
    def box(self) -> Tensor:
        """x0, y0, x1, y1 in pixels, cut off at the border of the image: [N, 4], in a bucket [B, N, 4]."""
        return self.box_of_each if self.is_bucket else self.box_of_each[0]

    @cached_property
    def box_of_each(self) -> Tensor:
        """The boxes with an axis for the image, which is 1 long unless the tree is a bucket. [B, N, 4]"""
        return self._cut_off(torch.arange(self.size, device=self.device).expand(self.rows, -1))

    # -- one entry per image and cell; the first axis is 1 unless the tree is a bucket --------------------------

    @cached_property
    def sizes(self) -> Tensor:
        """Height and width of each image. [B, 2]"""
        return torch.tensor(self.image_sizes, device=self.device)

    @cached_property
    def fine_shape(self) -> Tensor:
        """Rows and columns of finest cells that each image has. [B, 2]"""
        return -(-self.sizes // self.cell)

    @cached_property
    def valid(self) -> Tensor:
        """Which cells each image has. [B, N]"""
        height, width = self.sizes[:, :1], self.sizes[:, 1:]
        depth = torch.tensor(self.depths, device=self.device)[:, None]
        return (self.row * self.span < height) & (self.column * self.span < width) & (self.level < depth)

    @cached_property
    def roots(self) -> Tensor:
        """The cells at the top of each image's tree. [B, N]"""
        return self.valid & (self.level == torch.tensor(self.depths, device=self.device)[:, None] - 1)

    @cached_property
    def fine(self) -> Tensor:
        """The cells of level 0. [B, N]"""
        return self.valid & (self.level == 0)

    @cached_property
    def child_count(self) -> Tensor:
        """How many cells of the image lie directly below each cell. [B, N]"""
        below = self.children
        return (self.valid[:, below.clamp(min=0)] & (below >= 0)).sum(2) * self.valid  # [B, N]

    @cached_property
    def split_price(self) -> Tensor:
        """Tokens that it costs to put each cell's children in its place; 0 where an image has no such cell. [B, N]"""
        return (self.child_count - 1).clamp(min=0)

    def layout(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """A tensor that depends on the tree alone, made when first asked for by this key."""
        if key not in self._layouts:
            self._layouts[key] = make()
        return self._layouts[key]

    def only_valid(self, values: Tensor, otherwise: float) -> Tensor:
        """Values [B, N] with something else where an image has no such cell; a tree of one size has them all."""
        return values if self.rows == 1 else torch.where(self.valid, values, otherwise)

    def of_level(self, values: Tensor) -> Tensor:
        """A value for each level [L] as one for each cell. [N]"""
        return values[self.level]

    def of_parent(self, values: Tensor) -> Tensor:
        """For each cell the value of the cell above; at the top any. [B, N] -> [B, N]"""
        return values[:, self.parent.clamp(min=0)]

    # -- moving between cells, levels and pixels ---------------------------------------------------------------

    def at(self, level: int) -> slice:
        """Where the cells of a level lie in tree order."""
        return slice(self.offsets[level], self.offsets[level] + math.prod(self.shapes[level]))

    def grid(self, values: Tensor, level: int) -> Tensor:
        """Values [B, N, ...] of one level as a map [B, rows, columns, ...]."""
        return values[:, self.at(level)].unflatten(1, self.shapes[level])

    def boxes(self, indices: Tensor) -> Tensor:
        """Boxes [B, K, 4] of the cells `indices` [B, K], inside each image; zeros where the index is -1."""
        clamped = indices.clamp(min=0)
        boxes = self.box_of_each[0][clamped] if self.rows == 1 else self._cut_off(clamped)
        return boxes * (indices >= 0)[..., None]

    def _cut_off(self, indices: Tensor) -> Tensor:
        """Boxes of cells [B, K] cut off at the border of each image. [B, K, 4]"""
        span = self.span[indices][..., None]
        low = torch.stack((self.column[indices], self.row[indices]), 2) * span  # [B, K, 2]
        return torch.cat((low, torch.minimum(low + span, self.sizes.flip(1)[:, None])), 2)

    def locate(self, points: Tensor, level: int = 0) -> Tensor:
        """Index of the cell of a level in which each point lies: points [B, F, 2] as x, y -> [B, F]."""
        rows, columns = self.shapes[level]
        at = (points / (self.cell << level)).long().clamp(min=0)
        # a point on the far border belongs to the last cell, of its own image in a bucket
        last = (self.sizes.flip(1)[:, None] - 1) // (self.cell << level)
        at = torch.minimum(at, last)
        return self._index(level, at[..., 1].clamp(max=rows - 1), at[..., 0].clamp(max=columns - 1))

    def lift(self, fine: Tensor, how: str = "mean") -> Tensor:
        """Values of the finest cells [B, rows, columns] (or [B, n0]) carried up the tree: [B, N].

        `mean` averages over the finest cells below each cell, `max` takes their largest, `sum` adds them up.
        """
        fine = fine.reshape(len(fine), *self.shapes[0])
        if how == "max":
            below = torch.full((len(fine), self.inner), -torch.inf, dtype=fine.dtype, device=fine.device)
            return self.subtree_max(torch.cat((below, fine.flatten(1)), 1))
        if how not in ("mean", "sum"):
            raise InputError(f"how must be 'mean', 'sum' or 'max', got {how!r}")
        counted = self.grid(self.fine, 0).to(fine.dtype)
        total = self._sum_up(torch.where(counted > 0, fine, 0))
        return total if how == "sum" else total / self._sum_up(counted).clamp(min=1)

    def subtree_max(self, values: Tensor) -> Tensor:
        """For each cell the largest value in the tree below it, itself included (a Hi-Z pyramid). [B, N] -> [B, N]"""
        values = self.only_valid(values, -torch.inf)
        maps = [self.grid(values, 0)]
        for l in range(1, self.levels):
            pooled = F.max_pool2d(maps[-1][:, None], 2, ceil_mode=True)[:, 0]
            maps.append(torch.maximum(self.grid(values, l), pooled))
        return torch.cat([m.flatten(1) for m in reversed(maps)], 1)

    def _sum_up(self, fine: Tensor) -> Tensor:
        maps = [fine]
        for l in range(1, self.levels):
            (rows, columns), (h, w) = self.shapes[l], self.shapes[l - 1]
            even = F.pad(maps[-1], (0, 2 * columns - w, 0, 2 * rows - h))
            maps.append(even.unflatten(2, (columns, 2)).unflatten(1, (rows, 2)).sum((2, 4)))
        return torch.cat([m.flatten(1) for m in reversed(maps)], 1)

    def _coarse_first(self) -> list[tuple[int, tuple[int, int]]]:
        return list(reversed(list(enumerate(self.shapes))))

    def _index(self, level: int, row: Tensor, column: Tensor) -> Tensor:
        return self.offsets[level] + row * self.shapes[level][1] + column


@dataclass(frozen=True, eq=False)
class Selection:
    """The chosen cells of a batch of images: what tokens, positions, pictures and adapters read.

    Shape:
        boxes [B, K, 4] x0, y0, x1, y1 in pixels of the image; levels [B, K] (fractional for `uniform`);
        indices [B, K] into the tree in tree order, or None for rules that leave the tree;
        mask [B, K] False in the tail of an image that has fewer cells than the budget; sizes [B, 2] height, width.
    """

    boxes: Tensor
    levels: Tensor
    indices: Tensor | None
    mask: Tensor
    sizes: Tensor
    cell: int

    @classmethod
    def of(cls, tree: CellTree, indices: Tensor) -> Selection:
        """The selection of tree cells `indices` [B, K]; -1 marks the tail of a row that has fewer."""
        mask = indices >= 0
        levels = tree.level[indices.clamp(min=0)] * mask
        return cls(tree.boxes(indices), levels, indices, mask, tree.sizes.expand(len(indices), 2), tree.cell)

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def span(self) -> Tensor:
        """Side in pixels of what each token was cut from, before the image's border cut it off. float64 [B, K]"""
        return self.cell * 2 ** self.levels.double()

    @property
    def centre(self) -> Tensor:
        """Where each token came from: centre x, y in pixels of its whole cell. float64 [B, K, 2]"""
        return self.boxes[..., :2] + self.span[..., None] / 2

    def row(self, b: int) -> Selection:
        """The selection of image b alone, without the tail that is not there."""
        return self.alone(b).take(self.mask[b].nonzero().T)

    def alone(self, b: int) -> Selection:
        """The selection of image b alone as it is, for those that are known to have no such tail."""
        indices = None if self.indices is None else self.indices[b : b + 1]
        index = self.boxes[b : b + 1], self.levels[b : b + 1], indices, self.mask[b : b + 1], self.sizes[b : b + 1]
        return Selection(*index, self.cell)

    def take(self, order: Tensor) -> Selection:
        """The same cells in another order, or some of them: order [B, n] of places in each row."""
        indices = None if self.indices is None else self.indices.gather(1, order)
        boxes = self.boxes.gather(1, order[..., None].expand(-1, -1, 4))
        levels, mask = self.levels.gather(1, order), self.mask.gather(1, order)
        return Selection(boxes, levels, indices, mask, self.sizes, self.cell)

    def in_rows(self) -> Selection:
        """The cells as one reads: by their upper edge, then from left to right; missing ones last."""
        if not self.boxes.shape[1]:
            return self
        x, y = self.boxes[..., 0], self.boxes[..., 1]
        far = torch.where(self.mask, y * (self.boxes[..., 2].max() + 1) + x, torch.iinfo(torch.int64).max >> 1)
        return self.take(far.argsort(dim=1, stable=True))

    def coverage(self) -> Tensor:
        """Share of each image's pixels that lie in at least one chosen cell. float64 [B]"""
        shares = [_union(self.boxes[b][self.mask[b]]) / self.sizes[b].prod() for b in range(len(self))]
        return torch.stack(shares).clamp(max=1)


def _union(boxes: Tensor) -> Tensor:
    """Area of the union of boxes [K, 4]: paint them on the grid of their own borders."""
    boxes = boxes.double()
    xs, ys = boxes[:, 0::2].unique(), boxes[:, 1::2].unique()
    x, y = (
        torch.searchsorted(xs, boxes[:, 0::2].contiguous()),
        torch.searchsorted(ys, boxes[:, 1::2].contiguous()),
    )
    edges = torch.zeros(len(ys), len(xs), device=boxes.device)
    for corner_y, corner_x, sign in ((0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0)):
        edges.index_put_((y[:, corner_y], x[:, corner_x]), edges.new_tensor(sign), accumulate=True)
    painted = edges.cumsum(0).cumsum(1) > 0.5
    area = ys.diff()[:, None] * xs.diff()[None]
    return (area * painted[:-1, :-1]).sum()
