"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: positions in three directions, a tower that runs on any set of blocks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus import positions
from homunculus.adapters.base import Encoded, Gridded, Picture, View
from homunculus.adapters.crops import in_blocks, pixels_of
from homunculus.errors import InputError


class Qwen(Gridded):
    """Tokens are blocks of merge x merge patches."""

    where = ("before", "after", "crops")
    guard = False  # the first of four rows of positions has no gaps

    def __init__(self, model: Any, processor: Any) -> None:
        super().__init__(model, processor)
        config, own = model.config.vision_config, processor.image_processor
        self.patch, self.merge = config.patch_size, config.spatial_merge_size
        if (own.patch_size, own.merge_size) != (self.patch, self.merge):
            raise InputError(
                f"the processor is that of another model: it cuts patches of {own.patch_size} pixels and merges "
                f"{own.merge_size}, the model wants {self.patch} and {self.merge}"
            )

    @property
    def cell(self) -> int:
        """Pixels of the side of a block."""
        return int(self.patch * self.merge)

    def view(self, image: Picture) -> Tensor:
        """The image in whole blocks, of as many pixels as the processor allows."""
        limits = self.processor.image_processor.size
        width, height = image.size if isinstance(image, Image.Image) else (image.shape[2], image.shape[1])
        size = in_blocks(width, height, self.cell, limits["shortest_edge"], limits["longest_edge"])
        if isinstance(image, Tensor):
            if size == (width, height):
                return image
            scaled = F.interpolate(image[None].float(), size[::-1], mode="bicubic", antialias=True)[0]
            return scaled.round().clamp(0, 255).to(torch.uint8)
        return pixels_of(image if size == image.size else image.resize(size, Image.Resampling.BICUBIC))

    def as_it_is(self) -> dict[str, Any]:
        """Images of a single block may stay so."""
        most = self.processor.image_processor.size["longest_edge"]
        return {"images_kwargs": {"size": {"shortest_edge": self.cell**2, "longest_edge": most}}}

    def encode(self, images: Sequence[Image.Image]) -> Encoded:
        """All tokens of images."""
        shown = self.processor.image_processor(images=list(images), return_tensors="pt").to(self.model.device)
        seen = self.base.get_image_features(shown["pixel_values"], shown["image_grid_thw"], return_dict=True)
        sizes = (shown["image_grid_thw"].prod(1) // self.merge**2).tolist()
        return self._encoded(seen, sizes)

    def _encoded(self, seen: Any, sizes: list[int]) -> Encoded:
        deeper = getattr(seen, "deepstack_features", None) or []
        parts = [x if isinstance(x, (tuple, list)) else x.split(sizes) for x in (seen.pooler_output, *deeper)]
        return Encoded(list(parts[0]), [list(layer) for layer in parts[1:]], seen)

    def output(self, seen: Encoded) -> Any:
        """Features split by image; those of deeper layers joined where the model wants them so."""
        output = copy.copy(seen.output)
        output.pooler_output = tuple(seen.features)
        if seen.deeper:
            output.deepstack_features = [
                tuple(layer) if self.takes_features else torch.cat(layer) for layer in seen.deeper
            ]
        return output

    def look(self, views: Sequence[View]) -> Encoded:
        """The tower on the chosen blocks of all images, each image by itself."""
        pixels = [self._patches(cells) for cells in self.cells(views)]
        places, sizes = [self._patch_places(view) for view in views], [view.count for view in views]
        lengths = torch.tensor(sizes, device=self.model.device) * self.merge**2
        at = torch.cat(places)
        how: dict[str, Any] = {
            "position_ids": at,
            "cu_seqlens": F.pad(lengths.cumsum(0), (1, 0)).int(),
        }
        frames = [(view.grid[0] * self.merge, view.grid[1] * self.merge) for view in views]
        how |= self._more(views, places, frames)
        grid = torch.tensor([[1, self.merge, self.merge * sum(sizes)]], device=self.model.device)
        seen = self.base.visual(
            torch.cat(pixels).to(self.base.visual.dtype), grid_thw=grid, return_dict=True, **how
        )  # the grid only says how many
        return self._encoded(seen, sizes)

    def _more(
        self, views: Sequence[View], places: Sequence[Tensor], frames: Sequence[tuple[int, int]]
    ) -> dict[str, Any]:
        """What else the tower wants to be told of blocks."""
        return {}

    def _patches(self, cells: Tensor) -> Tensor:
        """Cells [K, 3, cell, cell] as the patches of the tower, [K merge merge, 3 T p p]."""
        m, p, time = self.merge, self.patch, self.processor.image_processor.temporal_patch_size
        x = cells.view(len(cells), 3, m, p, m, p).permute(0, 2, 4, 1, 3, 5)  # [K, m, m, 3, p, p]
        return x[:, :, :, :, None].expand(-1, -1, -1, -1, time, -1, -1).reshape(len(cells) * m * m, -1)

    def _patch_places(self, view: View) -> Tensor:
        """Row and column of each patch of the chosen blocks, in patches of level 0: a coarse one lies in the middle."""
        selection = view.selection
        scale = torch.exp2(selection.levels[0].double())  # [K]
        corner = selection.boxes[0, :, :2].flip(1).double() / self.patch  # [K, 2] row, column
        step = torch.arange(self.merge, device=corner.device, dtype=torch.float64) + 0.5
        inner = torch.stack(torch.meshgrid(step, step, indexing="ij"), -1).flatten(0, 1)  # [m m, 2]
        at = corner[:, None] + inner * scale[:, None, None] - 0.5
        return at.flatten(0, 1).float()

    def places(self, view: View, whole: bool) -> tuple[Tensor, int]:
        """Time, row and column of the kept tokens, in blocks of level 0."""
        return positions.mrope_ids(view.selection, whole=whole)[:, 0].cpu(), max(view.grid)

    def finish(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Four rows of positions, the first of which counts what is there."""
        mask, at = inputs["attention_mask"], inputs["position_ids"]
        first = (mask.cumsum(-1) - 1).clamp(min=0).to(at.dtype)
        return inputs | {"position_ids": torch.cat((first[None], at if at.ndim == 3 else at.expand(3, -1, -1)))}


class Qwen2(Qwen):
    """Qwen2-VL."""


class Qwen25(Qwen):
    """Qwen2.5-VL: most layers of its tower see windows only; a window holds those chosen blocks that lie in it."""

    def _more(
        self, views: Sequence[View], places: Sequence[Tensor], frames: Sequence[tuple[int, int]]
    ) -> dict[str, Any]:
        span = self.base.visual.window_size // self.merge // self.patch  # blocks
        order, lengths, begin = [], [], 0
        for view in views:
            selection = view.selection
            row, column = (selection.boxes[0, :, :2].flip(1) // (self.cell * span)).unbind(1)
            window = row * (-(-view.grid[1] // span)) + column
            order.append(window.argsort(stable=True) + begin)
            lengths.append(window.unique(return_counts=True)[1])
            begin += len(window)
        ends = torch.cat(lengths).cumsum(0) * self.merge**2
        return {"window_index": torch.cat(order), "cu_window_seqlens": F.pad(ends, (1, 0)).int()}


class Qwen3(Qwen):
    """Qwen3-VL: learned positions beside the rotary ones, and features of deeper layers."""

    def _more(
        self, views: Sequence[View], places: Sequence[Tensor], frames: Sequence[tuple[int, int]]
    ) -> dict[str, Any]:
        side = self.base.visual.num_grid_per_side
        taps = [_taps(at, frame, side) for at, frame in zip(places, frames, strict=True)]
        return {"interp_indices": torch.cat([t[0] for t in taps]), "interp_weights": torch.cat([t[1] for t in taps])}


def _taps(at: Tensor, frame: tuple[int, int], side: int) -> tuple[Tensor, Tensor]:
    """Which four of a side x side table of positions make up that of places [n, 2] in a frame, and their weights."""
    found = []
    for axis, size in enumerate(frame):
        source = (at[:, axis] * (side - 1) / max(size - 1, 1)).clamp(0, side - 1)
        low = source.floor()
        share = source - low
        found.append((torch.stack((low, low + 1), 1).long().clamp(max=side - 1), torch.stack((1 - share, share), 1)))
    (rows, down), (columns, along) = found
    return (rows[:, :, None] * side + columns[:, None]).flatten(1), (down[:, :, None] * along[:, None]).flatten(1)
