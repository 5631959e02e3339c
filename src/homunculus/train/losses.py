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
from homunculus.reader.encoder import COLUMNS, MODES, ROWS, Encoder
from homunculus.reader.letters import BLANK, END
from homunculus.reader.scout import STRIDE, Scout, grid_of, small_copy
from homunculus.train.looks import drawn_budget, drawn_look, padded
from homunculus.train.pages import Labels, Sheets
from homunculus.train.work import Losses, SheetTask

CELL = 32
LEGIBLE = 7.5  # pixels per em from which a letter can be read
SEEN = 5.0  # the same for the scout, which only needs to recognise words
IGNORE = -1
BLANK_WEIGHT = 0.15  # most slots are blank
SHORT, LONG = (16, 12), (65, 6)  # letters, and how many texts of a page are read, for words and for lines
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
    slots = torch.zeros(pages, rows, columns, dtype=torch.long, device=labels.text.device)
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


def legible(labels: Labels, selection: Selection) -> Tensor:
    """Which words and lines the chosen cells show well enough to be read: [B, R]."""
    length = (labels.text != BLANK).sum(2) - 1  # without the end
    share = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], device=length.device)
    at = ((length - 1).clamp(min=0)[..., None] * share).round().long()  # [B, R, 5]
    spots = labels.centres.gather(2, at[..., None].expand(-1, -1, -1, 2)).flatten(1, 2)  # [B, 5 R, 2]
    low, high = selection.boxes[:, None, :, :2], selection.boxes[:, None, :, 2:]
    inside = ((spots[:, :, None] >= low) & (spots[:, :, None] < high)).all(3) & selection.mask[:, None]
    level = torch.where(inside, selection.levels[:, None].float(), torch.inf).amin(2)  # [B, 5 R]
    fine = level.view(*at.shape).amax(2) <= (labels.ems / LEGIBLE).clamp(min=1e-3).log2()
    return fine & (length > 0) & (labels.ems >= LEGIBLE)


