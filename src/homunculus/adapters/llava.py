"""LLaVA-1.5: one square image, positions in one direction, a CLIP tower that can be inputs some patches only."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus.adapters.base import Gridded, ImageFeatures, ImageInput, View, as_pil
from homunculus.errors import InputError


class Llava(Gridded):
    """Tokens are patches of the tower."""

    where = ("before", "after")

    @property
    def cell(self) -> int:
        """Pixels of the side of a patch."""
        return int(self.model.config.vision_config.patch_size)

    def preprocess(self, image: ImageInput) -> Tensor:
        """The image scaled and cut to the square that the tower takes."""
        inputs = self.processor.image_processor(
            images=[as_pil(image)], do_rescale=False, do_normalize=False, return_tensors="pt"
        )
        return inputs["pixel_values"][0].round().clamp(0, 255).to(torch.uint8)

    def encode_images(self, images: Sequence[Image.Image]) -> ImageFeatures:
        """All tokens of images."""
        inputs = self.processor.image_processor(images=list(images), return_tensors="pt").to(self.model.device)
        return self._features(inputs["pixel_values"].to(self.model.dtype))

    def _features(self, pixels: Tensor) -> ImageFeatures:
        config = self.model.config
        output = self.base.get_image_features(
            pixels,
            vision_feature_layer=config.vision_feature_layer,
            vision_feature_select_strategy=config.vision_feature_select_strategy,
            return_dict=True,
        )
        return ImageFeatures(list(output.pooler_output), [], output)

    def encode_cells(self, views: Sequence[View]) -> ImageFeatures:
        """The tower on the chosen patches: what its first layer makes of the image is replaced on the way."""
        embeddings = self._embeddings()
        rows = []
        for view, pixels in zip(views, self.cell_pixels(views), strict=True):
            cells = self.normalize(pixels).to(self.model.dtype)
            patches = embeddings.patch_embedding(cells)[:, :, 0, 0]  # [K, width]
            table = embeddings.position_embedding.weight
            first = embeddings.class_embedding[None] + table[:1]
            rows.append(torch.cat((first, patches + self._positions(table[1:], view))))
        if len({len(row) for row in rows}) > 1:
            raise InputError("all images of a batch must have the same number of tokens before the tower")
        chosen = torch.stack(rows)
        handle = embeddings.register_forward_hook(lambda *_: chosen)
        try:
            size = embeddings.image_size
            return self._features(torch.zeros(len(views), 3, size, size, device=chosen.device, dtype=self.model.dtype))
        finally:
            handle.remove()

    def _embeddings(self) -> Any:
        tower = self.base.vision_tower
        return tower.embeddings if hasattr(tower, "embeddings") else tower.vision_model.embeddings

    def _positions(self, table: Tensor, view: View) -> Tensor:
        """Learned positions [N, width] at the middle of the chosen cells: [K, width]; those of level 0 as they are."""
        selection = view.selection
        side = round(len(table) ** 0.5)
        at = (selection.centre[0] / selection.cell).to(table) * 2 / side - 1  # [K, 2] from -1 to 1
        image = table.T.view(1, -1, side, side)
        found = F.grid_sample(image, at[None, None], padding_mode="border", align_corners=False)[0, :, 0].T
        column, row = (selection.boxes[0, :, :2] // selection.cell).unbind(1)
        exact = table[row * side + column]
        return torch.where((selection.levels[0] == 0)[:, None], exact, found)

    def position_ids(self, view: View, integers: bool) -> Tensor:
        """Where the kept patches stood in the row of all of them; a coarse one where its middle lies."""
        rows, columns = view.grid
        column, row = (view.batch.centre / view.batch.cell - 1e-6).long().unbind(2)
        return row.clamp(max=rows - 1) * columns + column.clamp(max=columns - 1)

    def position_count(self, view: View) -> int:
        """All patches in one row."""
        return view.grid[0] * view.grid[1]

    def model_output(self, encoded: ImageFeatures) -> Any:
        """Features as a list."""
        output = copy.copy(encoded.output)
        output.pooler_output = list(encoded.features)
        return output
