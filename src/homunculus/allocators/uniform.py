"""Plain downsampling: the whole image at the one scale that the budget allows."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.allocators.frame import Request
from homunculus.cells import Selection


def uniform(request: Request) -> Selection:
    """The whole image at one (fractional) scale, the largest at which its cells fit the budget; relevance is ignored.

    Its cells tile the resampled image, so they are boxes and a level like all others, but no cells of the tree: the
    indices are None. The count is the largest r x c of the image's aspect, a few less than the budget at times.
    """
    tree = request.tree
    rows, columns, scale = fitting_grid(tree.sizes, tree.cell, request.budget)  # [B]
    max_count = int((rows * columns).max())
    place = torch.arange(max_count, device=tree.device)
    valid = place < (rows * columns)[:, None]  # [B, K]
    at = torch.stack((place % columns[:, None], place // columns[:, None]), 2)  # x, y
    span = (tree.cell / scale)[:, None, None]
    low = at * span
    last = at + 1 >= torch.stack((columns, rows), 1)[:, None]
    high = torch.where(last, tree.sizes.flip(1)[:, None].double(), (at + 1) * span)
    boxes = torch.cat((low, high), 2) * valid[..., None]
    levels = torch.where(valid, scale.log2().abs()[:, None], 0.0)
    batch = len(request.relevance)
    return Selection(
        boxes.expand(batch, -1, -1),
        levels.expand(batch, -1),
        None,
        valid.expand(batch, -1),
        tree.sizes.expand(batch, -1),
        tree.cell,
    )


def fitting_grid(sizes: Tensor, cell: int, budget: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and scale (at most 1) of the largest grid of cells that fits the budget, for each image. [B]

    The scale can only stop where a row or a column of cells is just full, so those are the candidates.
    """
    height, width = sizes[:, :1], sizes[:, 1:]
    max_count = min(budget, -(-int(sizes.max()) // cell))
    n = torch.arange(1, max_count + 1, device=sizes.device)[None]  # [1, max_count]
    rows = torch.cat((n.expand(len(sizes), -1), -(-n * height // width), -(-height // cell)), 1)
    columns = torch.cat((-(-n * width // height), n.expand(len(sizes), -1), -(-width // cell)), 1)
    scale = torch.cat((n * cell / height.double(), n * cell / width.double(), torch.ones_like(height)), 1)
    fits = (rows * columns <= budget) & (scale <= 1)
    chosen = torch.where(fits, scale, 0).argmax(1, keepdim=True)
    return rows.gather(1, chosen)[:, 0], columns.gather(1, chosen)[:, 0], scale.gather(1, chosen)[:, 0]
