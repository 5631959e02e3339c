"""Error-driven cut, as game engines choose the level of detail of virtualised geometry."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.cut import Ranking
from homunculus.allocators.frame import Request, per_cell
from homunculus.allocators.legibility import MIN_PRINT, illegible_print, print_first
from homunculus.allocators.scales import Move, best_scale
from homunculus.cells import Selection
from homunculus.errors import InputError


def dag(
    request: Request,
    *,
    error: Tensor | str | None = None,
    detail: float = 1.0,
    lines: Sequence[Tensor] | None = None,
    min_print: float = MIN_PRINT,
    clear_print: float = 0.0,
    scales: int = 1,
) -> Ranking | Tensor | Selection:
    """Splits the cells whose relevance-weighted error is highest; one merged token stands for all the rest.

    `error` [B, N] is what each cell would lose if it were left coarse. Without it a cell loses resolution in
    proportion to its side, to the power of `detail`: 0 follows the relevance alone, straight down to the finest
    level; larger values refine more evenly.

    With `lines`, tensors [n, 5] of x0, y0, x1, y1 and print height in pixels for each image, cells in which print is
    less than `min_print` pixels high come first, the densest relevant print before the rest. Tokens left over when all
    relevant print is legible go by the error. error="legibility" is the same without a tensor; `Eye` finds the lines.
    Print of at least `min_print` but less than `clear_print` counts a sixteenth, so that a short budget shows more
    lines and a longer one shows them better. With `scales` above 1 the finest cells may be up to an octave larger, in
    so many steps: those are taken that leave the least print illegible.
    """
    if not 0 <= detail <= 8:
        raise InputError(f"detail must be from 0 to 8, got {detail!r}")
    if isinstance(error, Tensor):
        gain_of_split = request.weight * per_cell("error", error, request)
    else:
        levels = torch.arange(request.tree.levels, device=request.tree.device)
        gain_of_split = request.weight * request.tree.of_level(2.0 ** (detail * levels.double()))

    def choose(request: Request, move: Move) -> tuple[Ranking, Tensor | None]:
        gain, illegible = move(gain_of_split), illegible_print(request, error, lines, min_print, clear_print)
        if illegible is None:
            return Ranking(gain, request.relevance), None
        lost = request.weight * illegible
        return Ranking(print_first(request, gain, lost), request.relevance), lost

    return best_scale(request, scales, choose)
