"""One cut over many trees under one budget: an image that needs many tokens borrows from those that need few."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from homunculus.allocators.cut import Ranking, partition
from homunculus.allocators.forest import Forest
from homunculus.allocators.frame import Request, fill, numbers, relative
from homunculus.allocators.legibility import MIN_PRINT, check_lines
from homunculus.allocators.registry import Allocator
from homunculus.allocators.wording import per_image
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError, shown, whole_number
from homunculus.fixation import eccentricity, peak

AT_ONCE = 2**20  # cells that are worked on at once where each image is for itself


@dataclass(frozen=True, eq=False)
class TreeGroup:
    """Images whose trees have one shape, and what is known of each.

    Shape:
        places [T] in the list that was given; relevance [T, N]; weights [T]; fixation [T, F, 2] or None for the peak of
        the relevance; per_cell: options [T, N, ...] of the rule; lines: a tensor [n, 5] for each; questions [T].
    """

    tree: CellTree
    places: list[int]
    relevance: Tensor
    weights: Tensor
    fixation: Tensor | None
    per_cell: Mapping[str, Tensor]
    lines: list[Tensor] | None
    questions: list[str] | None

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, eq=False)
class ForestRequest(Request):
    """The request for a forest: all cells of all images in one row. Fixations are those of the groups."""

    tree: Forest
    groups: Sequence[TreeGroup] = ()

    @property
    def images(self) -> int:
        """How many images there are."""
        return sum(map(len, self.groups))

    @property
    def image(self) -> Tensor:
        """Of which image each cell is. [1, N]"""
        return self.tree.tree_of

    def by_tree(self, make: Callable[[CellTree, range], Tensor]) -> Tensor:
        """A value for each cell [1, N] from `make(tree, images)`, which gives them for images that share a tree."""
        ends = accumulate(map(len, self.groups))
        return self.tree.lay(
            [make(own.tree, range(end - len(own), end)) for own, end in zip(self.groups, ends, strict=True)]
        )

    def eccentricity(self, degrees: float) -> Tensor:
        """Distance of each cell from the nearest fixation in its image, in degrees. float64 [1, N]"""
        return self.tree.lay([_eccentricity(group, degrees) for group in self.groups])


def _eccentricity(group: TreeGroup, degrees: float) -> Tensor:
    """Some images at once, whose numbers stay in the cache. [T, N]"""
    tree, fixation, parts = group.tree, group.fixation, []
    rows = max(1, AT_ONCE // tree.size)
    for i in range(0, len(group), rows):
        at = peak(tree, group.relevance[i : i + rows]) if fixation is None else fixation[i : i + rows]
        parts.append(eccentricity(tree, at, degrees))
    return torch.cat(parts)


def choose(
    allocator: Allocator,
    trees: Sequence[CellTree],
    relevances: Sequence[Tensor] | Tensor,
    budget: int,
    fixation: Sequence[Tensor] | Tensor | None,
    weights: Sequence[float] | Tensor | None,
    options: Mapping[str, Any],
) -> list[Selection]:
    """What `allocate_forest` gives."""
    shapes, budget = _shapes(trees), whole_number("budget", budget)
    known = _known(allocator, trees, relevances, fixation, weights, options)
    groups = [known.group(trees[places[0]], places) for places in shapes]
    forest = Forest([(group.tree, len(group)) for group in groups])
    given = {key: value for key, value in options.items() if value is not None}
    for key in groups[0].per_cell:
        given[key] = forest.lay([group.per_cell[key] for group in groups])
    if groups[0].lines is not None:
        given["lines"] = [lines for group in groups for lines in group.lines or ()]
    if groups[0].questions is not None:
        given["question"] = [question for group in groups for question in group.questions or ()]
    relevance = forest.lay([group.relevance for group in groups]).double()
    nowhere = relevance.new_zeros(1, 0, 2)  # the fixations are those of the groups
    request = ForestRequest(forest, relevance, nowhere, min(budget, forest.size), groups=groups)
    ranking = allocator.rule(request, **given)
    if not isinstance(ranking, Ranking):
        raise TypeError(f"{allocator.name} is registered as a cut but gives no ranking")
    ranking = _weighted(forest, groups, ranking)
    mask = fill(request, partition(request, forest.subtree_max(ranking.gain)), ranking.rest)
    return _selections(forest, groups, mask)


def _weighted(forest: Forest, groups: Sequence[TreeGroup], ranking: Ranking) -> Ranking:
    """The ranking with that of each tree times its weight; one weight for all changes nothing."""
    weights = torch.cat([group.weights for group in groups])
    largest = weights.amax()
    if bool((weights == largest).all()):
        return ranking
    each = [(group.weights / largest)[:, None].expand(-1, group.tree.size) for group in groups]
    factor, rest = forest.lay(each), ranking.rest
    return Ranking(relative(ranking.gain) * factor, torch.where(rest > 0, rest * factor, rest))


def _selections(forest: Forest, groups: Sequence[TreeGroup], mask: Tensor) -> list[Selection]:
    """The selection of each image, from the mask [1, N] of the forest."""
    found: dict[int, Selection] = {}
    for group, chosen in zip(groups, forest.gather(mask), strict=True):
        tree, counts = group.tree, chosen.sum(1).tolist()
        cells = chosen.nonzero()[:, 1][None]  # [1, K] of all trees, one after the other
        parts = (tree.boxes(cells), tree.level[cells], cells, torch.ones_like(cells, dtype=torch.bool))
        split = zip(*(part.split(counts, 1) for part in parts), strict=True)
        for place, (boxes, levels, indices, there) in zip(group.places, split, strict=True):
            found[place] = Selection(boxes, levels, indices, there, tree.sizes, tree.cell)
    return [found[place] for place in range(len(found))]


# ---- what was given, checked, by shape of tree --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of each image, in the order that was given: the fields of `TreeGroup` as lists."""

    relevance: list[Tensor]
    weights: list[float]
    fixation: list[Tensor] | None
    per_cell: Mapping[str, list[Tensor]]
    lines: list[Tensor] | None
    questions: list[str] | None

    def order(self, places: list[int]) -> list[int]:
        """Places of trees of one shape by what is known of them, however they were given."""
        if len(places) == 1:
            return places
        lists = (self.relevance, self.fixation, *self.per_cell.values(), self.lines, self.questions)
        given = [each for each in lists if each is not None]
        ranks = {i: (-self.weights[i], _digest(each[i] for each in given)) for i in places}
        return sorted(places, key=ranks.__getitem__)

    def group(self, tree: CellTree, places: list[int]) -> TreeGroup:
        """The images at these places, whose trees have one shape."""
        device, places = self.relevance[0].device, self.order(places)
        return TreeGroup(
            tree.to(device),
            places,
            _finite(torch.stack([self.relevance[i] for i in places]), places),
            torch.tensor([self.weights[i] for i in places], dtype=torch.float64, device=device),
            None if self.fixation is None else _together([self.fixation[i] for i in places]).to(device),
            {key: torch.stack([values[i] for i in places]).to(device) for key, values in self.per_cell.items()},
            None if self.lines is None else [self.lines[i] for i in places],
            None if self.questions is None else [self.questions[i] for i in places],
        )


