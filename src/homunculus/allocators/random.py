"""Chance as a baseline, the same on every machine and in every batch."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from homunculus.allocators.frame import Request
from homunculus.allocators.grid import grid
from homunculus.cells import CellTree


def random(request: Request, *, seed: int = 0) -> Tensor:
    """Finest cells at random: a hash of `seed` and cell, the same in every batch."""
    return grid(replace(request, relevance=noise(request.tree, seed).expand_as(request.relevance)))


def noise(tree: CellTree, seed: int) -> Tensor:
    """A number in [0, 1) for each cell that depends on seed, level, row and column alone. float64 [N]"""
    state = torch.full_like(tree.level, seed % 2**31)
    for part in (tree.level, tree.row, tree.column):
        state = _scramble(state + part + 0x9E3779B9)
    return (state >> 11 & (1 << 53) - 1).double() / 2.0**53


def _scramble(x: Tensor) -> Tensor:
    """The finaliser of splitmix64, on whole numbers of 64 bits that wrap around."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        x = (x ^ (x >> shift & (1 << 64 - shift) - 1)) * factor
    return x ^ (x >> 31 & (1 << 33) - 1)
