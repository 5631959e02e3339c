"""Notes: lines that the eye reads where the scout points, most promising first, for the language model as text.

All of them are read from the cells of the look, so what a look does not show cannot be noted.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from homunculus.reader.encoder import Encoder
from homunculus.reader.letters import decode

POINTS = 12  # places that are read
LETTERS = 56  # at most, of a line
ROW, COLUMN = 0, 5  # places of the scout's map on either side of a chosen one that are not chosen again
TALL = 26.0  # pixels of a place's height from which two lines fit in


def spots(logits: Tensor, size: tuple[int, int], count: int = POINTS) -> Tensor:
    """Points to read at on pages of one size, best first: the scout's maps [n, h, w] -> x, y in pixels [n, count, 2].

    Where a place is high enough for two lines, both are read.
    """
    h, w = logits.shape[1:]
    high, wide = size[0] / h, size[1] / w
    shifts = (-0.25, 0.25) if high >= TALL else (0.0,)
    rows, columns = torch.arange(h, device=logits.device)[:, None], torch.arange(w, device=logits.device)
    left = logits.flatten(1)
    points: list[Tensor] = []
    while len(points) < count:
        best = left.argmax(1)
        y, x = best // w, best % w
        points += [torch.stack(((x + 0.5) * wide, (y + 0.5 + shift) * high), 1) for shift in shifts]
        near = ((rows - y[:, None, None]).abs() <= ROW) & ((columns - x[:, None, None]).abs() <= COLUMN)
        left = left.masked_fill(near.flatten(1), -torch.inf)
    return torch.stack(points[:count], 1)


def take(
    encoder: Encoder, memory: Tensor, places: Tensor, points: Tensor, mask: Tensor | None = None
) -> list[list[str]]:
    """Different lines at points [B, n, 2] in fine cells, in that order, from the encoder's vectors of a look."""
    codes = encoder.reading.greedy(memory, places, points, "line", mask, LETTERS)
    return [distinct(map(decode, page)) for page in codes.tolist()]


def distinct(lines: Iterable[str]) -> list[str]:
    """Lines without those that say nothing or that another says too, in order."""
    kept: list[str] = []
    for line in (line.strip() for line in lines):
        if any(c.isalnum() for c in line) and not any(line.lower() in other.lower() for other in kept):
            kept.append(line)
    return kept
