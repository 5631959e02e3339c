"""What the scout learns: where answers lie, what people tend to ask about, and dense characters."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.reader.scout import STRIDE, Scout, grid_of, small_copy
from homunculus.train.pages import PageBatch
from homunculus.train.tasks.base import Losses, PageTask
from homunculus.train.tasks.slots import by_cell, dense_loss, slot_map, weighted_mean

LEGIBLE = 5.0  # pixels per em from which the scout can recognise a word


class ScoutTask(PageTask):
    """Losses of finding answers with and without a question, and of dense characters."""

    model: Scout

    def layers_to_compile(self) -> list[nn.Module]:
        """The layers of page and question."""
        return [*self.model.layers, *self.model.joint_blocks]

    @torch.no_grad()
    def make_batch(self, pages: PageBatch) -> list[Tensor]:
        """All questions of each page: small copies, slots, questions, cells of answers and of likely answers."""
        B, _, H, W = pages.pixels.shape
        labels, shape = pages.labels, grid_of(H, W)
        side = (H / shape[0], W / shape[1])
        slots = by_cell(slot_map(labels, B, shape, side, LEGIBLE * side[0] / STRIDE))
        target, query_free = cells_under(labels.answers, shape, side), cells_under(labels.query_free, shape, side)
        return [small_copy(pages.levels), slots, labels.questions.long(), target, query_free]

    def forward(self, small: Tensor, slots: Tensor, questions: Tensor, target: Tensor, query_free: Tensor) -> Losses:
        """Losses of what `make_batch` made; `hit` is the share of questions whose best cell is right."""
        features = self.model.encode_page(small)
        logits = self.model.find(features, questions).float().flatten(2)
        target, has_target = target.flatten(2), target.flatten(2).any(2)
        expected, known = self.model.usual(features).float(), query_free.flatten(1).any(1)
        each = F.binary_cross_entropy_with_logits(expected, query_free.float(), reduction="none").mean((1, 2))
        return {
            "find": find_loss(logits, target, has_target),
            "query_free": weighted_mean(each, known),
            "dense": dense_loss(self.model.characters(features), slots),
            "hit": weighted_mean(target.gather(2, logits.argmax(2, keepdim=True))[..., 0], has_target).detach(),
        }


def find_loss(logits: Tensor, target: Tensor, has_target: Tensor) -> Tensor:
    """The loss of finding answers: logits and target [B, Q, n] over places, asked [B, Q] which questions have one.

    Softmax cross-entropy, for which any place of the answer will do, plus binary cross-entropy of each place, summed
    over the page and divided by the size of the answer.
    """
    hit = torch.logsumexp(logits.masked_fill(~target, -1e4), 2) - torch.logsumexp(logits, 2)
    each = F.binary_cross_entropy_with_logits(logits, target.float(), reduction="none").sum(2)
    each = each / target.sum(2).clamp(min=1)
    return ((each - hit) * has_target).sum() / has_target.sum().clamp(min=1)


def cells_under(boxes: Tensor, shape: tuple[int, int], side: tuple[float, float]) -> Tensor:
    """The cells, of so many pixels, that boxes [B, ..., n, 4] touch with more than their rim: bool [B, ..., h, w]."""
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0)
    rim = (0.15 * size).clamp(max=3)
    low, high = boxes[..., :2] + rim, boxes[..., 2:] - rim
    nonempty = (size > 0).all(-1)[..., None, None]
    masks = []
    for axis, count, span in ((1, shape[0], side[0]), (0, shape[1], side[1])):
        start = torch.arange(count, device=boxes.device) * span
        masks.append((low[..., axis, None] < start + span) & (high[..., axis, None] > start))
    return (masks[0][..., :, None] & masks[1][..., None, :] & nonempty).any(-3)
