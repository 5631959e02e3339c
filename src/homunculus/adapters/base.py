"""What is the same for all families of VLMs: look, choose, show only that, and lay out the text around it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus import tokens
from homunculus.adapters.layout import Unit
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.eye import Eye, Glance
from homunculus.reader.selection_graphs import SelectionGraphs
from homunculus.relevance import Scene

Picture: TypeAlias = "Image.Image | Tensor"  # tensors are uint8 [3, H, W], and stay on their device
Chosen: TypeAlias = "tuple[Selection, Tensor | None]"  # cells in rows, and their pixels if these are known already


@contextmanager
def processing() -> Iterator[None]:
    """What a processor refuses, such as a strip too narrow for it, is told as wrong input."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"the processor does not take the image: {error}") from error


@dataclass(frozen=True, eq=False)
class Encoded:
    """What a vision tower says of some images: features [n, width] of each, and the same of deeper layers."""

    features: list[Tensor]
    deeper: list[list[Tensor]]  # of each layer, of each image
    output: Any  # as the model gave it

    def taken(self, pick: Any) -> Encoded:
        """The same with `pick(image, features)` in the place of each image's features."""
        chosen = [pick(i, x) for i, x in enumerate(self.features)]
        return Encoded(chosen, [[pick(i, x) for i, x in enumerate(layer)] for layer in self.deeper], self.output)


@dataclass(frozen=True, eq=False)
class View:
    """An image on the pixel grid of a processor, and the cells that were chosen of it, in rows.

    It is one of those of a scene, which were looked at together.
    """

    scene: Scene
    together: Selection
    row: int = 0
    full: bool = False  # whether all images that were looked at together have as many cells
    cells: Tensor | None = None  # the pixels of all these, uint8 [B, K, 3, cell, cell], if they are known already

    @cached_property
    def selection(self) -> Selection:
        """Its own cells, as a batch of one."""
        return self.together.alone(self.row) if self.full else self.together.row(self.row)

    def own(self, values: Tensor) -> Tensor:
        """Its own of the values of cells that were looked at together: [B, K, ...] -> [count, ...]."""
        return values[self.row] if self.full else values[self.row][self.together.mask[self.row].to(values.device)]

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return self.count == self.grid[0] * self.grid[1] and not bool(self.selection.levels.any())

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of level 0."""
        return self.scene.tree.shapes[0]

    @property
    def count(self) -> int:
        """How many tokens there are."""
        return self.together.mask.shape[1] if self.full else self.selection.mask.shape[1]

    def glance(self, question: str) -> Glance:
        """It as a glance, for a picture; where the eye was fixed, and on what account, is not known any more."""
        scene = Scene(self.scene.pixels[self.row : self.row + 1], self.scene.tree)
        nowhere, nothing = self.scene.pixels.new_zeros(0, 2).float(), torch.zeros(scene.tree.size)
        return Glance(question, "chosen", self.count, self.selection, nowhere, nothing.to(nowhere.device), scene)


@dataclass(frozen=True, eq=False)
class Wish:
    """What is wanted: texts with placeholders, what is asked in each, its pictures; how to choose, where, and whether
    positions must be whole numbers."""

    texts: list[str]
    asked: list[str]
    pictures: list[list[Picture]]
    eye: Eye
    where: str
    whole: bool

    @property
    def each(self) -> list[tuple[Picture, str]]:
        """Every picture with what is asked about it."""
        return [(one, asked) for group, asked in zip(self.pictures, self.asked, strict=True) for one in group]


@dataclass(frozen=True, eq=False)
class Shown:
    """What a model is to be shown: ids of the texts, what stands in the place of each image, and what is seen there."""

    rows: list[list[int]]
    units: list[Unit]
    seen: Encoded
    views: list[View] = field(default_factory=list)  # where an image is one grid


class Family(ABC):
    """How models of one kind take images. One object serves one model.

    Attributes:
        where: at which places tokens can be chosen.
        rules: allocators that can choose here, the one that is used unless told first; all can where none is named.
        guard: see `laid_out`.
    """

    where: tuple[str, ...] = ("after",)
    rules: tuple[str, ...] = ()
    guard = True

    def __init__(self, model: Any, processor: Any) -> None:
        self.model, self.processor, self.base = model, processor, model.model
        self.tokenizer: Any = getattr(processor, "tokenizer", None)
        config = model.config
        self.image_token: Any = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        if self.tokenizer is None or getattr(processor, "image_processor", None) is None:
            raise InputError(
                f"a processor with tokenizer and image processor is needed, got {type(processor).__name__}"
            )
        token = getattr(processor, "image_token", None)
        known = {getattr(owner, "image_token_id", None) for owner in (processor, self.tokenizer)}
        if token is None or self.image_token not in {*known, self.tokenizer.convert_tokens_to_ids(token)}:
            raise InputError(
                f"the processor is that of another model: its image token {token!r} is not token {self.image_token}"
            )
        self.placeholder: str = token

    @property
    @abstractmethod
    def cell(self) -> int:
        """Pixels of the side of a cell of level 0."""

    @property
    def takes_features(self) -> bool:
        """Whether the installed transformers lets models take encoded images, as from 5.18."""
        return "mm_encoder_outputs" in inspect.signature(self.model.forward).parameters

    @abstractmethod
    def show(self, wish: Wish) -> Shown:
        """Look at pictures for what is asked about them, and choose."""

    @abstractmethod
    def output(self, seen: Encoded) -> Any:
        """Features as the model wants to be given them."""

    def as_it_is(self) -> dict[str, Any]:
        """What the processor is told so that it does not enlarge small images."""
        return {}

    def finish(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The last touch to inputs."""
        return inputs


