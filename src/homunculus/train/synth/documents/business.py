"""Born-digital business papers: invoices, quotes, order confirmations, delivery notes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from homunculus.train.synth.documents.business_items import BillItem, draw_items, item_table, sums
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
from homunculus.train.synth.documents.business_party_asks import SELLER, WHERE_GETS, WHERE_PAYS, WHO_GETS, WHO_PAYS
from homunculus.train.synth.documents.business_terms import BILLING
from homunculus.train.synth.documents.page import Pen

PAPERS = {
    "invoice": ("INVOICE", "Invoice", "Tax Invoice", "INVOICE", "Sales Invoice", "Bill", "Commercial Invoice"),
    "order confirmation": ("Order Confirmation", "ORDER CONFIRMATION", "Confirmation of Order"),
    "quote": ("Quotation", "QUOTE", "Offer", "Estimate"),
    "delivery note": ("Delivery Note", "DELIVERY NOTE", "Packing Slip"),
}
NUMBERS = {"invoice": "invoice_no", "order confirmation": "order_no", "quote": "quote_no",
           "delivery note": "delivery_no"}  # fmt: skip
BILL_TO = ("Bill to", "Invoice to", "Billed to", "Billing address", "Customer", "Invoice address", "Sold to", "Client")
SHIP_TO = ("Ship to", "Deliver to", "Delivery address", "Shipping address", "Goods to", "Place of delivery")
NOTES = (
    "Thank you for your business.", "Please quote the invoice number with your payment.",
    "Goods remain our property until paid in full.",
    "Late payments are subject to interest of 5% per year.", "All prices in local currency.",
    "We appreciate your order.",
    "Complaints within 8 days of receipt of the goods.", "No cash discount. Payable without deduction.",
    "This document was created electronically and is valid without signature.",
)  # fmt: skip


def billing(pen: Pen) -> None:
    """An invoice, quote, order confirmation or delivery note as an office program prints it."""
    rng = pen.rng
    pen.noun = rng.choice(("invoice", "invoice", "invoice", *PAPERS))
    sheet = Sheet(pen, BILLING)
    look = FieldStyle.draw(pen)
    heading(sheet)
    details = meta(sheet)
    blocks: list[Callable[[float, float], None]] = [partial(party, sheet, BILL_TO, WHO_PAYS, WHERE_PAYS)]
    if rng.random() < 0.45 or pen.noun == "delivery note":
        blocks.append(partial(party, sheet, SHIP_TO, WHO_GETS, WHERE_GETS))
    above = rng.random() < 0.5 or (len(blocks) > 1 and pen.width < 40 * pen.style.size)
    if not above:
        blocks.append(lambda x0, x1: listed_pairs(sheet, details, x0, x1, look))
    side_by_side(pen, blocks)
    pen.skip(0.8)
    if above:
        strip(sheet, details, look)
    items = draw_items(sheet)
    tail = pen.style.size * pen.style.leading * 9
    pen.bottom -= tail
    rate = rng.choice((0.0, 5, 7, 7.7, 8.1, 8.875, 10, 19, 20, 20, 21, 25))
    items = item_table(sheet, items, rate)
    pen.bottom += tail
    closing(sheet, items, rate, look)
    sheet.ask()
    footer(pen, rng.sample(NOTES, rng.randint(0, 2)))


def heading(sheet: Sheet) -> None:
    """The seller with address and contact, and the title of the paper beside or below."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    swapped, title = rng.random() < 0.35, rng.choice(PAPERS[pen.noun])
    big = style.size * rng.uniform(1.7, 2.8)

    def seller(x0: float, x1: float) -> None:
        if rng.random() < 0.3:
            pen.fill(x0, pen.y, x0 + 2.4 * big, pen.y + big, rng.uniform(0.3, 0.9), rng.random())
            pen.y += big * 1.3
        name = put(pen, pen.texts("company"), x0, pen.y, big * rng.uniform(0.5, 0.8), style.head, limit=x1 - x0)
        pen.y += big if name else 0.0
        say(pen, "company", SELLER, name)
        pen.note("name of the seller", name)
        marks = lines(pen, sheet.values.address(), x0, x1 - x0)
        if name and len(marks) > 1:
            pen.ask("address", "address", marks, whom=name.text)
        contact(sheet, x0, x1)

    def named(x0: float, x1: float) -> None:
        text = title.upper() if sheet.upper else title
        x, align = (x1, "right") if not swapped and rng.random() < 0.7 else (x0, "left")
        pen.ask("title", "title", put(pen, text, x, pen.y, big, style.head, align, x1 - x0))
        pen.y += big * 1.5

    if pen.width < 34 * style.size or rng.random() < 0.2:
        for part in (named, seller) if swapped else (seller, named):
            part(pen.left, pen.right)
            pen.skip(0.5)
    else:
        side_by_side(pen, (named, seller) if swapped else (seller, named), (1.2, 1) if not swapped else (1, 1.2))
    pen.skip(rng.uniform(0.5, 1.6))
    if rng.random() < 0.3:
        pen.rule(pen.left, pen.y, pen.right, pen.y, rng.uniform(1, 3))
        pen.skip(0.7)


