"""Automatic questions of a scanned page for the scout: keys, table cells, patterns, each with the box of its answer.

People asked a few questions about each page, which are soon memorised; these are many more. The language model has its
own in `questions/auto_questions.py`: those need the answer as text and are stricter, these only need a place.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from homunculus.train.pages import Array, BoxQuestion

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
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]*\.?"
PATTERNS = (
    (
        rf"\b(?:\d{{1,2}}[/-]\d{{1,2}}[/-]\d{{2,4}}|{MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {MONTH} \d{{4}})\b",
        ("What is the date?", "What is the date mentioned?", "What date is on the document?", "When is it dated?"),
    ),
    (
        r"\(?\b\d{3}\)?[ /-]{1,2}\d{3}[ -]\d{4}\b",
        ("What is the telephone number?", "What is the phone number mentioned?", "Which number can be called?"),
    ),
    (r"\b\d{1,2}:\d{2} ?(?:[ap]\.?m\.?)?", ("What time is mentioned?", "What is the time?", "At what time?")),
    (r"\S+@\S+\.\w+", ("What is the email address?", "What is the e-mail ID?", "Which mail address is given?")),
    (r"\$ ?\d[\d,]*(?:\.\d\d)?", ("What amount is mentioned?", "What is the amount?", "How much is it?")),
    (r"\b\d+(?:\.\d+)? ?%", ("What percentage is given?", "What is the percentage mentioned?", "How many percent?")),
    (
        r"\b(?:Mr|Mrs|Ms|Dr|Prof)\. (?:[A-Z][\w.'-]*,? ?){1,3}",
        ("Who is mentioned?", "What is the name of the person?", "Which person is named in the document?"),
    ),
)
TITLES = (
    "What is the title of the document?",
    "What is the heading of the page?",
    "What is the title?",
    "What is the main heading?",
    "What is the heading at the top of the page?",
)
NUMBERS = ("What is the page number?", "What is the page number on this page?", "Which page is this?")
LARGER = 1.25  # how much higher than others the letters of a title are
LONGEST = 40  # letters of a key or of an answer
BESIDE, ABOVE = 14.0, 30.0  # how far away, in heights of a line, what belongs together may stand


class WordLine(NamedTuple):
    """A line of text: its words and their boxes [n, 4]."""

    words: list[str]
    boxes: Array

    @property
    def text(self) -> str:
        """The words with spaces between."""
        return " ".join(self.words)

    @property
    def box(self) -> Array:
        """Around all words. [4]"""
        return np.concatenate((self.boxes[:, :2].min(0), self.boxes[:, 2:].max(0)))


class AutoQuestion(NamedTuple):
    """A key, or the row and column of a cell, or else templates of their own; and where the answer stands. [1, 4]"""

    names: tuple[str, ...]
    box: Array
    templates: tuple[str, ...] = ()

    def phrase(self, rng: random.Random) -> BoxQuestion:
        """The question in words, from a random template."""
        case = rng.choice((str, str, str.lower, str.title))
        template = rng.choice(self.templates or (KEYS if len(self.names) == 1 else CELLS))
        return BoxQuestion(template.format(*map(case, self.names)), self.box)


def box_questions(lines: Sequence[WordLine]) -> list[AutoQuestion]:
    """All automatic questions of a page whose names stand on it once."""
    lines = [line for line in lines if line.words]
    if not lines:
        return []
    boxes = np.stack([line.box for line in lines])
    names = [_name(line.text) for line in lines]
    found = [split for line in lines if (split := _split(line))]
    for i, line in enumerate(lines):
        if len(line.text) > LONGEST:
            continue
        row = _in_row(boxes, i)
        left = [j for j in row if boxes[j, 2] <= boxes[i, 0] + 2 and names[j]]
        if not left:
            continue
        near = max(left, key=lambda j: boxes[j, 2])
        high = boxes[i, 3] - boxes[i, 1]
        if boxes[i, 0] - boxes[near, 2] < BESIDE * high and not _between(boxes, row, near, i):
            found.append(AutoQuestion((names[near],), boxes[i : i + 1]))
        head = _head(boxes, names, i)
        first = min(left, key=lambda j: boxes[j, 0])
        if head is not None and _figures(line.text):
            found.append(AutoQuestion((names[first], names[head]), boxes[i : i + 1]))
    times = Counter(tuple(name.lower() for name in one.names) for one in found)
    found = [one for one in found if times[tuple(name.lower() for name in one.names)] == 1]
    return found + _by_pattern(lines) + _title_and_number(lines, boxes)


def _name(text: str) -> str:
    """A text as the name of something, without what leads over to it; empty if it is none."""
    text = text.strip(" :.-_#*=|")
    letters = sum(map(str.isalpha, text))
    fits = 2 <= len(text) <= LONGEST and len(text.split()) <= 6 and letters >= 0.6 * len(text.replace(" ", ""))
    return text if fits else ""


def _figures(text: str) -> bool:
    """Whether a text is mostly a number."""
    return sum(map(str.isdigit, text)) >= 0.4 * len(text.replace(" ", ""))


def _split(line: WordLine) -> AutoQuestion | None:
    """What follows the first colon in a line that has a name before it."""
    at = next((n for n, word in enumerate(line.words[:-1]) if word.endswith(":")), None)
    if at is None:
        return None
    name, rest = _name(" ".join(line.words[: at + 1])), WordLine(line.words[at + 1 :], line.boxes[at + 1 :])
    return AutoQuestion((name,), rest.box[None]) if name and len(rest.text) <= LONGEST else None


def _by_pattern(lines: Sequence[WordLine]) -> list[AutoQuestion]:
    """Dates, numbers, addresses and names that are the only ones of their form on the page."""
    found = []
    for pattern, templates in PATTERNS:
        hits = [(line, hit) for line in lines for hit in re.finditer(pattern, line.text)]
        if len(hits) == 1:
            line, hit = hits[0]
            first = line.text[: hit.start()].count(" ")
            last = first + hit.group().strip().count(" ") + 1
            box = WordLine(line.words[first:last], line.boxes[first:last]).box
            found.append(AutoQuestion((), box[None], templates))
    return found


def _title_and_number(lines: Sequence[WordLine], boxes: Array) -> list[AutoQuestion]:
    """The title, which is larger than all else in the upper part of the page, and the page's number."""
    found, top, bottom = [], boxes[:, 1].min(), boxes[:, 3].max()
    high, share = boxes[:, 3] - boxes[:, 1], (boxes[:, 1] - top) / max(1.0, bottom - top)
    upper = np.flatnonzero(share < 0.3)
    largest, *others = sorted(upper.tolist(), key=lambda i: -high[i])
    title = _name(lines[largest].text)
    if title and len(lines) > 4 and others and high[largest] > LARGER * max(high[others[0]], np.median(high)):
        found.append(AutoQuestion((), boxes[largest : largest + 1], TITLES))
    figures = [i for i, line in enumerate(lines) if re.fullmatch(r"-? ?\d{1,3} ?-?", line.text)]
    if len(figures) == 1 and not 0.05 <= share[figures[0]] <= 0.93:
        found.append(AutoQuestion((), boxes[figures[0] : figures[0] + 1], NUMBERS))
    return found


