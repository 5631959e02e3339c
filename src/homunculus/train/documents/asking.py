"""Questions that any page allows: where a text stands, and what stands where."""

from __future__ import annotations

import random

import numpy as np

from homunculus.train.documents import wording
from homunculus.train.documents.page import Layout

FEWEST, MOST = 16, 40
Question = tuple[str, list[int], str]


def complete(layout: Layout, noun: str, rng: random.Random) -> None:
    """Bring the questions of a page to a good number and mix, without doubles and contradictions."""
    if not layout.lines:
        layout.questions = []
        return
    own = distinct(layout.questions)
    rng.shuffle(own)
    own = own[: rng.randint(18, 26)]
    wanted = min(MOST, max(FEWEST, len(own) + rng.randint(6, 12))) - len(own)
    page = "\n".join(layout.lines).lower()
    spans: list[int] = np.searchsorted(layout.word_lines, np.arange(len(layout.lines) + 1)).tolist()
    more = corners(layout, noun, rng)
    for _ in range(3 * wanted):
        if len(more) >= wanted:
            break
        asked = rng.choice((search, search, search, beside, beside, stacked))(layout, page, spans, noun, rng)
        if asked:
            more.append(asked)
    layout.questions = distinct(own + more[:wanted])


def distinct(questions: list[Question]) -> list[Question]:
    """Each question once; none that is too long, and none that has two answers."""
    answers: dict[str, list[int]] = {}
    kept: dict[str, Question] = {}
    for question, words, sort in questions:
        low = question.lower().strip(" ?")
        if answers.setdefault(low, words) != words:
            kept.pop(low, None)
        elif len(question) <= wording.LONGEST:
            kept[low] = (question, words, sort)
    return list(kept.values())


def search(layout: Layout, page: str, spans: list[int], noun: str, rng: random.Random) -> Question | None:
    """Where is a text that stands on the page once: a few words, or a line."""
    line = rng.randrange(len(layout.lines))
    start, end = spans[line], spans[line + 1]
    name = "search"
    if rng.random() < 0.2 and end - start <= 9:
        first, last, name = start, end, "search_line"
    else:
        first = rng.randrange(start, end)
        last = min(end, first + rng.choice((1, 1, 2, 2, 3)))
    text = " ".join(layout.words[first:last])
    if rng.random() < 0.6:
        text = text.rstrip(".,:;") or text
    core = text.rstrip(".,:;").lower()
    if len(core) < 3 or page.count(core) != 1:
        return None
    if name == "search" and first == start and end - start > 3 and rng.random() < 0.3:
        return wording.phrase("starts", rng, noun, text=text), list(range(start, end)), "spatial"
    return wording.phrase(name, rng, noun, text=text, low=text.lower()), list(range(first, last)), "search"


def beside(layout: Layout, page: str, spans: list[int], noun: str, rng: random.Random) -> Question | None:
    """Which word follows or precedes one that stands on the page once."""
    word = rng.randrange(len(layout.words))
    step = rng.choice((1, 1, -1))
    other = word + step
    if not 0 <= other < len(layout.words) or layout.word_lines[other] != layout.word_lines[word]:
        return None
    text = layout.words[word]
    if len(text) < 3 or page.count(text.lower()) != 1:
        return None
    return wording.phrase("right" if step > 0 else "before", rng, noun, text=text), [other], "spatial"


def stacked(layout: Layout, page: str, spans: list[int], noun: str, rng: random.Random) -> Question | None:
    """Which line is just below or above one that stands on the page once."""
    line = rng.randrange(len(layout.lines))
    text = layout.lines[line]
    if len(text) < 3 or len(text) > 50 or page.count(text.lower()) != 1:
        return None
    below, boxes = rng.random() < 0.65, layout.line_boxes
    x0, y0, x1, y1 = boxes[line].tolist()
    shared = np.minimum(boxes[:, 2], x1) - np.maximum(boxes[:, 0], x0)
    gap = (boxes[:, 1] - y1) if below else (y0 - boxes[:, 3])
    near = np.where((shared > 2) & (gap > -0.25 * (y1 - y0)), gap, np.inf)
    near[line] = np.inf
    order = np.argsort(near)[:2]
    if near[order[0]] > 1.6 * (y1 - y0) or (len(order) > 1 and near[order[1]] - near[order[0]] < 0.3 * (y1 - y0)):
        return None
    found = int(order[0])
    words = list(range(spans[found], spans[found + 1]))
    return wording.phrase("below" if below else "above", rng, noun, text=text), words, "spatial"


def corners(layout: Layout, noun: str, rng: random.Random) -> list[Question]:
    """What stands at the top, at the bottom, in the corners, and in the largest letters."""
    boxes, asked = layout.line_boxes, []
    spans = np.searchsorted(layout.word_lines, np.arange(len(layout.lines) + 1))

    def put(name: str, line: int, **slots: str) -> None:
        words = list(range(int(spans[line]), int(spans[line + 1])))
        asked.append((wording.phrase(name, rng, noun, **slots), words, "spatial"))

    middle, tall = boxes[:, 1::2].mean(1), boxes[:, 3] - boxes[:, 1]
    if rng.random() < 0.4 and (middle < boxes[middle.argmin(), 3]).sum() == 1:
        put("top" if middle.min() < 0.1 * layout.height and rng.random() < 0.7 else "first_line", int(middle.argmin()))
    if rng.random() < 0.4 and (middle > boxes[middle.argmax(), 1]).sum() == 1:
        put(
            "bottom" if middle.max() > 0.9 * layout.height and rng.random() < 0.7 else "last_line", int(middle.argmax())
        )
    if rng.random() < 0.3 and (tall > 0.85 * tall.max()).sum() == 1:
        put("largest", int(tall.argmax()))
    place = rng.choice(("top left", "top right", "bottom left", "bottom right"))
    x = boxes[:, 0] if "left" in place else layout.width - boxes[:, 2]
    y = boxes[:, 1] if "top" in place else layout.height - boxes[:, 3]
    away = x / layout.width + y / layout.height
    order = np.argsort(away)
    clear = len(order) < 2 or away[order[1]] - away[order[0]] > 0.03
    if clear and x[order[0]] < 0.25 * layout.width and y[order[0]] < 0.15 * layout.height:
        put("corner", int(order[0]), place=place)
    return asked
