"""An endless stream of batches, laid out by worker processes: drawn documents and real scans, by lot."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from homunculus.train.config import Canvas, Recipe
from homunculus.train.pages import Draft
from homunculus.train.scans.scans import Placed, Scans
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.layouts import Type, lay_out
from homunculus.train.synth.text import Texts


@dataclass(frozen=True)
class Stream(IterableDataset[Draft | Placed]):
    """Batch n is the same whichever process makes it: it depends on the seed and n alone."""

    recipe: Recipe
    atlas: Atlas
    texts: Texts
    scans: Scans | None
    first: int  # number of the first batch: a resumed run goes on with pages it has not seen
    stride: int = 1  # several GPUs take turns
    ocr: bool = False  # whether all text lines are wanted

    def __iter__(self) -> Iterator[Draft | Placed]:
        info = get_worker_info()
        if info:
            torch.set_num_threads(1)
        n = self.first + (info.id if info else 0) * self.stride
        while True:
            yield self.batch(n)
            n += (info.num_workers if info else 1) * self.stride

    def batch(self, n: int) -> Draft | Placed:
        """Batch number n."""
        rng = random.Random(f"{self.recipe.seed}/{n}")
        canvas = rng.choices(self.recipe.canvases, [c.weight for c in self.recipe.canvases])[0]
        if self.scans is not None and rng.random() < self._real(n):
            return self.scans.draft(
                canvas.batch,
                (canvas.height, canvas.width),
                rng,
                asks=self.recipe.asks,
                crops=self.recipe.crops,
            )
        return self.drawn(canvas, rng)

    def drawn(self, canvas: Canvas, rng: random.Random) -> Draft:
        """A batch of documents on one canvas."""
        self.texts.reseed(rng.getrandbits(48))
        type_ = Type(self.atlas.advance.numpy(), self.atlas.traits, self.atlas.names)
        kinds: list[str | None] = [*self.recipe.kinds] or [None]
        weights = [*self.recipe.kinds.values()] or None
        drawn = rng.choices(kinds, weights, k=canvas.batch)
        pages = [lay_out(kind, canvas.height, canvas.width, self.texts, type_, rng) for kind in drawn]
        return Draft.of(
            pages,
            type_.advance,
            rng,
            asks=self.recipe.asks,
            ocr=self.ocr,
        )

    def _real(self, n: int) -> float:
        late = n // self.stride * self.recipe.looks >= self.recipe.steps * (1 - self.recipe.late)
        return self.recipe.real_late if late else self.recipe.real

    def loader(self, workers: int) -> Iterator[Draft | Placed]:
        """The stream through worker processes."""
        ahead = 2 if workers else None
        own = torch.Generator()  # else the loader would draw from the one that the run is seeded with
        return iter(DataLoader(self, batch_size=None, num_workers=workers, prefetch_factor=ahead, generator=own))
