"""What is the same for all families of VLMs: look, choose, show only that, and lay out the text around it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus import image as images
from homunculus import tokens
from homunculus.adapters.crops import crops
from homunculus.adapters.layout import Unit, laid_out
from homunculus.adapters.prefill import Prefill
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError, whole_number
from homunculus.eye import SCOUTED, Eye
from homunculus.reader import load_scout
from homunculus.relevance import Scene

Messages = Sequence[dict[str, Any]]
Picture: TypeAlias = "Image.Image | Tensor"  # tensors are uint8 [3, H, W], and stay on their device


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

    @cached_property
    def selection(self) -> Selection:
        """Its own cells, as a batch of one."""
        return self.together.row(self.row)

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
        return self.selection.mask.shape[1]


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
    def places(self, view: View, whole: bool) -> tuple[Tensor, int]:
        """Positions of the kept tokens, see `Unit`, and how many positions the image takes."""

    def show(self, wish: Wish) -> Shown:
        """One placeholder a picture is written; what it stands for is made from the chosen cells."""
        pictures, asked = zip(*wish.each, strict=True)
        views = self._viewed(pictures, asked, wish.eye)
        if wish.where == "before" and not all(view.whole for view in views):
            seen = self.look(views)
        else:
            picks = [self.pooled(view) for view in views]
            seen = self.encode([as_picture(picture) for picture in pictures]).taken(lambda i, x: picks[i](x))
        units = [Unit(1, size, places) for places, size in (self.places(view, wish.whole) for view in views)]
        return Shown(self.tokenizer(wish.texts)["input_ids"], units, seen)

    def _viewed(self, pictures: Sequence[Picture], questions: Sequence[str], eye: Eye) -> list[View]:
        """Images with the cells chosen for their questions; on a GPU those of one size are looked at together."""
        pixels = [self.view(picture).to(self.model.device) for picture in pictures]
        groups: dict[Any, list[int]] = {}
        for i, image in enumerate(pixels):
            groups.setdefault(tuple(image.shape) if image.is_cuda or self.together else i, []).append(i)
        views: dict[int, View] = {}
        for members in groups.values():
            first = pixels[members[0]]
            scene = Scene(
                torch.stack([pixels[i] for i in members]), CellTree(first.shape[1], first.shape[2], self.cell)
            )
            rows, columns = scene.tree.shapes[0]
            asked = [questions[i] for i in members]
            if eye.budget >= rows * columns:  # all of the finest, as the model always has it
                even = torch.ones(len(members), scene.tree.size, device=first.device)
                chosen = allocate("grid", scene.tree, even, rows * columns)
            elif len(members) > 1:
                chosen = eye.choose(scene, asked)
            else:
                chosen = eye.look_at(scene, asked[0]).selection
            chosen = chosen.in_rows()
            views.update((i, View(scene, chosen, row)) for row, i in enumerate(members))
        return [views[i] for i in range(len(pixels))]

    def cells(self, views: Sequence[View]) -> list[Tensor]:
        """The pixels of the chosen cells of each image, in the model's colours: [K, 3, cell, cell]."""
        made: dict[int, Tensor] = {}
        for view in views:
            if view.together.indices is None:
                raise InputError("rules that leave the tree can only choose after the tower: use where='after'")
            if id(view.scene) not in made:
                made[id(view.scene)] = self.normalised(tokens.patches(view.scene.levels, view.together))
        return [made[id(view.scene)][view.row] for view in views]

    def normalised(self, pixels: Tensor) -> Tensor:
        """Pixels uint8 [..., 3, h, w] in the colours that the model knows."""
        own = self.processor.image_processor
        mean, std = (torch.tensor(x, device=pixels.device).view(3, 1, 1) for x in (own.image_mean, own.image_std))
        return ((pixels.double() * own.rescale_factor).float() - mean) / std  # to the bit as processors do it

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


