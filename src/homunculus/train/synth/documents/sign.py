"""Few words in large letters: signs, product labels, business cards, and collages of loose text."""

from __future__ import annotations

from homunculus.train.synth.documents.letter import key_line
from homunculus.train.synth.documents.page import NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import NTH, place, place_questions
from homunculus.train.synth.documents.reasoning import claim, count, listed, worked_out

NOTICES = (
    "NO PARKING", "EXIT", "ENTRANCE", "OPEN", "CLOSED", "SALE", "FOR RENT", "DANGER", "STOP", "KEEP OUT",
    "PUSH", "PULL", "WARNING", "CAUTION", "TICKETS", "INFORMATION", "WELCOME", "NO SMOKING", "STAFF ONLY",
    "ONE WAY", "TAXI", "PARKING", "EMERGENCY EXIT", "MIND THE STEP", "HOTEL", "PHARMACY", "BAKERY", "CAFE",
    "RESTAURANT", "BUS STOP",
)  # fmt: skip
CONTACTS = (("phone", ("Tel", "Phone", "T")), ("fax", ("Fax", "F")), ("email", ("E-mail", "")), ("url", ("", "Web")))


def fitted(pen: Pen, text: str, width: float, most: float, font: int) -> float:
    """The size at which a text fills a width, at most `most`."""
    return min(most, 0.98 * width / max(pen.measure(text, 1.0, font), 0.1))


def sign(pen: Pen) -> None:
    """A sign or a poster: one or more lines of large text, dark on light or light on dark."""
    rng, texts, pen.noun = pen.rng, pen.texts, pen.rng.choice(("sign", "notice", "poster"))
    font = pen.typefaces.family(rng, *rng.choice((("display",), ("sans",), ("serif",), ("sans", "display"))))[
        rng.choice((0, 1, 1))
    ]
    x0, x1 = pen.width * rng.uniform(0.02, 0.12), pen.width * rng.uniform(0.88, 0.98)
    y0, y1 = pen.height * rng.uniform(0.02, 0.2), pen.height * rng.uniform(0.75, 0.98)
    dark = rng.choice((0.0, 0.0, 0.15, 0.7, 0.9))
    if dark:
        pen.fill(x0, y0, x1, y1, dark, rng.choice((0.0, rng.random())))
    if rng.random() < 0.5:
        pen.frame(x0 + 4, y0 + 4, x1 - 4, y1 - 4, rng.uniform(2, 8), 0.1 if dark > 0.5 else 0.8)
    ink = -rng.uniform(0.8, 1) if dark > 0.5 else rng.uniform(0.7, 1)
    pen.y, pen.bottom = y0 + 0.05 * (y1 - y0), y1 - 0.03 * (y1 - y0)
    inside, marks = (x1 - x0) * 0.9, list[Mark]()
    lines = rng.choice((1, 2, 3, 4, 6))
    tall = (pen.bottom - pen.y) / lines / rng.uniform(1.3, 2.2)
    align, x = rng.choice((("center", (x0 + x1) / 2), ("center", (x0 + x1) / 2), ("left", x0 + (x1 - x0) * 0.05)))
    for index in range(lines):
        kind = rng.choice(
            ("notice", "word", "company", "street", "city", "phone", "time", "price", "date", "title", "product")
        )
        text = rng.choice(NOTICES) if kind == "notice" or (index == 0 and rng.random() < 0.5) else texts(kind)
        text = text.upper() if rng.random() < 0.5 else text
        size = fitted(pen, text, inside, tall * rng.uniform(0.5, 1), font)
        if size < 9.5:
            continue
        mark = pen.line(text, x, size, font, 0.25, align=align, ink=ink, limit=inside)
        marks.append(mark)
        if kind in ("phone", "price", "city"):
            pen.ask("key", kind, mark, item="it", whom="the place")
    pen.ask("title", "sign", max(marks, key=lambda mark: mark.y1 - mark.y0, default=NOTHING))
    for nth, mark in zip(NTH, marks, strict=False):
        pen.ask("spatial", "nth_line", mark, nth=nth)
    written = [mark for mark in marks if mark]
    count(pen, pen.rng.choice(("lines", "lines of text")), len(written), written)
    listed(pen, written)


