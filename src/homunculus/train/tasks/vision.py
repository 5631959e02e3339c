"""What the vision encoder learns: the teacher's features of every chosen cell, of the image, and its saliency."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus import positions, tokens
from homunculus.cells import CellTree, Selection
from homunculus.pyramid import gaussian
from homunculus.reader.vision import CELL, VisionEncoder
from homunculus.train.config import DataSources, Recipe
from homunculus.train.scans.photos import Photos
from homunculus.train.tasks.base import Losses, Rank, Task
from homunculus.train.tasks.selections import padded, random_selection
from homunculus.train.teacher import PATCH, Teacher, load_teacher

BUDGETS = {64: 2, 150: 3, 273: 4}
PER_CELL = 2 * PATCH  # pixels a side that the teacher sees of what is a cell of level 0


class PhotoSource:
    """Crops of photographs, on one device, and the teacher."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        folders = [Path(folder) for folder in sources.images]
        self.device = device
        self.photos, self.val_photos = (Photos.read(folders, device, val) for val in (False, True))
        self.teacher = load_teacher(Path(sources.teacher) if sources.teacher else None)
        self.teacher = self.teacher.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32)

    def train_batches(
        self, task: Task, recipe: Recipe, step: int, rank: Rank, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """Batches without end."""
        rng = random.Random(f"{recipe.seed}/{step}/{rank.rank}")
        while True:
            batch = self._batch(cast(VisionTask, task), self.photos, recipe, rng)
            yield batch, len(batch[0])

    def val_batches(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """The validation photographs as they are, cut by random rules."""
        rng = random.Random(recipe.seed)
        for canvas in recipe.canvases:
            rows = torch.arange(min(canvas.batch, len(self.val_photos)), device=self.device)
            crops = self.val_photos.crops(rows, (canvas.height, canvas.width), torch.Generator(), plain=True)
            yield cast(VisionTask, task).make_batch(crops, self.teacher, rng)

    def _batch(self, task: VisionTask, photos: Photos, recipe: Recipe, rng: random.Random) -> list[Tensor]:
        canvas = rng.choices(recipe.canvases, [canvas.weight for canvas in recipe.canvases])[0]
        generator = torch.Generator().manual_seed(rng.getrandbits(48))
        rows = torch.randint(len(photos), (canvas.batch,), generator=generator).to(self.device)
        crops = photos.crops(rows, (canvas.height, canvas.width), generator)
        return task.make_batch(crops, self.teacher, rng)


@cache
def tree_of(height: int, width: int, device: torch.device) -> CellTree:
    """The tree of a canvas, made once."""
    return CellTree(height, width, CELL).to(device)


class VisionTask(Task):
    """Cosine distances to the teacher's features of cells and images, cross-entropy with its saliency."""

    model: VisionEncoder

    def __init__(self, model: VisionEncoder, seed: int = 0) -> None:
        super().__init__(model, seed)
        self.header = {"teacher": "DINOv2 ViT-S/14"}

    def layers_to_compile(self) -> list[nn.Module]:
        """The transformer's blocks."""
        return list(self.model.blocks)

    @torch.no_grad()
    def make_batch(self, crops: Tensor, teacher: Teacher, rng: random.Random) -> list[Tensor]:
        """Cells of crops uint8 [B, 3, H, W] by a random rule, and what the teacher says of them."""
        B, _, H, W = crops.shape
        tree = tree_of(H, W, crops.device)
        budget = rng.choices(list(BUDGETS), list(BUDGETS.values()))[0]
        fixation = torch.rand(B, 2, device=crops.device) * torch.tensor([W, H], device=crops.device)
        selection = padded(random_selection(tree, fixation, budget, rng), budget)
        patches = tokens.patches(gaussian(crops, tree.levels), selection)
        seen = F.interpolate(
            crops.float(), [side * PER_CELL // CELL for side in (H, W)], mode="bicubic", antialias=True
        )
        features, image, saliency = teacher(seen.clamp(0, 255))
        targets = over_cells(features.float(), selection), image.float(), over_cells(saliency.float(), selection)
        return [patches, positions.coordinates(selection), selection.sizes, *targets]

    def forward(
        self, patches: Tensor, places: Tensor, sizes: Tensor, features: Tensor, image: Tensor, saliency: Tensor
    ) -> Losses:
        """The losses of what `make_batch` made."""
        cells, whole = self.model(patches, places, sizes)
        shown = self.model.saliency(cells)[..., 0].float()
        return {
            "features": 1 - F.cosine_similarity(cells.float(), features, -1).mean(),
            "image": 1 - F.cosine_similarity(whole.float(), image, -1).mean(),
            "saliency": F.binary_cross_entropy_with_logits(shown, saliency[..., 0]),
        }


def over_cells(map: Tensor, selection: Selection) -> Tensor:
    """Means of maps [B, C, h, w] of whole images over their cells: [B, K, C]."""
    C, h, w = map.shape[1:]
    table = F.pad(map.double().cumsum(2).cumsum(3), (1, 0, 1, 0))  # [B, C, h + 1, w + 1]
    scale = torch.tensor([w, h, w, h], device=map.device) / selection.sizes.flip(1).repeat(1, 2)[:, None]
    x0, y0, x1, y1 = (selection.boxes.double() * scale).round().long().unbind(2)  # [B, K] each
    x1, y1 = (torch.maximum(end, begin + 1).clamp(max=side) for end, begin, side in ((x1, x0, w), (y1, y0, h)))
    flat = table.flatten(2)

    def corner(y: Tensor, x: Tensor) -> Tensor:
        return flat.gather(2, (y * (w + 1) + x)[:, None].expand(-1, C, -1))

    total = corner(y1, x1) - corner(y0, x1) - corner(y1, x0) + corner(y0, x0)
    return (total / ((y1 - y0) * (x1 - x0))[:, None]).transpose(1, 2).float()
