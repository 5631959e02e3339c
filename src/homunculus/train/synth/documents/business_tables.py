"""Tables in small print with many rows and columns, and data sheets of products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from homunculus.train.synth.documents import business_table_asks as asks
from homunculus.train.synth.documents.business_column_asks import MEANT
from homunculus.train.synth.documents.business_listing import Column, Listing
from homunculus.train.synth.documents.business_parts import FULL, fine_print, footer, lines, put, say
from homunculus.train.synth.documents.business_values import UNITS as SOLD
from homunculus.train.synth.documents.business_values import Values
from homunculus.train.synth.documents.page import LEAST, NOTHING, Mark, Pen
from homunculus.train.synth.documents.reasoning import Series, compare, count, plural
from homunculus.train.synth.text import MONTHS, SHORT

SUBJECTS = (  # what the rows are, their kind, and the columns that they may have with what is in them
    ("product", "product", "Article no.=code|Pack|size=pack|Unit=sold|List price=price|Net price=price|Stock=whole|"
        "Weight|(kg)=small"
     "|Lead time|(days)=days|Min.|order=whole|VAT=rate|Reorder|level=whole"),
    ("region", "state", "Orders=whole|Revenue=price|Returns=whole|Growth=change|Target=price|Share=rate|Staff=days|"
        "Avg. order=small|Last year=price"),
    ("employee", "person", "ID=code|Department=department|Hours=days|Overtime|hours=small|Rate=small|Gross "
        "pay=price|Tax=price|Net pay=price|Days off=days"),
    ("test", "rare", "Result=small|Unit=unit|Reference|range=range|Method=code|Flag=flag|Previous|result=small|"
        "Limit=small"),
    ("destination", "city", "Zone=zone|Distance|(km)=whole|Transit|days=days|Up to 5 kg=small|Up to 20 kg=small|Per "
        "extra kg=small|Surcharge=rate|Code=code"),
    ("company", "company", "Customer no.=code|Invoices=days|Current=price|1-30 days=price|31-60 days=price|Over 90|"
        "days=price|Total due=price|Credit limit=price"),
    ("department", "department", "Budget=price|Actual=price|Variance=price|Staff=days|Costs per|head=price|Prior "
        "year=price|Change=change|Forecast=price"),
    ("fund", "fund", "Currency=currency|NAV=small|1 month=change|1 year=change|3 years=change|5 years=change|"
        "Fees=rate|Risk=zone|Assets|(m)=price"),
)  # fmt: skip
FUNDS = (
    "Equity",
    "Bond",
    "Balanced",
    "Growth",
    "Income",
    "Index",
    "Global",
    "Europe",
    "Pacific",
    "Swiss",
    "Green",
    "Small Cap",
    "Value",
)
ACCOUNTS = ("Net sales", "Cost of goods sold", "Gross profit", "Personnel expenses", "Rent", "Marketing",
    "Depreciation", "Operating profit",
            "Interest expense", "Taxes", "Net profit", "Research", "Travel", "Insurance", "Maintenance",
            "Energy costs", "Other income",
            "Consulting fees", "Office supplies", "Trade receivables", "Inventories", "Cash", "Equity",
            "Provisions")  # fmt: skip
TITLES = {"product": "Price list", "region": "Sales by region", "employee": "Payroll overview",
    "test": "Laboratory results",
          "destination": "Freight rates", "company": "Open items by customer", "department": "Budget report",
          "fund": "Fund performance", "account": "Income statement"}  # fmt: skip
GROUPS = ("Section A", "Section B", "North", "South", "Domestic", "International", "Standard range", "Premium range",
    "New items", "Accessories",
          "Head office", "Branches")  # fmt: skip
UNITS = (
    "All amounts in thousands",
    "Amounts in USD",
    "in CHF 1,000",
    "EUR million",
    "Prices excl. VAT",
    "Values per 31 December",
)
NOTES = ("* Preliminary figures.", "1) Restated.", "Prices are subject to change without notice.",
"n/a = not available", "Source: own records.",
         "Totals may not add up due to rounding.", "Valid for orders placed this quarter.")  # fmt: skip


@dataclass
class TableContent:
    """The content of a dense table: how its rows are called, its columns, and its cells."""

    thing: str
    columns: list[Column]
    rows: list[dict[str, str]]
    figures: dict[str, tuple[list[float], int]]  # the numbers of columns, and their decimals
    summed: set[str] = field(default_factory=set)  # columns whose sum makes sense
    timed: bool = False


def dense_table(pen: Pen) -> None:
    """A page with one dense table."""
    rng, style, pen.noun = pen.rng, pen.style, "table"
    fine_print(pen)
    values = Values(pen)
    style.size = max(rng.uniform(9, 10.5), style.size * rng.choice((0.85, 0.95, 1.0)))
    plan = periods(pen, values) if rng.random() < 0.35 else subject(pen, values)
    size = style.size * rng.uniform(1.2, 1.7)
    title = TITLES[plan.thing] + rng.choice(
        ("", f" {values.today.year}", f", {MONTHS[values.today.month - 1]} {values.today.year}")
    )
    mark = put(
        pen,
        title.upper() if rng.random() < 0.2 else title,
        pen.left,
        pen.y,
        size,
        style.head,
        limit=pen.right - pen.left,
    )
    pen.ask("title", "table_title", mark)
    pen.y += size * 1.4
    if rng.random() < 0.45:
        pen.ask("unit", "unit", put(pen, rng.choice(UNITS), pen.left, pen.y, limit=pen.right - pen.left))
        pen.skip(1.1)
    pen.skip(0.3)
    pen.bottom -= 3 * style.size
    draw(pen, plan, values)
    pen.bottom += 3 * style.size
    for note in rng.sample(NOTES, rng.randint(0, 2)):
        pen.ask("note", "note", lines(pen, [note], pen.left, pen.right - pen.left, max(LEAST, style.size * 0.85)))
    footer(pen, ())


def cells(pen: Pen, values: Values, kind: str, scale: float) -> Callable[[], tuple[str, float | None]]:
    """A maker of the cells of a column: the text, and its number if it has one; amounts reach up to the scale."""
    rng = pen.rng
    decimals = rng.choice((0, 0, 2)) if kind == "price" else 0 if kind in ("whole", "days") else rng.choice((1, 2))
    highest = {"price": scale, "whole": 4000, "days": 60, "small": 40, "rate": 30, "change": 25}.get(kind, 0)
    if highest:
        sign = rng.choice(("%", "%", "")) if kind in ("rate", "change") else ""

        def figure() -> tuple[str, float | None]:
            value = round(rng.uniform(-highest * 0.5 if kind == "change" else highest / 80, highest), decimals)
            return values.number(value, decimals) + sign, value

        return figure
    return lambda: (word(pen, values, kind), None)


def word(pen: Pen, values: Values, kind: str) -> str:
    """A cell that is no number."""
    rng = pen.rng
    if kind == "pack":
        return f"{rng.choice((1, 5, 6, 10, 12, 20, 50, 100))} {rng.choice(('pcs', 'kg', 'm', 'x 1 l', 'rolls'))}"
    if kind == "range":
        low = round(rng.uniform(0, 20), 1)
        return f"{values.number(low, 1)} - {values.number(low + rng.randint(1, 30), 1)}"
    if kind == "sold":
        return rng.choice(SOLD)
    if kind == "fund":
        return f"{' '.join(rng.sample(FUNDS, 2))} Fund {rng.choice('ABCDI')}"
    chosen = {"flag": "H/L/-/-/ok", "zone": "1/2/3/4/5/6/7", "currency": "USD/EUR/CHF/GBP/JPY"}.get(kind, kind)
    return values(chosen)


def subject(pen: Pen, values: Values) -> TableContent:
    """Rows of one sort with columns of several sorts."""
    rng = pen.rng
    thing, named, text = rng.choice(SUBJECTS)
    heads = [(head, kind) for head, _, kind in (part.rpartition("=") for part in split_heads(text))]
    picked = sorted(rng.sample(range(len(heads)), min(len(heads), rng.randint(4, 8))))
    columns = [Column("row", thing.capitalize() if rng.random() < 0.9 else "Name", wraps=rng.random() < 0.4)]
    makers, scale = {}, 10 ** rng.uniform(1.5, 5)
    for at in picked:
        head, kind = heads[at]
        left = kind in ("code", "department", "unit", "pack", "range", "flag", "currency", "sold")
        columns.append(Column(f"c{at}", head, rng.choice(("left", "center")) if left else "right", rank=len(columns)))
        makers[f"c{at}"] = cells(pen, values, kind, scale)
    summed = {f"c{at}" for at in picked if heads[at][1] in ("price", "whole", "days") and "price" not in heads[at][0]}
    return filled(pen, TableContent(thing, columns, [], {}, summed), makers, lambda: word(pen, values, named))


def split_heads(text: str) -> list[str]:
    """The headers of a subject: a bar ends one only after its kind."""
    parts: list[str] = []
    for piece in text.split("|"):
        if parts and "=" not in parts[-1]:
            parts[-1] += "|" + piece
        else:
            parts.append(piece)
    return parts


def periods(pen: Pen, values: Values) -> TableContent:
    """The same figures over months, quarters or years."""
    rng = pen.rng
    count_, year = rng.randint(4, 8), values.today.year
    start = rng.randint(0, 12 - count_)
    heads = rng.choice((
        [str(year - count_ + at) for at in range(count_)], list(SHORT[start : start + count_]),
        list(MONTHS[start : start + count_]),
        [f"Q{at % 4 + 1}|{year + at // 4}" for at in range(count_)],
        [f"Budget|{year + at // 2}" if at % 2 else f"Actual|{year + at // 2}" for at in range(count_)],
    ))  # fmt: skip
    columns = [Column("row", rng.choice(("", "Item", "Account", "Position")), wraps=rng.random() < 0.4)]
    columns += [Column(f"c{at}", head, "right", rank=at + 1) for at, head in enumerate(heads)]
    maker = cells(pen, values, "price" if rng.random() < 0.8 else "whole", 10 ** rng.uniform(2, 5))
    plan = TableContent("account", columns, [], {}, {column.key for column in columns}, timed=True)
    return filled(pen, plan, {f"c{at}": maker for at in range(count_)}, lambda: rng.choice(ACCOUNTS))


def filled(
    pen: Pen, plan: TableContent, makers: dict[str, Callable[[], tuple[str, float | None]]], name: Callable[[], str]
) -> TableContent:
    """A plan with its rows."""
    rng, seen = pen.rng, set[str]()
    for _ in range(rng.randint(10, 60)):
        row = name()
        if row.lower() in seen:
            continue
        seen.add(row.lower())
        made = {key: make() for key, make in makers.items()}
        plan.rows.append({"row": row, **{key: text for key, (text, _) in made.items()}})
        for key, (text, value) in made.items():
            if value is not None and text[-1].isdigit():
                decimals = len(text) - 1 - max(text.rfind("."), text.rfind(",")) if value % 1 else 0
                known, most = plan.figures.get(key, ([], 0))
                plan.figures[key] = ([*known, value], max(decimals, most))
    return plan


def draw(pen: Pen, plan: TableContent, values: Values) -> None:
    """The table with its groups and totals, and the questions."""
    rng, style = pen.rng, pen.style
    grouped = rng.random() < 0.3 and len(plan.rows) > 8
    widest = {key: values.number(sum(known), most) for key, (known, most) in plan.figures.items()}
    table = Listing(pen, plan.columns, pen.left, pen.right)
    table.leading = rng.choice((1.15, 1.2, 1.25, 1.35, 1.5))
    table.fit([*plan.rows, widest])
    table.header()
    written, groups = list[dict[str, list[Mark]]](), list[Mark]()
    names, every = rng.sample(GROUPS, 6), rng.randint(4, 8)
    for at, row in enumerate(plan.rows):
        if grouped and at % every == 0 and at // every < len(names):
            group = table.group(names[at // every])
        marks = table.row(row)
        if not marks or pen.glyphs > FULL:
            break
        written.append(marks)
        groups.append(group if grouped else NOTHING)
    if len(written) > 1 and plan.figures.keys() & plan.summed and rng.random() < 0.6:
        totals(pen, table, plan, values, len(written), style.bold)
    table.close()
    questions(pen, table, plan, written, groups)
    if not grouped:
        comparisons(pen, table, plan, values, written)


def totals(pen: Pen, table: Listing, plan: TableContent, values: Values, count_: int, font: int) -> None:
    """A row of sums with its questions."""
    keys = {column.key for column in table.columns}
    sums = {
        key: values.number(sum(known[:count_]), most)
        for key, (known, most) in plan.figures.items()
        if key in keys & plan.summed
    }
    pen.rule(table.edges[0], pen.y - 0.15 * table.size, table.edges[-1], pen.y - 0.15 * table.size)
    label = pen.rng.choice(("Total", "TOTAL", "Sum", "All", "Grand total"))
    marks = table.row({"row": label, **sums}, font)
    for key in sums:
        head = table.heads.get(key, NOTHING)
        if marks.get(key) and head:
            say(pen, "table", asks.PERIOD_TOTAL if timed(plan, head.text) else asks.TOTAL, marks[key], column=head.text)


def questions(
    pen: Pen, table: Listing, plan: TableContent, written: list[dict[str, list[Mark]]], groups: list[Mark]
) -> None:
    """Questions by row and column, for the row that has a value, and for groups."""
    rng = pen.rng
    keys = [column.key for column in table.columns if column.key != "row" and table.heads.get(column.key)]
    pairs = [(at, key) for at in range(len(written)) for key in keys]
    for at, key in rng.sample(pairs, min(len(pairs), 18)):
        name, cell, head = plan.rows[at]["row"], written[at].get(key, []), table.heads[key].text
        if not cell or not written[at].get("row"):
            continue
        ask_cell(pen, plan, cell, name, head)
        text = plan.rows[at][key]
        if sum(row[key] == text for row in plan.rows) == 1 and len(text) > 1 and rng.random() < 0.3:
            which = asks.PERIOD_WHICH if timed(plan, head) else asks.WHICH
            say(pen, "table", which, written[at]["row"], thing=plan.thing, value=text, column=head)
        if groups[at] and rng.random() < 0.25:
            say(pen, "table", asks.GROUP, [groups[at]], row=name)
    if keys:
        other = pen.texts("rare") if plan.timed else pen.texts("product")
        name, head = rng.choice(("cell", "table_cell", "table_cell")), table.heads[rng.choice(keys)].text
        pen.strangers.append((name, other, {"row": other, "column": head}))


def ask_cell(pen: Pen, plan: TableContent, cell: list[Mark], row: str, column: str) -> None:
    """One question for a cell: by the names of row and column, or by what the column means."""
    rng = pen.rng
    meant = MEANT.get(f"{plan.thing}: {column}", ())
    if timed(plan, column):
        say(pen, "table", asks.PERIOD, cell, row=rng.choice((row, row.lower())), column=column)
    elif column.startswith(("Budget ", "Actual ")) and rng.random() < 0.6:
        sort, year = column.split()
        say(pen, "table", asks.PLANNED if sort == "Budget" else asks.REACHED, cell, row=row.lower(), year=year)
    elif meant and rng.random() < 0.55:
        say(pen, "table", meant, cell, row=row)
    else:
        say(pen, "table", asks.CELL, cell, row=row, column=column)


def timed(plan: TableContent, column: str) -> bool:
    """Whether a column is a month, a quarter or a year."""
    return plan.timed and not column.startswith(("Budget", "Actual"))


def comparisons(
    pen: Pen, table: Listing, plan: TableContent, values: Values, written: list[dict[str, list[Mark]]]
) -> None:
    """The largest and smallest of a column, differences, counts."""
    rows = [marks["row"][0] if len(marks.get("row", [])) == 1 else NOTHING for marks in written]
    if not written or not all(rows):
        return
    count(pen, pen.rng.choice((plural(plan.thing), "rows")), len(rows), rows)
    keys = [key for key in plan.figures if table.heads.get(key)]
    for key in pen.rng.sample(keys, min(2, len(keys))):
        known, most = plan.figures[key]
        cells_ = [marks[key][0] if marks.get(key) else NOTHING for marks in written]
        if values.english and all(cells_) and len(known) >= len(rows) > 2:
            group = pen.rng.choice((" in {}", " under {}", " in the column '{}'")).format(table.heads[key].text)
            compare(
                pen,
                Series(
                    "table", plan.thing, "value", rows, known[: len(rows)], cells_, min(most, 3), group, summed=True
                ),
            )
