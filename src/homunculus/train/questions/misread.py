"""Recognition errors: characters taken for others, lost, doubled, joined and split."""

from __future__ import annotations

import random
import string
from math import log

CONFUSED = (
    "0OoDQ", "1lI|i!7", "5Ss6", "8B3", "2Zz", "6Gb", "9gq4", "ceoa", "nhu", "vyw", "tfl", "rn", "mn", "kx", "pq",
    "EF", "CG", "PR", "UV", "MN", "KX", ".,", ":;", "-_~", "'`\"", "38", "17", "49", "56", "({[", ")}]",
)  # fmt: skip
_LIKE: dict[str, str] = {}
for _group in CONFUSED:
    for _char in _group:
        _LIKE[_char] = _LIKE.get(_char, "") + _group.replace(_char, "")


def misread_text(text: str, rate: float, rng: random.Random) -> str:
    """A text in which about a share `rate` of the characters is wrong; never empty."""
    if rate <= 0:
        return text
    parts: list[str] = []
    begin, scale = 0, -log(1 - min(rate, 0.9))
    while True:
        at = begin + int(rng.expovariate(scale))  # the distance to the next error is geometric
        if at >= len(text):
            return "".join((*parts, text[begin:])).strip() or text
        parts += (text[begin:at], _wrong(text[at], rng))
        begin = at + 1


def _wrong(char: str, rng: random.Random) -> str:
    """What may be read in place of a character."""
    draw = rng.random()
    if char == " ":
        return "" if draw < 0.7 else "  "
    if draw < 0.6:
        return rng.choice(_LIKE.get(char, string.ascii_lowercase))
    if draw < 0.72:
        return ""
    if draw < 0.78:
        return char * 2
    if draw < 0.86:
        return char + " "
    if draw < 0.94:
        return char.swapcase()
    return rng.choice(string.ascii_letters + string.digits + ".,:;-'")
