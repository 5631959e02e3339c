"""Invoices, statements and orders."""

from __future__ import annotations

from homunculus.train.synth.documents.letter import key_line
from homunculus.train.synth.documents.page import Mark, Pen
from homunculus.train.synth.documents.parts import letterhead, place, running
from homunculus.train.synth.documents.receipt import Till, ask_item, money, purchases, sums

ORDER = (
    ("Invoice No", "code"), ("Date", "date"), ("Due Date", "date"), ("Customer No.", "number"), ("P.O. No.", "code"),
    ("Salesman", "last"), ("Ship via", "company"), ("Account", "number"), ("Order date", "date"), ("Page", "count"),
)  # fmt: skip


def invoice(pen: Pen) -> None:
    """An invoice: letterhead, customer, numbers in a block, items in a table, sums, terms."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "invoice"
    style.size = min(style.size, (pen.right - pen.left) / 26)
    style.justify = False
    letterhead(pen)
    word = rng.choice(
        ("INVOICE", "Invoice", "STATEMENT", "PURCHASE ORDER", "Tax Invoice", "QUOTATION", "Commercial Invoice")
    )
    align, x = rng.choice((("center", pen.width / 2), ("right", pen.right), ("left", pen.left)))
    title = pen.line(word, x, style.size * rng.uniform(1.4, 2.6), style.head, 0.3, align=align, shrink=True)
    pen.ask("title", "title", title)
    parties(pen)
    till = Till(pen, rng.randint(1, 12), rng.choice((1, 8, 60)))
    pen.bottom -= style.size * 8
    invoice_items(pen, till)
    pen.bottom += style.size * 8
    full_left, pen.left = pen.left, pen.left + (pen.right - pen.left) * rng.choice((0.45, 0.55))
    sums(pen, till)
    pen.left = full_left
    if rng.random() < 0.6:
        terms = rng.choice(("Terms", "Payment terms"))
        key_line(pen, terms, rng.choice(("Net 30 days", "Due on receipt", "2% 10 days, net 30", "C.O.D.")))
    if rng.random() < 0.5:
        pen.paragraph(texts("sentence"), size=max(9.0, style.size * 0.75), font=style.italic)
    running(pen)


def parties(pen: Pen) -> None:
    """The customer on the left, numbers and dates on the right."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    top, split = pen.y, pen.left + (pen.right - pen.left) * 0.5
    label = rng.choice(("Bill To", "Sold To", "TO", "Customer", "Ship To", "Client"))
    pen.write(label + ":", pen.left, pen.y, font=style.bold)
    pen.skip(1)
    lines = [texts("company") if rng.random() < 0.6 else texts("name"), texts("street"), place(pen)]
    limit = split - pen.left - style.size
    marks = [pen.line(line, font=style.value, limit=limit, shrink=True) for line in lines]
    pen.ask_key(label, marks[:1], 2)
    low, pen.y, left = pen.y, top, pen.left
    pen.left = split
    at = split + style.size * 6.5 if rng.random() < 0.6 else 0.0
    box = rng.random() < 0.3
    for index, (key, kind) in enumerate(ORDER):
        if rng.random() < (0.85 if index < 2 else 0.35):
            key_line(pen, key, str(rng.randint(1, 9)) if kind == "count" else texts(kind), at=at)
    if box and pen.y > top:
        pen.frame(split - 6, top - 4, pen.right + 4, pen.y + 2)
    pen.left, pen.y = left, max(low, pen.y)
    pen.skip(0.8)


def invoice_items(pen: Pen, till: Till) -> None:
    """The items in columns: quantity, description, unit price, amount."""
    rng, style = pen.rng, pen.style
    wide, ruled = pen.right - pen.left, rng.random() < 0.5
    edges = [pen.left + wide * share for share in (0.0, 0.12, 0.6, 0.79, 1.0)]
    names = rng.choice((("Qty", "Description", "Unit Price", "Amount"), ("QUANTITY", "ARTICLE", "PRICE", "TOTAL"),
                        ("No.", "Item", "Rate", "Total")))  # fmt: skip
    top, row = pen.y, style.size * rng.uniform(1.25, 1.7)
    if rng.random() < 0.4:
        pen.fill(pen.left, top - 2, pen.right, top + row - 3, 0.15, rng.choice((0.0, rng.random())))

    def cells(texts: tuple[str, ...], font: int) -> list[Mark]:
        marks = []
        for column, text in enumerate(texts):
            align, x = ("left", edges[column] + 4) if column < 2 else ("right", edges[column + 1] - 4)
            limit = edges[column + 1] - edges[column] - 8
            marks.append(pen.write(text, x, pen.y, font=font, align=align, limit=limit, shrink=True))
        pen.y += row
        return marks

    cells(names, style.bold)
    items, amounts = list[Mark](), list[Mark]()
    for name, count, each in till.items:
        if pen.y + row > pen.bottom and items:
            break
        number, item, unit, amount = cells((str(count), name, money(each), money(count * each)), style.value)
        items.append(item)
        amounts.append(amount)
        if item:
            template = "item_price" if rng.random() < 0.5 else "cell"
            pen.ask("table", template, amount, item=item.text, row=item.text, column=names[3])
            ask_item(pen, len(items) - 1, item, number, amount, unit)
    till.items = till.items[: len(items)]
    purchases(pen, till, items, amounts)
    pen.y += row * rng.choice((0, 0, 1, 2)) if pen.y + 10 * style.size < pen.bottom else 0
    if ruled:
        pen.frame(pen.left, top - 3, pen.right, pen.y)
        pen.rule(pen.left, top + row - 3, pen.right, top + row - 3)
        for x in edges[1:-1]:
            pen.rule(x, top - 3, x, pen.y, 1)
    pen.skip(0.4)
