"""A page that was opened: taken in once, then looked at, read and asked about any number of times."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from homunculus import image as images
from homunculus.allocators import get_allocator
from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.eye import Eye, Fixation, Glance
from homunculus.reader.blocks import steady
from homunculus.reader.kind import kind_features
from homunculus.reader.lines import Line, group_rows
from homunculus.reader.orientation import find_upright
from homunculus.reader.read_lines import ReadLines
from homunculus.reader.shown import CellMap, page_at, points_on, shown_levels, strips_of
from homunculus.reader.strips import boxes_of, grey, widths_of
from homunculus.relevance import Scene
from homunculus.runtime.cache import LRUCache

if TYPE_CHECKING:
    from homunculus.image import Source
    from homunculus.reader.finder import LineFinder
    from homunculus.reader.model import Answer
    from homunculus.reader.scout import Scout

CELL = 32
READ_PRINT = 6.0  # pixels: smaller print is not read
MIN_CONFIDENCE = 0.35  # of a reading that is kept
TOKEN_PIXELS = 42  # strip pixels that make about one token of text
MAX_READ = 4000  # lines kept as read
MAX_COLUMNS = 16384  # of the strips that are read at a time on a CPU
MAX_GLANCES = 32  # looks kept
MAX_OPEN = 64_000_000  # pixels of all pages that a cache holds open
ALLOCATOR, RELEVANCE, BUDGET = "foveated", "query", 273
FREE_ALLOCATOR = "dag"  # without a question: shows the most lines legibly, see benchmarks/legible.py
CUT_PRINT = {"min_print": READ_PRINT, "clear_print": 9.0}  # pixels: from where the recogniser reads, and reads well
SCALES = 4  # of the page that a cut may choose from
MAX_PYRAMIDS = 4  # of the page at other scales that are kept


class Recognizing(Protocol):
    """Reads strips of text lines: our recogniser, or another one."""

    height: int

    def __call__(self, strips: Tensor, widths: Tensor) -> list[tuple[str, float]]:
        """Texts and confidences of strips uint8 [n, 1, height, W] of these widths [n]."""
        ...


class PageReader:
    """Reads text lines of images under a budget. `homunculus.reader.load_page_reader()` makes one.

    Args:
        finder, scout, recognizer: find text lines, find what is asked for, read lines.
    """

    def __init__(self, finder: LineFinder, scout: Scout, recognizer: Recognizing) -> None:
        self.finder, self.scout, self.recognizer = finder, scout, recognizer
        self.device = next(finder.parameters()).device

    def open(self, image: Source, **loading: Any) -> Page:
        """Take an image in: a session that can be looked at and read. Loading: page, dpi, max_pixels."""
        return Page(self, images.load(image, **loading).to(self.device))

    def answer(self, page: Page, questions: Sequence[str], **how: Any) -> list[Answer]:
        """Answers need a language model, see `Reader`."""
        raise InputError("this reader has no language model: load_reader makes one that answers")


class Page:
    """What is known of one image: its pyramid, its text lines, what the scout saw, its looks and the lines read so far.

    Made by `PageReader.open`. An image that lies on its side is turned upright first; boxes that users see are those of
    the image as it was given.
    """

    def __init__(self, reader: PageReader, pixels: Tensor) -> None:
        self.reader = reader
        found = find_upright(reader.finder, reader.recognizer, grey(pixels[None])[0])
        self.turns, self.shape = found.turns, (int(pixels.shape[1]), int(pixels.shape[2]))
        pixels = torch.rot90(pixels, found.turns, (1, 2)) if found.turns else pixels
        self.scene = Scene(pixels[None], CellTree(pixels.shape[1], pixels.shape[2], CELL))
        self.lines = found.lines.to(pixels.device)  # [n, 5]
        self.scene.lines[reader.finder.boxes] = [torch.cat((boxes_of(self.lines), self.lines[:, 4:]), 1)]
        self.levels = [grey(level)[0] for level in self.scene.levels]
        self.scaled = LRUCache[float, list[Tensor]](MAX_PYRAMIDS)  # the same at other scales
        self.widths = widths_of(self.lines).tolist()
        self.texts = LRUCache[tuple[int, ...], tuple[str, float]](MAX_READ)  # by line and the levels it was shown at
        self.glances = LRUCache[str, Glance](MAX_GLANCES)  # by question and how it looks

    # -- what users call ---------------------------------------------------------------------------------------

    def ask(self, question: str, **how: Any) -> Answer:
        """The answer to a question; see `Reader.ask` for what can be said about how to look and to answer."""
        return self.reader.answer(self, [question], **how)[0]

    def look(
        self,
        question: str = "",
        budget: int = BUDGET,
        allocator: str = ALLOCATOR,
        relevance: str = RELEVANCE,
        fixation: Fixation = None,
        **options: Any,
    ) -> Glance:
        """Where a question looks; an empty one is a free look."""
        return self.looks([question], budget, allocator, relevance, fixation, **options)[0]

    def read(self, budget: int = BUDGET, question: str = "", **how: Any) -> list[Line]:
        """What a look can read, from top to bottom: without a question, as much of the page as the budget shows."""
        return list(self.read_look(budget, question, **how).lines)

    def read_look(self, budget: int = BUDGET, question: str = "", **how: Any) -> ReadLines:
        """`read` with the look that showed the lines."""
        if not question.strip():
            how = {"allocator": FREE_ALLOCATOR} | how
        glance = self.look(question, budget, **how)
        return ReadLines(tuple(self.as_given(line) for line in self.read_shown(glance)[0]), glance, self)

    @cached_property
    def kind(self) -> list[float]:
        """What tells documents from photographs, see `reader.kind`."""
        return kind_features(self.levels, self.lines)

    # -- steps on the way to an answer -------------------------------------------------------------------------

    @steady()
    @torch.no_grad()
    def looks(
        self,
        questions: Sequence[str],
        budget: int = BUDGET,
        allocator: str = ALLOCATOR,
        relevance: str = RELEVANCE,
        fixation: Fixation = None,
        **options: Any,
    ) -> list[Glance]:
        """Looks for several questions; a question that looked in the same way before gets the same look."""
        keys = [_look_key(question, budget, allocator, relevance, fixation, options) for question in questions]
        found = [self.glances.get(key) if key else None for key in keys]
        new = [question for question, glance in zip(questions, found, strict=True) if glance is None]
        if new:
            eye = self.eye(new, allocator, relevance, budget, **options)
            made = iter(eye.look_for(self.scene, new, self.fixation_upright(fixation)))
            found = [glance or next(made) for glance in found]
        glances = [glance for glance in found if glance]
        self.glances.update((key, glance) for key, glance in zip(keys, glances, strict=True) if key)
        return glances

    def eye(self, questions: Sequence[str], allocator: str, relevance: str, budget: int, **options: Any) -> Eye:
        """What looks at the page for questions: rules that can cut by legibility do, unless told otherwise."""
        if get_allocator(allocator).cuts_by_legibility and "error" not in options:
            options = {"error": "legibility", **CUT_PRINT, "scales": SCALES, **options}
        finder = self.reader.finder.boxes if options.get("error") == "legibility" else None
        scout = self.reader.scout if any(question.strip() for question in questions) else False
        return Eye(allocator, relevance, budget, cell=CELL, scout=scout, finder=finder, **options)

    @torch.no_grad()
    def read_shown(self, glance: Glance, max_tokens: int | None = None) -> tuple[list[Line], list[float]]:
        """Lines that a look shows legibly, and how relevant each is to its question.

        With `max_tokens` only the most relevant ones that make up about so much text are read.
        """
        cells = CellMap.of(glance.selection)
        shown = shown_levels(cells, self.lines)
        legible = (self.lines[:, 4] / 2.0**shown >= READ_PRINT).nonzero()[:, 0].tolist()
        scores = self.scores(glance.question)
        if max_tokens is not None:
            legible = self._most_relevant(legible, scores, max_tokens)
        texts = self._texts(glance, cells, legible)
        boxes, levels = boxes_of(self.lines).tolist(), shown.tolist()
        kept = [i for i in legible if texts[i][0] and texts[i][1] >= MIN_CONFIDENCE]
        lines = [Line(texts[i][0], tuple(boxes[i]), texts[i][1], round(levels[i], 2)) for i in kept]
        order = [n for row in group_rows(lines) for n in row]
        return [lines[n] for n in order], [scores[kept[n]] for n in order]

    @torch.no_grad()
    def scores(self, question: str) -> list[float]:
        """How relevant each line is to a question: the scout's largest logit on it."""
        if not len(self.lines) or not question.strip():
            return [0.0] * len(self.lines)
        with steady():
            found = self.reader.scout.found(self.reader.scout.page(self.scene), [question])[0].float()  # [h, w]
        scale = torch.tensor([found.shape[1], found.shape[0]], device=found.device)
        size = torch.tensor([self.scene.tree.width, self.scene.tree.height], device=found.device)
        at = (points_on(self.lines).to(found.device) * scale / size).long()
        x, y = at[..., 0].clamp(0, found.shape[1] - 1), at[..., 1].clamp(0, found.shape[0] - 1)
        return found[y, x].flatten(1).amax(1).tolist()

    def as_given(self, line: Line) -> Line:
        """A line with its box in pixels of the image as it was given, inside it."""
        x0, y0, x1, y1 = (round(v, 1) for v in self.box_as_given(line.box))
        return replace(line, box=(x0, y0, x1, y1))

    def box_as_given(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """A box of the upright page on the image as it was given, cut off at its border."""
        x0, y0, x1, y1 = box
        height, width = self.shape
        for undone in range(self.turns):  # one turn back at a time: the page was turned counter-clockwise
            side = width if (self.turns - undone) % 2 else height
            x0, y0, x1, y1 = side - y1, x0, side - y0, x1
        return max(0.0, x0), max(0.0, y0), min(float(width), x1), min(float(height), y1)

    def fixation_upright(self, fixation: Fixation) -> Fixation:
        """A fixation in pixels of the image as it was given, in pixels of the upright page."""
        if not self.turns or fixation is None or isinstance(fixation, str):
            return fixation
        try:
            x, y = torch.as_tensor(fixation, dtype=torch.float64).unbind(-1)
        except (TypeError, ValueError, RuntimeError, IndexError):
            return fixation  # the eye says what is wrong with it
        for turn in range(self.turns):
            x, y = y, self.shape[(turn + 1) % 2] - x
        return torch.stack((x, y), -1)

    def box_upright(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """A box of the image as it was given on the upright page."""
        x0, y0, x1, y1 = box
        for turn in range(self.turns):
            side = self.shape[0] if turn % 2 else self.shape[1]
            x0, y0, x1, y1 = y0, side - x1, y1, side - x0
        return x0, y0, x1, y1

    # -- inside ------------------------------------------------------------------------------------------------

    def _most_relevant(self, legible: list[int], scores: list[float], max_tokens: int) -> list[int]:
        """The most relevant of some lines that make up about so many tokens, in their order on the page."""
        limit, kept = float(max_tokens), set()
        for i in sorted(legible, key=lambda i: -scores[i]):
            if limit <= 0:
                break
            kept.add(i)
            limit -= self.widths[i] / TOKEN_PIXELS + 1
        return [i for i in legible if i in kept]

    def _texts(self, glance: Glance, cells: CellMap, indices: list[int]) -> dict[int, tuple[str, float]]:
        """Texts and confidences of lines; what was read from the same cells before is not read again."""
        if not indices:
            return {}
        rows = torch.tensor(indices, device=self.lines.device)
        under = cells.at(points_on(self.lines[rows])).flatten(1)
        level = torch.where(under >= 0, cells.levels[under.clamp(min=0)], -1.0)
        keys = {i: (i, *key) for i, key in zip(indices, (level * 8).long().tolist(), strict=True)}
        found = {i: self.texts[keys[i]] for i in indices if keys[i] in self.texts}
        backend, limit = self.reader.recognizer, MAX_COLUMNS * (16 if self.lines.is_cuda else 1)
        for new in _by_width([i for i in indices if i not in found], self.widths, limit):
            lines = self.lines[torch.tensor(new, device=self.lines.device)]
            strips, widths = strips_of(self._levels_at(cells.finest), glance.selection, cells, lines, backend.height)
            found |= zip(new, backend(strips, widths), strict=True)
            self.texts.update((keys[i], found[i]) for i in new)
        return found

    def _levels_at(self, finest: float) -> list[Tensor]:
        """The page's pyramid scaled by 2^-finest; a look at another scale needs it."""
        if finest and finest not in self.scaled:
            self.scaled[finest] = page_at(self.levels, finest)
        return self.scaled[finest] if finest else self.levels


def _by_width(lines: Sequence[int], widths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Lines in groups of about one width, of at most so many strip columns each: long lines take much memory."""
    group: list[int] = []
    for i in sorted(lines, key=widths.__getitem__):
        if group and (len(group) + 1) * widths[i] > limit:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def page_cache(max_pixels: int = MAX_OPEN) -> LRUCache[Hashable, Page]:
    """Pages that stay open, up to so many pixels: a further question about one does not take it in again."""
    return LRUCache(max_pixels, lambda page: page.shape[0] * page.shape[1])


def _look_key(*how: object) -> str | None:
    """The same text for looks that are the same; none where a tensor or the like says how to look."""
    try:
        return json.dumps(how, sort_keys=True)
    except TypeError:
        return None


def check_question(question: object) -> str:
    """A question that says something."""
    if not isinstance(question, str) or not question.strip():
        raise InputError("a question is missing: ask something about the image")
    return question
