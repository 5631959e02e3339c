"""What business pages share: their print, labelled values in lists and boxes, and the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from homunculus.train.synth.documents import wording
from homunculus.train.synth.documents.business_terms import Term
from homunculus.train.synth.documents.business_values import Values
from homunculus.train.synth.documents.page import LEAST, NOTHING, DrawnQuestion, Mark, Pen

FULL = 2100  # glyphs after which no more rows are added
# Terms that another one on the page may stand for: never asked for in vain.
CLOSE = {
    "total", "due", "subtotal", "date", "contact", "reference", "holder", "account_no", "seller_vat", "tax",
    "paid", "opening", "closing", "balance_old", "received", "charges", "credits", "debits", "bank_account",
    "employee", "period", "pay_period", "statement_date", "phone_no", "supply", "usage", "gross", "net",
    "deducted", "customer_no", "available", "invoice_no", "bill_no", "delivery_date", "currency",
}  # fmt: skip
Pair = tuple[str, str]  # the name of a term, and a value


@dataclass
class Field:
    """A label with its value on the page."""

    name: str
    label: str
    marks: list[Mark]


@dataclass
class Sheet:
    """One business page: how its values are written, and the fields that can be asked for."""

    pen: Pen
    terms: Mapping[str, Term]
    values: Values = field(init=False)
    fields: list[Field] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # labels, in lower case
    upper: bool = field(init=False)

    def __post_init__(self) -> None:
        fine_print(self.pen)
        self.values = Values(self.pen)
        self.upper = self.pen.rng.random() < 0.2
        self.colon = self.pen.rng.choice((":", ":", "", ""))

    def label(self, name: str) -> str:
        """A label of a term that the page has not used yet, or nothing."""
        free = [label for label in self.terms[name].labels if label.lower() not in self.used]
        if self.pen.noun in ("quote", "order confirmation", "delivery note"):
            free = [label for label in free if "nvoice" not in label and "Bill" not in label]
        if not free:
            return ""
        label = free[0] if self.pen.rng.random() < 0.25 else self.pen.rng.choice(free)
        self.used.add(label.lower())
        return label.upper() if self.upper else label

    def keep(self, name: str, label: Mark, values: Mark | Sequence[Mark]) -> None:
        """Remember a label with its value, if both are written."""
        marks = [mark for mark in ([values] if isinstance(values, Mark) else values) if mark]
        if label and marks:
            self.fields.append(Field(name, label.text, marks))

    def ask(self) -> None:
        """Questions for all fields, and for some that the page does not have."""
        rng, pen = self.pen.rng, self.pen
        names = [one.name for one in self.fields]
        taken = {wording.bare(one.label).lower() for one in self.fields}
        for one in self.fields:
            pen.ask_key(one.label, one.marks, times=0)
            term = self.terms[one.name]
            others = [other for other in term.labels if wording.bare(other).lower() not in taken]
            for _ in range(rng.choice((1, 2, 2))):
                self._ask_for(one, term.asks, others)
        missing = [name for name in self.terms if name not in names and name not in CLOSE]
        for name in rng.sample(missing, min(3, len(missing))):
            key = wording.bare(rng.choice(self.terms[name].labels))
            if all(not set(pieces(key)) & set(pieces(other)) for other in taken):
                pen.strangers.append(("field", key, {"key": key, "low": key.lower()}))

    def _ask_for(self, one: Field, asks: Sequence[str], others: Sequence[str]) -> None:
        """A question for a field: by what it means, by another name for it, or by its label."""
        pen, rng, way = self.pen, self.pen.rng, self.pen.rng.random()
        if asks and way < 0.5:
            say(pen, "key", asks, one.marks)
        elif others and way < 0.7:
            other = rng.choice(others)
            pen.ask("key", "field", one.marks, key=wording.bare(other), low=wording.spelled(other, rng))
        else:
            words = [word for mark in one.marks for word in range(mark.first, mark.last)]
            for text in wording.key_phrases(one.label, rng, pen.noun):
                pen.questions.append(DrawnQuestion(text, words, "key", ""))


def say(pen: Pen, sort: str, templates: Sequence[str], marks: Mark | Sequence[Mark], /, **slots: str) -> None:
    """A question by one of some templates, answered by the words of the marks; none if nothing is written."""
    marks = [marks] if isinstance(marks, Mark) else marks
    words = [word for mark in marks for word in range(mark.first, mark.last)]
    if words:
        text = wording.fill(pen.rng.choice(templates), pen.rng, pen.noun, **slots)
        pen.questions.append(DrawnQuestion(text, words, sort, ""))


def pieces(text: str) -> list[str]:
    """The longer words of a label."""
    return [word for word in text.lower().split() if len(word) > 3]


def fine_print(pen: Pen) -> None:
    """Set the style of a clean printed page: 8 to 11 points on a sheet of A4, narrow margins, no handwriting."""
    rng, style = pen.rng, pen.style
    point = (pen.height * pen.width) ** 0.5 / 9.83 / 72
    style.body, style.bold, style.italic = pen.typefaces.family(
        rng, *rng.choice((("sans",), ("sans",), ("sans", "serif")))
    )
    style.size = max(rng.uniform(9.2, 10.5), point * rng.choice((8, 8.5, 9, 9, 9.5, 10, 11)))
    style.head = style.bold if rng.random() < 0.8 else pen.typefaces.family(rng, "sans", "serif", "display")[1]
    style.value = rng.choice((style.body, style.body, style.body, style.bold))
    if rng.random() < 0.15:
        style.value = pen.typefaces.family(rng, "mono", "sans")[0]
    style.leading = rng.choice((1.15, 1.2, 1.25, 1.3, 1.4))
    style.tracking, style.justify = 0.0, False
    style.ink = rng.uniform(0.78, 1.0)
    style.margin = pen.width * rng.uniform(0.05, 0.1)
    pen.left, pen.right = style.margin, pen.width - style.margin
    pen.y = pen.height * rng.uniform(0.025, 0.055)
    pen.bottom = pen.height - max(pen.height * 0.035, 1.6 * style.size)


def put(pen: Pen, text: str, x: float, y: float, size: float = 0.0, font: int = -1, align: str = "left",
        limit: float = 0.0, ink: float = 0.0) -> Mark:  # fmt: skip
    """A whole line, made a little smaller where it has to be; nothing where it does not fit."""
    size = max(size or pen.style.size, LEAST)
    text = " ".join(text.split())
    room = min(limit or pen.width, (pen.width - 3 - x) if align == "left" else x - 3)
    wide = pen.measure(text, size, font)
    if wide > room:
        size = max(size * 0.75, LEAST, size * 0.98 * room / wide)
    if pen.measure(text, size, font) > room or y + size > pen.bottom + 0.2 * size:
        return NOTHING
    return pen.write(text, x, y, size, font, align, ink=ink)


def lines(pen: Pen, texts: Sequence[str], x: float, limit: float, size: float = 0.0, font: int = -1) -> list[Mark]:
    """Lines at the cursor, each whole or left out."""
    size, marks = size or pen.style.size, []
    for text in texts:
        mark = put(pen, text, x, pen.y, size, font, limit=limit)
        if mark:
            marks.append(mark)
            pen.y += size * pen.style.leading
    return marks


def side_by_side(pen: Pen, parts: Sequence[Callable[[float, float], None]], shares: Sequence[float] = ()) -> None:
    """Parts of the page in columns from the same top; the cursor goes below the longest."""
    shares = shares or [1.0] * len(parts)
    top, low, x = pen.y, pen.y, pen.left
    gap = 1.5 * pen.style.size
    scale = (pen.right - pen.left + gap) / sum(shares)
    for part, share in zip(parts, shares, strict=True):
        pen.y = top
        part(x, x + share * scale - gap)
        low, x = max(low, pen.y), x + share * scale
    pen.y = low


@dataclass
class FieldStyle:
    """How labelled values are set, the same over a page."""

    frame: float = 1.0  # width of the frames; 0 for none
    shade: float = 0.0  # darkness behind labels
    tint: float = 0.0
    small: float = 0.8  # size of labels
    bold: bool = False  # labels are bold
    centred: bool = False
    rounds: float = 1.5  # lines of room for a value

    @classmethod
    def draw(cls, pen: Pen) -> FieldStyle:
        """A look by chance."""
        rng = pen.rng
        return cls(rng.choice((0.0, 1.0, 1.0, 1.0, 1.6)), rng.choice((0.0, 0.0, 0.06, 0.12, 0.2)),
                   rng.choice((0.0, rng.random())), rng.choice((0.72, 0.8, 0.85, 1.0)), rng.random() < 0.35,
                   rng.random() < 0.15, rng.uniform(1.25, 1.9))  # fmt: skip


def listed_pairs(sheet: Sheet, pairs: Sequence[Pair], x0: float, x1: float, look: FieldStyle) -> None:
    """Pairs at the cursor, one a line: label left, value in a column or at the right end."""
    pen, style = sheet.pen, sheet.pen.style
    right = pen.rng.random() < 0.35
    rules, zebra = look.frame > 0 and pen.rng.random() < 0.3, look.shade > 0 and pen.rng.random() < 0.3
    font = style.bold if look.bold else style.body
    named = [(name, label + sheet.colon, value) for name, value in pairs if (label := sheet.label(name))]
    widest = max([pen.measure(label, font=font) for _, label, _ in named], default=0.0)
    at = x0 + min(widest + style.size, (x1 - x0) * 0.55)
    row = style.size * style.leading * pen.rng.choice((1.0, 1.0, 1.2))
    for index, (name, label, value) in enumerate(named):
        if pen.y + row > pen.bottom or pen.glyphs > FULL:
            return
        if zebra and index % 2 == 0:
            pen.fill(x0 - 3, pen.y - 0.1 * style.size, x1 + 3, pen.y + row - 0.1 * style.size, look.shade, look.tint)
        mark = put(pen, label, x0, pen.y, font=font, limit=at - x0 - 0.4 * style.size)
        if mark:
            x, align = (x1, "right") if right else (at, "left")
            value_font = style.bold if right and pen.rng.random() < 0.2 else style.value
            sheet.keep(name, mark, put(pen, value, x, pen.y, font=value_font, align=align, limit=x1 - at))
        if rules:
            pen.rule(x0, pen.y + row - 0.14 * style.size, x1, pen.y + row - 0.14 * style.size, 1, 0.35)
        pen.y += row


def box_row(sheet: Sheet, pairs: Sequence[Pair], edges: Sequence[float], look: FieldStyle) -> None:
    """One row of boxes at the cursor: a small label at the top of each, its value below. An empty value is a blank."""
    pen, style = sheet.pen, sheet.pen.style
    small = max(LEAST, style.size * look.small)
    top, head = pen.y, small * 1.3
    height = head + style.size * look.rounds
    if top + height > pen.bottom or pen.glyphs > FULL:
        return
    if look.shade:
        pen.fill(edges[0], top, edges[-1], top + head, look.shade, look.tint)
    pad = 0.35 * style.size
    for (name, value), (x0, x1) in zip(pairs, pairwise(edges), strict=True):
        if look.frame:
            pen.frame(x0, top, x1, top + height, look.frame)
        label, limit = sheet.label(name), x1 - x0 - 2 * pad
        x, align = ((x0 + x1) / 2, "center") if look.centred else (x0 + pad, "left")
        font = style.bold if look.bold else style.body
        mark = put(pen, label, x, top + 0.14 * small, small, font, align, limit) if label else NOTHING
        if mark and value:
            low = top + head + (height - head - style.size) * 0.35
            sheet.keep(name, mark, put(pen, value, x, low, font=style.value, align=align, limit=limit))
    pen.y = top + height


def footer(pen: Pen, texts: Sequence[str]) -> None:
    """Small print at the foot of the page, above the edge, and the page number."""
    rng = pen.rng
    size = max(LEAST, pen.style.size * 0.8)
    y = pen.height - size * rng.uniform(1.5, 2.2)
    if rng.random() < 0.5:
        last = rng.randint(1, 4)
        first = rng.randint(1, last)
        text = rng.choice((f"Page {first} of {last}", f"Page {first}/{last}", f"{first} / {last}", f"Page {first}"))
        pen.ask("page", "page", pen.squeeze(text, pen.right, y, size, align="right"))
    for text in texts[:2]:
        mark = pen.squeeze(text, pen.left, y, size)
        y -= size * 1.3 if mark else 0
    if texts and rng.random() < 0.4 and pen.free(pen.left, y, pen.right, y + size):
        pen.rule(pen.left, y + size, pen.right, y + size, 1, 0.4)


def contact(sheet: Sheet, x0: float, x1: float) -> None:
    """Phone, e-mail and website of a company, at the cursor."""
    pen, rng = sheet.pen, sheet.pen.rng
    for kind, names in (
        ("phone", ("Tel. ", "Phone: ", "T ")),
        ("email", ("E-mail: ", "Email ", "")),
        ("url", ("", "Web: ")),
    ):
        if rng.random() < 0.5:
            label = rng.choice(names)
            marks = lines(pen, [label + sheet.values(kind)], x0, x1 - x0)
            if marks:
                mark, skip = marks[0], len(label.split())
                pen.ask("key", kind, Mark("", mark.first + skip, mark.last))


def strip(sheet: Sheet, pairs: list[Pair], look: FieldStyle) -> None:
    """Pairs in one or two rows of boxes, labels above values."""
    pen = sheet.pen
    room = max(1, int((pen.right - pen.left) / (9.5 * pen.style.size)))
    while pairs:
        row, pairs = pairs[:room], pairs[room:]
        step = (pen.right - pen.left) / len(row)
        box_row(sheet, row, [pen.left + step * at for at in range(len(row) + 1)], look)
        pen.y += 0.25 * pen.style.size if not look.frame or pen.rng.random() < 0.2 else 0.0
    pen.skip(0.8)
