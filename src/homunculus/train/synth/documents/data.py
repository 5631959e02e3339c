"""Made-up data of charts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from homunculus.train.synth.documents.page import Pen
from homunculus.train.synth.text import KINDS

MEASURES = (
    "Revenue", "Sales", "Number of users", "Share", "Production", "Population", "Rate", "Price", "Value",
    "Amount", "Percentage", "Exports", "Cases", "Spending", "Score", "Visitors", "Emissions", "Employees",
    "Index",
)  # fmt: skip
UNITS = (
    "in million U.S. dollars",
    "in percent",
    "in thousands",
    "in millions",
    "per capita",
    "in tons",
    "in billion euros",
    "",
)
LEVELS = (
    "Very good",
    "Good",
    "Fair",
    "Poor",
    "Very poor",
    "Don't know",
    "Approve",
    "Disapprove",
    "Often",
    "Never",
    "Sometimes",
)


@dataclass
class Data:
    """What a chart shows: values [series][category], as numbers and as they are written."""

    thing: str
    measure: str
    categories: list[str]
    series: list[str]
    values: list[list[float]]
    decimals: int
    grouped: str

    def shown(self, value: float) -> str:
        """A value as the chart writes it."""
        return f"{value:,.{self.decimals}f}".replace(",", self.grouped)

    def top(self) -> float:
        """A round number above all values."""
        most = max(max(row) for row in self.values)
        step = 10.0 ** math.floor(math.log10(most))
        return next(step * factor for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * factor >= most * 0.999)


def draw_data(pen: Pen, series: int, most: int) -> Data:
    """Made-up data of up to so many categories."""
    rng, texts = pen.rng, pen.texts
    count = rng.randint(max(3, most // 3), max(3, most))
    way = rng.random()
    if way < 0.4:
        step, first = rng.choice((1, 1, 1, 2, 5)), rng.randint(1960, 2000)
        thing, categories = "year", [str(first + index * step) for index in range(count)]
    elif way < 0.5:
        thing, categories = "option", rng.sample(LEVELS, min(count, len(LEVELS)))
    else:
        thing = rng.choice(("country", "product", "company", "city", "month", "department", "state"))
        categories = list(dict.fromkeys(texts(thing) for _ in range(count)))
    kinds = [rng.choice(("title", "word", "word", "product", "product", "country")) for _ in range(series)]
    names = list(dict.fromkeys(texts(kind).capitalize() for kind in kinds))
    scale, drift = 10.0 ** rng.uniform(0.5, 4), rng.uniform(0.3, 1)
    values = []
    for _ in names:
        level, row = rng.uniform(0.3, 1), []
        for _ in categories:
            level = max(level * (1 + drift * rng.uniform(-0.45, 0.5)), 0.06 + 0.05 * rng.random())
            row.append(level * scale)
        values.append(row)
    decimals = 0 if scale > 300 and rng.random() < 0.7 else rng.choice((1, 2) if scale < 3000 else (0, 1))
    values = [[round(value, decimals) for value in row] for row in values]
    return Data(thing, rng.choice(MEASURES), categories, names, values, decimals, rng.choice(("", ",", ",", " ")))


def stranger(pen: Pen, data: Data) -> str:
    """A category as the chart might have it; it may have it."""
    if data.categories[0].isdigit():
        return str(int(data.categories[0]) - pen.rng.randint(1, 9))
    if data.thing == "option":
        return pen.rng.choice(LEVELS)
    return str(pen.texts(data.thing if data.thing in KINDS else "word"))
