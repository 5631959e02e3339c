"""How much each cell matters: four ways of knowing, and their balance, by name.

Adding one: a file with `relevance(scene, questions, scout) -> [B, N]`, its entry in RELEVANCES. The tests run every
entry through the same properties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from homunculus.errors import InputError
from homunculus.relevance.hiz import HiZ
from homunculus.relevance.information import information
from homunculus.relevance.learned import learned
from homunculus.relevance.opponent import Balance, mix_relevances, opponent
from homunculus.relevance.query import query
from homunculus.relevance.saliency import saliency
from homunculus.relevance.scene import Scene
from homunculus.relevance.scout import ScoutFunction

__all__ = [
    "RELEVANCES",
    "Balance",
    "HiZ",
    "Relevance",
    "Scene",
    "ScoutFunction",
    "get_relevance",
    "list_relevances",
    "mix_relevances",
    "query",
    "relevance_of",
]


@dataclass(frozen=True)
class Relevance:
    """A way of knowing what matters, and what it goes by.

    Args:
        function: `function(scene, questions, scout) -> [B, N]`, finite and at least 0; the relevance has its name.
        uses_question: whether it differs between questions.
        uses_scout: whether a scout has a part in it.
        has_spatial_prior: whether the places that a question's words name are in it, so that a fixation needs no more.
    """

    function: Callable[[Scene, list[str], ScoutFunction | None], Tensor]
    uses_question: bool = False
    uses_scout: bool = False
    has_spatial_prior: bool = False

    @property
    def name(self) -> str:
        """What users call it."""
        return self.function.__name__

    def needs_scout(self, question: str) -> bool:
        """Whether a scout has something to say: of a free look it knows only what does not go by the question."""
        return self.uses_scout and (bool(question) or not self.uses_question)


_ENTRIES = (
    Relevance(information),
    Relevance(saliency),
    Relevance(query, uses_question=True, uses_scout=True, has_spatial_prior=True),
    Relevance(learned, uses_scout=True),
    Relevance(opponent, uses_question=True, uses_scout=True),
)
RELEVANCES: dict[str, Relevance] = {entry.name: entry for entry in _ENTRIES}


def list_relevances() -> list[str]:
    """Names that `Eye` takes."""
    return list(RELEVANCES)


def get_relevance(name: str) -> Relevance:
    """The registry's entry of that name."""
    if not isinstance(name, str) or name not in RELEVANCES:
        raise InputError(f"there is no relevance {name!r}; choose one of {', '.join(RELEVANCES)}")
    return RELEVANCES[name]


def relevance_of(name: str, scene: Scene, questions: list[str], scout: ScoutFunction | None = None) -> Tensor:
    """Relevance of every cell of a scene's images to their questions, by the way of knowing `name`. [B, N]"""
    return get_relevance(name).function(scene, questions, scout)
