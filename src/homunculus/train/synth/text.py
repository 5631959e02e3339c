"""The words that training pages are written with: pools to draw from, and makers of dates, prices, codes and names.

`python -m homunculus.train.synth.corpus` builds wide pools; all is plain ASCII.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from homunculus.errors import InputError, shown
from homunculus.train.synth import vocabulary
from homunculus.train.synth.vocabulary import items, own_pools

POOLED = items(
    """word|rare|first|last|company|street|city|state|country|product|job
department|title|sentence|key|unit|month"""
)
MADE = items("name|date|time|price|number|percent|code|phone|fax|email|url|address|initials|quantity")
KINDS = (*POOLED, *MADE)

CORPUS = "corpus "  # a pool of this prefix holds what a corpus adds to the kind
SHARE = 0.35  # of the draws of a kind come from its corpus pool, fewer where that is small

EAST_LAST, EAST_FIRST = items(vocabulary.EAST_LAST), items(vocabulary.EAST_FIRST)
MALAY, INDIAN = items(vocabulary.MALAY), items(vocabulary.INDIAN)
MONTHS = items(vocabulary.MONTH)
SHORT = [month[:3] for month in MONTHS]
DAYS = items("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CURRENCIES = ("$", "$", "$", "US$", "USD ", "RM", "RM ", "EUR ", "GBP ", "S$", "Rs. ", "CHF ")
DOMAINS = ("com", "com", "com", "net", "org", "co.uk", "com.my", "edu", "gov", "de", "info")

# the first row that a label matches says which kinds of value it gets
LABELS = (
    (r"\bfax|facsimile", "fax"),
    (r"e-?mail", "email"),
    (r"web|url|internet|homepage", "url"),
    (r"phone|\btel\b|mobile|\bcell\b|extension", "phone"),
    (r"number of|no\. of|# of|\bqty|quantity|pages?\b|copies|count|\bage\b|circulation|points|how many", "number"),
    (r"\btime\b|hour", "time date"),
    (r"\bdates?\b|\bdated\b|birth|\bdob\b|deadline|expir|effective|\bday\b|completed|received on", "date"),
    (r"month|period|quarter", "month date"),
    (r"percent|%|discount|\brate\b|moisture|yield|share", "percent"),
    (r"total|amount|price|cost|\bfee|balance|\bcash\b|change|\btax\b|\bgst\b|\bsst\b|charge|budget|salary", "price"),
    (r"\bdue\b|\bpaid\b|payment|rounding|tender|\bnet\b|gross|credit|debit|visa|income|revenue|expense", "price"),
    (r"\bnos?\b|number|#|\bcode\b|\bid\b|\bref\b|reference|serial|account|\bacct|\bssn\b|zip|invoice|p\.o\.", "code"),
    (r"initials", "initials"),
    (r"weight|\bwt|size|length|width|height|volume|diameter|temperature|pressure|dose|\btar\b", "quantity"),
    (r"address|street|location", "address"),
    (r"\bcity\b|town|place", "city"),
    (r"\bstate\b|province|territory|region", "state"),
    (r"country|nationality|origin", "country"),
    (r"ship|sold|bill to|deliver|supplier|vendor|company|firm|manufactur|agency|employer|bank", "company address"),
    (r"department|dept|division|branch|section|\barea\b", "department"),
    (r"title|subject|\bre\b|project|topic|memo", "title"),
    (r"position|occupation|\bjob\b|\brole\b|designation", "job"),
    (r"brand|product|item|article|description|material|model", "product rare"),
    (r"comment|remark|note|purpose|reason|explain|message|objective|summary|conclusion|results?\b", "sentence"),
    (r"\bby\b|name|attn|attention|from|\bto\b|\bcc\b|sign|contact|manager|director|cashier|physician|patient", "name"),
    (r"sales|customer|client|member|operator|supervisor|author|spouse|speaker|requested|approved", "name company"),
)  # fmt: skip
ROWS = [(re.compile(pattern), tuple(kinds.split())) for pattern, kinds in LABELS]
SWAPPED = str.maketrans(",.", ".,")
OFFICES = ("info", "sales", "office", "contact", "support", "orders", "billing", "hr", "enquiry", "admin")
CASES: tuple[Callable[[str], str], ...] = (str.lower, str.upper, str.title, str.capitalize, str)


@lru_cache(maxsize=65536)
def kinds_for(label: str) -> tuple[str, ...]:
    """The kinds of text that fit a field label; none when its words say nothing."""
    label = label.lower()
    return next((kinds for pattern, kinds in ROWS if pattern.search(label)), ())


class Texts:
    """Draws texts by kind: `texts("price")`. Equal seeds give equal texts; all of them are printable ASCII."""

    def __init__(self, pools: dict[str, list[str]], seed: int = 0) -> None:
        missing = [kind for kind in POOLED if not pools.get(kind)]
        if missing:
            raise InputError(f"the pools lack {', '.join(missing)}: every pooled kind needs at least one text")
        self.rng = Random(seed)
        self._random = self.rng.random
        self._draws: dict[str, Callable[[], str]] = {kind: getattr(self, f"_{kind}") for kind in MADE}
        for kind in POOLED:
            self._draws[kind] = self._drawer(pools[kind], pools.get(CORPUS + kind, []), ranked=kind == "word")
        self._first, self._last = self._draws["first"], self._draws["last"]
        self._found_address = self._drawer(pools.get(CORPUS + "address", [""]), [], ranked=False)

    @classmethod
    def builtin(cls, seed: int = 0) -> Texts:
        """Texts from the small vocabulary of this package."""
        return cls(own_pools(Random(0)), seed)

    @classmethod
    def open(cls, path: str) -> Texts:
        """Texts from a file, or from the built-in vocabulary where the path is empty."""
        return cls.load(path) if path else cls.builtin()

    @classmethod
    def load(cls, path: str | os.PathLike[str], seed: int = 0) -> Texts:
        """Texts from a file that the build command wrote."""
        try:
            with gzip.open(path, "rt", encoding="ascii") as file:
                pools = json.load(file)
        except (OSError, EOFError, ValueError) as error:
            raise InputError(f"cannot read {path} as pools of texts: {error}") from error
        if not isinstance(pools, dict):
            raise InputError(f"cannot read {path} as pools of texts: it holds {shown(pools)}")
        return cls(pools, seed)

    def __call__(self, kind: str) -> str:
        """One text of a kind of KINDS."""
        try:
            return self._draws[kind]()
        except KeyError:
            raise InputError(f"no texts of kind {shown(kind)}: there are {', '.join(KINDS)}") from None

    def reseed(self, n: int) -> None:
        """Start the draws of seed `n`."""
        self.rng.seed(n)

    def value_for(self, key: str) -> str:
        """A plausible value for a field label."""
        kinds = kinds_for(key)
        if kinds:
            return self(self._pick(kinds))
        word = self._draws["word" if self._random() < 0.8 else "rare"]
        return self._pick(CASES)(" ".join([word() for _ in range(self._whole(1, 5))]))

    def _drawer(self, own: list[str], corpus: list[str], ranked: bool) -> Callable[[], str]:
        """A draw from a pool, evenly or, where the most frequent come first, by Zipf's law."""
        random, size, extra, exp = self._random, len(own), len(corpus), math.exp
        share = SHARE * min(1.0, extra / 200)
        log = math.log(size + 1)

        def even() -> str:
            return own[int(random() * size)]

        def by_rank() -> str:
            return own[min(int(exp(random() * log)), size) - 1]

        mine = by_rank if ranked else even
        if not extra:
            return mine
        return lambda: corpus[int(random() * extra)] if random() < share else mine()

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self._random() * len(choices))]

    def _whole(self, least: int, most: int) -> int:
        return least + int(self._random() * (most - least + 1))

    def _digits(self, count: int) -> str:
        return f"{int(self._random() * 10**count):0{count}d}"

    def _letters(self, count: int) -> str:
        return "".join([LETTERS[int(self._random() * 26)] for _ in range(count)])

    def _initials(self) -> str:
        letters = self._letters(2 if self._random() < 0.5 else 3)
        shape = self._whole(0, 4)
        if shape == 0:
            return ".".join(letters) + "."
        if shape == 1:
            return f"{letters}/{self._letters(2).lower()}"
        return letters.lower() if shape == 2 else letters

    def _name(self) -> str:
        first, last, shape = self._first(), self._last(), self._whole(0, 15)
        if shape < 3:
            return f"{first} {last}"
        if shape < 5:
            return f"{first[0]}. {self._letters(1)}. {last}"
        if shape == 5:
            return f"{first[0]}. {last}"
        if shape == 6:
            return f"{last}, {first}".upper()
        if shape == 7:
            return f"{last}, {first} {self._letters(1)}."
        if shape == 8:
            return f"{self._pick(('Dr.', 'Mr.', 'Ms.', 'Mrs.', 'Prof.', 'Miss', 'Dr', 'Mr'))} {first} {last}"
        if shape == 9:
            return f"{self._pick(('Dr.', 'Mr.', 'Ms.', 'Mrs.'))} {last}"
        if shape == 10:
            return f"{first} {self._letters(1)}. {last}"
        if shape == 11:
            return f"{first} {last}".upper()
        if shape == 12:
            return f"{first} {last}, {self._pick(('Ph.D.', 'M.D.', 'Jr.', 'Esq.', 'III', 'CPA', 'R.N.'))}"
        return self._eastern_name(shape)

    def _eastern_name(self, shape: int) -> str:
        if shape == 13:
            name = f"{self._pick(EAST_LAST)} {self._pick(EAST_FIRST)}"
        elif shape == 14:
            name = f"{self._pick(MALAY)} {self._pick(('bin', 'bt', 'binti', 'B.'))} {self._pick(MALAY)}"
        else:
            name = f"{self._pick(INDIAN)} {self._pick(('a/l ', 'a/p ', '', '', ''))}{self._pick(INDIAN)}"
        name = f"{self._pick(('Mr.', 'Ms.', 'Dr.', 'En.', 'Encik'))} {name}" if self._random() < 0.25 else name
        return name.upper() if self._random() < 0.35 else name

    def _date(self) -> str:
        year, m, d = self._whole(1945, 2026), self._whole(1, 12), self._whole(1, 28)
        return DATES[int(self._random() * len(DATES))](year, m, d, self)

    def _time(self) -> str:
        hour, minute, shape = self._whole(0, 23), self._whole(0, 59), self._whole(0, 4)
        if shape < 2:
            return f"{hour:02d}:{minute:02d}" if shape else f"{hour:02d}:{minute:02d}:{self._whole(0, 59):02d}"
        half = ("am", "AM", " a.m.") if hour < 12 else ("pm", "PM", " p.m.")
        space = " " if shape == 2 else ""
        return f"{hour % 12 or 12}:{minute:02d}{space}{half[shape - 2]}"

    def _amount(self) -> float:
        return 10 ** (self._random() * self._whole(1, 6)) * (0.1 + self._random())

    def _price(self) -> str:
        amount, shape = self._amount(), self._whole(0, 11)
        if shape < 4:
            return f"{amount:,.2f}"
        sign = self._pick(CURRENCIES)
        if shape < 8:
            return f"{sign}{amount:,.2f}"
        if shape == 8:
            return f"{sign}{amount:,.0f}"
        if shape == 9:
            return (
                f"{amount:,.2f}".translate(SWAPPED) if self._random() < 0.5 else f"EUR {amount:.2f}".replace(".", ",")
            )
        return f"({sign}{amount:,.2f})" if shape == 10 else f"{amount:.2f}"

    def _number(self) -> str:
        shape = self._whole(0, 7)
        if shape < 3:
            return str(self._whole(0, 99))
        amount = self._amount()
        if shape < 5:
            return f"{amount:,.0f}"
        if shape == 5:
            return f"{self._random() * self._pick((1, 10, 100)):.{self._whole(1, 3)}f}"
        return f"{amount:.0f}" if shape == 6 else f"{'-' if self._random() < 0.3 else ''}{amount:,.1f}"

    def _percent(self) -> str:
        value, shape = self._random() * 100, self._whole(0, 4)
        sign = self._pick(("%", "%", "%", " %", " percent", " pct."))
        return f"{value:.0f}{sign}" if shape < 2 else f"{value:.1f}{sign}" if shape < 4 else f"{value / 10:.2f}{sign}"

    def _code(self) -> str:
        return CODES[int(self._random() * len(CODES))](self)

    def _phone(self) -> str:
        return PHONES[int(self._random() * len(PHONES))](self)

    def _fax(self) -> str:
        number = self._phone()
        return f"{self._pick(('Fax: ', 'FAX ', '(Fax) '))}{number}" if self._random() < 0.1 else number

    def _email(self) -> str:
        first, last, shape = self._first().lower(), self._last().lower(), self._whole(0, 3)
        user = (f"{first}.{last}", f"{first[0]}{last}", f"{first}{self._whole(1, 99)}", self._pick(OFFICES))[shape]
        return f"{user}@{self._domain()}".replace(" ", "").replace("'", "")

    def _domain(self) -> str:
        name = self._draws["rare"]() if self._random() < 0.5 else self._last()
        return f"{''.join(filter(str.isalnum, name.lower())) or 'mail'}.{self._pick(DOMAINS)}"

    def _url(self) -> str:
        start = self._pick(("www.", "www.", "http://www.", "https://", "http://", ""))
        return f"{start}{self._domain()}{'/' + self._draws['word']() if self._random() < 0.3 else ''}"

    def _address(self) -> str:
        draws, shape = self._draws, self._whole(0, 7)
        if shape == 0 and (found := self._found_address()):
            return found
        street = f"{self._whole(1, 9999)} {draws['street']()}"
        if shape < 3:
            return f"{street}, {draws['city']()}, {draws['state']()} {self._digits(5)}"
        if shape == 3:
            return f"P.O. Box {self._whole(10, 9999)}, {draws['city']()}, {draws['state']()} {self._digits(5)}"
        if shape == 4:
            return f"No. {self._whole(1, 99)}, {draws['street']()}, {self._digits(5)} {draws['city']()}".upper()
        if shape == 5:
            return f"{draws['city']()}, {draws['state']()} {self._digits(5)}"
        return f"{street}, {draws['city']()}, {draws['country']()}" if shape == 6 else street

    def _quantity(self) -> str:
        amount = str(self._whole(1, 999)) if self._random() < 0.6 else f"{self._random() * 50:.{self._whole(1, 2)}f}"
        return f"{amount}{' ' if self._random() < 0.75 else ''}{self._draws['unit']()}"


