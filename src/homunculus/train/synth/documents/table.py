"""Tables: with and without rules, numbers to the right, header rows, groups, totals, notes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from homunculus.train.synth.documents.page import NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import NTH, after_label, letterhead, running
from homunculus.train.synth.documents.reasoning import Series, compare, count, listed, plural

HEADERS = {
    "price": ("Price", "Cost", "Amount", "Sales", "Budget", "Revenue", "Expenses", "Balance", "Salary"),
    "number": ("Number", "Total", "Sample", "Production", "Volume", "Index", "Count", "Actual", "Plan", "Weight"),
    "percent": ("%", "Share", "Change", "Rate", "Percent", "Growth", "% of total", "Margin"),
    "quantity": ("Qty", "Units", "Patients", "Cases", "Pages", "Stores", "Samples", "Hours", "Days"),
    "date": ("Date", "Due date", "Start", "End", "Completed", "Received"),
    "code": ("Code", "Ref.", "Item No.", "Account", "File", "ID", "Part No."),
    "name": ("Name", "Contact", "Manager", "Author", "Assigned to", "Responsible"),
    "city": ("City", "Location", "Place", "Market"),
    "unit": ("Unit", "Measure"),
}
ROWS = {
    "product": ("Product", "Item", "Brand", "Description", "Article"),
    "country": ("Country", "Nation", "Region"),
    "state": ("State", "Region"),
    "department": ("Department", "Division", "Area"),
    "company": ("Company", "Supplier", "Account", "Customer"),
    "name": ("Name", "Employee", "Member", "Person"),
    "city": ("City", "Location"),
    "month": ("Month", "Period"),
    "job": ("Position", "Job"),
    "key": ("Item", "Category", "Type"),
    "rare": ("Compound", "Group", "Variable", "Sample"),
}
NUMERIC = ("price", "number", "percent", "quantity")
FIGURE = re.compile(r"(?:US)?\$? ?(-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d+))?) ?%?")


def table(pen: Pen) -> None:
    """A page with one or two tables, a title, notes."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "table"
    if rng.random() < 0.2:
        letterhead(pen)
    tables = 2 if rng.random() < 0.25 and pen.height > 900 else 1
    grids = []
    for number in range(tables):
        if pen.full or pen.y + 6 * style.size > pen.bottom:
            break
        align = rng.choice(("center", "left"))
        x = pen.width / 2 if align == "center" else pen.left
        name = f"Table {rng.randint(1, 20) + 20 * number}" if rng.random() < 0.4 else ""
        if name and rng.random() < 0.5:
            pen.line(name, x, font=style.bold, align=align)
            name = ""
        title = pen.title_case(texts("title"))
        head = pen.line(f"{name}. {title}" if name else title, x, style.size * rng.uniform(1, 1.7), style.head, 0.2,
                        align=align, shrink=True)  # fmt: skip
        pen.ask("title", "table_title" if tables == 1 else "title", head)
        if rng.random() < 0.3:
            unit = rng.choice(("(in thousands)", "($ millions)", "(percent)", "(mg per 100 g)", "(in units)"))
            pen.ask("unit", "unit", pen.line(unit, x, style.size * 0.85, style.italic, align=align))
        pen.skip(rng.uniform(0.2, 0.8))
        grids.append(grid(pen, pen.left, pen.right - pen.left, rng.randint(2, 8), rng.randint(3, 26)))
        after_table(pen)
    if len(grids) == 1:
        grids[0].compared()
    running(pen)


def after_table(pen: Pen) -> None:
    """A note and a source below a table."""
    rng, texts = pen.rng, pen.texts
    small = max(9.0, pen.style.size * 0.75)
    pen.skip(0.4)
    if rng.random() < 0.35:
        marks = pen.paragraph(rng.choice(("* ", "Note: ", "1) ", "NOTE - ")) + texts("sentence"), size=small)
        pen.ask("note", "note", marks)
    if rng.random() < 0.3:
        label = rng.choice(("Source: ", "SOURCE: ", "Source - "))
        pen.ask("source", "source", after_label(pen.line(label + texts("company"), size=small), label))
    if rng.random() < 0.25:
        pen.paragraph(texts("sentence") + " " + texts("sentence"))
    pen.skip(1)


