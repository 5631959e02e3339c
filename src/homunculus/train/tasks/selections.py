"""Random selections of cells: every allocator, budget, level and relevance that the encoder is trained with."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from homunculus.allocators import ALLOCATORS, allocate
from homunculus.cells import CellTree, Selection

NEAREST = 8  # how often the cells nearest to the fixation are drawn, beside the allocators
BUDGETS = {64: 2, 150: 3, 273: 6, 576: 3, 1024: 2, 1536: 2}


def random_budget(rng: random.Random, most: int) -> int:
    """A number of tokens, at most so many."""
    fitting = [budget for budget in BUDGETS if budget <= most] or [most]
    return rng.choices(fitting, [BUDGETS.get(budget, 1) for budget in fitting])[0]


def random_selection(tree: CellTree, fixation: Tensor, budget: int, rng: random.Random) -> Selection:
    """A selection for each page by one random rule for the batch: fixation [B, 2] in pixels."""
    weights = {name: entry.training_weight for name, entry in ALLOCATORS.items()} | {"nearest": NEAREST}
    (rule,) = rng.choices(list(weights), list(weights.values()))
    if rule == "nearest":
        level = rng.choices((0, 1, 2), (8, 2, 1))[0]
        return nearest(tree, fixation, min(level, tree.levels - 1), budget)
    return allocate(rule, tree, random_relevance(tree, fixation, rng), budget, fixation)


def padded(selection: Selection, count: int) -> Selection:
    """A selection of exactly so many cells: the first ones stand there again where it has fewer."""
    have = selection.mask.shape[1]
    if have >= count:
        return selection
    again = torch.arange(count, device=selection.mask.device) % have
    return selection.take(again.expand(len(selection), -1))


def nearest(tree: CellTree, points: Tensor, level: int, count: int) -> Selection:
    """The `count` cells of one level that lie nearest to each point [B, 2], all if there are fewer."""
    cells = torch.arange(tree.size, device=tree.device)[tree.at(level)]
    away = (tree.centre[cells] - points[:, None].to(tree.device)).square().sum(2)  # [B, n]
    chosen = away.argsort(dim=1, stable=True)[:, :count]
    return Selection.of(tree, cells[chosen].sort(1).values)


def random_relevance(tree: CellTree, fixation: Tensor, rng: random.Random) -> Tensor:
    """Random relevance: flat, speckled, or a few bright places of which one is the fixation. [B, N]"""
    B, device = len(fixation), tree.device
    kind = rng.random()
    if kind < 0.15:
        return torch.ones(B, tree.size, device=device)
    speckle = torch.rand(B, *tree.shapes[0], device=device) ** 4
    if kind > 0.4:
        size = torch.tensor([tree.width, tree.height], device=device)
        places = torch.cat((fixation[:, None].float(), torch.rand(B, rng.randint(0, 4), 2, device=device) * size), 1)
        centre = tree.centre[tree.at(0)].float()  # [n0, 2]
        spread = rng.uniform(24, 160)
        away = ((centre - places[:, :, None]) * torch.tensor([0.5, 1.0], device=device)).square().sum(3)
        bright = torch.exp(-away / (2 * spread**2)).amax(1).view(B, *tree.shapes[0])
        speckle = bright + rng.choice((0.0, 0.02, 0.2)) * speckle
    return tree.lift(speckle + 1e-6, how="max")