def _ordinal(day: int) -> str:
    return f"{day}{'th' if day in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _year(year: int) -> str:
    return f"{year % 100:02d}"


DATES: tuple[Callable[[int, int, int, Texts], str], ...] = (
    lambda y, m, d, t: f"{m}/{d}/{_year(y)}",
    lambda y, m, d, t: f"{m:02d}/{d:02d}/{_year(y)}",
    lambda y, m, d, t: f"{m:02d}/{d:02d}/{y}",
    lambda y, m, d, t: f"{d:02d}/{m:02d}/{y}",
    lambda y, m, d, t: f"{d}/{m}/{y}",
    lambda y, m, d, t: f"{d:02d}-{m:02d}-{y}",
    lambda y, m, d, t: f"{m}-{d}-{_year(y)}",
    lambda y, m, d, t: f"{d:02d}.{m:02d}.{y}",
    lambda y, m, d, t: f"{y}-{m:02d}-{d:02d}",
    lambda y, m, d, t: f"{y}/{m:02d}/{d:02d}",
    lambda y, m, d, t: f"{y}{m:02d}{d:02d}",
    lambda y, m, d, t: f"{y}-{m:02d}-{d:02d} {t._whole(0, 23):02d}:{t._whole(0, 59):02d}",
    lambda y, m, d, t: f"{d:02d}/{m:02d}/{y} {t._time()}",
    lambda y, m, d, t: f"{MONTHS[m - 1]} {d}, {y}",
    lambda y, m, d, t: f"{MONTHS[m - 1]} {d}, {y}",
    lambda y, m, d, t: f"{MONTHS[m - 1]} {_ordinal(d)}, {y}",
    lambda y, m, d, t: f"{MONTHS[m - 1].upper()} {d}, {y}",
    lambda y, m, d, t: f"{d} {MONTHS[m - 1]} {y}",
    lambda y, m, d, t: f"{MONTHS[m - 1]} {y}",
    lambda y, m, d, t: f"{MONTHS[m - 1]} {d}",
    lambda y, m, d, t: f"{d:02d} {SHORT[m - 1]} {y}",
    lambda y, m, d, t: f"{SHORT[m - 1]} {d}, {y}",
    lambda y, m, d, t: f"{SHORT[m - 1]}. {d}, {y}",
    lambda y, m, d, t: f"{d:02d}-{SHORT[m - 1].upper()}-{y}",
    lambda y, m, d, t: f"{d}-{SHORT[m - 1]}-{_year(y)}",
    lambda y, m, d, t: f"{SHORT[m - 1]}-{_year(y)}",
    lambda y, m, d, t: f"{t._pick(DAYS)}, {MONTHS[m - 1]} {d}, {y}",
    lambda y, m, d, t: f"{t._pick(DAYS)[:3]} {d:02d}/{m:02d}/{_year(y)}",
    lambda y, m, d, t: f"the {_ordinal(d)} of {MONTHS[m - 1]} {y}",
)

