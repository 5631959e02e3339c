"""Receipts of a till."""

from __future__ import annotations

import random
from collections.abc import Callable

from homunculus.train.synth.documents.letter import key_line
from homunculus.train.synth.documents.page import NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import NTH, after_label, place, stamp, tail
from homunculus.train.synth.documents.reasoning import Series, claim, compare, listed, plain, total_claim
from homunculus.train.synth.documents.reasoning import count as how_many
from homunculus.train.synth.documents.worked import EXACT

THANKS = (
    "THANK YOU", "Thank You. Please come again", "THANK YOU FOR SHOPPING WITH US",
    "Goods sold are not returnable", "PLEASE KEEP THIS RECEIPT", "HAVE A NICE DAY",
    "Keep the invoice for applicable returns", "CUSTOMER COPY", "Please come again",
    "No refund without receipt", "*** THANK YOU ***", "This is a computer generated invoice",
)  # fmt: skip
TITLES = (
    "TAX INVOICE", "Tax Invoice", "RECEIPT", "INVOICE", "CASH BILL", "Official Receipt", "SIMPLIFIED TAX INVOICE",
)  # fmt: skip
TOTALS = (
    "TOTAL", "Total", "Grand Total", "TOTAL AMOUNT", "Total Sales", "NET TOTAL", "Total Due", "Nett Total",
    "Amount Due", "Total (Inclusive of GST)", "TOTAL RM", "Total Payable",
)  # fmt: skip
BILL = (
    ("Invoice No", "code"), ("Cashier", "first"), ("Bill No.", "number"), ("Table", "count"), ("Counter", "count"),
    ("Member", "name"), ("Ref", "code"), ("Salesperson", "first"), ("Receipt #", "code"),
)  # fmt: skip
CURRENCIES = ("", "", "", "RM", "$", "RM ", "USD ", "$ ")


def money(value: float) -> str:
    """An amount with two digits, and commas when it is large."""
    return f"{value:,.2f}"


class Till:
    """The purchase of one receipt or invoice: items, sums, and how amounts are written."""

    def __init__(self, pen: Pen, count: int, dear: float) -> None:
        rng = pen.rng
        self.items = []
        for _ in range(count):
            each = round(rng.choice((rng.uniform(0.5, 9), rng.uniform(2, 60), rng.uniform(10, 300))) * dear, 2)
            number = rng.choice((1, 1, 1, 2, 3, rng.randint(1, 24)))
            self.items.append((pen.texts("product"), number, each))
        self.rate = rng.choice((0, 0, 5, 6, 6, 7, 8.5, 10, 20))
        self.net = sum(number * each for _, number, each in self.items)
        self.tax = round(self.net * self.rate / 100, 2)
        self.total = round((self.net + self.tax) * 20) / 20 if rng.random() < 0.5 else self.net + self.tax
        self.sign = rng.choice(CURRENCIES)


def receipt(pen: Pen) -> None:
    """A receipt as of a shop or a restaurant."""
    rng, style, pen.noun = pen.rng, pen.style, "receipt"
    if rng.random() < 0.6:
        style.body, style.bold, style.italic = pen.typefaces.family(rng, "mono")
    style.value, style.justify = style.body, False
    wide = min(pen.width * rng.uniform(0.8, 0.94), pen.height * 0.72)
    style.size = min(max(wide / (rng.uniform(30, 46) * 0.56), 9.5), style.size * 1.5)
    wide = min(wide, style.size * 28)
    pen.left = (pen.width - wide) * rng.choice((0.5, 0.5, rng.uniform(0.2, 0.8)))
    pen.right, pen.bottom = pen.left + wide, pen.height * 0.985
    style.leading = rng.choice((1.12, 1.2, 1.3, 1.45))
    pen.y = pen.height * rng.uniform(0.01, 0.08)
    head(pen)
    when(pen)
    room = (pen.bottom - pen.y) / style.size
    till = Till(pen, rng.randint(1, max(2, min(22, int(room / 2.5)))), 1.0)
    if rng.random() < 0.6:  # most receipts are cut where they end: spread this one over the page
        style.leading = min(max(room / (1.5 * len(till.items) + 14), 1.12), 2.0)
    bought(pen, till)
    sums(pen, till)
    if rng.random() < 0.3:
        tax_summary(pen, till)
    for _ in range(rng.randint(1, 4)):
        align = rng.choice(("center", "center", "left"))
        pen.line(
            rng.choice(THANKS), middle(pen) if align == "center" else pen.left, align=align, limit=pen.right - pen.left
        )
    if rng.random() < 0.1:
        stamp(pen)


