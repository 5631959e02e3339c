"""The long tables of business pages: columns that fit the page, wrapped texts, rules and stripes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homunculus.train.synth.documents.business_parts import FULL, put
from homunculus.train.synth.documents.page import DOWN, LEAST, NOTHING, UP, Mark, Pen

RULES = ("none", "head", "head", "rows", "rows", "stripes", "stripes", "all", "columns")


@dataclass
class Column:
    """A column: its key, its header (a second line after a bar), how it is aligned, and what may be left out first."""

    key: str
    head: str
    align: str = "left"
    wraps: bool = False  # takes the room that is left
    rank: int = 0  # columns of the highest rank go first where room is short


class Listing:
    """Draws a table of rows, each a mapping from the keys of columns to texts."""

    def __init__(self, pen: Pen, columns: Sequence[Column], x0: float, x1: float, size: float = 0.0) -> None:
        rng, self.pen, self.columns, self.x0, self.x1 = pen.rng, pen, list(columns), x0, x1
        self.size = size or pen.style.size
        self.rules, self.dark = rng.choice(RULES), rng.choice((0.0, 0.0, 0.08, 0.15, 0.85))
        self.tint = rng.choice((0.0, rng.random()))
        self.leading = rng.choice((1.35, 1.45, 1.6, 1.8) if self.rules in ("rows", "all") else (1.2, 1.3, 1.45, 1.7))
        self.font = pen.style.body
        self.edges: list[float] = []
        self.top = 0.0
        self.heads: dict[str, Mark] = {}
        self.count = 0

    def fit(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Choose the columns that fit, the size of print, and the edges."""
        while True:
            need = [self._need(column, rows) for column in self.columns]
            wide = self.x1 - self.x0
            if sum(need) <= wide or len(self.columns) < 3:
                break
            smaller = max(LEAST, 0.82 * self.pen.style.size)
            if self.size > smaller:
                self.size = max(smaller, self.size * 0.94)
                continue
            last = max(self.columns, key=lambda column: column.rank)
            if not last.rank:
                break
            self.columns.remove(last)
        spare = max(0.0, wide - sum(need))
        takes = [column.wraps for column in self.columns]
        even = not any(takes) or self.pen.rng.random() < 0.15
        count = len(takes) if even else sum(takes)
        self.edges = [self.x0]
        scale = min(1.0, wide / sum(need))
        for one, take in zip(need, takes, strict=True):
            self.edges.append(self.edges[-1] + one * scale + (spare / count if even or take else 0.0))

    def _need(self, column: Column, rows: Sequence[Mapping[str, str]]) -> float:
        """The least width of a column."""
        pen, bold = self.pen, self.pen.style.bold
        wide = max(pen.measure(part, self.size, bold) for part in column.head.split("|"))
        texts = [row.get(column.key, "") for row in rows]
        if column.wraps:
            words = max((pen.measure(word, self.size, bold) for text in texts for word in text.split()), default=0.0)
            return max(wide, words, 9 * self.size) + 0.9 * self.size
        return max([wide, *(pen.measure(text, self.size, bold) for text in texts)]) + 0.9 * self.size

    def _cell(self, column: int, text: str, y: float, font: int, ink: float = 0.0) -> Mark:
        x0, x1 = self.edges[column] + 0.4 * self.size, self.edges[column + 1] - 0.4 * self.size
        align = self.columns[column].align
        x = x0 if align == "left" else x1 if align == "right" else (x0 + x1) / 2
        return put(self.pen, text, x, y, self.size, font, align, x1 - x0 + 0.2 * self.size, ink) if text else NOTHING

    def header(self) -> None:
        """The row of headers, of one or two lines."""
        pen, style = self.pen, self.pen.style
        parts = [column.head.split("|") for column in self.columns]
        tall = max(map(len, parts))
        self.top, step = pen.y, 1.15 * self.size
        height = tall * step + 0.45 * self.size
        if self.dark:
            pen.fill(self.edges[0], self.top, self.edges[-1], self.top + height, self.dark, self.tint)
        ink = -style.ink if self.dark > 0.5 else style.ink
        for at, part in enumerate(parts):
            marks = [self._cell(at, text, pen.y + 0.25 * self.size + line * step, style.bold, ink)
                     for line, text in enumerate(part)]  # fmt: skip
            whole = Mark(" ".join(part), marks[0].first, marks[-1].last) if all(marks) else NOTHING
            self.heads[self.columns[at].key] = whole
        pen.y += height
        if self.rules != "none" and not self.dark:
            pen.rule(self.edges[0], pen.y, self.edges[-1], pen.y)
        pen.y += 0.2 * self.size

    def row(self, cells: Mapping[str, str], font: int = -1, detail: str = "") -> dict[str, list[Mark]]:
        """One row, with a detail in smaller print below its wrapped text; empty where the page is full."""
        pen, step = self.pen, 1.15 * self.size
        font = self.font if font < 0 else font
        texts = [self._wrapped(at, cells.get(column.key, ""), font) for at, column in enumerate(self.columns)]
        tall = max(map(len, texts))
        height = (tall - 1 + bool(detail)) * step + self.leading * self.size
        middle = 0.5 * (self.leading - UP - DOWN) * self.size  # from a line between rows to the text below it
        if pen.y + height > pen.bottom or pen.glyphs > FULL:
            return {}
        if self.rules == "stripes" and self.count % 2 == 0:
            pen.fill(self.edges[0], pen.y - middle, self.edges[-1], pen.y + height - middle, 0.07, self.tint)
        marks = {}
        for at, (column, parts) in enumerate(zip(self.columns, texts, strict=True)):
            written = [self._cell(at, text, pen.y + line * step, font) for line, text in enumerate(parts)]
            marks[column.key] = [mark for mark in written if mark] if all(written) else []
            if detail and column.wraps:
                self._detail(at, detail, pen.y + len(parts) * step, font)
        pen.y += height
        if self.rules in ("rows", "all"):
            y = pen.y - middle
            pen.rule(self.edges[0], y, self.edges[-1], y, 1, 0.4)
        self.count += 1
        return marks

    def _detail(self, at: int, text: str, y: float, font: int) -> None:
        x, wide = self.edges[at] + 0.4 * self.size, self.edges[at + 1] - self.edges[at] - 0.8 * self.size
        put(self.pen, text, x, y, 0.85 * self.size, font, limit=wide)

    def _wrapped(self, at: int, text: str, font: int) -> list[str]:
        if not self.columns[at].wraps:
            return [text]
        return self.pen.wrap(text, self.edges[at + 1] - self.edges[at] - 0.9 * self.size, self.size, font) or [""]

    def group(self, text: str) -> Mark:
        """A row that names the rows below it."""
        pen = self.pen
        if pen.y + 2.5 * self.leading * self.size > pen.bottom:
            return NOTHING
        mark = put(
            pen, text, self.edges[0] + 0.4 * self.size, pen.y, self.size, pen.style.bold, limit=self.x1 - self.x0
        )
        pen.y += self.leading * self.size
        self.count = 0
        return mark

    def close(self, below: float = 0.0) -> None:
        """The rules around the table, and some room."""
        pen, low = self.pen, self.pen.y - 0.1 * self.size
        if self.rules in ("all", "columns"):
            for x in self.edges:
                pen.rule(x, self.top, x, low, 1, 0.6)
        if self.rules in ("all", "columns", "head"):
            for y in (self.top, low):
                pen.rule(self.edges[0], y, self.edges[-1], y)
        pen.y += (below or 0.6) * self.size
