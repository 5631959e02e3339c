"""Sharing tokens between groups of cells in proportion to what each group is worth, in one sort.

The j-th best cell of a group (j = 1, 2, ...) gets the key `worth / (2 j - 1)`; the highest keys win. That is the
Sainte-Lague rule by which parliaments share out seats: as close to proportional as whole seats can be, no group
gets more than it has cells, and no rounding is left to repair.
"""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, as_whole, best


def rank_in_group(group: Tensor, score: Tensor, groups: int) -> Tensor:
    """Place of each cell in its own group by falling score, from 0; ties in tree order. [B, n] -> [B, n]"""
    by_score = score.argsort(dim=1, descending=True, stable=True)
    found, by_group = group.gather(1, by_score).sort(dim=1, stable=True)
    order = by_score.gather(1, by_group)
    first = torch.searchsorted(found, torch.arange(groups, device=group.device).expand(len(group), -1).contiguous())
    place = torch.arange(group.shape[1], device=group.device) - first.gather(1, found)
    return torch.empty_like(order).scatter_(1, order, place)


def worth_of(group: Tensor, value: Tensor, among: Tensor, groups: int) -> Tensor:
    """Summed value >= 0 of each group; where all values of a row are zero, its number of cells. float64 [B, groups]"""
    zero = torch.zeros(len(value), groups, dtype=torch.long, device=value.device)
    total = zero.scatter_add(1, group, as_whole(torch.where(among, value, 0)))
    cells = zero.scatter_add(1, group, among.long())
    return torch.where(total.sum(1, keepdim=True) > 0, total, cells).double()


def seats(
    request: Request, group: Tensor, worth: Tensor, count: Tensor, among: Tensor, one_each: bool = False
) -> Tensor:
    """Mask [B, n0] of the fine cells that win a token: `count` [B, 1] a row, shared in proportion to worth [B, G].

    group [B, n0] is each fine cell's group; cells not `among` take no part; `one_each` serves every group first.
    """
    groups = worth.shape[1]
    relevance = request.relevance[:, request.tree.at(0)]
    group = torch.where(among, group, groups)  # those who take no part form a group behind the others
    place = rank_in_group(group, relevance, groups + 1)
    share = torch.cat((worth / worth.sum(1, keepdim=True).clamp(min=1e-300), worth.new_zeros(len(worth), 1)), 1)
    key = share.expand(len(group), -1).gather(1, group) / (2 * place + 1)
    if one_each:
        key = key + 2.0 * (place == 0)  # shares are at most 1
    return best(key, count, among, request.most)
