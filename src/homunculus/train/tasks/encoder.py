"""What encoder and scout are taught, as modules that take labelled sheets and give named losses."""

from __future__ import annotations

import math
import random
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus import positions, tokens
from homunculus.cells import CellTree, Selection
from homunculus.reader.encoder import COLUMNS, ROWS, Encoder
from homunculus.reader.letters import BLANK
from homunculus.reader.scout import STRIDE, Scout, grid_of, small_copy
from homunculus.train.pages import Labels, Sheets
from homunculus.train.tasks.selections import drawn_budget, drawn_look, padded
from homunculus.train.trainer.step import Losses, SheetTask

CELL = 32
LEGIBLE = 7.5  # pixels per em from which a letter can be read
SEEN = 5.0  # the same for the scout, which only needs to recognise words
IGNORE = -1
BLANK_WEIGHT = 0.15  # most slots are blank
TOKENS = 400  # about how many tokens a page is given in training


@cache
def tree_of(height: int, width: int, device: torch.device) -> CellTree:
    """The tree of a canvas, made once."""
    return CellTree(height, width, CELL).to(device)


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
        slots = slot_map(labels, B, shape, (span, span), LEGIBLE * 2**level)
        slots = slots.unflatten(2, (-1, COLUMNS)).unflatten(1, (-1, ROWS)).transpose(2, 3)  # [B, rows, columns, 4, 8]
        out[b, k] = slots[b, row, column]
    return out


def dense_loss(logits: Tensor, slots: Tensor) -> Tensor:
    """Cross-entropy of the characters in slots: logits [..., 96], slots [...]."""
    weight = torch.where(slots == BLANK, BLANK_WEIGHT, 1.0) * (slots != IGNORE)
    each = F.cross_entropy(logits.flatten(0, -2).float(), slots.clamp(min=0).flatten(), reduction="none")
    return _mean(each, weight)


def fixations(labels: Labels, pages: int, size: tuple[int, int]) -> Tensor:
    """A place near some letter of each page, or near its middle where no letter is known. [B, 2]"""
    side = torch.tensor(size[::-1], device=labels.letters.device)
    shown = labels.letters[((labels.letters[:, 2:4] >= 0) & (labels.letters[:, 2:4] < side)).all(1)]
    edges = torch.searchsorted(shown[:, 0].contiguous(), torch.arange(pages + 1.0, device=side.device))
    count = edges.diff()
    pick = edges[:-1] + (torch.rand(pages, device=side.device) * count).long()
    places = torch.cat((shown[:, 2:4], side[None] / 2))[torch.where(count > 0, pick, -1)]
    return torch.minimum((places + 40 * torch.randn_like(places)).clamp(min=0), side - 1.0)


