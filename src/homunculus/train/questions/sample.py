"""One question about one page, on its way to becoming a lesson."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homunculus.reader.lines import Line
from homunculus.train.questions.locate import holds

WORKED = frozenset({"count", "yesno", "compare"})  # kinds whose answer is worked out
CHART = "chart"  # charts mean little without their axes
UNANSWERABLE = "unanswerable"
_COMPARES = re.compile(
    r"\b(?:most|least|highest|higher|lowest|lower|largest|larger|smallest|smaller|maximum|minimum|max|min|more|less|"
    r"greater|greatest|bigger|biggest|fewer|fewest|difference|sum|average|mean|median|ratio|how many|exceed\w*|above|"
    r"below|between|rank\w*|earliest|earlier|later|latest|oldest|newest|increase\w*|decrease\w*|multipl\w*|divid\w*)\b",
    re.I,
)
_PLACES = re.compile(
    r"\b(?:top|bottom|head\w*|foot\w*|first|last|second|third|fourth|fifth|title|page|above|below|under|upper|lower|"
    r"beg\w+|start\w*|end\w*|next|after|before|follow\w*|left|right|corner|stand\w*|row|column|table)\b",
    re.I,
)


def compares(question: str) -> bool:
    """Whether a question asks for more than what is written: the highest value, a difference, a count."""
    return bool(_COMPARES.search(question))


@dataclass(frozen=True)
class Sample:
    """A question, its answer and the lines that it is answered from.

    Args:
        holders: indices of the lines that hold the answer; empty if unknown or if there are none.
        misread: whether the lines come from a recogniser, with its errors.
    """

    question: str
    answer: str
    lines: tuple[Line, ...]
    holders: tuple[int, ...]
    kind: str = "human"
    misread: bool = False

    @property
    def whole(self) -> bool:
        """Whether the answer needs every line of the page, as far as is known."""
        return self.kind in (*WORKED, CHART) or self.unlocated

    @property
    def unlocated(self) -> bool:
        """Whether it is unknown where the answer stands."""
        return not self.holders and self.kind != UNANSWERABLE

    @property
    def compares(self) -> bool:
        """Whether the answer may depend on the order or size of numbers, which must then stay as they are."""
        return self.kind in WORKED or compares(self.question)

    @property
    def placed(self) -> bool:
        """Whether the answer may depend on where lines stand."""
        return self.kind in ("neighbour", "cell", CHART, *WORKED) or bool(_PLACES.search(self.question))

    def answered_by(self, visible: Sequence[int]) -> bool:
        """Whether visible lines hold the answer: one line that has all of it, or all lines of a longer answer."""
        if not self.holders:
            return False
        seen = set(visible)
        complete = [i for i in self.holders if holds(self.answer, self.lines[i].text)]
        if complete and self.kind != "neighbour":
            return any(i in seen for i in complete)
        return all(i in seen for i in self.holders)
