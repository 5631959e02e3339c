"""Log-polar choice: rings and sectors around the fixation, the best cell of each."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from homunculus.allocators.acuity import E0, OVERSAMPLE, acuity_cells
from homunculus.allocators.frame import Request, best, fill, relative, share_of_tokens
from homunculus.allocators.offgrid import ring_points
from homunculus.cells import Selection
from homunculus.errors import InputError, whole_number
from homunculus.fixation import PAGE_DEGREES

MAX_BINS = 4096  # along either axis
PHASE = 0.382  # of a sector: keeps sector borders off the axes and diagonals, where cells would lie exactly on them


def logpolar(
    request: Request,
    *,
    rings: int | None = None,
    sectors: int | None = None,
    radius: str = "log",
    alpha: float = 0.35,
    beta: float = 0.0,
    fovea: float = 0.0,
    e0: float = E0,
    degrees: float = PAGE_DEGREES,
    oversample: float = OVERSAMPLE,
    offgrid: bool = False,
) -> Tensor | Selection:
    """16 rings x 17 sectors around the fixation (272 bins) and the fixation itself, the best cell of each.

    The bins choose from a cut whose cell sizes follow M(e), with `oversample` times as many cells as tokens; bins that
    hold no cell pass their token on to the most relevant cells of the cut. `radius` spaces the rings: "log" evenly in
    rho = log(`alpha` + r (1 + `beta` s)) for a cell of relevance s at r degrees, "acuity" evenly in the integral of
    60 / (1 + 0.3 r) cycles per degree. `fovea` is a share of tokens for the finest cells around the fixation,
    `e0` the constant of M(e), `degrees` the height of the page. `rings` and `sectors` set the bins; other budgets than
    273 keep the proportion of 16 to 17. `offgrid` centres patches exactly on the ring
    points instead, log-spaced.
    """
    central = round(request.budget * share_of_tokens("fovea", fovea))  # tokens that need no bin
    gazes = request.fixation.shape[1]  # each has its own bins
    rings, sectors = _bins(max(1, (request.budget - central) // gazes), rings, sectors)
    if radius not in RADII or not alpha > 0 or not 0 <= beta <= 10:
        raise InputError(
            f"radius must be one of {', '.join(RADII)}, alpha above 0 and beta from 0 to 10, "
            f"got {radius!r}, {alpha!r} and {beta!r}"
        )
    if offgrid:
        if fovea or beta or radius != "log":
            raise InputError("offgrid knows log-spaced rings alone: it takes no fovea, no beta and no other radius")
        return ring_points(request, rings, sectors, alpha, e0, degrees)
    cells, e = acuity_cells(request, oversample, e0, degrees, fovea)
    at = Compact(request, cells, e)
    rho = RADII[radius](at.e * (1 + beta * relative(at.relevance.clamp(min=0))), alpha)
    bins = (at.gaze * rings + _fraction(rho, at.valid, rings)) * sectors + _sector(at.angle, sectors)
    kept = at.fixated | best(-at.e, (request.quota * fovea).round().long(), at.valid & at.fine, central)
    count = gazes * rings * sectors
    return at.finish(at.best_of_each(torch.where(kept, count, bins), count), kept, count + central + gazes)


RADII = {"log": lambda r, alpha: (r + alpha).log(), "acuity": lambda r, alpha: 60 / 0.3 * (1 + 0.3 * r).log()}


class Compact:
    """The cells of a cut without the rest of the tree: a few hundred entries a row instead of thousands.

    Shape:
        index, e, relevance, angle, valid [B, M]; `valid` is False behind the last cell of a row; `gaze` [B, M] is the
        nearest fixation, `offset` [B, M, 2] the way from it in pixels.
    """

    def __init__(self, request: Request, cells: Tensor, e: Tensor) -> None:
        self.request, self.valid = request, cells >= 0
        self.index = cells.clamp(min=0)
        self.e = torch.where(self.valid, e.gather(1, self.index), torch.inf)
        self.relevance = torch.where(self.valid, request.relevance.gather(1, self.index), -torch.inf)
        offsets = request.tree.centre[self.index][:, :, None] - request.fixation[:, None]  # [B, M, F, 2]
        self.gaze = offsets.square().sum(3).argmin(2)
        self.offset = offsets.gather(2, self.gaze[..., None, None].expand(-1, -1, 1, 2))[:, :, 0]
        self.angle = torch.atan2(self.offset[..., 1], self.offset[..., 0])

    @property
    def fine(self) -> Tensor:
        """Which of the cells are of the finest level."""
        return self.request.tree.level[self.index] == 0

    @property
    def fixated(self) -> Tensor:
        """The cell of the cut in which each fixation lies."""
        away = self.offset.abs().amax(2)
        inside = self.valid & (away <= self.request.tree.span[self.index] / 2)
        one, found = torch.ones_like(self.request.quota), torch.zeros_like(inside)
        for gaze in range(self.request.fixation.shape[1]):
            found = found | best(-away, one, inside & (self.gaze == gaze), 1)
        return found

    def best_of_each(self, bins: Tensor, count: int) -> Tensor:
        """Mask [B, M] of the most relevant cell in each of `count` bins; bin `count` is none; ties in tree order."""
        inside = self.valid & (bins < count)
        bins = torch.where(inside, bins, count)
        top = self.relevance.new_full((len(bins), count + 1), -torch.inf)
        top = top.scatter_reduce(1, bins, self.relevance, "amax")
        ties = inside & (self.relevance == top.gather(1, bins))
        place = torch.arange(bins.shape[1], device=bins.device).expand_as(bins)
        place = torch.where(ties, place, bins.shape[1])
        first = torch.full_like(top, bins.shape[1], dtype=torch.long).scatter_reduce(1, bins, place, "amin")
        return ties & (place == first.gather(1, bins))

    def finish(self, chosen: Tensor, kept: Tensor, at_most: int, score: Tensor | None = None) -> Tensor:
        """Trim or fill up the chosen cells to the quota by score (the relevance); those `kept` come first. [B, N]

        `at_most` bounds the chosen and kept from above: when they fit the quota in any case, nothing is trimmed.
        """
        request, score = self.request, self.relevance if score is None else score
        chosen = chosen | kept
        if at_most > min(request.budget, *request.tree.counts):
            chosen = best(torch.where(kept, torch.inf, score), request.quota, chosen, request.max_count)
        room = request.quota - chosen.sum(1, keepdim=True)
        chosen = chosen | best(score, room, self.valid & ~chosen, request.max_count)
        slot = torch.where(chosen, self.index, request.tree.size)  # the unchosen share one slot that is thrown away
        mask = chosen.new_zeros(len(chosen), request.tree.size + 1).scatter(1, slot, True)[:, :-1]
        enough = chosen.shape[1] - 2 >= request.budget and request.budget <= min(request.tree.fine_counts)
        return mask if enough else fill(request, mask, request.relevance)


def _bins(budget: int, rings: int | None, sectors: int | None) -> tuple[int, int]:
    """16 x 17 at 273 tokens, and near that proportion at other budgets."""
    rings = max(1, min(math.isqrt((budget - 1) * 16 // 17), MAX_BINS)) if rings is None else rings
    sectors = max(1, min((budget - 1) // max(rings, 1), MAX_BINS)) if sectors is None else sectors
    return whole_number("rings", rings, 1, MAX_BINS), whole_number("sectors", sectors, 1, MAX_BINS)


def _fraction(value: Tensor, valid: Tensor, parts: int) -> Tensor:
    """Which of `parts` equal parts of each row's range a value falls into. [B, M]"""
    low = torch.where(valid, value, torch.inf).amin(1, keepdim=True)
    high = torch.where(valid, value, -torch.inf).amax(1, keepdim=True)
    part = (value - low) / (high - low).clamp(min=1e-300) * parts
    return torch.where(valid, part, 0).long().clamp(0, parts - 1)


def _sector(angle: Tensor, sectors: int) -> Tensor:
    turn = angle / (2 * math.pi) + PHASE / sectors
    return ((turn - turn.floor()) * sectors).long().clamp(max=sectors - 1)
