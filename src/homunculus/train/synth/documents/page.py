"""A page being written: fonts, style, and the pen that puts lines, rules and questions on it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.documents import wording

Array = npt.NDArray[Any]
UP, DOWN = 0.75, 0.22  # a word's box reaches this many em above and below its baseline
MOST = 2500  # glyphs of a page, about
LEAST = 8.5  # pixels per em of the smallest print
DASH = (9.0, 6.0)
REMEMBERED = 20000  # widths of words, for each font


@dataclass
class Typefaces:
    """The fonts that pages are set in: advances in em of chr(32)..chr(126) [F, 95], one trait and name per font."""

    advance: Array
    traits: list[str]
    names: list[str]
    tables: list[list[float]] = field(init=False, repr=False)
    families: dict[str, list[tuple[int, int, int]]] = field(init=False, repr=False)
    known: list[dict[str, float]] = field(init=False, repr=False)  # widths of words in em, font by font

    @classmethod
    def of(cls, atlas: Atlas) -> Typefaces:
        """The fonts of a glyph atlas."""
        return cls(atlas.advance.numpy(), list(atlas.traits), list(atlas.names))

    def __post_init__(self) -> None:
        self.advance = np.asarray(self.advance, np.float32)
        self.tables = [[0.0] * 32 + row + [0.0] for row in self.advance.tolist()]
        self.known = [{} for _ in self.tables]
        members: dict[str, dict[str, int]] = {}
        for index, name in enumerate(self.names):
            slanted = "Italic" in name or "Oblique" in name
            face = ("bold" if "Bold" in name else "") + ("italic" if slanted else "")
            base = re.sub("(Bold|Italic|Oblique|Regular|Roman|Book|[-_ ])", "", name)
            members.setdefault(base, {}).setdefault(face or "plain", index)
        self.families = {}
        for faces in members.values():
            plain = faces.get("plain", next(iter(faces.values())))
            family = (plain, faces.get("bold", plain), faces.get("italic", plain))
            self.families.setdefault(self.traits[plain], []).append(family)

    def family(self, rng: random.Random, *traits: str) -> tuple[int, int, int]:
        """A regular, a bold and an italic font of one family that has one of the traits, if there is any."""
        found = [family for trait in traits for family in self.families.get(trait, ())]
        return rng.choice(found or [family for group in self.families.values() for family in group])

    def word(self, text: str, font: int) -> float:
        """Width of a word in em, remembered for the next time."""
        known = self.known[font]
        width = known.get(text)
        if width is None:
            width = sum(map(self.tables[font].__getitem__, text.encode()))
            if len(known) < REMEMBERED:
                known[text] = width
        return width


class DrawnQuestion(NamedTuple):
    """What can be asked: where the answer stands, or what it is worked out from (if anywhere), and the answer.

    A pen leaves the answer empty where it is what the words say.
    """

    text: str
    words: list[int]
    sort: str
    answer: str


def cleaned(text: str) -> str:
    """A text of the page as a person gives it: without the marks at its ends that are the page's."""
    return text.lstrip("#: ").rstrip(",;: ") or text


@dataclass
class DrawnPage:
    """A page as numbers: what is written where, what is drawn, and what can be asked about it."""

    kind: str
    height: int
    width: int
    glyphs: Array  # [G, 7] code (ord - 33), font, x of pen, y of baseline, size, ink, word
    words: list[str]
    word_boxes: Array  # [W, 4]
    word_lines: Array  # [W]
    lines: list[str]
    line_boxes: Array  # [L, 4]
    fills: Array  # [M, 6] x0 y0 x1 y1 darkness tint
    strokes: Array  # [S, 6] x0 y0 x1 y1 width darkness
    questions: list[DrawnQuestion]
    facts: list[tuple[str, str]] = field(default_factory=list)

    def text_of(self, words: Iterable[int]) -> str:
        """What some words say, as an answer."""
        return cleaned(" ".join([self.words[word] for word in words]))


@dataclass(frozen=True, slots=True)
class Mark:
    """One written line: its text, its words `first` up to `last`, and its box. False when nothing was written."""

    text: str = ""
    first: int = 0
    last: int = 0
    x0: float = 0.0
    y0: float = 0.0
    x1: float = 0.0
    y1: float = 0.0

    def __bool__(self) -> bool:
        return self.last > self.first


NOTHING = Mark()


@dataclass
class Style:
    """What stays the same over a page."""

    body: int
    bold: int
    italic: int
    value: int  # of what was filled in
    head: int
    size: float
    leading: float
    margin: float
    justify: bool
    tracking: float
    caps: bool
    ink: float
    colon: str


