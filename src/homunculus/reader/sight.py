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
from homunculus.eye import Eye
from homunculus.fixation import peak
from homunculus.reader.letters import encode
from homunculus.reader.scout import QUESTION, SOFTER, Scout, over_tree, small_copy
from homunculus.relevance import Scene
from homunculus.relevance.spatial import regions
from homunculus.runtime.graphs import Replay

KEPT = 8  # sizes and rules that are remembered; the one longest unused goes first
Paint = Callable[[Sequence[Tensor], Selection], Tensor]  # [B, K, ...] of B images
STEADY = ("grid", "foveated", "dag")  # rules of which shapes alone decide what they do


class Seen(NamedTuple):
    """Chosen cells in rows, see `Selection`, and their pixels [n, K, ...] as they were painted."""

    boxes: Tensor
    levels: Tensor
    indices: Tensor
    mask: Tensor
    cells: Tensor

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

    @torch.no_grad()
    def __call__(self, scene: Scene, questions: Sequence[str], eye: Eye) -> tuple[Selection, Tensor]:
        """Cells of a scene's images, each for its own question, in rows, and their pixels."""
        tree, scout = scene.tree, cast(Scout, eye.scout)
        rule = eye.allocator, eye.budget, *sorted(eye.options.items())
        key = (tree.image_sizes, tree.cell, tree.levels, id(scout), *rule)
        if key not in self.ways:
            # a graph reads the tree: it must live as long
            self.ways[key] = Replay(partial(_look, tree, eye, scout, self.paint))
            if len(self.ways) > KEPT:
                self.ways.popitem(last=False)
        self.ways.move_to_end(key)
        codes = encode(questions, QUESTION).to(scene.pixels.device, non_blocking=True)
        seen = self.ways[key](scene.pixels, codes)
        return seen.chosen(tree), seen.cells


@torch.no_grad()
def _look(tree: CellTree, eye: Eye, scout: Scout, paint: Paint, pixels: Tensor, codes: Tensor) -> Seen:
    """What `Eye.choose` does, for questions as codes [B, QUESTION]."""
    scene = Scene(pixels, tree)
    found = scout.find(scout.encode_page(small_copy(scene.levels)), codes[:, None]).flatten(0, 1)
    relevance = over_tree(scene, found / SOFTER)
    wanted = {}
    if "error" in options_of(eye.allocator).keys() - eye.options.keys():
        wanted["error"] = scene.lost
    places = peak(tree, relevance)
    chosen = allocate(eye.allocator, tree, relevance, eye.budget, places, **wanted, **eye.options).in_rows()
    assert chosen.indices is not None  # steady rules stay in the tree
    return Seen(chosen.boxes, chosen.levels, chosen.indices, chosen.mask, paint(scene.levels, chosen))