def content(pen: Pen, columns: int, rows: int) -> tuple[list[str], list[list[str]], list[bool], str]:
    """Header, rows of cells, which columns hold numbers, and the kind of text that the rows are named by."""
    rng, texts = pen.rng, pen.texts
    label = rng.choice(tuple(ROWS))
    way = rng.random()
    if way < 0.3:  # the same measure over years or months
        kind = rng.choice(NUMERIC)
        year, kinds = rng.randint(1950, 2022 - columns), [kind] * columns
        names = [str(year + index) for index in range(columns)]
        names = names[::-1] if rng.random() < 0.3 else names
    elif way < 0.4:
        kinds, group = [rng.choice(NUMERIC)] * columns, rng.choice(("Group", "Series", "Plan", "Type", "Test"))
        names = [f"{group} {chr(65 + index)}" for index in range(columns)]
    else:
        pool = NUMERIC if rng.random() < 0.5 else tuple(HEADERS)
        kinds = [rng.choice(pool) for _ in range(columns)]
        names = [rng.choice(HEADERS[kind]) for kind in kinds]
        names = [f"{name} {index + 1}" if name in names[:index] else name for index, name in enumerate(names)]
    head = [rng.choice(ROWS[label]) if rng.random() < 0.85 else "", *names]
    if rng.random() < 0.3:
        head = [name.upper() for name in head]
    fills = [numbers(pen, kind) if rng.random() < 0.85 else partial(texts, kind) for kind in kinds]
    if len(set(kinds)) == 1:
        fills = fills[:1] * columns
    body, seen = [], set[str]()
    for _ in range(rows):
        cells = [texts(label), *(fill() if rng.random() > 0.03 else "-" for fill in fills)]
        if cells[0].lower() not in seen:
            seen.add(cells[0].lower())
            body.append(cells)
    return head, body, [False, *(kind in NUMERIC for kind in kinds)], label


def numbers(pen: Pen, kind: str) -> Callable[[], str]:
    """A maker of cells of one column, all written alike."""
    rng, decimals = pen.rng, pen.rng.choice((0, 0, 1, 2))
    scale = 10 ** rng.uniform(0.7, 5.5)
    if kind not in NUMERIC:
        return partial(pen.texts, kind)
    if kind == "quantity":
        return lambda: str(int(rng.uniform(0, min(scale, 2000)) + 1))
    if kind == "percent":
        sign = rng.choice(("%", "%", "", " %"))
        return lambda: f"{rng.uniform(-9 if scale > 500 else 0, 100):.{decimals}f}{sign}"
    sign = rng.choice(("$", "", "$ ", "US$")) if kind == "price" else ""
    comma = rng.choice((",", ",", ""))
    return lambda: f"{sign}{rng.uniform(scale / 100, scale):{comma}.{decimals}f}"


def widths(pen: Pen, cells: list[list[str]], size: float, font: int) -> list[float]:
    """The widest text of each column."""
    return [max(pen.measure(text, size, font) for text in column) for column in zip(*cells, strict=True)]


def grid(pen: Pen, x: float, width: float, columns: int, rows: int) -> Grid:
    """A table at the cursor: as many columns and rows as fit."""
    rng, style = pen.rng, pen.style
    head, body, numeric, label = content(pen, columns, rows)
    size, gap = style.size, rng.uniform(0.8, 1.6)
    font = style.value if rng.random() < 0.5 else style.body
    wide = max(font, style.bold, key=lambda one: sum(pen.typefaces.tables[one]))  # headers may be set in bold
    need = widths(pen, [head, *body], size, wide)
    least = max(9.0, 0.6 * size)
    while len(need) > 2 and sum(need) + gap * size * len(need) > width * size / least:
        head.pop(), need.pop(), numeric.pop()
        body = [cells[:-1] for cells in body]
    total = sum(need) + gap * size * len(need)
    if total > width:
        size, need = size * width / total, [one * width / total for one in need]
    spread = (width - sum(need)) / len(need) if rng.random() < 0.6 or total > width else gap * size
    edges = [x]
    for one in need:
        edges.append(edges[-1] + one + spread)
    drawn = Grid(pen, edges, size, font, numeric, head)
    drawn.label = label
    drawn.draw(body)
    return drawn