class VLM:
    """A VLM that is given a fixed budget of visual tokens. `wrap` makes one."""

    def __init__(self, family: Family) -> None:
        self.family, self.model, self.processor = family, family.model, family.processor

    @cached_property
    def scout(self) -> Any:
        """The scout that comes with the package, on the model's device; loaded when first needed."""
        return load_scout(device=self.model.device)

    def prepare(
        self,
        images: Sequence[Any],
        questions: Sequence[str | Messages],
        budget: int = 273,
        where: str = "",
        allocator: str = "",
        relevance: str = "query",
        whole: bool = False,
        scout: Any = True,
        **options: Any,
    ) -> dict[str, Any]:
        """Inputs for the model's `forward` and `generate`.

        Args:
            images: for each question an image (path, PIL, tensor) or several.
            questions: texts, or conversations as chat templates take them, with {"type": "image"} where the images are.
            budget: tokens of each image; with as many as it has, or more, the model sees what it always sees.
            where: "before" the vision tower, which then works on the chosen cells only, or "after" it, or "crops": a
                small copy and pieces in full resolution as ordinary images. The first that the family can, unless told.
            allocator, relevance, options: how to choose, see `homunculus.Eye`.
            whole: positions of coarse cells in whole numbers, for models or engines that take no fractions.
            scout: finds what is asked for; True is the one that comes with the package, False does without.
        """
        rules = self.family.rules
        where, allocator = where or self.family.where[0], allocator or (*rules, "foveated")[0]
        if where not in self.family.where:
            known = ", ".join(map(repr, self.family.where))
            raise InputError(f"where must be one of {known} for {self.model.config.model_type} models, got {where!r}")
        whole_number("budget", budget, 1)
        groups = [list(group) if isinstance(group, (list, tuple)) else [group] for group in images]
        if len(groups) != len(questions):
            raise InputError(f"there are images for {len(groups)} questions but {len(questions)} questions")
        if not all(groups):
            raise InputError("every question needs at least one image")
        if rules and allocator not in rules:
            kind = self.model.config.model_type
            raise InputError(
                f"{kind} models show tiles, of which only {', '.join(rules)} can choose, got {allocator!r}"
            )
        scout = self.scout if scout is True and relevance in SCOUTED else scout
        eye = Eye(allocator, relevance, budget, cell=self.family.cell, scout=scout, **options)
        texts = [self._text(question, len(group)) for question, group in zip(questions, groups, strict=True)]
        for text, group in zip(texts, groups, strict=True):
            if text.count(self.family.placeholder) != len(group):
                there = text.count(self.family.placeholder)
                raise InputError(
                    f"a text has {there} placeholders for images, but {len(group)} images are given for it"
                )
        asked = [_last(question) for question in questions]
        pictures = [[_opened(image) for image in group] for group in groups]
        if where == "crops":
            return self._cropped(questions, pictures, eye)
        shown = self.family.show(Wish(texts, asked, pictures, eye, where, whole))
        pad = self.family.tokenizer.pad_token_id or 0
        inputs = laid_out(shown.rows, self.family.image_token, shown.units, pad, self.family.guard)
        ready: dict[str, Any] = {name: value.to(self.model.device) for name, value in inputs.items()}
        ready["mm_encoder_outputs"] = {"image": self.family.output(shown.seen)}
        return self.family.finish(ready)

    def _cropped(
        self, questions: Sequence[str | Messages], pictures: Sequence[Sequence[Picture]], eye: Eye
    ) -> dict[str, Any]:
        """Ordinary inputs, with the pieces of each picture in its place."""
        texts, groups = [], []
        for question, group in zip(questions, pictures, strict=True):
            if not isinstance(question, str):
                raise InputError("where='crops' takes questions as plain texts, not conversations")
            shown = [as_picture(picture) for picture in group]
            groups.append([crop.image for picture in shown for crop in crops(picture, question, eye.budget, eye)])
            texts.append(self._text(question, len(groups[-1])))
        made = self.processor(
            text=texts, images=groups, padding=True, padding_side="left", return_tensors="pt", **self.family.as_it_is()
        )
        return dict(made.to(self.model.device))

    def generate(self, inputs: dict[str, Any], **how: Any) -> Tensor:
        """`model.generate`, also where the installed transformers does not take encoded images yet."""
        with self._injected(inputs) as ready:
            return self.model.generate(**ready, **how)

    @cached_property
    def prefill(self) -> Prefill:
        """The fast way to the first token: `logits, cache = vlm.prefill(inputs)`, captured as a CUDA graph on a GPU."""
        if "before" not in self.family.where:
            raise InputError(f"{self.model.config.model_type} models have no captured prefill; use generate")
        return Prefill(self.model, self.family.image_token)

    def __call__(self, inputs: dict[str, Any], **how: Any) -> Any:
        """`model.forward`, likewise."""
        with self._injected(inputs) as ready:
            return self.model(**ready, **how)

    def _text(self, question: str | Messages, count: int) -> str:
        """A question about images as the model is asked it, one placeholder for each image."""
        if isinstance(question, str):
            content = [{"type": "image"}] * count + [{"type": "text", "text": question}]
            question = [{"role": "user", "content": content}]
        if getattr(self.processor, "chat_template", None) is None:
            raise InputError("the processor has no chat template; set processor.chat_template to that of the model")
        return str(self.processor.apply_chat_template(list(question), add_generation_prompt=True, tokenize=False))

    @property
    def takes_features(self) -> bool:
        """Whether the model itself takes `prepare`'s inputs; else use `generate` and the call of this object."""
        return self.family.takes_features

    @contextmanager
    def _injected(self, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Inputs that the installed transformers can take; before 5.18 the model is lent its features meanwhile."""
        ready = dict(inputs)
        if "mm_encoder_outputs" not in ready:
            yield ready
            return
        seen = dict(ready.pop("mm_encoder_outputs"))
        if self.takes_features:
            yield ready | {"mm_encoder_outputs": seen}  # a copy: generate adds to it
            return
        base = self.family.base
        base.get_image_features = lambda *_, **__: seen["image"]  # on the object: hides the method of its class
        try:
            yield ready | {"pixel_values": torch.zeros(1, device=self.model.device, dtype=self.model.dtype)}
        finally:
            del base.get_image_features


def _opened(image: Any) -> Picture:
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    if isinstance(image, Tensor) and image.dtype == torch.uint8 and image.ndim == 3 and len(image) == 3:
        return image
    return as_picture(images.load(image))


def as_picture(image: Picture) -> Image.Image:
    """An image as PIL has it."""
    return image if isinstance(image, Image.Image) else Image.fromarray(image.permute(1, 2, 0).cpu().numpy())


def _last(question: str | Messages) -> str:
    """What is asked last in a conversation."""
    if isinstance(question, str):
        return question
    for message in reversed(question):
        if message.get("role") == "user":
            content = message.get("content", "")
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            return " ".join(filter(None, parts))
    raise InputError("a conversation has no message of the user")
