"""Sharing tokens between groups of cells in proportion to what each group is worth.

The j-th token of a group (j = 1, 2, ...) competes with `worth / (2 j - 1)`; the highest win. That is the Sainte-Lague
rule by which parliaments share out seats: as close to proportional as whole seats can be, no group gets more than it
has cells, and no rounding is left to repair.
"""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import as_whole, best

FEW = 8  # groups: up to here counting along the sorted cells is cheaper than a second sort


def worth_of(group: Tensor, value: Tensor, cells: Tensor) -> Tensor:
    """Summed value >= 0 of each group; where a row has none at all, the number of cells. float64 [B, groups]

    group, value [B, n], value 0 for those who take no part; cells [b, groups] with b either B or 1.
    """
    total = cells.new_zeros(len(value), cells.shape[1]).scatter_add_(1, group, as_whole(value))
    return torch.where(total.sum(1, keepdim=True) > 0, total, cells).double()


def seats(worth: Tensor, cells: Tensor, count: Tensor, max_count: int, largest: int, one_each: bool = False) -> Tensor:
    """How many of `count` [B, 1] tokens each group gets; `one_each` serves every group first. [B, groups]

    worth [B, groups], cells [b, groups]; ties go to the first group. `max_count` bounds count, `largest` cells.
    """
    share = worth / worth.sum(1, keepdim=True).clamp(min=1e-300)
    # No group wins more than this, unless another one runs out of cells: it keeps the table of keys small.
    reach = share * (count + worth.shape[1] / 2) + 1.5
    if not worth.is_cuda and bool((reach < cells).all()):
        largest = int(reach.max())
    j = torch.arange(min(max_count, largest), device=worth.device)
    key = share[..., None] / (2 * j + 1)  # [B, groups, j]
    if one_each:
        key = key + 2.0 * (j == 0)  # shares are at most 1
    won = best(key.flatten(1), count, (j < cells[..., None]).flatten(1), max_count)
    return won.unflatten(1, key.shape[1:]).sum(2)


def top_of_each(group: Tensor, score: Tensor, quota: Tensor, among: Tensor, members: Tensor | None = None) -> Tensor:
    """Mask [B, n] of the quota [B, groups] best cells of each group; ties in tree order.

    `members` [b, groups, M], b either B or 1, lays out groups of like size so that each finds its own threshold, which
    spares a sort of all cells; with ties at a threshold the sort decides after all.
    """
    groups = quota.shape[1]
    if members is not None and not score.is_cuda:  # a GPU sorts faster than it can be asked about ties
        valid = members >= 0
        own = score.gather(1, members.clamp(min=0).flatten(1).expand(len(score), -1)).unflatten(1, members.shape[1:])
        own = own if bool(valid.all()) else torch.where(valid, own, -torch.inf)
        top = own.topk(max(1, int(quota.max())), dim=2).values  # [B, groups, largest quota]
        least = top.gather(2, (quota - 1).clamp(min=0)[..., None])[..., 0].masked_fill(quota == 0, torch.inf)
        chosen = (score >= least.gather(1, group)) & among
        if torch.equal(chosen.sum(1), quota.sum(1)):
            return chosen
    group = torch.where(among, group, groups)  # those who take no part form a group behind the others
    none = torch.zeros_like(quota[:, :1])
    return rank_in_group(group, score, groups + 1) < torch.cat((quota, none), 1).gather(1, group)


def rank_in_group(group: Tensor, score: Tensor, groups: int) -> Tensor:
    """Place of each cell in its own group by falling score, from 0; ties in tree order. [B, n] -> [B, n]"""
    by_score = score.argsort(dim=1, descending=True, stable=True)
    if groups <= FEW:
        lined = group.gather(1, by_score)[..., None]
        count = (lined == torch.arange(groups, device=group.device)).cumsum(1)  # [B, n, groups]
        return torch.empty_like(by_score).scatter_(1, by_score, count.gather(2, lined)[..., 0] - 1)
    found, by_group = group.gather(1, by_score).sort(dim=1, stable=True)
    order = by_score.gather(1, by_group)
    first = torch.searchsorted(found, torch.arange(groups, device=group.device).expand(len(group), -1).contiguous())
    place = torch.arange(group.shape[1], device=group.device) - first.gather(1, found)
    return torch.empty_like(order).scatter_(1, order, place)


def members_of(group: Tensor, among: Tensor, groups: int) -> Tensor:
    """The cells of each group in tree order, -1 behind the last: group, among [b, n] -> [b, groups, M]."""
    group = torch.where(among, group, groups)
    found, order = group.sort(dim=1, stable=True)
    first = torch.searchsorted(found, torch.arange(groups + 1, device=group.device).expand(len(group), -1).contiguous())
    max_count = int(first.diff(dim=1).max())
    slot = torch.arange(group.shape[1], device=group.device) - first.gather(1, found) + found * max_count
    slot = torch.where(found < groups, slot, groups * max_count)
    rows = order.new_full((len(group), groups * max_count + 1), -1).scatter_(1, slot, order)
    return rows[:, :-1].unflatten(1, (groups, max_count))
