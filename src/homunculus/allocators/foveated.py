"""Pyramid and fovea in one: fine cells around the fixation, coarser ones outward as the cortex has it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.acuity import E0, M0, acuity_gain, magnification
from homunculus.allocators.cut import Ranking
from homunculus.allocators.frame import Request, per_cell, relative
from homunculus.allocators.legibility import MIN_PRINT, illegible_print, print_first
from homunculus.allocators.scales import Move, best_scale
from homunculus.cells import Selection
from homunculus.errors import InputError
from homunculus.fixation import PAGE_DEGREES

FLOOR = 0.005
EMPTY = 1e-3  # what a cell without any detail still counts


def foveated(
    request: Request,
    *,
    error: Tensor | str | None = None,
    detail: float = 1.0,
    m0: float = M0,
    e0: float = E0,
    degrees: float = PAGE_DEGREES,
    fovea: float = 0.0,
    floor: float = FLOOR,
    lines: Sequence[Tensor] | None = None,
    min_print: float = MIN_PRINT,
    clear_print: float = 0.0,
    scales: int = 1,
) -> Ranking | Tensor | Selection:
    """Cells grow with distance from the fixation as acuity falls, 1 / M(e), and shrink where relevance is high.

    M(e) = `m0` / (e + `e0`) is that of the cortex, with the page `degrees` high; the budget sets the density, so m0
    cancels out. `fovea` is a share of tokens kept for the finest cells around the fixation, `floor` what a cell of no
    relevance still weighs against the most relevant one: 1 and more lets acuity rule, 0 lets relevance rule.

    With `error` [B, N], what each cell would lose if it were left coarse, a cell counts as much as the detail per pixel
    in it to the power of `detail`: empty paper is not worth a closer look, however near. 0 leaves that out.

    With `lines`, tensors [n, 5] of x0, y0, x1, y1 and print height in pixels for each image, cells in which print is
    less than `min_print` pixels high come first, in order of M(e), relevance and how dense that print is. Tokens left
    over when all print is legible go as they do without lines. error="legibility" is the same without a tensor; `Eye`
    finds the lines. Print of at least `min_print` but less than `clear_print` counts a sixteenth, so that a short
    budget shows more lines and a longer one shows them better. With `scales` above 1 the finest cells may be up to an
    octave larger, in so many steps: those are taken that leave the least print illegible.
    """
    if not floor >= 0:
        raise InputError(f"floor must be at least 0, got {floor!r}")
    if not 0 <= detail <= 8:
        raise InputError(f"detail must be from 0 to 8, got {detail!r}")
    detailed = request.weight * _detail(request, error) ** detail if isinstance(error, Tensor) else request.weight
    factor, weight = relative(detailed) + floor, relative(request.weight) + floor

    def choose(request: Request, move: Move) -> tuple[Ranking, Tensor | None]:
        e = request.eccentricity(degrees)
        gain, lost = acuity_gain(request, e, m0, e0, fovea) * move(factor), None
        illegible = illegible_print(request, error, lines, min_print, clear_print)
        if illegible is not None:
            lost = magnification(e, m0, e0) * move(weight) * illegible
            by_acuity = acuity_gain(request, e, m0, e0) * move(factor)
            gain = torch.maximum(gain, print_first(request, by_acuity, lost))  # the fovea first
        return Ranking(gain, _nearest_of_equals(request, e, e0)), lost

    return best_scale(request, scales, choose)


def _nearest_of_equals(request: Request, e: Tensor, e0: float) -> Tensor:
    """The relevance, a trillionth higher near the fixation, so that among equals the nearest comes first. [B, N]"""
    largest = request.relevance.abs().amax(1, keepdim=True)
    near = (e + e0).reciprocal_().mul_(e0)  # in place: a forest has millions of cells
    return near.mul_(torch.where(largest > 0, largest, 1.0) * 1e-12).add_(request.relevance)


def _detail(request: Request, error: Tensor) -> Tensor:
    """Detail per pixel of each cell, as a share of the image's most detailed one. [B, N]"""
    density = per_cell("error", error, request) / 4.0 ** request.tree.level.double()
    return relative(density) + EMPTY
