"""Which lines of a page hold an answer, also where the answer runs over several lines or was misread."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homunculus.reader.lines import Line

Box = tuple[float, ...]
SHORT = 3  # characters up to which an answer must be a word of its own
COVERED = 0.6  # part of an answer that the lines of a longer one must have
ALIKE = 0.75  # part of the answer's character pairs that a misread line must have
MARGIN = 4.0  # pixels around a line's box

_NOT_TEXT = re.compile(r"[\W_]+")


def normalise(text: str) -> str:
    """Lower-case letters and figures alone."""
    return _NOT_TEXT.sub("", text.lower())


def locate(answer: str, boxes: Sequence[Box], lines: Sequence[Line]) -> tuple[int, ...]:
    """Indices of the lines that hold the answer: one line, or all lines of a longer answer; empty if unknown.

    `boxes` tell where the answer stands, if that is known; they decide between several places.
    """
    key = normalise(answer)
    if not key:
        return ()
    texts = [normalise(line.text) for line in lines]
    near = [i for i, line in enumerate(lines) if any(_inside(box, line.box) or _inside(line.box, box) for box in boxes)]
    whole = [i for i, text in enumerate(texts) if key in text and (len(key) > SHORT or _has_word(lines[i].text, key))]
    if whole:
        return tuple([i for i in whole if i in near] or whole)
    return _over_lines(key, texts, near) or _misread(key, texts, near)


def holds(answer: str, text: str) -> bool:
    """Whether a text has the answer, punctuation, blanks and capitals aside."""
    key = normalise(answer)
    return key in normalise(text) and (len(key) > SHORT or _has_word(text, key))


def similarity(key: str, text: str) -> float:
    """The part of the character pairs of a normalised text that another one has."""
    pairs = {key[i : i + 2] for i in range(len(key) - 1)}
    return sum(pair in text for pair in pairs) / len(pairs) if pairs else float(key in text)


def _over_lines(key: str, texts: Sequence[str], near: Sequence[int]) -> tuple[int, ...]:
    """The lines of an answer that is longer than each of them."""
    if len(key) <= SHORT:
        return ()
    for count in (2, 3):  # it begins and ends within lines that follow each other
        for i in range(len(texts) - count + 1):
            if key in "".join(texts[i : i + count]):
                return tuple(range(i, i + count))
    places = near or range(len(texts))
    parts = [i for i in places if len(texts[i]) > 2 and (texts[i] in key or similarity(texts[i], key) > 0.9)]
    size = sum(len(texts[i]) for i in parts)
    return tuple(parts) if COVERED * len(key) <= size <= 1.5 * len(key) else ()


def _misread(key: str, texts: Sequence[str], near: Sequence[int]) -> tuple[int, ...]:
    if len(key) <= SHORT:
        return ()
    ranked = [(similarity(key, texts[i]), i) for i in near or range(len(texts)) if 2 * len(texts[i]) >= len(key)]
    best = max(ranked, default=(0.0, -1))
    return (best[1],) if best[0] >= ALIKE else ()


def _has_word(text: str, key: str) -> bool:
    return any(normalise(word) == key for word in re.split(r"[\s:=()/|]+", text)) or normalise(text) == key


def _inside(box: Box, outer: Box) -> bool:
    """Whether the centre of a box lies in another."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return outer[0] - MARGIN <= x <= outer[2] + MARGIN and outer[1] - MARGIN <= y <= outer[3] + MARGIN