CODES: tuple[Callable[[Texts], str], ...] = (
    lambda t: t._digits(9),
    lambda t: t._digits(t._whole(4, 12)),
    lambda t: t._digits(t._whole(5, 8)),
    lambda t: t._letters(2) + t._digits(8),
    lambda t: t._letters(t._whole(1, 4)) + t._digits(t._whole(2, 7)),
    lambda t: f"{t._letters(1)}-{t._digits(4)}/{t._letters(1)}",
    lambda t: f"({t._digits(6)}-{t._letters(1)})",
    lambda t: f"{t._letters(t._whole(2, 4))}-{t._digits(t._whole(2, 6))}",
    lambda t: f"{t._digits(t._whole(2, 4))}-{t._digits(t._whole(2, 6))}",
    lambda t: f"{t._digits(3)}-{t._digits(2)}-{t._digits(4)}",
    lambda t: f"{t._letters(2)}-{t._whole(1970, 2024)}-{t._digits(4)}",
    lambda t: f"{t._digits(2)}/{t._digits(t._whole(3, 5))}",
    lambda t: f"{t._whole(1, 9)}.{t._whole(0, 20)}.{t._whole(0, 99)}",
    lambda t: f"#{t._digits(t._whole(3, 6))}",
    lambda t: f"{t._digits(12)}",
    lambda t: f"{t._letters(1)}{t._digits(2)}{t._letters(2)}{t._digits(3)}",
    lambda t: (
        f"XXXX XXXX XXXX {t._digits(4)}" if t._random() < 0.3 else f"{t._digits(4)} {t._digits(4)} {t._digits(4)}"
    ),
)

