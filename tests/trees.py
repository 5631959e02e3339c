"""Trees that the tests of rules share, and relevance over them."""

import torch

from homunculus import CellTree

SQUARE = CellTree(2048, 2048)
PAGE = CellTree(2208, 1706)
KINDS = ["random", "peaked", "flat", "zero", "ties", "signed", "sparse"]  # of relevance


def flat(tree: CellTree, rows: int = 1) -> torch.Tensor:
    return torch.ones(rows, tree.size)


def one_place(tree: CellTree, x: float, y: float, width: float) -> torch.Tensor:
    """Relevance that falls off around a place, for every cell. [1, N]"""
    away = (tree.centre - torch.tensor([x, y])).square().sum(1)
    return torch.exp(-away / (2 * width**2))[None]


def relevance_of(kind: str, rows: int, cells: int, seed: int) -> torch.Tensor:
    r = torch.rand(rows, cells, generator=torch.Generator().manual_seed(seed))
    return {
        "random": r,
        "peaked": r**12,
        "flat": torch.ones_like(r),
        "zero": torch.zeros_like(r),
        "ties": (r * 3).floor(),
        "signed": r - 0.5,
        "sparse": (r > 0.99).float(),
    }[kind]


def layers(tree: CellTree, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How many chosen cells cover each fine cell, and which chosen cells lie below another chosen one."""
    chosen = torch.zeros(tree.size, dtype=torch.bool)
    chosen[indices] = True
    above = torch.zeros(tree.size, dtype=torch.long)  # chosen ancestors
    for level in reversed(range(tree.levels - 1)):
        here = tree.at(level)
        parent = tree.parent[here]
        above[here] = above[parent] + chosen[parent]
    return (above + chosen)[tree.at(0)], chosen & (above > 0)
