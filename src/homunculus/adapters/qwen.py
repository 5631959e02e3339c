"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: positions in three directions, a tower that runs on any set of blocks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus import positions, tokens
from homunculus.adapters.base import Gridded, ImageFeatures, ImageInput, View, processor_errors
from homunculus.adapters.crops import pixels_of, resized_size
from homunculus.cells import Selection
from homunculus.errors import InputError
from homunculus.kernels.dispatch import use_triton
from homunculus.reader.selection_graphs import SelectionGraphs
from homunculus.runtime.graphs import Replay

if TYPE_CHECKING:
    from homunculus.kernels.gather import PatchLayout


class TowerOutput(NamedTuple):
    """A tower's features of all blocks [n, D], and its DeepStack features [layers, n, D]."""

    features: Tensor
    deepstack: Tensor


class Qwen(Gridded):
    """Tokens are blocks of merge x merge patches."""

    where = ("before", "after", "crops")
    pad_guard = False  # the first of four rows of positions has no gaps
    static_shapes = True  # whether the tower does the same for any choice of as many blocks

    def __init__(self, model: Any, processor: Any) -> None:
        super().__init__(model, processor)
        self._tower = Replay(self._run_tower)
        self._output_type: Any = None  # of the tower; known once it has run
        config, own = model.config.vision_config, processor.image_processor
        self.patch, self.merge = config.patch_size, config.spatial_merge_size
        if (own.patch_size, own.merge_size) != (self.patch, self.merge):
            raise InputError(
                f"the processor is that of another model: it cuts patches of {own.patch_size} pixels and merges "
                f"{own.merge_size}, the model wants {self.patch} and {self.merge}"
            )

    @cached_property
    def selection_graphs(self) -> SelectionGraphs:
        """How it looks at images of sizes that it has met before; blocks come as the tower reads them."""
        return SelectionGraphs(self._blocks)

    def _blocks(self, levels: Sequence[Tensor], chosen: Selection) -> Tensor:
        """Chosen blocks, as their patches [B, K, merge merge 3 T p p] where a kernel writes them so, else as pixels."""
        ready = tokens.by_kernel(levels, chosen, self._layout) if use_triton(levels[0]) else None
        return tokens.patches(levels, chosen) if ready is None else ready.view(*chosen.mask.shape, -1)

    @cached_property
    def _layout(self) -> PatchLayout:
        """How the tower reads blocks."""
        from homunculus.kernels.gather import PatchLayout

        values = torch.arange(256, dtype=torch.uint8, device=self.model.device).expand(3, 1, 256)
        copies = self.processor.image_processor.temporal_patch_size
        return PatchLayout.rounded(self.normalize(values)[:, 0], self.base.visual.dtype, self.merge, copies)

    @property
    def cell(self) -> int:
        """Pixels of the side of a block."""
        return int(self.patch * self.merge)

    def preprocess(self, image: ImageInput) -> Tensor:
        """The image in whole blocks, of as many pixels as the processor allows."""
        limits = self.processor.image_processor.size
        width, height = image.size if isinstance(image, Image.Image) else (image.shape[2], image.shape[1])
        size = resized_size(width, height, self.cell, limits["shortest_edge"], limits["longest_edge"])
        if isinstance(image, Tensor):
            if size == (width, height):
                return image
            scaled = F.interpolate(image[None].float(), size[::-1], mode="bicubic", antialias=True)[0]
            return scaled.round().clamp(0, 255).to(torch.uint8)
        return pixels_of(image if size == image.size else image.resize(size, Image.Resampling.BICUBIC))

    def processor_kwargs(self) -> dict[str, Any]:
        """Images of a single block may stay so."""
        longest = self.processor.image_processor.size["longest_edge"]
        return {"images_kwargs": {"size": {"shortest_edge": self.cell**2, "longest_edge": longest}}}

    def encode_images(self, images: Sequence[Image.Image]) -> ImageFeatures:
        """All tokens of images."""
        with processor_errors():
            inputs = self.processor.image_processor(images=list(images), return_tensors="pt").to(self.model.device)
        output = self.base.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
        sizes = (inputs["image_grid_thw"].prod(1) // self.merge**2).tolist()
        return self._encoded(output, sizes)

    def _encoded(self, output: Any, sizes: list[int]) -> ImageFeatures:
        deepstack = getattr(output, "deepstack_features", None) or []
        parts = [x if isinstance(x, (tuple, list)) else x.split(sizes) for x in (output.pooler_output, *deepstack)]
        return ImageFeatures(list(parts[0]), [list(layer) for layer in parts[1:]], output)

    def model_output(self, encoded: ImageFeatures) -> Any:
        """Features split by image; DeepStack features joined where the model wants them so."""
        output = copy.copy(encoded.output)
        output.pooler_output = tuple(encoded.features)
        if encoded.deepstack:
            output.deepstack_features = [
                tuple(layer) if self.takes_features else torch.cat(layer) for layer in encoded.deepstack
            ]
        return output

    def encode_cells(self, views: Sequence[View]) -> ImageFeatures:
        """The tower on the chosen blocks of all images, each image by itself."""
        cells = self.cell_pixels(views)
        if len({part.dtype for part in cells}) > 1:  # some are ready, some are not
            cells = [self._patches(part).view(len(part), -1).to(self.base.visual.dtype) for part in cells]
        parts = [cells, *(self.per_view(views, part) for part in (_boxes, _levels))]
        sizes, grids = [view.count for view in views], torch.tensor([view.grid for view in views], dtype=torch.float32)
        parts.append(list((grids * self.merge).to(parts[0][0].device, non_blocking=True)))
        if self.static_shapes and len(set(sizes)) == 1:  # all in one shape, so that it can be captured
            features, deepstack = self._tower(*(torch.stack(part) for part in parts))
            output: Any = self._output_type(pooler_output=features)
            if len(deepstack):
                output.deepstack_features = list(deepstack)
        else:
            ends = F.pad(torch.tensor(sizes).cumsum(0) * self.merge**2, (1, 0)).int()
            each = [self._tower_inputs(*(part[None] for part in one)) for one in zip(*parts, strict=True)]
            joined = (torch.cat(part) for part in zip(*each, strict=True))
            output = self._call_tower(*joined, ends=ends, **self.windows(views))
        return self._encoded(output, sizes)

    def _run_tower(self, cells: Tensor, boxes: Tensor, levels: Tensor, frames: Tensor) -> TowerOutput:
        """The tower on images of as many blocks each, see `_tower_inputs`."""
        ends = torch.arange(len(cells) + 1).int() * (cells.shape[1] * self.merge**2)
        output = self._call_tower(*self._tower_inputs(cells, boxes, levels, frames), ends=ends)
        self._output_type = type(output)
        deepstack = getattr(output, "deepstack_features", None) or []
        none = output.pooler_output.new_zeros(0, *output.pooler_output.shape)
        return TowerOutput(output.pooler_output, torch.stack(list(deepstack)) if deepstack else none)

    def _call_tower(
        self, pixels: Tensor, position_ids: Tensor, frame: Tensor, *, ends: Tensor, **windows: Tensor
    ) -> Any:
        """The model's own tower, given what it otherwise works out from the sizes of images.

        Where each image ends is on the CPU, if its attention can do with that: nothing has to be waited for.
        """
        tower = self.base.visual
        flash = "flash" in str(tower.config._attn_implementation)
        how = windows | self._interpolation(position_ids, frame)
        how |= {"position_ids": position_ids, "cu_seqlens": ends.to(position_ids.device) if flash else ends}
        grid = torch.tensor([[1, self.merge, len(pixels) // self.merge]])  # only says how many
        return tower(pixels.to(tower.dtype), grid_thw=grid, return_dict=True, **how)

    def windows(self, views: Sequence[View]) -> dict[str, Tensor]:
        """Which blocks attend to each other in most layers of the tower; empty where all do."""
        return {}

    def _interpolation(self, position_ids: Tensor, frame: Tensor) -> dict[str, Tensor]:
        """Learned positions of patches at position_ids [n, 2] of images of so many rows and columns [n, 2]."""
        return {}

    def _tower_inputs(
        self, cells: Tensor, boxes: Tensor, levels: Tensor, frames: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Patches of all images, one image after the other, with their positions.

        Shape:
            cells [B, K, ...] as pixels or as patches, boxes [B, K, 4] and levels [B, K] of the chosen blocks, rows and
            columns of patches of each image [B, 2] -> patches [n, 3 T p p], position_ids [n, 2], rows and columns
            [n, 2].
        """
        position_ids = self._patch_positions(boxes, levels).flatten(1, 2)  # [B, K merge merge, 2]
        frame = frames[:, None].expand_as(position_ids)
        return self._patches(cells.flatten(0, 1)), position_ids.flatten(0, 1), frame.flatten(0, 1)

    def _patches(self, cells: Tensor) -> Tensor:
        """Pixels of cells uint8 [K, 3, cell, cell] as the patches of the tower, [K merge merge, 3 T p p]."""
        m, p, time = self.merge, self.patch, self.processor.image_processor.temporal_patch_size
        if cells.dtype != torch.uint8:  # as `_blocks` made them
            return cells.reshape(len(cells) * m * m, -1)
        x = self.normalize(cells).view(len(cells), 3, m, p, m, p).permute(0, 2, 4, 1, 3, 5)  # [K, m, m, 3, p, p]
        return x[:, :, :, :, None].expand(-1, -1, -1, -1, time, -1, -1).reshape(len(cells) * m * m, -1)

    def _patch_positions(self, boxes: Tensor, levels: Tensor) -> Tensor:
        """Row and column of each patch of the chosen blocks, in patches of level 0: [B, K, merge merge, 2].

        Those of a coarse block lie in the middle of what they cover.
        """
        scale = torch.exp2(levels.double())  # [B, K]
        corner = boxes[..., :2].flip(2).double() / self.patch  # [B, K, 2] row, column
        step = torch.arange(self.merge, device=corner.device, dtype=torch.float64) + 0.5
        inner = torch.stack(torch.meshgrid(step, step, indexing="ij"), -1).flatten(0, 1)  # [m m, 2]
        return (corner[:, :, None] + inner * scale[..., None, None] - 0.5).float()

    def position_ids(self, view: View, integers: bool) -> Tensor:
        """Time, row and column of the chosen blocks, in blocks of level 0."""
        return positions.mrope_ids(view.batch, whole=integers).movedim(0, 2)

    def position_count(self, view: View) -> int:
        """As many as there are rows, or columns."""
        return max(view.grid)

    def finish(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Four rows of positions, the first of which counts what is there."""
        mask, position_ids = inputs["attention_mask"], inputs["position_ids"]
        first = (mask.cumsum(-1) - 1).clamp(min=0).to(position_ids.dtype)
        axes = position_ids if position_ids.ndim == 3 else position_ids.expand(3, -1, -1)
        return inputs | {"position_ids": torch.cat((first[None], axes))}


class Qwen2(Qwen):
    """Qwen2-VL."""


class Qwen25(Qwen):
    """Qwen2.5-VL: most layers of its tower see windows only; a window holds those chosen blocks that lie in it."""

    static_shapes = False  # how many blocks a window has depends on the look

    def windows(self, views: Sequence[View]) -> dict[str, Tensor]:
        """The chosen blocks window by window."""
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
    """Qwen3-VL: learned positions beside the rotary ones, and DeepStack features."""

    def _interpolation(self, position_ids: Tensor, frame: Tensor) -> dict[str, Tensor]:
        """Which four of the tower's table of positions make up that of each patch, and their weights."""
        side = self.base.visual.num_grid_per_side
        source = (position_ids * (side - 1) / (frame - 1).clamp(min=1)).clamp(0, side - 1)
        low = source.floor()
        near = torch.stack((low, low + 1), -1).long().clamp(max=side - 1)  # [n, row and column, 2]
        share = torch.stack((1 - (source - low), source - low), -1)
        indices = near[:, 0, :, None] * side + near[:, 1, None]
        return {
            "interp_indices": indices.flatten(1),
            "interp_weights": (share[:, 0, :, None] * share[:, 1, None]).flatten(1),
        }


def _boxes(view: View) -> Tensor:
    return view.batch.boxes


def _levels(view: View) -> Tensor:
    return view.batch.levels
