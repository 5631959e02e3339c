"""The rules that choose which cells become tokens, by name.

Adding one: a file with `rule(request, *, options) -> mask [B, N]`, its entry in ALLOCATORS, its row in
docs/allocators.md. The tests run every entry through the same properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from homunculus.allocators.atlas import atlas
from homunculus.allocators.coverage import coverage, coverage_loss
from homunculus.allocators.dag import dag
from homunculus.allocators.foveated import foveated
from homunculus.allocators.fractal import fractal
from homunculus.allocators.frame import Request, as_indices
from homunculus.allocators.frequency import frequency
from homunculus.allocators.grid import grid
from homunculus.allocators.logpolar import logpolar
from homunculus.allocators.pseudo_logpolar import PseudoLogPolar, pseudo_logpolar
from homunculus.allocators.pyramid import pyramid
from homunculus.allocators.random import random
from homunculus.allocators.registry import Allocator
from homunculus.allocators.strata import adaptive_stratified, stratified
from homunculus.allocators.uniform import uniform
from homunculus.allocators.vortex import vortex
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError, shown, whole_number
from homunculus.fixation import peak
from homunculus.kernels.choice import capturing

__all__ = [
    "ALLOCATORS",
    "Allocator",
    "PseudoLogPolar",
    "allocate",
    "check_options",
    "coverage_loss",
    "get_allocator",
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
    if isinstance(chosen, Selection):
        return chosen
    return Selection.of(request.tree, as_indices(chosen, request.max_count))


def _request(tree: CellTree, relevance: Tensor, budget: int, fixation: Tensor | None, valid: Tensor | None) -> Request:
    tree = tree if valid is None else tree.restrict(valid)
    budget = min(whole_number("budget", budget), max(tree.counts))
    relevance = _numbers("relevance", relevance)
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
    return Request(tree, relevance, _checked(tree, fixation, len(relevance)), budget)


def _checked(tree: CellTree, fixation: Tensor, images: int) -> Tensor:
    given = _numbers("fixation", fixation)
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


def _numbers(name: str, values: Any) -> Tensor:
    """Values as a tensor of real numbers."""
    try:
        tensor = torch.as_tensor(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be a tensor of numbers, got {shown(values)}") from None
    if tensor.is_complex():
        raise InputError(f"{name} must be real numbers, got {tensor.dtype}")
    return tensor