class EncoderTask(SheetTask):
    """Dense characters of every chosen cell.

    `prepare` looks at the pages and makes tensors of few different shapes; `forward` takes them to losses.
    """

    model: Encoder

    def __init__(self, encoder: Encoder, seed: int = 0) -> None:
        super().__init__()
        self.model, self.rng = encoder, random.Random(seed)

    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""
        return list(self.model.blocks)

    @torch.no_grad()
    def prepare(self, sheets: Sheets) -> list[Tensor]:
        """One look at each page by a way drawn by lot: patches, places and slots."""
        B, _, H, W = sheets.pixels.shape
        tree = tree_of(H, W, sheets.pixels.device)
        budget = drawn_budget(self.rng, math.prod(tree.shapes[0]))
        rows = max(1, min(B, B * TOKENS // budget))  # fewer pages where each is looked at closely
        labels = sheets.labels.first(rows)
        selection = padded(drawn_look(tree, fixations(labels, rows, (H, W)), budget, self.rng), budget)
        patches = tokens.patches([level[:rows] for level in sheets.levels], selection)
        slots = slots_of(labels, selection, (H, W), tree.levels)
        return [patches, positions.coordinates(selection), slots]

    def forward(self, patches: Tensor, places: Tensor, slots: Tensor) -> Losses:
        """Losses of what `prepare` made."""
        return {"dense": dense_loss(self.model.characters(self.model(patches, places)), slots)}


class ScoutTask(SheetTask):
    """Finding: where the answers of questions lie, what people tend to ask about, and dense characters."""

    model: Scout

    def __init__(self, scout: Scout, seed: int = 0) -> None:
        super().__init__()
        self.model, self.rng = scout, random.Random(seed)

    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""
        return [*self.model.layers, *self.model.joint_blocks]

    @torch.no_grad()
    def prepare(self, sheets: Sheets) -> list[Tensor]:
        """All questions of each page: the small copies, slots, questions, places of answers and of usual ones."""
        B, _, H, W = sheets.pixels.shape
        labels, shape = sheets.labels, grid_of(H, W)
        side = (H / shape[0], W / shape[1])
        slots = slot_map(labels, B, shape, side, SEEN * side[0] / STRIDE)
        slots = slots.unflatten(2, (-1, COLUMNS)).unflatten(1, (-1, ROWS)).transpose(2, 3)
        target, usual = cells_under(labels.answers, shape, side), cells_under(labels.usual, shape, side)
        return [small_copy(sheets.levels), slots, labels.questions.long(), target, usual]

    def forward(self, small: Tensor, slots: Tensor, questions: Tensor, target: Tensor, usual: Tensor) -> Losses:
        """Losses of what `prepare` made."""
        features = self.model.encode_page(small)
        logits = self.model.find(features, questions).float().flatten(2)
        target, asked = target.flatten(2), target.flatten(2).any(2)
        expected, known = self.model.usual(features).float(), usual.flatten(1).any(1)
        each = F.binary_cross_entropy_with_logits(expected, usual.float(), reduction="none").mean((1, 2))
        return {
            "find": find_loss(logits, target, asked),
            "usual": _mean(each, known),
            "dense": dense_loss(self.model.characters(features), slots),
            "hit": _mean(target.gather(2, logits.argmax(2, keepdim=True))[..., 0], asked).detach(),
        }


def find_loss(logits: Tensor, target: Tensor, asked: Tensor) -> Tensor:
    """How badly answers are found: logits and target [B, Q, n] over places, asked [B, Q] which questions have one.

    Half of it is the chance that a draw by softmax misses every place of the answer, half how well each place knows by
    itself whether it belongs to it, summed over the page and divided by the size of the answer.
    """
    hit = torch.logsumexp(logits.masked_fill(~target, -1e4), 2) - torch.logsumexp(logits, 2)
    each = F.binary_cross_entropy_with_logits(logits, target.float(), reduction="none").sum(2)
    each = each / target.sum(2).clamp(min=1)
    return ((each - hit) * asked).sum() / asked.sum().clamp(min=1)


def cells_under(boxes: Tensor, shape: tuple[int, int], side: tuple[float, float]) -> Tensor:
    """The cells, of so many pixels, that boxes [B, ..., n, 4] touch with more than their rim: bool [B, ..., h, w]."""
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0)
    rim = (0.15 * size).clamp(max=3)
    low, high = boxes[..., :2] + rim, boxes[..., 2:] - rim
    there = (size > 0).all(-1)[..., None, None]
    masks = []
    for axis, count, span in ((1, shape[0], side[0]), (0, shape[1], side[1])):
        start = torch.arange(count, device=boxes.device) * span
        masks.append((low[..., axis, None] < start + span) & (high[..., axis, None] > start))
    return (masks[0][..., :, None] & masks[1][..., None, :] & there).any(-3)


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    """Weighted mean, 0 where all weights are 0; no weight makes the device wait."""
    weight = weight.flatten().float()
    return (values.flatten() * weight).sum() / weight.sum().clamp(min=1e-6)
