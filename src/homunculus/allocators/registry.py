"""The registry's entry of an allocator: its rule, and everything that the package needs to know of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from homunculus.allocators.cut import Ranking
from homunculus.cells import Selection
from homunculus.errors import InputError, shown

CONTEXT = frozenset({"error", "energy", "lines", "question", "segments"})  # options that `Eye` fills in
SINGLE = frozenset({"question", "segments"})  # those that it knows for one question about one image at a time


@dataclass(frozen=True)
class Allocator:
    """A rule and its capabilities; what it needs beyond relevance follows from its keyword options.

    Args:
        rule: `rule(request, *, options) -> mask [B, N]`, or -> Ranking for a cut; the allocator has its name,
            with - for _, and its options.
        capturable: shapes alone decide what it does, so that a CUDA graph of it serves all images of a size.
        training_weight: how often training draws it, relative to the others; 0: never.
    """

    rule: Callable[..., Tensor | Selection | Ranking]
    capturable: bool = False
    training_weight: int = 0

    @property
    def name(self) -> str:
        """What users call it."""
        return self.rule.__name__.replace("_", "-")

    @property
    def description(self) -> str:
        """What it does and what its options mean; the first line says it in short."""
        return inspect.getdoc(self.rule) or ""

    @cached_property
    def options(self) -> dict[str, inspect.Parameter]:
        """What it takes beyond tree, relevance, budget and fixation."""
        parameters = inspect.signature(self.rule).parameters
        return {key: value for key, value in parameters.items() if value.kind is inspect.Parameter.KEYWORD_ONLY}

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self.rule)

    @property
    def context(self) -> frozenset[str]:
        """Which of its options `Eye` fills in."""
        return CONTEXT & self.options.keys()

    @property
    def batched(self) -> bool:
        """Whether it can choose for several questions at once."""
        return not self.context & SINGLE

    @property
    def cuts_by_legibility(self) -> bool:
        """Whether it takes error="legibility"."""
        return "lines" in self.options

    @cached_property
    def is_cut(self) -> bool:
        """Whether it ranks cells for the exact cut, so that it can choose from several trees under one budget."""
        return Ranking in (self._types["return"], *get_args(self._types["return"]))

    @cached_property
    def per_cell(self) -> frozenset[str]:
        """Which of its options are a tensor with values for each cell."""
        return frozenset(key for key in self.options if Tensor in (self._types[key], *get_args(self._types[key])))

    def check(self, options: Mapping[str, object]) -> None:
        """Options of the right names and types; what their values may be, each rule says itself."""
        for key, value in options.items():
            if key not in self.options:
                takes = f"takes {', '.join(self.options)}" if self.options else "takes no options"
                raise InputError(f"{self.name} has no option {key!r}; it {takes}")
            if not _fits(value, self._types[key]):
                raise InputError(f"{key} of {self.name} must be {self.options[key].annotation}, got {shown(value)}")


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of an option's type: numbers finite, a bool is no number, a text is no sequence."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (hint is float and isinstance(value, float) and isfinite(value))
    if get_origin(hint) in (tuple, Sequence):
        if not isinstance(value, (tuple, list)) or (get_origin(hint) is tuple and len(value) != len(parts)):
            return False
        return all(_fits(each, parts[0]) for each in value)
    return isinstance(value, hint)
