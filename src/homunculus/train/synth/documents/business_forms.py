"""Printed forms of offices: grids of boxes with a small label above each value, shaded sections, check boxes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from homunculus.train.synth.documents.business_form_terms import CHOICES, FORMS, ISSUED
from homunculus.train.synth.documents.business_parts import FULL, FieldStyle, Pair, Sheet, box_row, footer, put, say
from homunculus.train.synth.documents.business_party_asks import OFFICE, REVISION, SIGNED
from homunculus.train.synth.documents.business_terms import Term
from homunculus.train.synth.documents.form import cross, cuts, marked
from homunculus.train.synth.documents.page import LEAST, NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import scribble
from homunculus.train.synth.documents.reasoning import LONG, claim
from homunculus.train.synth.documents.wording import bare

LETTERS = "ABCDEFGH"
HINTS = (
    "Please complete in block capitals.", "Fill in all fields that apply to you.", "Fields marked * are required.",
    "Attach copies of all documents.", "Return the signed form within 30 days.", "See the instructions on page 2.",
)  # fmt: skip


def boxed_form(pen: Pen) -> None:
    """A form of one to four sections of boxes."""
    rng, pen.noun = pen.rng, "form"
    subject = rng.choice(tuple(FORMS))
    titles, sections = FORMS[subject]
    terms = {f"{at}-{number}": term for at, (_, rows) in enumerate(sections) for number, term in enumerate(rows)}
    sheet = Sheet(pen, terms)
    pen.style.value = rng.choice((pen.style.value, pen.style.body, pen.typefaces.family(rng, "mono", "sans")[0]))
    look = FieldStyle.draw(pen)
    look = replace(look, frame=rng.choice((1.0, 1.0, 1.4, 2.0)), small=rng.choice((0.68, 0.75, 0.8, 0.85)),
                   rounds=rng.uniform(1.25, 2.3))  # fmt: skip
    blank = rng.choice((0.0, 0.0, 0.08, 0.2))
    top(sheet, rng.choice(titles), rng.choice(ISSUED[subject]))
    empty: list[str] = []
    for at, (heads, rows) in enumerate(sections):
        if pen.y + 6 * pen.style.size > pen.bottom or pen.glyphs > FULL:
            break
        section(sheet, at, rng.choice(heads), look)
        names = [f"{at}-{number}" for number in range(len(rows))]
        grid(sheet, names if rng.random() < 0.5 else rng.sample(names, len(names)), look, blank, empty)
        if rng.random() < 0.7:
            choices(sheet, subject, look)
        pen.skip(rng.uniform(0.2, 0.8))
    filled(sheet, empty)
    if rng.random() < 0.5:
        signing(sheet)
    sheet.ask()
    footer(pen, rng.sample(HINTS, rng.randint(0, 1)))


def top(sheet: Sheet, title: str, office: str) -> None:
    """Issuer, title and number of the form, and a hint."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    size = style.size * rng.uniform(1.4, 2.2)
    if rng.random() < 0.6:
        issuer = put(pen, office, pen.left, pen.y, font=style.bold, limit=(pen.right - pen.left) * 0.6)
        say(pen, "company", OFFICE, issuer)
        if rng.random() < 0.7:
            code = f"Form {rng.choice('ABDKTW')}-{rng.randint(1, 999)}"
            mark = put(pen, code, pen.right, pen.y, align="right", limit=(pen.right - pen.left) * 0.35)
            say(pen, "key", REVISION, mark)
        pen.skip(1.4)
    text = title.upper() if rng.random() < 0.3 else title
    x, align = ((pen.left + pen.right) / 2, "center") if rng.random() < 0.35 else (pen.left, "left")
    mark = put(pen, text, x, pen.y, size, style.head, align, limit=pen.right - pen.left)
    pen.ask("title", "title", mark)
    pen.y += size * 1.4
    if rng.random() < 0.4:
        pen.paragraph(rng.choice(HINTS), size=max(LEAST, style.size * 0.85))
    pen.skip(0.4)