def _in_row(boxes: Array, i: int) -> list[int]:
    """The others that stand at the height of one."""
    shared = np.minimum(boxes[:, 3], boxes[i, 3]) - np.maximum(boxes[:, 1], boxes[i, 1])
    high = np.minimum(boxes[:, 3] - boxes[:, 1], boxes[i, 3] - boxes[i, 1])
    return [int(j) for j in np.flatnonzero(shared > 0.5 * high) if j != i]


def _between(boxes: Array, row: list[int], left: int, right: int) -> bool:
    """Whether something else stands between two in a row."""
    return any(boxes[j, 0] >= boxes[left, 2] - 2 and boxes[j, 2] <= boxes[right, 0] + 2 for j in row if j != left)


def _head(boxes: Array, names: Sequence[str], i: int) -> int | None:
    """The nearest name above one, in its column."""
    x0, y0, x1, y1 = boxes[i]
    shared = np.minimum(boxes[:, 2], x1) - np.maximum(boxes[:, 0], x0)
    wide = np.minimum(boxes[:, 2] - boxes[:, 0], x1 - x0)
    away = y0 - boxes[:, 3]
    fits = (shared > 0.4 * wide) & (away > -0.3 * (y1 - y0)) & (away < ABOVE * (y1 - y0)) & (boxes[:, 1] < y0)
    above = [j for j in map(int, np.flatnonzero(fits)) if names[j]]
    return min(above, key=lambda j: y0 - boxes[j, 3]) if above else None