def label(pen: Pen) -> None:
    """A product's label: brand, facts, ingredients, bar code."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "label"
    style.size = min(style.size, pen.width / 24)
    brand = texts("company").split()[0]
    size = fitted(pen, brand, pen.right - pen.left, style.size * rng.uniform(2, 3.5), style.head)
    dark = rng.choice((0.0, 0.8))
    if dark:
        pen.fill(0, 0, pen.width, pen.y + 1.2 * size, dark, rng.random())
    ink = -style.ink if dark else style.ink
    pen.ask_key("Brand", pen.line(brand, pen.width / 2, size, style.head, 0.2, align="center", ink=ink), 2)
    product = pen.line(texts("product"), pen.width / 2, style.size * 1.4, style.bold, 0.4, align="center", shrink=True)
    pen.ask_key("Product", product, 2)
    facts = [
        ("Net Wt.", f"{rng.randint(1, 999)} {texts('unit')}"), ("Best before", texts("date")),
        ("Lot No.", texts("code")), ("Exp. date", texts("date")),
        ("Serving size", f"{rng.randint(1, 99)} {texts('unit')}"), ("Price", texts("price")),
        ("Made in", texts("country")), ("Art. No.", texts("number")), ("Batch", texts("code")),
    ]  # fmt: skip
    for key, value in facts:
        if rng.random() < 0.6:
            key_line(pen, key, value)
    if rng.random() < 0.6 and pen.y + 8 * style.size < pen.bottom:
        nutrition(pen)
    if rng.random() < 0.6:
        words = ", ".join(texts("word") for _ in range(rng.randint(5, 18)))
        marks = pen.paragraph(f"Ingredients: {words}.", size=max(9.0, 0.75 * style.size))
        if " ".join(mark.text for mark in marks).endswith(f"{words}."):
            count(pen, "ingredients", words.count(",") + 1, marks)
        if len(marks) > 0:
            first = Mark(marks[0].text, marks[0].first + 1, marks[0].last)
            pen.ask_key("Ingredients", [first, *marks[1:]])
    if rng.random() < 0.6:
        bar_code(pen)
    if rng.random() < 0.4:
        pen.ask("key", "url", pen.line(texts("url"), pen.width / 2, max(9.0, 0.8 * style.size), align="center"))


def nutrition(pen: Pen) -> None:
    """Nutrition facts in a frame."""
    rng, style, top = pen.rng, pen.style, pen.y
    right = pen.left + min(pen.right - pen.left, 18 * style.size)
    pen.y += 0.3 * style.size
    head = pen.line(
        "Nutrition Facts", pen.left + 6, style.size * 1.2, style.bold, limit=right - pen.left - 12, shrink=True
    )
    pen.ask("title", "table_title", head)
    rows: list[tuple[Mark, Mark, int, str]] = []
    for name in (
        "Calories",
        "Total Fat",
        "Saturated Fat",
        "Cholesterol",
        "Sodium",
        "Protein",
        "Sugars",
        "Dietary Fiber",
    ):
        if rng.random() < 0.7 and not pen.full:
            pen.rule(pen.left, pen.y, right, pen.y, 1)
            unit = "" if name == "Calories" else rng.choice(("g", "mg"))
            number = rng.randint(0, 300)
            amount = pen.write(f"{number}{unit}", right - 6, pen.y + 2, align="right")
            mark = pen.line(name, pen.left + 6, font=style.bold, limit=right - pen.left - 5 * style.size, after=0.1)
            if mark and amount:
                pen.ask_key(mark.text, amount)
                rows.append((mark, amount, number, unit))
    nutrients(pen, rows)
    pen.frame(pen.left, top, right, pen.y + 2, 2)
    pen.skip(0.6)


def nutrients(pen: Pen, rows: list[tuple[Mark, Mark, int, str]]) -> None:
    """Comparisons of the nutrition facts that have the same unit: name, amount as written, number, unit."""
    if len(rows) < 2:
        return
    names = [mark for mark, _, _, _ in rows]
    count(pen, pen.rng.choice(("nutrition facts", "lines in the nutrition table")), len(rows), names)
    listed(pen, names)
    for _ in range(2):
        (name, mark, one, unit), (against, beside, other, same) = pen.rng.sample(rows, 2)
        if unit != same or not unit or one == other:
            continue
        slots = {"a": name.text, "b": against.text, "thing": "nutrient", "measure": "amount", "group": ""}
        pen.ask("compare", "larger", name if one > other else against, **slots)
        pen.reply("compare", "difference", worked_out("difference", one, other, 0), (mark, beside), **slots)
        claim(pen, "is_larger", one > other, (mark, beside), **slots)


def bar_code(pen: Pen) -> None:
    """Upright bars with digits below."""
    rng, size = pen.rng, max(9.0, 0.8 * pen.style.size)
    height, x = 3.5 * size, pen.left
    if pen.y + height + 1.5 * size > pen.bottom:
        return
    end = x + min(pen.right - x, 12 * size)
    while x < end:
        wide = rng.choice((1, 1, 2, 3))
        pen.fill(x, pen.y, x + wide, pen.y + height, 0.95)
        x += wide + rng.choice((1, 2, 3))
    pen.y += height + 2
    mark = pen.line(str(rng.randint(10**11, 10**13)), size=size, limit=end - pen.left)
    pen.ask_key("Bar code number", mark)


def card(pen: Pen) -> None:
    """A business card somewhere on the page."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "card"
    wide = min(pen.width * rng.uniform(0.75, 0.96), pen.height * 1.6)
    tall = min(wide * 0.58, pen.height * 0.96)
    x0, y0 = rng.uniform(2, pen.width - wide - 2), rng.uniform(2, pen.height - tall - 2)
    style.size = max(min(tall / rng.uniform(12, 16), wide / 24), 9.5)
    pen.frame(x0, y0, x0 + wide, y0 + tall, 1.5, 0.5)
    if rng.random() < 0.15:
        pen.fill(x0, y0, x0 + wide, y0 + tall, 0.85, rng.random())
        style.ink = -style.ink
    pen.left, pen.right = x0 + 0.06 * wide, x0 + 0.94 * wide
    pen.y, pen.bottom = y0 + 0.06 * tall, y0 + tall * 0.97
    align, x = rng.choice((("left", pen.left), ("center", x0 + wide / 2), ("right", pen.right)))
    limit = pen.right - pen.left

    def put(text: str, size: float = 1.0, font: int = -1) -> Mark:
        return pen.line(text, x, style.size * size, font, align=align, limit=limit, shrink=True)

    who, what = texts("name"), texts("job")
    order = ["company", "person"] if rng.random() < 0.6 else ["person", "company"]
    for part in order:
        if part == "company":
            pen.ask("company", "company", put(texts("company"), rng.uniform(1.2, 2), style.head))
        else:
            name, job = put(who, rng.uniform(1.1, 1.7), style.bold), put(what, 0.9, style.italic)
            pen.ask("person", "person", name)
            if name and job:
                pen.ask("person", "designation", job, name=name.text)
                pen.ask("person", "holder", name, job=job.text)
        pen.skip(rng.uniform(0.1, 0.6))
    pen.ask("address", "street", put(texts("street")), whom=who)
    place_questions(pen, put(place(pen)), who)
    for kind, names in CONTACTS:
        if rng.random() < 0.7:
            before = rng.choice(names)
            mark = put(f"{before}: {texts(kind)}" if before else texts(kind))
            if mark:
                pen.ask("key", kind, Mark(mark.text, mark.first + bool(before), mark.last))
    count(pen, rng.choice(("lines", "lines of text")), len(pen.marks))


