"""Error-driven cut, as game engines choose the level of detail of virtualised geometry."""

from __future__ import annotations

from torch import Tensor

from homunculus.allocators.cut import cut
from homunculus.allocators.frame import Request, per_cell
from homunculus.errors import InputError


def dag(request: Request, *, error: Tensor | None = None, detail: float = 1.0) -> Tensor:
    """Splits the cells whose relevance-weighted error is highest; one merged token stands for all the rest.

    `error` [B, N] is what each cell would lose if it were left coarse. Without it a cell loses resolution in
    proportion to its side, to the power of `detail`: 0 follows the relevance alone, straight down to the finest
    level; larger values refine more evenly.
    """
    if not 0 <= detail <= 8:
        raise InputError(f"detail must be from 0 to 8, got {detail!r}")
    lost = 2.0 ** (detail * request.tree.level.double()) if error is None else per_cell("error", error, request)
    return cut(request, request.weight * lost)
