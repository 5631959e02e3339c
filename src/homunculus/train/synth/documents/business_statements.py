"""Statements: of banks, credit cards, power and phone companies, and payslips."""

from __future__ import annotations

from collections.abc import Sequence

from homunculus.train.synth.documents.business_entries import EARNED, TAKEN, entries, pay_table
from homunculus.train.synth.documents.business_line_asks import LINE, PER_UNIT, USED
from homunculus.train.synth.documents.business_listing import Column, Listing
from homunculus.train.synth.documents.business_parts import (
    FieldStyle,
    Pair,
    Sheet,
    contact,
    footer,
    lines,
    listed_pairs,
    put,
    say,
    side_by_side,
    strip,
)
from homunculus.train.synth.documents.business_party_asks import HOME, ISSUER, OWNER
from homunculus.train.synth.documents.business_terms import PAYROLL, STATEMENT
from homunculus.train.synth.documents.page import Mark, Pen
from homunculus.train.synth.documents.reasoning import Series, compare

BANKS = ("{} Bank", "Bank of {}", "{} Savings Bank", "{} Cantonal Bank", "First {} Bank", "{} & Co. Private Bank")
SUPPLIERS = {
    "utility": ("{} Energy", "{} Power & Light", "{} Water Works", "City Utilities {}", "{} Gas"),
    "phone": ("{} Telecom", "{} Mobile", "{} Communications", "{} Fiber"),
}
TITLES = {
    "bank": ("Account Statement", "Statement of Account", "Bank Statement", "Your statement", "Account summary"),
    "card": ("Credit Card Statement", "Card Statement", "Monthly card statement", "Statement of your card account"),
    "utility": ("Electricity Bill", "Your energy bill", "Utility Bill", "Water and energy statement", "Annual bill"),
    "phone": ("Phone Bill", "Your monthly bill", "Mobile statement", "Service bill"),
    "payroll": ("Payslip", "Pay Statement", "Salary Statement", "Earnings Statement", "Wage slip"),
}
CHARGES = ("Basic charge", "Energy charge", "Network usage", "Metering fee", "Renewable levy", "Electricity tax",
    "Service fee",
           "Water supply", "Waste water", "Heating", "Street lighting fee")  # fmt: skip
CALLS = ("Monthly plan", "Domestic calls", "International calls", "Text messages", "Roaming data", "Extra data 5 GB",
         "Device instalment", "Voicemail", "Premium services", "Paper bill fee")  # fmt: skip
NOTES = ("Please check this statement and report errors within 30 days.",
    "Deposits are protected up to the legal limit.",
         "This is a computer-generated statement.", "Keep this document for your records.",
         "Questions? Call our hotline.",
         "The amount will be debited from your account.")  # fmt: skip
FIRMS = {"bank": "bank", "card": "bank", "payroll": "employer"}


def statement(pen: Pen) -> None:
    """A statement of a bank, a card, a supplier, or of wages."""
    rng = pen.rng
    kind = rng.choice(("bank", "bank", "card", "utility", "phone", "payroll"))
    pen.noun = {"utility": "bill", "phone": "bill", "payroll": "payslip"}.get(kind, "statement")
    sheet = Sheet(pen, PAYROLL if kind == "payroll" else STATEMENT)
    look = FieldStyle.draw(pen)
    issuer(sheet, kind)
    {"bank": bank, "card": card, "utility": power, "phone": phone, "payroll": payroll}[kind](sheet, look)
    sheet.ask()
    footer(pen, rng.sample(NOTES, rng.randint(0, 2)))


