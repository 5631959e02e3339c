"""Cortical magnification as a specification: how large a cell may be at its distance from the fixation."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from homunculus.allocators.cut import partition
from homunculus.allocators.frame import Request, as_indices, best, share_of_tokens
from homunculus.errors import InputError
from homunculus.fixation import PAGE_DEGREES, eccentricity

M0 = 17.0  # mm of cortex per degree at the fovea; 10 to 20 are quoted
E0 = 0.75  # degrees at which magnification has halved
OVERSAMPLE = 1.5  # cells offered for each token: more leaves more to choose, less follows M(e) closer


def magnification(e: Tensor, m0: float = M0, e0: float = E0) -> Tensor:
    """M(e) = m0 / (e + e0): millimetres of cortex per degree at eccentricity e."""
    if not (m0 > 0 and e0 > 0):
        raise InputError(f"m0 and e0 of M(e) = m0 / (e + e0) must be above 0, got {m0!r} and {e0!r}")
    return (e + e0).reciprocal_().mul_(m0)  # in place: a forest has millions of cells


def acuity_gain(request: Request, e: Tensor, m0: float = M0, e0: float = E0, fovea: float = 0.0) -> Tensor:
    """How much of the cortex each cell would claim: its side times M(e). [B, N]

    Cutting where this is largest leaves cells whose side grows as e + e0; the budget sets the factor. `fovea` is a
    share of the tokens that the finest cells nearest to the fixation get in any case.
    """
    gain = request.tree.span * magnification(e, m0, e0)
    if share_of_tokens("fovea", fovea) > 0:
        near = best(-e, (request.quota * fovea).round().long(), request.tree.fine, request.max_count)
        gain = gain * (1 + 1e30 * near)  # their ancestors follow, for a parent ranks as high as its best child
    return gain


def acuity_cells(
    request: Request, oversample: float, e0: float = E0, degrees: float = PAGE_DEGREES, fovea: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Cells that tile the image at sizes which follow M(e), `oversample` times as many as the budget.

    Returns indices [B, M], -1 behind the last, and the eccentricity of all cells [B, N].
    """
    if not 1 <= oversample <= 64:
        raise InputError(f"oversample must be from 1 to 64, got {oversample!r}")
    e = eccentricity(request.tree, request.fixation, degrees)
    finer = replace(request, budget=round(request.budget * oversample))
    mask = partition(finer, request.tree.subtree_max(acuity_gain(request, e, e0=e0, fovea=fovea)))
    return as_indices(mask, min(finer.budget, max(request.tree.fine_counts))), e
