"""Lines of a training page, and what is asked about them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class WordLine(NamedTuple):
    """A line of text: its words and their boxes [n, 4]."""

    words: list[str]
    boxes: Array

    @property
    def text(self) -> str:
        """The words with spaces between."""
        return " ".join(self.words)

    @property
    def box(self) -> Array:
        """Around all words. [4]"""
        return np.concatenate((self.boxes[:, :2].min(0), self.boxes[:, 2:].max(0)))


class DerivedQuestion(NamedTuple):
    """Something to ask, where its answer stands [n, 4], and the answer."""

    text: str
    boxes: Array
    answer: str
