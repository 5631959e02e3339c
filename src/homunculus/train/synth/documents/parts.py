"""What many documents share: letterheads, address blocks, signatures, stamps, page numbers."""

from __future__ import annotations

import math

from homunculus.train.synth.documents.page import NOTHING, Mark, Pen

NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
STAMPS = (
    "RECEIVED", "CONFIDENTIAL", "COPY", "PAID", "DRAFT", "APPROVED", "FILE COPY", "ORIGINAL", "VOID", "SECRET",
    "URGENT",
)  # fmt: skip


def place_questions(pen: Pen, mark: Mark, whom: str) -> None:
    """City, state and zip code of a line such as "Dayton, OH 45402", as far as it has them."""
    words = mark.text.split()
    split = next((index for index, word in enumerate(words) if word.endswith(",")), -1)
    if split < 0:
        return
    city = Mark(" ".join(words[: split + 1]), mark.first, mark.first + split + 1)
    pen.ask("address", "city", city, whom=whom)
    tail = words[split + 1 :]
    if tail and tail[-1][0].isdigit():
        pen.ask("address", "zip", Mark(tail[-1], mark.last - 1, mark.last), whom=whom)
        tail = tail[:-1]
    if tail:
        first = mark.first + split + 1
        pen.ask("address", "state", Mark(" ".join(tail), first, first + len(tail)), whom=whom)


def place(pen: Pen) -> str:
    """City, state and zip code in one line."""
    texts, rng = pen.texts, pen.rng
    state = texts("state")
    if len(state) > 3 and rng.random() < 0.5:
        state = state[:2].upper()
    return f"{texts('city')}, {state} {rng.randint(10000, 99999)}"


def address_block(pen: Pen, x: float, lines: list[str], whom: str, limit: float = 0.0, font: int = -1) -> list[Mark]:
    """Lines of an address at the cursor; the last of them is a `place`."""
    marks = [mark for mark in (pen.line(line, x, limit=limit, font=font) for line in lines) if mark]
    if len(marks) == len(lines):
        pen.ask("address", "address", marks[1:] if len(marks) > 2 else marks, whom=whom)
        place_questions(pen, marks[-1], whom)
        if len(marks) > 2:
            pen.ask("address", "street", marks[-2], whom=whom)
    return marks