def middle(pen: Pen) -> float:
    """Half way between the margins."""
    return (pen.left + pen.right) / 2


def divider(pen: Pen) -> None:
    """What separates the parts: dashes, a rule, or room."""
    way, size = pen.rng.random(), pen.style.size
    y = pen.y + 0.2 * size
    if way < 0.5:
        pen.dashes(pen.left, y, pen.right)
    elif way < 0.75:
        pen.rule(pen.left, y, pen.right, y)
    pen.y += 0.5 * size


def head(pen: Pen) -> None:
    """Company, registration, address, phone, tax number."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    align = rng.choice(("center", "center", "center", "left"))
    x, limit = (middle(pen) if align == "center" else pen.left), pen.right - pen.left
    upper = rng.random() < 0.7

    def put(text: str, size: float = 0.0, font: int = -1) -> Mark:
        text = text.upper() if upper else text
        return pen.line(text, x, size, font, align=align, limit=limit, shrink=True)

    name, size = texts("company"), style.size * rng.choice((1.0, 1.2, 1.5, 1.9))
    bold = style.bold if rng.random() < 0.7 else style.body
    company = [put(line, size, bold) for line in pen.wrap(name.upper(), limit, size, bold)[:2]]
    pen.ask("company", "receipt_company", company)
    pen.ask_exactly("company", EXACT["company"], company)
    if rng.random() < 0.5:
        number = f"{rng.randint(10000, 999999)}-{rng.choice('ADHKMPTUVWX')}"
        label = rng.choice(("", "CO. REG NO : ", "Reg No: ", "ROC NO. ", "Company Reg. No. "))
        mark = put(label + (number if label or rng.random() < 0.5 else f"({number})"))
        if label:
            pen.ask_key(label.strip(" :"), after_label(mark, label))
    address(pen, put)
    for kinds, probability in ((("Tel", "TEL", "Phone", "Tel No"), 0.6), (("Fax", "FAX"), 0.25)):
        if rng.random() < probability:
            label = rng.choice(kinds) + rng.choice((": ", " : ", ". "))
            pen.ask_key(label.strip(" :."), after_label(put(label + texts("phone")), label))
    if rng.random() < 0.55:
        label = rng.choice(("GST ID : ", "GST NO: ", "GST REG NO: ", "VAT No. ", "Tax ID: ", "GST ID. NO : "))
        pen.ask_key(label.strip(" :"), after_label(put(label + f"{rng.randint(10**8, 10**9):012d}"), label))
    pen.skip(0.3)
    if rng.random() < 0.5:
        kind, size = rng.choice(TITLES), style.size * rng.choice((1, 1.3))
        pen.ask("title", "title", pen.line(kind, middle(pen), size, style.bold, align="center", limit=limit))


def address(pen: Pen, put: Callable[[str], Mark]) -> None:
    """Street and town."""
    rng, texts = pen.rng, pen.texts
    street = rng.choice(("NO. {}, ", "LOT {}, ", "{} ", "UNIT {}, ")).format(rng.randint(1, 990))
    lines = [street + texts("street") + ","]
    if rng.random() < 0.5:
        lines.append(texts("street").lstrip("0123456789 ") + ",")
    lines.append(rng.choice((place(pen), f"{rng.randint(10000, 99999)} {texts('city')}, {texts('state')}.")))
    where = [put(line) for line in lines]
    if all(where):
        pen.ask("address", "receipt_address", where)
        pen.ask_exactly("address", EXACT["address"], where)


def when(pen: Pen) -> None:
    """Date, time, number of the bill, cashier."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    divider(pen)
    day, time = texts("date"), texts("time")
    if rng.random() < 0.45:  # without labels, on one line
        date = pen.write(day, pen.left, pen.y, limit=(pen.right - pen.left) * 0.55, shrink=True)
        clock = pen.write(time, pen.right, pen.y, align="right", limit=(pen.right - pen.left) * 0.4)
        pen.ask_key("Time", clock)
        pen.skip(1)
    else:
        label = rng.choice(("Date", "DATE", "Bill Date", "Date/Time", "Trans Date"))
        mark = pen.line(f"{label}{rng.choice((': ', ' : ', '  '))}{day} {time}", limit=pen.right - pen.left)
        count = len(time.split())
        both = tail(mark, len(day.split()) + count)
        date = Mark(day, both.first, both.last - count) if mark and mark.text.endswith(f"{day} {time}") else NOTHING
    pen.ask("date", "receipt_date", date)
    pen.ask_exactly("date", EXACT["date"], date)
    pen.note("date of the receipt", date)
    if date:
        pen.facts.append(("date", date.text))
    at = pen.left + style.size * 7 if rng.random() < 0.5 else 0.0
    for key, kind in BILL:
        if rng.random() < 0.3:
            value = str(rng.randint(1, 60)) if kind == "count" else texts(kind)
            key_line(pen, key.upper() if rng.random() < 0.4 else key, value, at=at, times=1)


