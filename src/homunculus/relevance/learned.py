"""Procedural knowing: what people tend to ask about, as a scout has learned it."""

from __future__ import annotations

from torch import Tensor

from homunculus.errors import InputError
from homunculus.relevance.scene import Scene
from homunculus.relevance.scout import ScoutFunction


def learned(scene: Scene, questions: list[str], scout: ScoutFunction | None = None) -> Tensor:
    """What the scout knows without a question. [B, N]"""
    if not callable(getattr(scout, "learned", None)):
        raise InputError("the relevance 'learned' needs a scout that has a method learned(scene)")
    return scout.learned(scene)  # type: ignore[union-attr]
