"""Spatial words of a question as places on the page: "top left", "footer", "second column of three"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Interval = tuple[float, float]  # from 0 to 1 of the page
WHOLE: Interval = (0.0, 1.0)

VERTICAL: dict[str, Interval] = {
    "top": (0, 1 / 3), "upper": (0, 1 / 3), "topmost": (0, 0.2), "uppermost": (0, 0.2), "above": (0, 0.5),
    "header": (0, 0.15), "letterhead": (0, 0.2), "masthead": (0, 0.2), "heading": (0, 0.25), "title": (0, 0.25),
    "bottom": (2 / 3, 1), "lower": (2 / 3, 1), "bottommost": (0.8, 1), "lowermost": (0.8, 1), "below": (0.5, 1),
    "footer": (0.85, 1), "footnote": (0.8, 1), "footnotes": (0.8, 1),
}  # fmt: skip
HORIZONTAL: dict[str, Interval] = {
    "left": (0, 0.4), "leftmost": (0, 0.25), "right": (0.6, 1), "rightmost": (0.75, 1),
}  # fmt: skip
MIDDLE = {"middle", "center", "centre", "central"}
# "left" and "right" are places only beside one of these: not in "how many are left?" or "is that right?"
LEADS_IN = {"on", "at", "to", "in", "the", "far", "top", "bottom", "upper", "lower", "middle", "center", "centre"}
LEADS_OUT = {
    "side", "corner", "half", "hand", "column", "margin", "edge", "part", "panel", "page", "top", "bottom", "upper",
    "lower", "third", "quarter", "box", "area",
}  # fmt: skip
# "top" is no place in "top 10" or "top customers": it needs its own company
TOP_LEADS_IN = {"at", "the", "on", "in", "near", "from", "very"}
SPELT = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
SHORT = ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"]
ORDINALS = {word: n for names in (SPELT, SHORT) for n, word in enumerate(names, start=1)} | {"last": -1, "final": -1}
NUMBERS = {
    word: n
    for n, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=1)
}
COLUMN, ROW = {"column", "columns"}, {"row", "rows", "line", "lines", "paragraph", "paragraphs"}
REACH = 3  # words apart that still name one place: "bottom of the left"


@dataclass(frozen=True)
class Region:
    """A part of the page, in shares of its width and height."""

    left: float
    top: float
    right: float
    bottom: float


def regions(question: str, columns: Sequence[Interval] = (), rows: Sequence[Interval] = ()) -> list[Region]:
    """The places that a question names, none for a question without spatial words.

    `columns` and `rows` are those that the page was seen to have; without them "second column" divides it evenly.
    """
    words = re.findall(r"[a-z]+|\d{1,4}(?:st|nd|rd|th)?", question.lower())
    found: list[tuple[int, Interval | None, Interval | None]] = []  # position, across, down
    for i in range(len(words)):
        across, down = _place(words, i, columns, rows)
        if across is None and down is None:
            continue
        if found and i - found[-1][0] <= REACH and _joins(found[-1], across, down):
            _, earlier_across, earlier_down = found.pop()
            across, down = across or earlier_across, down or earlier_down
        found.append((i, across, down))
    return [Region(*_box(across, down, words)) for _, across, down in found]


def _place(
    words: list[str], i: int, columns: Sequence[Interval], rows: Sequence[Interval]
) -> tuple[Interval | None, Interval | None]:
    word = words[i]
    before, after = (words[i - 1] if i else ""), (words[i + 1] if i + 1 < len(words) else "")
    if word in ORDINALS and after in COLUMN:
        return _ordinal(ORDINALS[word], words, i, COLUMN, columns), None
    if word in ORDINALS and after in ROW:
        return None, _ordinal(ORDINALS[word], words, i, ROW, rows)
    if word in HORIZONTAL:
        sure = word.endswith("most") or before in LEADS_IN or after in LEADS_OUT
        return (_half(HORIZONTAL[word], after), None) if sure else (None, None)
    if word in VERTICAL:
        sure = word != "top" or before in TOP_LEADS_IN or after in HORIZONTAL or after in LEADS_OUT
        return (None, _half(VERTICAL[word], after)) if sure and not after.isdigit() else (None, None)
    if word in MIDDLE and after not in ("name", "initial"):
        return (0.3, 0.7), (0.3, 0.7)
    return None, None


def _half(interval: Interval, after: str) -> Interval:
    if after != "half":
        return interval
    return (0.0, 0.5) if interval[0] < 0.5 else (0.5, 1.0)


def _ordinal(number: int, words: list[str], i: int, kind: set[str], seen: Sequence[Interval]) -> Interval:
    """The number-th of the columns or rows seen, or of as many equal ones as the question speaks of."""
    if seen and number <= len(seen):
        return seen[number - 1 if number > 0 else -1]
    stated = [NUMBERS.get(w, int(w) if w.isdigit() else 0) for w in words[i + 2 : i + 5]]
    total = max(number, 3 if kind is COLUMN else 10, len(seen))
    if "of" in words[i + 2 : i + 4] and max(stated, default=0) >= max(number, 1):
        total = max(stated)
    place = number - 1 if number > 0 else total - 1
    return place / total, (place + 1) / total


def _joins(
    earlier: tuple[int, Interval | None, Interval | None], across: Interval | None, down: Interval | None
) -> bool:
    """Whether a place completes an earlier one: "top" and "left" do, "top" and "bottom" are two places."""
    return (earlier[1] is None or across is None) and (earlier[2] is None or down is None)


def _box(across: Interval | None, down: Interval | None, words: list[str]) -> tuple[float, float, float, float]:
    """ "Corner" narrows a place named by both of its sides."""
    left, right = across or WHOLE
    top, bottom = down or WHOLE
    if across and down and "corner" in words:
        left, right = (left, min(right, left + 0.3)) if left < 0.5 else (max(left, right - 0.3), right)
        top, bottom = (top, min(bottom, top + 0.25)) if top < 0.5 else (max(top, bottom - 0.25), bottom)
    return left, top, right, bottom
