"""Forward and backward: as they stand on a CPU, in bf16 and as captured CUDA graphs on a GPU.

Networks this small keep a GPU waiting for launches. Batches come in few shapes, so each shape is captured once and
replayed; meanwhile the CPU draws the next pages. Weights stay in float32, the work is done on a bf16 copy.
"""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from homunculus.reader.blocks import Block, LocalBlock
from homunculus.reader.scout import JointBlock
from homunculus.reader.weights import usual_dtype
from homunculus.runtime.graphs import Key, capture
from homunculus.train.pages import Sheets

Losses = dict[str, Tensor]
FIGURES = {"exact", "hit"}  # shown, not minimised
LAYERS = (Block, LocalBlock, JointBlock)  # their matrices are Muon's


class Share(NamedTuple):
    """Which of several processes this is: they take turns at the lessons."""

    rank: int = 0
    world: int = 1


class Task(nn.Module, ABC):
    """What can be trained: it prepares lessons from sheets, and called with one it gives named losses."""

    model: nn.Module
    rng: random.Random
    about: dict[str, Any] = {}  # what whoever loads the weights must know  # noqa: RUF012
    captured = True  # whether a step can be captured as a CUDA graph
    bf16_on_cpu = False  # whether processors that have bfloat16 should use it

    @abstractmethod
    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""


class SheetTask(Task):
    """A task whose lessons are made from sheets."""

    @abstractmethod
    def prepare(self, sheets: Sheets) -> list[Tensor]:
        """What one step learns from, in tensors of few different shapes."""


class Work:
    """Losses and gradients of a task whose own weights are the float32 ones.

    Args:
        task: a module with a `model` that takes tensors to named losses.
        fast: bf16 copy and CUDA graphs.
        world: processes that share the batches; their gradients are averaged.
        compiled: have torch compile the task's heavy layers where it is fast.
    """

    def __init__(self, task: Task, fast: bool, world: int = 1, compiled: bool = False) -> None:
        self.task, self.world, self.fast = task, world, fast and task.captured
        self.device_type = "cuda" if fast else "cpu"
        wanted = fast or (task.bf16_on_cpu and usual_dtype(torch.device("cpu")) == torch.bfloat16)
        self.autocast = wanted and not self.fast
        fast = self.fast
        self.copy = copy.deepcopy(task).bfloat16() if fast else task
        for layer in self.copy.heavy() if fast and compiled else ():
            layer.compile(dynamic=True)
        self.masters: list[Tensor] = [p for p in task.parameters() if p.requires_grad]
        self.copies: list[Tensor] = [p for p in self.copy.parameters() if p.requires_grad]
        self.graphs: dict[Key, tuple[torch.cuda.CUDAGraph, list[Tensor], Losses]] = {}
        self.pool = torch.cuda.graph_pool_handle() if fast else None
        for p in {*self.masters, *self.copies}:
            p.grad = torch.zeros_like(p)

    def gradients(self, inputs: list[Tensor], weights: dict[str, float]) -> Losses:
        """Losses of a batch, their gradients left in the task's weights."""
        if not self.fast:
            losses = self._once(inputs, weights)
        else:
            key = tuple((x.shape, x.dtype) for x in inputs)
            if key not in self.graphs:
                self.graphs[key] = capture(lambda *x: self._once(list(x), weights), inputs, self.pool)
            graph, places, losses = self.graphs[key]
            for place, value in zip(places, inputs, strict=True):
                place.copy_(value)
            graph.replay()
            losses = {name: value.clone() for name, value in losses.items()}
        if self.world > 1:
            self._share()
        return losses

    @torch.no_grad()
    def _share(self) -> None:
        """The mean of all processes' gradients, in one message."""
        grads = [cast(Tensor, p.grad) for p in self.masters]
        flat = torch.cat([grad.flatten() for grad in grads]) / self.world
        dist.all_reduce(flat)
        parts = flat.split([grad.numel() for grad in grads])
        torch._foreach_copy_(grads, [part.view_as(grad) for part, grad in zip(parts, grads, strict=True)])

    @torch.no_grad()
    def losses(self, inputs: list[Tensor]) -> Losses:
        """Losses alone."""
        if self.fast:
            torch._foreach_copy_(self.copies, self.masters)
        self.copy.eval()
        with torch.compiler.set_stance("force_eager"):  # not worth compiling anew without gradients
            losses = self._forward(inputs)
        self.copy.train()
        return losses

    def _forward(self, inputs: list[Tensor]) -> Losses:
        with torch.autocast(self.device_type, torch.bfloat16, enabled=self.autocast):
            return cast(Losses, self.copy(*inputs))

    def _once(self, inputs: list[Tensor], weights: dict[str, float]) -> Losses:
        grads = [cast(Tensor, p.grad) for p in self.copies]
        torch._foreach_zero_(grads)
        if self.fast:
            with torch.no_grad():
                torch._foreach_copy_(self.copies, self.masters)
        losses = self._forward(inputs)
        total = torch.stack([weights.get(k, 1.0) * v for k, v in losses.items() if k not in FIGURES]).sum()
        total.backward()
        if self.fast:
            torch._foreach_copy_([cast(Tensor, p.grad) for p in self.masters], grads)
        return {name: value.detach() for name, value in losses.items()}
