"""Questions that follow from the lines of a page: keys and values, table cells, dates, totals, titles.

People asked a few questions about each page, which are soon memorised; these are many more. Names that a page has more
than once are not asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from homunculus.reader.lines import Line
from homunculus.train.questions import templates
from homunculus.train.questions.geometry import Array, Geometry
from homunculus.train.questions.pages import TextQuestion

MAX_NAME, MAX_VALUE = 40, 60  # characters
BESIDE = 14.0  # line heights between a key and its value
TITLE = 1.25  # a title is so much higher than the other lines
CERTAIN = 0.9  # confidence of a machine-read line that an answer is taken from
DOCUMENT_KINDS = frozenset({"title", "page_number", "percent", "person", "zip"})
_KEY_VALUE = re.compile(r"^(.{2,40}?)\s?:\s?(\S.*)$")
_AMOUNT = re.compile(r"^[A-Z$]{0,4} ?\$?-?\d[\d,]*(?:\.\d\d?)?$")
_NUMBER = re.compile(r"^[$(+-]?\s?[\d,.]*\d[\d,.]*\s?[%)a-z]{0,3}$")


def auto_questions(lines: Sequence[Line], document: bool = True) -> tuple[TextQuestion, ...]:
    """All questions of a page that follow from its lines; `templates.phrase` words them.

    `document` is false for receipts and charts, which have no titles, page numbers and the like.
    """
    geometry = Geometry.of(lines)
    names = [name_of(line.text) for line in lines]
    found = [*_in_line(lines), *_beside(lines, names, geometry), *_below(lines, names, geometry)]
    found += _cells(lines, names, geometry, 2 if document else 3)
    times = Counter(one.text.lower() for one in found)
    found = [one for one in found if times[one.text.lower()] == 1]
    found += [*_by_pattern(lines), *_totals(lines, geometry)]
    found += [*_title(lines, geometry), *_page_number(lines, geometry)]
    found = [one for one in found if document or one.kind not in DOCUMENT_KINDS]
    return tuple(one for one in found if all(lines[i].confidence >= CERTAIN for i in one.holders[0]))


def name_of(text: str) -> str:
    """A text as the name of a field, without the marks around it; empty if it is not one."""
    text = text.strip(" :.-_#*=|>[]")
    letters = sum(map(str.isalpha, text))
    good = 2 <= len(text) <= MAX_NAME and len(text.split()) <= 6 and letters >= 0.6 * len(text.replace(" ", ""))
    return text if good else ""


def _value(text: str) -> str:
    """A text as the value of a field; empty if it is none, or a key itself."""
    text = text.strip(" :_|")
    return text if text and len(text) <= MAX_VALUE and any(map(str.isalnum, text)) else ""


def _question(kind: str, names: tuple[str, ...], value: str, *holders: int) -> TextQuestion:
    """A question of a kind that `templates.phrase` words anew each time it is asked."""
    return TextQuestion(templates.JOIN.join(names), value, (holders,), kind)


def _in_line(lines: Sequence[Line]) -> Iterator[TextQuestion]:
    """Key: value, in one line."""
    for i, line in enumerate(lines):
        found = _KEY_VALUE.match(line.text)
        if not found or (found[1][-1:].isdigit() and found[2][:1].isdigit()):  # a time
            continue
        name, value = name_of(found[1]), _value(found[2])
        if name and value and not value.startswith("//") and ":" not in value.rstrip(":")[:-3]:
            yield _question("key", (name,), value, i)


def _beside(lines: Sequence[Line], names: Sequence[str], geometry: Geometry) -> Iterator[TextQuestion]:
    """A name and, next in its row, the value."""
    for row in geometry.rows:
        for left, right in pairwise(row):
            value, keyed = _value(lines[right].text), lines[left].text.rstrip().endswith((":", "..", "="))
            gap = lines[right].box[0] - lines[left].box[2]
            near = gap < BESIDE * geometry.heights[left]
            plain = bool(_NUMBER.match(value)) and len(row) == 2
            if names[left] and value and near and (keyed or plain) and not lines[right].text.rstrip().endswith(":"):
                yield _question("key" if keyed else "row", (names[left],), value, right)


def _below(lines: Sequence[Line], names: Sequence[str], geometry: Geometry) -> Iterator[TextQuestion]:
    """A name that ends with a colon and has nothing beside it, and the value under it."""
    last = {row[-1] for row in geometry.rows}
    for i, line in enumerate(lines):
        if not names[i] or not line.text.rstrip().endswith(":") or i not in last:
            continue
        under = geometry.below(i)
        if under is None or lines[under].text.rstrip().endswith(":"):
            continue
        value = _value(lines[under].text)
        if value and abs(lines[under].box[0] - line.box[0]) < 3 * geometry.heights[i]:
            yield _question("key", (names[i],), value, under)


def _cells(lines: Sequence[Line], names: Sequence[str], geometry: Geometry, least: int) -> Iterator[TextQuestion]:
    """Table cells by the first name of their row and the name, or year, above their column.

    A row with at least `least` names or years is a header.
    """
    years = [line.text.strip(" *") if _is_year(line.text) else "" for line in lines]
    heads = ["" if ":" in name else name or year for name, year in zip(names, years, strict=True)]
    numeric = [bool(_NUMBER.match(line.text)) and not _is_year(line.text) for line in lines]
    header = {i for row in geometry.rows if sum(bool(heads[i]) for i in row) >= least for i in row if heads[i]}
    for row in geometry.rows:
        if len(row) < 2 or not names[row[0]] or lines[row[0]].text.rstrip().endswith(":"):
            continue
        for cell in (i for i in row[1:] if numeric[i]):
            column = geometry.above(cell)
            head = next((i for i in column if not numeric[i]), None)
            if head in header and heads[head].lower() != names[row[0]].lower():
                body = sum(numeric[i] for i in column[: column.index(head)])
                if body or len(row) > 2:
                    yield _question("cell", (names[row[0]], heads[head]), lines[cell].text, cell)


def _by_pattern(lines: Sequence[Line]) -> Iterator[TextQuestion]:
    """Dates, numbers and names that are the only ones of their form on the page."""
    for kind, pattern in templates.PATTERNS.items():
        hits = [(i, hit.group().strip(" ,.")) for i, line in enumerate(lines) for hit in pattern.finditer(line.text)]
        if len(hits) == 1:
            yield TextQuestion(kind, hits[0][1], ((hits[0][0],),), kind)


def _totals(lines: Sequence[Line], geometry: Geometry) -> Iterator[TextQuestion]:
    """The amount beside the only line that says total."""
    named = [i for i, line in enumerate(lines) if re.search(r"\b(?:grand )?total\b", line.text, re.I)]
    if len(named) == 1:
        row = next(row for row in geometry.rows if named[0] in row)
        right = [i for i in row if geometry.boxes[i, 0] > geometry.boxes[named[0], 0] and _AMOUNT.match(lines[i].text)]
        if len(right) == 1:
            yield TextQuestion("total", lines[right[0]].text, ((right[0],),), "total")


def _title(lines: Sequence[Line], geometry: Geometry) -> Iterator[TextQuestion]:
    """The line near the top that is higher than all others."""
    high: Array = geometry.heights
    upper = sorted(np.flatnonzero(geometry.share_y < 0.3).tolist(), key=lambda i: -high[i])
    if len(lines) < 5 or len(upper) < 2 or not _long_name(lines[upper[0]].text):
        return
    if high[upper[0]] > TITLE * max(high[upper[1]], float(np.median(high))):
        yield TextQuestion("title", lines[upper[0]].text, ((upper[0],),), "title")


def _page_number(lines: Sequence[Line], geometry: Geometry) -> Iterator[TextQuestion]:
    """The only short number at the top or bottom of the page."""
    found = [i for i, line in enumerate(lines) if re.fullmatch(r"(?:page |- ?)?\d{1,3}(?: ?-)?", line.text, re.I)]
    found = [i for i in found if not 0.05 <= geometry.share_y[i] <= 0.93]
    if len(found) == 1:
        number = re.sub(r"\D", "", lines[found[0]].text)
        yield TextQuestion("page_number", number, ((found[0],),), "page_number")


def _long_name(text: str) -> bool:
    return len(name_of(text)) >= 6


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"(?:19|20)\d\d\*?", text.strip()))
