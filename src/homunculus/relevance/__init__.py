"""How much each cell matters: four ways of knowing, and their balance, by name.

A relevance is a function of a Scene and its questions; `opponent` mixes the others.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from homunculus.errors import InputError
from homunculus.relevance.hiz import HiZ
from homunculus.relevance.information import information
from homunculus.relevance.opponent import WEIGHTS, Balance, opponent
from homunculus.relevance.query import Scout, learned, query
from homunculus.relevance.saliency import saliency
from homunculus.relevance.scene import Scene

__all__ = ["RELEVANCES", "Balance", "HiZ", "Scene", "Scout", "list_relevances", "opponent", "query", "relevance_of"]

RELEVANCES: dict[str, Callable[[Scene, list[str]], Tensor]] = {"information": information, "saliency": saliency}


def list_relevances() -> list[str]:
    """Names that `Eye` takes."""
    return [*RELEVANCES, "query", "learned", "opponent"]


def relevance_of(
    name: str, scene: Scene, questions: list[str], scout: Scout | None = None, balance: Balance | None = None
) -> Tensor:
    """Relevance of every cell of a scene's images to their questions, by the way of knowing `name`. [B, N]"""
    if name == "query":
        return query(scene, questions, scout)
    if name == "learned":
        return learned(scene, scout)
    if name in RELEVANCES:
        return RELEVANCES[name](scene, questions)
    if name != "opponent":
        raise InputError(f"there is no relevance {name!r}; choose one of {', '.join(list_relevances())}")
    signals = {part: relevance_of(part, scene, questions, scout) for part in WEIGHTS}
    return opponent(scene.tree, signals, balance=balance)
