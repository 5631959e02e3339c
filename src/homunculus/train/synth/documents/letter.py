"""Running text: letters, memos, articles, reports, dense print, lists, fax covers."""

from __future__ import annotations

from homunculus.train.synth.documents.page import NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import NTH, address_block, letterhead, place, running, signature
from homunculus.train.synth.documents.reasoning import count, listed

CLOSINGS = (
    "Sincerely,",
    "Sincerely yours,",
    "Yours truly,",
    "Best regards,",
    "Yours faithfully,",
    "Cordially,",
    "Regards,",
)
GREETINGS = ("Dear Mr. {last}:", "Dear {first},", "Dear Dr. {last},", "Dear Ms. {last}:", "Dear {first}:", "Dear Sir:")
MEMO_HEADS = (
    "MEMORANDUM",
    "MEMO",
    "Inter-Office Memorandum",
    "INTEROFFICE CORRESPONDENCE",
    "M E M O R A N D U M",
    "Memorandum",
)


def sentences(pen: Pen, count: int) -> str:
    """Some running text; now and then with a person, a date, an amount in it."""
    parts = []
    for _ in range(count):
        part = pen.texts("sentence")
        if pen.rng.random() < 0.12:
            kind = pen.rng.choice(("name", "date", "price", "percent", "company", "number", "phone", "code"))
            detail = pen.rng.choice((", {}.", " ({}).", " as of {}.", " - {}.", ": {}.")).format(pen.texts(kind))
            part = part.rstrip(".!?") + detail
        parts.append(part)
    return " ".join(parts)


def body(pen: Pen, paragraphs: int, x: float = 0.0, width: float = 0.0) -> None:
    """Paragraphs at the cursor until the page is full."""
    rng, gap, indent = pen.rng, pen.rng.choice((0.0, 0.4, 0.7, 1.0)), pen.rng.random() < 0.4
    x = x or pen.left
    width = width or pen.right - x
    for _ in range(paragraphs):
        if pen.full:
            return
        text = sentences(pen, rng.randint(1, 5))
        if indent and gap < 0.5:
            first, *rest = pen.wrap(text, width - 2 * pen.style.size)
            pen.line(first, x + 2 * pen.style.size)
            text = " ".join(rest)[: len(text)]
        pen.paragraph(text, x, width)
        pen.skip(gap)


def letter(pen: Pen) -> None:
    """A business letter."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "letter"
    pen.bottom -= style.size * rng.choice((0, 1, 2))
    if rng.random() < 0.75:
        letterhead(pen)
    else:
        pen.skip(rng.uniform(0, 3))
    start = pen.y
    side = rng.choice(("left", "left", "right", "middle"))
    x = {"left": pen.left, "right": pen.right, "middle": pen.width * 0.55}[side]
    date = pen.line(texts("date"), x, align="right" if side == "right" else "left")
    pen.ask("date", "date", date)
    pen.note("date of the letter", date)
    if rng.random() < 0.35:
        label = rng.choice(("Our ref", "Ref", "File No.", "Reference", "Case No"))
        key_line(pen, label, texts("code"), x if side == "middle" else pen.left)
    if rng.random() < 0.2 and side == "right":
        pen.y = max(start + style.size * 1.2, pen.y)
    pen.skip(rng.uniform(0.5, 2))
    first, last = texts("first"), texts("last")
    person = rng.choice(("Mr. {} {}", "Dr. {} {}", "{} {}", "Ms. {} {}", "{} {}, M.D.")).format(first, last)
    lines = [person]
    for kind, probability in (("job", 0.4), ("department", 0.25), ("company", 0.7)):
        if rng.random() < probability:
            lines.append(texts(kind))
    marks = address_block(pen, pen.left, [*lines, texts("street"), place(pen)], person)
    pen.ask("person", "addressee", marks[:1])
    pen.note("name of the addressee", marks[0] if marks else NOTHING)
    pen.skip(rng.uniform(0.5, 1.2))
    if rng.random() < 0.35:
        key_line(pen, rng.choice(("Re", "RE", "Subject", "Subj")), texts("title"), pen.left + rng.choice((0, 60)))
        pen.skip(0.5)
    greeting = pen.line(rng.choice(GREETINGS).format(first=first, last=last), after=rng.uniform(0.2, 0.6))
    pen.ask("person", "salutation", greeting)
    pen.bottom -= style.size * 9
    body(pen, rng.randint(2, 9))
    pen.bottom += style.size * 9
    closing(pen)
    running(pen)


def closing(pen: Pen) -> None:
    """The end of a letter: close, signature, copies, enclosures."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    pen.skip(rng.uniform(0.2, 0.8))
    x = pen.left if rng.random() < 0.6 else pen.left + (pen.right - pen.left) * 0.5
    pen.ask("closing", "closing", pen.line(rng.choice(CLOSINGS), x))
    signature(pen, x, texts("name"), texts("job") if rng.random() < 0.75 else "")
    pen.skip(rng.uniform(0.3, 1))
    if rng.random() < 0.3:
        pen.ask(
            "initials",
            "initials",
            pen.line(texts("initials").upper() + rng.choice((":", "/")) + texts("initials").lower()),
        )
    if rng.random() < 0.25:
        pen.ask("enclosure", "enclosure", after(pen.line("Enclosure: " + texts("title"))))
    if rng.random() < 0.3:
        pen.ask("person", "cc", after(pen.line(rng.choice(("cc: ", "CC: ", "c: ", "cc ")) + texts("name"))))
    if rng.random() < 0.2 and pen.y + 4 * style.size < pen.bottom:
        board(pen)


