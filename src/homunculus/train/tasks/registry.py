"""Which network learns what, from which lessons, by the section of a plan that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from homunculus.errors import InputError
from homunculus.reader.encoder import Encoder
from homunculus.reader.finder import LineFinder
from homunculus.reader.recognizer import Recognizer
from homunculus.reader.scout import Scout
from homunculus.reader.weights import checked, load
from homunculus.train.config import DataSources, Recipe
from homunculus.train.tasks.encoder import EncoderTask, ScoutTask
from homunculus.train.tasks.finder import FinderTask
from homunculus.train.tasks.recognizer import RecognizerTask
from homunculus.train.trainer.step import Share, Task

MAIN = {"encoder": "dense", "scout": "find", "finder": "dice", "recognizer": "ctc", "answer": "answer"}  # when to stop


class Feed(Protocol):
    """Where lessons come from."""

    device: torch.device

    def lessons(
        self, task: Task, recipe: Recipe, step: int, share: Share, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """What each step from `step` on learns from, and how many new examples are in it."""
        ...

    def held_lessons(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Lessons of pages held back; none where there are no such pages."""
        ...


def feed_of(name: str, sources: DataSources, recipe: Recipe, device: torch.device) -> Feed:
    """The lessons of a section."""
    if name in ("finder", "recognizer"):
        from homunculus.train.tasks.line_batches import OcrPages

        return OcrPages(sources, device)
    if name == "answer":
        from homunculus.train.tasks.text_batches import TextLessons

        return TextLessons(sources, recipe, device)
    from homunculus.train.trainer.trainer import Pages

    return Pages(sources, device)


def task_of(name: str, recipe: Recipe, feed: Feed, start: Path | None) -> Task:
    """What the section of this name trains, from the weights in a folder if one is given."""
    try:
        return BUILD[name](recipe, feed, start).to(feed.device)
    except TypeError as error:
        raise InputError(f"{name}.sizes does not fit the network: {error}") from error


def _started(model: Any, name: str, start: Path | None) -> Any:
    """A network with the weights of a folder: those of a run, or shipped ones."""
    if start is not None:
        run = start / "last.safetensors"
        load(model, run if run.is_file() else checked(start, name))
    return model


def _encoder(recipe: Recipe, _: Feed, start: Path | None) -> Task:
    return EncoderTask(_started(Encoder(**recipe.sizes), "encoder", start), seed=recipe.seed)


def _scout(recipe: Recipe, _: Feed, start: Path | None) -> Task:
    return ScoutTask(_started(Scout(**recipe.sizes), "scout", start))


def _finder(recipe: Recipe, _: Feed, start: Path | None) -> Task:
    return FinderTask(_started(LineFinder(**recipe.sizes), "finder", start), seed=recipe.seed)


def _recognizer(recipe: Recipe, _: Feed, start: Path | None) -> Task:
    return RecognizerTask(_started(Recognizer(**recipe.sizes), "recognizer", start), seed=recipe.seed)


def _answer(recipe: Recipe, feed: Any, start: Path | None) -> Task:
    from homunculus.reader.lora import Lora, sizes_of
    from homunculus.train.tasks.answer import AnswerTask

    lora = _started(Lora(**(sizes_of(feed.language.model) | recipe.sizes)), "lora", start)
    return AnswerTask(lora, feed.language, seed=recipe.seed)


BUILD: dict[str, Callable[[Recipe, Any, Path | None], Task]] = {
    "encoder": _encoder,
    "scout": _scout,
    "finder": _finder,
    "recognizer": _recognizer,
    "answer": _answer,
}