def _known(
    allocator: Allocator,
    trees: Sequence[CellTree],
    relevances: Sequence[Tensor] | Tensor,
    fixation: Sequence[Tensor] | Tensor | None,
    weights: Sequence[float] | Tensor | None,
    options: Mapping[str, Any],
) -> Known:
    count = len(trees)
    lists = {key for key in allocator.per_cell & options.keys() if not isinstance(options[key], (str, type(None)))}
    allocator.check({key: value for key, value in options.items() if key not in lists})
    if options.get("scales", 1) != 1:
        raise InputError("scales must be 1 for several trees: cells of different scales have no cut in common")
    relevance = _rows("relevance", _one_each("relevances", relevances, count), trees, 1)
    device = relevance[0].device
    if any(row.device != device for row in relevance):
        raise InputError(f"relevances must be on one device, they are on {device} and others")
    per_cell = {key: _rows(key, _one_each(key, options[key], count), trees, 2) for key in sorted(lists)}
    for key, values in per_cell.items():
        if len({value.shape[1:] for value in values}) > 1:
            raise InputError(f"{key} must have as many values a cell in all trees, got {shown([*map(_shape, values)])}")
    lines, question = options.get("lines"), options.get("question")
    return Known(
        relevance,
        check_weights(weights, count),
        None if fixation is None else _points(_one_each("fixation", fixation, count), trees),
        per_cell,
        None if lines is None else check_lines(_one_each("lines", lines, count), MIN_PRINT, device),
        None if question is None else per_image(question, count),
    )


