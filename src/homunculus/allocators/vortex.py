"""Spiral sampling from the fixation outward."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from homunculus.allocators.acuity import E0, OVERSAMPLE, acuity_cells
from homunculus.allocators.frame import Request
from homunculus.allocators.logpolar import Compact
from homunculus.errors import InputError
from homunculus.fixation import PAGE_DEGREES


def vortex(
    request: Request,
    *,
    turns: float = 8.0,
    e0: float = E0,
    degrees: float = PAGE_DEGREES,
    oversample: float = OVERSAMPLE,
) -> Tensor:
    """The cells that lie nearest to a logarithmic spiral which winds `turns` times from the fixation outward.

    The cells are those of a cut whose sizes follow M(e), with `oversample` times as many cells as tokens; `e0` is the
    constant of M(e), `degrees` the height of the page.
    """
    if not turns > 0:
        raise InputError(f"turns must be above 0, got {turns!r}")
    cells, e = acuity_cells(request, oversample, e0, degrees)
    at = Compact(request, cells, e)
    rho = ((at.e + e0) / e0).log()  # 0 at the fixation
    outmost = rho.where(at.valid, rho.new_zeros(())).amax(1, keepdim=True).clamp(min=1e-300)
    winding = turns * rho.where(at.valid, outmost) / outmost - at.angle / (2 * math.pi)
    nearness = -(winding - winding.round()).abs()
    return at.finish(torch.zeros_like(at.valid), at.fixated, request.fixation.shape[1], nearness)