def after(mark: Mark) -> Mark:
    """A line without its first word."""
    return Mark(mark.text.partition(" ")[2], mark.first + 1, mark.last) if mark else NOTHING


def board(pen: Pen) -> None:
    """Columns of names with their posts at the foot of the page."""
    size, columns = max(9.0, pen.style.size * 0.62), pen.rng.randint(2, 4)
    wide, top = (pen.right - pen.left) / columns, pen.bottom - 2 * size
    for column in range(columns):
        x = pen.left + column * wide
        name, job = pen.texts("name"), pen.texts("job")
        who = pen.write(name, x, top, size, limit=wide - size)
        what = pen.write(job, x, top + 1.1 * size, size * 0.9, pen.style.italic, limit=wide - size)
        if who and what:
            pen.ask("person", "designation", what, name=who.text)
            pen.ask("person", "holder", who, job=what.text)
    pen.bottom = top - size


def key_line(pen: Pen, key: str, value: str, x: float = 0.0, at: float = 0.0, times: int = 2) -> Mark:
    """A label and its value on one line at the cursor; `at` is where values begin, if they stand in a column."""
    x, style = x or pen.left, pen.style
    if pen.full:
        return NOTHING
    label = pen.write(key + (style.colon or ":"), x, pen.y, font=style.bold if pen.rng.random() < 0.5 else style.body)
    if not label:
        return NOTHING
    start = max(at, label.x1 + 0.5 * style.size)
    marks = []
    for line in pen.wrap(value, pen.right - start, font=style.value)[:3]:
        mark = pen.line(line, start, font=style.value)
        marks += [mark] if mark else []
    if not marks:
        pen.skip(1)
        return NOTHING
    pen.ask_key(key, marks, times)
    return marks[0]


