"""The alphabet that the networks read and are asked in: printable ASCII and a blank."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

BLANK = 0  # nothing here; padding
UNLIKE = frozenset("abdefghnqrty")  # letters whose capitals have another shape, not only another size
WORD = re.compile(r"[A-Za-z]{4,}")
CAMEL = re.compile(r"[A-Z][a-z]+[A-Z][a-z]{2,}")  # McDonald, AutoPay
CLASSES = 96  # blank, and the 95 characters from space to tilde as 1..95
PLAIN = str.maketrans(
    {
        "‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "−": "-", "•": "-", "×": "x",
        "ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ı": "i", "æ": "ae", "Æ": "Ae", "đ": "d",
        "€": "EUR ", "£": "GBP ",
    }
)  # fmt: skip


def folded(text: str) -> str:
    """Text with single spaces, plain quotes and dashes, and no accents; other scripts are left as they are."""
    text = unicodedata.normalize("NFKD", " ".join(text.translate(PLAIN).split()))
    return "".join(c for c in text if not unicodedata.combining(c))


def plain(text: str) -> str:
    """Text in printable ASCII: folded, and without what is then still something else."""
    return " ".join("".join(c for c in folded(text) if 32 <= ord(c) < 127).split())


def encode(texts: Sequence[str], length: int) -> Tensor:
    """Codes of each text, cut off at `length`, blank behind it. [n, length]"""
    codes = torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in zip(codes, texts, strict=True):
        letters = [ord(c) - 31 for c in plain(text)][:length]
        row[: len(letters)] = torch.tensor(letters, dtype=torch.long)
    return codes


def decode(codes: Sequence[int]) -> str:
    """The text of a row of codes; blanks are skipped."""
    return "".join(chr(code + 31) for code in codes if code != BLANK)


def even_case(text: str) -> str:
    """Text in which words such as "InvOiCe" and "PAiD" have the case that most of their telling letters have.

    In strips of one height "o" and "O" look alike. Words whose case changes only once stay as they are.
    """
    return WORD.sub(lambda found: _even(found[0]), text)


def _even(word: str) -> str:
    changes = sum(one.isupper() != other.isupper() for one, other in pairwise(word))
    if changes < 2 or CAMEL.fullmatch(word):
        return word
    rest = word[1:]
    upper = sum(c.isupper() - c.islower() for c in rest if c.lower() in UNLIKE) or sum(
        c.isupper() - c.islower() for c in rest
    )
    if not upper:
        return word
    return word.upper() if upper > 0 else word[0] + rest.lower()
