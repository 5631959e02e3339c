"""Scores of answers, each from 0 to 1, as the sets define them; intervals over pages and comparisons of two methods.

A score takes what was said and all answers that count. Where papers and published scripts leave room, its docstring
says what is done here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from homunculus.errors import InputError

Array = np.ndarray[Any, Any]
Score = Callable[[str, Sequence[str]], float]
Figure = dict[str, float]

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
MARKS = ';/[]"{}()=+\\_-><@`,?!'  # what VQA calls punctuation: apostrophe, colon and the like are none
APOSTROPHES = """
ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've he's
how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've needn't not've o'clock
oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd
someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've there're there's
they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's what've when's
where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've wouldn't wouldn't've
y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""


def _contractions() -> dict[str, str]:
    """Words of VQA that lack one apostrophe, and how they are spelled."""
    found = {
        word[:i] + word[i + 1 :]: word for word in APOSTROPHES.split() for i, letter in enumerate(word) if letter == "'"
    }
    return found | {"somebody'd": "somebodyd"}  # the other way round in the toolkit, too


CONTRACTIONS = _contractions()

EXACT = 12  # pages: up to here all ways to flip them are counted
FLIPS = 10_000
SAME = 1e-12  # scores that differ by less are the same


# ---- scores -------------------------------------------------------------------------------------------------------


def anls(prediction: str, answers: Sequence[str]) -> float:
    """Average normalised Levenshtein similarity (DocVQA): of the nearest answer, 0 if more than half is wrong.

    Case and surplus blanks do not count, everything else does, a full stop too.
    """
    return max((_similar(_plain(prediction), _plain(answer)) for answer in answers), default=0.0)


def _similar(prediction: str, answer: str) -> float:
    longest = max(len(prediction), len(answer), 1)
    if abs(len(prediction) - len(answer)) > FAR * longest:
        return 0.0
    off = Levenshtein.distance(prediction, answer) / longest
    return 1 - off if off <= FAR else 0.0


def exact(prediction: str, answers: Sequence[str]) -> float:
    """Whether it is one of the answers, but for case, blanks and a full stop."""
    return float(any(_even(prediction) == _even(answer) for answer in answers))


def daquar(prediction: str, answers: Sequence[str]) -> float:
    """Whether the same things are named as in one of the answers, in any order and as often (DAQUAR, without WUPS).

    Things are separated by commas; "garbage_bin" is "garbage bin".
    """
    return float(any(_things(prediction) == _things(answer) for answer in answers))


def _things(text: str) -> list[str]:
    return sorted(filter(None, (_even(thing) for thing in text.replace("_", " ").split(","))))


def relaxed(prediction: str, answers: Sequence[str]) -> float:
    """Relaxed accuracy (ChartQA): numbers within 5 % of the answer, all else the same but for case.

    As in the script of Pix2Struct, by which published figures are made: per cent are hundredths, so "45%" is "0.45" and
    not "45"; a number is what `float` takes, so "1,050" and "$3" are words; an answer of 0 must be said as written.
    """
    return float(any(_relaxed(prediction.strip(), answer.strip()) for answer in answers))


def _relaxed(prediction: str, answer: str) -> bool:
    value, expected = _hundredths(prediction), _hundredths(answer)
    if value is None or not expected:
        return prediction.lower() == answer.lower()
    return abs(value - expected) / abs(expected) <= TOLERANCE


