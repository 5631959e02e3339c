"""Reading aloud: lessons in which the language model says what stands on a page, made from its lines alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
LONGEST = 60  # letters of what is read in one go

WHOLE = (
    'Read the line that begins with "{}".',
    'Read out the line starting with "{}".',
    'What does the line that starts with "{}" say?',
    'Which line begins with "{}"?',
)
HOLDING = (
    'Read the line with the word "{}".',
    'What does the line that contains "{}" say?',
    'Read the line where "{}" stands.',
    'Which line mentions "{}"?',
)
NEXT = (
    'Which word comes after "{}"?',
    'What is the word after "{}"?',
    'What comes right after "{}"?',
    'Which word follows "{}"?',
)
REST = ('How does the line "{} ..." go on?', 'Continue: "{} ..."', 'Complete the line "{} ..."', "{} ...")
BELOW = ('What stands below "{}"?', 'Read the line under "{}".', 'What is written beneath "{}"?')
ABOVE = ('What stands above "{}"?', 'Read the line over "{}".', 'What is written above "{}"?')
TOP = ("Read the first line.", "What is written at the top of the page?", "What does the topmost line say?")
LAST = ("Read the last line.", "What is written at the bottom of the page?", "What does the lowest line say?")


class Line(NamedTuple):
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


class Said(NamedTuple):
    """Something to ask, where its answer stands [n, 4], and the answer."""

    text: str
    boxes: Array
    answer: str


def read_aloud(lines: Sequence[Line], count: int, rng: random.Random) -> list[Said]:
    """At most so many reading lessons about the lines of a page."""
    lines = [line for line in lines if line.words]
    if not lines:
        return []
    seen = Counter(word.lower() for line in lines for word in line.words)
    starts = Counter(" ".join(line.words[:2]).lower() for line in lines)
    boxes = np.stack([line.box for line in lines])
    ways = (_whole, _holding, _next, _rest, _neighbour, _edge)
    weights = (4, 3, 3, 3, 2, 0.5)
    lessons: list[Said] = []
    for _ in range(3 * count):
        if len(lessons) == count:
            break
        at = rng.randrange(len(lines))
        made = rng.choices(ways, weights)[0](lines, at, boxes, seen, starts, rng)
        if made is not None and 0 < len(made.answer) <= LONGEST:
            lessons.append(made)
    return lessons


def _whole(lines: Sequence[Line], at: int, _: Array, __: Counter[str], starts: Counter[str], rng: random.Random) -> Any:
    line = lines[at]
    begin = " ".join(line.words[:2])
    if len(line.words) < 3 or starts[begin.lower()] > 1:
        return None
    return Said(rng.choice(WHOLE).format(begin), line.box[None], line.text)


def _holding(lines: Sequence[Line], at: int, _: Array, seen: Counter[str], __: Any, rng: random.Random) -> Any:
    line = lines[at]
    only = [word for word in line.words if len(word) > 3 and seen[word.lower()] == 1]
    if len(line.words) < 2 or not only:
        return None
    return Said(rng.choice(HOLDING).format(rng.choice(only)), line.box[None], line.text)


def _next(lines: Sequence[Line], at: int, _: Array, seen: Counter[str], __: Any, rng: random.Random) -> Any:
    line = lines[at]
    known = [i for i, word in enumerate(line.words[:-1]) if seen[word.lower()] == 1]
    if not known:
        return None
    i = rng.choice(known)
    before = " ".join(line.words[max(0, i - rng.randint(0, 2)) : i + 1])
    return Said(rng.choice(NEXT).format(before), line.boxes[i + 1][None], line.words[i + 1])


def _rest(lines: Sequence[Line], at: int, _: Array, __: Any, starts: Counter[str], rng: random.Random) -> Any:
    line = lines[at]
    if len(line.words) < 4 or starts[" ".join(line.words[:2]).lower()] > 1:
        return None
    cut = rng.randint(2, len(line.words) - 1)
    rest = Line(line.words[cut:], line.boxes[cut:])
    return Said(rng.choice(REST).format(" ".join(line.words[:cut])), rest.box[None], rest.text)


def _neighbour(lines: Sequence[Line], at: int, boxes: Array, _: Any, starts: Counter[str], rng: random.Random) -> Any:
    line, box = lines[at], boxes[at]
    if starts[" ".join(line.words[:2]).lower()] > 1 or len(line.text) > 40:
        return None
    under = rng.random() < 0.5
    shared = np.minimum(boxes[:, 2], box[2]) - np.maximum(boxes[:, 0], box[0])
    beside = shared > 0.5 * np.minimum(boxes[:, 2] - boxes[:, 0], box[2] - box[0])
    gap = boxes[:, 1] - box[3] if under else box[1] - boxes[:, 3]
    near = beside & (gap > -0.3 * (box[3] - box[1])) & (gap < 2.5 * (box[3] - box[1]))
    near[at] = False
    if not near.any():
        return None
    other = int(np.where(near, gap, np.inf).argmin())
    return Said(rng.choice(BELOW if under else ABOVE).format(line.text), boxes[other][None], lines[other].text)


def _edge(lines: Sequence[Line], _: int, boxes: Array, __: Any, ___: Any, rng: random.Random) -> Any:
    top = rng.random() < 0.5
    at = int(boxes[:, 1].argmin() if top else boxes[:, 3].argmax())
    return Said(rng.choice(TOP if top else LAST), boxes[at][None], lines[at].text)