def meta(sheet: Sheet) -> list[Pair]:
    """The numbers and dates of the paper."""
    rng, values, noun = sheet.pen.rng, sheet.values, sheet.pen.noun
    net = rng.choice((7, 10, 14, 20, 30, 30, 45, 60))
    pairs = [(NUMBERS[noun], values(BILLING[NUMBERS[noun]].kind)), ("date", values.date())]
    if noun == "invoice":
        pairs += [("due_date", values.date(net))] if rng.random() < 0.75 else []
    if noun == "quote":
        pairs.append(("valid_until", values.date(net)))
    names = ["customer_no", "reference", "contact", "carrier", "incoterms"]
    names += [] if noun == "order confirmation" else ["order_no"]
    names += ["parcels", "weight"] if noun == "delivery note" else ["terms", "method"]
    names = rng.sample(names, rng.randint(1, 4))
    pairs += [(name, values(BILLING[name].kind)) for name in names]
    if rng.random() < 0.4:
        pairs.append(("delivery_date", values.date(rng.randint(-9, 9) or 3)))
    if rng.random() < 0.4:
        rng.shuffle(pairs)
    return pairs


def party(
    sheet: Sheet, labels: tuple[str, ...], who: tuple[str, ...], where: tuple[str, ...], x0: float, x1: float
) -> None:
    """A named block with an address."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    label = rng.choice(labels)
    label = (label.upper() if sheet.upper else label) + sheet.colon
    lines(pen, [label], x0, x1 - x0, font=style.bold)
    name = sheet.values("company") if rng.random() < 0.6 else sheet.values("person")
    written = lines(pen, [name], x0, x1 - x0, font=style.value)
    if written and rng.random() < 0.25:
        lines(pen, [rng.choice(("Attn. ", "c/o ", "Attn: ")) + sheet.values("person")], x0, x1 - x0)
    address = lines(pen, sheet.values.address(), x0, x1 - x0)
    if written:
        say(pen, "key", who, written)
        if "address" not in label.lower():
            pen.ask_key(label, written, 1)
    if len(address) > 1:
        say(pen, "address", where, address)


def closing(sheet: Sheet, items: list[BillItem], rate: float, look: FieldStyle) -> None:
    """Sums at the right, payment details at the left or below, remarks."""
    pen, rng = sheet.pen, sheet.pen.rng
    bank = [(name, sheet.values(BILLING[name].kind)) for name in
            rng.choice((("bank", "iban", "bic"), ("holder", "bank", "account_no", "sort_code"), ("iban", "bic",
                "holder"),
                        ("bank", "iban"), ("seller_vat", "iban"), ("bank", "account_no", "seller_vat")))]  # fmt: skip
    priced = pen.noun != "delivery note"
    beside = priced and rng.random() < 0.5 and pen.width > 46 * pen.style.size
    plain = FieldStyle(0.0, 0.0, 0.0, look.small, look.bold)
    if beside and pen.noun == "invoice":
        side_by_side(
            pen, (lambda x0, x1: listed_pairs(sheet, bank, x0, x1, plain), partial(sums, sheet, items, rate)), (1, 1.05)
        )
    elif priced:
        sums(sheet, items, rate, pen.left + (pen.right - pen.left) * rng.choice((0.4, 0.5, 0.58)), pen.right)
    pen.skip(0.8)
    if rng.random() < 0.6:
        for text in rng.sample(NOTES, rng.randint(1, 2)):
            pen.paragraph(text)
        pen.skip(0.4)
    if not beside and pen.noun == "invoice" and rng.random() < 0.85:
        if rng.random() < 0.5 and pen.y < pen.bottom - 7 * pen.style.size:  # at the foot of the page
            pen.y = pen.bottom - 6 * pen.style.size
        if rng.random() < 0.5:
            strip(sheet, bank, look)
        else:
            listed_pairs(sheet, bank, pen.left, pen.left + (pen.right - pen.left) * 0.7, plain)
