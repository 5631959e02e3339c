"""Questions to be worked out from what a page lists: the largest, the difference of two, how many exceed a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from homunculus.train.synth.documents.page import Mark, Pen, cleaned
from homunculus.train.synth.documents.wording import TEMPLATES

FEW = 4  # marks that a count is shown by; a longer list is shown by none
LONG = 36  # characters of a name that questions use
YES, NO = "Yes", "No"


@dataclass
class Series:
    """Named numbers that can be compared: the bars of a chart, a column of a table, the items of a bill."""

    setting: str  # chart, table or bill: which wordings fit
    thing: str
    measure: str
    names: list[Mark]
    values: list[float]
    marks: list[Mark]  # the numbers as printed; nothing where one has to be read off an axis
    decimals: int = 2
    group: str = ""  # which of several, as the end of a question
    shape: str = "row"
    gap: float = 0.0  # smaller differences are not seen where numbers are not printed
    also: Sequence[float] = ()  # other numbers of the same things, which must not disagree
    summed: bool = False  # the page gives the sum itself, or it says nothing
    slots: dict[str, str] = field(init=False, repr=False)
    known: list[int] = field(init=False, repr=False)  # those that have a name of their own

    def __post_init__(self) -> None:
        texts = [mark.text for mark in self.names]
        self.known = [at for at, text in enumerate(texts) if 0 < len(text) <= LONG and texts.count(text) == 1]
        self.slots = {"thing": self.thing, "things": plural(self.thing), "measure": self.measure, "group": self.group,
                      "shape": self.shape, "shapes": plural(self.shape)}  # fmt: skip

    def way(self, name: str) -> str:
        """The templates of a question in this setting."""
        own, dated = f"{name}_{self.setting}", f"{name}_dated"
        if dated in TEMPLATES and self.names[self.known[0]].text.isdigit():
            return dated
        return own if own in TEMPLATES else name

    def over(self, one: int, other: int) -> int:
        """1 if one number is clearly above the other, -1 if clearly below, 0 if that cannot be told."""
        step = self.values[one] - self.values[other]
        if abs(step) <= (0.0 if self.marks[one] and self.marks[other] else self.gap):
            return 0
        if self.also and (self.also[one] - self.also[other]) * step <= 0:
            return 0
        return 1 if step > 0 else -1


def plural(noun: str) -> str:
    """More than one of a thing."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun if noun.endswith("series") else noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")


def plain(value: float, decimals: int) -> str:
    """A number with at most so many decimals, without closing noughts."""
    text = f"{value:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def read_off(value: float, end: float) -> str:
    """A value as one reads it off an axis that ends at `end`: to about a fiftieth of it."""
    scale = 10.0 ** math.floor(math.log10(end / 50))
    step = next(scale * factor for factor in (5, 2, 1) if scale * factor <= end / 50 * 1.0001)
    return plain(round(value / step) * step, max(0, -math.floor(math.log10(step) + 1e-9)))


def between(low: float, high: float) -> str:
    """The number of fewest digits in the middle between two, if there is one."""
    for digits in range(1, 5):
        middle = float(f"{(low + high) / 2:.{digits}g}")
        if low < middle < high:
            return plain(middle, 4)
    return ""


def few(marks: Sequence[Mark]) -> Sequence[Mark]:
    """What a count is shown by."""
    return marks if len(marks) <= FEW and all(marks) else ()


def count(pen: Pen, things: str, number: int, marks: Sequence[Mark] = (), under: str = "") -> None:
    """How many of something there are, on the page or under a heading."""
    if under:
        pen.reply("count", "how_many_under", str(number), few(marks), things=things, text=under)
    else:
        pen.reply("count", "how_many", str(number), few(marks), things=things)


def claim(pen: Pen, name: str, truth: bool, marks: Mark | Sequence[Mark] = (), /, **slots: str) -> None:
    """Whether something is so."""
    pen.reply("yesno", name, YES if truth else NO, marks, **slots)


def compare(pen: Pen, series: Series) -> None:
    """Some questions of every sort about a series."""
    if len(series.known) > 1:
        extremes(pen, series)
        for _ in range(3):
            pair(pen, series)
        whole(pen, series)
        limits(pen, series)
        claims(pen, series)


def extremes(pen: Pen, series: Series) -> None:
    """The largest and the smallest, and those next to them."""
    values, last = series.values, len(series.values) - 1
    order = sorted(range(last + 1), key=values.__getitem__)
    for name, place in (("lowest", 0), ("highest", last), ("second_lowest", 1), ("second_highest", last - 1)):
        second = name.startswith("second")
        if second and (last < 3 or series.also or pen.rng.random() < 0.5):
            continue
        at = order[place]
        if not all(series.over(at, other) for other in (order[:place][-1:] + order[place + 1 : place + 2])):
            continue
        if series.also and any(series.over(at, other) == 0 for other in order if other != at):
            continue
        if at in series.known:
            pen.ask("compare", series.way(name), series.names[at], **series.slots)
        if not second and series.setting != "bill" and pen.rng.random() < 0.6:
            pen.ask("compare", f"{name}_value", series.marks[at], **series.slots)


