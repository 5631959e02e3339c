"""From pixels and questions to chosen cells and their pixels, in one shape for all images of one size.

A GPU that has met the size before goes all of this way in one captured graph, without waiting for a launch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor

from homunculus import tokens
from homunculus.allocators import allocate, options_of
from homunculus.cells import CellTree, Selection
from homunculus.eye import Eye, Glance
from homunculus.fixation import peak
from homunculus.reader.letters import encode
from homunculus.reader.replay import Replay
from homunculus.reader.scout import QUESTION, SOFTER, Page, Scout, over_tree, small_copy
from homunculus.relevance import Scene
from homunculus.relevance.spatial import regions

KEPT = 8  # sizes and rules that are remembered; the one longest unused goes first
Paint = Callable[[Sequence[Tensor], Selection], Tensor]  # [B, K, ...] of B images
STEADY = ("grid", "foveated", "dag")  # rules of which shapes alone decide what they do


class Seen(NamedTuple):
    """Chosen cells in rows, see `Selection`, and their pixels [n, K, ...] as they were painted.

    With what led to them: the scout's features [B, h, w, width] of the pages, where it found each answer [n, h, w],
    relevance [n, N] and fixations [n, 1, 2].
    """

    boxes: Tensor
    levels: Tensor
    indices: Tensor
    mask: Tensor
    cells: Tensor
    features: Tensor
    found: Tensor
    relevance: Tensor
    places: Tensor

    def chosen(self, tree: CellTree) -> Selection:
        """The cells as a selection, a row for each question."""
        sizes = tree.sizes.expand(len(self.mask), 2)
        return Selection(self.boxes, self.levels, self.indices, self.mask, sizes, tree.cell)


class Sight:
    """How an eye chooses by what a scout finds; remembers what it has met. `paint` makes pixels of levels and cells."""

    def __init__(self, paint: Paint = tokens.patches) -> None:
        self.paint = paint
        self.ways: OrderedDict[Hashable, Replay[Seen]] = OrderedDict()

    def can(self, eye: Eye, questions: Sequence[str]) -> bool:
        """Whether the choice is one for which shapes alone decide what is done."""
        plain = isinstance(eye.scout, Scout) and eye.relevance == "query" and eye.allocator in STEADY
        return (
            plain
            and not any(isinstance(value, Tensor) for value in eye.options.values())
            and all(question and not regions(question) for question in questions)
        )

    def __call__(self, scene: Scene, questions: Sequence[str], eye: Eye) -> tuple[Selection, Tensor]:
        """Cells of a scene's images, each for its own question, in rows, and their pixels."""
        seen = self.see(scene, questions, eye)
        return seen.chosen(scene.tree), seen.cells

    def glances(self, scene: Scene, questions: Sequence[str], eye: Eye) -> list[Glance]:
        """Looks at one image for each of some questions; the scout remembers what it found there."""
        seen, scout = self.see(scene, questions, eye), cast(Scout, eye.scout)
        scout.seen[scene] = Page(seen.features, dict(zip(questions, seen.found, strict=True)))
        chosen = seen.chosen(scene.tree)
        rows = zip(questions, seen.places, seen.relevance, seen.cells, strict=True)
        return [
            Glance(question, eye.allocator, eye.budget, chosen.alone(i), places, relevance, scene, cells)
            for i, (question, places, relevance, cells) in enumerate(rows)
        ]

    @torch.no_grad()
    def see(self, scene: Scene, questions: Sequence[str], eye: Eye) -> Seen:
        """All that there is to see: a question for each image, or several for one."""
        tree, scout = scene.tree, cast(Scout, eye.scout)
        rule = eye.allocator, eye.budget, *sorted(eye.options.items())
        key = (tree.image_sizes, tree.cell, tree.levels, id(scout), *rule)
        if key not in self.ways:
            # a graph reads the tree: it must live as long
            self.ways[key] = Replay(partial(_look, tree, eye, scout, self.paint))
            if len(self.ways) > KEPT:
                self.ways.popitem(last=False)
        self.ways.move_to_end(key)
        codes = encode(questions, QUESTION).unflatten(0, (len(scene.pixels), -1))  # [B, Q, QUESTION]
        return self.ways[key](scene.pixels, codes.to(scene.pixels.device, non_blocking=True))


@torch.no_grad()
def _look(tree: CellTree, eye: Eye, scout: Scout, paint: Paint, pixels: Tensor, codes: Tensor) -> Seen:
    """What `Eye.choose` and `Eye.look_for` do, for questions as codes [B, Q, QUESTION]."""
    scene, (images, each) = Scene(pixels, tree), codes.shape[:2]
    features = scout.look(small_copy(scene.levels))
    found = scout.find(features, codes).flatten(0, 1)
    relevance = over_tree(scene, found / SOFTER)
    wanted = {}
    if "error" in options_of(eye.allocator).keys() - eye.options.keys():
        wanted["error"] = scene.lost.repeat_interleave(each, 0)
    places = peak(tree, relevance)
    chosen = allocate(eye.allocator, tree, relevance, eye.budget, places, **wanted, **eye.options).in_rows()
    assert chosen.indices is not None  # steady rules stay in the tree
    parts = chosen.boxes, chosen.levels, chosen.indices, chosen.mask
    boxes, levels, indices, mask = (part.unflatten(0, (images, each)).flatten(1, 2) for part in parts)
    of_images = Selection(boxes, levels, indices, mask, tree.sizes.expand(images, 2), tree.cell)
    cells = paint(scene.levels, of_images).unflatten(1, (each, -1)).flatten(0, 1)
    return Seen(*parts, cells, features, found, relevance, places)
