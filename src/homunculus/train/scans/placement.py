"""How a real page lies on a canvas: some are cut into bands that change places, all are scaled and turned a little.

Who knows a page by heart knows where an answer stands, and no longer has to read; in a page whose bands have changed
places that is no help. Cuts go through gaps between lines, wide ones rather, so what belongs together mostly stays so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from homunculus.train.page_lines import Array

CUTS = 6  # at most
LINES = 6  # that a page has at least to be cut
PLACES = re.compile(
    r"\b(top|bottom|first|last|head\w*|foot\w*|title|above|below|upper|lower|end|begin\w*|start\w*|under)\b", re.I
)  # words that ask for a place on the whole page

Gap = tuple[int, int]  # middle and height
Band = tuple[int, int]  # first row and the one behind the last


class PagePlacement:
    """Maps what stands on a page to a canvas.

    Args:
        matrix: affine map of pixels, [2, 3].
        bands: rows of the page from top to bottom of the canvas.
    """

    def __init__(self, matrix: Array, bands: Sequence[Band]) -> None:
        self.matrix, self.bands = matrix, list(bands)
        high = [end - start for start, end in self.bands]
        moved = {start: sum(high[:i]) - start for i, (start, _) in enumerate(self.bands)}
        self.starts = np.array(sorted(moved))
        self.shifts = np.array([moved[int(start)] for start in self.starts], np.float32)

    @property
    def cut(self) -> bool:
        """Whether bands have changed places."""
        return bool(self.shifts.any())

    def points(self, points: Array, rows: Array | None = None) -> Array:
        """Points [..., 2] on the canvas; rows [...] tell which band each belongs to, its own row unless told."""
        rows = points[..., 1] if rows is None else rows
        shift = self.shifts[(np.searchsorted(self.starts, rows, "right") - 1).clip(0)]
        moved = points + np.stack((np.zeros_like(shift), shift), -1)
        return np.asarray(moved @ self.matrix[:, :2].T + self.matrix[:, 2], np.float32)

    def boxes(self, boxes: Array) -> Array:
        """Boxes [n, 4] on the canvas."""
        middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2
        middle, half = self.points(middle), half * np.array([self.matrix[0, 0], self.matrix[1, 1]])
        return np.concatenate((middle - half, middle + half), 1).astype(np.float32)


def gaps(boxes: Array, height: int) -> list[Gap]:
    """Rows of a page between lines in boxes [n, 4] where nothing stands; none on a page of few lines."""
    if len(boxes) < LINES:
        return []
    free = np.ones(height + 1, bool)
    for _, y0, _, y1 in boxes:
        free[max(0, int(y0)) : max(0, int(np.ceil(y1)) + 1)] = False
    free[-1] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([0], free.astype(np.int8)))))
    runs = [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
    return [((start + end) // 2, end - start) for start, end in runs if end - start >= 4 and start > 0 and end < height]


def bands(found: Sequence[Gap], height: int, rng: random.Random) -> list[Band]:
    """A page cut at some of its gaps, the wide ones rather, the pieces in another order."""
    cuts: set[int] = set()
    if found:
        cuts = set(rng.choices([y for y, _ in found], [size for _, size in found], k=rng.randint(1, CUTS)))
    edges = [0, *sorted(cuts), height]
    pieces = list(pairwise(edges))
    rng.shuffle(pieces)
    return pieces
