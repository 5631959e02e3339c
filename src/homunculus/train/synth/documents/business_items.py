"""The lines of a bill: the table of items, the sums below it, and the questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homunculus.train.synth.documents.business_line_asks import (
    AMOUNT,
    CODE,
    COST,
    DELIVERED,
    EACH,
    ORDERED,
    QUANTITY,
    RATE,
    UNIT,
    WITH_AMOUNT,
    WITH_CODE,
)
from homunculus.train.synth.documents.business_listing import Column, Listing
from homunculus.train.synth.documents.business_parts import Sheet, put, say
from homunculus.train.synth.documents.business_values import UNITS
from homunculus.train.synth.documents.page import NOTHING, Mark
from homunculus.train.synth.documents.parts import NTH
from homunculus.train.synth.documents.reasoning import Series, compare, count, total_claim

DETAILS = ("Colour: black", "2-year warranty", "incl. mounting kit", "Delivered in one lot", "as per your request",
           "Model 2024, refurbished", "Work performed on site", "Batch {n}", "Length {n} mm",
           "Serial no. {n}")  # fmt: skip
HEADS = {
    "pos": ("Pos.", "#", "No.", "Line"), "code": ("Item no.", "Article", "SKU", "Code", "Part no.", "Item code"),
    "name": ("Description", "Item", "Product", "Details", "Description of goods", "Service"),
    "qty": ("Qty", "Quantity", "Qty.", "Units", "Pcs", "QTY"), "unit": ("Unit", "UoM", "U/M"),
    "each": ("Unit price", "Price", "Rate", "Price each", "Unit|price", "Unit cost"),
    "tax": ("VAT %", "Tax", "VAT", "Tax|rate"), "amount": ("Amount", "Total", "Line total", "Net amount",
        "Total|price"),
}  # fmt: skip


@dataclass
class BillItem:
    """A line of a bill."""

    name: str
    count: int
    each: float
    detail: str = ""

    @property
    def amount(self) -> float:
        """What the line comes to."""
        return round(self.count * self.each, 2)


def percent(sheet: Sheet, rate: float) -> str:
    """The rate of a tax as the page writes it."""
    return f"{rate:g}%".replace(".", sheet.values.point)


def draw_items(sheet: Sheet) -> list[BillItem]:
    """What is billed, all by different names."""
    rng, texts = sheet.pen.rng, sheet.pen.texts
    scale, items = 10 ** rng.uniform(0, 1.6), dict[str, BillItem]()
    for _ in range(rng.choice((1, 2, 3, 4, 5, 6, 8, 11, 16, 24))):
        name = texts("product") if rng.random() < 0.75 else f"{texts('product')} {texts('word')}"
        each = round(rng.choice((rng.uniform(0.5, 20), rng.uniform(5, 90), float(rng.randint(1, 60) * 5))) * scale, 2)
        detail = rng.choice(DETAILS).format(n=rng.randint(100, 99999)) if rng.random() < 0.3 else ""
        items[name.lower()] = BillItem(name, rng.choice((1, 1, 2, 3, 5, 10, rng.randint(1, 120))), each, detail)
    return list(items.values())


def item_columns(sheet: Sheet) -> list[Column]:
    """The columns of an item table, in one of the usual orders."""
    rng = sheet.pen.rng
    heads = {key: rng.choice(names) for key, names in HEADS.items()}
    if heads["qty"] == "Units":
        heads["unit"] = "UoM"
    keys = ["name", "qty", "each", "amount"]
    if rng.random() < 0.25:
        keys = ["qty", "name", "each", "amount"]
    if rng.random() < 0.35:
        keys.insert(keys.index("qty") + 1, "unit")
    if rng.random() < 0.25:
        keys.insert(-1, "tax")
    if rng.random() < 0.5:
        keys.insert(0, "code")
    if rng.random() < 0.35:
        keys.insert(0, "pos")
    if sheet.pen.noun == "delivery note":
        keys = [key for key in keys if key not in ("each", "tax", "amount")]
    ranks = {"pos": 3, "tax": 5, "unit": 4, "code": 2, "each": 1}
    upper = sheet.upper and rng.random() < 0.5
    right = ("each", "amount", "qty", "tax")
    return [Column(key, heads[key].upper() if upper else heads[key], "right" if key in right else "left",
                   key == "name", ranks.get(key, 0)) for key in keys]  # fmt: skip


def item_table(sheet: Sheet, items: list[BillItem], rate: float) -> list[BillItem]:
    """The items as far as they fit, with questions; those that were written."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    signed, step = rng.random() < 0.15, rng.choice((1, 1, 1, 10))
    rows = [{"pos": str((at + 1) * step), "code": values("code"), "name": item.name, "qty": str(item.count),
             "unit": rng.choice(UNITS), "each": values.money(item.each, signed), "tax": percent(sheet, rate),
             "amount": values.money(item.amount, signed)} for at, item in enumerate(items)]  # fmt: skip
    table = Listing(pen, item_columns(sheet), pen.left, pen.right)
    table.fit(rows)
    table.header()
    done: list[dict[str, list[Mark]]] = []
    for item, row in zip(items, rows, strict=True):
        marks = table.row(row, detail=item.detail)
        if not marks:
            break
        done.append(marks)
    table.close()
    item_questions(sheet, table, items[: len(done)], rows, done)
    return items[: len(done)]


