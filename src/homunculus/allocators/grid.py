"""The baseline: the finest cells of highest relevance."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, fill


def grid(request: Request) -> Tensor:
    """The finest cells of highest relevance: the baseline that everything else must beat."""
    return fill(request, torch.zeros_like(request.relevance, dtype=torch.bool), request.relevance)
