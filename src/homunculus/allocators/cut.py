"""The exact cut: one sort chooses a set of cells that covers every pixel once and meets the budget.

A cut starts as the roots. Splitting a cell replaces it by its children, which costs `children - 1` tokens. With
priority = the largest gain in the cell's subtree, no cell ranks above its parent (ties: coarse first), so every prefix
of the cells sorted by priority is closed under "parent of": splitting the longest prefix that the budget allows gives
a cut, without a queue and without a loop. At most 2 tokens stay over, because a split costs at most 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, best, counted, fill, is_long, kth_largest
from homunculus.kernels.dispatch import use_triton


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a cut goes by, which is all that a rule says of it: of one tree, or of a forest.

    Shape:
        gain [B, N] of splitting each cell; rest [B, N] by which tokens left over go to cells.
    """

    gain: Tensor
    rest: Tensor


def cut(request: Request, gain: Tensor, rest: Tensor | None = None) -> Tensor:
    """The cut that splits where `gain` [B, N] is highest; the gain of a fine cell is what its parent's split is worth.

    Tokens left over go to the fine cells that are not in it, beyond those to the ancestors, the best by `rest` [B, N]
    first, by default the most relevant. Where there are kernels, the indices come back in place of their mask.
    """
    rest = request.relevance if rest is None else rest
    if use_triton(gain):
        return by_kernel(request, gain, rest)
    return fill(request, partition(request, request.tree.subtree_max(gain)), rest)


def by_kernel(request: Request, gain: Tensor, rest: Tensor) -> Tensor:
    """The indices [B, max_count] of the cells that `cut` chooses, in two launches for most trees."""
    from homunculus.kernels import cut as kernel

    tree = request.tree

    def images() -> Tensor:
        cells = ((-(-height // tree.cell), -(-width // tree.cell)) for height, width in tree.image_sizes)
        each = zip(cells, tree.depths, tree.counts, tree.root_counts, strict=True)
        return torch.tensor([[*shape, *more] for shape, *more in each], dtype=torch.int32, device=tree.device)

    trees = kernel.Trees(tree.shapes, tree.layout("images", images), max(tree.counts), max(tree.root_counts))
    return kernel.chosen(trees, gain, rest, request.budget)


def partition(request: Request, priority: Tensor) -> Tensor:
    """The cut alone, at most 2 tokens short of the budget; with fewer tokens than roots, the best roots. [B, N]

    Priorities must not rise from parent to child, as `CellTree.subtree_max` gives them.
    """
    tree, inner = request.tree, request.tree.inner
    roots = tree.roots.expand_as(priority)
    capacity = request.quota - counted(roots)
    order = _order(request, priority[:, :inner], capacity)
    price = tree.split_price[:, :inner].expand(len(order), inner).gather(1, order)
    split = torch.zeros_like(roots)
    split[:, :inner] = split[:, :inner].scatter(1, order, price.cumsum(1) <= capacity)
    born = roots | tree.of_parent(split)  # above a root there is nothing, but it is born anyway
    mask = born & ~split & tree.valid
    if request.budget < max(tree.root_counts):
        mask = torch.where(capacity < 0, best(priority, request.quota, roots, request.max_count), mask)
    return mask


def _order(request: Request, priority: Tensor, capacity: Tensor) -> Tensor:
    """Cells [B, n] by falling priority [B, inner], ties in tree order; without those that no budget could reach."""
    length = priority.shape[1]
    if is_long(priority):
        # a prefix has at most capacity // p cells of a price of at least p, and the cells of lower prices
        cheaper = request.tree.split_price[0, :length].bincount(minlength=3)[:3].cumsum(0).tolist()
        reach = min(few + max(int(capacity), 0) // (p + 1) for p, few in enumerate(cheaper))
        if reach < length // 2:
            near = (priority[0] >= kth_largest(priority[0], reach + 1)).nonzero()[:, 0]
            return near[priority[0, near].argsort(descending=True, stable=True)][None]
    return priority.argsort(dim=1, descending=True, stable=True)
