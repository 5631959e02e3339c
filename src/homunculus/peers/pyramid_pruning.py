"""Pyramid token pruning: regions by saliency, tokens by saliency and by what the instruction asks for."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.seats import top_of_each
from homunculus.peers.base import (
    ReducedTokens,
    VisualTokens,
    exact,
    members,
    pick,
    precise,
    share_out,
    stretched,
    tile_of,
)

ALPHA = 0.5  # weight of the instruction against saliency
TILES = 6  # at most so many regions
SHAPES = [(rows, columns) for rows in range(1, TILES + 1) for columns in range(1, TILES // rows + 1)]


@exact
def pyramid_pruning(visual: VisualTokens, budget: int) -> ReducedTokens:
    """The budget over regions by their share of late attention, the best of each by attention and instruction."""
    tile = tile_of(visual, tiling(visual.grid))
    belongs = members(tile, visual.mask, TILES).double()  # [B, G, N]
    worth = (belongs @ visual.attention[..., None])[..., 0]
    quota = share_out(worth, belongs.sum(2), budget)
    saliency = stretched(visual.attention, visual.mask)
    score = (1 - ALPHA) * saliency + ALPHA * stretched(instructed(visual), visual.mask)
    return pick(visual.tokens, top_of_each(tile, score, quota, visual.mask), budget)


def tiling(grid: Tensor) -> Tensor:
    """Rows and columns of regions: of the tilings with at most six, the finest of nearest aspect. [B, 2]"""
    shapes = torch.tensor(SHAPES, device=grid.device)
    aspect = (grid[:, :1] / grid[:, 1:]).log()
    off = (aspect - (shapes[:, 0] / shapes[:, 1]).log()).abs()  # [B, shapes]
    return shapes[(off - 1e-4 * shapes.prod(1)).argmin(1)]


def instructed(visual: VisualTokens) -> Tensor:
    """The most that any word of the instruction attends to each token, by scaled products of embeddings. [B, N]"""
    tokens, words = precise(visual.tokens), precise(visual.question)
    product = words @ tokens.mT / tokens.shape[2] ** 0.5  # [B, T, N]
    attention = torch.where(visual.mask[:, None], product, -torch.inf).softmax(2)
    none = attention.new_zeros(len(attention), 1, attention.shape[2])
    return torch.cat((torch.where(visual.question_mask[..., None], attention, 0), none), 1).amax(1).double()
