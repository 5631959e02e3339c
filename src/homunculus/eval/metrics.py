"""Scores of answers, each from 0 to 1, as the sets define them; and intervals over pages.

A score takes what was said and all answers that count.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FAR = 0.5  # ANLS: an answer further off than this share of its letters counts as wrong
TOLERANCE = 0.05  # of numbers read off a chart
ARTICLES = {"a", "an", "the"}
NUMBERS = dict(
    zip(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        map(str, range(11)),
        strict=True,
    )
)
NUMBERS["none"] = "0"


def edits(one: str, other: str) -> int:
    """Fewest insertions, deletions and replacements that turn one text into the other."""
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        now = [i]
        for j, b in enumerate(other, start=1):
            now.append(min(before[j] + 1, now[-1] + 1, before[j - 1] + (a != b)))
        before = now
    return before[-1]


def anls(said: str, answers: Sequence[str]) -> float:
    """Average normalised Levenshtein similarity (DocVQA): of the nearest answer, 0 if more than half is wrong."""
    return max((_similar(_even(said), _even(answer)) for answer in answers), default=0.0)


def _similar(said: str, answer: str) -> float:
    off = edits(said, answer) / max(len(said), len(answer), 1)
    return 1 - off if off < FAR else 0.0


def exact(said: str, answers: Sequence[str]) -> float:
    """Whether it is one of the answers, but for case, blanks and a full stop."""
    return float(any(_even(said) == _even(answer) for answer in answers))


def relaxed(said: str, answers: Sequence[str]) -> float:
    """Relaxed accuracy (ChartQA): numbers within 5 %, other answers exactly."""
    return float(any(_relaxed(said, answer) for answer in answers))


def _relaxed(said: str, answer: str) -> bool:
    mine, theirs = number(said), number(answer)
    if theirs is None or mine is None:
        return _even(said) == _even(answer)
    return abs(mine - theirs) <= TOLERANCE * abs(theirs)


def number(text: str) -> float | None:
    """A text as a number, with thousands commas, currency and per cent signs left out; None if it is none."""
    bare = text.strip().rstrip("%").lstrip("$€£").replace(",", "").strip()
    try:
        return float(bare)
    except ValueError:
        return None


def vqa(said: str, answers: Sequence[str]) -> float:
    """VQA accuracy over several people's answers: a third for each other person who said the same, at most 1."""
    given = [_vqa_form(answer) for answer in answers]
    mine = _vqa_form(said)
    if len(given) == 1:
        return float(mine == given[0])
    others = [given[:i] + given[i + 1 :] for i in range(len(given))]
    return float(np.mean([min(1.0, sum(mine == answer for answer in rest) / 3) for rest in others])) if given else 0.0


def _vqa_form(text: str) -> str:
    """Lower case, no punctuation but inside numbers, no articles, number words as digits."""
    text = text.replace("\n", " ").replace("\t", " ").strip().lower()
    text = re.sub(r"(?<!\d)[.,](?!\d)|(?<=\d),(?=\d{3})", "", text)
    text = text.translate({ord(mark): " " for mark in string.punctuation if mark not in "'.,:"})
    return " ".join(NUMBERS.get(word, word) for word in text.split() if word not in ARTICLES)


def _even(text: str) -> str:
    """A text in lower case with single blanks and no full stop behind it."""
    return " ".join(text.lower().split()).rstrip(".").strip()


SCORES: dict[str, Callable[[str, Sequence[str]], float]] = {
    "docvqa": anls,
    "sroie": anls,
    "funsd": anls,
    "chartqa": relaxed,
    "daquar": exact,
    "icdar2015": exact,
    "coco_vqa": vqa,
}


def score_of(dataset: str) -> Callable[[str, Sequence[str]], float]:
    """The score that a set is measured by; ANLS for sets that are not known."""
    return SCORES.get(dataset, anls)


def resamples(pages: int, times: int = 1000) -> Array:
    """How often each page is drawn in each resample, always the same. [times, pages]"""
    return np.random.default_rng(0).multinomial(pages, np.full(pages, 1 / pages), size=times)


def ratio(values: Sequence[float], counts: Sequence[float], draws: Array) -> dict[str, float]:
    """Sum of a page's values over sum of its counts, with the 95 % interval over resampled pages."""
    v, n = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    total = draws @ n
    spread = (draws @ v)[total > 0] / total[total > 0]
    low, high = np.quantile(spread, (0.025, 0.975))
    return {"value": float(v.sum() / n.sum()), "low": float(low), "high": float(high)}
