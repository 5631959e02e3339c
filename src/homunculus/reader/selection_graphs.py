"""From pixels and questions to chosen cells and their pixels, in one shape for all images of one size.

A GPU that has met the size before goes all of this way in one captured graph, without waiting for a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor

from homunculus import tokens
from homunculus.allocators import allocate, get_allocator
from homunculus.cells import CellTree, Selection
from homunculus.eye import Eye
from homunculus.fixation import peak
from homunculus.reader.letters import encode
from homunculus.reader.scout import QUESTION, TEMPERATURE, Scout, over_tree, small_copy
from homunculus.relevance import Scene
from homunculus.relevance.spatial import regions
from homunculus.runtime.cache import LRUCache
from homunculus.runtime.graphs import Replay

MAX_KEPT = 8  # sizes and rules that are remembered; the one longest unused goes first
PatchFunction = Callable[[Sequence[Tensor], Selection], Tensor]  # levels, selection -> pixels [B, K, ...]


class SelectionTensors(NamedTuple):
    """What a graph gives: chosen cells in rows, see `Selection`, and their pixels [B, K, ...]."""

    boxes: Tensor
    levels: Tensor
    indices: Tensor
    mask: Tensor
    patches: Tensor

    def selection(self, tree: CellTree) -> Selection:
        """The cells as a selection, a row for each question."""
        sizes = tree.sizes.expand(len(self.mask), 2)
        return Selection(self.boxes, self.levels, self.indices, self.mask, sizes, tree.cell)


class SelectionGraphs:
    """How an eye chooses by what a scout finds, a graph for each size and rule; `patches` gives the cells' pixels."""

    def __init__(self, patches: PatchFunction = tokens.patches) -> None:
        self.patches = patches
        self.graphs = LRUCache[Hashable, Replay[SelectionTensors]](MAX_KEPT)

    def supports(self, eye: Eye, questions: Sequence[str]) -> bool:
        """Whether shapes alone decide what the choice does."""
        return (
            isinstance(eye.scout, Scout)
            and eye.relevance == "query"
            and get_allocator(eye.allocator).capturable
            and all(isinstance(value, (int, float)) for value in eye.options.values())
            and all(question and not regions(question) for question in questions)
        )

    @torch.no_grad()
    def __call__(self, scene: Scene, questions: Sequence[str], eye: Eye) -> tuple[Selection, Tensor]:
        """Cells of a scene's images, each for its own question, in rows, and their pixels."""
        tree, scout = scene.tree, cast(Scout, eye.scout)
        rule = eye.allocator, eye.budget, *sorted(eye.options.items())
        key = (tree.image_sizes, tree.cell, tree.levels, id(scout), *rule)
        if key not in self.graphs:
            # a graph reads the tree: it must live as long
            self.graphs[key] = Replay(partial(_select, tree, eye, scout, self.patches))
        codes = encode(questions, QUESTION).to(scene.pixels.device, non_blocking=True)
        found = self.graphs[key](scene.pixels, codes)
        return found.selection(tree), found.patches


@torch.no_grad()
def _select(
    tree: CellTree, eye: Eye, scout: Scout, patches: PatchFunction, pixels: Tensor, codes: Tensor
) -> SelectionTensors:
    """What `Eye.choose` does, for questions as codes [B, QUESTION]."""
    scene = Scene(pixels, tree)
    logits = scout.find(scout.encode_page(small_copy(scene.levels)), codes[:, None]).flatten(0, 1)  # [B, h, w]
    relevance = over_tree(scene, logits / TEMPERATURE)
    options = eye.options | eye.context(scene, [""] * len(codes))
    chosen = allocate(eye.allocator, tree, relevance, eye.budget, peak(tree, relevance), **options).in_rows()
    assert chosen.indices is not None  # rules that can be captured stay in the tree
    return SelectionTensors(chosen.boxes, chosen.levels, chosen.indices, chosen.mask, patches(scene.levels, chosen))
