"""What all peers share: what they may know, what they give back, and the few steps that many of them take.

A peer is a function `rule(visual, budget) -> ReducedTokens` under the decorator `exact`. Everything here is batched,
has no randomness and breaks ties in raster order, so that an image comes out the same alone and in a larger batch.
Axes: B images, N tokens, K kept, T words, D width, G groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from homunculus.allocators.frame import as_indices, best
from homunculus.errors import InputError, whole_number


@dataclass(frozen=True, eq=False)
class VisualTokens:
    """What a method may know of the visual tokens of a batch of images, before the language model.

    Shape:
        tokens [B, N, D] as the language model would get them, in raster order;
        keys [B, N, d] what similarity is measured on: keys of a late layer of the vision tower, or its features;
        attention [B, N] how much a late layer of the tower attends to each token: from its class token where it has
        one, else the mean over all tokens; early [B, N] the same of an early layer;
        question [B, T, D] the question's words in the space of `tokens`, and their question_mask [B, T];
        mask [B, N] which tokens are there; positions [B, N, 2] row and column of each in the image's grid;
        grid [B, 2] rows and columns.
    """

    tokens: Tensor
    keys: Tensor
    attention: Tensor
    early: Tensor
    question: Tensor
    question_mask: Tensor
    mask: Tensor
    positions: Tensor
    grid: Tensor


class ReducedTokens(NamedTuple):
    """What is left: tokens [B, K, D], merged where the method merges, and index [B, K], which token each stands for.

    The index of a merged token is its centre. It ascends; rows with fewer than K tokens end in -1 and tokens of zeros.
    """

    tokens: Tensor
    index: Tensor  # type: ignore[assignment]  # a tuple's own `index` is not missed


Rule = Callable[[VisualTokens, int], ReducedTokens]


def exact(rule: Rule) -> Rule:
    """A rule that is asked only where there is something to leave out: smaller images keep all tokens as they are."""

    @wraps(rule)
    def kept(visual: VisualTokens, budget: int) -> ReducedTokens:
        budget = whole_number("budget", budget)
        visual = checked(visual)
        return only_where_needed(visual.tokens, visual.mask, budget, lambda: rule(visual, budget))

    return kept


def only_where_needed(tokens: Tensor, mask: Tensor, budget: int, rule: Callable[[], ReducedTokens]) -> ReducedTokens:
    """What `rule` keeps of the images with more than `budget` tokens, and all tokens of the others."""
    counts = mask.sum(1, keepdim=True)
    small = counts <= budget
    if bool(small.all()):
        return pick(tokens, mask, int(counts.max()))
    kept = rule()
    if not bool(small.any()):
        return kept
    whole = pick(tokens, mask & small, budget)
    index = torch.where(small, whole.index, kept.index)
    return ReducedTokens(torch.where(small[..., None], whole.tokens, kept.tokens), index)


def checked(visual: VisualTokens) -> VisualTokens:
    """The same with fitting shapes, nothing but zeros on padding, and what is compared or added up in float64."""
    B, N = visual.mask.shape
    T, D = visual.question_mask.shape[1], visual.tokens.shape[-1]
    shapes = {
        "tokens": [B, N, D],
        "keys": [B, N, visual.keys.shape[-1]],
        "attention": [B, N],
        "early": [B, N],
        "question": [B, T, D],
        "question_mask": [B, T],
        "positions": [B, N, 2],
        "grid": [B, 2],
    }
    for name, shape in shapes.items():
        if list(getattr(visual, name).shape) != shape:
            raise InputError(f"{name} must be {shape}, got {list(getattr(visual, name).shape)}")
    if not B or not N:
        raise InputError(f"there must be at least one image and one token, got a mask of {[B, N]}")
    mask, question_mask = visual.mask.bool(), visual.question_mask.bool()
    return replace(
        visual,
        tokens=torch.where(mask[..., None], visual.tokens, 0),
        keys=torch.where(mask[..., None], visual.keys, 0),
        attention=torch.where(mask, visual.attention.double(), 0),
        early=torch.where(mask, visual.early.double(), 0),
        question=torch.where(question_mask[..., None], visual.question, 0),
        question_mask=question_mask,
        mask=mask,
        positions=torch.where(mask[..., None], visual.positions.double(), 0),
        grid=visual.grid.long(),
    )


# ---- choosing -----------------------------------------------------------------------------------------------------


def top(score: Tensor, count: int | Tensor, among: Tensor) -> Tensor:
    """Mask [B, N] of the `count` highest scores among the allowed tokens; count is one number or [B, 1]."""
    counts = torch.as_tensor(count, device=score.device).expand(len(score), 1)
    return best(score, counts, among, count if isinstance(count, int) else score.shape[1])


def pick(tokens: Tensor, chosen: Tensor, most: int) -> ReducedTokens:
    """The tokens of a mask [B, N] in raster order; no row has more than `most`."""
    index = as_indices(chosen, most)
    return ReducedTokens(torch.where(index[..., None] >= 0, at(tokens, index), 0), index)


def at(values: Tensor, index: Tensor) -> Tensor:
    """Rows of values [B, N, D] by index [B, K]; what stands where the index is -1 does not matter. [B, K, D]"""
    return values.gather(1, index.clamp(min=0)[..., None].expand(-1, -1, values.shape[2]))


def evenly(among: Tensor, count: int | Tensor) -> Tensor:
    """Mask [B, N] of `count` (a number or [B, 1]) evenly spaced members, the first of them included."""
    members = among.sum(1, keepdim=True).clamp(min=1)
    place = among.cumsum(1) - 1
    return among & (place * count % members < count)


def stretched(values: Tensor, among: Tensor) -> Tensor:
    """Values [B, N] from 0 for the smallest to 1 for the largest member of a row; all 1 where they are equal."""
    low = torch.where(among, values, torch.inf).amin(1, keepdim=True)
    high = torch.where(among, values, -torch.inf).amax(1, keepdim=True)
    return torch.where(among & (high > low), (values - low) / (high - low), among.to(values.dtype))


# ---- merging ------------------------------------------------------------------------------------------------------


def precise(values: Tensor) -> Tensor:
    """Values in float32, or in float64 if they were."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def unit(values: Tensor) -> Tensor:
    """Vectors [B, N, D] of length 1, so that products are cosines; in float64, so that company decides no near ties."""
    return F.normalize(values.double(), dim=-1)


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """Products of `unit` vectors [B, N, D] and [B, K, D], to nine digits: rounding decides no ties. [B, N, K]"""
    return (one @ other.mT).round(decimals=9)


