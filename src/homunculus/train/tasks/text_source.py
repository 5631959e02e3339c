"""Batches for the LoRA: lessons in token ids, made by worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from homunculus.errors import InputError
from homunculus.reader.language import load_language
from homunculus.reader.prompt import Order
from homunculus.reader.weights import usual_dtype
from homunculus.train.config import DataSources, Recipe
from homunculus.train.questions.compose import MAX_TOKENS, MIX
from homunculus.train.questions.lessons import SETS, Lessons, LessonSettings, val_batches

if TYPE_CHECKING:
    from homunculus.train.tasks.base import Rank, Task

VAL_BATCHES = 12
PER_BATCH = 1024  # tokens of text that count as one of `Recipe.batch`


class TextSource:
    """Prompts and answers in token ids, on one device, and the language model that they are for."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        self.sources, self.device = sources, device
        self.language = load_language(sources.language or None, device, usual_dtype(device))

    def train_batches(
        self, task: Task, recipe: Recipe, step: int, rank: Rank, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """Batches without end."""
        lessons = Lessons(settings_of(self.sources, recipe), self.language.tokenizer, step, rank.rank)
        loader = DataLoader(lessons, batch_size=None, num_workers=workers, prefetch_factor=4 if workers else None)
        for batch in loader:
            yield [part.to(self.device) for part in batch], len(batch[0])

    def val_batches(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Questions that people asked about validation pages."""
        settings = settings_of(self.sources, recipe)
        for batch in val_batches(settings, self.language.tokenizer, VAL_BATCHES) if settings.data else ():
            yield [part.to(self.device) for part in batch]


def settings_of(sources: DataSources, recipe: Recipe) -> LessonSettings:
    """The settings of lessons that a plan asks for."""
    folders = [Path(folder) for folder in sources.scans if Path(folder).parent.name in SETS]
    roots = {folder.parent.parent for folder in folders}
    if len(roots) > 1:
        raise InputError(f"sources.scans must lie in one folder of data sets, got {', '.join(map(str, sorted(roots)))}")
    return LessonSettings(
        data=str(roots.pop()) if roots else "",
        sets=tuple(folder.parent.name for folder in folders),
        transcripts=sources.transcripts,
        atlas=sources.atlas,
        texts=sources.texts,
        tokens_per_batch=recipe.batch * PER_BATCH,
        mix=recipe.mix or MIX,
        max_tokens=tuple(recipe.max_text_tokens) or MAX_TOKENS,
        order=cast(Order, recipe.order),
        seed=recipe.seed,
    )
