"""Which questions of a page the scout is asked: those whose answer can be pointed at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from homunculus.train.page_lines import DerivedQuestion, WordLine
from homunculus.train.synth.layouts import DrawnPage, DrawnQuestion

PARTS = 4  # boxes that an answer may consist of
ASIDE = {"search"}  # sorts of question that say nothing about what people tend to ask
WORKED = {"count", "yesno", "absent"}  # sorts of question whose answer stands nowhere
Array = np.ndarray[Any, Any]


class Asks(NamedTuple):
    """Questions about one page, boxes of their answers [n, PARTS, 4], boxes that people ask about [m, 4], answers."""

    questions: list[str]
    answers: Array
    usual: Array
    replies: list[str]

    @classmethod
    def of(cls, picked: Sequence[DerivedQuestion], count: int, common: Sequence[Array], most: int) -> Asks:
        """From what is asked, filled up with empty questions, and from boxes that people tend to ask about."""
        answers, usual = np.zeros((count, PARTS, 4), np.float32), np.zeros((most, 4), np.float32)
        for n, said in enumerate(picked):
            answers[n, : min(PARTS, len(said.boxes))] = said.boxes[:PARTS]
        for n, box in enumerate(common[:most]):
            usual[n] = box
        missing = [""] * (count - len(picked))
        return cls([said.text for said in picked] + missing, answers, usual, [said.answer for said in picked] + missing)


def about_layout(layout: DrawnPage, rng: random.Random, count: int, most: int) -> Asks:
    """So many questions about a drawn page whose answers can be pointed at."""
    stand = [asked for asked in layout.questions if _stands(layout, asked)]
    picked = rng.sample(stand, min(count, len(stand)))
    said = [DerivedQuestion(asked.text, _boxes(layout, asked), asked.answer) for asked in picked]
    common = [box for asked in stand if asked.sort not in ASIDE for box in by_line(layout, asked.words)]
    return Asks.of(said, count, rng.sample(common, min(most, len(common))), most)


def lines_of(layout: DrawnPage) -> list[WordLine]:
    """The lines of a drawn page."""
    members: dict[int, list[int]] = {}
    for word, line in enumerate(layout.word_lines.tolist()):
        members.setdefault(line, []).append(word)
    return [WordLine([layout.words[word] for word in words], layout.word_boxes[words]) for words in members.values()]


def by_line(layout: DrawnPage, words: list[int]) -> list[Array]:
    """One box for each line that the words of an answer stand in."""
    lines: dict[int, list[int]] = {}
    for word in words:
        lines.setdefault(int(layout.word_lines[word]), []).append(word)
    found = (layout.word_boxes[members] for members in lines.values())
    return [np.concatenate((boxes[:, :2].min(0), boxes[:, 2:].max(0))) for boxes in found]


def _boxes(layout: DrawnPage, asked: DrawnQuestion) -> Array:
    """Where the answer stands, or what it is worked out from; none for what stands nowhere or all over the page."""
    boxes = by_line(layout, asked.words) if asked.words and asked.sort not in WORKED else []
    return np.stack(boxes) if 0 < len(boxes) <= PARTS else np.zeros((0, 4), np.float32)


def part_of(count: int, share: float, rng: random.Random) -> int:
    """A share of a number, rounded up or down by lot."""
    return int(count * share + rng.random()) if share else 0


def _stands(layout: DrawnPage, asked: DrawnQuestion) -> bool:
    """Whether the answer of a question is what its words say, and can so be found."""
    return bool(asked.words) and asked.sort not in WORKED and asked.answer == layout.said(asked.words)