def memo(pen: Pen) -> None:
    """A memorandum: heading, To, From, Date, Subject, text."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "memo"
    if rng.random() < 0.5:
        letterhead(pen)
    align = rng.choice(("center", "left"))
    head = pen.line(
        rng.choice(MEMO_HEADS), pen.width / 2 if align == "center" else pen.left, style.size * rng.uniform(1.1, 2.2),
        style.head, rng.uniform(0.3, 1), align=align, shrink=True,
    )  # fmt: skip
    pen.ask("title", "title", head)
    sender = texts("name")
    fields = [("To", texts("name")), ("From", sender), ("Date", texts("date")), ("Subject", texts("title"))]
    if rng.random() < 0.4:
        fields[3] = ("Re", fields[3][1])
    if rng.random() < 0.3:
        fields.insert(2, (rng.choice(("cc", "Copies to")), texts("name")))
    if rng.random() < 0.3:
        fields.append((rng.choice(("File", "Project", "Dept", "Ref. No.")), texts("code")))
    if rng.random() < 0.5:
        head_fields, rest = fields[:3], fields[3:]
        rng.shuffle(head_fields)
        fields = head_fields + rest
    upper = rng.random() < 0.6
    at = pen.left + style.size * rng.uniform(5.5, 8) if rng.random() < 0.8 else 0.0
    for key, value in fields:
        key_line(pen, key.upper() if upper else key, value, at=at)
        pen.skip(rng.choice((0, 0.3)))
    if rng.random() < 0.5:
        pen.rule(pen.left, pen.y + 2, pen.right, pen.y + 2)
    pen.skip(rng.uniform(0.5, 1.5))
    if rng.random() < 0.4:
        pen.bottom -= style.size * 5
        body(pen, rng.randint(1, 5))
        pen.bottom += style.size * 5
        signature(pen, pen.left, sender, texts("job"))
    else:
        body(pen, rng.randint(2, 10))
    running(pen)


def article(pen: Pen) -> None:
    """A printed article in one to three columns."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "article"
    pen.line(texts("company"), pen.left, style.size * 0.8, style.italic) if rng.random() < 0.4 else None
    size = style.size * rng.uniform(1.5, 3)
    title = pen.title_case(texts("title"))
    lines = pen.wrap(title, pen.right - pen.left, size, style.head)[:3]
    pen.ask("title", "title", [pen.line(line, size=size, font=style.head) for line in lines])
    if rng.random() < 0.7:
        by = pen.line(rng.choice(("By ", "by ", "BY ")) + texts("name"), font=style.italic, after=0.5)
        pen.ask("person", "author", after(by))
    if rng.random() < 0.3:
        pen.ask("date", "date", pen.line(texts("date"), after=0.3))
    columns = min(rng.choice((1, 2, 2, 3)), max(1, int((pen.right - pen.left) / (style.size * 15))))
    gap = style.size * rng.uniform(1.2, 2)
    width, top, bottom = (pen.right - pen.left + gap) / columns - gap, pen.y, pen.bottom
    figures, filled = 0, 0
    for column in range(columns):
        before = len(pen.marks)
        pen.y, x = top, pen.left + column * (width + gap)
        pen.bottom = bottom - (style.size * rng.uniform(0, 6) if column == columns - 1 else 0)
        if rng.random() < 0.25 and pen.y + style.size * 12 < pen.bottom:
            figures += 1
            figure(pen, x, width, column + 1)
        headed(pen, x, width)
        filled += len(pen.marks) > before + 1
        if column and rng.random() < 0.3:
            pen.rule(x - gap / 2, top, x - gap / 2, bottom, 1)
    if filled == columns:
        count(pen, rng.choice(("columns of text", "columns")), columns)
    if figures:
        count(pen, rng.choice(("figures", "pictures")), figures)
    running(pen)


def headed(pen: Pen, x: float, width: float) -> None:
    """Text of one column with headings between the paragraphs."""
    while not pen.full:
        if pen.rng.random() < 0.3 and pen.y + 4 * pen.style.size < pen.bottom:
            pen.paragraph(pen.title_case(pen.texts("title")), x, width, font=pen.style.bold, align="left")
        body(pen, pen.rng.randint(1, 3), x, width)


def figure(pen: Pen, x: float, width: float, number: int) -> None:
    """A grey picture with a caption below."""
    height = pen.style.size * pen.rng.uniform(4, 8)
    pen.fill(x, pen.y, x + width, pen.y + height, pen.rng.uniform(0.1, 0.6), pen.rng.choice((0.0, pen.rng.random())))
    pen.y += height + 0.3 * pen.style.size
    text = f"Figure {number}. {pen.texts('title')}"
    marks = pen.paragraph(text, x, width, max(9.0, pen.style.size * 0.8), pen.style.italic, "left")
    pen.ask("caption", "caption", marks, n=str(number))
    pen.skip(0.5)