def pair(pen: Pen, series: Series) -> None:
    """Two of them compared, or a number worked out from both."""
    one, other = pen.rng.sample(series.known, 2)
    names = {"a": series.names[one].text, "b": series.names[other].text}
    side = series.over(one, other)
    if side and pen.rng.random() < 0.4:
        up = pen.rng.random() < 0.5
        mark = series.names[one if (side > 0) == up else other]
        pen.ask("compare", series.way("larger" if up else "smaller"), mark, **series.slots, **names)
    elif series.marks[one] and series.marks[other]:
        name = pen.rng.choice(("difference", "difference", "sum", "average", "ratio"))
        answer = worked_out(name, series.values[one], series.values[other], series.decimals)
        if answer:
            marks = (series.marks[one], series.marks[other])
            pen.reply("compare", series.way(name), answer, marks, **series.slots, **names)


def worked_out(name: str, a: float, b: float, decimals: int) -> str:
    """The difference, sum, average or ratio of two numbers; nothing if it makes no sense."""
    if name == "difference":
        return plain(abs(a - b), decimals)
    if name == "sum":
        return plain(a + b, decimals)
    if name == "average":
        return plain((a + b) / 2, min(2, decimals + 1))
    return plain(a / b, 2) if a > 0 and b > 0 and 0.05 < a / b < 100 else ""


def whole(pen: Pen, series: Series) -> None:
    """Numbers worked out from all: the range, and of few ones their sum, average and median."""
    values, rng = series.values, pen.rng
    low, high = values.index(min(values)), values.index(max(values))
    if series.marks[low] and series.marks[high] and series.setting != "bill":
        span = plain(values[high] - values[low], series.decimals)
        pen.reply("compare", "range", span, (series.marks[high], series.marks[low]), **series.slots)
    if series.summed or len(values) > 6 or not all(series.marks):
        return
    if rng.random() < 0.5:
        pen.reply("compare", "sum_all", plain(sum(values), series.decimals), few(series.marks), **series.slots)
    if rng.random() < 0.5:
        pen.reply("compare", "average_all", plain(sum(values) / len(values), 2), few(series.marks), **series.slots)
    if len(values) % 2 and rng.random() < 0.5:
        middle = sorted(range(len(values)), key=values.__getitem__)[len(values) // 2]
        if values.count(values[middle]) == 1:
            pen.ask("compare", "median", series.marks[middle], **series.slots)


def limits(pen: Pen, series: Series) -> None:
    """How many are above or below a limit."""
    above, size = pen.rng.random() < 0.6, len(series.values)
    gap = 0.0 if all(series.marks) else series.gap
    number = pen.rng.randint(1, min(8, size - 1))
    order = sorted(range(size), key=series.values.__getitem__, reverse=above)
    ends = sorted((series.values[order[number - 1]], series.values[order[number]]))
    limit = between(ends[0] + gap, ends[1] - gap)
    if not limit:
        return
    if series.also and sum((value > float(limit)) == above for value in series.also) != number:
        return
    marks = [series.names[at] for at in order[:number]]
    name = series.way("count_above" if above else "count_under")
    pen.reply("count", name, str(number), few(marks), **series.slots, limit=limit)


def claims(pen: Pen, series: Series) -> None:
    """Whether one is larger than another, and whether one is above a limit."""
    rng = pen.rng
    one, other = rng.sample(series.known, 2)
    up, side = rng.random() < 0.5, series.over(one, other)
    if side:
        name = series.way("is_larger" if up else "is_smaller")
        marks = (series.marks[one] or series.names[one], series.marks[other] or series.names[other])
        names = {"a": series.names[one].text, "b": series.names[other].text}
        claim(pen, name, (side > 0) == up, marks, **series.slots, **names)
    value, truth = series.values[one], rng.random() < 0.5
    low = rng.random() < 0.5  # whether the limit is below the value
    gap = 0.0 if series.marks[one] else series.gap
    limit = between(0.5 * value, 0.97 * value - gap) if low else between(1.03 * value + gap, 1.6 * value + gap)
    if limit and value > 0 and not series.also:
        name = series.way("is_above" if low == truth else "is_under")
        mark = series.marks[one] or series.names[one]
        claim(pen, name, truth, mark, **series.slots, a=series.names[one].text, limit=limit)


def total_claim(pen: Pen, total: float, mark: Mark) -> None:
    """Whether the sum of a bill is above or below a limit."""
    truth, low = pen.rng.random() < 0.5, pen.rng.random() < 0.5
    limit = between(0.4 * total, 0.97 * total) if low else between(1.03 * total, 2 * total)
    if limit and total > 0 and mark:
        claim(pen, "total_above" if low == truth else "total_under", truth, mark, limit=limit)


def listed(pen: Pen, marks: Sequence[Mark]) -> None:
    """Which of two entries stands first; the entries come from top to bottom."""
    texts = [cleaned(mark.text) for mark in marks]
    known = [at for at, text in enumerate(texts) if 0 < len(text) <= LONG and texts.count(text) == 1]
    for _ in range(min(2, len(known) - 1)):
        one, other = sorted(pen.rng.sample(known, 2))
        if marks[other].y0 < marks[one].y1 - 0.01 and marks[one].y1:  # side by side
            continue
        turned = pen.rng.random() < 0.5
        a, b = (other, one) if turned else (one, other)
        if pen.rng.random() < 0.5:
            early = pen.rng.random() < 0.5
            name, mark = ("earlier", marks[one]) if early else ("later", marks[other])
            pen.ask("compare", name, mark, a=texts[a], b=texts[b])
        else:
            claim(pen, "is_before", not turned, (marks[a], marks[b]), a=texts[a], b=texts[b])
