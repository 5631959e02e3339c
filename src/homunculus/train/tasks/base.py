"""What can be trained: a module with losses, and a source of batches for it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from homunculus.train.config import Recipe
from homunculus.train.pages import PageBatch

Losses = dict[str, Tensor]
METRICS = {"exact", "hit"}  # shown, not minimised


class Rank(NamedTuple):
    """Which of several processes this is: they take turns at the batches."""

    rank: int = 0
    world: int = 1


class Task(nn.Module, ABC):
    """A network with its losses: called with the tensors of a batch it gives named losses."""

    model: nn.Module
    header: dict[str, Any]  # of the weight files, beside what every file has
    capturable = True  # whether a step can be captured as a CUDA graph
    bf16_on_cpu = False  # whether processors that have bfloat16 should use it

    def __init__(self, model: nn.Module, seed: int = 0) -> None:
        super().__init__()
        self.model, self.rng, self.header = model, random.Random(seed), {}

    def layers_to_compile(self) -> list[nn.Module]:
        """Layers worth compiling; none where they are called in many shapes."""
        return []


class PageTask(Task):
    """A task whose batches are made from pages."""

    @abstractmethod
    def make_batch(self, pages: PageBatch) -> list[Tensor]:
        """What one step learns from, in tensors of few different shapes."""


class BatchSource(Protocol):
    """Where the batches of a task come from."""

    device: torch.device

    def train_batches(
        self, task: Task, recipe: Recipe, step: int, rank: Rank, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """A batch for each step from `step` on, and how many new examples are in it."""
        ...

    def val_batches(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Batches of validation pages; none where there are no such pages."""
        ...
