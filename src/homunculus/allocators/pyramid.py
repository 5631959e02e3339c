"""Cells of all scales compete directly: a Gaussian pyramid and a global top-K, or a fixed share for each level."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, as_whole, best, fill
from homunculus.cells import MOST_LEVELS
from homunculus.errors import InputError, shown, whole_number


def pyramid(
    request: Request,
    *,
    depth: int = 4,
    weights: Sequence[float] | None = None,
    split: Sequence[float] | str | None = None,
) -> Tensor:
    """The best cells over 4 levels, relevance times a weight that is larger for coarse levels, for coverage.

    `depth` levels from the finest on take part. `weights` are a number for each, 1, 2, 4, 8 unless told. `split` gives
    each level a fixed share of the tokens instead, such as (64, 128, 64, 17), scaled to the budget; "auto" derives the
    shares from how far the relevance of image and query is spread.
    """
    whole_number("depth", depth, 1, MOST_LEVELS)
    tree = request.tree
    if split is not None:
        return _split(request, depth, split)
    weights = [2.0**l for l in range(depth)] if weights is None else list(weights)
    if len(weights) != depth or min(weights) <= 0:
        raise InputError(f"weights must be {depth} numbers above 0, one a level, got {shown(weights)}")
    by_level = torch.tensor(weights, dtype=torch.float64, device=tree.device)
    score = request.weight * by_level[tree.level.clamp(max=depth - 1)]
    mask = best(score, request.quota, tree.valid & (tree.level < depth), request.max_count)
    return fill(request, mask, request.relevance)


def _split(request: Request, depth: int, split: Sequence[float] | str) -> Tensor:
    tree = request.tree
    if isinstance(split, str):
        if split != "auto":
            raise InputError(f"split must be numbers, one a level, or 'auto', got {shown(split)}")
        shares = spread_shares(request, depth)
    else:
        if len(split) != depth or min(split) < 0 or not 0 < sum(split) < math.inf:
            raise InputError(f"split must be {depth} numbers, none below 0 and not all 0, got {shown(split)}")
        shares = torch.tensor([list(split)], dtype=torch.float64, device=tree.device)
    upto = (shares.cumsum(1) / shares.sum(1, keepdim=True) * request.quota).round().long()  # [B, depth]
    counts = upto.diff(dim=1, prepend=torch.zeros_like(upto[:, :1]))
    mask = torch.zeros_like(request.relevance, dtype=torch.bool)
    for l in range(min(depth, tree.levels)):
        mask = mask | best(request.relevance, counts[:, l : l + 1], tree.valid & (tree.level == l), request.max_count)
    return fill(request, mask, request.relevance)


def spread_shares(request: Request, depth: int) -> Tensor:
    """Share of the tokens for each level, from how far the relevance is spread. float64 [B, depth]

    Relevance in one place: most tokens to the finest level. Relevance everywhere: each coarser level gets more, until
    all levels get the same. The spread is (sum r)^2 / (n sum r^2) over the n finest cells.
    """
    tree, here = request.tree, request.tree.at(0)
    r = as_whole(torch.where(tree.valid[:, here], request.weight[:, here], 0)) >> 20  # 20 bits: squares stay exact
    fine = torch.tensor(tree.fine_counts, device=r.device)
    total, squares = r.sum(1).double(), r.square().sum(1).double()
    spread = torch.where(squares > 0, total.square() / (fine * squares).clamp(min=1), 1)[:, None]  # [B, 1]
    return (0.1 + 0.9 * spread) ** torch.arange(depth, device=r.device)
