"""Batches for the encoder and the scout: drawn and scanned pages, rendered on the device."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from homunculus.train.config import DataSources, Recipe
from homunculus.train.pages import PageBatch, to
from homunculus.train.scans.scans import ScanDraft, Scans, read_photos
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.drafts import Draft, render
from homunculus.train.synth.rasterize import Glyphs
from homunculus.train.synth.text import Texts
from homunculus.train.tasks.base import PageTask, Rank, Task
from homunculus.train.tasks.page_stream import PageStream

VAL_BATCHES = 6


class PageSource:
    """All that training pages are made of, on one device."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        self.atlas, self.texts = Atlas.open(sources.atlas), Texts.open(sources.texts)
        folders = [Path(folder) for folder in sources.scans]
        self.scans = Scans(folders, device) if folders else None
        self.val_scans = Scans(folders, device, val=True) if folders else None
        self.photos = read_photos(Path(sources.photos)).to(device) if sources.photos else None
        self.glyphs, self.device = Glyphs.of(self.atlas, device), device

    def train_batches(
        self, task: Task, recipe: Recipe, step: int, rank: Rank, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """A batch for each step and how many pages in it are new: the same pages serve several steps."""
        assert isinstance(task, PageTask)
        first = step // recipe.steps_per_batch * rank.world + rank.rank
        stream = PageStream(recipe, self.atlas, self.texts, self.scans, first, rank.world)
        for draft in stream.loader(workers):
            pages = self.render(draft, recipe.degrade)
            for again in range(recipe.steps_per_batch):
                yield task.make_batch(pages), 0 if again else len(pages.pixels)

    def val_batches(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Batches of validation pages, not degraded."""
        assert isinstance(task, PageTask)
        if self.val_scans is None:
            return
        for n in range(VAL_BATCHES):
            canvas, rng = recipe.canvases[n % len(recipe.canvases)], random.Random(n)
            size = canvas.height, canvas.width
            draft = self.val_scans.draft(canvas.batch, size, rng, recipe.questions, recipe.crops)
            yield task.make_batch(self.val_scans.render(to(draft, self.device), 0.0))

    def render(self, draft: Draft | ScanDraft, strength: float = 1.0) -> PageBatch:
        """A laid-out batch as pixels and labels on the device."""
        draft = to(draft, self.device)
        if isinstance(draft, Draft):
            return render(draft, self.glyphs, self.photos, strength)
        assert self.scans is not None
        return self.scans.render(draft, 0.5 * strength)