def section(sheet: Sheet, at: int, title: str, look: FieldStyle) -> None:
    """The heading of a section on a bar or above a rule."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    text = rng.choice((f"{at + 1}. {title}", f"{LETTERS[at]}. {title}", title, f"Section {at + 1}: {title}"))
    text = text.upper() if sheet.upper else text
    dark = rng.choice((look.shade or 0.12, 0.2, 0.8)) if rng.random() < 0.8 else 0.0
    height = style.size * 1.5
    if dark:
        pen.fill(pen.left, pen.y, pen.right, pen.y + height, dark, look.tint)
    mark = put(pen, text, pen.left + 0.4 * style.size, pen.y + 0.25 * style.size, font=style.bold,
               ink=-style.ink if dark > 0.5 else style.ink, limit=pen.right - pen.left)  # fmt: skip
    if mark and text[:1].isdigit():
        words = Mark("", mark.first + 1, mark.last)
        pen.ask("title", "section", words, n=str(at + 1))
    pen.y += height + (0.0 if dark else 0.1 * style.size)


def grid(sheet: Sheet, names: list[str], look: FieldStyle, blank: float, empty: list[str]) -> None:
    """Rows of one to four boxes; some values are left empty."""
    pen, rng = sheet.pen, sheet.pen.rng
    most = max(1, min(4, int((pen.right - pen.left) / (11 * pen.style.size))))
    left = names[: rng.randint(6, 18)]
    spaced = rng.random() < 0.2
    while left:
        count = rng.randint(1 if rng.random() < 0.3 else min(2, most), most)
        row, left = left[:count], left[count:]
        pairs: list[Pair] = []
        for name in row:
            value = "" if rng.random() < blank else sheet.values(sheet.terms[name].kind)
            pairs.append((name, value))
        y = pen.y
        box_row(sheet, pairs, cuts(pen, len(row)), look)
        if pen.y == y:
            return
        empty += [name for name, value in pairs if not value]
        pen.y += 0.4 * pen.style.size if spaced else 0.0


def choices(sheet: Sheet, subject: str, look: FieldStyle) -> None:
    """A box with a label and options, one of which may be crossed; or two such boxes side by side."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    count = 2 if pen.width > 60 * style.size and rng.random() < 0.6 else 1
    small = max(LEAST, style.size * look.small)
    height = small * 1.3 + style.size * 1.7
    if pen.y + height > pen.bottom:
        return
    free = [choice for choice in CHOICES[""] + CHOICES[subject] if choice[0].lower() not in sheet.used]
    step = (pen.right - pen.left) / count
    edges = [pen.left + step * at for at in range(count + 1)]
    for (label, options), (x0, x1) in zip(rng.sample(free, min(count, len(free))), pairwise(edges), strict=False):
        pen.frame(x0, pen.y, x1, pen.y + height, look.frame or 1.0)
        sheet.used.add(label.lower())
        key = put(pen, label, x0 + 0.35 * style.size, pen.y + 0.14 * small, small, limit=x1 - x0 - style.size)
        marks, picked = option_boxes(pen, options, x0 + 0.5 * style.size, x1, pen.y + small * 1.3 + 0.3 * style.size)
        if key and len(marks) == len(options):
            marked(pen, bare(key.text), marks, picked)
    pen.y += height


def option_boxes(pen: Pen, options: tuple[str, ...], x: float, right: float, y: float) -> tuple[list[Mark], int]:
    """Small squares with options after them; the marks of the options, and which of them is crossed."""
    rng, style = pen.rng, pen.style
    picked = rng.randrange(len(options)) if rng.random() < 0.85 else -1
    side, marks = 0.7 * style.size, list[Mark]()
    for at, option in enumerate(options):
        if x + 2 * side + pen.measure(option) > right:
            break
        box = y + 0.12 * style.size
        pen.frame(x, box, x + side, box + side, max(1.0, side * 0.1))
        if at == picked:
            cross(pen, x, box, side)
        mark = pen.write(option, x + side * 1.5, y)
        marks.append(mark)
        x = (mark.x1 if mark else x + side) + 1.4 * style.size
    return [mark for mark in marks if mark], picked


def filled(sheet: Sheet, empty: list[str]) -> None:
    """Whether some fields are filled in."""
    pen = sheet.pen
    labels = [line for line in pen.marks if line.text.lower() in sheet.used]
    blank = {label.lower() for name in empty for label in sheet.terms.get(name, Term("", (), ())).labels}
    open_ = [mark for mark in labels if mark.text.lower() in blank]
    full = [mark for one in sheet.fields for mark in labels if mark.text == one.label]
    for truth, marks in ((True, full), (False, open_)):
        mark = pen.rng.choice(marks) if marks else NOTHING
        if mark and len(mark.text) <= LONG:
            claim(pen, "is_filled", truth, mark, key=bare(mark.text))


def signing(sheet: Sheet) -> None:
    """Place, date and signature on lines, with their labels below."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    low = pen.y + 2.6 * style.size
    if low + 1.4 * style.size > pen.bottom:
        return
    wide = (pen.right - pen.left) / 3
    small = max(LEAST, 0.8 * style.size)
    texts = (sheet.values("city"), sheet.values.date(rng.randint(-5, 5)), "")
    for at, (label, text) in enumerate(zip(("Place", "Date", "Signature"), texts, strict=True)):
        x = pen.left + wide * at
        pen.rule(x, low, x + wide - style.size, low, 1)
        mark = (
            put(pen, text, x + 3, low - 1.1 * style.size, font=style.value, limit=wide - style.size)
            if text
            else NOTHING
        )
        name = put(pen, label, x, low + 3, small, limit=wide - style.size)
        if name and mark:
            say(pen, "key", SIGNED[at], mark)
    scribble(pen, pen.left + 2 * wide + style.size, low - style.size, min(8 * style.size, 0.5 * wide), 1.8 * style.size)
    pen.y = low + 1.5 * style.size
