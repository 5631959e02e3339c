"""SparseVLM: the words that look at the image rate its tokens, and some of what is dropped comes back in clusters."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import as_indices
from homunculus.errors import whole_number
from homunculus.peers.base import ReducedTokens, at, merge, only_where_needed, precise, top
from homunculus.peers.stages import LayerState, Stage, checked_inner, scaled, shrink

LAYERS, DEPTH = (2, 6, 15), 32  # the paper's stages in LLaVA-1.5-7B
RECYCLED, CLUSTER = 0.3, 10  # of the dropped tokens 30 % are recycled, one cluster for about ten


class SparseVLM:
    """Cuts at 2, 6 and 15 of 32 layers; the best of the dropped tokens are recycled as cluster means."""

    def plan(self, layers: int, count: int, budget: int) -> list[Stage]:
        """Three stages that shrink geometrically."""
        return shrink(layers, count, budget, scaled(LAYERS, DEPTH, layers))

    def keep(self, inner: LayerState, count: int) -> ReducedTokens:
        """The tokens that the raters attend to most, and clusters of the best that were dropped: `count` in all."""
        count, inner = whole_number("count", count), checked_inner(inner)
        return only_where_needed(inner.hidden_states, inner.mask, count, lambda: _keep(inner, count))


def rating(inner: LayerState) -> Tensor:
    """Mean attention of the raters: text tokens that attend to the image at least as much as the mean one. [B, N]"""
    looks = inner.attention.sum(2)  # [B, T]
    mean = looks.sum(1, keepdim=True) / inner.text_mask.sum(1, keepdim=True).clamp(min=1)
    raters = (inner.text_mask & (looks >= mean)).to(looks.dtype)
    return (raters[:, None] @ inner.attention)[:, 0] / raters.sum(1, keepdim=True).clamp(min=1)


def _keep(inner: LayerState, count: int) -> ReducedTokens:
    rate, mask = rating(inner), inner.mask
    clusters = ((mask.sum(1, keepdim=True) - count).clamp(min=0) * RECYCLED).long() // CLUSTER + 1
    clusters = clusters.clamp(max=count - 1)  # [B, 1]
    chosen = top(rate, count - clusters, mask)
    dropped = mask & ~chosen
    recycled = top(rate, (dropped.sum(1, keepdim=True) * RECYCLED).long() + 1, dropped)
    pool = as_indices(recycled, int(recycled.sum(1).max()))  # [B, P]
    centre, owner = clustered(at(inner.hidden_states, pool), pool >= 0, clusters)
    slot = torch.where(pool >= 0, pool, mask.shape[1])  # padding shares one slot that is thrown away
    none = torch.zeros(len(mask), mask.shape[1] + 1, dtype=torch.long, device=mask.device)
    chosen = chosen | none.bool().scatter(1, slot, centre)[:, :-1]
    owner = (none - 1).scatter(1, slot, pool.gather(1, owner))[:, :-1]
    itself = torch.arange(mask.shape[1], device=mask.device)
    return merge(inner.hidden_states, chosen, torch.where(chosen, itself, owner), count)


def clustered(hidden: Tensor, mask: Tensor, clusters: Tensor) -> tuple[Tensor, Tensor]:
    """Density peaks: centres are dense and far from anything denser, the others go to the nearest centre.

    hidden [B, P, D], clusters [B, 1] -> mask of centres [B, P], and the number of each one's centre [B, P]. Density
    falls with the mean squared distance to as many neighbours as there are clusters.
    """
    hidden = precise(hidden)
    distance = torch.cdist(hidden, hidden, compute_mode="donot_use_mm_for_euclid_dist") / hidden.shape[2] ** 0.5
    both = mask[:, None] & mask[..., None]
    farthest = torch.where(both, distance, 0).amax((1, 2))[:, None]
    others = distance.diagonal_scatter(torch.full_like(distance[..., 0], torch.inf), dim1=1, dim2=2)
    near = torch.where(both, others, torch.inf).sort(2).values.square()
    near = torch.where(near < torch.inf, near, 0).cumsum(2)  # [B, P, P]
    some = torch.minimum(clusters, mask.sum(1, keepdim=True) - 1).clamp(min=1)
    density = (-near.gather(2, (some - 1)[..., None].expand(-1, near.shape[1], 1))[..., 0] / some).exp()
    itself = torch.arange(hidden.shape[1], device=hidden.device)
    first = itself < itself[:, None]  # of two that are equally dense the first counts as denser
    higher, equal = density[:, None] > density[..., None], density[:, None] == density[..., None]
    denser = (higher | (equal & first)) & both
    gap = torch.minimum(torch.where(denser, distance, torch.inf).amin(2), farthest)
    centre = top(gap * density, clusters, mask)
    owner = torch.where(centre[:, None], distance, torch.inf).argmin(2)
    return centre, torch.where(centre, itself, owner)
