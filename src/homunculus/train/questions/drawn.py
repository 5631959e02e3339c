"""Drawn documents as text pages: laid out as for training images, without pixels."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from homunculus.reader.lines import Line
from homunculus.train.questions.pages import TextPage, TextQuestion
from homunculus.train.questions.sample import UNANSWERABLE, WORKED
from homunculus.train.synth.layouts import DrawnPage, DrawnQuestion, Typefaces, lay_out
from homunculus.train.synth.text import Texts

SIDES = (512, 1792)  # pixels of a page's height and width
CHARTS = frozenset({"bars", "line_chart", "pie_chart"})
_VISUAL = re.compile(r"\b(?:largest|biggest|greatest)\b.*\b(?:letters|font|type|text|print)\b|\bstamp|\bframe\b", re.I)


def draw_page(texts: Texts, fonts: Typefaces, rng: random.Random) -> TextPage:
    """A document of a random kind and size with those of its questions that its text answers."""
    texts.reseed(rng.getrandbits(48))
    layout = lay_out(None, rng.randint(*SIDES), rng.randint(*SIDES), texts, fonts, rng)
    boxes = layout.line_boxes.tolist()
    lines = tuple(Line(text, tuple(box)) for text, box in zip(layout.lines, boxes, strict=True))
    return TextPage(f"drawn/{layout.kind}", (lines,), tuple(_readable(layout)))


def _readable(layout: DrawnPage) -> Iterator[TextQuestion]:
    """The questions that can be answered without seeing the page."""
    stated = {id(asked): asked.answer == layout.text_of(asked.words) for asked in layout.questions}
    unlabelled = layout.kind in CHARTS and any(
        asked.sort == "chart" and not stated[id(asked)] and asked.answer not in layout.lines
        for asked in layout.questions
    )
    for asked in layout.questions:
        worked = asked.sort in WORKED
        if asked.sort == "search" or _VISUAL.search(asked.text) or (unlabelled and worked):
            continue
        if asked.sort == "absent":
            yield TextQuestion(asked.text, asked.answer, ((),), UNANSWERABLE)
        elif worked or stated[id(asked)]:
            yield TextQuestion(asked.text, asked.answer, (_holders(layout, asked),), asked.sort if worked else "drawn")


def _holders(layout: DrawnPage, asked: DrawnQuestion) -> tuple[int, ...]:
    if asked.sort in ("count", "yesno"):
        return ()
    return tuple(sorted({int(layout.word_lines[word]) for word in asked.words}))
