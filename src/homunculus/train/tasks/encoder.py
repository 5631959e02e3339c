"""What the encoder learns: dense characters of the cells of a random selection."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor, nn

from homunculus import positions, tokens
from homunculus.cells import CellTree
from homunculus.reader.encoder import Encoder
from homunculus.train.pages import Labels, PageBatch
from homunculus.train.tasks.base import Losses, PageTask
from homunculus.train.tasks.selections import padded, random_budget, random_selection
from homunculus.train.tasks.slots import CELL, dense_loss, slots_of

TOKENS = 400  # about how many tokens a page is given in training


@cache
def tree_of(height: int, width: int, device: torch.device) -> CellTree:
    """The tree of a canvas, made once."""
    return CellTree(height, width, CELL).to(device)


def fixations(labels: Labels, pages: int, size: tuple[int, int]) -> Tensor:
    """A random point near some letter of each page, or near its middle where no letter is known. [B, 2]"""
    side = torch.tensor(size[::-1], device=labels.letters.device)
    shown = labels.letters[((labels.letters[:, 2:4] >= 0) & (labels.letters[:, 2:4] < side)).all(1)]
    edges = torch.searchsorted(shown[:, 0].contiguous(), torch.arange(pages + 1.0, device=side.device))
    count = edges.diff()
    pick = edges[:-1] + (torch.rand(pages, device=side.device) * count).long()
    places = torch.cat((shown[:, 2:4], side[None] / 2))[torch.where(count > 0, pick, -1)]
    return torch.minimum((places + 40 * torch.randn_like(places)).clamp(min=0), side - 1.0)


class EncoderTask(PageTask):
    """The loss of dense characters of every selected cell."""

    model: Encoder

    def layers_to_compile(self) -> list[nn.Module]:
        """The transformer's blocks."""
        return list(self.model.blocks)

    @torch.no_grad()
    def make_batch(self, pages: PageBatch) -> list[Tensor]:
        """Cells of each page by a random allocator: patches, coordinates and slots."""
        B, _, H, W = pages.pixels.shape
        tree = tree_of(H, W, pages.pixels.device)
        budget = random_budget(self.rng, math.prod(tree.shapes[0]))
        rows = max(1, min(B, B * TOKENS // budget))  # fewer pages where the budget is large
        labels = pages.labels.first(rows)
        selection = padded(random_selection(tree, fixations(labels, rows, (H, W)), budget, self.rng), budget)
        patches = tokens.patches([level[:rows] for level in pages.levels], selection)
        slots = slots_of(labels, selection, (H, W), tree.levels)
        return [patches, positions.coordinates(selection), slots]

    def forward(self, patches: Tensor, coordinates: Tensor, slots: Tensor) -> Losses:
        """The loss of what `make_batch` made."""
        return {"dense": dense_loss(self.model.characters(self.model(patches, coordinates)), slots)}
