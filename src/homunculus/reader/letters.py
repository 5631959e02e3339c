"""The alphabet that the networks read and are asked in: printable ASCII and a blank."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import torch
from torch import Tensor

BLANK = 0  # nothing here; padding
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
