"""Models that show an image as tiles, or by a fixed number of tokens: LLaVA-NeXT and OneVision, InternVL, SmolVLM and
Idefics3, Gemma 3.

Their tower wants whole tiles, so tokens are chosen after it. Those of the tiles and those of the small copy of the
image compete by relevance. That of a large place is never below that of any place in it, so the small copy comes first
and tiles where it pays; tokens that only end a row go unless all stay.
"""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor

from homunculus.adapters.base import EncodedPrompt, Family, ImageFeatures, VLMRequest, as_pil
from homunculus.adapters.crops import pixels_of
from homunculus.adapters.layout import ImageSpan
from homunculus.errors import InputError
from homunculus.eye import Eye

LARGEST = 4_000_000  # pixels of an image that relevance is measured on


class TokenGrid(NamedTuple):
    """Tokens in rows and columns over a box of an image, from 0 to 1; rows may end in a newline token."""

    box: tuple[float, float, float, float]
    rows: int
    columns: int
    newline: bool = False

    @property
    def size(self) -> int:
        """How many tokens."""
        return self.rows * (self.columns + self.newline)

    def boxes(self) -> Tensor:
        """The part of the image of each token [n, 4]; nan for newlines."""
        left, top, right, bottom = self.box
        x = left + (right - left) * torch.arange(self.columns + 1, dtype=torch.float64) / self.columns
        y = top + (bottom - top) * torch.arange(self.rows + 1, dtype=torch.float64) / self.rows
        grid = torch.stack(
            (*torch.meshgrid(y[:-1], x[:-1], indexing="ij"), *torch.meshgrid(y[1:], x[1:], indexing="ij"))
        )
        boxes = grid[[1, 0, 3, 2]].permute(1, 2, 0)  # [rows, columns, 4]
        if self.newline:
            boxes = torch.cat((boxes, torch.full((self.rows, 1, 4), torch.nan, dtype=boxes.dtype)), 1)
        return boxes.flatten(0, 1)


WHOLE = (0.0, 0.0, 1.0, 1.0)


class Tiled(Family):
    """Tokens are chosen from the tiles' grids, by relevance alone."""

    rules = ("grid",)  # there are no other tokens than those of the tiles
    separate = False  # whether text stands between the tiles

    @property
    def cell(self) -> int:
        """Cells that relevance is measured on, not those of the model."""
        return 32

    @abstractmethod
    def grids(self, image: Image.Image, count: int) -> list[TokenGrid]:
        """The grids of tokens that an image of so many tokens consists of."""

    def counts(self, input_ids: Sequence[Sequence[int]], images: Sequence[Sequence[Image.Image]]) -> list[int]:
        """Tokens of each image: as many as stand together in the text."""
        return [sum(1 for _ in run) for ids in input_ids for token, run in groupby(ids) if token == self.image_token]

    def encode_request(self, request: VLMRequest) -> EncodedPrompt:
        """All is made as the processor makes it; then the best tokens of each image are kept."""
        images = [[as_pil(image) for image in group] for group in request.images]
        own = self.processor(text=request.texts, images=images, return_tensors="pt", padding=True)
        texts = zip(own["input_ids"], own["attention_mask"], strict=True)
        input_ids = [ids[mask.bool()].tolist() for ids, mask in texts]
        counts = self.counts(input_ids, images)
        pairs = [(as_pil(image), question) for image, question in request.pairs]
        if len(counts) != len(pairs):
            raise InputError(f"there are {len(pairs)} images but placeholders for {len(counts)} in the texts")
        encoded = self._encoded(own.to(self.model.device), counts)
        spans, kept = [], []
        for (image, question), count in zip(pairs, counts, strict=True):
            grids = self.grids(image, count)
            if sum(grid.size for grid in grids) != count:
                raise InputError(f"an image of {image.size} has {count} tokens, which is not understood")
            keep = self._choose(image, question, grids, request.eye)
            kept.append(keep.to(self.model.device))
            begin = 0
            for grid in grids if self.separate else [TokenGrid(WHOLE, 1, count)]:
                here = keep[(keep >= begin) & (keep < begin + grid.size)] - begin
                spans.append(ImageSpan(grid.size, grid.size, here))
                begin += grid.size
        return EncodedPrompt(input_ids, spans, encoded.select(lambda i, x: x[kept[i]]))

    def _choose(self, image: Image.Image, question: str, grids: Sequence[TokenGrid], eye: Eye) -> Tensor:
        """The tokens of an image that stay, in their order."""
        count = sum(grid.size for grid in grids)
        if eye.budget >= count:
            return torch.arange(count)
        scale = min(1.0, (LARGEST / (image.width * image.height)) ** 0.5)
        small = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
        scene = eye.scene(pixels_of(small).to(self.model.device))
        relevance = eye.weigh(scene, [question])[0]
        boxes = torch.cat([grid.boxes() for grid in grids]) * torch.tensor(
            [small.width, small.height, small.width, small.height]
        )
        newline = boxes.isnan().any(1)
        size = (boxes[:, 2:] - boxes[:, :2]).amax(1).nan_to_num(1.0)
        level = (size / scene.tree.cell).log2().ceil().clamp(0, scene.tree.levels - 1).long()
        middle = ((boxes[:, :2] + boxes[:, 2:]) / 2).nan_to_num(0.0)[None].to(relevance.device)
        cells = torch.stack([scene.tree.locate(middle, l)[0] for l in range(scene.tree.levels)])  # [L, n]
        score = relevance[cells.gather(0, level[None].to(cells.device))[0]].double().cpu()
        score = torch.where(newline, -torch.inf, score)
        best = sorted(range(count), key=lambda i: (-float(score[i]), -float(size[i]), i))[: eye.budget]
        return torch.tensor(sorted(best))

    def _encoded(self, own: Any, counts: Sequence[int]) -> ImageFeatures:
        """Features of each image by the model's own way."""
        known = inspect.signature(self.base.get_image_features).parameters
        how = {name: own[name] for name in known if name in own and name not in ("input_ids", "attention_mask")}
        for name in ("vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio"):
            if name in known and getattr(self.model.config, name, None) is not None:
                how[name] = getattr(self.model.config, name)
        output = self.base.get_image_features(**how, return_dict=True)
        parts = output.pooler_output
        rows = parts.flatten(0, -2) if torch.is_tensor(parts) else torch.cat([x.flatten(0, -2) for x in parts])
        return ImageFeatures(list(rows.split(list(counts))), [], output)

    def model_output(self, encoded: ImageFeatures) -> Any:
        """Features as the model had them, a list or one tensor."""
        output = copy.copy(encoded.output)
        joined = torch.cat(encoded.features)
        output.pooler_output = joined[None] if torch.is_tensor(output.pooler_output) else [joined]
        return output