def collage(pen: Pen) -> None:
    """Loose lines and blocks of many sizes and fonts, wherever there is room."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "page"
    fonts = len(pen.typefaces.names)
    kinds = (
        "word",
        "rare",
        "title",
        "name",
        "number",
        "code",
        "date",
        "company",
        "sentence",
        "price",
        "address",
        "email",
    )
    for _ in range(rng.randint(15, 60)):
        if pen.glyphs > 2000:
            break
        text, font = texts(rng.choice(kinds)), rng.randrange(fonts)
        size = style.size * rng.choice((0.6, 0.8, 1, 1, 1, 1.3, 2, 3, 4.5))
        text = text.upper() if rng.random() < 0.2 else text
        lines = pen.wrap(text, pen.width * rng.uniform(0.2, 0.7), max(size, 9.0), font)[: rng.randint(1, 6)]
        block(pen, lines, max(size, 9.0), font)


def block(pen: Pen, lines: list[str], size: float, font: int) -> None:
    """Some lines at a free place, dark on light or light on a dark patch."""
    rng = pen.rng
    wide, pitch = max(pen.measure(line, size, font) for line in lines) + 4, size * rng.uniform(1.05, 1.4)
    tall = pitch * len(lines)
    if wide > pen.width - 8 or tall > pen.height - 8:
        return
    for _ in range(6):
        x, y = rng.uniform(3, pen.width - wide - 3), rng.uniform(3, pen.height - tall - 3)
        if not pen.free(x, y, x + wide, y + tall):
            continue
        dark = rng.choice((0.0, 0.0, 0.0, 0.2, 0.8))
        if dark:
            pen.fill(x - 1, y - 1, x + wide, y + tall, dark, rng.choice((0.0, rng.random())))
        ink = -rng.uniform(0.8, 1) if dark > 0.5 else rng.uniform(0.5, 1)
        for index, line in enumerate(lines):
            pen.write(line, x + 2, y + index * pitch + 1, size, font, ink=ink)
        return
