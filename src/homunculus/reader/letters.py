"""The alphabet that the networks read and are asked in: printable ASCII, a blank and an end."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import torch
from torch import Tensor

BLANK = 0  # nothing here; padding
END = 96  # the text is over
CLASSES = 97  # blank, the 95 characters from space to tilde as 1..95, end
_PLAIN = str.maketrans("‘’‚“”„–—−…•×", '\'\'""""---.*x')


def plain(text: str) -> str:
    """Text in printable ASCII: accents fall away, typographic quotes and dashes become plain, spaces single."""
    text = unicodedata.normalize("NFKD", text.translate(_PLAIN))
    return " ".join("".join(c for c in text if 32 <= ord(c) < 127 or c in "\t\n").split())


def encode(texts: Sequence[str], length: int, end: bool = False) -> Tensor:
    """Codes of each text, cut off at `length`, blank behind it; with `end` after the last character. [n, length]"""
    codes = torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in zip(codes, texts, strict=True):
        letters = [ord(c) - 31 for c in plain(text)][: length - end] + [END] * end
        row[: len(letters)] = torch.tensor(letters, dtype=torch.long)
    return codes


def decode(codes: Sequence[int]) -> str:
    """The text of a row of codes, up to its end; blanks are skipped."""
    letters = []
    for code in codes:
        if code == END:
            break
        if code != BLANK:
            letters.append(chr(code + 31))
    return "".join(letters)