class Gridded(Family):
    """Models that show an image as one grid of tokens: all rules can choose, from a pyramid on the same pixels."""

    together = False  # whether images of one size are looked at together on a CPU too

    @cached_property
    def selection_graphs(self) -> SelectionGraphs:
        """How it looks at images of sizes that it has met before."""
        return SelectionGraphs()

    @abstractmethod
    def view(self, image: Picture) -> Tensor:
        """An image as the processor shows it to the model, before its colours are scaled: uint8 [3, H, W]."""

    @abstractmethod
    def encode(self, images: Sequence[Image.Image]) -> Encoded:
        """All tokens of images, by the model's own way."""

    @abstractmethod
    def look(self, views: Sequence[View]) -> Encoded:
        """The chosen tokens alone, from the chosen pixels alone."""

    @abstractmethod
    def places(self, view: View, whole: bool) -> Tensor:
        """Positions of the cells of all images of a view that were looked at together: [B, K] or [B, K, 3]."""

    @abstractmethod
    def span(self, view: View) -> int:
        """How many positions the whole image takes."""

    def show(self, wish: Wish) -> Shown:
        """One placeholder a picture is written; what it stands for is made from the chosen cells."""
        pictures, asked = zip(*wish.each, strict=True)
        views = self._viewed(pictures, asked, wish.eye)
        places = self.placed(views, wish.whole)
        seen = self.see(views, pictures, wish.where)  # a GPU goes on with the tower alone
        rows = self.tokenizer(wish.texts)["input_ids"]
        return Shown(rows, self.units(views, places), seen, views)

    def see(
        self, views: Sequence[View], pictures: Sequence[Picture], where: str, known: Encoded | None = None
    ) -> Encoded:
        """What the tower says of views of pictures; it is not run again if it is `known` what it says of all."""
        if where == "before" and not all(view.whole for view in views):
            return self.look(views)
        picks = [self.pooled(view) for view in views]
        return (known or self.encode([as_picture(one) for one in pictures])).taken(lambda i, x: picks[i](x))

    def placed(self, views: Sequence[View], whole: bool) -> Callable[[], list[Tensor]]:
        """Positions of the cells of each; they are on their way to the CPU, and waited for when asked for."""
        found: dict[int, Tensor] = {}
        for view in views:
            if id(view.together) not in found:
                found[id(view.together)] = self.places(view, whole).to("cpu", non_blocking=True)
        arrived = torch.cuda.Event() if views[0].scene.pixels.is_cuda else None
        if arrived is not None:
            arrived.record()

        def waited() -> list[Tensor]:
            if arrived is not None:
                arrived.synchronize()
            return [view.own(found[id(view.together)]) for view in views]

        return waited

    def units(self, views: Sequence[View], places: Callable[[], list[Tensor]]) -> list[Unit]:
        """What stands in the place of each."""
        return [
            Unit(1, self.span(view), at.movedim(-1, 0) if at.ndim > 1 else at)
            for view, at in zip(views, places(), strict=True)
        ]

    def scenes(self, pictures: Sequence[Picture]) -> list[tuple[Scene, list[int]]]:
        """Pictures ready to be looked at, and which they are; on a GPU those of one size go together."""
        pixels = [self.view(picture).to(self.model.device) for picture in pictures]
        groups: dict[tuple[int, int, int], list[int]] = {}
        for i, image in enumerate(pixels):
            alone = -1 if image.is_cuda or self.together else i
            groups.setdefault((*image.shape[1:], alone), []).append(i)
        return [
            (Scene(torch.stack([pixels[i] for i in rows]), tree_of(height, width, self.cell)), rows)
            for (height, width, _), rows in groups.items()
        ]

    def views(self, scenes: Sequence[tuple[Scene, list[int]]], chosen: Sequence[Chosen]) -> list[View]:
        """All pictures of scenes with their cells, in the order of the pictures."""
        views: dict[int, View] = {}
        for (scene, members), (cells, pixels) in zip(scenes, chosen, strict=True):
            full = cells.indices is not None or bool(
                cells.mask.all()
            )  # images of one size have as many cells of a tree
            views.update((i, View(scene, cells, row, full, pixels)) for row, i in enumerate(members))
        return [views[i] for i in range(len(views))]

    def _viewed(self, pictures: Sequence[Picture], questions: Sequence[str], eye: Eye) -> list[View]:
        """Images with the cells chosen for their questions."""
        scenes = self.scenes(pictures)
        looks: list[Chosen] = []
        for scene, members in scenes:
            rows, columns = scene.tree.shapes[0]
            asked = [questions[i] for i in members]
            if eye.budget >= rows * columns:  # all of the finest, as the model always has it
                even = torch.ones(len(members), scene.tree.size, device=scene.pixels.device)
                looks.append((allocate("grid", scene.tree, even, rows * columns).in_rows(), None))
            elif self.selection_graphs.supports(eye, asked):
                looks.append(self.selection_graphs(scene, asked, eye))
            elif len(members) > 1:
                looks.append((eye.choose(scene, asked).in_rows(), None))
            else:
                looks.append((eye.look_at(scene, asked[0]).selection.in_rows(), None))
        return self.views(scenes, looks)

    def cells(self, views: Sequence[View]) -> list[Tensor]:
        """The pixels of the chosen cells of each image, uint8 [K, 3, cell, cell]."""
        return self.each(views, self.pixels)

    def pixels(self, view: View) -> Tensor:
        """The same of all images that were looked at together: [B, K, 3, cell, cell]."""
        if view.together.indices is None:
            raise InputError("rules that leave the tree can only choose after the tower: use where='after'")
        return tokens.patches(view.scene.levels, view.together) if view.cells is None else view.cells

    def each(self, views: Sequence[View], make: Callable[[View], Tensor]) -> list[Tensor]:
        """What `make` says of the cells of each view; asked once for all that were looked at together: [B, K, ...]."""
        made: dict[int, Tensor] = {}
        for view in views:
            if id(view.together) not in made:
                made[id(view.together)] = make(view)
        return [view.own(made[id(view.together)]) for view in views]

    @cached_property
    def _colours(self) -> tuple[Tensor, Tensor]:
        own = self.processor.image_processor
        mean, std = (torch.tensor(x, device=self.model.device).view(3, 1, 1) for x in (own.image_mean, own.image_std))
        return mean, std

    def normalised(self, pixels: Tensor) -> Tensor:
        """Pixels uint8 [..., 3, h, w] in the colours that the model knows."""
        mean, std = self._colours
        scaled = (pixels.double() * self.processor.image_processor.rescale_factor).float()
        return (scaled - mean) / std  # to the bit as processors do it

    def pooled(self, view: View) -> Any:
        """Takes an image's features [N, width] to those of its chosen cells: a coarse cell is the mean of fine ones."""
        if view.whole:
            return lambda x: x
        selection, (rows, columns) = view.selection, view.grid
        levels, boxes = selection.levels[0].long(), selection.boxes[0]

        def pick(x: Tensor) -> Tensor:
            out = x.new_empty(len(levels), x.shape[1])
            image = x.T.view(1, -1, rows, columns)
            for level in levels.unique().tolist():
                size = 1 << level
                coarse = image if not level else F.avg_pool2d(image, size, ceil_mode=True, count_include_pad=False)
                here = levels == level
                column, row = (boxes[here, :2] // (selection.cell * size)).unbind(1)
                out[here] = coarse[0, :, row, column].T
            return out

        return pick


@lru_cache(maxsize=32)
def tree_of(height: int, width: int, cell: int) -> CellTree:
    """The tree of all images of one size."""
    return CellTree(height, width, cell)


def as_picture(image: Picture) -> Image.Image:
    """An image as PIL has it."""
    return image if isinstance(image, Image.Image) else Image.fromarray(image.permute(1, 2, 0).cpu().numpy())