def bought(pen: Pen, till: Till) -> None:
    """The lines of the items."""
    rng, style = pen.rng, pen.style
    divider(pen)
    two, items, amounts = rng.random() < 0.45, list[Mark](), list[Mark]()
    wide = pen.right - pen.left
    if rng.random() < 0.5:
        pen.write(rng.choice(("Item", "Description", "ITEM", "Desc")), pen.left, pen.y, limit=wide * 0.4)
        pen.write(rng.choice(("Amount", "Price", "Total", "AMT")), pen.right, pen.y, align="right", limit=wide * 0.3)
        if not two:
            pen.write(rng.choice(("Qty", "QTY")), pen.left + wide * 0.66, pen.y, align="right", limit=wide * 0.2)
        pen.skip(1)
        divider(pen)
    for index, (name, count, each) in enumerate(till.items):
        if pen.y + 10 * style.size > pen.bottom and index:
            till.items = till.items[:index]
            break
        name, price = name.upper() if style.caps else name, till.sign + money(count * each)
        item, number, amount = (item_in_two_lines if two else item_in_one_line)(pen, name, count, each, price)
        if item and amount:
            pen.ask("table", "item_price", amount, item=item.text)
            ask_item(pen, index, item, number, amount)
        items.append(item)
        amounts.append(amount)
    purchases(pen, till, items, amounts)
    if rng.random() < 0.3 and pen.y + 10 * style.size <= pen.bottom:
        key_line(pen, rng.choice(("Total Qty", "No. of items", "Item count")), str(sum(n for _, n, _ in till.items)))


def item_in_two_lines(pen: Pen, name: str, count: int, each: float, price: str) -> tuple[Mark, Mark, Mark]:
    """Code and name above count, price of one and price: marks of name, count and price."""
    rng, wide = pen.rng, pen.right - pen.left
    code = rng.randint(100, 9999999) if rng.random() < 0.4 else ""
    item = pen.line(f"{code} {name}", limit=wide)
    detail = pen.write(f"{count} x {money(each)}", pen.left + 1.5 * pen.style.size, pen.y, limit=wide * 0.6)
    amount = pen.line(price, pen.right, align="right", limit=wide * 0.38)
    if code and item:
        pen.ask("table", "item_code", Mark(str(code), item.first, item.first + 1), item=name)
        item = after_label(item, "x")
    if detail.text.endswith(money(each)):
        pen.ask("table", "item_unit", tail(detail, 1), item=item.text)
    return item, Mark(str(count), detail.first, detail.first + 1) if detail else NOTHING, amount


def item_in_one_line(pen: Pen, name: str, count: int, each: float, price: str) -> tuple[Mark, Mark, Mark]:
    """Name, count and price side by side: their marks."""
    wide = pen.right - pen.left
    number = pen.write(str(count), pen.left + wide * 0.66, pen.y, align="right", limit=wide * 0.1)
    amount = pen.write(price, pen.right, pen.y, align="right", limit=wide * 0.3)
    item = pen.line(name, limit=wide * 0.56)
    if not item:
        pen.skip(1)
    return item, number, amount


def ask_item(pen: Pen, index: int, item: Mark, number: Mark, amount: Mark, unit: Mark = NOTHING) -> None:
    """Questions for the count, the unit price and the place of an item of a bill."""
    pen.ask("table", "item_qty", number, item=item.text)
    pen.ask("table", "item_unit", unit, item=item.text)
    pen.facts.append((item.text, amount.text))
    if index < len(NTH):
        pen.ask("table", "item_nth", item, nth=NTH[index])


def purchases(pen: Pen, till: Till, items: list[Mark], amounts: list[Mark]) -> None:
    """Comparisons of the items of a bill, and how many there are."""
    costs = [round(number * each, 2) for _, number, each in till.items]
    other = pen.texts("product")
    pen.strangers.append(("item_price", other, {"item": other}))
    texts = [amount.text for amount in amounts]
    if not all(text.endswith(money(cost)) for text, cost in zip(texts, costs, strict=True)):
        return
    if all(items) and len({item.text for item in items}) == len(items):
        several = any(number > 1 for _, number, _ in till.items)
        things = pen.rng.choice(("different items", "different products", "lines of items"))
        how_many(pen, things if several else "items", len(items), items)
        listed(pen, items)
    for item, amount in zip(items, amounts, strict=True):
        if texts.count(amount.text) == 1 and pen.rng.random() < 0.2:
            pen.ask("table", "item_with", item, value=amount.text)
    each = [each for _, _, each in till.items]
    compare(pen, Series("bill", "item", "price", items, costs, amounts, 2, "", "item", also=each, summed=True))


