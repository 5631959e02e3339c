"""Every network that can be trained, by the section of a plan that names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from homunculus.errors import InputError
from homunculus.reader.encoder import Encoder
from homunculus.reader.finder import LineFinder
from homunculus.reader.lora import Lora, sizes_of
from homunculus.reader.photo import PhotoAdapter
from homunculus.reader.recognizer import Recognizer
from homunculus.reader.scout import Scout
from homunculus.reader.vision import VisionEncoder
from homunculus.reader.weights import checked, load
from homunculus.train.config import DataSources, Recipe
from homunculus.train.tasks.answer import AnswerTask
from homunculus.train.tasks.base import BatchSource, Task
from homunculus.train.tasks.encoder import EncoderTask
from homunculus.train.tasks.finder import FinderTask
from homunculus.train.tasks.line_source import LineSource
from homunculus.train.tasks.page_source import PageSource
from homunculus.train.tasks.photo import PhotoAnswerSource, PhotoTask
from homunculus.train.tasks.recognizer import RecognizerTask
from homunculus.train.tasks.scout import ScoutTask
from homunculus.train.tasks.text_source import TextSource
from homunculus.train.tasks.vision import PhotoSource, VisionTask
from homunculus.train.teacher import begin_with


@dataclass(frozen=True)
class TaskSpec:
    """One entry of the registry.

    Args:
        metric: the loss on validation pages that decides which weights are best.
        weights: name of the file of weights that the package carries.
    """

    network: type[nn.Module]
    task: Callable[..., Task]
    source: Callable[[DataSources, torch.device], BatchSource]
    metric: str
    weights: str


TASKS = {
    "encoder": TaskSpec(Encoder, EncoderTask, PageSource, "dense", "encoder"),
    "scout": TaskSpec(Scout, ScoutTask, PageSource, "find", "scout"),
    "finder": TaskSpec(LineFinder, FinderTask, LineSource, "dice", "finder"),
    "recognizer": TaskSpec(Recognizer, RecognizerTask, LineSource, "ctc", "recognizer"),
    "vision": TaskSpec(VisionEncoder, VisionTask, PhotoSource, "features", "vision"),
    "answer": TaskSpec(Lora, AnswerTask, TextSource, "answer", "lora"),
    "photo": TaskSpec(PhotoAdapter, PhotoTask, PhotoAnswerSource, "answer", "photo"),
}


def task_of(name: str, recipe: Recipe, source: BatchSource, start: Path | None = None) -> Task:
    """The task of a section, its network with the weights of a folder if one is given: a run's, or shipped ones."""
    spec, sizes, frozen = TASKS[name], recipe.sizes, list[Any]()
    if isinstance(source, TextSource | PhotoAnswerSource):
        sizes, frozen = sizes_of(source.language.model) | sizes, [source.language]
    try:
        network = spec.network(**sizes)
    except TypeError as error:
        raise InputError(f"{name}.sizes does not fit the network: {error}") from error
    if start is None and isinstance(network, VisionEncoder) and isinstance(source, PhotoSource):
        begin_with(network, source.teacher)
    if start is not None:
        run = start / "last.safetensors"
        load(network, run if run.is_file() else checked(start, spec.weights))
    return spec.task(network, *frozen, seed=recipe.seed).to(source.device)
