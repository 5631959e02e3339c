"""Questions that the lines of a real page ask by themselves: what stands beside a key, and in a cell of a table.

People asked a few questions about each page, and those are soon known by heart; these are many, and their answers are
lines that were read by people or machines.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from homunculus.train.aloud import Array, Line, Said

KEYS = (
    "What is the {}?",
    "What is {}?",
    "What is the value of the field '{}'?",
    "What is the value for {}?",
    "What is given as {}?",
    "Which {} is mentioned?",
    "What is the {} mentioned in the document?",
    "What does it say for {}?",
    "What is written next to {}?",
    "{}?",
)
CELLS = (
    "What is the {1} for {0}?",
    "What is the {1} of {0}?",
    "How much is the {1} for {0}?",
    "What is the value of {0} under {1}?",
    "What is {0} in {1}?",
    "What is the {1} in the row {0}?",
    "{0}, {1}?",
)
LONGEST = 40  # letters of a key or of an answer
BESIDE, ABOVE = 14.0, 30.0  # how far away, in heights of a line, what belongs together may stand


class Derived(NamedTuple):
    """A key, or the row and column of a cell; what stands there, and where [1, 4]."""

    names: tuple[str, ...]
    answer: str
    box: Array

    def said(self, rng: random.Random) -> Said:
        """As somebody may ask it."""
        how = rng.choice((str, str, str.lower, str.title))
        form = rng.choice(KEYS if len(self.names) == 1 else CELLS)
        return Said(form.format(*map(how, self.names)), self.box, self.answer)


def derived(lines: Sequence[Line]) -> list[Derived]:
    """All such questions of a page whose names stand on it once."""
    lines = [line for line in lines if line.words]
    if not lines:
        return []
    boxes = np.stack([line.box for line in lines])
    named = [_name(line.text) for line in lines]
    found = [split for line in lines if (split := _split(line))]
    for i, line in enumerate(lines):
        if len(line.text) > LONGEST:
            continue
        row = _in_row(boxes, i)
        left = [j for j in row if boxes[j, 2] <= boxes[i, 0] + 2 and named[j]]
        if not left:
            continue
        near = max(left, key=lambda j: boxes[j, 2])
        high = boxes[i, 3] - boxes[i, 1]
        if boxes[i, 0] - boxes[near, 2] < BESIDE * high and not _between(boxes, row, near, i):
            found.append(Derived((named[near],), line.text, boxes[i : i + 1]))
        head = _head(boxes, named, i)
        first = min(left, key=lambda j: boxes[j, 0])
        if head is not None and _figures(line.text):
            found.append(Derived((named[first], named[head]), line.text, boxes[i : i + 1]))
    times = Counter(tuple(name.lower() for name in one.names) for one in found)
    return [one for one in found if times[tuple(name.lower() for name in one.names)] == 1]


def _name(text: str) -> str:
    """A text as the name of something, without what leads over to it; empty if it is none."""
    text = text.strip(" :.-_#*=|")
    letters = sum(map(str.isalpha, text))
    fits = 2 <= len(text) <= LONGEST and len(text.split()) <= 6 and letters >= 0.6 * len(text.replace(" ", ""))
    return text if fits else ""


def _figures(text: str) -> bool:
    """Whether a text is mostly a number."""
    return sum(map(str.isdigit, text)) >= 0.4 * len(text.replace(" ", ""))


def _split(line: Line) -> Derived | None:
    """What follows the first colon in a line that has a name before it."""
    at = next((n for n, word in enumerate(line.words[:-1]) if word.endswith(":")), None)
    if at is None:
        return None
    name, rest = _name(" ".join(line.words[: at + 1])), Line(line.words[at + 1 :], line.boxes[at + 1 :])
    return Derived((name,), rest.text, rest.box[None]) if name and len(rest.text) <= LONGEST else None


def _in_row(boxes: Array, i: int) -> list[int]:
    """The others that stand at the height of one."""
    shared = np.minimum(boxes[:, 3], boxes[i, 3]) - np.maximum(boxes[:, 1], boxes[i, 1])
    high = np.minimum(boxes[:, 3] - boxes[:, 1], boxes[i, 3] - boxes[i, 1])
    return [int(j) for j in np.flatnonzero(shared > 0.5 * high) if j != i]


def _between(boxes: Array, row: list[int], left: int, right: int) -> bool:
    """Whether something else stands between two in a row."""
    return any(boxes[j, 0] >= boxes[left, 2] - 2 and boxes[j, 2] <= boxes[right, 0] + 2 for j in row if j != left)


def _head(boxes: Array, named: Sequence[str], i: int) -> int | None:
    """The nearest name above one, in its column."""
    x0, y0, x1, y1 = boxes[i]
    shared = np.minimum(boxes[:, 2], x1) - np.maximum(boxes[:, 0], x0)
    wide = np.minimum(boxes[:, 2] - boxes[:, 0], x1 - x0)
    away = y0 - boxes[:, 3]
    fits = (shared > 0.4 * wide) & (away > -0.3 * (y1 - y0)) & (away < ABOVE * (y1 - y0)) & (boxes[:, 1] < y0)
    above = [j for j in map(int, np.flatnonzero(fits)) if named[j]]
    return min(above, key=lambda j: y0 - boxes[j, 3]) if above else None
