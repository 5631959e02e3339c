"""What the words of a question say about how to look: at text, at upright things, broadly, along rows or columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homunculus.errors import InputError, shown

TEXT = """text word words letter letters line lines read reads say says written write printed print title heading header
    footer name named date year number total amount price sum cost address phone email invoice receipt label caption
    sentence paragraph page value code signature mentioned stated table list"""
UPRIGHT = """building buildings facade facades tower towers skyscraper skyscrapers window windows door doors pillar
    pillars column columns pole poles fence fences tree trees trunk trunks bar bars chimney lamppost standing upright
    vertical height tall storey storeys floors"""
BROAD = """describe description summarise summarize summary overview scene overall everything whole all count many
    compare difference topic about"""
ROWS = "row rows line lines"
COLUMNS = "column columns"
KINDS = tuple(frozenset(words.split()) for words in (TEXT, UPRIGHT, BROAD, ROWS, COLUMNS))


@dataclass(frozen=True)
class Wording:
    """Which kinds of word a question has, and how many of each."""

    text: int
    upright: int
    broad: bool
    rows: bool
    columns: bool

    @classmethod
    def of(cls, question: str) -> Wording:
        """Read the question's words; an empty question has none of any kind."""
        words = re.findall(r"[a-z]+", question.lower())
        text, upright, broad, rows, columns = (sum(word in kind for word in words) for kind in KINDS)
        return cls(text, upright, bool(broad), bool(rows), bool(columns))


def per_image(question: str | Sequence[str], images: int) -> list[str]:
    """One question for each image: a single one is asked of all."""
    questions = [question] * images if isinstance(question, str) else question
    several = isinstance(questions, (list, tuple)) and all(isinstance(q, str) for q in questions)
    if not several or len(questions) != images:
        raise InputError(f"question must be one text or a text for each of the {images} images, got {shown(question)}")
    return list(questions)
