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

from homunculus.adapters.base import Encoded, Family, Shown, Wish, as_picture
from homunculus.adapters.crops import pixels_of
from homunculus.adapters.layout import Unit
from homunculus.errors import InputError
from homunculus.eye import Eye

LARGEST = 4_000_000  # pixels of an image that relevance is measured on


class Piece(NamedTuple):
    """Tokens in rows and columns over a part of an image, left to bottom from 0 to 1; rows may have an end."""

    box: tuple[float, float, float, float]
    rows: int
    columns: int
    ended: bool = False

    @property
    def size(self) -> int:
        """How many tokens."""
        return self.rows * (self.columns + self.ended)

    def boxes(self) -> Tensor:
        """The part of the image of each token [n, 4]; nan for ends."""
        left, top, right, bottom = self.box
        x = left + (right - left) * torch.arange(self.columns + 1, dtype=torch.float64) / self.columns
        y = top + (bottom - top) * torch.arange(self.rows + 1, dtype=torch.float64) / self.rows
        grid = torch.stack(
            (*torch.meshgrid(y[:-1], x[:-1], indexing="ij"), *torch.meshgrid(y[1:], x[1:], indexing="ij"))
        )
        boxes = grid[[1, 0, 3, 2]].permute(1, 2, 0)  # [rows, columns, 4]
        if self.ended:
            boxes = torch.cat((boxes, torch.full((self.rows, 1, 4), torch.nan, dtype=boxes.dtype)), 1)
        return boxes.flatten(0, 1)


WHOLE = (0.0, 0.0, 1.0, 1.0)


class Tiled(Family):
    """Tokens are chosen from pieces, by relevance alone."""

    rules = ("grid",)  # there are no other tokens than those of the tiles
    apart = False  # whether pieces are written apart from each other in the text

    @property
    def cell(self) -> int:
        """Cells that relevance is measured on, not those of the model."""
        return 32

    @abstractmethod
    def pieces(self, image: Image.Image, count: int) -> list[Piece]:
        """What an image of so many tokens is shown as."""

    def counts(self, rows: Sequence[Sequence[int]], pictures: Sequence[Sequence[Image.Image]]) -> list[int]:
        """Tokens of each image: as many as stand together in the text."""
        return [sum(1 for _ in run) for row in rows for token, run in groupby(row) if token == self.image_token]

    def show(self, wish: Wish) -> Shown:
        """All is made as the processor makes it; then the best tokens of each picture are kept."""
        pictures = [[as_picture(picture) for picture in group] for group in wish.pictures]
        own = self.processor(text=wish.texts, images=pictures, return_tensors="pt", padding=True)
        rows = [ids[mask.bool()].tolist() for ids, mask in zip(own["input_ids"], own["attention_mask"], strict=True)]
        each = [(as_picture(picture), asked) for picture, asked in wish.each]
        counts = self.counts(rows, pictures)
        if len(counts) != len(each):
            raise InputError(f"there are {len(each)} images but placeholders for {len(counts)} in the texts")
        seen = self._encoded(own.to(self.model.device), counts)
        units, kept = [], []
        for (picture, question), count in zip(each, counts, strict=True):
            pieces = self.pieces(picture, count)
            if sum(piece.size for piece in pieces) != count:
                raise InputError(f"an image of {picture.size} has {count} tokens, which is not understood")
            keep = self._kept(picture, question, pieces, wish.eye)
            kept.append(keep.to(self.model.device))
            begin = 0
            for piece in pieces if self.apart else [Piece(WHOLE, 1, count)]:
                here = keep[(keep >= begin) & (keep < begin + piece.size)] - begin
                units.append(Unit(piece.size, piece.size, here))
                begin += piece.size
        return Shown(rows, units, seen.taken(lambda i, x: x[kept[i]]))

    def _kept(self, picture: Image.Image, question: str, pieces: Sequence[Piece], eye: Eye) -> Tensor:
        """The tokens of an image that stay, in their order."""
        count = sum(piece.size for piece in pieces)
        if eye.budget >= count:
            return torch.arange(count)
        scale = min(1.0, (LARGEST / (picture.width * picture.height)) ** 0.5)
        small = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))))
        scene = eye.scene(pixels_of(small).to(self.model.device))
        relevance = eye.weigh(scene, [question])[0]
        boxes = torch.cat([piece.boxes() for piece in pieces]) * torch.tensor(
            [small.width, small.height, small.width, small.height]
        )
        there = ~boxes.isnan().any(1)
        size = (boxes[:, 2:] - boxes[:, :2]).amax(1).nan_to_num(1.0)
        level = (size / scene.tree.cell).log2().ceil().clamp(0, scene.tree.levels - 1).long()
        middle = ((boxes[:, :2] + boxes[:, 2:]) / 2).nan_to_num(0.0)[None].to(relevance.device)
        places = torch.stack([scene.tree.locate(middle, l)[0] for l in range(scene.tree.levels)])
        score = relevance[places.gather(0, level[None].to(places.device))[0]].double().cpu()
        score = torch.where(there, score, -torch.inf)
        order = torch.arange(count)
        best = sorted(order.tolist(), key=lambda i: (-float(score[i]), -float(size[i]), i))[: eye.budget]
        return torch.tensor(sorted(best))

    def _encoded(self, own: Any, counts: Sequence[int]) -> Encoded:
        """Features of each image by the model's own way."""
        known = inspect.signature(self.base.get_image_features).parameters
        how = {name: own[name] for name in known if name in own and name not in ("input_ids", "attention_mask")}
        for name in ("vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio"):
            if name in known and getattr(self.model.config, name, None) is not None:
                how[name] = getattr(self.model.config, name)
        seen = self.base.get_image_features(**how, return_dict=True)
        parts = seen.pooler_output
        rows = parts.flatten(0, -2) if torch.is_tensor(parts) else torch.cat([x.flatten(0, -2) for x in parts])
        return Encoded(list(rows.split(list(counts))), [], seen)

    def output(self, seen: Encoded) -> Any:
        """Features as the model had them, a list or one tensor."""
        output = copy.copy(seen.output)
        joined = torch.cat(seen.features)
        output.pooler_output = joined[None] if torch.is_tensor(seen.output.pooler_output) else [joined]
        return output


