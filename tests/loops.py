"""Every allocator as one would write it by hand: plain Python loops over images and cells.

The slow twins of `homunculus.allocators`: the tests hold that both choose the same cells, the benchmark says how much
the batched versions gain. A loop has the name of its rule. Default options only. All arithmetic is on Python's own
numbers: no time is lost on tensors.
"""

from __future__ import annotations

import functools
import heapq
import math

import torch
from torch import Tensor

from homunculus.allocators import ALLOCATORS
from homunculus.cells import CellTree, Selection

E0, M0, DEGREES, PHASE = 0.75, 17.0, 20.0, 0.382
GOLDEN = math.pi * (3 - math.sqrt(5))


class Cells:
    """A tree of one image as lists."""

    def __init__(self, tree: CellTree) -> None:
        self.tree = tree
        self.height, self.width, self.cell, self.levels = tree.height, tree.width, tree.cell, tree.levels
        self.level, self.row, self.column = tree.level.tolist(), tree.row.tolist(), tree.column.tolist()
        self.parent = tree.parent.tolist()
        self.children = [[child for child in four if child >= 0] for four in tree.children.tolist()]
        self.fine = [i for i, level in enumerate(self.level) if level == 0]
        self.roots = [i for i, parent in enumerate(self.parent) if parent < 0]
        self.rows, self.columns = tree.shapes[0]

    def span(self, i: int) -> int:
        return self.cell << self.level[i]

    def centre(self, i: int) -> tuple[float, float]:
        return (self.column[i] + 0.5) * self.span(i), (self.row[i] + 0.5) * self.span(i)


@functools.lru_cache(1)
def _cells(tree: CellTree) -> Cells:
    return Cells(tree)


def select(name: str, tree: CellTree, relevance: Tensor, budget: int, fixation: Tensor) -> list[list]:
    """The chosen indices of every image in tree order; for `uniform`, its boxes."""
    cells = _cells(tree)
    rows = zip(relevance.double().tolist(), fixation.tolist(), strict=True)
    loop = globals()[ALLOCATORS[name].rule.__name__]
    return [loop(cells, r, budget, tuple(at)) for r, at in rows]


def allocate(name: str, tree: CellTree, relevance: Tensor, budget: int, fixation: Tensor) -> Selection | Tensor:
    """What `homunculus.allocate` gives (of `uniform` the boxes): the same work, tensors in and tensors out."""
    chosen = torch.tensor(select(name, tree, relevance, budget, fixation))
    return chosen if name == "uniform" else Selection.of(tree, chosen)


def fill(cells: Cells, chosen: set[int], score: list[float], budget: int) -> list[int]:
    for group in (cells.fine, range(len(cells.level))):
        rest = [i for i in group if i not in chosen]
        rest.sort(key=lambda i: (-score[i], i))
        chosen.update(rest[: max(0, min(budget, len(cells.level)) - len(chosen))])
    return sorted(chosen)


def top(items: list[int], score: dict[int, float] | list[float], count: int) -> list[int]:
    return sorted(items, key=lambda i: (-score[i], i))[: max(count, 0)]


# ---- plain rules --------------------------------------------------------------------------------------------------


def grid(cells, relevance, budget, fixation):
    return fill(cells, set(), relevance, budget)


coverage = grid


def random(cells, relevance, budget, fixation):
    wrap = (1 << 64) - 1

    def noise(i: int) -> float:
        state = 0
        for part in (cells.level[i], cells.row[i], cells.column[i]):
            state = (state + part + 0x9E3779B9) & wrap
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                state = ((state ^ (state >> shift)) * factor) & wrap
            state ^= state >> 31
        return (state >> 11) / 2**53

    return fill(cells, set(), [noise(i) for i in range(len(cells.level))], budget)


