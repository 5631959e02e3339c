"""Dense characters: which one is centred in each slot of a cell, and the loss that teaches a network to read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import Selection
from homunculus.reader.encoder import COLUMNS, ROWS
from homunculus.reader.letters import BLANK
from homunculus.train.pages import Labels

CELL = 32
LEGIBLE = 7.5  # pixels per em from which a letter can be read
IGNORE = -1
BLANK_WEIGHT = 0.15  # most slots are blank


def slot_map(labels: Labels, pages: int, shape: tuple[int, int], side: tuple[float, float], least: float) -> Tensor:
    """Which character is centred in each slot: codes, 0 for none, IGNORE for those of less than `least` pixels per em.

    Each of `shape` = rows, columns of cells, `side` = height, width in pixels of the page, has 4 x 8 slots:
    [B, 4 rows, 8 columns].
    """
    rows, columns = ROWS * shape[0], COLUMNS * shape[1]
    slots = torch.zeros(pages, rows, columns, dtype=torch.long, device=labels.letters.device)
    page, code, x, y, em = labels.letters.unbind(1)
    column, row = (x * COLUMNS / side[1]).floor().long(), (y * ROWS / side[0]).floor().long()
    value = torch.where(em >= least, code.long(), IGNORE)
    inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
    slots[page.long()[inside], row[inside], column[inside]] = value[inside]
    return torch.where(labels.dense[:, None, None], slots, IGNORE)


def by_cell(slots: Tensor) -> Tensor:
    """Slots [B, 4 rows, 8 columns] of each cell: [B, rows, columns, 4, 8]."""
    return slots.unflatten(2, (-1, COLUMNS)).unflatten(1, (-1, ROWS)).transpose(2, 3)


def slots_of(labels: Labels, selection: Selection, size: tuple[int, int], levels: int) -> Tensor:
    """The slots of every chosen cell: [B, K, 4, 8]; IGNORE for cells off the tree."""
    B, K = selection.mask.shape
    out = torch.full((B, K, ROWS, COLUMNS), IGNORE, device=selection.boxes.device)
    if selection.indices is None:
        return out
    for level in range(levels):
        b, k = ((selection.levels == level) & selection.mask).nonzero(as_tuple=True)
        span = CELL << level
        column, row = (selection.boxes[b, k, :2] // span).unbind(1)
        shape = (-(-size[0] // span), -(-size[1] // span))
        slots = by_cell(slot_map(labels, B, shape, (span, span), LEGIBLE * 2**level))
        out[b, k] = slots[b, row, column]
    return out


def dense_loss(logits: Tensor, slots: Tensor) -> Tensor:
    """Cross-entropy of the characters in slots: logits [..., 96], slots [...]."""
    weight = torch.where(slots == BLANK, BLANK_WEIGHT, 1.0) * (slots != IGNORE)
    each = F.cross_entropy(logits.flatten(0, -2).float(), slots.clamp(min=0).flatten(), reduction="none")
    return weighted_mean(each, weight)


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Weighted mean, 0 where all weights are 0; no weight makes the device wait."""
    weight = weight.flatten().float()
    return (values.flatten() * weight).sum() / weight.sum().clamp(min=1e-6)
