"""What a scout is to a relevance: a function that knows where answers lie."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from homunculus.relevance.scene import Scene


class ScoutFunction(Protocol):
    """Finds what was asked for: the learned half of `query`.

    One that also has a method `learned(scene) -> [B, N]`, relevance whatever the question, serves `learned` too.
    """

    def __call__(self, scene: Scene, questions: list[str]) -> Tensor:
        """Relevance >= 0 of every cell to each image's question. [B, N]"""
        ...