def draw_style(typefaces: Typefaces, rng: random.Random, height: int, width: int) -> Style:
    """A style for a page of this size: body text of 14 to 30 pixels per em on a page 1000 high."""
    traits = rng.choice((("serif",), ("sans",), ("mono",), ("serif", "sans")))
    body, bold, italic = typefaces.family(rng, *traits)
    scale = ((height * width) ** 0.5 / 887) ** 0.78
    size = max(10.0 + 3 * rng.random(), scale * min(rng.uniform(13.5, 30) for _ in range(4)))
    value = (
        body
        if rng.random() < 0.45
        else typefaces.family(rng, *rng.choice((("mono",), ("mono",), ("serif",), ("hand",))))[0]
    )
    head = bold if rng.random() < 0.6 else typefaces.family(rng, *rng.choice((("sans",), ("serif",), ("display",))))[1]
    return Style(
        body,
        bold,
        italic,
        value,
        head,
        size,
        leading=rng.choice((1.12, 1.18, 1.25, 1.35, 1.5, 1.9 if rng.random() < 0.3 else 1.3)),
        margin=width * rng.uniform(0.035, 0.14),
        justify=rng.random() < 0.35,
        tracking=rng.choice((0, 0, 0, 0, 0.02, 0.05, -0.01)),
        caps=rng.random() < 0.4,
        ink=rng.uniform(0.62, 1.0),
        colon=rng.choice((":", ":", ":", "", " :", ".")),
    )