def nearest(features: Tensor, index: Tensor) -> Tensor:
    """Which of the tokens in index [B, K] each token's features [B, N, D] are most like, by cosine. [B, N]"""
    features = unit(features)
    likeness = torch.where(index[:, None] >= 0, cosines(features, at(features, index)), -torch.inf)  # [B, N, K]
    return index.gather(1, likeness.argmax(2))


def merge(tokens: Tensor, chosen: Tensor, owner: Tensor, most: int) -> ReducedTokens:
    """The chosen tokens, each the mean of all that it owns: owner [B, N] is a chosen token's number, or -1 for none."""
    index = as_indices(chosen, most)
    belongs = (owner[:, None] == index[..., None]) & (index[..., None] >= 0)  # [B, K, N]
    return ReducedTokens(mean_by(precise(belongs), tokens), index)


def mean_by(weight: Tensor, tokens: Tensor) -> Tensor:
    """Means of tokens [B, N, D] by weight [B, K, N] of at least 0; no weight at all gives zeros. [B, K, D]"""
    weight = weight.to(precise(tokens).dtype)
    total = weight.sum(2, keepdim=True)
    return (weight @ precise(tokens) / torch.where(total > 0, total, 1)).to(tokens.dtype)


# ---- parts of an image --------------------------------------------------------------------------------------------


def tile_of(visual: VisualTokens, tiles: Tensor) -> Tensor:
    """Tile of each token, counted row by row, when tiles [B, 2] (rows, columns) divide the grid evenly. [B, N]"""
    tiles, grid = tiles[:, None], visual.grid[:, None]
    place = (visual.positions * tiles / grid).floor().long()  # [B, N, 2]
    place = torch.minimum(place.clamp(min=0), tiles - 1)
    return place[..., 0] * tiles[..., 1] + place[..., 1]


def members(group: Tensor, among: Tensor, groups: int) -> Tensor:
    """Who belongs to which group: group, among [B, N] -> bool [B, G, N]."""
    return (group[:, None] == torch.arange(groups, device=group.device)[:, None]) & among[:, None]


def share_out(worth: Tensor, room: Tensor, count: int) -> Tensor:
    """`count` tokens over groups in proportion to worth [B, G], by largest remainder, none above room [B, G]. [B, G]

    What a full group cannot take goes to the others in the same proportion; where nothing is worth anything, by room.
    """
    share = torch.zeros_like(worth, dtype=torch.float64)
    for _ in range(worth.shape[1]):  # each round fills a group or is the last
        free = room - share
        weight = torch.where(free > 0, worth.double(), 0)
        weight = torch.where(weight.sum(1, keepdim=True) > 0, weight, free)
        left = count - share.sum(1, keepdim=True)
        share = torch.minimum(share + left * weight / weight.sum(1, keepdim=True).clamp(min=1e-300), room.double())
    whole = (share + 1e-9).floor()
    rest = (count - whole.sum(1, keepdim=True)).long()
    return whole.long() + best(share - whole, rest, whole < room, worth.shape[1])
