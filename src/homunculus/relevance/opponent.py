"""Balance between ways of knowing: each weighs by how sure it is, and three opponent pairs shape the mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.relevance.information import information
from homunculus.relevance.query import query
from homunculus.relevance.saliency import saliency
from homunculus.relevance.scene import Scene
from homunculus.relevance.scout import ScoutFunction

WEIGHTS = {"query": 0.4, "saliency": 0.3, "information": 0.3}


@dataclass(frozen=True)
class Balance:
    """Where the mixture stands between three pairs of opposites.

    particularise: -1 compresses (flattens) the mixture, 0 leaves it, 1 sharpens its peaks.
    explore: share of the mixture that is spread evenly, 0 exploits what is known.
    diversify: 0 keeps the focus where relevance is dense, 1 divides by the mean of the surround.
    """

    particularise: float = 0.0
    explore: float = 0.05
    diversify: float = 0.0

    def __post_init__(self) -> None:
        if not (-4 <= self.particularise <= 4 and 0 <= self.explore <= 1 and 0 <= self.diversify <= 1):
            raise InputError(f"particularise must be from -4 to 4, explore and diversify from 0 to 1, got {self}")


def opponent(scene: Scene, questions: list[str], scout: ScoutFunction | None = None) -> Tensor:
    """What the question, what stands out and what there is to know, balanced. [B, N]"""
    parts = (query, saliency, information)
    return mix_relevances(scene.tree, {part.__name__: part(scene, questions, scout) for part in parts})


def mix_relevances(
    tree: CellTree,
    signals: Mapping[str, Tensor],
    weights: Mapping[str, float] | None = None,
    balance: Balance | None = None,
) -> Tensor:
    """Mix relevances [B, N] by name: default weight times how sure each one is, then balanced. [B, N] from 0 to 1.

    A signal that says the same everywhere knows nothing and has no say; if none knows anything all is equal.
    """
    weights, balance = WEIGHTS if weights is None else weights, balance or Balance()
    unknown = set(signals) - set(weights)
    if unknown or not signals:
        raise InputError(f"a mixture needs a weight for each signal; it has {sorted(weights)}, got {sorted(signals)}")
    total = say = torch.zeros((), dtype=torch.float64)
    for name, signal in signals.items():
        level = signal.double() / signal.double().amax(1, keepdim=True).clamp(min=1e-12)
        weight = weights[name] * sureness(tree, level)
        total, say = total + weight * level, say + weight
    return _shape(tree, total / torch.as_tensor(say).clamp(min=1e-12), balance).float()


def sureness(tree: CellTree, signal: Tensor) -> Tensor:
    """1 for a signal that points at one fine cell, 0 for one that is the same everywhere. [B, N] -> [B, 1]"""
    fine = signal[:, tree.at(0)]
    spread = fine.sum(1, keepdim=True).square() / (fine.shape[1] * fine.square().sum(1, keepdim=True)).clamp(min=1e-12)
    return (1 - spread).clamp(0, 1)


def _shape(tree: CellTree, mixture: Tensor, balance: Balance) -> Tensor:
    if balance.diversify > 0:
        mixture = mixture / (1 - balance.diversify + balance.diversify * _surround(tree, mixture)).clamp(min=1e-6)
    mixture = mixture / mixture.amax(1, keepdim=True).clamp(min=1e-12)
    mixture = mixture ** (2.0**balance.particularise)
    return (1 - balance.explore) * mixture + balance.explore


def _surround(tree: CellTree, mixture: Tensor) -> Tensor:
    around = [
        F.avg_pool2d(tree.grid(mixture, l)[:, None], 5, 1, 2, count_include_pad=False) for l in range(tree.levels)
    ]
    return torch.cat([a.flatten(1) for a in reversed(around)], 1)
