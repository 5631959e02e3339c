"""Published methods that leave out visual tokens, on one protocol, by name.

Adding one: a file with its rule, a line in BEFORE or INSIDE, its section in docs/peers.md. The tests run every name
through the same properties.
"""

from __future__ import annotations

from homunculus.errors import InputError
from homunculus.peers.base import ReducedTokens, Rule, VisualTokens
from homunculus.peers.cdpruner import cdpruner
from homunculus.peers.divprune import divprune
from homunculus.peers.fastv import FastV
from homunculus.peers.hired import hired
from homunculus.peers.pooling import pooling
from homunculus.peers.prumerge import prumerge
from homunculus.peers.pyramid_pruning import pyramid_pruning
from homunculus.peers.pyramiddrop import PyramidDrop
from homunculus.peers.sparsevlm import SparseVLM
from homunculus.peers.stages import InnerMethod, LayerState, Stage, mean_tokens
from homunculus.peers.tome import tome
from homunculus.peers.visionzip import visionzip
from homunculus.peers.vscan import VScan, vscan

__all__ = [
    "BEFORE",
    "INSIDE",
    "InnerMethod",
    "LayerState",
    "ReducedTokens",
    "Stage",
    "VisualTokens",
    "inside",
    "list_peers",
    "mean_tokens",
    "reduce",
]

BEFORE: dict[str, Rule] = {
    "pooling": pooling,
    "tome": tome,
    "visionzip": visionzip,
    "hired": hired,
    "prumerge": prumerge,
    "divprune": divprune,
    "cdpruner": cdpruner,
    "vscan": vscan,
    "pyramid-pruning": pyramid_pruning,
}

INSIDE: dict[str, InnerMethod] = {
    "fastv": FastV(),
    "pyramiddrop": PyramidDrop(),
    "sparsevlm": SparseVLM(),
    "vscan": VScan(),
}


def list_peers() -> list[str]:
    """Names of all methods, those before the language model first."""
    return list(dict.fromkeys([*BEFORE, *INSIDE]))


def reduce(name: str, visual: VisualTokens, budget: int) -> ReducedTokens:
    """What the method `name` leaves of the visual tokens: exactly `budget` of each image, or all that it has."""
    if not isinstance(name, str) or name not in BEFORE:
        raise InputError(f"no peer {name!r} works before the language model; choose one of {', '.join(BEFORE)}")
    return BEFORE[name](visual, budget)


def inside(name: str) -> InnerMethod:
    """The method of that name that works between layers of the language model."""
    if not isinstance(name, str) or name not in INSIDE:
        raise InputError(f"no peer {name!r} works inside the language model; choose one of {', '.join(INSIDE)}")
    return INSIDE[name]