def _shapes(trees: Sequence[CellTree]) -> list[list[int]]:
    """The places of the trees of each shape, in the order of the shapes: low and narrow ones first."""
    if not isinstance(trees, (list, tuple)) or not trees:
        raise InputError(f"trees must be a list of at least one CellTree, got {shown(trees)}")
    places: dict[tuple[int, ...], list[int]] = {}
    for i, tree in enumerate(trees):
        if not isinstance(tree, CellTree) or tree.is_bucket:
            what = "a tree of several images" if isinstance(tree, CellTree) else shown(tree)
            raise InputError(f"trees must be a CellTree for each image, tree {i} is {what}")
        places.setdefault((tree.height, tree.width, tree.cell, tree.levels), []).append(i)
    return [places[key] for key in sorted(places)]


def _one_each(name: str, values: Any, count: int) -> list[Any]:
    """One value for each tree, given as a list or along the first axis of a tensor."""
    if not hasattr(values, "__len__") or isinstance(values, str) or len(values) != count:
        raise InputError(f"{name} must be a list of {count}, one for each tree, got {_described(values)}")
    return list(values)


def _described(values: Any) -> str:
    return f"{len(values)}" if isinstance(values, (list, tuple, Tensor)) else shown(values)


def _rows(name: str, given: list[Any], trees: Sequence[CellTree], axes: int) -> list[Tensor]:
    """The values [N] of each tree's cells, or [N, O] where two axes may be; a batch of 1 is taken too."""
    rows = []
    for i, (values, tree) in enumerate(zip(given, trees, strict=True)):
        row = numbers(f"{name} of tree {i}", values).detach()
        row = row[0] if row.ndim > 1 and row.shape[:2] == (1, tree.size) else row
        if not 1 <= row.ndim <= axes or len(row) != tree.size:
            raise InputError(f"{name} of tree {i} must be [{tree.size}] for {tree!r}, got {_shape(row)}")
        rows.append(row)
    return rows if len({row.dtype for row in rows}) == 1 else [row.double() for row in rows]


def _shape(values: Tensor) -> list[int]:
    return list(values.shape)


def _finite(relevance: Tensor, places: list[int]) -> Tensor:
    if not bool(torch.isfinite(relevance.sum())) and not bool((finite := torch.isfinite(relevance)).all()):
        t, n = (~finite).nonzero()[0].tolist()
        raise InputError(f"relevance must be finite, got {relevance[t, n].item()} in tree {places[t]}, cell {n}")
    return relevance


def _points(given: list[Any], trees: Sequence[CellTree]) -> list[Tensor]:
    """The fixations of each tree, float64 [F, 2]."""
    found = []
    for i, (values, tree) in enumerate(zip(given, trees, strict=True)):
        points = numbers(f"fixation of tree {i}", values).detach().cpu().double()
        if not 1 <= points.ndim <= 3 or points.shape[-1] != 2 or not points.numel():
            raise InputError(f"fixation of tree {i} must be [2] or [F, 2] in pixels, got {_shape(points)}")
        found.append(points.reshape(-1, 2))
        for x, y in found[-1].tolist():
            if not (0 <= x <= tree.width and 0 <= y <= tree.height):
                size = f"{tree.width} x {tree.height}"
                raise InputError(f"fixation {[x, y]} of tree {i} lies outside its {size} pixels")
    return found


def _together(points: list[Tensor]) -> Tensor:
    """Fixations of several trees; fewer than others have are filled up with the last. [T, F, 2]"""
    most = max(map(len, points))
    return torch.stack([torch.cat((at, at[-1:].expand(most - len(at), 2))) for at in points])


def check_weights(weights: Sequence[float] | Tensor | None, count: int) -> list[float]:
    """A weight for each of `count` images, checked; 1 unless told."""
    if weights is None:
        return [1.0] * count
    given = numbers("weights", weights).double()
    if given.shape != (count,) or not bool(((given > 0) & (given < torch.inf)).all()):
        raise InputError(
            f"weights must be {count} finite numbers above 0, one for each image, got {shown(given.tolist())}"
        )
    return given.tolist()


def _digest(known: Iterable[Tensor | str]) -> bytes:
    """A hash of all that is known of an image."""
    digest = hashlib.blake2b(digest_size=16)
    for each in known:
        if isinstance(each, Tensor):
            values = each.cpu()
            digest.update((values.double() if values.dtype == torch.bfloat16 else values).contiguous().numpy().data)
        else:
            digest.update(each.encode())
    return digest.digest()