def issuer(sheet: Sheet, kind: str) -> None:
    """Who issues the statement, its title, and who gets it."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    names = SUPPLIERS.get(kind, BANKS)
    name = (
        pen.texts("company") if kind == "payroll" else rng.choice(names).format(pen.texts(rng.choice(("last", "city"))))
    )
    size = style.size * rng.uniform(1.3, 2.0)
    wide = pen.right - pen.left
    if rng.random() < 0.3:
        pen.fill(pen.left, pen.y - 3, pen.right, pen.y + size * 1.2, rng.choice((0.1, 0.8)), rng.random())
        ink = -style.ink if pen.fills[-1][4] > 0.5 else style.ink
    else:
        ink = style.ink
    title = rng.choice(TITLES[kind])
    mark = put(pen, name, pen.left + 4, pen.y, size, style.head, limit=wide * 0.55, ink=ink)
    firm = FIRMS.get(kind, "company") if rng.random() < 0.7 else "company"
    say(pen, "company", ISSUER, mark, firm=firm)
    beside = put(pen, title, pen.right - 4, pen.y, size * 0.85, style.bold, "right", wide * 0.4, ink)
    pen.ask("title", "title", beside)
    pen.y += size * 1.6
    if not beside:
        pen.ask("title", "title", put(pen, title, pen.left, pen.y, size * 0.85, style.bold, limit=wide))
        pen.y += size * 1.3
    if rng.random() < 0.6:
        lines(pen, [", ".join(sheet.values.address()[:2])], pen.left, wide * 0.6, style.size * 0.85)
        contact(sheet, pen.left, pen.left + wide * 0.6)
    pen.skip(rng.uniform(0.4, 1.2))


def addressee(sheet: Sheet, x0: float, x1: float) -> None:
    """Name and address of the customer, as in the window of an envelope."""
    pen, rng = sheet.pen, sheet.pen.rng
    pen.skip(rng.choice((0.0, 0.0, 0.6)))
    name = sheet.values("person") if rng.random() < 0.8 else sheet.values("company")
    marks = lines(pen, [name.upper() if sheet.upper else name], x0, x1 - x0)
    say(pen, "key", OWNER, marks)
    if marks:
        pen.note("name of the customer", marks[0])
    home = lines(pen, sheet.values.address(), x0, x1 - x0)
    if marks and len(home) > 1:
        say(pen, "address", HOME, home, name=marks[0].text)


def account(sheet: Sheet, pairs: list[Pair], look: FieldStyle) -> None:
    """The customer at one side, the data of the account at the other."""
    pen, rng = sheet.pen, sheet.pen.rng
    parts = [lambda x0, x1: addressee(sheet, x0, x1), lambda x0, x1: listed_pairs(sheet, pairs, x0, x1, look)]
    if pen.width < 36 * pen.style.size:
        for part in parts:
            part(pen.left, pen.right)
            pen.skip(0.5)
    else:
        side_by_side(pen, parts if rng.random() < 0.8 else parts[::-1])
    pen.skip(1)


def summary(sheet: Sheet, pairs: list[Pair], look: FieldStyle) -> None:
    """The main amounts, in boxes or in a list, under a heading or not."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    if rng.random() < 0.4:
        lines(
            pen,
            [rng.choice(("Summary", "Account summary", "Overview", "At a glance"))],
            pen.left,
            0,
            style.size * 1.15,
            style.bold,
        )
        pen.skip(0.2)
    if rng.random() < 0.6:
        strip(sheet, pairs, look)
    else:
        x0 = pen.left if rng.random() < 0.6 else pen.left + (pen.right - pen.left) * 0.4
        listed_pairs(sheet, pairs, x0, x0 + (pen.right - pen.left) * 0.6, look)
        pen.skip(0.8)


def some(sheet: Sheet, names: Sequence[str], least: int) -> list[Pair]:
    """Pairs of at least so many of these terms, in their order."""
    rng = sheet.pen.rng
    kept = set(rng.sample(names, rng.randint(min(least, len(names)), len(names))))
    near = {"statement_date": 0, "pay_date": 0, "due_date": rng.randint(10, 30)}
    return [(name, sheet.values.date(near[name]) if name in near else sheet.values(sheet.terms[name].kind))
            for name in names if name in kept]  # fmt: skip