class LlavaNext(Tiled):
    """LLaVA-NeXT and OneVision: the small copy, then tiles joined to one grid, each row of which has an end."""

    def pieces(self, image: Image.Image, count: int) -> list[Piece]:
        """The grid is the one whose sides go with those of the image."""
        config = self.model.config.vision_config
        side = config.image_size // config.patch_size
        first, rest = Piece(WHOLE, side, side), count - side * side
        if rest <= 1:
            return [first] + [Piece(WHOLE, 1, 0, True)] * rest
        aspect = image.width / image.height
        fits = [(rows, rest // rows - 1) for rows in range(1, rest // 2 + 1) if rest % rows == 0]
        rows, columns = min(fits, key=lambda fit: abs(_log(fit[1] / fit[0]) - _log(aspect)))
        return [first, Piece(WHOLE, rows, columns, True)]


class InternVL(Tiled):
    """InternVL: tiles in rows, then the small copy if there are several."""

    def pieces(self, image: Image.Image, count: int) -> list[Piece]:
        """The tiles stand as goes best with the sides of the image."""
        size = int(self.processor.image_seq_length)
        side, tiles = round(size**0.5), count // size
        if tiles == 1:
            return [Piece(WHOLE, side, side)]
        aspect, several = image.width / image.height, tiles - 1
        fits = [(several // columns, columns) for columns in range(1, several + 1) if several % columns == 0]
        rows, columns = min(fits, key=lambda fit: abs(fit[1] / fit[0] - aspect))
        return [*_tiles(rows, columns, side), Piece(WHOLE, side, side)]


class Idefics3(Tiled):
    """Idefics3 and SmolVLM: the same, but each tile is written apart, with its row and column before it."""

    apart = True

    def counts(self, rows: Sequence[Sequence[int]], pictures: Sequence[Sequence[Image.Image]]) -> list[int]:
        """As many tiles as the image processor says."""
        size = int(self.processor.image_seq_len)
        return [max(1, self._grid(picture)[0]) * size for group in pictures for picture in group]

    def _grid(self, image: Image.Image) -> tuple[int, int, int]:
        tiles, rows, columns = self.processor.image_processor.get_number_of_image_patches(image.height, image.width, {})
        return int(tiles), int(rows), int(columns)

    def pieces(self, image: Image.Image, count: int) -> list[Piece]:
        """Tiles, then the whole."""
        side = round(int(self.processor.image_seq_len) ** 0.5)
        _, rows, columns = self._grid(image)
        return [*_tiles(rows, columns, side), Piece(WHOLE, side, side)]


class Gemma3(Tiled):
    """Gemma 3: a fixed grid; tokens of one image see each other, which their types tell."""

    def pieces(self, image: Image.Image, count: int) -> list[Piece]:
        """One grid."""
        side = round(count**0.5)
        return [Piece(WHOLE, side, side)]

    def finish(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """With the types of tokens."""
        return inputs | {"token_type_ids": (inputs["input_ids"] == self.image_token).long()}


def _tiles(rows: int, columns: int, side: int) -> list[Piece]:
    return [
        Piece((c / columns, r / rows, (c + 1) / columns, (r + 1) / rows), side, side)
        for r in range(rows)
        for c in range(columns)
    ]


def _log(x: float) -> float:
    return float(torch.tensor(max(x, 1e-6)).log())