PHONES: tuple[Callable[[Texts], str], ...] = (
    lambda t: f"({t._whole(201, 989)}) {t._whole(200, 999)}-{t._digits(4)}",
    lambda t: f"({t._whole(201, 989)}) {t._whole(200, 999)}-{t._digits(4)}",
    lambda t: f"{t._whole(201, 989)}-{t._whole(200, 999)}-{t._digits(4)}",
    lambda t: f"{t._whole(201, 989)}/{t._whole(200, 999)}-{t._digits(4)}",
    lambda t: f"{t._whole(201, 989)}.{t._whole(200, 999)}.{t._digits(4)}",
    lambda t: f"1-800-{t._digits(3)}-{t._digits(4)}",
    lambda t: f"{t._whole(200, 999)}-{t._digits(4)}",
    lambda t: f"0{t._whole(3, 9)}-{t._digits(4)} {t._digits(4)}",
    lambda t: f"0{t._whole(3, 9)}-{t._digits(8)}",
    lambda t: f"+60{t._whole(3, 19)}-{t._digits(7)}",
    lambda t: f"01{t._whole(0, 9)}-{t._digits(3)} {t._digits(4)}",
    lambda t: f"+{t._whole(1, 98)} {t._digits(2)} {t._digits(3)} {t._digits(4)}",
    lambda t: f"({t._whole(201, 989)}) {t._whole(200, 999)}-{t._digits(4)} ext. {t._whole(10, 999)}",
    lambda t: f"0{t._digits(2)} {t._digits(4)} {t._digits(4)}",
)