def report(pen: Pen) -> None:
    """A report page: title, numbered headings, paragraphs, lists."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "report"
    align = rng.choice(("center", "left"))
    x = pen.width / 2 if align == "center" else pen.left
    size = style.size * rng.uniform(1.2, 2.4)
    title = pen.line(pen.title_case(texts("title")), x, size, style.head, 0.4, align=align, shrink=True)
    pen.ask("title", "title", title)
    if rng.random() < 0.3:
        pen.rule(title.x0, title.y1 + 2, title.x1, title.y1 + 2)
    if rng.random() < 0.4:
        pen.ask("person", "author", pen.line(texts("name"), x, align=align))
    if rng.random() < 0.4:
        pen.ask("date", "date", pen.line(texts("date"), x, align=align))
    pen.skip(rng.uniform(0.3, 1))
    roman, number, headings = rng.random() < 0.3, 0, list[Mark]()
    numbered = rng.random() < 0.7
    while not pen.full and number < 7:
        number += 1
        name = ("I", "II", "III", "IV", "V", "VI", "VII")[number - 1] if roman else str(number)
        heading = pen.title_case(texts("title"))
        if pen.y + 3 * style.size > pen.bottom:
            break
        mark = pen.line(f"{name}. {heading}" if numbered else heading, font=style.bold, shrink=True, after=0.2)
        pen.ask("title", "nth_heading", mark, nth=NTH[number - 1])
        headings.append(after(mark) if numbered else mark)
        if numbered:
            pen.ask("title", "section", after(mark), n=name)
        if rng.random() < 0.3:
            points = bullets(pen, rng.randint(2, 5))
            if points and 0 < len(headings[-1].text) < 50:
                count(pen, rng.choice(("points", "bullet points", "entries")), len(points), points, headings[-1].text)
        else:
            body(pen, rng.randint(1, 2))
        pen.skip(rng.uniform(0.3, 0.8))
    if all(headings):
        count(pen, rng.choice(("sections", "section headings")), len(headings), headings)
        listed(pen, headings)
    running(pen)


def bullets(pen: Pen, count: int) -> list[Mark]:
    """Short points, each with a dash, a star or a letter."""
    sign, x, found = pen.rng.choice(("-", "*", "o", "a", "+")), pen.left + pen.style.size, []
    for index in range(count):
        if pen.full:
            break
        lead = f"{chr(97 + index)})" if sign == "a" else sign
        pen.write(lead, x, pen.y)
        kind = pen.rng.choice(("title", "sentence", "product", "department"))
        found += pen.paragraph(pen.texts(kind), x + 1.8 * pen.style.size, font=pen.style.value)[:1]
    return found


def dense(pen: Pen) -> None:
    """Small print over the whole page, in columns."""
    rng, style, pen.noun = pen.rng, pen.style, "page"
    filling = (pen.height * pen.width / 2100) ** 0.5  # the size at which a page full of text is as long as it may be
    style.size = max(9.5, filling * rng.uniform(0.45, 1.0))
    style.leading = rng.choice((1.1, 1.15, 1.2))
    pen.left = pen.width * 0.03
    pen.right = pen.width - pen.left
    if rng.random() < 0.7:
        title = pen.title_case(pen.texts("title"))
        head = pen.line(title, size=style.size * rng.uniform(1, 1.8), font=style.bold, after=0.3, shrink=True)
        pen.ask("title", "title", head)
    columns, filled = max(1, min(rng.randint(1, 4), int(pen.width / (style.size * 12)))), 0
    gap = style.size * 1.5
    width, top = (pen.right - pen.left + gap) / columns - gap, pen.y
    tall = 2700 / (width / (0.5 * style.size)) / columns * style.size * style.leading
    pen.bottom = min(pen.bottom, top + tall)
    for column in range(columns):
        pen.y, before = top, len(pen.marks)
        headed(pen, pen.left + column * (width + gap), width)
        filled += len(pen.marks) > before + 1
    if filled == columns:
        count(pen, rng.choice(("columns of text", "columns")), columns)
    running(pen)
