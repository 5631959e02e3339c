"""The rules that choose which cells become tokens, by name.

Adding one: a file with `rule(request, *, options) -> mask [B, N]` or a Ranking, its entry in ALLOCATORS,
its row in docs/allocators.md. The tests run every entry through the same properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from homunculus.allocators.atlas import atlas
from homunculus.allocators.coverage import coverage, coverage_loss
from homunculus.allocators.cut import Ranking
from homunculus.allocators.cut import cut as cut_tree
from homunculus.allocators.dag import dag
from homunculus.allocators.foveated import foveated
from homunculus.allocators.fractal import fractal
from homunculus.allocators.frame import Request, as_indices, numbers
from homunculus.allocators.frequency import frequency
from homunculus.allocators.grid import grid
from homunculus.allocators.logpolar import logpolar
from homunculus.allocators.pseudo_logpolar import PseudoLogPolar, pseudo_logpolar
from homunculus.allocators.pyramid import pyramid
from homunculus.allocators.random import random
from homunculus.allocators.registry import Allocator
from homunculus.allocators.shared_budget import choose
from homunculus.allocators.strata import adaptive_stratified, stratified
from homunculus.allocators.uniform import uniform
from homunculus.allocators.vortex import vortex
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError, whole_number
from homunculus.fixation import peak
from homunculus.kernels.dispatch import capturing

__all__ = [
    "ALLOCATORS",
    "Allocator",
    "PseudoLogPolar",
    "allocate",
    "allocate_forest",
    "check_fixation",
    "check_options",
    "coverage_loss",
    "get_allocator",
    "get_cut",
    "list_allocators",
]

_ENTRIES = (
    Allocator(uniform, training_weight=1),
    Allocator(grid, capturable=True, training_weight=1),
    Allocator(random, training_weight=1),
    Allocator(pyramid, training_weight=1),
    Allocator(foveated, capturable=True, training_weight=5),
    Allocator(atlas),
    Allocator(dag, capturable=True, training_weight=3),
    Allocator(frequency, training_weight=1),
    Allocator(fractal),
    Allocator(logpolar, training_weight=1),
    Allocator(stratified, training_weight=1),
    Allocator(adaptive_stratified),
    Allocator(coverage),
    Allocator(pseudo_logpolar),
    Allocator(vortex),
)
ALLOCATORS: dict[str, Allocator] = {entry.name: entry for entry in _ENTRIES}


def list_allocators() -> list[str]:
    """Names that `allocate` and `Eye` take."""
    return list(ALLOCATORS)


def get_allocator(name: str) -> Allocator:
    """The registry's entry of that name."""
    if not isinstance(name, str) or name not in ALLOCATORS:
        raise InputError(f"there is no allocator {name!r}; choose one of {', '.join(ALLOCATORS)}")
    return ALLOCATORS[name]


