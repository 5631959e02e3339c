"""Batches for the line finder and the recogniser: scanned pages in memory, drawn pages from workers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from homunculus.reader.strips import grey
from homunculus.train.config import DataSources, Recipe
from homunculus.train.pages import to
from homunculus.train.scans.line_pages import OcrPage, read_pages
from homunculus.train.scans.page_store import PageStore, from_boxes, shares_of
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.drafts import Draft, render
from homunculus.train.synth.rasterize import Glyphs
from homunculus.train.synth.text import Texts
from homunculus.train.tasks.base import Rank, Task
from homunculus.train.tasks.finder import FinderTask, PageLines
from homunculus.train.tasks.page_stream import PageStream
from homunculus.train.tasks.recognizer import LineStore, RecognizerTask

USES = 6  # training batches from each draft of drawn pages
VAL_BATCHES = 12


class LineSource:
    """Pages with known text lines, on one device."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        self.device, folders = device, [Path(folder) for folder in sources.scans]
        self.atlas, self.texts = Atlas.open(sources.atlas), Texts.open(sources.texts)
        self.glyphs = Glyphs.of(self.atlas, device)
        self.pages = read_pages(folders) if folders else []
        self.val_pages = read_pages(folders, val=True) if folders else []
        self.stores: dict[bool, PageStore] = {}

    def train_batches(
        self, task: Task, recipe: Recipe, step: int, rank: Rank, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """Batches without end: a share `recipe.real` of scanned pages, the others drawn."""
        scanned = self._scanned(task, self.pages, recipe, val=False) if self.pages else None
        first = step * rank.world + rank.rank
        stream = PageStream(recipe, self.atlas, self.texts, None, first, rank.world, ocr=True)
        drafts, drawn, left, rng = stream.loader(workers), None, 0, random.Random(f"{recipe.seed}/{first}")
        while True:
            if scanned is not None and rng.random() < recipe.real:
                batch = _batch(task, scanned, recipe.batch, recipe.degrade)
            else:
                if drawn is None or left == 0:
                    drawn, left = self._drawn(task, cast(Draft, next(drafts)), recipe), USES
                left -= 1
                batch = _batch(task, drawn, recipe.batch, recipe.degrade)
            if batch is not None:
                yield batch, len(batch[0])

    def val_batches(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Batches of validation pages, not degraded."""
        if not self.val_pages:
            return
        store = self._scanned(task, self.val_pages, recipe, val=True)
        for _ in range(VAL_BATCHES):
            batch = _batch(task, store, recipe.batch, 0.0)
            if batch is not None:
                yield batch

    def _scanned(self, task: Task, pages: list[OcrPage], recipe: Recipe, val: bool) -> LineStore | PageLines:
        """Scanned pages with all their lines."""
        if val not in self.stores:
            self.stores[val] = PageStore.of([torch.from_numpy(page.pixels) for page in pages], self.device)
            for page in pages:
                page.pixels = page.pixels[:0]  # they are in the store now
        stored = self.stores[val]
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
        batch = render(to(draft, self.device), self.glyphs, None, 0.6 * recipe.degrade)
        assert batch.labels.lines is not None
        pages = PageStore.of(list(grey(batch.pixels)), self.device)
        known, texts = batch.labels.lines, draft.texts
        if isinstance(task, FinderTask):
            lines = [rows[: len(page)] for rows, page in zip(known, texts, strict=True)]
            return PageLines(pages, lines, [1.0] * len(lines))
        counts = torch.tensor([len(page) for page in texts])
        index = torch.arange(len(texts)).repeat_interleave(counts)
        every = torch.cat([rows[: len(page)] for rows, page in zip(known, texts, strict=True)])
        flat = [text for page in texts for text in page]
        return LineStore(pages, index.to(self.device), every, flat, torch.ones(len(flat)))


def _batch(task: Task, store: LineStore | PageLines, count: int, strength: float) -> list[Tensor] | None:
    if isinstance(task, FinderTask):
        return task.make_batch(cast(PageLines, store), count, strength)
    return cast(RecognizerTask, task).make_batch(cast(LineStore, store), count, strength)
