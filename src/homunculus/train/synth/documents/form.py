"""Forms: labels and what is filled in, on lines, in boxes, in columns, with check boxes and signatures."""

from __future__ import annotations

from itertools import pairwise

from homunculus.train.synth.documents.page import NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import letterhead, running, scribble, stamp
from homunculus.train.synth.documents.reasoning import LONG, claim, count, listed
from homunculus.train.synth.documents.table import Grid, grid
from homunculus.train.synth.documents.wording import bare

OPTIONS = (
    ("Yes", "No"), ("Male", "Female"), ("New", "Renewal", "Change"), ("Approved", "Rejected"),
    ("Cash", "Check", "Credit Card"), ("Full time", "Part time"), ("Urgent", "Routine"),
    ("Mail", "Fax", "E-mail"), ("Single", "Married", "Divorced"), ("Regular", "Menthol", "Light"),
    ("Daily", "Weekly", "Monthly"), ("Good", "Fair", "Poor"),
)  # fmt: skip
HEADS = (
    "{} FORM",
    "APPLICATION FOR {}",
    "{} REQUEST",
    "{} REPORT",
    "REQUEST FOR {}",
    "{} RECORD",
    "{} DATA SHEET",
    "{}",
)


def form(pen: Pen) -> None:
    """A form of several sections, each in its own arrangement."""
    rng, texts, style, pen.noun = pen.rng, pen.texts, pen.style, "form"
    style.leading = max(style.leading, 1.2)
    if rng.random() < 0.4:
        letterhead(pen)
    align = rng.choice(("center", "center", "left"))
    head = texts("title") if rng.random() < 0.5 else rng.choice(HEADS).format(texts("product").upper())
    title = pen.line(
        pen.title_case(head), pen.width / 2 if align == "center" else pen.left, style.size * rng.uniform(1.1, 1.9),
        style.head, rng.uniform(0.2, 0.8), align=align, shrink=True,
    )  # fmt: skip
    pen.ask("title", "title", title)
    keys = Keys(pen)
    habit, grids = rng.choice((lined, boxed, columns, under)), list[Grid]()
    for _ in range(rng.randint(1, 5)):
        if pen.full or pen.y + 5 * style.size > pen.bottom:
            break
        if rng.random() < 0.35:
            section_bar(pen)
        (habit if rng.random() < 0.6 else rng.choice((lined, boxed, columns, under)))(pen, keys)
        pen.skip(rng.uniform(0.3, 1.0))
        if rng.random() < 0.4 and not pen.full:
            check_boxes(pen, keys)
        if rng.random() < 0.12 and not pen.full and pen.y + 8 * style.size < pen.bottom:
            grids.append(grid(pen, pen.left, pen.right - pen.left, rng.randint(2, 4), rng.randint(2, 6)))
            pen.skip(0.6)
    if len(grids) == 1:
        grids[0].compared()
    if rng.random() < 0.5:
        signing(pen, keys)
    keys.questions(not grids)
    if rng.random() < 0.25:
        stamp(pen)
    running(pen)


class Keys:
    """Labels that have not been used on the page, in the page's way of writing them."""

    def __init__(self, pen: Pen) -> None:
        self.pen, self.used = pen, set[str]()
        self.upper = pen.rng.random() < 0.4
        self.blank = pen.rng.choice((0.0, 0.1, 0.3))
        self.filled, self.empty = list[Mark](), list[Mark]()  # labels
        self.simple = True  # there is nothing but labels with their values

    def draw(self) -> tuple[str, str]:
        """A label and its value, which may be empty."""
        texts = self.pen.texts
        for _ in range(4):
            key = texts("key").strip(" :")
            if key.lower() not in self.used:
                break
        else:
            key = f"{key} {len(self.used)}"
        self.used.add(key.lower())
        value = "" if self.pen.rng.random() < self.blank else texts.value_for(key)
        return (key.upper() if self.upper else key), value

    def put(self, label: Mark, values: list[Mark], times: int = 1) -> None:
        """What was written at a label, and the question for it."""
        values = [value for value in values if value]
        if label and values:
            self.pen.ask_key(label.text, values, times)
        if label:
            (self.filled if values else self.empty).append(label)

    def questions(self, alone: bool) -> None:
        """How many fields there are and which are filled in."""
        pen = self.pen
        listed(pen, sorted(self.filled + self.empty, key=lambda label: label.y0))
        for _ in range(2):
            truth = pen.rng.random() < 0.5
            labels = self.filled if truth else self.empty
            label = pen.rng.choice(labels) if labels else NOTHING
            if label and len(label.text) <= LONG:
                claim(pen, "is_filled", truth, label, key=bare(label.text))
        total = len(self.filled) + len(self.empty)
        if alone and self.simple and total <= 16:
            count(pen, pen.rng.choice(("fields", "labelled fields")), total, self.filled + self.empty)
            if self.empty:
                count(pen, pen.rng.choice(("empty fields", "blank fields")), len(self.empty), self.empty)
                count(pen, "filled fields", len(self.filled), self.filled)