class LlavaNext(Tiled):
    """LLaVA-NeXT and OneVision: the small copy, then tiles joined to one grid, each row of which has an end."""

    def grids(self, image: Image.Image, count: int) -> list[TokenGrid]:
        """The grid is the one whose sides go with those of the image."""
        config = self.model.config.vision_config
        side = config.image_size // config.patch_size
        first, rest = TokenGrid(WHOLE, side, side), count - side * side
        if rest <= 1:
            return [first] + [TokenGrid(WHOLE, 1, 0, True)] * rest
        aspect = image.width / image.height
        fits = [(rows, rest // rows - 1) for rows in range(1, rest // 2 + 1) if rest % rows == 0]
        rows, columns = min(fits, key=lambda fit: abs(_log(fit[1] / fit[0]) - _log(aspect)))
        return [first, TokenGrid(WHOLE, rows, columns, True)]


class InternVL(Tiled):
    """InternVL: tiles in rows, then the small copy if there are several."""

    def grids(self, image: Image.Image, count: int) -> list[TokenGrid]:
        """The tiles stand as goes best with the sides of the image."""
        size = int(self.processor.image_seq_length)
        side, tiles = round(size**0.5), count // size
        if tiles == 1:
            return [TokenGrid(WHOLE, side, side)]
        aspect, several = image.width / image.height, tiles - 1
        fits = [(several // columns, columns) for columns in range(1, several + 1) if several % columns == 0]
        rows, columns = min(fits, key=lambda fit: abs(fit[1] / fit[0] - aspect))
        return [*_tiles(rows, columns, side), TokenGrid(WHOLE, side, side)]


class Idefics3(Tiled):
    """Idefics3 and SmolVLM: the same, but each tile is written apart, with its row and column before it."""

    separate = True

    def counts(self, input_ids: Sequence[Sequence[int]], images: Sequence[Sequence[Image.Image]]) -> list[int]:
        """As many tiles as the image processor says."""
        size = int(self.processor.image_seq_len)
        return [max(1, self._tiling(image)[0]) * size for group in images for image in group]

    def _tiling(self, image: Image.Image) -> tuple[int, int, int]:
        tiles, rows, columns = self.processor.image_processor.get_number_of_image_patches(image.height, image.width, {})
        return int(tiles), int(rows), int(columns)

    def grids(self, image: Image.Image, count: int) -> list[TokenGrid]:
        """Tiles, then the whole."""
        side = round(int(self.processor.image_seq_len) ** 0.5)
        _, rows, columns = self._tiling(image)
        return [*_tiles(rows, columns, side), TokenGrid(WHOLE, side, side)]


class Gemma3(Tiled):
    """Gemma 3: a fixed grid; tokens of one image see each other, which their types tell."""

    def grids(self, image: Image.Image, count: int) -> list[TokenGrid]:
        """One grid."""
        side = round(count**0.5)
        return [TokenGrid(WHOLE, side, side)]

    def finish(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """With the types of tokens."""
        return inputs | {"token_type_ids": (inputs["input_ids"] == self.image_token).long()}


def _tiles(rows: int, columns: int, side: int) -> list[TokenGrid]:
    return [
        TokenGrid((c / columns, r / rows, (c + 1) / columns, (r + 1) / rows), side, side)
        for r in range(rows)
        for c in range(columns)
    ]


def _log(x: float) -> float:
    return float(torch.tensor(max(x, 1e-6)).log())
