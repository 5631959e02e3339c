"""Where the lines of a page stand to each other: rows, and what is above and below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from homunculus.reader.lines import Line, group_rows

Array = np.ndarray[Any, Any]
REACH = 30.0  # line heights in which a column head is searched
SHARED = 0.4  # part of the narrower one's width that two lines of a column share


@dataclass(frozen=True, eq=False)
class Geometry:
    """Boxes [n, 4], heights [n] and vertical places [n] from 0 to 1 of the lines, and their rows."""

    boxes: Array
    heights: Array
    share_y: Array
    rows: list[list[int]]

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Geometry:
        """The geometry of a page's lines."""
        boxes = np.array([line.box for line in lines], np.float32).reshape(-1, 4)
        top, bottom = (boxes[:, 1].min(), boxes[:, 3].max()) if len(boxes) else (0.0, 1.0)
        share = (boxes[:, 1] - top) / max(1.0, float(bottom - top))
        return cls(boxes, boxes[:, 3] - boxes[:, 1], share, group_rows(lines))

    def above(self, i: int) -> list[int]:
        """The lines above one in its column, the nearest first."""
        gap = self.boxes[i, 1] - self.boxes[:, 3]
        return self._column(i, gap, REACH)

    def below(self, i: int) -> int | None:
        """The next line below one in its column, if it is close."""
        gap = self.boxes[:, 1] - self.boxes[i, 3]
        return next(iter(self._column(i, gap, 1.5)), None)

    def _column(self, i: int, gap: Array, reach: float) -> list[int]:
        left, right = self.boxes[i, 0], self.boxes[i, 2]
        shared = np.minimum(self.boxes[:, 2], right) - np.maximum(self.boxes[:, 0], left)
        narrow = np.minimum(self.boxes[:, 2] - self.boxes[:, 0], right - left)
        high = self.heights[i]
        fits = (shared > SHARED * narrow) & (gap > -0.3 * high) & (gap < reach * high)
        fits[i] = False
        found = np.flatnonzero(fits)
        return [int(j) for j in found[np.argsort(gap[found], kind="stable")]]