def section_bar(pen: Pen) -> None:
    """The heading of a section, on a shaded or dark bar or underlined."""
    rng, style = pen.rng, pen.style
    dark = rng.choice((0.0, 0.12, 0.25, 0.85))
    low = pen.y + style.size * 1.25
    if dark:
        pen.fill(pen.left, pen.y - 0.15 * style.size, pen.right, low, dark, rng.choice((0.0, rng.random())))
    ink = -style.ink if dark > 0.5 else style.ink
    mark = pen.line(pen.title_case(pen.texts("title")), pen.left + 5, font=style.bold, after=0.4, shrink=True, ink=ink)
    if not dark and mark:
        pen.rule(pen.left, low, pen.right, low)


def lined(pen: Pen, keys: Keys) -> None:
    """One pair per line; values begin in one column or after their label, on a rule or not."""
    rng, style = pen.rng, pen.style
    at = pen.left + (pen.right - pen.left) * rng.uniform(0.3, 0.45) if rng.random() < 0.5 else 0.0
    ruled, gap = rng.random() < 0.5, rng.choice((0.0, 0.3, 0.6))
    for _ in range(rng.randint(3, 11)):
        if pen.full:
            return
        key, value = keys.draw()
        top = pen.y
        limit = at - pen.left - 0.4 * style.size if at else (pen.right - pen.left) * 0.6
        label = pen.write(key + style.colon, pen.left, top, font=style.bold if ruled else style.body, limit=limit)
        start = max(at, label.x1 + 0.6 * style.size)
        if ruled:
            pen.rule(start, top + 1.05 * style.size, pen.right, top + 1.05 * style.size, 1)
        answer(pen, keys, label, value, start, pen.right)
        pen.skip(gap)


def answer(pen: Pen, keys: Keys, label: Mark, value: str, x: float, right: float) -> None:
    """The value of a label at the cursor, in at most two lines, and the question for it."""
    marks = []
    for line in pen.wrap(value, right - x, font=pen.style.value)[:2]:
        mark = pen.line(line, x, font=pen.style.value, limit=right - x)
        marks += [mark] if mark else []
    if not marks:
        pen.skip(1)
    keys.put(label, marks, pen.rng.choice((1, 2)))


def columns(pen: Pen, keys: Keys) -> None:
    """Pairs in two or three columns, label left of its value."""
    rng, style = pen.rng, pen.style
    count = max(1, min(rng.choice((2, 2, 3)), int((pen.right - pen.left) / (15 * style.size))))
    wide, ruled, gap = (pen.right - pen.left) / count, rng.random() < 0.4, rng.choice((0.1, 0.4))
    for _ in range(rng.randint(2, 8)):
        if pen.full:
            return
        top = pen.y
        for column in range(count):
            key, value = keys.draw()
            x, right = pen.left + column * wide, pen.left + (column + 1) * wide - style.size
            label = pen.write(key + style.colon, x, top, limit=wide * 0.55, shrink=True)
            start = label.x1 + 0.5 * style.size if label else x
            if ruled:
                pen.rule(start, top + 1.05 * style.size, right, top + 1.05 * style.size, 1)
            keys.put(label, [pen.write(value, start, top, font=style.value, limit=right - start, shrink=True)])
        pen.skip(1 + gap)


def boxed(pen: Pen, keys: Keys) -> None:
    """A grid of boxes: small label in the upper left corner, value below it."""
    rng, style = pen.rng, pen.style
    small = max(LABEL_LEAST, style.size * rng.uniform(0.55, 0.85))
    height = small * 1.3 + style.size * rng.uniform(1.3, 1.9)
    beside, width = rng.random() < 0.2, rng.uniform(1, 2.5)
    for _ in range(rng.randint(2, 7)):
        if pen.glyphs > 2200 or pen.y + height > pen.bottom:
            return
        most = max(1, int((pen.right - pen.left) / (10 * style.size)))
        edges = cuts(pen, rng.randint(1, min(4, most)))
        for x0, x1 in pairwise(edges):
            pen.frame(x0, pen.y, x1, pen.y + height, width)
            key, value = keys.draw()
            label = pen.write(key + style.colon * beside, x0 + 4, pen.y + 3, small, limit=x1 - x0 - 8, shrink=True)
            if not label:
                continue
            if beside and x1 - label.x1 > 8 * style.size:
                x, y = label.x1 + 0.6 * style.size, pen.y + 3
            else:
                x, y = x0 + rng.choice((6.0, style.size)), pen.y + small * 1.3 + 3
            mark = pen.write(
                value, x, y, min(style.size, height - small * 1.3 - 4), style.value, limit=x1 - x - 4, shrink=True
            )
            keys.put(label, [mark])
        pen.y += height
    pen.y += 0.2 * style.size


LABEL_LEAST = 9.0


