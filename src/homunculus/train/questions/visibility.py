"""What a look shows: the lines with the best scores for the question, as a relevance network might rank them."""

from __future__ import annotations

import random
import string

import numpy as np

from homunculus.train.questions.augment import drop_lines
from homunculus.train.questions.geometry import Array
from homunculus.train.questions.sample import Sample

WHOLE = 0.45  # share of looks that show the whole page
SEEN = 0.95  # share of the other looks that show the answer's line
ROW_SEEN = 0.8  # share of these that also show the other lines of its row
FEWEST = 3  # lines of a look
DROPPED = 0.5, 0.4  # share of pages on which lines are lost, and at most so many of them
CHARS_PER_TOKEN = 2.4  # a low estimate
STOP_WORDS = frozenset(
    {
        "what", "which", "who", "whom", "when", "where", "how", "the", "and", "for", "was", "were", "are", "does",
        "did", "this", "that", "with", "from", "has", "have", "given", "mentioned", "document", "page", "written",
        "name", "value", "field", "is", "of", "in", "to", "on", "by", "at", "as", "it", "an", "be", "or",
    }
)  # fmt: skip


def words_of(text: str) -> set[str]:
    """Words of a text that can be recognised elsewhere."""
    words = (word.strip(string.punctuation) for word in text.lower().split())
    return {word for word in words if len(word) >= 2 and word not in STOP_WORDS}


def overlap(sample: Sample) -> Array:
    """How many words each line shares with the question. [n]"""
    asked = words_of(sample.question)
    return np.array([len(asked & words_of(line.text)) for line in sample.lines], np.float32)


def relevance(sample: Sample, shared: Array, rng: random.Random) -> Array:
    """A noisy score for each line: words of the question, nearness to the answer, and chance. [n]"""
    noise = np.random.default_rng(rng.getrandbits(48)).gumbel(size=len(sample.lines))
    score = 1.2 * np.minimum(shared, 3) + rng.choice((0.5, 1.0, 1.5)) * noise
    if sample.holders:
        boxes = np.array([line.box for line in sample.lines])  # [n, 4]
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2
        high = max(1.0, float(np.median(boxes[:, 3] - boxes[:, 1])))
        away = np.abs(middle - middle[sample.holders[0]]) @ np.array([0.3, 1.0]) / high
        score += rng.choice((1.0, 2.0, 3.0)) * np.exp(-away / 4)
    return np.asarray(score)


def visible_lines(sample: Sample, max_tokens: int, rng: random.Random) -> tuple[Sample, list[float]]:
    """The lines that a look shows, and their scores."""
    shared, beside = overlap(sample), _beside_answer(sample)
    keep = np.ones(len(sample.lines), bool)
    if not sample.whole and rng.random() < DROPPED[0]:
        noise = np.random.default_rng(rng.getrandbits(48)).random(len(keep))
        keep = noise >= rng.uniform(0, DROPPED[1]) * np.where((shared > 0) | beside, 0.3, 1.0)
        keep[list(sample.holders)] = True
    score = relevance(sample, shared, rng)
    if not sample.whole and rng.random() >= WHOLE:
        seen = rng.random() < SEEN
        if seen:
            score = _raise_holders(sample, score, max_tokens, rng)
        count = max(FEWEST, round(len(keep) * rng.random() ** 0.5))  # most looks show most of a page
        best = np.zeros(len(keep), bool)
        best[np.argsort(-score, kind="stable")[:count]] = True
        best[list(sample.holders)] |= seen
        best |= beside & seen & (rng.random() < ROW_SEEN)
        keep &= best
    else:
        score = _raise_holders(sample, score, max_tokens, rng)
    return drop_lines(sample, keep.tolist()), score[keep].tolist()


def _beside_answer(sample: Sample) -> Array:
    """Which lines stand in the row of the answer. [n]"""
    boxes = np.array([line.box for line in sample.lines])  # [n, 4]
    if not sample.holders:
        return np.zeros(len(boxes), bool)
    middle, answer = (boxes[:, 1] + boxes[:, 3]) / 2, boxes[list(sample.holders)]
    return np.asarray(((middle[:, None] > answer[:, 1]) & (middle[:, None] < answer[:, 3])).any(1))


def _raise_holders(sample: Sample, score: Array, max_tokens: int, rng: random.Random) -> Array:
    """Scores with which the answer's lines are among those that fit into the prompt, at a random rank."""
    if not sample.holders:
        return score
    holders = list(sample.holders)
    order = np.argsort(-score, kind="stable")
    cost = np.array([len(line.text) / CHARS_PER_TOKEN + 2 for line in sample.lines])
    room = max_tokens - cost[holders].sum()
    fits = int(np.searchsorted(np.cumsum(cost[order]), room))  # lines that fit before the answer's
    place = score[order[rng.randint(0, max(0, min(fits, len(order)) - 1))]]
    score = score.copy()
    score[holders] = np.maximum(score[holders], place)
    return score