class EncoderTask(SheetTask):
    """Reading: dense characters of every chosen cell, and words and lines at points.

    `prepare` looks at the pages and makes tensors of few different shapes; `forward` takes them to losses. `words` is
    the share of lessons that read words, not lines.
    """

    model: Encoder

    def __init__(self, encoder: Encoder, seed: int = 0, words: float = 0.7) -> None:
        super().__init__()
        self.model, self.rng, self.words = encoder, random.Random(seed), words

    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""
        return list(self.model.blocks)

    @torch.no_grad()
    def prepare(self, sheets: Sheets) -> list[Tensor]:
        """One look at each page by a way drawn by lot: patches, places, slots and a reading lesson."""
        B, _, H, W = sheets.pixels.shape
        tree = tree_of(H, W, sheets.pixels.device)
        budget = drawn_budget(self.rng, math.prod(tree.shapes[0]))
        rows = max(1, min(B, B * TOKENS // budget))  # fewer pages where each is looked at closely
        labels = sheets.labels.first(rows)
        selection = padded(drawn_look(tree, self._fixation(labels, H, W), budget, self.rng), budget)
        patches = tokens.patches([level[:rows] for level in sheets.levels], selection)
        slots = slots_of(labels, selection, (H, W), tree.levels)
        return [patches, positions.coordinates(selection), slots, *self.lesson(labels, selection)]

    def forward(self, patches: Tensor, places: Tensor, slots: Tensor, *lesson: Tensor) -> Losses:
        """Losses of what `prepare` made."""
        return self.losses(self.model(patches, places), places, slots, *lesson)

    def losses(self, x: Tensor, places: Tensor, slots: Tensor, *lesson: Tensor) -> Losses:
        """Losses of the encoder's vectors x [B, K, width]."""
        before, gaze, after, way, moving = lesson
        logits, move = self.model.reading(x, places, before, gaze)
        each = F.cross_entropy(logits.flatten(0, 2).float(), after.flatten(), reduction="none")
        return {
            "dense": dense_loss(self.model.characters(x), slots),
            "read": _mean(each, after != BLANK),
            "move": _mean(F.smooth_l1_loss(move.float(), way, reduction="none", beta=0.1).sum(3), moving),
            "exact": _exact(logits, after),
        }

    def _fixation(self, labels: Labels, H: int, W: int) -> Tensor:
        """A place near some word of each page. [B, 2]"""
        weight = (labels.ems > 0).float() + 1e-6
        pick = weight.multinomial(1)[:, 0]
        box = labels.read_boxes[torch.arange(len(pick), device=pick.device), pick]
        size = torch.tensor([W, H], device=box.device)
        middle = torch.where(box[:, 2:] > 0, (box[:, :2] + box[:, 2:]) / 2, size / 2)
        return torch.minimum((middle + 40 * torch.randn_like(middle)).clamp(min=0), size - 1.0)

    def lesson(self, labels: Labels, selection: Selection) -> list[Tensor]:
        """Texts to read: codes before and after each step [B, Q, T], gaze [B, Q, T, 2] and the way to go, in cells."""
        short = self.rng.random() < self.words
        T, reads = SHORT if short else LONG
        fits = ~labels.line & (labels.text[:, :, T - 1 :] == BLANK).all(2) if short else labels.line | (labels.ems > 0)
        usable = legible(labels, selection) & fits
        order = torch.rand(usable.shape, device=usable.device) + usable
        pick = order.topk(reads, dim=1).indices  # [B, Q]
        usable = usable.gather(1, pick)
        after = labels.text.long().gather(1, pick[..., None].expand(-1, -1, labels.text.shape[2]))[..., :T]
        after = torch.where(usable[..., None], after, BLANK)
        centres = labels.centres.gather(1, pick[..., None, None].expand(-1, -1, *labels.centres.shape[2:]))[:, :, :T]
        line, em = labels.line.gather(1, pick), labels.ems.gather(1, pick)
        box = labels.read_boxes.gather(1, pick[..., None].expand(-1, -1, 4))
        centre, size = (box[..., :2] + box[..., 2:]) / 2, box[..., 2:] - box[..., :2]
        off = 0.18 * torch.randn_like(centre).clamp(-2, 2)
        off[..., 0] = torch.where(line, torch.rand_like(em) - 0.5, off[..., 0]) * 0.96  # anywhere along a line
        point = centre + size * off
        jitter = 0.18 * em[..., None, None] * torch.randn_like(centres)
        drift = (
            0.3
            * em[..., None, None]
            * torch.randn_like(centres[:, :, :1])
            * (torch.rand_like(em) < 0.4)[..., None, None]
        )
        gaze = torch.cat((point[:, :, None], (centres + jitter + drift)[:, :, :-1]), 2)
        mode = torch.where(line, MODES["line"], MODES["word"])
        before = torch.cat((mode[..., None], after[..., :-1]), 2)
        moving = (after != BLANK) & (after != END) & labels.dense[:, None, None]  # else centres are guesses
        return [before, gaze / CELL, after, (centres - gaze) / CELL, moving]


class ScoutTask(SheetTask):
    """Finding: where the answers of questions lie, what people tend to ask about, and dense characters."""

    model: Scout

    def __init__(self, scout: Scout, seed: int = 0) -> None:
        super().__init__()
        self.model, self.rng = scout, random.Random(seed)

    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""
        return [*self.model.layers, *self.model.joining]

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
        features = self.model.look(small)
        logits = self.model.find(features, questions).float().flatten(2)
        target, asked = target.flatten(2), target.flatten(2).any(2)
        expected, known = self.model.expect(features).float(), usual.flatten(1).any(1)
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


def _exact(logits: Tensor, after: Tensor) -> Tensor:
    """Share of texts whose characters are all right, those before being given."""
    right = ((logits.argmax(-1) == after) | (after == BLANK)).all(2)
    return _mean(right, (after != BLANK).any(2)).detach()


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    """Weighted mean, 0 where all weights are 0; no weight makes the device wait."""
    weight = weight.flatten().float()
    return (values.flatten() * weight).sum() / weight.sum().clamp(min=1e-6)
