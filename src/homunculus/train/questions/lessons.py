"""Lessons for the language model: batches of prompts and answers in few shapes, made by worker processes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from homunculus.reader.prompt import MAX_ANSWER, Order
from homunculus.train.questions.compose import MAX_TOKENS, MIX, Composer, Lesson
from homunculus.train.questions.sources import Drawings, LessonSources
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.layouts import Typefaces
from homunculus.train.synth.text import Texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LENGTHS = (256, 384, 512, 768, 1024)  # tokens of a prompt with its answer
ANSWERS = (16, MAX_ANSWER)  # tokens of an answer with its end
PAD, IGNORED = 0, -1
SETS = ("docvqa", "docvqa_more", "sroie", "sroie_more", "funsd", "wildreceipt", "chartqa", "scans")

Batch = list[Tensor]  # ids [B, T], at [B, A], answer [B, A]
Shape = tuple[int, int]  # T, A


@dataclass(frozen=True)
class LessonSettings:
    """What lessons are made of.

    Args:
        data: folder with one folder for each set; empty for drawn documents alone.
        sets: names of the sets; each has train/words.jsonl and train/questions.jsonl.
        transcripts: JSONL file, gzipped or not, of what the recogniser read on these pages; empty for none.
        transcribed: share of lessons on transcribed pages that use a transcript.
        atlas, texts: files for drawn documents; empty for the built-in ones.
        mix: share of each source. "x_more" belongs to "x"; shares of sources without pages are left out.
        unanswerable: share of lessons whose question the page does not answer.
        tokens_per_batch: rows x length of a batch, about.
        max_tokens: tokens of a page's text, drawn at random.
        order: "question-first" or "page-first", see `build_prompt`.
    """

    data: str = ""
    sets: tuple[str, ...] = SETS
    transcripts: str = ""
    transcribed: float = 0.6
    atlas: str = ""
    texts: str = ""
    mix: Mapping[str, float] = field(default_factory=lambda: dict(MIX))
    unanswerable: float = 0.1
    tokens_per_batch: int = 49152
    max_tokens: tuple[int, ...] = MAX_TOKENS
    order: Order = "question-first"
    seed: int = 0


class Lessons(IterableDataset[Batch]):
    """An endless stream of batches for a DataLoader with batch_size=None.

    Batch n of a worker depends on the seed, `start`, `rank`, the worker's number and n. Pages are read once, when this
    object is made, and shared with forked workers.

    Args:
        start: anything that is different in a resumed run, such as its first step.
        rank: of this process among those that train together.
    """

    def __init__(self, settings: LessonSettings, tokenizer: Tokenizer, start: int = 0, rank: int = 0) -> None:
        self.settings, self.start, self.rank = settings, start, rank
        self.composer = composer_of(settings, tokenizer)

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        if info:
            torch.set_num_threads(1)
            os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every worker has one core
        rng = random.Random(f"{self.settings.seed}/{self.start}/{self.rank}/{info.id if info else 0}")
        groups: dict[Shape, list[Lesson]] = {}
        for lesson in self.lessons(rng):
            shape = shape_of(lesson)
            if shape is None:
                continue
            group = groups.setdefault(shape, [])
            group.append(lesson)
            if len(group) == rows_of(shape, self.settings.tokens_per_batch):
                yield collate(groups.pop(shape), shape)

    def lessons(self, rng: random.Random) -> Iterator[Lesson]:
        """An endless stream of single lessons, the same for equal states of `rng`."""
        composer = self.composer.restarted()
        while True:
            yield composer.draw(rng)


def val_batches(settings: LessonSettings, tokenizer: Tokenizer, batches: int) -> list[Batch]:
    """At most so many batches for validation: people's questions about validation pages, whole pages, true lines.

    Batches that are not full are filled with rows without an answer, so their shapes are those of training.
    """
    lessons = composer_of(settings, tokenizer, val=True).validation(random.Random(settings.seed))
    groups: dict[Shape, list[Lesson]] = {}
    for lesson in lessons:
        shape = shape_of(lesson)
        if shape is not None:
            groups.setdefault(shape, []).append(lesson)
    found = []
    for shape, group in sorted(groups.items(), key=lambda entry: -len(entry[1])):
        rows = rows_of(shape, settings.tokens_per_batch)
        found += [collate(group[first : first + rows], shape, rows) for first in range(0, len(group), rows)]
    found.sort(key=lambda batch: -int((batch[2][:, 0] >= 0).sum()))
    return found[:batches]


def composer_of(settings: LessonSettings, tokenizer: Tokenizer, val: bool = False) -> Composer:
    """The maker of lessons for some settings, from the pages to train on or from those kept for validation."""
    sources = LessonSources(settings.data, settings.sets, settings.transcripts, settings.transcribed, val)
    drawings = Drawings(Texts.open(settings.texts), Typefaces.of(Atlas.open(settings.atlas)))
    return Composer(
        sources, drawings, tokenizer, settings.mix, settings.unanswerable, settings.order, settings.max_tokens
    )


def shape_of(lesson: Lesson) -> Shape | None:
    """The smallest shape that a lesson fits into; None if it is too long."""
    total, size = len(lesson.prompt) + len(lesson.answer), len(lesson.answer)
    length = next((length for length in LENGTHS if total <= length), None)
    return None if length is None else (length, next(answer for answer in ANSWERS if size <= answer))


def rows_of(shape: Shape, tokens_per_batch: int) -> int:
    """Lessons in a batch of a shape."""
    return max(1, tokens_per_batch // shape[0])


def collate(lessons: Sequence[Lesson], shape: Shape, rows: int | None = None) -> Batch:
    """ids [B, T]; positions whose next token is predicted [B, A]; these tokens [B, A], -1 where there is none."""
    length, size = shape
    rows = rows or len(lessons)
    ids = torch.full((rows, length), PAD, dtype=torch.long)
    at = torch.zeros(rows, size, dtype=torch.long)
    answer = torch.full((rows, size), IGNORED, dtype=torch.long)
    for row, lesson in enumerate(lessons):
        whole = lesson.prompt + lesson.answer
        ids[row, : len(whole)] = torch.tensor(whole)
        at[row] = (len(lesson.prompt) - 1 + torch.arange(size)).clamp(max=length - 1)
        answer[row, : len(lesson.answer)] = torch.tensor(lesson.answer)
    return [ids, at, answer]