class Pen:
    """Writes one page. Text that does not fit is shortened or left out; the `Mark` says what is written."""

    def __init__(self, height: int, width: int, texts: Any, typefaces: Typefaces, rng: random.Random) -> None:
        self.height, self.width, self.texts, self.typefaces, self.rng = height, width, texts, typefaces, rng
        self.style = draw_style(typefaces, rng, height, width)
        self.noun = "document"
        self.left, self.right = self.style.margin, width - self.style.margin
        self.y = height * rng.uniform(0.025, 0.09)  # top of the next line
        self.bottom = height - max(height * rng.uniform(0.03, 0.08), 1.5 * self.style.size)  # end of the flowing text
        self.marks: list[Mark] = []
        self.rows: list[tuple[float, float, float, int, float, float, float]] = []
        self.fills: list[tuple[float, float, float, float, float, float]] = []
        self.strokes: list[tuple[float, float, float, float, float, float]] = []
        self.questions: list[DrawnQuestion] = []
        self.facts: list[tuple[str, str]] = []
        self.fields: list[tuple[str, str, list[int]]] = []  # labels, their values, and the words of these
        self.strangers: list[tuple[str, str, dict[str, str]]] = []  # names to ask for in vain: template, name, slots
        self.asked: set[str] = set()  # names of the templates used
        self.count = self.glyphs = 0  # words and glyphs so far
        self.shift = 0.0  # of the colours of a chart

    @property
    def full(self) -> bool:
        """Whether the page holds as many glyphs as it should, or its flowing text has reached the bottom."""
        return self.glyphs > MOST - 120 or self.y + self.style.size > self.bottom

    def measure(self, text: str, size: float = 0.0, font: int = -1, tracking: float | None = None) -> float:
        """Width of a text in pixels."""
        table = self.typefaces.tables[self.style.body if font < 0 else font]
        extra = self.style.tracking if tracking is None else tracking
        return (size or self.style.size) * (sum(map(table.__getitem__, text.encode())) + extra * len(text))

    def write(
        self,
        text: str,
        x: float,
        y: float,
        size: float = 0.0,
        font: int = -1,
        align: str = "left",
        limit: float = 0.0,
        shrink: bool = False,
        ink: float = 0.0,
        tracking: float | None = None,
        stretch: float = 0.0,
    ) -> Mark:
        """One line with the top at `y`; `x` is its left end, its middle or its right end as `align` says."""
        text, size = _plain(text), max(size or self.style.size, LEAST)
        font = self.style.body if font < 0 else font
        extra = self.style.tracking if tracking is None else tracking
        left, right = x - 2, self.width - 2 - x
        room = right if align == "left" else left if align == "right" else 2 * min(left, right)
        room = min(room, limit) if limit else room
        width = self.measure(text, size, font, extra) + stretch * text.count(" ")
        if width > room and shrink:
            smaller = max(size * 0.7, LEAST, size * 0.99 * room / width)
            size, width = smaller, width * smaller / size
        while text and width > room:
            text = text.rpartition(" ")[0]
            width = self.measure(text, size, font, extra) + stretch * text.count(" ")
        if not text or x < 2 or y < 1 or y + (UP + DOWN + 0.03) * size > self.height - 1:
            return NOTHING
        x -= 0.0 if align == "left" else width if align == "right" else width / 2
        base, words = y + UP * size, text.count(" ") + 1
        mark = Mark(text, self.count, self.count + words, x, y, x + width, base + DOWN * size)
        self.rows.append((x, base, size, font, ink or self.style.ink, extra * size, stretch))
        self.marks.append(mark)
        self.count += words
        self.glyphs += len(text) - words + 1
        return mark

    def line(
        self, text: str, x: float = 0.0, size: float = 0.0, font: int = -1, after: float = 0.0, **how: Any
    ) -> Mark:
        """A line at the cursor, which moves below it and `after` more lines; nothing once the page is full."""
        size = size or self.style.size
        if self.y + size > self.bottom:
            return NOTHING
        mark = self.write(text, x or self.left, self.y, size, font, **how)
        if mark:
            self.y += size * (max(self.style.leading, 1.1) + after)
        return mark

    def wrap(self, text: str, width: float, size: float = 0.0, font: int = -1) -> list[str]:
        """The text broken into lines of at most this width."""
        font, size, extra = (self.style.body if font < 0 else font), size or self.style.size, self.style.tracking
        space, used, width_of = self.measure(" ", size, font), 0.0, self.typefaces.word
        lines: list[str] = []
        line: list[str] = []
        for word in text.split():
            wide = size * (width_of(word, font) + extra * len(word))
            if line and used + wide > width:
                lines.append(" ".join(line))
                used, line = 0.0, []
            line.append(word)
            used += wide + space
        return [*lines, " ".join(line)] if line else lines

    def paragraph(
        self, text: str, x: float = 0.0, width: float = 0.0, size: float = 0.0, font: int = -1, align: str = ""
    ) -> list[Mark]:
        """A wrapped text at the cursor, justified where the style says so, until the page is full."""
        x, size = x or self.left, size or self.style.size
        width = width or self.right - x
        lines, marks = self.wrap(text, width, size, font), []
        for index, line in enumerate(lines):
            if self.full:
                break
            stretch = 0.0
            if self.style.justify and not align and index < len(lines) - 1 and " " in line:
                stretch = (width - self.measure(line, size, font)) / line.count(" ")
                stretch = stretch if 0 < stretch < 0.7 * size else 0.0
            place = x + width / 2 if align == "center" else x + width if align == "right" else x
            marks.append(self.line(line, place, size, font, align=align or "left", stretch=stretch * 0.995))
        return [mark for mark in marks if mark]

    def skip(self, lines: float) -> None:
        """Move the cursor down by lines of body text."""
        self.y += lines * self.style.size * max(self.style.leading, 1.1)

    def free(self, x0: float, y0: float, x1: float, y1: float) -> bool:
        """Whether a box is on the page and away from all text so far."""
        if x0 < 2 or y0 < 2 or x1 > self.width - 2 or y1 > self.height - 2:
            return False
        return not any(m.x0 < x1 and x0 < m.x1 and m.y0 < y1 and y0 < m.y1 for m in self.marks)

    def squeeze(self, text: str, x: float, y: float, size: float = 0.0, font: int = -1, align: str = "left") -> Mark:
        """A whole line written only where it touches no other text."""
        size, text = max(size or self.style.size, LEAST), _plain(text)
        width = self.measure(text, size, font)
        x0 = x - {"left": 0.0, "right": width, "center": width / 2}[align]
        free = self.free(x0, y, x0 + width + 1, y + size)
        return self.write(text, x0, y, size, font) if free else NOTHING

    def rule(self, x0: float, y0: float, x1: float, y1: float, width: float = 0.0, dark: float = 0.0) -> None:
        """A straight stroke."""
        self.strokes.append((x0, y0, x1, y1, width or max(1.0, self.style.size * 0.06), dark or self.style.ink))

    def frame(self, x0: float, y0: float, x1: float, y1: float, width: float = 0.0, dark: float = 0.0) -> None:
        """Four strokes around a box."""
        for a, b, c, d in ((x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)):
            self.rule(a, b, c, d, width, dark)

    def dashes(self, x0: float, y: float, x1: float) -> None:
        """A dashed rule from left to right."""
        dash, gap = (part * self.style.size / 18 for part in DASH)
        while x0 + dash < x1:
            self.rule(x0, y, x0 + dash, y)
            x0 += dash + gap

    def path(self, points: Sequence[tuple[float, float]], width: float = 0.0, dark: float = 0.0) -> None:
        """A polyline."""
        for (x0, y0), (x1, y1) in pairwise(points):
            self.rule(x0, y0, x1, y1, width, dark)

    def fill(self, x0: float, y0: float, x1: float, y1: float, dark: float, tint: float = 0.0) -> None:
        """A filled rectangle."""
        self.fills.append((x0, y0, x1, y1, dark, tint))

    def title_case(self, text: str) -> str:
        """A heading in the page's habit: upper case or as it is."""
        return text.upper() if self.style.caps else text

    def ask(self, sort: str, name: str, marks: Mark | Iterable[Mark], /, **slots: str) -> None:
        """A question from the templates of `name`, answered by the words of the marks; none if nothing is written."""
        words = _words(marks)
        if words:
            self.asked.add(name)
            self.questions.append(DrawnQuestion(wording.phrase(name, self.rng, self.noun, **slots), words, sort, ""))

    def ask_exactly(self, sort: str, question: str, marks: Mark | Iterable[Mark]) -> None:
        """A question in these very words, now and then left out."""
        words = _words(marks)
        if words and self.rng.random() < 0.8:
            self.questions.append(DrawnQuestion(question, words, sort, ""))

    def reply(self, sort: str, name: str, answer: str, marks: Mark | Iterable[Mark] = (), /, **slots: str) -> None:
        """A question whose answer is worked out from the marks, or stands nowhere."""
        text = wording.phrase(name, self.rng, self.noun, **slots)
        self.questions.append(DrawnQuestion(text, _words(marks), sort, answer))

    def ask_key(self, key: str, marks: Mark | Iterable[Mark], times: int = 1, sort: str = "key") -> None:
        """Questions for what stands at a label; the label and its value become a fact."""
        marks = [marks] if isinstance(marks, Mark) else list(marks)
        words = _words(marks)
        if words:
            fact = wording.bare(key), " ".join([mark.text for mark in marks if mark])
            self.facts.append(fact)
            self.fields.append((*fact, words))
            for question in wording.key_phrases(key, self.rng, self.noun, times):
                self.questions.append(DrawnQuestion(question, words, sort, ""))

    def note(self, key: str, mark: Mark) -> None:
        """Remember what a line says, for questions that need no label."""
        if mark:
            self.fields.append((key, mark.text, list(range(mark.first, mark.last))))

    def finish(self, kind: str) -> DrawnPage:
        """The page as arrays."""
        lines = [mark.text for mark in self.marks]
        count = np.array([len(line) for line in lines], np.int64)
        table = np.array(self.rows, np.float64).reshape(-1, 7)
        code = np.frombuffer("".join(lines).encode(), np.uint8).astype(np.int64) - 32  # [C]
        line = np.repeat(np.arange(len(lines)), count)
        x, y, size, font, ink, tracking, stretch = table[line].T
        blank = code == 0
        step = self.typefaces.advance[font.astype(np.int64), code] * size + tracking + stretch * blank
        ends = np.cumsum(step)
        starts = ends - step
        origin = np.cumsum(count) - count  # [L] first character of each line
        shift = (x[origin] - starts[origin])[line] if len(lines) else x
        starts, ends = starts + shift, ends + shift
        edge = np.ones(len(code) + 1, bool)  # a word starts after a blank or with its line, and ends so too
        edge[1:-1] = blank[:-1] | (line[1:] != line[:-1])
        before = edge[:-1] & ~blank
        edge[1:-1] = blank[1:] | (line[1:] != line[:-1])
        first, last = np.flatnonzero(before), np.flatnonzero(edge[1:] & ~blank)
        word = np.cumsum(before) - 1
        glyphs = np.stack([code - 1, font, starts, y, size, ink, word], 1)[~blank].astype(np.float32)
        top, low = (y - UP * size)[first], (y + DOWN * size)[first]
        boxes = np.stack([starts[first], top, ends[last], low], 1).astype(np.float32)
        frames = np.array([(m.x0, m.y0, m.x1, m.y1) for m in self.marks], np.float32).reshape(-1, 4)
        return DrawnPage(
            kind,
            self.height,
            self.width,
            glyphs,
            " ".join(lines).split(),
            boxes,
            line[first],
            lines,
            frames,
            _inside(self.fills, self.height, self.width),
            _inside(self.strokes, self.height, self.width),
            self.questions,
            self.facts,
        )


def _words(marks: Mark | Iterable[Mark]) -> list[int]:
    """The words of some marks."""
    if isinstance(marks, Mark):
        return list(range(marks.first, marks.last))
    return [word for mark in marks for word in range(mark.first, mark.last)]


def _plain(text: str) -> str:
    """The text in printable ASCII with single blanks."""
    text = " ".join(text.split())
    return text if text.isascii() else text.encode("ascii", "replace").decode()


def _inside(rows: list[tuple[float, float, float, float, float, float]], height: int, width: int) -> Array:
    """Rectangles or strokes, cut to the page. [M, 6]"""
    array = np.array(rows, np.float32).reshape(-1, 6)
    array[:, 0:4:2] = array[:, 0:4:2].clip(0, width)
    array[:, 1:4:2] = array[:, 1:4:2].clip(0, height)
    return array
