"""What all families of VLMs share: choose cells, encode only these, and build the text around them."""

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
from homunculus.adapters.layout import ImageSpan
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.eye import Eye, Glance
from homunculus.reader.selection_graphs import SelectionGraphs
from homunculus.relevance import Scene

ImageInput: TypeAlias = "Image.Image | Tensor"  # tensors are uint8 [3, H, W], and stay on their device
ChosenCells: TypeAlias = "tuple[Selection, Tensor | None]"  # cells in rows, and their pixels if these are known already


@contextmanager
def processor_errors() -> Iterator[None]:
    """A ValueError of a processor, as of a strip too narrow for it, becomes an InputError."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"the processor does not take the image: {error}") from error


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """A vision tower's features [n, D] of each image, and its DeepStack features of each layer and image."""

    features: list[Tensor]
    deepstack: list[list[Tensor]]
    output: Any  # as the model gave it

    def select(self, pick: Callable[[int, Tensor], Tensor]) -> ImageFeatures:
        """The same with `pick(image, features)` in the place of each image's features."""
        chosen = [pick(i, x) for i, x in enumerate(self.features)]
        deepstack = [[pick(i, x) for i, x in enumerate(layer)] for layer in self.deepstack]
        return ImageFeatures(chosen, deepstack, self.output)


