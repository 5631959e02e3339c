"""Propositional knowing: how much there is to know in a cell."""

from __future__ import annotations

import math

from torch import Tensor

from homunculus.relevance.scene import GREYS, STEPS, Scene
from homunculus.relevance.scout import ScoutFunction


def information(scene: Scene, questions: list[str], scout: ScoutFunction | None = None) -> Tensor:
    """Entropy of the pixels and of the band of each cell, from 0 to 1: blank paper has none. [B, N]"""
    bands = scene.bands
    return (bands.greys / math.log2(GREYS) + bands.steps / math.log2(STEPS)) / 2