def _hundredths(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def vqa(prediction: str, answers: Sequence[str]) -> float:
    """VQA accuracy over several people's answers: a third for each other person who said the same, at most 1.

    The mean over all ways to leave one person out. Both sides always go through `vqa_form`; a single answer is right or
    wrong.
    """
    value, n = vqa_form(prediction), len(answers)
    same = sum(value == vqa_form(answer) for answer in answers)
    if n < 2:
        return float(same)
    return (same * min(1.0, (same - 1) / 3) + (n - same) * min(1.0, same / 3)) / n


def vqa_form(text: str) -> str:
    """A text as VQA compares it: punctuation, case, number words, articles, contractions, in this order.

    Marks go if one of their kind stands beside a blank, or if a comma stands between digits; else they are blanks. Full
    stops go unless a digit follows.
    """
    text = text.replace("\n", " ").replace("\t", " ").strip()
    grouped, bare = re.search(r"\d,\d", text), text
    for mark in MARKS:
        bare = bare.replace(mark, "" if grouped or f"{mark} " in text or f" {mark}" in text else " ")
    words = re.sub(r"\.(?!\d)", "", bare).lower().split()
    words = [NUMBERS.get(word, word) for word in words]
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def answer_in(lines: Sequence[str], answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in lines of text, one after the other; case and surplus blanks do not count."""
    text = _plain(" ".join(lines))
    return any(plain in text for plain in map(_plain, answers) if plain)


def _plain(text: str) -> str:
    """A text in lower case with single blanks."""
    return " ".join(text.lower().split())


def _even(text: str) -> str:
    """The same, with no full stop behind it."""
    return _plain(text).rstrip(".").strip()


# ---- sets ---------------------------------------------------------------------------------------------------------

SCORES: dict[str, Score] = {
    "docvqa": anls,
    "docvqa_gaze": anls,
    "infovqa": anls,
    "sroie": anls,
    "funsd": anls,
    "chartqa": relaxed,
    "daquar": daquar,
    "icdar2015": exact,
    "coco_vqa": vqa,
    "vqav2": vqa,
    "textvqa": vqa,
}
NAMES: dict[Score, str] = {anls: "anls", relaxed: "relaxed", exact: "exact", daquar: "exact", vqa: "vqa"}


def score_of(dataset: str) -> Score:
    """The score that a set is measured by; ANLS for sets that are not known."""
    return SCORES.get(dataset, anls)


def metric_of(dataset: str) -> str:
    """The name of that score: anls, relaxed, exact or vqa."""
    return NAMES[score_of(dataset)]


# ---- uncertainty --------------------------------------------------------------------------------------------------
# Not scipy.stats: its bootstrap resamples one set and draws anew for every figure, while here whole pages are resampled
# within several sets, with the same draws for all methods; its permutation_test has another two-sided p.


@lru_cache(maxsize=16)
def resamples(pages: int, times: int = 1000, seed: int = 0) -> Array:
    """How often each page is drawn in each resample, always the same. [times, pages]"""
    draws = np.random.default_rng(seed).multinomial(pages, np.full(pages, 1 / pages), size=times)
    draws.setflags(write=False)
    return draws


def ratio(values: Sequence[float] | Array, counts: Sequence[float] | Array, draws: Array) -> Figure:
    """Sum of a page's values over sum of its counts, with the 95 % interval over resampled pages."""
    v, n = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    total = draws @ n
    spread = (draws @ v)[total > 0] / total[total > 0]
    low, high = np.quantile(spread, (0.025, 0.975))
    return {"value": float(v.sum() / n.sum()), "low": float(low), "high": float(high)}


def interval(scores: Sequence[float] | Array, groups: Sequence[Hashable]) -> Figure:
    """Mean of questions' scores as `value`, and `low` and `high`, its 95 % interval over resampled pages.

    `groups` names the page of each question.
    """
    sums, counts = _per_page(np.asarray(scores, dtype=np.float64), groups)
    return ratio(sums, counts, resamples(len(sums)))


def paired(a: Sequence[float] | Array, b: Sequence[float] | Array, groups: Sequence[Hashable]) -> Figure:
    """How much better a is than b on the same questions: `value` with `low` and `high`, `p`, wins, ties and losses.

    The value is the difference of the means, its 95 % interval is over resampled pages. Were both alike, each page's
    difference could as well have the other sign: p is the share of such flips that differ at least as much, two-sided;
    all flips up to 12 pages that differ, else 10,000, always the same.
    """
    return across([(a, b, groups)])


def across(sets: Sequence[tuple[Sequence[float] | Array, Sequence[float] | Array, Sequence[Hashable]]]) -> Figure:
    """The same over several sets of a, b and groups, each set counting alike: pages are resampled within sets."""
    every: list[Array] = []
    flips: list[Array] = []
    spread: list[Array] = []
    for seed, (a, b, groups) in enumerate(sets):
        one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if one.shape != other.shape:
            raise InputError(f"both methods need a score for each question, got {one.shape} and {other.shape}")
        gaps = one - other
        gaps[np.abs(gaps) < SAME] = 0
        sums, counts = _per_page(gaps, groups)
        draws = resamples(len(sums), seed=seed)
        spread.append(draws @ sums / (draws @ counts))
        every.append(gaps)
        flips.append(sums / len(gaps))
    low, high = np.quantile(np.mean(spread, axis=0), (0.025, 0.975))
    joined = np.concatenate(every)
    wins, losses = int((joined > 0).sum()), int((joined < 0).sum())
    figure = {"value": float(np.mean([gaps.mean() for gaps in every])), "low": float(low), "high": float(high)}
    figure |= {"p": _flipped(np.concatenate(flips)), "wins": wins, "ties": len(joined) - wins - losses}
    return figure | {"losses": losses, "n": len(joined)}


def _per_page(scores: Array, groups: Sequence[Hashable]) -> tuple[Array, Array]:
    """Sum of scores and number of questions of each page."""
    if scores.ndim != 1 or not len(scores) or len(scores) != len(groups) or not np.isfinite(scores).all():
        raise InputError(
            f"one finite score and one page is needed for each question, got scores {scores.shape} and "
            f"{len(groups)} pages"
        )
    known = {page: i for i, page in enumerate(dict.fromkeys(groups))}
    place = np.array([known[page] for page in groups])
    return np.bincount(place, weights=scores), np.bincount(place)


def _flipped(sums: Array) -> float:
    """Share of sign flips of pages whose sum is at least as far from 0."""
    sums = sums[np.abs(sums) > SAME]  # flipping nothing changes nothing
    least, n = abs(sums.sum()) - 1e-9 * np.abs(sums).sum(), len(sums)
    if n <= EXACT:
        signs = (np.arange(2**n)[:, None] >> np.arange(n) & 1) * 2 - 1  # [2^n, n]
        return float((np.abs(signs @ sums) >= least).mean())
    random, far = np.random.default_rng(0), 0
    for _ in range(10):  # in parts, for there may be thousands of pages
        signs = random.integers(0, 2, (FLIPS // 10, n), dtype=np.int8) * 2 - 1
        far += int((np.abs(signs @ sums) >= least).sum())
    return (far + 1) / (FLIPS + 1)  # what was seen is one of the flips
