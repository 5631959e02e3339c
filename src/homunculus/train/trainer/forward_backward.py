"""Forward and backward: as they stand on a CPU, in bf16 and as captured CUDA graphs on a GPU.

Networks this small keep a GPU waiting for launches. Batches come in few shapes, so each shape is captured once and
replayed; meanwhile the CPU draws the next pages. Weights stay in float32, the work is done on a bf16 copy.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor

from homunculus.reader.weights import usual_dtype
from homunculus.runtime.graphs import Key, capture
from homunculus.train.tasks.base import METRICS, Losses, Task


class ForwardBackward:
    """Losses and gradients of a task whose own weights are the float32 ones.

    Args:
        task: a module that takes tensors to named losses.
        cuda: use a bf16 copy and CUDA graphs, where the task allows it.
        world: processes that share the batches; their gradients are averaged.
        compiled: have torch compile the task's layers on a GPU.
    """

    def __init__(self, task: Task, cuda: bool, world: int = 1, compiled: bool = False) -> None:
        self.task, self.world, self.captured = task, world, cuda and task.capturable
        self.device_type = "cuda" if cuda else "cpu"
        bf16 = cuda or (task.bf16_on_cpu and usual_dtype(torch.device("cpu")) == torch.bfloat16)
        self.autocast = bf16 and not self.captured
        self.copy = copy.deepcopy(task).bfloat16() if self.captured else task
        for layer in self.copy.layers_to_compile() if self.captured and compiled else ():
            layer.compile(dynamic=True)
        self.weights: list[Tensor] = [p for p in task.parameters() if p.requires_grad]
        self.copied: list[Tensor] = [p for p in self.copy.parameters() if p.requires_grad]
        self.graphs: dict[Key, tuple[torch.cuda.CUDAGraph, list[Tensor], Losses]] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.captured else None
        for p in {*self.weights, *self.copied}:
            p.grad = torch.zeros_like(p)

    def gradients(self, inputs: list[Tensor], loss_weights: Mapping[str, float]) -> Losses:
        """Losses of a batch; their gradients are left in the task's weights."""
        if not self.captured:
            losses = self._forward_backward(inputs, loss_weights)
        else:
            key = tuple((x.shape, x.dtype) for x in inputs)
            if key not in self.graphs:
                self.graphs[key] = capture(lambda *x: self._forward_backward(list(x), loss_weights), inputs, self.pool)
            graph, places, losses = self.graphs[key]
            for place, value in zip(places, inputs, strict=True):
                place.copy_(value)
            graph.replay()
            losses = {name: value.clone() for name, value in losses.items()}
        if self.world > 1:
            self._all_reduce()
        return losses

    @torch.no_grad()
    def losses(self, inputs: list[Tensor]) -> Losses:
        """Losses alone."""
        if self.captured:
            torch._foreach_copy_(self.copied, self.weights)
        self.copy.eval()
        with torch.compiler.set_stance("force_eager"):  # not worth compiling anew without gradients
            losses = self._forward(inputs)
        self.copy.train()
        return losses

    def _forward(self, inputs: list[Tensor]) -> Losses:
        with torch.autocast(self.device_type, torch.bfloat16, enabled=self.autocast):
            return cast(Losses, self.copy(*inputs))

    def _forward_backward(self, inputs: list[Tensor], loss_weights: Mapping[str, float]) -> Losses:
        grads = [cast(Tensor, p.grad) for p in self.copied]
        torch._foreach_zero_(grads)
        if self.captured:
            with torch.no_grad():
                torch._foreach_copy_(self.copied, self.weights)
        losses = self._forward(inputs)
        total = torch.stack([loss_weights.get(k, 1.0) * v for k, v in losses.items() if k not in METRICS]).sum()
        total.backward()
        if self.captured:
            torch._foreach_copy_([cast(Tensor, p.grad) for p in self.weights], grads)
        return {name: value.detach() for name, value in losses.items()}

    @torch.no_grad()
    def _all_reduce(self) -> None:
        """The mean of all processes' gradients, in one message."""
        grads = [cast(Tensor, p.grad) for p in self.weights]
        flat = torch.cat([grad.flatten() for grad in grads]) / self.world
        dist.all_reduce(flat)
        parts = flat.split([grad.numel() for grad in grads])
        torch._foreach_copy_(grads, [part.view_as(grad) for part, grad in zip(parts, grads, strict=True)])
