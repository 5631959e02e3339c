"""Questions that any page allows, where a text stands and what stands where; and the mix of all questions of a page."""

from __future__ import annotations

import random
from itertools import zip_longest

import numpy as np

from homunculus.train.synth.documents import wording
from homunculus.train.synth.documents.page import DrawnPage, DrawnQuestion, Pen
from homunculus.train.synth.documents.presence import about_page
from homunculus.train.synth.documents.reasoning import NO, YES
from homunculus.train.synth.documents.worked import EXACT

FEWEST, MOST = 16, 40
# Questions whose answer has to be worked out: so many at most for each one whose answer stands on the page.
WORKED = {"absent": 0.078, "yesno": 0.105, "count": 0.105, "compare": 0.38}
ALL = 2 / 3
PINNED = set(EXACT.values())


def complete(layout: DrawnPage, pen: Pen) -> None:
    """Bring the questions of a page to a good number and mix, without doubles and contradictions, all answered."""
    rng, noun = pen.rng, pen.noun
    if not layout.lines:
        layout.questions = []
        return
    page = "\n".join(layout.lines).lower()
    own = distinct(layout.questions + about_page(layout, pen, page))
    rng.shuffle(own)
    plain = [question for question in own if question.sort not in WORKED]
    plain.sort(key=lambda question: question.text not in PINNED)
    plain = plain[: rng.randint(13, 17)]
    wanted = max(FEWEST, len(plain) + rng.randint(5, 8)) - len(plain)
    plain = distinct(plain + _anywhere(layout, page, wanted, noun, rng))
    picked = plain + _worked([question for question in own if question.sort in WORKED], len(plain), rng)
    layout.questions = [
        DrawnQuestion(text, words, sort, answer or layout.text_of(words)) for text, words, sort, answer in picked
    ]


def _anywhere(layout: DrawnPage, page: str, wanted: int, noun: str, rng: random.Random) -> list[DrawnQuestion]:
    """Up to so many questions that any page allows."""
    spans: list[int] = np.searchsorted(layout.word_lines, np.arange(len(layout.lines) + 1)).tolist()
    asked = corners(layout, spans, noun, rng)
    for _ in range(3 * wanted):
        if len(asked) >= wanted:
            break
        more = rng.choice((search, search, search, beside, beside, stacked))(layout, page, spans, noun, rng)
        if more:
            asked.append(more)
    return asked[:wanted]


def _worked(questions: list[DrawnQuestion], plain: int, rng: random.Random) -> list[DrawnQuestion]:
    """Those to be worked out that a page keeps beside so many plain ones; as many yes as no, as far as there are."""
    room = {sort: int(share * plain + rng.random()) for sort, share in WORKED.items()}
    sides = [[asked for asked in questions if asked.answer == side] for side in (YES, NO)]
    rng.shuffle(sides)
    turns = [asked for both in zip_longest(*sides) for asked in both if asked]
    kept = []
    for asked in [asked for asked in questions if asked.sort != "yesno"] + turns:
        if room[asked.sort]:
            room[asked.sort] -= 1
            kept.append(asked)
    rng.shuffle(kept)
    return kept[: min(int(ALL * plain), MOST - plain)]


def distinct(questions: list[DrawnQuestion]) -> list[DrawnQuestion]:
    """Each question once; none that is too long, and none that has two answers."""
    seen: dict[str, DrawnQuestion] = {}
    torn: set[str] = set()
    for asked in questions:
        low = asked.text.lower().strip(" ?")
        first = seen.setdefault(low, asked)
        if first is not asked and (first.words != asked.words or first.answer != asked.answer):
            torn.add(low)
    return [asked for low, asked in seen.items() if low not in torn and len(asked.text) <= wording.LONGEST]


def search(layout: DrawnPage, page: str, spans: list[int], noun: str, rng: random.Random) -> DrawnQuestion | None:
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
        return DrawnQuestion(wording.phrase("starts", rng, noun, text=text), list(range(start, end)), "spatial", "")
    asked = wording.phrase(name, rng, noun, text=text, low=text.lower())
    return DrawnQuestion(asked, list(range(first, last)), "search", "")


def beside(layout: DrawnPage, page: str, spans: list[int], noun: str, rng: random.Random) -> DrawnQuestion | None:
    """Which word follows or precedes one that stands on the page once."""
    word = rng.randrange(len(layout.words))
    step = rng.choice((1, 1, -1))
    other = word + step
    if not 0 <= other < len(layout.words) or layout.word_lines[other] != layout.word_lines[word]:
        return None
    text = layout.words[word]
    if len(text) < 3 or page.count(text.lower()) != 1:
        return None
    return DrawnQuestion(
        wording.phrase("right" if step > 0 else "before", rng, noun, text=text), [other], "spatial", ""
    )


def stacked(layout: DrawnPage, page: str, spans: list[int], noun: str, rng: random.Random) -> DrawnQuestion | None:
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
    return DrawnQuestion(wording.phrase("below" if below else "above", rng, noun, text=text), words, "spatial", "")


def corners(layout: DrawnPage, spans: list[int], noun: str, rng: random.Random) -> list[DrawnQuestion]:
    """What stands at the top, at the bottom, in the corners, and in the largest letters."""
    boxes, asked = layout.line_boxes.tolist(), list[DrawnQuestion]()

    def put(name: str, line: int, **slots: str) -> None:
        words = list(range(spans[line], spans[line + 1]))
        asked.append(DrawnQuestion(wording.phrase(name, rng, noun, **slots), words, "spatial", ""))

    if rng.random() < 0.4:
        middle = [y0 + y1 for _, y0, _, y1 in boxes]
        first = middle.index(min(middle))
        if sum(y < 2 * boxes[first][3] for y in middle) == 1:
            put("top" if middle[first] < 0.2 * layout.height and rng.random() < 0.7 else "first_line", first)
    if rng.random() < 0.4:
        middle = [y0 + y1 for _, y0, _, y1 in boxes]
        last = middle.index(max(middle))
        if sum(y > 2 * boxes[last][1] for y in middle) == 1:
            put("bottom" if middle[last] > 1.8 * layout.height and rng.random() < 0.7 else "last_line", last)
    if rng.random() < 0.3:
        tall = [y1 - y0 for _, y0, _, y1 in boxes]
        most = max(tall)
        if sum(size > 0.85 * most for size in tall) == 1:
            put("largest", tall.index(most))
    place = rng.choice(("top left", "top right", "bottom left", "bottom right"))
    line = _outmost(boxes, place, layout.height, layout.width)
    if line >= 0:
        put("corner", line, place=place)
    return asked


def _outmost(boxes: list[list[float]], place: str, height: int, width: int) -> int:
    """The line that stands in a corner of the page by itself, or -1."""
    x = [box[0] if "left" in place else width - box[2] for box in boxes]
    y = [box[1] if "top" in place else height - box[3] for box in boxes]
    away = [right / width + down / height for right, down in zip(x, y, strict=True)]
    order = sorted(away)
    line = away.index(order[0])
    clear = len(order) < 2 or order[1] - order[0] > 0.03
    return line if clear and x[line] < 0.25 * width and y[line] < 0.15 * height else -1