def item_questions(sheet: Sheet, table: Listing, items: list[BillItem], rows: list[dict[str, str]],
                   done: list[dict[str, list[Mark]]]) -> None:  # fmt: skip
    """What can be asked about the lines of a bill."""
    pen, rng, nothing = sheet.pen, sheet.pen.rng, list[Mark]()
    many = QUANTITY + (DELIVERED if pen.noun == "delivery note" else ORDERED)
    sums_ = [text for row in rows for text in {row["amount"], row["each"]}]
    for at, (item, row, marks) in enumerate(zip(items, rows, done, strict=False)):
        name, each = item.name, marks.get("each", nothing)
        if not marks.get("name"):
            continue
        amount = marks.get("amount", nothing)
        single = item.count == 1 or not each
        say(pen, "table", COST if single and rng.random() < 0.5 else AMOUNT, amount, item=name)
        either(sheet, "item_qty", many, marks.get("qty", nothing), name)
        either(sheet, "item_unit", EACH, each, name)
        if amount and table.heads.get("amount") and rng.random() < 0.5:
            pen.ask("table", "cell", amount, row=name, column=table.heads["amount"].text)
        if marks.get("code"):
            say(pen, "table", CODE, marks["code"], item=name)
            say(pen, "table", WITH_CODE, marks["name"], value=row["code"])
        if marks.get("unit") and rng.random() < 0.3:
            say(pen, "table", UNIT, marks["unit"], item=name)
        if at < len(NTH) and rng.random() < 0.4:
            pen.ask("table", "item_nth", marks["name"], nth=NTH[at])
        if amount and sums_.count(row["amount"]) == 1 and rng.random() < 0.4:
            if rng.random() < 0.25:
                pen.ask("table", "item_with", marks["name"], value=row["amount"])
            else:
                say(pen, "table", WITH_AMOUNT, marks["name"], value=row["amount"])
    other = pen.texts("product")
    asked = ("item_qty", "line_count") if pen.noun == "delivery note" else ("item_price", "line_amount")
    pen.strangers.append((rng.choice(asked), other, {"item": other}))
    compared(sheet, items, done)


def either(sheet: Sheet, known: str, templates: Sequence[str], marks: list[Mark], item: str) -> None:
    """A question about an item, as about one of a receipt or as business people ask it."""
    if sheet.pen.rng.random() < 0.25:
        sheet.pen.ask("table", known, marks, item=item)
    else:
        say(sheet.pen, "table", templates, marks, item=item)


