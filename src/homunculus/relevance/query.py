"""Participatory knowing: what the question makes of the page, by its spatial words and by a scout if there is one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.relevance.scene import Scene
from homunculus.relevance.scout import ScoutFunction
from homunculus.relevance.spatial import Interval, Region, regions

SOFT = 0.06  # of the page: how far a named place fades out
ELSEWHERE = 0.05  # what is left outside the named places


def query(scene: Scene, questions: list[str], scout: ScoutFunction | None = None) -> Tensor:
    """The places that the question's words name, times what a scout finds; flat without either. [B, N]"""
    named = torch.stack([_named(scene, b, question) for b, question in enumerate(questions)])
    return named if scout is None else named * scout(scene, questions).to(named)


def _named(scene: Scene, b: int, question: str) -> Tensor:
    tree = scene.tree
    named = regions(question)
    if not named:
        return torch.ones(tree.size, device=tree.device)
    ink = tree.grid(scene.bands.energy[b : b + 1], 0)[0].sqrt()  # [rows, columns]
    named = regions(question, columns=blocks(ink.amax(0)), rows=blocks(ink.amax(1)))
    inside = torch.stack([_soft_box(scene, region) for region in named]).amax(0)
    return ELSEWHERE + (1 - ELSEWHERE) * inside


def _soft_box(scene: Scene, region: Region) -> Tensor:
    tree, box = scene.tree, scene.tree.box_of_each[0]
    size = torch.tensor([tree.width, tree.height], device=tree.device)
    x, y = ((box[:, :2] + box[:, 2:]) / 2 / size).float().unbind(1)
    sides = (x - region.left, region.right - x, y - region.top, region.bottom - y)
    return torch.stack([torch.sigmoid(side / (SOFT / 4)) for side in sides]).prod(0)


def blocks(profile: Tensor, gap: float = 0.12) -> Sequence[Interval]:
    """Stretches of a page's profile [n] that hold ink, as shares of its length; none unless at least two are seen."""
    inked = (profile > gap * profile.max()).tolist()
    found: list[list[int]] = []
    for i, named in enumerate(inked):
        if named and i and inked[i - 1]:
            found[-1][1] = i + 1
        elif named:
            found.append([i, i + 1])
    return [(a / len(inked), b / len(inked)) for a, b in found] if len(found) > 1 else []
