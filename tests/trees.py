"""Trees that the tests of rules share, and relevance over them."""

import torch

from homunculus import CellTree

SQUARE = CellTree(2048, 2048)
PAGE = CellTree(2208, 1706)


def flat(tree: CellTree, rows: int = 1) -> torch.Tensor:
    return torch.ones(rows, tree.size)


def one_place(tree: CellTree, x: float, y: float, width: float) -> torch.Tensor:
    """Relevance that falls off around a place, for every cell. [1, N]"""
    away = (tree.centre - torch.tensor([x, y])).square().sum(1)
    return torch.exp(-away / (2 * width**2))[None]
