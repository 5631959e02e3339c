"""Where the line finder and the recogniser get their lessons: real pages in memory, drawn pages from workers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from homunculus.reader.strips import grey
from homunculus.train.config import DataSources, Recipe
from homunculus.train.pages import Draft, draw, to
from homunculus.train.scans.line_pages import OcrPage, read_pages
from homunculus.train.scans.page_store import PageStore, from_boxes, shares_of
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.rasterize import Glyphs
from homunculus.train.synth.text import Texts
from homunculus.train.tasks.finder import FinderTask, PageLines
from homunculus.train.tasks.page_stream import Stream
from homunculus.train.tasks.recognizer import LineStore, RecognizerTask, pixels_of
from homunculus.train.trainer.step import Share, Task

USES = 6  # lessons from each batch of drawn pages
HELD_BATCHES = 12


class OcrPages:
    """Pages with known text lines, on one device."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        self.device, folders = device, [Path(folder) for folder in sources.scans]
        self.atlas = Atlas.load(Path(sources.atlas)) if sources.atlas else Atlas.builtin()
        self.texts = Texts.load(Path(sources.texts), 0) if sources.texts else Texts.builtin(0)
        self.glyphs = Glyphs.of(self.atlas, device)
        self.pages = read_pages(folders) if folders else []
        self.held_pages = read_pages(folders, held=True) if folders else []
        self.stores: dict[bool, PageStore] = {}

    def lessons(
        self, task: Task, recipe: Recipe, step: int, share: Share, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """Lessons without end: real pages in a share of `recipe.real`, drawn ones else."""
        real = self._store(task, self.pages, recipe, held=False) if self.pages else None
        first = step * share.world + share.rank
        stream = Stream(recipe, self.atlas, self.texts, None, first, share.world, ocr=True)
        drafts, drawn, left, rng = stream.loader(workers), None, 0, random.Random(f"{recipe.seed}/{first}")
        while True:
            if real is not None and rng.random() < recipe.real:
                lesson = _lesson(task, real, recipe, recipe.hard)
            else:
                if drawn is None or left == 0:
                    drawn, left = self._drawn(task, cast(Draft, next(drafts)), recipe), USES
                left -= 1
                lesson = _lesson(task, drawn, recipe, recipe.hard)
            if lesson is not None:
                yield lesson, len(lesson[0])

    def held_lessons(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Lessons of pages held back, not worn."""
        if not self.held_pages:
            return
        store = self._store(task, self.held_pages, recipe, held=True)
        for _ in range(HELD_BATCHES):
            lesson = _lesson(task, store, recipe, 0.0)
            if lesson is not None:
                yield lesson

    def _store(self, task: Task, pages: list[OcrPage], recipe: Recipe, held: bool) -> LineStore | PageLines:
        if held not in self.stores:
            self.stores[held] = PageStore.of([torch.from_numpy(page.pixels) for page in pages], self.device)
            for page in pages:
                page.pixels = page.pixels[:0]  # they are in the store now
        stored = self.stores[held]
        if isinstance(task, FinderTask):
            lines = [from_boxes(torch.from_numpy(page.segments).to(self.device)) for page in pages]
            return PageLines(stored, lines, shares_of(pages, recipe.mix, [int(not page.sheet) for page in pages]))
        counts = [len(page.texts) for page in pages]
        shares = shares_of(pages, recipe.mix, counts)
        index = torch.arange(len(pages)).repeat_interleave(torch.tensor(counts))
        weight = torch.tensor(shares)[index] / torch.tensor(counts)[index].clamp(min=1)
        every = torch.cat([from_boxes(torch.from_numpy(page.boxes)) for page in pages]).to(self.device)
        texts = [text for page in pages for text in page.texts]
        return LineStore(stored, index.to(self.device), every, texts, weight)

    def _drawn(self, task: Task, draft: Draft, recipe: Recipe) -> LineStore | PageLines:
        """A batch of drawn pages with all their lines."""
        sheets = draw(to(draft, self.device), self.glyphs, None, 0.6 * recipe.hard)
        assert sheets.labels.lines is not None
        pages = PageStore.of(list(grey(sheets.pixels)), self.device)
        known, texts = sheets.labels.lines, draft.texts
        if isinstance(task, FinderTask):
            lines = [rows[: len(said)] for rows, said in zip(known, texts, strict=True)]
            return PageLines(pages, lines, [1.0] * len(lines))
        counts = torch.tensor([len(said) for said in texts])
        index = torch.arange(len(texts)).repeat_interleave(counts)
        every = torch.cat([rows[: len(said)] for rows, said in zip(known, texts, strict=True)])
        flat = [text for said in texts for text in said]
        return LineStore(pages, index.to(self.device), every, flat, torch.ones(len(flat)))


def _lesson(task: Task, store: LineStore | PageLines, recipe: Recipe, hard: float) -> list[Tensor] | None:
    if isinstance(task, FinderTask):
        return task.lesson(cast(PageLines, store), recipe.batch, hard)
    return cast(RecognizerTask, task).lesson(cast(LineStore, store), pixels_of(recipe.batch), hard)