def uniform(cells, relevance, budget, fixation):
    best = None
    for n in range(1, min(budget, max(cells.rows, cells.columns)) + 1):
        for scale, rows, columns in (
            (n * cells.cell / cells.height, n, -(-n * cells.width // cells.height)),
            (n * cells.cell / cells.width, -(-n * cells.height // cells.width), n),
            (1.0, cells.rows, cells.columns),
        ):
            if rows * columns <= budget and scale <= 1 and (best is None or scale > best[0]):
                best = (scale, rows, columns)
    scale, rows, columns = best
    span = cells.cell / scale
    return [
        (c * span, r * span, min((c + 1) * span, cells.width), min((r + 1) * span, cells.height))
        for r in range(rows)
        for c in range(columns)
    ]


def pyramid(cells, relevance, budget, fixation):
    score = [max(r, 0) * 2.0 ** min(level, 3) for r, level in zip(relevance, cells.level, strict=True)]
    chosen = top([i for i, level in enumerate(cells.level) if level < 4], score, budget)
    return fill(cells, set(chosen), relevance, budget)


# ---- the cut: a queue of cells to split ---------------------------------------------------------------------------


def partition(cells: Cells, gain: list[float], budget: int) -> set[int]:
    priority = list(gain)
    for i in reversed(range(len(gain))):  # fine cells last: their parents learn from them
        above = cells.parent[i]
        if above >= 0 and priority[i] > priority[above]:
            priority[above] = priority[i]
    if budget < len(cells.roots):
        return set(top(cells.roots, priority, budget))
    chosen = set(cells.roots)
    queue = [(-priority[i], i) for i in cells.roots if cells.children[i]]
    heapq.heapify(queue)
    while queue:
        _, i = heapq.heappop(queue)
        if len(chosen) - 1 + len(cells.children[i]) > budget:
            break
        chosen.remove(i)
        for child in cells.children[i]:
            chosen.add(child)
            if cells.children[child]:
                heapq.heappush(queue, (-priority[child], child))
    return chosen


def dag(cells, relevance, budget, fixation):
    gain = [max(r, 0) * 2.0**level for r, level in zip(relevance, cells.level, strict=True)]
    return fill(cells, partition(cells, gain, budget), relevance, budget)


frequency = dag


def fractal(cells, relevance, budget, fixation):
    gain = [max(r, 0) * 2.0**level for r, level in zip(relevance, cells.level, strict=True)]
    for _ in range(2):  # levels that a look sees below a cell
        gain = [max([g, *(gain[child] for child in cells.children[i])]) for i, g in enumerate(gain)]
    if budget < len(cells.roots):
        return fill(cells, set(top(cells.roots, gain, budget)), relevance, budget)
    visible = set(cells.roots)
    while True:
        ready = top([i for i in visible if cells.children[i]], gain, 64)
        split = []
        for i in ready:
            price = sum(len(cells.children[each]) - 1 for each in [*split, i])
            if 4 * gain[i] < gain[ready[0]] or len(visible) + price > budget:
                break
            split.append(i)
        if not split:
            return fill(cells, visible, relevance, budget)
        for i in split:
            visible.remove(i)
            visible.update(cells.children[i])


def eccentricity(cells: Cells, fixation) -> list[float]:
    found = []
    for i in range(len(cells.level)):
        x, y = cells.centre(i)
        found.append(math.sqrt((x - fixation[0]) ** 2 + (y - fixation[1]) ** 2) / (cells.height / DEGREES))
    return found


def acuity(cells: Cells, fixation) -> list[float]:
    return [cells.span(i) * (M0 / (e + E0)) for i, e in enumerate(eccentricity(cells, fixation))]


def foveated(cells, relevance, budget, fixation):
    most = max(max(relevance), 1e-300)
    gain = [g * (max(r, 0) / most + 0.005) for g, r in zip(acuity(cells, fixation), relevance, strict=True)]
    largest = max(map(abs, relevance)) or 1.0
    near = [E0 / (e + E0) for e in eccentricity(cells, fixation)]
    rest = [r + largest * 1e-12 * n for r, n in zip(relevance, near, strict=True)]
    return fill(cells, partition(cells, gain, budget), rest, budget)


# ---- rings, spirals and learned bins on a cut that follows acuity -------------------------------------------------


def finish(cells, chosen, among, score, relevance, budget):
    budget = min(budget, len(cells.level))
    kept = top(list(chosen), score, budget)
    kept += top([i for i in among if i not in set(kept)], score, budget - len(kept))
    return fill(cells, set(kept), relevance, budget)


def fixated(cells, among, fixation):
    def away(i):
        x, y = cells.centre(i)
        return max(abs(x - fixation[0]), abs(y - fixation[1]))

    return min((i for i in among if away(i) <= cells.span(i) / 2), key=lambda i: (away(i), i), default=None)


def best_of_each(bins, relevance):
    best = {}
    for i, where in sorted(bins.items()):
        if where not in best or relevance[i] > relevance[best[where]]:
            best[where] = i
    return set(best.values())


def offsets(cells, among, fixation):
    return {i: (cells.centre(i)[0] - fixation[0], cells.centre(i)[1] - fixation[1]) for i in among}


def logpolar(cells, relevance, budget, fixation):
    rings = max(1, math.isqrt((budget - 1) * 16 // 17))
    sectors = max(1, (budget - 1) // rings)
    among = sorted(partition(cells, acuity(cells, fixation), round(1.5 * budget)))
    e = eccentricity(cells, fixation)
    rho = {i: math.log(e[i] + 0.35) for i in among}
    low, high = min(rho.values()), max(rho.values())
    bins = {}
    for i, (dx, dy) in offsets(cells, among, fixation).items():
        ring = min(int((rho[i] - low) / max(high - low, 1e-300) * rings), rings - 1)
        turn = math.atan2(dy, dx) / (2 * math.pi) + PHASE / sectors
        bins[i] = ring, min(int((turn - math.floor(turn)) * sectors), sectors - 1)
    bins.pop(fixated(cells, among, fixation), None)
    return _with_fixation(cells, best_of_each(bins, relevance), among, relevance, relevance, budget, fixation)


def _with_fixation(cells, chosen, among, score, relevance, budget, fixation):
    score = {i: score[i] for i in among}
    here = fixated(cells, among, fixation)
    if here is not None:
        chosen.add(here)
        score[here] = math.inf
    return finish(cells, chosen, among, score, relevance, budget)


def vortex(cells, relevance, budget, fixation):
    among = sorted(partition(cells, acuity(cells, fixation), round(1.5 * budget)))
    e = eccentricity(cells, fixation)
    rho = {i: math.log((e[i] + E0) / E0) for i in among}
    outmost = max(max(rho.values()), 1e-300)
    nearness = {}
    for i, (dx, dy) in offsets(cells, among, fixation).items():
        winding = 8.0 * rho[i] / outmost - math.atan2(dy, dx) / (2 * math.pi)
        nearness[i] = -abs(winding - round(winding))
    chosen = set(top(among, nearness, budget))
    return _with_fixation(cells, chosen, among, nearness, relevance, budget, fixation)


def pseudo_logpolar(cells, relevance, budget, fixation):
    bins = min(max(1, budget - 1), 1024)
    inside = round(bins * 0.25)
    centres = []
    for j in range(bins):
        if j < inside:
            r = math.sqrt((j + 0.5) / inside) * 1.5
        else:
            r = 1.5 * (14.0 / 1.5) ** ((j - inside + 0.5) / (bins - inside))
        centres.append((r * math.cos(j * GOLDEN), r * math.sin(j * GOLDEN), r + E0))
    among = sorted(partition(cells, acuity(cells, fixation), round(1.5 * budget)))
    scale = cells.height / DEGREES
    where = {}
    for i, (dx, dy) in offsets(cells, among, fixation).items():
        x, y = dx / scale, dy / scale
        where[i] = min(
            range(bins), key=lambda j: ((x - centres[j][0]) ** 2 + (y - centres[j][1]) ** 2) / centres[j][2] ** 2
        )
    return _with_fixation(cells, best_of_each(where, relevance), among, relevance, relevance, budget, fixation)


# ---- shares: strata and segments ----------------------------------------------------------------------------------


def whole(relevance: list[float], among: list[int]) -> dict[int, int]:
    most = max(max((relevance[i] for i in among), default=0), 0, 1e-300)
    return {i: round(max(relevance[i], 0) / most * 2.0**40) for i in among}


def share_out(
    relevance, groups: dict[int, list[int]], worth: dict[int, float], count: int, one_each: bool
) -> list[int]:
    """Token by token to the group with the highest worth / (2 j - 1); its best cell that is left."""
    queue, total = [], max(sum(worth.values()), 1e-300)
    for group, members in groups.items():
        members.sort(key=lambda i: (-relevance[i], i))
        heapq.heappush(queue, (-worth[group] / total - 2.0 * one_each, group, 0))
    chosen = []
    while queue and len(chosen) < count:
        _, group, j = heapq.heappop(queue)
        chosen.append(groups[group][j])
        if j + 1 < len(groups[group]):
            heapq.heappush(queue, (-worth[group] / total / (2 * j + 3), group, j + 1))
    return chosen


def worths(cells, relevance, groups):
    values = whole(relevance, cells.fine)
    worth = {group: sum(values[i] for i in members) for group, members in groups.items()}
    return worth if any(worth.values()) else {group: len(members) for group, members in groups.items()}


def serve(cells, relevance, budget, down, across):
    groups: dict[int, list[int]] = {}
    for i in cells.fine:
        stratum = cells.row[i] * down // cells.rows * across + cells.column[i] * across // cells.columns
        groups.setdefault(stratum, []).append(i)
    chosen = share_out(relevance, groups, worths(cells, relevance, groups), budget, one_each=True)
    return fill(cells, set(chosen), relevance, budget)


def stratified(cells, relevance, budget, fixation):
    return serve(cells, relevance, budget, 4, 4)


def adaptive_stratified(cells, relevance, budget, fixation):
    values = whole(relevance, cells.fine)
    chosen = []
    for along, count in ((cells.row, cells.rows), (cells.column, cells.columns)):
        profile = [0] * count
        for i in cells.fine:
            profile[along[i]] += values[i]
        most = max(profile)
        p = [(v >> 20) * 2**20 // max(most >> 20, 1) for v in profile] if most else [2**20] * count
        spread = float(sum(p)) ** 2 / float(sum(v * v for v in p)) / count
        chosen.append(min(max(math.ceil(spread * 8), 2), 8))
    return serve(cells, relevance, budget, *chosen)


def atlas(cells, relevance, budget, fixation):
    budget = min(budget, len(cells.level))
    values = whole(relevance, cells.fine)
    total = sum(values.values())
    groups: dict[int, list[int]] = {}
    for i in cells.fine:
        groups.setdefault(int(values[i] * len(cells.fine) > total), []).append(i)
    worth = worths(cells, relevance, groups)
    total = float(sum(worth.values()))
    front = {g for g in groups if float(worth[g]) * len(cells.fine) >= total * len(groups[g])}
    share = min(max(sum(float(worth[g]) for g in front) / total, 0.25), 0.9)
    chosen = set(
        share_out(relevance, {g: groups[g] for g in front}, {g: worth[g] for g in front}, round(share * budget), True)
    )
    behind = {i for g in groups if g not in front for i in groups[g]}
    return fill(cells, chosen | background(cells, relevance, chosen, behind, budget - len(chosen)), relevance, budget)


def background(cells, relevance, taken, behind, room):
    inside, there = [0] * len(cells.level), [0] * len(cells.level)
    for i in reversed(range(len(cells.level))):
        if cells.level[i] == 0:
            inside[i], there[i] = int(i in behind), 1
        if cells.parent[i] >= 0:
            inside[cells.parent[i]] += inside[i]
            there[cells.parent[i]] += there[i]
    for level in range(cells.levels):
        mostly = [i for i, l in enumerate(cells.level) if l == level and inside[i] / there[i] >= 0.5]
        if len(mostly) <= room or level == cells.levels - 1:
            return set(top([i for i in mostly if i not in taken], relevance, room))
    return set()


# ---- several trees under one budget: one queue ---------------------------------------------------------------------


def forest(name: str, trees: list[CellTree], relevances: list[Tensor], budget: int, fixations: list) -> list[list[int]]:
    """The chosen indices of every tree, for rules without ties between trees of one shape."""
    many, rest = [Cells(tree) for tree in trees], [r.double().tolist() for r in relevances]
    order = sorted(range(len(trees)), key=lambda t: (many[t].height, many[t].width))
    gain = _forest_gains(name, many, rest, fixations)
    if name == "foveated":
        largest = max(abs(r) for row in rest for r in row) or 1.0
        near = [[E0 / (e + E0) for e in eccentricity(c, at)] for c, at in zip(many, fixations, strict=True)]
        rest = [[r + largest * 1e-12 * n for r, n in zip(*rows, strict=True)] for rows in zip(rest, near, strict=True)]
    for cells, priority in zip(many, gain, strict=True):
        for i in reversed(range(len(priority))):
            if cells.parent[i] >= 0:
                priority[cells.parent[i]] = max(priority[cells.parent[i]], priority[i])

    def by(score: list[list[float]], cell: tuple[int, int]) -> tuple:
        t, i = cell
        return -score[t][i], -many[t].level[i], order.index(t), i

    roots = [(t, i) for t, cells in enumerate(many) for i in cells.roots]
    if budget < len(roots):
        chosen = set(sorted(roots, key=lambda cell: by(gain, cell))[:budget])
    else:
        chosen = set(roots)
        queue = [(by(gain, (t, i)), t, i) for t, i in roots if many[t].children[i]]
        heapq.heapify(queue)
        while queue:
            _, t, i = heapq.heappop(queue)
            if len(chosen) - 1 + len(many[t].children[i]) > budget:
                break
            chosen.remove((t, i))
            for child in many[t].children[i]:
                chosen.add((t, child))
                if many[t].children[child]:
                    heapq.heappush(queue, (by(gain, (t, child)), t, child))
    for fine in (True, False):
        left = [(t, i) for t, cells in enumerate(many) for i in (cells.fine if fine else range(len(cells.level)))]
        left = sorted(set(left) - chosen, key=lambda cell: by(rest, cell))
        chosen.update(left[: max(0, budget - len(chosen))])
    return [sorted(i for t, i in chosen if t == tree) for tree in range(len(trees))]


def _forest_gains(name: str, many: list[Cells], rest: list[list[float]], fixations: list) -> list[list[float]]:
    if name == "foveated":
        most = max(max(r for row in rest for r in row), 1e-300)
        return [
            [g * (max(r, 0) / most + 0.005) for g, r in zip(acuity(cells, at), row, strict=True)]
            for cells, row, at in zip(many, rest, fixations, strict=True)
        ]
    return [
        [max(r, 0) * 2.0**level for r, level in zip(row, cells.level, strict=True)]
        for cells, row in zip(many, rest, strict=True)
    ]
