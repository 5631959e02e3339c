"""An endless stream of drafts from worker processes: drawn documents and scanned pages at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from homunculus.train.config import Canvas, Recipe
from homunculus.train.scans.scans import ScanDraft, Scans
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.drafts import Draft
from homunculus.train.synth.layouts import Typefaces, lay_out
from homunculus.train.synth.text import Texts


@dataclass(frozen=True)
class PageStream(IterableDataset[Draft | ScanDraft]):
    """Batch n is the same whichever process makes it: it depends on the seed and n alone."""

    recipe: Recipe
    atlas: Atlas
    texts: Texts
    scans: Scans | None
    first: int  # number of the first batch: a resumed run goes on with pages it has not seen
    stride: int = 1  # several GPUs take turns
    ocr: bool = False  # whether all text lines are wanted

    def __iter__(self) -> Iterator[Draft | ScanDraft]:
        info = get_worker_info()
        if info:
            torch.set_num_threads(1)
        n = self.first + (info.id if info else 0) * self.stride
        while True:
            yield self.batch(n)
            n += (info.num_workers if info else 1) * self.stride

    def batch(self, n: int) -> Draft | ScanDraft:
        """Batch number n."""
        rng = random.Random(f"{self.recipe.seed}/{n}")
        canvas = rng.choices(self.recipe.canvases, [c.weight for c in self.recipe.canvases])[0]
        if self.scans is not None and rng.random() < self._real_share(n):
            size = canvas.height, canvas.width
            return self.scans.draft(canvas.batch, size, rng, self.recipe.questions, self.recipe.crops)
        return self.drawn(canvas, rng)

    def drawn(self, canvas: Canvas, rng: random.Random) -> Draft:
        """A batch of documents on one canvas."""
        self.texts.reseed(rng.getrandbits(48))
        typefaces = Typefaces.of(self.atlas)
        kinds: list[str | None] = [*self.recipe.kinds] or [None]
        weights = [*self.recipe.kinds.values()] or None
        drawn = rng.choices(kinds, weights, k=canvas.batch)
        pages = [lay_out(kind, canvas.height, canvas.width, self.texts, typefaces, rng) for kind in drawn]
        return Draft.of(pages, typefaces.advance, rng, self.recipe.questions, ocr=self.ocr)

    def _real_share(self, n: int) -> float:
        final = n // self.stride * self.recipe.steps_per_batch >= self.recipe.steps * (1 - self.recipe.final_fraction)
        return self.recipe.real_final if final else self.recipe.real

    def loader(self, workers: int) -> Iterator[Draft | ScanDraft]:
        """The stream through worker processes."""
        prefetch = 2 if workers else None
        own = torch.Generator()  # else the loader would draw from the one that the run is seeded with
        return iter(DataLoader(self, batch_size=None, num_workers=workers, prefetch_factor=prefetch, generator=own))