def bank(sheet: Sheet, look: FieldStyle) -> None:
    """Balances and entries of a bank account."""
    rng, values = sheet.pen.rng, sheet.values
    account(sheet, some(sheet, ("statement_date", "period", "statement_no", "account_no", "iban", "bic", "branch",
        "account_type",
                                "currency", "customer_no"), 4), look)  # fmt: skip
    opening = round(10 ** rng.uniform(2.5, 4.3), 2)
    flows, balance = [], opening
    for _ in range(rng.randint(4, 45)):
        income = rng.random() < 0.25
        amount = round(10 ** rng.uniform(0.7, 3.2), 2)
        flows.append(amount if income or balance < amount else -amount)
        balance += flows[-1]
    gains = sum(flow for flow in flows if flow > 0)
    pairs = [("opening", values.money(opening)), ("credits", values.money(gains)),
             ("debits", values.money(gains - sum(flows))), ("closing", values.money(balance))]  # fmt: skip
    late = rng.random() < 0.3
    room = sheet.pen.style.size * 8 if late else 0.0
    if not late:
        summary(sheet, pairs, look)
    sheet.pen.bottom -= room
    entries(sheet, flows, opening)
    sheet.pen.bottom += room
    if late:
        summary(sheet, pairs, look)


def card(sheet: Sheet, look: FieldStyle) -> None:
    """Amounts due and entries of a credit card."""
    rng, values = sheet.pen.rng, sheet.values
    account(
        sheet,
        some(sheet, ("statement_date", "card_no", "account_no", "period", "limit", "available", "interest"), 4),
        look,
    )
    flows = [-round(10 ** rng.uniform(0.6, 2.8), 2) for _ in range(rng.randint(4, 40))]
    before, paid = round(10 ** rng.uniform(1.5, 3.3), 2), round(10 ** rng.uniform(1.5, 3), 2)
    total = before - paid - sum(flows)
    pairs = [
        ("balance_old", values.money(before)),
        ("received", values.money(-paid)),
        ("charges", values.money(-sum(flows))),
    ]
    pairs += [("closing" if rng.random() < 0.5 else "due", values.money(max(total, 12.5)))]
    pairs += [
        ("minimum", values.money(round(max(25.0, abs(total) * 0.05), 2))),
        ("due_date", values.date(rng.randint(14, 28))),
    ]
    summary(sheet, pairs if rng.random() < 0.6 else pairs[2:], look)
    entries(sheet, flows, None)


BILLED = ("bill_no", "statement_date", "customer_no", "account_no", "period", "tariff", "due_date")


def power(sheet: Sheet, look: FieldStyle) -> None:
    """A bill for power or water: readings of the meter, charges, what is due."""
    rng, values = sheet.pen.rng, sheet.values
    account(sheet, some(sheet, (*BILLED, "meter", "supply"), 5), look)
    old, used = rng.randint(10000, 80000), rng.randint(80, 4000)
    unit = rng.choice(("kWh", "kWh", "m3", "units"))
    readings = [("reading_old", values.number(old, 0)), ("reading_new", values.number(old + used, 0)),
                ("usage", f"{values.number(used, 0)} {unit}")]  # fmt: skip
    summary(sheet, readings, look)
    payable(sheet, charges(sheet, CHARGES), look)


def phone(sheet: Sheet, look: FieldStyle) -> None:
    """A bill for phone lines."""
    account(sheet, some(sheet, (*BILLED, "phone_no"), 5), look)
    payable(sheet, charges(sheet, CALLS), look)


def payable(sheet: Sheet, amounts: list[float], look: FieldStyle) -> None:
    """The last bill, what was paid, the new charges, and what is due."""
    rng, values = sheet.pen.rng, sheet.values
    pairs = [("charges", values.money(sum(amounts)))] if rng.random() < 0.5 else []
    before = round(rng.uniform(20, 300), 2) if rng.random() < 0.5 else 0.0
    pairs = [("balance_old", values.money(before)), ("received", values.money(-before)), *pairs] if before else pairs
    summary(sheet, [*pairs, ("due", values.money(sum(amounts)))], look)


