"""How a scanned page lies on a canvas: some are cut into bands that change places, all are scaled and turned a little.

A network that has memorised a page knows where an answer stands without reading; shuffled bands take that away. Cuts go
through gaps between lines, mostly wide ones, so what belongs together mostly stays together.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from homunculus.train.pages import Array

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
    def shuffled(self) -> bool:
        """Whether bands have changed places."""
        return bool(self.shifts.any())

    def points(self, points: Array) -> Array:
        """Points [..., 2] on the canvas; each moves with the band that it stands in."""
        shift = self.shifts[(np.searchsorted(self.starts, points[..., 1], "right") - 1).clip(0)]
        moved = points + np.stack((np.zeros_like(shift), shift), -1)
        return np.asarray(moved @ self.matrix[:, :2].T + self.matrix[:, 2], np.float32)

    def boxes(self, boxes: Array) -> Array:
        """Boxes [n, 4] on the canvas."""
        middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2
        middle, half = self.points(middle), half * np.array([self.matrix[0, 0], self.matrix[1, 1]])
        return np.concatenate((middle - half, middle + half), 1).astype(np.float32)


def place_page(
    page: Sequence[int],
    found: Sequence[Gap],
    canvas: tuple[int, int],
    crops: bool,
    shuffled: float,
    rng: random.Random,
) -> PagePlacement:
    """A page of height and width on a canvas: scaled, turned and moved a little; in a share of pages bands shuffled."""
    (H, W), (h, w) = canvas, page
    zoom = rng.uniform(0.88, 1.08) * (1 if crops else min(1, H / h, W / w))
    wide = zoom * rng.uniform(0.95, 1.05)
    turn = rng.gauss(0, 0.008)
    linear = torch.tensor([[wide, -turn * zoom], [turn * zoom, zoom]])
    shift = []
    for room, side in ((W - w * wide, w), (H - h * zoom, h)):
        low, high = sorted((0.0, room))
        slack = 0.03 * side if room > 0 else 0
        shift.append(rng.uniform(low - slack, high + slack))
    middle = torch.tensor([w / 2, h / 2])
    offset = torch.tensor(shift) + torch.tensor([w * wide / 2, h * zoom / 2]) - linear @ middle
    order = bands(found if rng.random() < shuffled else [], h, rng)
    return PagePlacement(torch.cat((linear, offset[:, None]), 1).numpy(), order)


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
    """A page cut at some of its gaps, mostly wide ones, the pieces in another order."""
    cuts: set[int] = set()
    if found:
        cuts = set(rng.choices([y for y, _ in found], [size for _, size in found], k=rng.randint(1, CUTS)))
    edges = [0, *sorted(cuts), height]
    pieces = list(pairwise(edges))
    rng.shuffle(pieces)
    return pieces
