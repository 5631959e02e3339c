"""How sure an answer is: what language model and recogniser were sure of, as a probability of being right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homunculus.reader.lines import Line

FEATURES = ("mean", "least", "read", "confidence", "refusal")  # of an answer, in the order of the weights


@dataclass(frozen=True)
class Calibration:
    """Logistic regression on the features of an answer."""

    weights: tuple[float, ...] = (1.0, *[0.0] * (len(FEATURES) - 1))
    bias: float = 0.0

    def __call__(self, features: Sequence[float]) -> float:
        """Probability that the answer is right."""
        total = sum(w * f for w, f in zip(self.weights, features, strict=True)) + self.bias
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def features_of(text: str, probs: Sequence[float], refusal: float, lines: Sequence[Line]) -> list[float]:
    """FEATURES of an answer.

    Log odds of its mean and of its least token probability; whether it stands among the lines that were read, and the
    confidence of the best line that it stands in, from -1 to 1; log odds of "not on the page".
    """
    folded = _folded(text)
    found = [line.confidence for line in lines if folded and folded in _folded(line.text)]
    mean, least = (sum(probs) / len(probs), min(probs)) if probs else (0.5, 0.5)
    stands = 1.0 if found else -1.0, max(found, default=0.5) * 2 - 1
    return [_log_odds(mean), _log_odds(least), *stands, _log_odds(refusal)]


def _log_odds(p: float) -> float:
    p = min(max(p, 1e-4), 1 - 1e-4)
    return math.log(p / (1 - p))


def _folded(text: str) -> str:
    return "".join(text.lower().split())
