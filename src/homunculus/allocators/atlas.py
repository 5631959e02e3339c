"""Segments get the tokens of the foreground, a coarse grid those of the background."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, as_whole, best, fill
from homunculus.allocators.seats import seats, top_of_each, worth_of
from homunculus.cells import CellTree
from homunculus.errors import InputError

MIN_SHARE, MAX_SHARE = 0.25, 0.9  # of the tokens go to the foreground


def atlas(request: Request, *, segments: Tensor | Sequence[Tensor] | None = None) -> Tensor:
    """Fine cells for the segments of above-average relevance, the coarsest cells that suffice for the rest.

    `segments` are integer label maps from any segmenter, [B, h, w] or one [h, w] for each image, of any resolution.
    Without them the cells above the mean relevance form one segment. The foreground's share of the tokens is its
    share of the relevance, within 25 and 90 %; each segment gets its part by its summed relevance.
    """
    tree, here = request.tree, request.tree.at(0)
    valid, value = tree.valid[:, here].expand(len(request.relevance), -1), request.weight[:, here]
    if segments is None:
        whole = as_whole(value)
        label = (whole * valid.sum(1, keepdim=True) > whole.sum(1, keepdim=True)).long()  # above the mean
    else:
        label = labels_of_cells(tree, segments, len(value))
    cells = label.new_zeros(len(label), int(label.max()) + 1).scatter_add_(1, label, valid.long())  # [B, S]
    worth = worth_of(label, value, cells)
    total = worth.sum(1, keepdim=True)
    front = (worth * cells.sum(1, keepdim=True) >= total * cells) & (cells > 0)  # at least as relevant as the mean
    share = ((worth * front).sum(1, keepdim=True) / total).clamp(MIN_SHARE, MAX_SHARE)
    among = valid & front.gather(1, label)
    tokens = (share * request.quota).round().long()
    quota = seats(worth * front, cells * front, tokens, request.max_count, largest=request.max_count, one_each=True)
    mask = torch.zeros_like(request.relevance, dtype=torch.bool)
    mask[:, here] = top_of_each(label, request.relevance[:, here], quota, among)
    return fill(request, mask | _background(request, mask, valid & ~among), request.relevance)


def labels_of_cells(tree: CellTree, segments: Tensor | Sequence[Tensor], images: int) -> Tensor:
    """The label under the centre of each finest cell, numbered from 0 in the order of the segmenter's. [B, n0]"""
    if len(segments) != images:
        raise InputError(f"segments must hold one label map for each of the {images} images, got {len(segments)}")
    here, maps = tree.at(0), []
    for b, labels in enumerate(segments):
        if labels.ndim != 2 or labels.is_floating_point() or labels.numel() == 0 or int(labels.min()) < 0:
            raise InputError(
                f"segments must be whole-number labels [h, w] from 0 on, got {labels.dtype} {list(labels.shape)}"
            )
        height, width = tree.image_sizes[b if tree.rows > 1 else 0]
        at = tree.centre[here] / torch.tensor([width, height], device=tree.device)  # x, y from 0 to 1
        labels = labels.to(tree.device)
        column = (at[:, 0] * labels.shape[1]).long().clamp(max=labels.shape[1] - 1)
        row = (at[:, 1] * labels.shape[0]).long().clamp(max=labels.shape[0] - 1)
        maps.append(labels[row, column].long())
    return torch.stack(maps).unique(return_inverse=True)[1]  # numbered without gaps, whatever the segmenter's numbers


def _background(request: Request, taken: Tensor, behind: Tensor) -> Tensor:
    """Cells of the finest level at which the background fits what is left of the quota. [B, N]"""
    tree = request.tree
    mostly = (tree.lift(behind.double()) >= 0.5) & tree.valid
    per_level = torch.stack([(mostly & (tree.level == l)).sum(1) for l in range(tree.levels)], 1)  # [B, L]
    room = request.quota - taken.sum(1, keepdim=True)
    depth = torch.tensor(tree.depths, device=tree.device)[:, None]
    fits = (per_level <= room) & (torch.arange(tree.levels, device=tree.device) < depth)
    finest = torch.where(fits.any(1, keepdim=True), fits.int().argmax(1, keepdim=True), depth - 1)
    return best(request.relevance, room, mostly & (tree.level == finest) & ~taken, request.max_count)