def charges(sheet: Sheet, names: Sequence[str]) -> list[float]:
    """A table of charges; the amounts."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    picked = rng.sample(names, rng.randint(3, len(names)))
    amounts = [round(10 ** rng.uniform(0.3, 2.3), 2) for _ in picked]
    rows = [{"name": name, "used": f"{rng.randint(1, 900)}", "rate": values.number(rng.uniform(0.02, 2), 4),
        "amount": values.money(amount, False)}
            for name, amount in zip(picked, amounts, strict=True)]  # fmt: skip
    columns = [Column("name", rng.choice(("Description", "Charge", "Service", "Details")), wraps=True),
               Column("used", rng.choice(("Quantity", "Units", "Usage")), "right", rank=2),
               Column("rate", rng.choice(("Rate", "Price per|unit", "Unit rate")), "right", rank=1),
               Column("amount", rng.choice(("Amount", "Charge", "Total", "Cost")), "right")]  # fmt: skip
    if rng.random() < 0.4:
        del columns[1:3]
    table = Listing(pen, columns, pen.left, pen.right)
    table.fit(rows)
    table.header()
    names_, marks_ = list[Mark](), list[Mark]()
    for row in rows:
        marks = table.row(row)
        if not marks.get("name") or not marks.get("amount"):
            break
        say(pen, "table", LINE, marks["amount"], item=row["name"])
        for key, asks in (("used", USED), ("rate", PER_UNIT)):
            if marks.get(key) and rng.random() < 0.5:
                if table.heads.get(key) and rng.random() < 0.25:
                    pen.ask("table", "cell", marks[key], row=row["name"], column=table.heads[key].text)
                else:
                    say(pen, "table", asks, marks[key], item=row["name"])
        names_.append(marks["name"][0])
        marks_.append(marks["amount"][0])
    table.close(1.0)
    name = rng.choice(("item_price", "charge", "charge"))
    pen.strangers.append((name, other := rng.choice(CHARGES + CALLS), {"item": other}))
    if values.english and len(names_) > 1:
        compare(
            pen, Series("bill", "item", "amount", names_, amounts[: len(names_)], marks_, 2, "", "item", summed=True)
        )
    return amounts[: len(names_)]


def payroll(sheet: Sheet, look: FieldStyle) -> None:
    """Earnings, deductions and net pay of an employee."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    data = some(
        sheet, ("employee", "employee_no", "job", "department", "pay_date", "pay_period", "tax_code", "ssn", "start"), 5
    )
    if rng.random() < 0.5:
        strip(sheet, data, look)
    else:
        half = len(data) // 2
        side_by_side(pen, (lambda x0, x1: listed_pairs(sheet, data[:half], x0, x1, look),
                           lambda x0, x1: listed_pairs(sheet, data[half:], x0, x1, look)))  # fmt: skip
        pen.skip(0.8)
    earned = [
        round(10 ** rng.uniform(3.2, 3.9), 2),
        *(round(rng.uniform(20, 600), 2) for _ in range(rng.randint(1, 5))),
    ]
    taken = [round(sum(earned) * rng.uniform(0.01, 0.09), 2) for _ in range(rng.randint(2, 6))]
    first = (EARNED[0], *rng.sample(EARNED[1:], len(earned) - 1))
    second = rng.sample(TAKEN, len(taken))
    titles = rng.choice((("Earnings", "Deductions"), ("Payments", "Deductions"), ("Income", "Withheld")))
    if pen.width > 52 * pen.style.size and rng.random() < 0.6:
        side_by_side(pen, (lambda x0, x1: pay_table(sheet, titles[0], first, earned, x0, x1),
                           lambda x0, x1: pay_table(sheet, titles[1], second, taken, x0, x1)))  # fmt: skip
    else:
        pay_table(sheet, titles[0], first, earned, pen.left, pen.right)
        pay_table(sheet, titles[1], second, taken, pen.left, pen.right)
    gross, less = sum(earned), sum(taken)
    pairs = [("gross", values.money(gross)), ("deducted", values.money(less)), ("net", values.money(gross - less))]
    summary(sheet, pairs, look)
    if rng.random() < 0.5:
        listed_pairs(sheet, some(sheet, ("bank_account",), 1), pen.left, pen.right, FieldStyle())
