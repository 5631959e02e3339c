"""The tables of statements: dated entries of an account, and the parts of a wage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from homunculus.train.synth.documents.business_line_asks import (
    AFTER,
    BALANCE_ON,
    CAME,
    EARNED_LINE,
    ENTRY,
    ENTRY_IN,
    ENTRY_OUT,
    PAY_YEAR,
    REFERENCE,
    SPENT,
    TAKEN_LINE,
    VALUED,
    WHAT,
    WHEN,
)
from homunculus.train.synth.documents.business_listing import Column, Listing
from homunculus.train.synth.documents.business_parts import Sheet, say
from homunculus.train.synth.documents.page import Mark, Pen

ENTRIES = (
    "Card payment {}", "Direct debit {}", "Standing order {}", "Transfer to {}", "{}", "POS {}", "Online purchase {}",
    "Payment {}",
)  # fmt: skip
CASH = ("ATM withdrawal", "Rent", "Insurance premium", "Account fee", "Mobile top-up", "Foreign exchange fee")
INCOME = ("Salary {}", "Transfer from {}", "Refund {}", "Interest credited", "Dividend {}", "Cash deposit", "Pension")
EARNED = ("Basic salary", "Overtime", "Bonus", "Holiday pay", "Child allowance", "Night shift", "Travel allowance",
    "Meal allowance",
          "Commission", "13th month salary")  # fmt: skip
TAKEN = ("Income tax", "Social security", "Pension fund", "Health insurance", "Unemployment insurance", "Union dues",
         "Withholding tax", "Accident insurance", "Student loan", "Canteen")  # fmt: skip

# How often, and what, is asked about the other columns of an entry.
OTHERS = ((0.5, "date", WHEN), (0.5, "balance", AFTER), (0.3, "value", VALUED), (0.3, "ref", REFERENCE))


def entries(sheet: Sheet, flows: list[float], opening: float | None) -> None:
    """A table of dated entries with questions; balances where the opening one is given."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    split = opening is not None and rng.random() < 0.6
    day, balance, rows, days = values.day(-31), opening or 0.0, list[dict[str, str]](), []
    dated = values.brief if rng.random() < 0.35 else values.dated
    for flow in flows:
        day += timedelta(rng.choice((0, 1, 1, 2, 3)))
        balance += flow
        days.append(day)
        row = {"date": dated(day), "value": dated(day + timedelta(rng.choice((0, 1)))), "name": entry_name(pen, flow),
               "ref": values("number"), "balance": values.number(balance)}  # fmt: skip
        amount = values.number(abs(flow))
        if split:
            row["in" if flow > 0 else "out"] = amount
        else:
            row["amount"] = amount if opening is None else values.number(flow)
        rows.append(row)
    table = Listing(pen, entry_columns(sheet, split, opening is not None), pen.left, pen.right)
    table.fit(rows)
    table.header()
    written = []
    for row in rows:
        marks = table.row(row)
        if not marks:
            break
        written.append(marks)
    table.close(1.0)
    entry_questions(sheet, rows, written, flows, days)


def entry_name(pen: Pen, flow: float) -> str:
    """The text of an entry."""
    rng = pen.rng
    shapes = INCOME if flow > 0 else ENTRIES if rng.random() < 0.75 else CASH
    return rng.choice(shapes).format(pen.texts(rng.choice(("company", "company", "last"))))


def entry_columns(sheet: Sheet, split: bool, balanced: bool) -> list[Column]:
    """Columns of a table of entries."""
    rng = sheet.pen.rng
    columns = [Column("date", rng.choice(("Date", "Booking date", "Posted", "Trans. date"))),
               Column("name", rng.choice(("Description", "Details", "Transaction", "Text", "Particulars")),
                   wraps=True)]  # fmt: skip
    if rng.random() < 0.3:
        columns.insert(1, Column("value", rng.choice(("Value date", "Value", "Effective")), rank=3))
    if rng.random() < 0.25:
        columns.append(Column("ref", rng.choice(("Reference", "Ref.", "Ref. no.")), rank=4))
    if split:
        out, in_ = rng.choice(
            (("Debit", "Credit"), ("Paid out", "Paid in"), ("Withdrawals", "Deposits"), ("Money out", "Money in"))
        )
        columns += [Column("out", out, "right"), Column("in", in_, "right")]
    else:
        columns.append(Column("amount", rng.choice(("Amount", "Amount in|currency", "Debit/Credit")), "right"))
    if balanced and rng.random() < 0.85:
        columns.append(Column("balance", rng.choice(("Balance", "Running|balance", "Saldo")), "right", rank=1))
    return columns


def entry_questions(sheet: Sheet, rows: list[dict[str, str]], written: list[dict[str, list[Mark]]], flows: list[float],
                    days: list[date]) -> None:  # fmt: skip
    """What can be asked about dated entries."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    names = [row["name"].lower() for row in rows[: len(written)]]
    for at in rng.sample(range(len(written)), min(len(written), 9)):
        marks, name = written[at], rows[at]["name"]
        amount = marks.get("amount") or marks.get("in" if flows[at] > 0 else "out") or []
        if names.count(name.lower()) == 1 and len(name) < 40:
            say(pen, "table", (*ENTRY, *(ENTRY_IN if flows[at] > 0 else ENTRY_OUT)), amount, item=name)
            for share, key, asks in OTHERS:
                if marks.get(key) and rng.random() < share:
                    say(pen, "table", asks, marks[key], item=name)
        if days.count(days[at]) == 1:
            day = values.spoken(days[at])
            say(pen, "table", CAME if flows[at] > 0 else SPENT, amount, day=day)
            if rng.random() < 0.5:
                say(pen, "table", WHAT, marks.get("name", []), day=day)
            if rng.random() < 0.35:
                say(pen, "table", BALANCE_ON, marks.get("balance", []), day=day)
    other = pen.texts("company")
    pen.strangers.append((rng.choice(("item_price", "entry", "entry")), other, {"item": other}))


def pay_table(sheet: Sheet, title: str, names: Sequence[str], amounts: list[float], x0: float, x1: float) -> None:
    """Parts of a wage, this time and over the year."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    year = rng.randint(2, 12)
    rows = [{"name": name, "now": values.number(amount), "year": values.number(amount * year)}
            for name, amount in zip(names, amounts, strict=True)]  # fmt: skip
    columns = [
        Column("name", title, wraps=True),
        Column("now", rng.choice(("Amount", "Current", "This period")), "right"),
    ]
    if rng.random() < 0.6:
        columns.append(Column("year", rng.choice(("YTD", "Year to date", "Year")), "right", rank=1))
    table = Listing(pen, columns, x0, x1)
    table.fit(rows)
    table.header()
    for row in rows:
        marks = table.row(row)
        if not marks:
            break
        say(
            pen,
            "table",
            TAKEN_LINE if names[0] in TAKEN else EARNED_LINE,
            marks.get("now", []),
            item=row["name"].lower(),
        )
        if rng.random() < 0.5:
            say(pen, "table", PAY_YEAR, marks.get("year", []), item=row["name"].lower())
    table.close(0.9)
