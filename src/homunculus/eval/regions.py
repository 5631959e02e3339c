"""What a look for one question knows of the rest of the page: questions about places near to it and far from it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from homunculus.eval.backends import EvalSample
from homunculus.eval.data import Item

SECONDARY, PERIPHERAL = "secondary", "peripheral"


def region_samples(items: Sequence[Item]) -> list[EvalSample]:
    """For each question with a known place, the nearest and the farthest other question of its page.

    Each is asked with the look that the first one led to, as the second question of a conversation in which nothing is
    looked at again.
    """
    samples: list[EvalSample] = []
    for _, group in groupby(items, key=lambda item: item.image):
        placed = [item for item in group if item.boxes]
        for first in placed:
            others = sorted((_apart(first, other), other.qid, other) for other in placed if other is not first)
            if not others:
                continue
            samples += [EvalSample(others[0][2], first, SECONDARY)]
            if others[-1][2] is not others[0][2]:
                samples += [EvalSample(others[-1][2], first, PERIPHERAL)]
    return _once(samples)


def _once(samples: Sequence[EvalSample]) -> list[EvalSample]:
    """Each question once a region: a results row is told by its question and region."""
    kept: dict[tuple[str, str], EvalSample] = {}
    for sample in samples:
        kept.setdefault((sample.item.qid, sample.region), sample)
    return list(kept.values())


def _apart(one: Item, other: Item) -> float:
    """Distance between the middles of the nearest places of two questions, in pixels."""

    def middles(item: Item) -> list[tuple[float, float]]:
        return [((left + right) / 2, (top + bottom) / 2) for left, top, right, bottom in item.boxes]

    return min(((x - u) ** 2 + (y - v) ** 2) ** 0.5 for x, y in middles(one) for u, v in middles(other))
