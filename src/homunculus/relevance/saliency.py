"""Perspectival knowing: what stands out from its surround."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.relevance.scene import Scene
from homunculus.relevance.scout import ScoutFunction

SURROUND = 7  # cells across
ORIENTATIONS = 4


def saliency(scene: Scene, questions: list[str], scout: ScoutFunction | None = None) -> Tensor:
    """Band-pass energy and centre-surround contrast over scale, orientation and colour, from 0 to 1. [B, N]

    Each level of the tree is a scale. A feature stands out where a cell differs from the cells around it; fine cells
    inherit half of what stands out above them.
    """
    tree, bands = scene.tree, scene.bands
    contrast = bands.energy.sqrt()
    red, green, blue = bands.colour.unbind(2)
    features = [contrast, *bands.along(ORIENTATIONS).sqrt().unbind(2), red - green, blue - (red + green) / 2]
    weights = [1.0, *[1 / ORIENTATIONS] * ORIENTATIONS, 0.5, 0.5]
    total = _upto_one(tree, contrast)
    for feature, weight in zip(features, weights, strict=True):
        total = total + weight * _upto_one(tree, centre_surround(tree, feature))
    salient = total / (1 + sum(weights))
    for l in reversed(range(tree.levels - 1)):
        here = tree.at(l)
        salient[:, here] = (salient[:, here] + salient[:, tree.parent[here]]) / 2
    return salient


def centre_surround(tree: CellTree, feature: Tensor) -> Tensor:
    """How far each cell's feature is from the mean of the cells around it, level by level. [B, N] -> [B, N]"""
    differences = []
    for l in reversed(range(tree.levels)):
        centre = tree.grid(feature, l)[:, None]
        around = F.avg_pool2d(centre, SURROUND, 1, SURROUND // 2, count_include_pad=False)
        differences.append((centre - around).abs().flatten(1))
    return torch.cat(differences, 1)


def _upto_one(tree: CellTree, feature: Tensor) -> Tensor:
    """Each level relative to its own largest; one grey level of noise stays small."""
    parts = [feature[:, tree.at(l)] for l in reversed(range(tree.levels))]
    return torch.cat([part / part.amax(1, keepdim=True).clamp(min=4.0) for part in parts], 1)
