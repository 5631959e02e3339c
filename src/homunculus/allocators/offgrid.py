"""Patches centred exactly on log-polar ring points, wherever those lie between the cells of the tree."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from homunculus.allocators.acuity import acuity_gain
from homunculus.allocators.cut import cut
from homunculus.allocators.frame import Request, as_indices
from homunculus.cells import Selection
from homunculus.fixation import eccentricity, pixels_per_degree


def ring_points(request: Request, rings: int, sectors: int, alpha: float, e0: float, degrees: float) -> Selection:
    """The fixations and the ring points that lie in the image, filled up with cells of the cut that follows M(e).

    Patches keep their size at the border and move inside instead. Order: coarse to fine, row by row. An image with no
    more cells than tokens gives its cells.
    """
    tree = request.tree
    each = [_rings(request, gaze, rings, sectors, alpha, degrees) for gaze in request.fixation.unbind(1)]
    points, levels = torch.cat([p for p, _ in each], 1), torch.cat([l for _, l in each], 1)  # [B, P, 2], [B, P]
    size = tree.sizes.flip(1)[:, None].double()  # [B, 1, 2]
    inside = ((points >= 0) & (points <= size)).all(2)
    inside = inside & (request.quota < tree.valid.sum(1, keepdim=True))  # an image that gets all of its cells is full
    span = tree.cell * 2.0 ** levels[..., None]
    low = torch.minimum((points - span / 2).clamp(min=0), (size - span).clamp(min=0))
    rings_boxes = torch.cat((low, torch.minimum(low + span, size)), 2)

    mask = cut(request, acuity_gain(request, eccentricity(tree, request.fixation, degrees), e0=e0))
    cells = as_indices(mask, request.max_count)
    boxes = torch.cat((rings_boxes, tree.boxes(cells).double()), 1)
    levels = torch.cat((levels, tree.level[cells.clamp(min=0)]), 1)
    return _first_distinct(request, boxes, levels, torch.cat((inside, cells >= 0), 1))


def _rings(
    request: Request, fixation: Tensor, rings: int, sectors: int, alpha: float, degrees: float
) -> tuple[Tensor, Tensor]:
    """The fixation [B, 2] and the points on its rings, [B, P, 2] in pixels, with their levels [B, P]."""
    tree, device = request.tree, request.tree.device
    farthest = torch.maximum(fixation, tree.sizes.flip(1) - fixation).square().sum(1, keepdim=True).sqrt()
    scale = pixels_per_degree(tree, degrees).expand(len(fixation), 1)
    outmost = torch.log1p(farthest / scale / alpha)  # [B, 1]
    ring = (torch.arange(rings, device=device, dtype=torch.float64) + 0.5) / rings
    r = torch.expm1(ring * outmost) * alpha  # [B, rings] degrees
    turn = torch.arange(sectors, device=device, dtype=torch.float64) * (2 * math.pi / sectors)
    unit = torch.stack((turn.cos(), turn.sin()), 1)  # [sectors, 2]
    around = (r * scale)[:, :, None, None] * unit  # [B, rings, sectors, 2]
    points = torch.cat((fixation[:, None], fixation[:, None] + around.flatten(1, 2)), 1)
    arc = 2 * math.pi / sectors * (r + alpha) * scale  # how far apart neighbours on a ring are, in pixels
    top = torch.tensor(tree.depths, device=device)[:, None] - 1
    level = torch.minimum((arc / tree.cell).log2().round().clamp(min=0).long(), top)
    level = level[:, :, None].expand(-1, -1, sectors).flatten(1)
    return points, torch.cat((torch.zeros_like(level[:, :1]), level), 1)


def _first_distinct(request: Request, boxes: Tensor, levels: Tensor, valid: Tensor) -> Selection:
    """The first `quota` patches [B, P] of each row that are valid and repeat no earlier one, in tree order."""
    patch = torch.cat((boxes, levels.double()[..., None]), 2)  # at the border cells of two levels can share a box
    order = _sorted_by([*patch.unbind(2)], valid)  # equal patches side by side, the earliest first
    lined = patch.gather(1, order[..., None].expand_as(patch))
    repeats = torch.zeros_like(valid)
    repeats[:, 1:] = (lined[:, 1:] == lined[:, :-1]).all(2)
    valid = valid & ~torch.zeros_like(valid).scatter(1, order, repeats)
    chosen = valid & (valid.cumsum(1) <= request.quota)
    order = _sorted_by([boxes[..., 0], boxes[..., 1], -levels.double()], chosen)[:, : request.max_count]
    mask = chosen.gather(1, order)
    boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4)) * mask[..., None]
    levels = torch.where(mask, levels.gather(1, order), 0)
    return Selection(boxes, levels, None, mask, request.tree.sizes.expand(len(boxes), -1), request.tree.cell)


def _sorted_by(keys: list[Tensor], valid: Tensor) -> Tensor:
    """Places [B, P] sorted by the last key first, those not valid behind all others."""
    order = torch.arange(valid.shape[1], device=valid.device).expand_as(valid)
    for key in keys:
        order = order.gather(1, torch.where(valid, key, torch.inf).gather(1, order).argsort(dim=1, stable=True))
    return order
