"""Pages of short entries: contents, agendas, numbered lists, fax covers."""

from __future__ import annotations

from homunculus.train.synth.documents.letter import body, key_line, sentences
from homunculus.train.synth.documents.page import NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import letterhead, running, stamp
from homunculus.train.synth.documents.reasoning import count, listed

LIST_HEADS = (
    "CONTENTS",
    "Table of Contents",
    "AGENDA",
    "Agenda",
    "MINUTES",
    "Program",
    "Checklist",
    "Schedule",
    "Index",
)


def listing(pen: Pen) -> None:
    """Contents, an agenda, minutes: numbered or timed items."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, pen.rng.choice(("contents", "agenda", "list"))
    align = rng.choice(("center", "left"))
    x = pen.width / 2 if align == "center" else pen.left
    if rng.random() < 0.4:
        pen.ask("company", "company", pen.line(texts("company"), x, font=style.bold, align=align, shrink=True))
    size = style.size * rng.uniform(1.2, 2.2)
    heading = rng.choice(LIST_HEADS) if rng.random() < 0.6 else texts("title")
    pen.ask("title", "title", pen.line(heading, x, size, style.head, align=align, shrink=True))
    if rng.random() < 0.6:
        pen.ask("date", "date", pen.line(texts("date"), x, align=align))
    if rng.random() < 0.3:
        pen.ask("address", "where_event", pen.line(texts("city"), x, align=align))
    pen.skip(rng.uniform(0.3, 1.5))
    {"contents": contents, "agenda": agenda, "list": numbered}[pen.noun](pen)
    running(pen)


def contents(pen: Pen) -> None:
    """Titles with page numbers at the right, with or without dots between."""
    page, dots, gap = 1, pen.rng.random() < 0.5, pen.rng.choice((0.0, 0.3, 0.8))
    items: list[Mark] = []
    for _ in range(pen.rng.randint(5, 24)):
        page += pen.rng.randint(1, 12)
        if pen.full:
            break
        number = pen.write(str(page), pen.right, pen.y, align="right")
        limit = pen.right - pen.left - 4 * pen.style.size
        item = pen.line(pen.texts("title"), limit=limit, shrink=True, after=gap)
        if not item or not number:
            return
        if dots and number.x0 - item.x1 > 3 * pen.style.size:
            pen.dashes(item.x1 + 4, item.y1 - 0.25 * pen.style.size, number.x0 - 4)
        pen.ask("table", "list_page", number, item=item.text)
        items.append(item)
    count(pen, pen.rng.choice(("entries", "titles with a page number", "items")), len(items), items)
    listed(pen, items)


def agenda(pen: Pen) -> None:
    """Times, what happens then, and who does it."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    wide, gap = pen.right - pen.left, rng.choice((0.0, 0.4, 1.0))
    second = pen.left + max(wide * 0.2, 6.5 * style.size)
    people = rng.random() < 0.6 and wide > 30 * style.size
    items: list[Mark] = []
    for _ in range(rng.randint(4, 16)):
        if pen.full:
            break
        time = pen.write(texts("time"), pen.left, pen.y, limit=second - pen.left - 0.5 * style.size)
        name = pen.write(texts("name"), pen.right, pen.y, align="right", limit=wide * 0.25) if people else NOTHING
        room = (name.x0 if name else pen.right) - second - style.size
        item = pen.line(texts("title"), second, limit=room, font=style.value, after=gap, shrink=True)
        if not item:
            pen.skip(1)
            continue
        pen.ask("table", "list_time", time, item=item.text)
        pen.ask("table", "list_who", name, item=item.text)
        items.append(item)
        if time:
            pen.ask("table", "list_what", item, time=time.text)
    count(pen, rng.choice(("items on the agenda", "entries", "events")), len(items), items)
    listed(pen, items)


def numbered(pen: Pen) -> None:
    """Numbered points."""
    rng, style, gap = pen.rng, pen.style, pen.rng.choice((0.2, 0.6, 1.2))
    kind = rng.choice(("title", "sentence", "name", "product", "company", "department"))
    points: list[list[Mark]] = []
    sign = rng.choice(("{}.", "{})", "({})", "{}"))
    total = rng.randint(4, 15)
    for number in range(1, total + 1):
        if pen.full:
            break
        pen.write(sign.format(number), pen.left, pen.y)
        marks = pen.paragraph(pen.texts(kind), pen.left + 2.5 * style.size, font=style.value)
        if marks and not pen.full:
            pen.ask("list", "list_n", marks, n=str(number))
            points.append(marks)
        pen.skip(gap)
    if len(points) > 1:
        pen.ask("list", "list_first", points[0])
        if len(points) == total:
            pen.ask("list", "list_last", points[-1])
            firsts = [marks[0] for marks in points]
            count(pen, rng.choice(("points", "numbered points", "items in the list", "entries")), total, firsts)
        listed(pen, [marks[0] for marks in points if len(marks) == 1])


def cover(pen: Pen) -> None:
    """A fax cover sheet."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "fax"
    if rng.random() < 0.8:
        letterhead(pen)
    head = rng.choice(
        ("FAX", "FACSIMILE", "Fax Cover Sheet", "VIA FACSIMILE", "FAX TRANSMITTAL", "Telecopier Cover Letter")
    )
    align = rng.choice(("center", "left"))
    x = pen.width / 2 if align == "center" else pen.left
    size = style.size * rng.uniform(1.3, 3)
    pen.ask("title", "title", pen.line(head, x, size, style.head, 0.6, align=align, shrink=True))
    fields = [("To", "name"), ("Company", "company"), ("Fax No.", "fax"), ("From", "name"), ("Phone", "phone"),
              ("Date", "date"), ("Time", "time"), ("No. of pages (including cover)", "count"), ("Subject", "title"),
              ("cc", "name"), ("Department", "department"), ("Project", "title"), ("Ref", "code")]  # fmt: skip
    fields = [pair for pair in fields if rng.random() < 0.7]
    at = pen.left + style.size * rng.uniform(6, 9) if rng.random() < 0.7 else 0.0
    underline, upper = rng.random() < 0.4, rng.random() < 0.5
    for key, kind in fields:
        if pen.full:
            break
        top = pen.y
        value = str(rng.randint(1, 40)) if kind == "count" else texts(kind)
        mark = key_line(pen, key.upper() if upper else key, value, at=at)
        if underline and mark:
            pen.rule(mark.x0, top + 1.02 * style.size, pen.right, top + 1.02 * style.size, 1)
        pen.skip(rng.choice((0.1, 0.4, 0.4)))
    pen.skip(1)
    if not pen.full and rng.random() < 0.7:
        pen.line(rng.choice(("COMMENTS:", "Message:", "Remarks:", "NOTES")), font=style.bold)
        body(pen, rng.randint(1, 2))
    if not pen.full and rng.random() < 0.6:
        pen.skip(1)
        pen.paragraph("CONFIDENTIALITY NOTE: " + sentences(pen, 3), size=max(9.0, 0.7 * style.size))
    if rng.random() < 0.3:
        stamp(pen)
    running(pen)
