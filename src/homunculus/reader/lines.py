"""Text lines of a page, and their layout as plain text for a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CELL_SEPARATOR, ROW_SEPARATOR = " | ", "\n"
SAME_ROW = 0.5  # centres closer than this share of the smaller line height lie in one row
OVERLAP = 0.3  # lines that share more than this part of the narrower one's width stand above each other


@dataclass(frozen=True)
class Line:
    """One line of text that a look can read.

    Args:
        text: what the recogniser read.
        box: x0, y0, x1, y1 in pixels of the page.
        confidence: probability of the text, from 0 to 1.
        level: pyramid level of the cells that the line was read from, 0 is the finest; fractional off the page's tree.
    """

    text: str
    box: tuple[float, float, float, float]
    confidence: float = 1.0
    level: float = 0


def format_lines(lines: Sequence[Line]) -> str:
    """The lines in page layout: rows from top to bottom, the lines of a row from left to right, " | " between them."""
    rows = ([clean_text(lines[i].text) for i in row] for row in group_rows(lines))
    return ROW_SEPARATOR.join(CELL_SEPARATOR.join(row) for row in rows)


def clean_text(text: str) -> str:
    """Text with single spaces in which no special token such as <|im_end|> can occur."""
    text = " ".join(text.split())
    while "<|" in text:
        text = text.replace("<|", "< |")
    return text


def group_rows(lines: Sequence[Line]) -> list[list[int]]:
    """Indices of the lines by row, top to bottom and left to right; lines without text are left out.

    A line joins a row when its vertical centre is near the row's mean centre, measured by the smaller height, and when
    it does not stand below one of the row's lines. Sorting dominates: O(n log n) for rows of bounded length.
    """
    indices = [i for i, line in enumerate(lines) if line.text.strip()]
    if not indices:
        return []
    boxes = np.array([lines[i].box for i in indices], np.float64)  # [n, 4]
    centres = (boxes[:, 1] + boxes[:, 3]) / 2
    order = np.argsort(centres, kind="stable").tolist()
    x0, x1 = boxes[:, 0].tolist(), boxes[:, 2].tolist()
    heights, middle = (boxes[:, 3] - boxes[:, 1]).tolist(), centres.tolist()
    rows: list[list[int]] = []
    mean = smallest = 0.0
    for i in order:
        near = bool(rows) and middle[i] - mean <= SAME_ROW * min(smallest, heights[i])
        if near and not any(_stacked(x0[i], x1[i], x0[j], x1[j]) for j in rows[-1]):
            rows[-1].append(i)
            mean += (middle[i] - mean) / len(rows[-1])
            smallest = min(smallest, heights[i])
        else:
            rows.append([i])
            mean, smallest = middle[i], heights[i]
    return [[indices[i] for i in sorted(row, key=x0.__getitem__)] for row in rows]


def _stacked(left: float, right: float, other_left: float, other_right: float) -> bool:
    shared = min(right, other_right) - max(left, other_left)
    return shared > OVERLAP * min(right - left, other_right - other_left)