def sums(pen: Pen, till: Till) -> None:
    """Subtotal, tax, rounding, total, cash and change."""
    rng, style = pen.rng, pen.style
    divider(pen)
    rows, label = rows_of(till, rng)
    indent = rng.choice((0.0, 0.0, 0.3)) * (pen.right - pen.left)
    written: list[tuple[str, float, Mark]] = []
    for key, value in rows:
        main = key == label
        size = style.size * (rng.choice((1.0, 1.25, 1.6)) if main else 1.0)
        font = style.bold if main else style.body
        if pen.y + size > pen.bottom:
            break
        amount = pen.write((till.sign if main else "") + money(value), pen.right, pen.y, size, font, "right")
        room = (amount.x0 if amount else pen.right) - pen.left - indent - 0.5 * size
        mark = pen.line(key + style.colon, pen.left + indent, size, font, limit=room, shrink=True)
        if not mark:
            pen.y += size * 1.2
        if mark and amount.text.endswith(money(value)):
            pen.ask_key(key, amount)
            written.append((key, value, amount))
        if main:
            pen.ask("total", "receipt_total", amount)
            if pen.noun == "receipt":
                pen.ask_exactly("total", EXACT["total"], amount)
            total_claim(pen, round(value, 2), amount)
    paid_how(pen, written)
    divider(pen)


def rows_of(till: Till, rng: random.Random) -> tuple[list[tuple[str, float]], str]:
    """Keys and values of the sums, and the key of the total."""
    till.net = sum(number * each for _, number, each in till.items)
    till.tax = round(till.net * till.rate / 100, 2)
    exact = till.net + till.tax
    till.total = round(exact * 20) / 20 if rng.random() < 0.5 else exact
    rows = [(rng.choice(("Subtotal", "SUB TOTAL", "Sub-Total", "Gross Amt")), till.net)] if rng.random() < 0.6 else []
    if till.rate and rng.random() < 0.8:
        rows.append(
            (rng.choice(("GST {:g}%", "Tax {:g}%", "VAT @ {:g}%", "Total GST ({:g}%)")).format(till.rate), till.tax)
        )
    if rng.random() < 0.4:
        rows.append((rng.choice(("Rounding", "Rounding Adj", "ROUND ADJ")), till.total - exact))
    label = rng.choice(TOTALS)
    rows.append((label, till.total))
    paid = till.total + rng.choice((0, 0, 0.35, 1.5, 7.2, 20))
    if rng.random() < 0.65:
        rows += [
            (rng.choice(("CASH", "Cash", "Paid", "TENDERED")), paid),
            (rng.choice(("Change", "CHANGE")), paid - till.total),
        ]
    elif rng.random() < 0.5:
        rows.append((rng.choice(("VISA", "Credit Card", "MASTERCARD")), till.total))
    return rows, label


def paid_how(pen: Pen, rows: list[tuple[str, float, Mark]]) -> None:
    """What the sums at the end of a bill differ by, and how it was paid."""
    rng = pen.rng
    if len(rows) > 1:
        (a, one, first), (b, other, second) = rng.sample(rows, 2)
        marks, answer = (first, second), plain(abs(round(one, 2) - round(other, 2)), 2)
        pen.reply("compare", "difference", answer, marks, a=a, b=b, measure="amount", group="")
    for key, _, mark in rows:
        if key.lower() in ("cash", "visa", "credit card", "mastercard"):
            way = rng.random() < 0.5
            claim(pen, "in_cash" if way else "by_card", (key.lower() == "cash") == way, mark)


def tax_summary(pen: Pen, till: Till) -> None:
    """The small table of taxes at the end."""
    wide = pen.right - pen.left
    if pen.y + 4 * pen.style.size > pen.bottom:
        return
    for left, centre, right in (
        ("GST Summary", "Amount", "Tax"),
        (f"SR @ {till.rate:g}%", money(till.net), money(till.tax)),
    ):
        pen.write(left, pen.left, pen.y, limit=wide * 0.42)
        pen.write(centre, pen.left + wide * 0.72, pen.y, align="right", limit=wide * 0.28)
        pen.write(right, pen.right, pen.y, align="right", limit=wide * 0.24)
        pen.skip(1)
    divider(pen)