class Grid:
    """Draws a table between given column edges and asks about its cells."""

    def __init__(
        self, pen: Pen, edges: list[float], size: float, font: int, numeric: list[bool], head: list[str]
    ) -> None:
        self.pen, self.edges, self.size, self.font, self.numeric, self.head = pen, edges, size, font, numeric, head
        rng = pen.rng
        self.rules = rng.choice(("none", "none", "head", "rows", "all", "all", "columns", "stripes"))
        self.pad, self.row = size * 0.3, size * rng.choice((1.15, 1.25, 1.4, 1.8))
        self.centred = rng.random() < 0.25
        self.label, self.summed, self.grouped = "product", False, False
        self.top: list[Mark] = []  # the header as written
        self.marks: list[list[Mark]] = []

    def cell(self, text: str, column: int, y: float, font: int, ink: float = 0.0) -> Mark:
        """One cell, numbers to the right."""
        x0, x1 = self.edges[column] + self.pad, self.edges[column + 1] - self.pad
        limit = x1 - x0 + 0.3 * self.pad
        if column and self.centred:
            return self.pen.write(text, (x0 + x1) / 2, y, self.size, font, "center", limit, True, ink)
        if self.numeric[column]:
            return self.pen.write(text, x1, y, self.size, font, "right", limit, True, ink)
        return self.pen.write(text, x0, y, self.size, font, "left", limit, True, ink)

    def draw(self, body: list[list[str]]) -> None:
        """Header, rows, perhaps a total, rules."""
        pen, rng, top = self.pen, self.pen.rng, self.pen.y
        header, marks = self.header(), self.marks
        sums = rng.random() < 0.35 and any(self.numeric)
        self.top, self.grouped = header, rng.random() < 0.15 and len(body) > 5
        for index, cells in enumerate(body):
            if pen.y + 2 * self.row > pen.bottom or pen.glyphs > 2350:
                break
            if self.grouped and index % 4 == 0:
                pen.write(pen.texts("department").upper(), self.edges[0] + self.pad, pen.y, self.size, pen.style.bold,
                          limit=self.edges[-1] - self.edges[0])  # fmt: skip
                pen.y += self.row
                if pen.y + 2 * self.row > pen.bottom:
                    break
            marks.append([self.cell(text, column, pen.y, self.font) for column, text in enumerate(cells)])
            self.line_below(index)
            pen.y += self.row
        if sums and marks and pen.y + self.row < pen.bottom:
            self.totals(header)
            self.summed = True
        self.frame(top)
        self.questions(header, marks)

    def header(self) -> list[Mark]:
        """The header row, which may be shaded."""
        pen, style, dark = self.pen, self.pen.style, self.pen.rng.choice((0.0, 0.0, 0.15, 0.8))
        if dark:
            low = pen.y + self.row
            pen.fill(
                self.edges[0], pen.y - 0.1 * self.size, self.edges[-1], low, dark, pen.rng.choice((0, pen.rng.random()))
            )
        font, ink = style.bold if pen.rng.random() < 0.6 else style.body, -style.ink if dark > 0.5 else style.ink
        marks = [self.cell(text, column, pen.y + 0.05 * self.size, font, ink) for column, text in enumerate(self.head)]
        pen.y += self.row
        if self.rules != "none":
            pen.rule(self.edges[0], pen.y - 0.05 * self.size, self.edges[-1], pen.y - 0.05 * self.size)
            pen.y += 0.15 * self.size
        return marks

    def line_below(self, index: int) -> None:
        """What separates a row from the next."""
        y = self.pen.y + self.row - 0.06 * self.size
        if self.rules in ("rows", "all"):
            self.pen.rule(self.edges[0], y, self.edges[-1], y, 1)
        elif self.rules == "stripes" and index % 2 == 0:
            self.pen.fill(self.edges[0], y - self.row, self.edges[-1], y, 0.1)

    def totals(self, header: list[Mark]) -> None:
        """A row of sums."""
        pen = self.pen
        pen.rule(self.edges[0], pen.y - 1, self.edges[-1], pen.y - 1)
        pen.y += 0.12 * self.size
        self.cell(pen.rng.choice(("Total", "TOTAL", "Totals", "All", "Sum")), 0, pen.y, pen.style.bold)
        for column, numeric in enumerate(self.numeric):
            if numeric and column:
                mark = self.cell(pen.texts("number"), column, pen.y, pen.style.bold)
                if header[column]:
                    pen.ask("table", "total_cell", mark, column=header[column].text)
        pen.y += self.row

    def frame(self, top: float) -> None:
        """Rules around and between columns."""
        pen = self.pen
        if self.rules in ("all", "columns"):
            for x in self.edges:
                pen.rule(x, top - 0.1 * self.size, x, pen.y, 1)
        if self.rules in ("all", "head", "rows", "columns"):
            for y in (top - 0.1 * self.size, pen.y):
                pen.rule(self.edges[0], y, self.edges[-1], y)

    def questions(self, header: list[Mark], marks: list[list[Mark]]) -> None:
        """Questions for cells, headers and rows."""
        pen, rng = self.pen, self.pen.rng
        pairs = [(row, column) for row in range(len(marks)) for column in range(1, len(self.head))]
        for row, column in rng.sample(pairs, min(len(pairs), 16)):
            label, value, name = marks[row][0], marks[row][column], header[column]
            if not (label and value and name):
                continue
            pen.ask("table", "cell", value, column=name.text, row=label.text)
            pen.facts.append((f"{label.text} {name.text}", value.text))
            others = [other[column].text for other in marks]
            if header[0] and others.count(value.text) == 1 and rng.random() < 0.25:
                kind = header[0].text.lower()
                pen.ask("table", "which_row", label, label=kind, column=name.text, value=value.text)
        column, row = rng.randrange(len(header)), rng.randrange(max(1, min(len(marks), 8)))
        if all(header[: column + 1]) and column < 8:
            pen.ask("table", "column", header[column] or NOTHING, nth=NTH[column])
        if marks:
            pen.ask("table", "row", marks[row][0], nth=NTH[row])

    def compared(self) -> None:
        """Questions that need the whole table: it should be the only one of its page."""
        pen, rows = self.pen, [row[0] for row in self.marks]
        if not rows:
            return
        thing = self.top[0].text.lower() if self.top[0] else "row"
        if not self.grouped and all(rows):
            count(pen, plural(thing), len(rows), rows)
        if all(self.top) and pen.rng.random() < 0.4:
            count(pen, "columns", len(self.top), self.top)
        listed(pen, rows)
        columns = [at for at, numeric in enumerate(self.numeric) if numeric and self.top[at]]
        if not columns:
            return
        for column in pen.rng.sample(columns, min(2, len(columns))):
            self.column(column, thing)
        other, name = pen.texts(self.label), self.top[pen.rng.choice(columns)].text
        pen.strangers.append(("cell", other, {"row": other, "column": name}))

    def column(self, at: int, thing: str) -> None:
        """Comparisons of the numbers of a column, if all its cells are numbers or empty."""
        rows = [row for row in self.marks if row[at].text not in ("", "-")]
        found = [FIGURE.fullmatch(row[at].text) for row in rows]
        figures = [(match[1], match[2]) for match in found if match]
        if len(figures) < max(2, len(rows)):
            return
        values, name = [float(text.replace(",", "")) for text, _ in figures], self.top[at].text
        group = self.pen.rng.choice((" in {}", " under {}", " in the column '{}'")).format(name)
        decimals = max(len(part or "") for _, part in figures)
        marks = [row[at] for row in rows]
        compare(self.pen, Series("table", thing, "value", [row[0] for row in rows], values, marks, min(decimals, 3),
                                 group, summed=self.summed))  # fmt: skip