@dataclass(frozen=True, eq=False)
class View:
    """An image on the pixel grid of a processor, and its chosen cells: a row of those of a scene of several images."""

    scene: Scene
    batch: Selection  # of all images of the scene
    row: int = 0
    uniform: bool = False  # whether all images of the scene have as many cells
    cells: Tensor | None = None  # the pixels of all these, uint8 [B, K, 3, cell, cell], if they are known already

    @cached_property
    def selection(self) -> Selection:
        """Its own cells, as a batch of one."""
        return self.batch.alone(self.row) if self.uniform else self.batch.row(self.row)

    def take(self, values: Tensor) -> Tensor:
        """Its own of the values of all cells of the scene: [B, K, ...] -> [count, ...]."""
        return values[self.row] if self.uniform else values[self.row][self.batch.mask[self.row].to(values.device)]

    @property
    def complete(self) -> bool:
        """Whether nothing was left out."""
        return self.count == self.grid[0] * self.grid[1] and not bool(self.selection.levels.any())

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of level 0."""
        return self.scene.tree.shapes[0]

    @property
    def count(self) -> int:
        """How many tokens there are."""
        return self.batch.mask.shape[1] if self.uniform else self.selection.mask.shape[1]

    def glance(self, question: str) -> Glance:
        """It as a glance, for a picture, without fixations and relevance."""
        scene = Scene(self.scene.pixels[self.row : self.row + 1], self.scene.tree)
        nowhere, nothing = self.scene.pixels.new_zeros(0, 2).float(), torch.zeros(scene.tree.size)
        return Glance(question, "chosen", self.count, self.selection, nowhere, nothing.to(nowhere.device), scene)


@dataclass(frozen=True, eq=False)
class VLMRequest:
    """Texts with placeholders, the question and the images of each; how to choose, and before or after the tower."""

    texts: list[str]
    questions: list[str]
    images: list[list[ImageInput]]
    eye: Eye
    where: str
    integer_positions: bool = False

    @property
    def pairs(self) -> list[tuple[ImageInput, str]]:
        """Every image with the question about it."""
        return [(one, prompts) for group, prompts in zip(self.images, self.questions, strict=True) for one in group]


@dataclass(frozen=True, eq=False)
class EncodedPrompt:
    """Ids of the texts, the tokens in the place of each image (or tile), and their features."""

    input_ids: list[list[int]]
    spans: list[ImageSpan]
    encoded: ImageFeatures
    views: list[View] = field(default_factory=list)  # where an image is one grid


class Family(ABC):
    """How models of one kind take images. One object serves one model.

    Attributes:
        where: before or after the tower, or as crops: where tokens can be chosen.
        rules: allocators that can choose here, the default first; all can where none is named.
        pad_guard: see `build_inputs`.
    """

    where: tuple[str, ...] = ("after",)
    rules: tuple[str, ...] = ()
    pad_guard = True

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
    def encode_request(self, request: VLMRequest) -> EncodedPrompt:
        """Choose and encode the visual tokens of a request's images."""

    @abstractmethod
    def model_output(self, encoded: ImageFeatures) -> Any:
        """Features in the form of the model's own vision output."""

    def processor_kwargs(self) -> dict[str, Any]:
        """Arguments that keep the processor from enlarging small images."""
        return {}

    def finish(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The last touch to inputs."""
        return inputs


class Gridded(Family):
    """Models that show an image as one grid of tokens: all rules can choose, from a pyramid on the same pixels."""

    batch_on_cpu = False  # whether images of one size are worked on together on a CPU too

    @cached_property
    def selection_graphs(self) -> SelectionGraphs:
        """How it looks at images of sizes that it has met before."""
        return SelectionGraphs()

    @abstractmethod
    def preprocess(self, image: ImageInput) -> Tensor:
        """An image as the processor resizes it, before its colours are scaled: uint8 [3, H, W]."""

    @abstractmethod
    def encode_images(self, images: Sequence[Image.Image]) -> ImageFeatures:
        """All tokens of images, by the model's own way."""

    @abstractmethod
    def encode_cells(self, views: Sequence[View]) -> ImageFeatures:
        """The chosen tokens alone, from the chosen pixels alone."""

    @abstractmethod
    def position_ids(self, view: View, integers: bool) -> Tensor:
        """Positions of the cells of all images of a view's scene: [B, K] or [B, K, 3]."""

    @abstractmethod
    def position_count(self, view: View) -> int:
        """How many positions the whole image takes."""

    def encode_request(self, request: VLMRequest) -> EncodedPrompt:
        """One placeholder an image is written; what it stands for is made from the chosen cells."""
        images, questions = zip(*request.pairs, strict=True)
        views = self.choose_cells(images, questions, request.eye)
        position_ids = self.start_position_ids(views, request.integer_positions)
        encoded = self.encode_views(views, images, request.where)  # a GPU goes on with the tower alone
        input_ids = self.tokenizer(request.texts)["input_ids"]
        return EncodedPrompt(input_ids, self.spans(views, position_ids), encoded, views)

    def encode_views(
        self, views: Sequence[View], images: Sequence[ImageInput], where: str, known: ImageFeatures | None = None
    ) -> ImageFeatures:
        """Features of views of images; the tower is not run again if all features of the images are `known`."""
        if where == "before" and not all(view.complete for view in views):
            return self.encode_cells(views)
        picks = [self.pooler(view) for view in views]
        return (known or self.encode_images([as_pil(one) for one in images])).select(lambda i, x: picks[i](x))

    def start_position_ids(self, views: Sequence[View], integers: bool) -> Callable[[], list[Tensor]]:
        """Begin to copy the positions of the cells of each to the CPU; the call that is returned waits for them."""
        found: dict[int, Tensor] = {}
        for view in views:
            if id(view.batch) not in found:
                found[id(view.batch)] = self.position_ids(view, integers).to("cpu", non_blocking=True)
        arrived = torch.cuda.Event() if views[0].scene.pixels.is_cuda else None
        if arrived is not None:
            arrived.record()

        def waited() -> list[Tensor]:
            if arrived is not None:
                arrived.synchronize()
            return [view.take(found[id(view.batch)]) for view in views]

        return waited

    def spans(self, views: Sequence[View], position_ids: Callable[[], list[Tensor]]) -> list[ImageSpan]:
        """What stands in the place of each image."""
        return [
            ImageSpan(1, self.position_count(view), at.movedim(-1, 0) if at.ndim > 1 else at)
            for view, at in zip(views, position_ids(), strict=True)
        ]

    def scenes(self, images: Sequence[ImageInput]) -> list[tuple[Scene, list[int]]]:
        """Scenes of images, and which images each has; on a GPU those of one size go together."""
        pixels = [self.preprocess(image).to(self.model.device) for image in images]
        groups: dict[tuple[int, int, int], list[int]] = {}
        for i, image in enumerate(pixels):
            alone = -1 if image.is_cuda or self.batch_on_cpu else i
            groups.setdefault((*image.shape[1:], alone), []).append(i)
        return [
            (Scene(torch.stack([pixels[i] for i in rows]), tree_of(height, width, self.cell)), rows)
            for (height, width, _), rows in groups.items()
        ]

    def views_of(self, scenes: Sequence[tuple[Scene, list[int]]], chosen: Sequence[ChosenCells]) -> list[View]:
        """All images of scenes with their cells, in the order of the images."""
        views: dict[int, View] = {}
        for (scene, members), (cells, pixels) in zip(scenes, chosen, strict=True):
            uniform = cells.indices is not None or bool(cells.mask.all())  # trees of one size give as many cells
            views.update((i, View(scene, cells, row, uniform, pixels)) for row, i in enumerate(members))
        return [views[i] for i in range(len(views))]

    def choose_cells(self, images: Sequence[ImageInput], questions: Sequence[str], eye: Eye) -> list[View]:
        """Images with the cells chosen for their questions."""
        scenes = self.scenes(images)
        chosen: list[ChosenCells] = []
        for scene, members in scenes:
            rows, columns = scene.tree.shapes[0]
            prompts = [questions[i] for i in members]
            if eye.budget >= rows * columns:  # all of the finest, as the model always has it
                even = torch.ones(len(members), scene.tree.size, device=scene.pixels.device)
                chosen.append((allocate("grid", scene.tree, even, rows * columns).in_rows(), None))
            elif self.selection_graphs.supports(eye, prompts):
                chosen.append(self.selection_graphs(scene, prompts, eye))
            elif len(members) > 1:
                chosen.append((eye.choose(scene, prompts).in_rows(), None))
            else:
                chosen.append((eye.look_at(scene, prompts[0]).selection.in_rows(), None))
        return self.views_of(scenes, chosen)

    def cell_pixels(self, views: Sequence[View]) -> list[Tensor]:
        """The pixels of the chosen cells of each image, uint8 [K, 3, cell, cell]."""
        return self.per_view(views, self._batch_pixels)

    def _batch_pixels(self, view: View) -> Tensor:
        """The same of all images of a view's scene: [B, K, 3, cell, cell]."""
        if view.batch.indices is None:
            raise InputError("rules that leave the tree can only choose after the tower: use where='after'")
        return tokens.patches(view.scene.levels, view.batch) if view.cells is None else view.cells

    def per_view(self, views: Sequence[View], make: Callable[[View], Tensor]) -> list[Tensor]:
        """What `make` gives for the cells of each view; called once for each scene: [B, K, ...]."""
        made: dict[int, Tensor] = {}
        for view in views:
            if id(view.batch) not in made:
                made[id(view.batch)] = make(view)
        return [view.take(made[id(view.batch)]) for view in views]

    @cached_property
    def _mean_std(self) -> tuple[Tensor, Tensor]:
        own = self.processor.image_processor
        mean, std = (torch.tensor(x, device=self.model.device).view(3, 1, 1) for x in (own.image_mean, own.image_std))
        return mean, std

    def normalize(self, pixels: Tensor) -> Tensor:
        """Pixels uint8 [..., 3, h, w] in the colours that the model knows."""
        mean, std = self._mean_std
        scaled = (pixels.double() * self.processor.image_processor.rescale_factor).float()
        return (scaled - mean) / std  # to the bit as processors do it

    def pooler(self, view: View) -> Callable[[Tensor], Tensor]:
        """Takes an image's features [N, D] to those of its chosen cells: a coarse cell is the mean of fine ones."""
        if view.complete:
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


def as_pil(image: ImageInput) -> Image.Image:
    """An image as PIL has it."""
    return image if isinstance(image, Image.Image) else Image.fromarray(image.permute(1, 2, 0).cpu().numpy())
