"""A look at a tiled image: one coarse copy of all of it, then finer windows of what is worth it, wave by wave.

The coarse copy (the overview, at most 1,024 cells) is a scene like any other, so every way of knowing what matters runs
on it, the scout of `query` too. Below it no network looks: relevance is that of the overview's cell, times how much
more (or less) information its windows hold than the overview showed there. What a cell would lose is the energy of the
finer bands that were decoded; of those that were not, as much in each octave as in the finest one seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from homunculus import tokens
from homunculus.allocators.expansion import boxes_of, children_of, expand, nearness, place_of
from homunculus.allocators.fractal import AHEAD, WAVE, check_expansion
from homunculus.cells import CellTree, Selection, default_levels
from homunculus.errors import InputError
from homunculus.giga.tiled import TiledImage
from homunculus.relevance import Scene
from homunculus.relevance.information import information

MOST_CELLS = 1024  # of the overview's finest level
DECODED = 32  # so many times the overview's pixels may be decoded for it before coarse copies are made
FLOOR = 0.005  # share of the largest relevance that counts everywhere, as in `foveated`
QUIET = 0.01  # energy of a flat place: a fixation on it still gets fine cells
MOST_GAIN = 4.0  # how far the windows may raise what the overview said
FOVEA = 4.0  # finest cells around a fixation that was asked for


@dataclass(frozen=True)
class Expansion:
    """How branches grow: see `homunculus allocators fractal`."""

    ahead: int = AHEAD
    wave: int = WAVE
    fovea: float | None = None

    def __post_init__(self) -> None:
        check_expansion(self.ahead, self.wave, self.fovea)


@dataclass(frozen=True, eq=False)
class Overview:
    """The coarse copy of an image and where it stands in the whole tree, whose first cells are the overview's."""

    tree: CellTree  # of the whole image: nothing of its size is ever made of it
    level: int
    scene: Scene


@dataclass(frozen=True, eq=False)
class TiledLook:
    """What was chosen.

    Shape:
        selection of batch 1; relevance [K]; cells uint8 [K, 3, cell, cell]; fixations [F, 2] in pixels.
    """

    selection: Selection
    relevance: Tensor
    cells: Tensor
    fixations: Tensor


def overview_of(image: TiledImage, cell: int, levels: int | None) -> Overview:
    """The overview, made once for each shape of the tree."""
    if (cell, levels) not in image.kept:
        depth = default_levels(image.height, image.width, cell) if levels is None else levels
        tree = CellTree(image.height, image.width, cell, depth)
        level = next((l for l, (r, c) in enumerate(tree.shapes) if r * c <= MOST_CELLS), None)
        if level is None:
            needed = default_levels(image.height, image.width, cell)
            raise InputError(
                f"{depth} levels leave {tree.root_counts[0]} roots, of which no overview can be made: leave levels out "
                f"for {needed}"
            )
        image.kept[cell, levels] = Overview(tree, level, _scene(image, tree, level))
    return image.kept[cell, levels]