def letterhead(pen: Pen) -> Mark:
    """Company, motto and contact lines at the top, in one of several arrangements."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    align = rng.choice(("center", "center", "left", "right"))
    x = {"center": pen.width / 2, "left": pen.left, "right": pen.right}[align]
    size = style.size * rng.uniform(1.2, 2.6)
    name = texts("company")
    company = pen.line(name.upper() if rng.random() < 0.5 else name, x, size, style.head, align=align, shrink=True)
    pen.ask("company", "company", company)
    pen.note("name of the company", company)
    small = max(style.size * rng.uniform(0.6, 0.9), 9.0)
    if rng.random() < 0.25:
        pen.ask("company", "motto", pen.line(texts("title"), x, small, style.italic, align=align))
    whom = company.text or "the company"
    separator = rng.choice((" / ", ", ", " - ", " | "))
    if rng.random() < 0.6:
        street = pen.line(texts("street") + separator + place(pen), x, small, align=align)
        pen.ask("address", "address", street, whom=whom)
    else:
        pen.ask("address", "street", pen.line(texts("street"), x, small, align=align), whom=whom)
        place_questions(pen, pen.line(place(pen), x, small, align=align), whom)
    for kind, label in (("phone", "Tel"), ("fax", "Fax"), ("email", "E-mail"), ("url", "Web")):
        if rng.random() < 0.35:
            label = rng.choice((label + ": ", label.upper() + " ", label + " ", ""))
            mark = pen.line(label + texts(kind), x, small, align=align)
            pen.ask("key", kind, after_label(mark, label))
    if rng.random() < 0.4:
        pen.y += style.size * 0.3
        pen.rule(pen.left, pen.y, pen.right, pen.y, rng.uniform(1, 4))
    pen.skip(rng.uniform(0.5, 2.0))
    return company


def after_label(mark: Mark, label: str) -> Mark:
    """The part of a written line that follows its label."""
    count = len(label.split())
    return Mark(" ".join(mark.text.split()[count:]), mark.first + count, mark.last) if mark else NOTHING


def tail(mark: Mark, count: int) -> Mark:
    """The last words of a written line."""
    words = mark.text.split()
    return Mark(" ".join(words[-count:]), max(mark.first, mark.last - count), mark.last) if mark else NOTHING


def scribble(pen: Pen, x: float, y: float, width: float, height: float) -> None:
    """A signature: a running loop that decays to the right."""
    rng = pen.rng
    a, b, lift = rng.uniform(1.5, 5), rng.uniform(3, 11), rng.uniform(0.2, 0.6)
    phase, steps = rng.uniform(0, 6), rng.randint(26, 44)
    points = []
    for step in range(steps + 1):
        t = step / steps
        wave = math.sin(b * 6.28 * t + phase) * (1 - lift * t) + 0.4 * math.sin(a * 9 * t)
        sway = math.cos(b * 6.28 * t + phase) * 0.05
        points.append((x + width * (t + sway), y - height * 0.35 * wave))
    pen.path(points, max(1.2, height * rng.uniform(0.03, 0.06)), rng.uniform(0.6, 1.0))


def signature(pen: Pen, x: float, name: str, job: str) -> Mark:
    """A scribble at the cursor with the typed name and the job below it."""
    rng, style = pen.rng, pen.style
    height = style.size * rng.uniform(1.8, 3.2)
    if pen.y + height + 2 * style.size < pen.bottom and rng.random() < 0.8:
        scribble(pen, x + style.size, pen.y + height * 0.55, style.size * rng.uniform(6, 11), height)
    pen.y += height
    if rng.random() < 0.2:
        pen.rule(x, pen.y - 2, x + style.size * 14, pen.y - 2)
        pen.y += 2
    signed = pen.line(name, x)
    pen.ask("person", "signer", signed)
    pen.note("name of the sender", signed)
    post = pen.line(job, x) if job else NOTHING
    if signed and post:
        pen.ask("person", "designation", post, name=signed.text)
        pen.ask("person", "holder", signed, job=post.text)
    return signed


def stamp(pen: Pen) -> None:
    """A framed word, at times with a date, where there is room for it."""
    rng, style = pen.rng, pen.style
    size = style.size * rng.uniform(1.0, 1.8)
    word, font = rng.choice(STAMPS), style.bold
    width = pen.measure(word, size, font) + size
    dated = rng.random() < 0.4
    for _ in range(5):
        x, y = rng.uniform(4, max(5, pen.width - width - 4)), rng.uniform(4, pen.height * 0.8)
        height = size * (2.9 if dated else 1.7)
        if not pen.free(x, y, x + width, y + height):
            continue
        pen.frame(x + 2, y + 2, x + width - 2, y + height - 2, max(1.5, size * 0.08), 0.7)
        mark = pen.write(word, x + width / 2, y + size * 0.35, size, font, align="center", limit=width - 6)
        pen.ask("stamp", "stamp", mark)
        if dated and mark:
            date = pen.texts("date")
            mark = pen.write(
                date, x + width / 2, y + size * 1.6, size * 0.8, font, "center", width - 8, True, tracking=0.0
            )
            if mark.text == date:
                pen.ask("stamp", "stamp_date", mark)
        return


def running(pen: Pen) -> None:
    """What stands in the margins: page number, long number, file name. Written last, only where it is free."""
    rng, style = pen.rng, pen.style
    size = max(9.0, style.size * rng.uniform(0.7, 1.0))
    low, high = pen.height - size * rng.uniform(1.2, 2.2), size * rng.uniform(0.2, 0.8)
    sides = (("left", pen.left), ("center", pen.width / 2), ("right", pen.right))
    if rng.random() < 0.6:
        page, below = str(rng.randint(1, 99)), rng.random() < 0.75
        shape = rng.choice(("{}", "{}", "- {} -", "Page {}", "Page {} of 99", "-{}-", "p. {}", "{}."))
        align, x = rng.choice(sides)
        mark = pen.squeeze(shape.format(page), x, low if below else high, size, align=align)
        words = mark.text.split()
        if mark and page in words:
            index = mark.first + words.index(page)
            mark = Mark(page, index, index + 1)
        pen.ask("page", "page" if below else "page_top", mark)
    if rng.random() < 0.4:
        number = " ".join(str(rng.randint(1000, 99999)) for _ in range(rng.choice((1, 2, 2))))
        number = rng.choice(("", "", "TI", "MS", "PX")) + number
        align, x = rng.choice((sides[0], sides[2]))
        mark = pen.squeeze(number, x, rng.choice((low, high)), size * rng.uniform(0.9, 1.3), align=align)
        place_ = ("top " if mark.y0 < pen.height / 2 else "bottom ") + align
        pen.ask("page", "bates", mark, place=place_)
    if rng.random() < 0.2:
        kind = rng.choice(("code", "url", "title"))
        align, x = rng.choice(sides)
        pen.squeeze(pen.texts(kind), x, rng.choice((low, high)), size, style.italic, align=align)
    if rng.random() < 0.15:
        stamp(pen)