def get_cut(name: str) -> Allocator:
    """The same for one that can choose from several trees under one budget."""
    if not get_allocator(name).is_cut:
        cuts = ", ".join(other for other, entry in ALLOCATORS.items() if entry.is_cut)
        raise InputError(f"{name} is no cut, so it cannot share a budget between images; choose one of {cuts}")
    return ALLOCATORS[name]


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Options that an allocator takes, of the right types; what their values may be, each rule says itself."""
    get_allocator(name).check(options)


def allocate(
    name: str,
    tree: CellTree,
    relevance: Tensor,
    budget: int = 273,
    fixation: Tensor | None = None,
    *,
    valid: Tensor | None = None,
    **options: object,
) -> Selection:
    """Choose `budget` cells of the tree by the rule `name`: exactly that many, or all there are.

    Shape:
        relevance [B, N]; fixation [B, 2] or [B, F, 2] in pixels, x before y, None for the peak of the relevance;
        valid [B, N] when images of different sizes share a tree (a tree made by `CellTree.bucket` knows it itself).
    """
    allocator = get_allocator(name)
    allocator.check(options)
    request = _request(tree, relevance, budget, fixation, valid)
    chosen = allocator.rule(request, **options)
    if isinstance(chosen, Ranking):
        chosen = cut_tree(request, chosen.gain, chosen.rest)
    if isinstance(chosen, Selection):
        return chosen
    return Selection.of(request.tree, as_indices(chosen, request.max_count))


def allocate_forest(
    rule: str,
    trees: Sequence[CellTree],
    relevances: Sequence[Tensor] | Tensor,
    budget: int,
    fixation: Sequence[Tensor] | Tensor | None = None,
    *,
    weights: Sequence[float] | Tensor | None = None,
    **options: object,
) -> list[Selection]:
    """Choose `budget` cells in all from several trees by one cut: an image that needs more borrows from the others.

    Exactly that many, or all there are. All roots are kept, so every pixel of every image is covered; a budget below
    the number of roots gives the best roots, so that some images may get none. With one tree it is `allocate`. What a
    rule normalises or ranks within an image, it does over all images, so their relevances must compare.

    Args:
        rule: an allocator that is a cut.
        trees: one for each image, of any sizes.
        relevances: of each tree, [N] or [1, N].
        budget: tokens for all images together.
        fixation: of each image, [2] or [F, 2] in pixels; None for the peak of each relevance.
        weights: a number above 0 for each tree, how likely it holds what is asked for; its priorities are multiplied.
        options: of the rule; `error`, `energy` and `lines` are lists with a tensor for each tree.

    Ties go to the coarser cell, then to the lower and narrower image, then to the first in tree order, then to the
    larger weight, then by a hash of what is given for each tree: the order of the trees does not matter.
    """
    return choose(get_cut(rule), trees, relevances, budget, fixation, weights, options)


def _request(tree: CellTree, relevance: Tensor, budget: int, fixation: Tensor | None, valid: Tensor | None) -> Request:
    tree = tree if valid is None else tree.restrict(valid)
    budget = min(whole_number("budget", budget), max(tree.counts))
    relevance = numbers("relevance", relevance)
    if relevance.ndim != 2 or relevance.shape[1] != tree.size or not len(relevance):
        raise InputError(f"relevance must be [B, {tree.size}] for {tree!r}, got {list(relevance.shape)}")
    if tree.rows not in (1, len(relevance)):
        raise InputError(f"the tree was made for {tree.rows} images, the relevance has {len(relevance)} rows")
    tree = tree.to(relevance.device)
    relevance = tree.only_valid(relevance.detach().double(), 0)
    if (
        not capturing(relevance)
        and not bool(torch.isfinite(relevance.sum()))
        and not bool((finite := torch.isfinite(relevance)).all())
    ):
        b, n = (~finite).nonzero()[0].tolist()
        raise InputError(f"relevance must be finite, got {relevance[b, n].item()} at row {b}, cell {n}")
    if fixation is None:
        return Request(tree, relevance, peak(tree, relevance), budget)
    return Request(tree, relevance, check_fixation(tree, fixation, len(relevance)), budget)


def check_fixation(tree: CellTree, fixation: Tensor, images: int) -> Tensor:
    """Fixations of several images, checked: float64 [B, F, 2] inside each."""
    given = numbers("fixation", fixation)
    points = (given[:, None] if given.ndim == 2 else given).to(tree.device).double()
    if points.ndim != 3 or points.shape[0] != images or points.shape[1] < 1 or points.shape[2] != 2:
        raise InputError(f"fixation must be [{images}, 2] or [{images}, F, 2], got {list(given.shape)}")
    inside = (points >= 0) & (points <= tree.sizes.flip(1)[:, None])
    if not capturing(points) and not bool(inside.all()):
        b, f = (~inside.all(2)).nonzero()[0].tolist()
        height, width = tree.image_sizes[b if tree.rows > 1 else 0]
        which = f" of image {b}" if images > 1 else ""
        raise InputError(f"fixation {points[b, f].tolist()}{which} lies outside its {width} x {height} pixels")
    return points
