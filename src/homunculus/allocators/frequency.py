"""Cut by the spectrum: a cell's error is the energy of the bands it would lose, by orientation if the query has one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.cut import Ranking
from homunculus.allocators.frame import Request, per_cell
from homunculus.allocators.seats import rank_in_group
from homunculus.allocators.wording import Wording, per_image
from homunculus.errors import InputError

ALONG, ACROSS = 128.0, 32.0  # tokens for the wanted orientation and for each other one, of every 224


def frequency(
    request: Request,
    *,
    energy: Tensor | None = None,
    question: str | Sequence[str] = "",
    shares: Sequence[float] | None = None,
) -> Ranking:
    """Splits the cells that would lose most band energy; text questions favour horizontal detail, facades vertical.

    `energy` is what each cell would lose, [B, N], or [B, N, O] by orientation of the detail (0: runs horizontally,
    then counter-clockwise in steps of 180 / O degrees). With orientations the splits are shared between them:
    `shares` (O numbers), or by the words of `question`: 128 for the wanted one and 32 for each other, equal shares
    for an open question. Without `energy` a cell loses in proportion to its side.
    """
    if energy is None:
        orientation_shares([""], len(shares or ()), shares)  # wrong ones are named all the same
        return Ranking(request.weight * 2.0**request.tree.level, request.relevance)
    energy = per_cell("energy", energy, request, several=True)
    if energy.ndim == 2:
        return Ranking(request.weight * energy, request.relevance)
    share = orientation_shares(per_image(question, request.images), energy.shape[2], shares).to(request.relevance)
    return Ranking(_share_out(request, energy[:, : request.tree.inner].double(), share), request.relevance)


def orientation_shares(questions: Sequence[str], orientations: int, shares: Sequence[float] | None = None) -> Tensor:
    """How the splits are shared between orientations for each question. float64 [B, O]"""
    if shares is not None:
        if len(shares) != orientations or not shares or min(shares) < 0 or not 0 < sum(shares) < math.inf:
            raise InputError(f"shares must be {orientations} numbers, none below 0 and not all 0, got {shares!r}")
        return torch.tensor([list(shares)] * len(questions), dtype=torch.float64)
    share = torch.full((len(questions), orientations), ACROSS, dtype=torch.float64)
    for row, wording in zip(share, map(Wording.of, questions), strict=True):
        if wording.text and wording.text >= wording.upright:
            row[0] = ALONG
        elif wording.upright:
            row[orientations // 2] = ALONG
    return share


def _share_out(request: Request, energy: Tensor, share: Tensor) -> Tensor:
    """Gains by which the j-th best cell of an orientation competes with share / (2 j - 1), as in `seats`. [B, N]

    A cell belongs to the orientation in which it would lose most. energy [B, inner, O]; fine cells lose nothing.
    share [images, O].
    """
    inner = request.tree.inner
    value, group = energy.max(2)  # [B, inner]
    value = value * request.weight[:, :inner]
    valid = request.tree.valid[:, :inner]  # what an image does not have comes behind what it has
    place = rank_in_group(group, torch.where(valid, value, -1.0), energy.shape[2])
    gain = share[request.image[:, :inner], group] / (2 * place + 1) * (value > 0)
    return torch.cat((gain, gain.new_zeros(len(gain), request.tree.size - inner)), 1)