def _scene(image: TiledImage, tree: CellTree, level: int) -> Scene:
    height, width = -(-image.height // 2**level), -(-image.width // 2**level)
    rows, columns = tree.shapes[level]
    image.prepare(level, DECODED * MOST_CELLS * tree.cell**2)
    number = torch.arange(rows * columns)
    corners = torch.stack((number % columns, number // columns), 1) * tree.cell
    windows = image.region(level, corners, tree.cell).unflatten(0, (rows, columns))  # [r, c, 3, p, p]
    pixels = windows.permute(2, 0, 3, 1, 4).flatten(3).flatten(1, 2)[:, :height, :width]  # [3, h, w]
    return Scene(pixels[None].contiguous(), CellTree(height, width, tree.cell, tree.levels - level))


@dataclass(eq=False)
class Measured:
    """Measures visible cells from the pixels below them, and remembers their relevance.

    Shape:
        prior [1, n0] relevance of the overview's cells; points [1, F, 2] in pixels, or None.
    """

    image: TiledImage
    overview: Overview
    prior: Tensor
    points: Tensor | None
    how: Expansion
    seen: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        scene, octaves = self.overview.scene, self.overview.level
        finest = scene.tree.grid(scene.bands.energy, 0).double()
        unseen = scene.tree.lift(finest, "sum") * octaves  # as much in every finer octave as in the finest seen
        self._lost = (scene.lost.double() + unseen)[0] * 4.0**octaves  # [n0] in finest cells of the image
        self._information = information(scene, [""])[0].double()
        self._floor = FLOOR * float(self.prior.max())

    def __call__(self, cells: Tensor) -> Tensor:
        """The gain of splitting each of the cells [1, n]; -1 has none."""
        there = cells[0] >= 0
        gain = torch.zeros(cells.shape, dtype=torch.float64)
        new = cells[0][there]
        if not len(new):
            return gain
        relevance, lost = self.look(new)
        self.seen.append((new, relevance))
        near = torch.ones_like(lost)
        if self.points is not None:
            fovea = (FOVEA if self.how.fovea is None else self.how.fovea) * self.overview.tree.cell
            near = nearness(boxes_of(self.overview.tree, new[None]), self.points, fovea)[0]
        gain[0, there] = (relevance + self._floor) * lost * near.square()
        return gain

    def look(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Relevance and lost energy of cells: from the overview above its finest level, else from windows. [n] each"""
        tree, top = self.overview.tree, self.overview.level
        level, row, column = place_of(tree, cells)
        up = (top - level).clamp(min=0)
        ancestor = torch.where(level < top, _index(tree, top, row >> up, column >> up), cells)
        relevance, lost = self.prior[0, ancestor].double(), torch.zeros(len(cells), dtype=torch.float64)
        coarse = level > top
        lost[coarse] = self._lost[cells[coarse]]
        for ahead in range(min(self.how.ahead, top) + 1):
            mine = ~coarse & (level.clamp(max=self.how.ahead) == ahead)
            if bool(mine.any()):
                information_there, lost[mine] = self._windows(level[mine], row[mine], column[mine], ahead)
                known = self._information[ancestor[mine]].clamp(min=0.05)
                relevance[mine] *= (information_there / known).clamp(max=MOST_GAIN)
        quiet = QUIET * 4.0 ** level.double() * level
        return relevance, lost + quiet

    def _windows(self, level: Tensor, row: Tensor, column: Tensor, ahead: int) -> tuple[Tensor, Tensor]:
        """Largest information, and lost energy, of cells seen `ahead` levels finer than they are. [n] each"""
        cell, found = self.overview.tree.cell, torch.zeros(2, len(level), dtype=torch.float64)
        size = cell << ahead
        for finest in (level - ahead).unique().tolist():  # a handful of levels
            mine = level - ahead == finest
            corners = torch.stack((column[mine], row[mine]), 1) * size
            scene = Scene(self.image.region(finest, corners, size), CellTree(size, size, cell, ahead + 1))
            unseen = scene.tree.grid(scene.bands.energy, 0).double().sum((1, 2)) * finest
            found[0, mine] = information(scene, [""]).double()[:, scene.tree.at(0)].amax(1)
            found[1, mine] = (scene.lost[:, 0].double() + unseen) * 4.0**finest
        return found[0], found[1]

    def relevance_of(self, cells: Tensor) -> Tensor:
        """Relevance of cells that were measured. [n]"""
        known, values = (torch.cat(parts) for parts in zip(*self.seen, strict=True))
        known, order = known.sort(stable=True)
        return values[order][torch.searchsorted(known, cells)]


def expand_tiles(
    image: TiledImage, overview: Overview, prior: Tensor, budget: int, points: Tensor | None, how: Expansion
) -> TiledLook:
    """Exactly `budget` cells that cover the image: relevance [1, n0] of the overview's cells, fixations in pixels.

    All are a partition but at most two, which are finer cells on the best of the others: a split costs three.
    """
    tree = overview.tree
    if budget >= tree.fine_counts[0]:
        raise InputError(
            f"a budget of {budget} is no choice from {tree.fine_counts[0]} finest cells: give a smaller one, or a "
            "larger max_pixels to decode the whole image"
        )
    _check_inside(tree, points)
    measured = Measured(image, overview, prior, points, how)
    start = torch.arange(tree.root_counts[0])[None]
    cells, gain = expand(tree, start, measured, torch.tensor([[budget]]), how.wave)
    chosen = _filled(tree, measured, cells[0], gain[0], budget)
    level, _, _ = place_of(tree, chosen)
    selection = Selection(
        boxes_of(tree, chosen[None]), level[None], chosen[None], chosen[None] >= 0, tree.sizes, tree.cell
    )
    relevance = measured.relevance_of(chosen)
    fixations = points[0] if points is not None else _most_relevant(selection, relevance)
    return TiledLook(selection, relevance, _pixels(image, overview, chosen), fixations)


def _filled(tree: CellTree, measured: Measured, cells: Tensor, gain: Tensor, budget: int) -> Tensor:
    """The cells [K] in tree order: one or two children of the best cell that is left make up the count."""
    here = cells >= 0
    cells, gain = cells[here], gain[here]
    while len(cells) < budget:
        level = place_of(tree, cells)[0]
        best = int(torch.where(level > 0, gain, -torch.inf).argmax())
        below = children_of(tree, cells[None, best : best + 1])[0, 0]
        below = below[below >= 0]
        more = measured(below[None])[0].argsort(descending=True, stable=True)[: budget - len(cells)]
        gain[best] = -torch.inf
        cells, gain = torch.cat((cells, below[more])), torch.cat((gain, torch.full((len(more),), -torch.inf)))
    return cells.sort().values


def _most_relevant(selection: Selection, relevance: Tensor) -> Tensor:
    """Middle of the most relevant cell, of the finest of those that are equal. [1, 2]"""
    best = torch.where(relevance == relevance.max(), selection.levels[0], 99).argmin()
    return (selection.boxes[0, best, :2] + selection.boxes[0, best, 2:])[None] / 2


def _pixels(image: TiledImage, overview: Overview, cells: Tensor) -> Tensor:
    """Each cell's pixels at its own level: uint8 [K, 3, cell, cell]."""
    tree, top, scene = overview.tree, overview.level, overview.scene
    level, row, column = place_of(tree, cells)
    found = torch.empty(len(cells), 3, tree.cell, tree.cell, dtype=torch.uint8)
    coarse = level >= top
    if bool(coarse.any()):
        found[coarse] = tokens.patches(scene.levels, Selection.of(scene.tree, cells[None, coarse]))[0]
    for each in level[~coarse].unique().tolist():
        mine = level == each
        found[mine] = image.region(each, torch.stack((column[mine], row[mine]), 1) * tree.cell, tree.cell)
    return found


def _index(tree: CellTree, level: int, row: Tensor, column: Tensor) -> Tensor:
    return tree.offsets[level] + row * tree.shapes[level][1] + column


def _check_inside(tree: CellTree, points: Tensor | None) -> None:
    if points is None:
        return
    inside = ((points >= 0) & (points <= tree.sizes.flip(1)[:, None])).all(2)[0]
    if not bool(inside.all()):
        wrong = points[0, ~inside][0].tolist()
        raise InputError(f"fixation {wrong} lies outside its {tree.width} x {tree.height} pixels")
