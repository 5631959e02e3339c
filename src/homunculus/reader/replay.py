"""Small networks on a GPU wait for launches: what comes in the same shape again is captured once and replayed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

KEPT = 8  # graphs kept of one function; the one longest unused goes first
Key = tuple[tuple[torch.Size, torch.dtype], ...]


class Replay:
    """A function of tensors that is captured as a CUDA graph at the second call with the same shapes.

    On a CPU, at first calls, and where gradients are wanted it is the function itself.
    """

    def __init__(self, call: Callable[..., Tensor]) -> None:
        self.call = call
        self.met: set[Key] = set()
        self.graphs: OrderedDict[Key, tuple[Any, list[Tensor], Tensor]] = OrderedDict()

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The function's value."""
        if not inputs[0].is_cuda or torch.is_grad_enabled():
            return self.call(*inputs)
        key = tuple((x.shape, x.dtype) for x in inputs)
        if key not in self.graphs:
            if key not in self.met:
                self.met.add(key)
                return self.call(*inputs)
            self.graphs[key] = self._capture(inputs)
            if len(self.graphs) > KEPT:
                self.graphs.popitem(last=False)
        self.graphs.move_to_end(key)
        graph, places, value = self.graphs[key]
        for place, x in zip(places, inputs, strict=True):
            place.copy_(x)
        graph.replay()
        return value.clone()

    def _capture(self, inputs: tuple[Tensor, ...]) -> tuple[Any, list[Tensor], Tensor]:
        places = [x.clone() for x in inputs]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self.call(*places)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value = self.call(*places)
        return graph, places, value
