"""Small networks on a GPU wait for launches: what comes in the same shape again is captured once and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

from homunculus.runtime.cache import LRUCache

KEPT = 8  # graphs kept of one function; the one longest unused goes first
V = TypeVar("V")
Key = tuple[tuple[torch.Size, torch.dtype], ...]


class Replay(Generic[V]):
    """A function of tensors that is captured as a CUDA graph when shapes come again before KEPT others have come.

    It gives a tensor or a named tuple of tensors. On a CPU, at first calls, and where gradients are wanted it is the
    function itself. Pages of a hundred sizes in turn are never captured: each graph would be gone before its next page.
    """

    def __init__(self, call: Callable[..., V]) -> None:
        self.call = call
        self.met = LRUCache[Key, None](KEPT)  # the last few
        self.pool: Any = None  # memory that all of its graphs use, one at a time: values are copied out at once
        self.graphs = LRUCache[Key, tuple[Any, list[Tensor], V]](KEPT)

    def __call__(self, *inputs: Tensor) -> V:
        """The function's value."""
        if not inputs[0].is_cuda or torch.is_grad_enabled():
            return self.call(*inputs)
        key = tuple((x.shape, x.dtype) for x in inputs)
        if key not in self.graphs:
            if key not in self.met:
                self.met[key] = None
                return self.call(*inputs)
            del self.met[key]
            self.pool = self.pool or torch.cuda.graph_pool_handle()
            self.graphs[key] = capture(self.call, inputs, self.pool)
        graph, places, value = self.graphs[key]
        for place, x in zip(places, inputs, strict=True):
            place.copy_(x)
        graph.replay()
        if isinstance(value, Tensor):
            return cast(V, value.clone())
        made = cast(Any, value)
        return cast(V, type(made)(*(part.clone() for part in made)))


def capture(call: Callable[..., V], inputs: Sequence[Tensor], pool: Any = None) -> tuple[Any, list[Tensor], V]:
    """A CUDA graph of a call, the tensors that it reads, and those that it writes: fill, replay, read."""
    places = [x.clone() for x in inputs]
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):  # libraries choose and build their kernels before anything is captured
        for _ in range(2):
            call(*places)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        value = call(*places)
    return graph, places, value
