"""Log-polar with learned bins: centres that start like a retina's and move to where answers lie."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from homunculus.allocators.acuity import E0, OVERSAMPLE, acuity_cells
from homunculus.allocators.frame import Request
from homunculus.allocators.logpolar import Compact
from homunculus.errors import InputError
from homunculus.fixation import PAGE_DEGREES, pixels_per_degree

MAX_BINS = 1024  # that a budget gets unless told; further tokens go to the most relevant cells
TABLE = 1 << 22  # entries of distances worked on at a time
GOLDEN = math.pi * (3 - math.sqrt(5))


def pseudo_logpolar(
    request: Request,
    *,
    centres: Tensor | None = None,
    degrees: float = PAGE_DEGREES,
    oversample: float = OVERSAMPLE,
    temperature: float = 0.1,
) -> Tensor:
    """The best cell of each learned bin, bins recentred on the fixation; one bin a token, up to 1,024.

    `centres` [M, 2] are x, y in degrees from the fixation, as `PseudoLogPolar` learns them. Every cell goes to the bin
    of nearest centre, distance counted in the size of the bin; at `temperature` 0.1 that is all the softmax leaves.
    The cells are those of a cut that follows M(e), `oversample` times as many as tokens, the page `degrees` high.
    """
    gazes = request.fixation.shape[1]  # each has its own bins
    if centres is None:
        centres = start_centres(min(max(1, request.budget // gazes - 1), MAX_BINS))
    centres = torch.as_tensor(centres).detach().to(request.relevance)
    if centres.ndim != 2 or centres.shape[1] != 2 or not len(centres) or not bool(torch.isfinite(centres).all()):
        raise InputError(f"centres must be finite numbers [bins, 2] in degrees, got {list(centres.shape)}")
    cells, e = acuity_cells(request, oversample, degrees=degrees)
    at = Compact(request, cells, e)
    place = at.offset / pixels_per_degree(request.tree, degrees)[..., None]  # [B, M, 2]
    some = max(1, TABLE // (len(place) * len(centres)))  # bounds the memory of large budgets
    nearest = [assignment_logits(part, centres, temperature).argmax(2) for part in place.split(some, dim=1)]
    bins = at.gaze * len(centres) + torch.cat(nearest, 1)
    return at.finish(at.best_of_each(bins, gazes * len(centres)), at.fixated, gazes * (len(centres) + 1))


def start_centres(bins: int = 272, fovea: float = 0.25, fovea_radius: float = 1.5, radius: float = 14.0) -> Tensor:
    """Centres to start from, in degrees: a quarter evenly in the fovea, the rest log-spaced outward. [bins, 2]"""
    inside = round(bins * fovea)
    even = ((torch.arange(inside, dtype=torch.float64) + 0.5) / max(inside, 1)).sqrt() * fovea_radius
    step = (torch.arange(bins - inside, dtype=torch.float64) + 0.5) / max(bins - inside, 1)
    outer = fovea_radius * (radius / fovea_radius) ** step
    r = torch.cat((even, outer))
    turn = torch.arange(bins, dtype=torch.float64) * GOLDEN
    return torch.stack((r * turn.cos(), r * turn.sin()), 1)


def assignment_logits(place: Tensor, centres: Tensor, temperature: float) -> Tensor:
    """Minus squared distance of each place [..., 2] to each bin, in units of the bin's size, over temperature.

    A bin's size grows with its eccentricity as 1 / M(e). [..., M, 2], [bins, 2] -> [..., M, bins]
    """
    if not temperature > 0:
        raise InputError(f"temperature must be above 0, got {temperature!r}")
    squared = centres.square().sum(1)
    scale = -1 / ((squared.sqrt() + E0).square() * temperature)  # [bins]
    # |p - c|^2 = |p|^2 - 2 p c + |c|^2 as one product
    features = torch.cat((place, place.square().sum(-1, keepdim=True), torch.ones_like(place[..., :1])), -1)
    weights = torch.stack((-2 * centres[:, 0], -2 * centres[:, 1], torch.ones_like(squared), squared)) * scale
    return features @ weights


class PseudoLogPolar(nn.Module):
    """Trainable bin centres: soft assignment while training, hard in `allocate(..., centres=bins.centres)`."""

    def __init__(self, bins: int = 272, fovea: float = 0.25, temperature: float = 1.0) -> None:
        super().__init__()
        self.centres = nn.Parameter(start_centres(bins, fovea).float())
        self.temperature = temperature

    def forward(self, place: Tensor) -> Tensor:
        """How much each place [B, M, 2], in degrees from the fixation, belongs to each bin. [B, M, bins]"""
        return assignment_logits(place, self.centres, self.temperature).softmax(-1)

    @staticmethod
    def dead_bin_loss(assignment: Tensor) -> Tensor:
        """Zero when all bins are used alike, growing without bound as one falls silent. [B, M, bins] -> scalar"""
        use = assignment.mean((0, 1))
        return -(use * len(use)).clamp(min=1e-9).log().mean()