def cuts(pen: Pen, count: int) -> list[float]:
    """Edges of so many cells between the margins, not all equally wide."""
    shares = [pen.rng.uniform(0.7, 1.5) for _ in range(count)]
    edges, scale = [pen.left], (pen.right - pen.left) / sum(shares)
    for share in shares:
        edges.append(edges[-1] + share * scale)
    return edges


def under(pen: Pen, keys: Keys) -> None:
    """Values on rules, with their labels in small print below the rule."""
    rng, style = pen.rng, pen.style
    small = max(LABEL_LEAST, style.size * 0.7)
    for _ in range(rng.randint(2, 5)):
        if pen.full or pen.y + 2.4 * style.size > pen.bottom:
            return
        most = max(1, int((pen.right - pen.left) / (12 * style.size)))
        edges = cuts(pen, rng.randint(1, min(3, most)))
        for x0, x1 in pairwise(edges):
            key, value = keys.draw()
            right, low = x1 - style.size, pen.y + 1.06 * style.size
            pen.rule(x0, low, right, low, 1)
            mark = pen.write(value, x0 + 4, pen.y, font=style.value, limit=right - x0 - 4, shrink=True)
            label = pen.write(key, x0 + 2, low + 2, small, limit=right - x0 - 2, shrink=True)
            keys.put(label, [mark])
        pen.y += 1.06 * style.size + 2 + small * 1.5


def check_boxes(pen: Pen, keys: Keys) -> None:
    """A label with options; some of them are crossed."""
    rng, style = pen.rng, pen.style
    (key, _), keys.simple = keys.draw(), False
    label = pen.write(key + style.colon, pen.left, pen.y, limit=(pen.right - pen.left) * 0.5)
    x, side, marks = (label.x1 if label else pen.left) + style.size, 0.7 * style.size, list[Mark]()
    options = rng.choice(OPTIONS)
    picked = rng.randrange(len(options)) if rng.random() < 0.8 else -1
    for index, option in enumerate(options):
        if x + side * 2 + pen.measure(option) > pen.right:
            break
        top = pen.y + 0.12 * style.size
        pen.frame(x, top, x + side, top + side, max(1.0, side * 0.1))
        if index == picked:
            cross(pen, x, top, side)
        mark = pen.write(option, x + side * 1.5, pen.y)
        marks.append(mark)
        x = (mark.x1 if mark else x + side) + 1.4 * style.size
    if label:
        marked(pen, bare(label.text), marks, picked)
    pen.skip(1.3)


def marked(pen: Pen, key: str, marks: list[Mark], picked: int) -> None:
    """Questions about options, one of which may be crossed."""
    if 0 <= picked < len(marks):
        pen.ask("key", "checked", marks[picked], key=key)
    if not marks or not all(marks):
        return
    count(pen, pen.rng.choice(("options", "boxes", "check boxes")), len(marks), marks, under=key)
    at = picked if 0 <= picked < len(marks) and pen.rng.random() < 0.5 else pen.rng.randrange(len(marks))
    claim(pen, "is_marked", at == picked, marks[at], text=marks[at].text, key=key)


def cross(pen: Pen, x: float, y: float, side: float) -> None:
    """A cross, a tick or a blot in a check box."""
    way, width = pen.rng.random(), max(1.5, side * 0.14)
    if way < 0.5:
        pen.rule(x, y, x + side, y + side, width)
        pen.rule(x, y + side, x + side, y, width)
    elif way < 0.8:
        pen.path(
            [(x + 0.1 * side, y + 0.5 * side), (x + 0.4 * side, y + 0.9 * side), (x + side, y - 0.2 * side)], width
        )
    else:
        pen.fill(x, y, x + side, y + side, 0.9)


def signing(pen: Pen, keys: Keys) -> None:
    """Lines for signature and date at the end."""
    rng, texts, style = pen.rng, pen.texts, pen.style
    if pen.y + 4.2 * style.size > pen.bottom:
        return
    keys.simple = False
    low = pen.y + 2.5 * style.size
    middle = pen.left + (pen.right - pen.left) * 0.58
    pen.rule(pen.left, low, middle - style.size, low, 1)
    pen.rule(middle, low, pen.right, low, 1)
    if rng.random() < 0.7:
        scribble(pen, pen.left + style.size, low - 0.9 * style.size, min(10 * style.size, middle * 0.5), 2 * style.size)
    name = rng.choice(("Signature", "Authorized signature", "Signed", "Signature of applicant"))
    pen.write(name, pen.left, low + 3, style.size * 0.8, limit=middle - pen.left - style.size)
    day = pen.write(texts("date"), middle + 4, low - 1.1 * style.size, font=style.value, limit=pen.right - middle - 4)
    label = pen.write("Date" if "date" not in keys.used else "Date signed", middle, low + 3, style.size * 0.8)
    if label and day:
        pen.ask_key(label.text, day)
    pen.y = low + 1.4 * style.size
