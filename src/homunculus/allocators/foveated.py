"""Pyramid and fovea in one: fine cells around the fixation, coarser ones outward as the cortex has it."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.acuity import E0, M0, acuity_gain
from homunculus.allocators.cut import cut
from homunculus.allocators.frame import Request, relative
from homunculus.errors import InputError
from homunculus.fixation import PAGE_DEGREES, eccentricity

FLOOR = 0.05


def foveated(
    request: Request,
    *,
    m0: float = M0,
    e0: float = E0,
    degrees: float = PAGE_DEGREES,
    fovea: float = 0.0,
    floor: float = FLOOR,
) -> Tensor:
    """Cells grow with distance from the fixation as acuity falls, 1 / M(e), and shrink where relevance is high.

    M(e) = `m0` / (e + `e0`) is that of the cortex, with the page `degrees` high; the budget sets the density, so m0
    cancels out. `fovea` is a share of tokens kept for the finest cells around the fixation, `floor` what a cell of no
    relevance still weighs against the most relevant one: 1 and more lets acuity rule, 0 lets relevance rule.
    """
    if not floor >= 0:
        raise InputError(f"floor must be at least 0, got {floor!r}")
    e = eccentricity(request.tree, request.fixation, degrees)
    gain = acuity_gain(request, e, m0, e0, fovea) * relevance_weight(request, floor)
    return cut(request, gain, rest=_nearest_of_equals(request, e, e0))


def _nearest_of_equals(request: Request, e: Tensor, e0: float) -> Tensor:
    """The relevance, a trillionth higher near the fixation, so that among equals the nearest comes first. [B, N]"""
    largest = request.relevance.abs().amax(1, keepdim=True)
    return request.relevance + torch.where(largest > 0, largest, 1.0) * 1e-12 * (e0 / (e + e0))


def relevance_weight(request: Request, floor: float) -> Tensor:
    """Relevance from 0 to 1 of each image's largest, plus the floor. [B, N]"""
    return relative(request.weight) + floor