def compared(sheet: Sheet, items: list[BillItem], done: list[dict[str, list[Mark]]]) -> None:
    """Counts and comparisons over the items."""
    pen = sheet.pen
    names = [marks["name"][0] if len(marks["name"]) == 1 else NOTHING for marks in done]
    if done and all(marks["name"] for marks in done):
        count(pen, pen.rng.choice(("items", "line items", "positions")), len(done), [m["name"][0] for m in done])
    amounts = [marks["amount"][0] if marks.get("amount") else NOTHING for marks in done]
    if sheet.values.english and all(names) and all(amounts) and len(done) > 1:
        each = [item.each for item in items]
        compare(pen, Series("bill", "item", "price", names, [item.amount for item in items], amounts, 2, "", "item",
                            also=each, summed=True))  # fmt: skip


def sums(sheet: Sheet, items: list[BillItem], rate: float, x0: float, x1: float) -> None:
    """Subtotal, discount, freight, tax, total, what was paid and what is due."""
    pen, rng, values = sheet.pen, sheet.pen.rng, sheet.values
    net = round(sum(item.amount for item in items), 2)
    rows: list[tuple[str, float]] = [("subtotal", net)] if rng.random() < 0.85 or rate else []
    less = -round(net * rng.choice((0.02, 0.03, 0.05, 0.1)), 2) if rng.random() < 0.25 else 0.0
    freight = float(rng.randint(4, 60)) + rng.choice((0, 0.5, 0.9)) if rng.random() < 0.35 else 0.0
    rows += [("discount", less)] * bool(less) + [("shipping", freight)] * bool(freight)
    tax = round((net + less + freight) * rate / 100, 2)
    rows += [("tax", tax)] * bool(rate)
    total = round(net + less + freight + tax, 2)
    if pen.noun == "invoice" and rng.random() < 0.35:
        paid = round(total * rng.choice((0.1, 0.25, 0.3, 0.5)), 2)
        rows += [("total", total), ("paid", -paid if rng.random() < 0.5 else paid), ("due", total - paid)]
    else:
        rows.append(("due" if pen.noun == "invoice" and rng.random() < 0.45 else "total", total))
    signed = rng.choice(("all", "last", "none"))
    last = len(rows) - 1
    boxed, shade = rng.random() < 0.25, rng.choice((0.0, 0.0, 0.1, 0.2))
    top = pen.y
    for at, (name, value) in enumerate(rows):
        text = values.money(value, signed == "all" or (signed == "last" and at == last))
        sum_row(sheet, name, text, rate, x0, x1, main=name in ("total", "due"), shade=shade if at == last else 0.0)
    if boxed and pen.y > top:
        pen.frame(x0 - 5, top - 4, x1 + 3, pen.y + 1)
    main = next((one for one in sheet.fields if one.name in ("total", "due")), None)
    if main and values.english and rows[-1][0] == main.name:
        total_claim(pen, rows[-1][1], main.marks[0])


def sum_row(sheet: Sheet, name: str, text: str, rate: float, x0: float, x1: float, main: bool, shade: float) -> None:
    """One line of the sums; the rate of a tax stands in its label."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    size = style.size * (rng.choice((1.0, 1.1, 1.3)) if main else 1.0)
    font = style.bold if main else style.body
    row = size * max(style.leading, 1.25)
    if pen.y + row > pen.bottom:
        return
    label = sheet.label(name)
    rated = name == "tax" and rng.random() < 0.7
    label += f" {percent(sheet, rate)}" if rated else ""
    if shade:
        pen.fill(x0 - 4, pen.y - 0.2 * size, x1 + 3, pen.y + 1.08 * size, shade, rng.choice((0.0, rng.random())))
    elif main and rng.random() < 0.6:
        pen.rule(x0, pen.y - 0.1 * size, x1, pen.y - 0.1 * size)
    value = put(pen, text, x1, pen.y, size, font, "right", (x1 - x0) * 0.6)
    mark = put(pen, label + sheet.colon, x0, pen.y, size, font, limit=(value.x0 if value else x1) - x0 - 0.5 * size)
    sheet.keep(name, mark, value)
    if rated and mark and not sheet.colon:
        say(pen, "key", RATE, Mark("", mark.last - 1, mark.last))
    pen.y += row + (0.2 * size if main else 0)
