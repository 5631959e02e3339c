"""The same cut at several scales of the page: levels halve the print, and what just misses one needs 4 x the tokens.

A page whose print is 20 pixels high is legible down to 6 at level 1, where it has 10, but not at level 2, where it has
5. Made 1.6 times smaller beforehand it has 12.5 and 6.2 there: a quarter of the cells show it. So a rule may cut trees
whose finest cells are larger than those of the page's own tree, and give the cut that leaves the least to be desired.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.allocators.cut import Ranking, cut
from homunculus.allocators.frame import Request, as_indices
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError

MAX_SCALES = 8

Move = Callable[[Tensor], Tensor]  # values of the page's own tree [B, N] on another one [B, M]
Rank = Callable[[Request, Move], tuple[Ranking, Tensor | None]]  # what a cut goes by, and what each cell loses


def best_scale(request: Request, scales: int, rank: Rank) -> Ranking | Tensor | Selection:
    """The cut that loses the least, of those of `scales` trees whose finest cells are up to an octave larger.

    Losses [B, N] are in pixels of a cell's own level, as `legibility_error` has them. A tree that has fewer cells than
    an image gets tokens is not for that image. Cells of the page's own tree come as such; in a batch where any row is
    better off with another tree they are cells off the tree, of fractional levels.
    """
    if not 1 <= scales <= MAX_SCALES:
        raise InputError(f"scales must be from 1 to {MAX_SCALES}, got {scales!r}")
    ranking, lost = rank(request, _unmoved)
    if scales == 1:
        return ranking
    own = cut(request, ranking.gain, ranking.rest)
    cells, left, requests = [as_indices(own, request.max_count)], [_left(request, own, lost)], [request]
    for step in range(1, scales):
        coarser = _at_scale(request, round(request.tree.cell * 2 ** (step / scales)))
        ranking, lost = rank(coarser, partial(moved, source=request.tree, target=coarser.tree))
        chosen = cut(coarser, ranking.gain, ranking.rest)
        enough = (coarser.quota >= request.quota)[:, 0]
        left.append(torch.where(enough, _left(coarser, chosen, lost), torch.inf))
        missing = request.max_count - coarser.max_count
        cells.append(F.pad(as_indices(chosen, coarser.max_count), (0, missing), value=-1))
        requests.append(coarser)
    best = torch.stack(left).argmin(0)  # [B], the page's own tree among equals
    if not bool(best.any()):
        return cells[0]
    each = [_off_tree(at, own) for at, own in zip(requests, cells, strict=True)]
    rows = torch.arange(len(best), device=best.device)
    boxes, levels, mask = (torch.stack(parts)[best, rows] for parts in zip(*each, strict=True))
    return Selection(boxes, levels, None, mask, request.tree.sizes.expand(len(best), -1), request.tree.cell)


def moved(values: Tensor, source: CellTree, target: CellTree) -> Tensor:
    """Values of cells on another tree of the same images: the mean over what of its level lies under each cell."""
    means = []
    for level in reversed(range(target.levels)):
        down, across = (_shares(source, target, level, axis).to(values.dtype) for axis in (0, 1))
        means.append((down @ source.grid(values, level) @ across.T).flatten(1))
    return torch.cat(means, 1)


def _unmoved(values: Tensor) -> Tensor:
    return values


def _at_scale(request: Request, cell: int) -> Request:
    """The request for a tree with finest cells of another size."""
    tree = request.tree.with_cell(cell)
    relevance, coarser = moved(request.relevance, request.tree, tree), math.log2(cell / request.tree.cell)
    return replace(
        request, tree=tree, relevance=relevance, budget=min(request.budget, max(tree.counts)), finest=coarser
    )


def _shares(source: CellTree, target: CellTree, level: int, axis: int) -> Tensor:
    """How much of each row (axis 0) or column (1) of a level lies in those of another tree. float64 [to, from]"""

    def shares() -> Tensor:
        length = (target.height, target.width)[axis]
        edges = [
            torch.arange(tree.shapes[level][axis] + 1, device=target.device).mul(tree.cell << level).clamp(max=length)
            for tree in (source, target)
        ]
        (low, high), (first, last) = ((edge[:-1].double(), edge[1:].double()) for edge in edges)
        common = torch.minimum(last[:, None], high) - torch.maximum(first[:, None], low)
        return common.clamp(min=0) / (last - first)[:, None]

    return target.layout(("shares", source.cell, level, axis), shares)


def _left(request: Request, chosen: Tensor, lost: Tensor | None) -> Tensor:
    """What chosen cells lose in all, in pixels of the page. [B]"""
    if lost is None:
        raise InputError("scales above 1 need lines, or error='legibility': what is illegible tells the best scale")
    cells = as_indices(chosen, request.max_count)
    index = cells.clamp(min=0)
    each = lost.gather(1, index) * 4.0 ** request.tree.level[index]
    return (each * (cells >= 0)).sum(1)


def _off_tree(request: Request, cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes, levels and mask of cells [B, K] of a tree, as those of cells off the page's own."""
    mask = cells >= 0
    levels = (request.tree.level[cells.clamp(min=0)].double() + request.finest) * mask
    return request.tree.boxes(cells).double(), levels, mask
