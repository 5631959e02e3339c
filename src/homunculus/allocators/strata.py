"""Stratified choice: the image is divided into strata, each is served, the best cells of each are taken."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, as_whole, fill
from homunculus.allocators.seats import members_of, seats, top_of_each, worth_of
from homunculus.allocators.wording import Wording, per_image
from homunculus.cells import CellTree
from homunculus.errors import whole_number

MIN_STRATA, MAX_STRATA = 2, 8  # strata along one side that `adaptive-stratified` chooses between


def stratified(request: Request, *, strata: int | tuple[int, int] = 4) -> Tensor:
    """At least one token for each of 4 x 4 strata, the rest by summed relevance, best cells within each.

    `strata` is the number along both sides, or (rows, columns).
    """
    tree, (rows, columns) = request.tree, (strata, strata) if isinstance(strata, int) else strata
    for number in (rows, columns):
        whole_number("strata along a side", number, 1, 256)
    shape = torch.tensor([[rows, columns]], device=tree.device)
    group = tree.layout(("stratum", rows, columns), lambda: stratum_of(tree, shape))
    members = tree.layout(("strata", rows, columns), lambda: _members(tree, group, rows * columns))
    return _serve(request, group, members)


def adaptive_stratified(request: Request, *, question: str | Sequence[str] = "") -> Tensor:
    """Stratified on a grid of 2..8 by 2..8 that the question and the spread of the relevance choose.

    `question` is one text for all images or one for each; see `strata_for`.
    """
    group = stratum_of(request.tree, strata_for(request, per_image(question, len(request.relevance))))
    return _serve(request, group, _members(request.tree, group, MAX_STRATA * MAX_STRATA))


def strata_for(request: Request, questions: Sequence[str]) -> Tensor:
    """Rows and columns of strata for each image. [B, 2]

    Relevance spread over all rows wants many strata, relevance in a few rows wants few, so that the budget stays free
    for them; the same for columns. Words decide first: a broad question gets 8 x 8, "row" 8 rows, "column" 8 columns.
    """
    tree, here = request.tree, request.tree.at(0)
    valid = tree.valid[:, here]
    fine = as_whole(torch.where(valid, request.weight[:, here], 0)).unflatten(1, tree.shapes[0])
    spread = torch.stack([_spread(fine.sum(dim)) for dim in (2, 1)], 1) / tree.fine_shape  # [B, 2]
    chosen = (spread * MAX_STRATA).ceil().long().clamp(MIN_STRATA, MAX_STRATA)
    wording = [Wording.of(question) for question in questions]
    finest = torch.tensor([(w.broad or w.rows, w.broad or w.columns) for w in wording], device=chosen.device)
    return torch.where(finest, MAX_STRATA, chosen)


def stratum_of(tree: CellTree, strata: Tensor) -> Tensor:
    """Stratum of each finest cell, counted row by row: strata [B, 2] -> [B, n0]."""
    here, down, across = tree.at(0), strata[:, :1], strata[:, 1:]
    rows, columns = tree.fine_shape[:, :1], tree.fine_shape[:, 1:]
    r = torch.minimum(tree.row[here] * down // rows, down - 1)
    c = torch.minimum(tree.column[here] * across // columns, across - 1)
    return r * across + c


def _members(tree: CellTree, group: Tensor, groups: int) -> Tensor:
    return members_of(group, tree.valid[:, tree.at(0)].expand_as(group), groups)


def _serve(request: Request, group: Tensor, members: Tensor) -> Tensor:
    """The best cells of each stratum: group [b, n0] and members [b, strata, M] with b either B or 1."""
    tree, here = request.tree, request.tree.at(0)
    among = tree.valid[:, here].expand(len(request.relevance), -1)
    group = group.expand_as(among)
    cells = (members >= 0).sum(2)
    worth = worth_of(group, request.weight[:, here], cells)
    quota = seats(worth, cells, request.quota, request.max_count, members.shape[2], one_each=True)
    mask = torch.zeros_like(request.relevance, dtype=torch.bool)
    mask[:, here] = top_of_each(group, request.relevance[:, here], quota, among, members)
    enough = request.budget <= min(tree.fine_counts)  # then the strata have taken every token
    return mask if enough else fill(request, mask, request.relevance)


def _spread(profile: Tensor) -> Tensor:
    """Over how many rows (or columns) whole numbers [B, n] are spread: (sum p)^2 / sum p^2; all zero counts as all."""
    largest = profile.amax(1, keepdim=True)
    p = torch.where(largest > 0, (profile >> 20) * 2**20 // (largest >> 20).clamp(min=1), 2**20)  # squares stay exact
    return p.sum(1).double().square() / p.square().sum(1).double()
