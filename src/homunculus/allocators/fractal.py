"""Top-down expansion of deep trees: a branch grows only where it pays."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.allocators.expansion import expand, nearness
from homunculus.allocators.frame import Request, as_indices, fill, per_cell
from homunculus.errors import InputError, whole_number

AHEAD, WAVE = 2, 64
MOST_DETAIL = 8


def fractal(
    request: Request,
    *,
    error: Tensor | None = None,
    detail: float = 1.0,
    ahead: int = AHEAD,
    wave: int = WAVE,
    fovea: float | None = None,
) -> Tensor:
    """Expands branches from the top, wave by wave, where relevance x lost detail is high; sees no deeper than it must.

    A cell that is not split is judged by itself and by what lies up to `ahead` levels below it: what hides deeper is
    not known. That is what lets `homunculus.giga` run the same expansion on images whose tree nobody can hold. `wave`
    is how many cells split at most before relevance is looked at again. `error` [B, N] is what each cell would lose if
    it were left coarse; without it, its side to the power of `detail`. With `fovea`, a number of finest cells, what
    lies around the fixation comes first: at that distance it counts half.
    """
    if not 0 <= detail <= MOST_DETAIL:
        raise InputError(f"detail must be from 0 to {MOST_DETAIL}, got {detail!r}")
    check_expansion(ahead, wave, fovea)
    tree = request.tree
    by_side = 2.0 ** (detail * tree.level.double())
    gain = request.weight * (by_side if error is None else per_cell("error", error, request))
    gain = seen_ahead(request, gain, ahead)
    if fovea is not None:
        boxes = tree.box_of_each.expand(len(gain), -1, -1).double()
        near = nearness(boxes, request.fixation, fovea * tree.cell)
        gain = gain * near ** (detail if error is None else 2.0)  # what is lost goes by the area
    start = as_indices(tree.roots, max(tree.root_counts)).expand(len(gain), -1)
    cells, _ = expand(tree, start, lambda new: gain.gather(1, new.clamp(min=0)), request.quota, wave)
    mask = torch.zeros(len(gain), tree.size + 1, dtype=torch.bool, device=gain.device)
    mask.scatter_(1, torch.where(cells >= 0, cells, tree.size), True)  # the last is thrown away
    return fill(request, mask[:, :-1], request.relevance)


def check_expansion(ahead: int, wave: int, fovea: float | None) -> None:
    """Options of the expansion, checked."""
    whole_number("ahead", ahead, 0)
    whole_number("wave", wave)
    if fovea is not None and not 0 < fovea < float("inf"):
        raise InputError(f"fovea must be a number of cells above 0, or None, got {fovea!r}")


def seen_ahead(request: Request, gain: Tensor, ahead: int) -> Tensor:
    """The largest gain of each cell and of those up to `ahead` levels below it. [B, N]"""
    tree = request.tree
    gain = tree.only_valid(gain, 0)
    seen = [tree.grid(gain, l) for l in range(tree.levels)]
    for _ in range(min(ahead, tree.levels - 1)):
        pooled = [F.max_pool2d(below[:, None], 2, ceil_mode=True)[:, 0] for below in seen[:-1]]
        seen = [seen[0], *(torch.maximum(a, b) for a, b in zip(seen[1:], pooled, strict=True))]
    return torch.cat([level.flatten(1) for level in reversed(seen)], 1)
