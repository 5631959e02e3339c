"""The exact cut on a GPU, from gains to the indices of the chosen cells: the Triton twin of `allocators.cut.cut`.

`_max_pool` carries the largest gain up the tree and leaves, for every cell that may be split, a whole number of the
same order as its priority and the price of the split. Nothing is sorted: the first cell that the budget cannot pay is
searched for, hexadecimal digit by digit. Each step sums the prices of all cells at or above 16 candidates and keeps the
highest at which they exceed the budget; once the priority is known, the same search goes on over the place in the tree,
which decides between equals. Whatever comes before that cell is split, so that each cell can tell by itself, from its
own priority and its parent's, whether it is chosen, and a prefix sum says where it goes.

One program takes a whole tree (`_choose`), or many share a large one (`_search` for each digit, `_count`, `_gather`,
`_write`). All shapes are static and nothing waits for the GPU, so that a CUDA graph can hold either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

LARGE = 1 << 17  # a tree of more cells than this is shared by many programs
BLOCK = 512  # cells that a program looks at together
PROGRAMS = 1024  # that search large trees, together
TILE = 32  # side of the square of cells at which a program begins to carry gains up the tree

CANDIDATES = tl.constexpr(16)  # candidates at each step of the search
DIGITS = tl.constexpr(16)  # steps that find a priority; those that find a place follow
LOWEST = tl.constexpr(-(2**63))  # below every priority


@triton.jit
def _sortable_key(x):  # type: ignore[no-untyped-def]
    """A float64 as a whole number of the same order; both zeros are one."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int64, bitcast=True)
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@triton.jit
def _level_size(cells, level):  # type: ignore[no-untyped-def]
    """Cells along a side of a level, from those of the finest."""
    return ((cells - 1) >> tl.minimum(level, 31)) + 1


@triton.jit
def _image(image, budget):  # type: ignore[no-untyped-def]
    """Rows, columns and levels of an image, what the search may spend, and whether it is for a cut at all.

    With fewer tokens than roots (`few`) it is for the best roots by priority, with more tokens than finest cells
    (`many`) for the best of the other cells by `rest`.
    """
    rows, columns, depth = tl.load(image), tl.load(image + 1), tl.load(image + 2)
    quota, roots = tl.minimum(tl.load(image + 3), budget), tl.load(image + 4)
    few, many = quota < roots, quota > rows * columns
    capacity = quota - tl.where(few, 0, tl.where(many, rows * columns, roots))
    return rows, columns, depth, capacity, few, many


@triton.jit
def _in_level(r, c, h, w, level):  # type: ignore[no-untyped-def]
    """Which rows and columns a level has."""
    return (r < _level_size(h, level)) & (c < _level_size(w, level))


@triton.jit  # type: ignore[untyped-decorator]
def _store_rank(best, r, c, i, rest, keys, weights, image, tree, level: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store what cells are ranked by and what they take of the capacity: the price of a split, or 1 without a cut."""
    rows, columns, depth, _, few, many = image
    h, w, levels = tree
    valid = _in_level(r, c, rows, columns, level) & (level < depth)
    price = tl.zeros_like(i)
    if level > 0:
        price = (
            tl.minimum(_level_size(rows, level - 1) - 2 * r, 2) * tl.minimum(_level_size(columns, level - 1) - 2 * c, 2)
            - 1
        )
    price = tl.where(few, level == depth - 1, tl.where(many, level > 0, price))
    if many:
        best = tl.where(valid, _sortable_key(tl.load(rest + i, mask=valid, other=0)), LOWEST)
    inside = _in_level(r, c, h, w, level) & (level < levels)
    tl.store(keys + i, best, mask=inside)
    tl.store(weights + i, tl.where(valid, price, 0).to(tl.int8), mask=inside)


@triton.jit(do_not_specialize=["image_stride", "budget", "n", "size", "h", "w", "levels", "tiles"])  # type: ignore[untyped-decorator]
def _max_pool(  # type: ignore[no-untyped-def]
    gain, rest, keys, weights, images, image_stride, budget, n, size, h, w, levels, tiles,
    base: tl.constexpr, tile: tl.constexpr, rise: tl.constexpr,
):  # fmt: skip
    """One program carries the largest gain below `tile` x `tile` cells from level `base` up by `rise` levels."""
    b, pid = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    image, tree = _image(images + b * image_stride, budget), (h, w, levels)
    rows, columns, depth, _, _, _ = image
    gain, rest, keys, weights = gain + b * size, rest + b * size, keys + b * n, weights + b * n
    across = tl.cdiv(_level_size(w, base + 1), tile)
    top, left = pid // across * tile, pid % across * tile
    first = 0  # cell of the level
    for l in range(base + 1, levels):
        first += _level_size(h, l) * _level_size(w, l)
    best = tl.full((tile, tile), LOWEST, tl.int64)
    for corner in tl.static_range(4):
        r = 2 * (top + tl.arange(0, tile)[:, None]) + corner // 2
        c = 2 * (left + tl.arange(0, tile)[None, :]) + corner % 2
        valid, i = _in_level(r, c, rows, columns, base) & (base < depth), first + r * _level_size(w, base) + c
        if base > 0:  # the launch before left them
            best = tl.maximum(best, tl.load(keys + i, mask=valid, other=LOWEST))
        else:
            own = tl.where(valid, _sortable_key(tl.load(gain + i, mask=valid, other=0)), LOWEST)
            best = tl.maximum(best, own)
            if first < n:
                _store_rank(own, r, c, i, rest, keys, weights, image, tree, 0)
    for step in tl.static_range(rise):
        if step > 0:
            best = tl.max(tl.max(tl.reshape(best, (tile >> step, 2, tile >> step, 2)), 3), 1)
        first -= _level_size(h, base + 1 + step) * _level_size(w, base + 1 + step)
        r = (top >> step) + tl.arange(0, tile >> step)[:, None]
        c = (left >> step) + tl.arange(0, tile >> step)[None, :]
        valid, i = _in_level(r, c, rows, columns, base + 1 + step), first + r * _level_size(w, base + 1 + step) + c
        valid = valid & (base + 1 + step < depth)
        best = tl.maximum(best, tl.where(valid, _sortable_key(tl.load(gain + i, mask=valid, other=0)), LOWEST))
        _store_rank(best, r, c, i, rest, keys, weights, image, tree, base + 1 + step)


@triton.jit
def _shift(step, steps):  # type: ignore[no-untyped-def]
    """Where the digit of a step stands."""
    return 4 * (tl.where(step < DIGITS, DIGITS, steps) - 1 - tl.maximum(step, 0))


@triton.jit
def _next_part(step, threshold, low):  # type: ignore[no-untyped-def]
    """What the search goes on with: after the last digit of the priority, the first of the place."""
    return tl.where(step == DIGITS, low, threshold), tl.where(step == DIGITS, 0, low)


@triton.jit  # type: ignore[untyped-decorator]
def _weight_above(keys, weights, n, step, steps, threshold, low, begin, stride, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Weight of the cells at or above each candidate, in the blocks from `begin` on. [CANDIDATES]"""
    total = tl.zeros((CANDIDATES, block), tl.int32)
    for start in range(begin, n, stride):
        i = start + tl.arange(0, block)
        key = tl.load(keys + i, mask=i < n, other=LOWEST)
        weight = tl.load(weights + i, mask=i < n, other=0).to(tl.int32)
        place = tl.where(key == threshold, (n - 1 - i).to(tl.int64), -1)
        x = tl.where(step < DIGITS, key, tl.where(key > threshold, 1 << 62, place))
        candidate = tl.minimum(
            (x - low).to(tl.uint64, bitcast=True) >> _shift(step, steps).to(tl.uint64), CANDIDATES - 1
        )
        candidate = tl.where(x >= low, candidate.to(tl.int32), -1)
        total += tl.where(candidate[None, :] >= tl.arange(0, CANDIDATES)[:, None], weight[None, :], 0)
    return tl.sum(total, 1)


@triton.jit
def _narrow(weight_above, step, steps, low, above, capacity):  # type: ignore[no-untyped-def]
    """The highest candidate at which the weights exceed the capacity, and the weight of all that lies above it."""
    over = weight_above > capacity
    candidate = tl.maximum(tl.sum(over.to(tl.int32), 0) - 1, 0)
    low += candidate.to(tl.int64) << _shift(step, steps).to(tl.int64)
    return low, tl.maximum(above, tl.max(tl.where(over, 0, weight_above), 0))


@triton.jit
def _before(key, i, n, threshold, low):  # type: ignore[no-untyped-def]
    """Whether cells come before the first that exceeds the capacity."""
    return (key > threshold) | ((key == threshold) & (n - 1 - i > low))


@triton.jit
def _chosen(i, keys, n, cutoff, image, tree):  # type: ignore[no-untyped-def]
    """Which of the cells i an image gets, and which of its finest it could still get."""
    threshold, low = cutoff
    rows, columns, depth, _, few, many = image
    h, w, levels = tree
    level, first, begin = tl.zeros_like(i) + (levels - 1), tl.zeros_like(i), 0
    for l in range(1, levels):
        begin += _level_size(h, levels - l) * _level_size(w, levels - l)
        level, first = tl.where(i >= begin, levels - 1 - l, level), tl.where(i >= begin, begin, first)
    r, c = (i - first) // _level_size(w, level), (i - first) % _level_size(w, level)
    valid = _in_level(r, c, rows, columns, level) & (level < depth)
    root, above = valid & (level == depth - 1), level + 1
    parent = first - _level_size(h, above) * _level_size(w, above) + (r >> 1) * _level_size(w, above) + (c >> 1)
    split = _before(tl.load(keys + i, mask=valid & (i < n), other=LOWEST), i, n, threshold, low)
    in_tree = root | _before(tl.load(keys + parent, mask=valid & ~root, other=LOWEST), parent, n, threshold, low)
    cut = in_tree & ~(split & (level > 0))
    chosen = valid & tl.where(few, root & split, tl.where(many, split | (level == 0), cut))
    return chosen, valid & (level == 0) & ~chosen


@triton.jit
def _argmax(key, i):  # type: ignore[no-untyped-def]
    """The highest key and the first cell that has it."""
    highest = tl.max(key, 0)
    return highest, tl.min(tl.where(key == highest, i, 0x7FFFFFFF), 0)


@triton.jit
def _update_argmax(key, i, best, at):  # type: ignore[no-untyped-def]
    """The better of the best cell so far and the best of cells that come later; -1 while there is none."""
    highest, first = _argmax(key, i)
    return tl.maximum(best, highest), tl.where(highest > best, first, at)


@triton.jit  # type: ignore[untyped-decorator]
def _best_spare(rest, keys, n, size, cutoff, image, tree, begin, taken, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """The best of the finest cells from `begin` on that are not chosen, other than the one taken already."""
    best, at = tl.full((), LOWEST, tl.int64), tl.full((), -1, tl.int32)
    for start in range(begin, size, block):
        i = start + tl.arange(0, block)
        _, spare = _chosen(i, keys, n, cutoff, image, tree)
        spare = spare & (i != taken)
        key = tl.where(spare, _sortable_key(tl.load(rest + i, mask=spare, other=0)), LOWEST)
        best, at = _update_argmax(key, i, best, at)
    return at


@triton.jit(
    do_not_specialize=["image_stride", "budget", "n", "steps", "size", "first_fine", "max_chosen", "h", "w", "levels"]
)  # type: ignore[untyped-decorator]
def _choose(  # type: ignore[no-untyped-def]
    rest, keys, weights, out, images, image_stride, budget, n, steps, size, first_fine, max_chosen, h, w, levels,
    block: tl.constexpr,
):  # fmt: skip
    """One program chooses the cells of an image."""
    b = tl.program_id(0).to(tl.int64)
    image, tree = _image(images + b * image_stride, budget), (h, w, levels)
    capacity = image[3]
    rest, keys, weights, out = rest + b * size, keys + b * n, weights + b * n, out + b * max_chosen
    threshold, low, above = tl.full((), LOWEST, tl.int64), tl.full((), LOWEST, tl.int64), tl.full((), 0, tl.int32)
    for step in range(steps):
        threshold, low = _next_part(step, threshold, low)
        weight_above = _weight_above(keys, weights, n, step, steps, threshold, low, 0, block, block)
        low, above = _narrow(weight_above, step, steps, low, above, capacity)
    cutoff, left = (threshold, low), capacity - above  # 0, 1 or 2 tokens
    one = _best_spare(rest, keys, n, size, cutoff, image, tree, tl.where(left > 0, first_fine, size), -1, block)
    two = _best_spare(rest, keys, n, size, cutoff, image, tree, tl.where(left > 1, first_fine, size), one, block)
    count = tl.full((), 0, tl.int32)
    for start in range(0, size, block):
        i = start + tl.arange(0, block)
        chosen, _ = _chosen(i, keys, n, cutoff, image, tree)
        chosen = (chosen | (i == one) | (i == two)).to(tl.int32)
        slot = count + tl.cumsum(chosen, 0) - 1
        tl.store(out + slot, i.to(tl.int64), mask=(chosen > 0) & (slot < max_chosen))
        count += tl.sum(chosen, 0)
    for start in range(count, max_chosen, block):
        i = start + tl.arange(0, block)
        tl.store(out + i, tl.full((block,), -1, tl.int64), mask=i < max_chosen)


@triton.jit
def _search_state(state, sums, step, steps, capacity):  # type: ignore[no-untyped-def]
    """Where the search stands before a step, from where it stood before the last and what that one reached."""
    last, begun = step - 1, step > 0
    threshold = tl.load(state + 3 * last, mask=begun, other=LOWEST)
    low = tl.load(state + 3 * last + 1, mask=begun, other=LOWEST)
    above = tl.load(state + 3 * last + 2, mask=begun, other=0).to(tl.int32)
    weight_above = tl.load(sums + last * CANDIDATES + tl.arange(0, CANDIDATES), mask=begun, other=0)
    low, above = _narrow(weight_above, last, steps, low, above, capacity)
    threshold, low = _next_part(step, threshold, low)
    return threshold, low, above


@triton.jit(do_not_specialize=["image_stride", "budget", "n", "step", "steps", "programs"])  # type: ignore[untyped-decorator]
def _search(  # type: ignore[no-untyped-def]
    keys, weights, state, sums, images, image_stride, budget, n, step, steps, programs, block: tl.constexpr,
):  # fmt: skip
    """Many programs take one step of the search in a large tree; the next launch sees what they reached together."""
    b, pid = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    capacity = _image(images + b * image_stride, budget)[3]
    state, sums = state + b * steps * 3, sums + b * steps * CANDIDATES
    threshold, low, above = _search_state(state, sums, step, steps, capacity)
    tl.store(state + 3 * step, threshold, mask=pid == 0)
    tl.store(state + 3 * step + 1, low, mask=pid == 0)
    tl.store(state + 3 * step + 2, above.to(tl.int64), mask=pid == 0)
    begin, stride = pid * block, programs * block
    weight_above = _weight_above(keys + b * n, weights + b * n, n, step, steps, threshold, low, begin, stride, block)
    tl.atomic_add(sums + step * CANDIDATES + tl.arange(0, CANDIDATES), weight_above, sem="relaxed")


@triton.jit(do_not_specialize=["image_stride", "budget", "n", "steps", "size", "h", "w", "levels", "blocks"])  # type: ignore[untyped-decorator]
def _count(  # type: ignore[no-untyped-def]
    rest, keys, state, sums, counts, highest, spares, images, image_stride, budget, n, steps, h, w, levels, size,
    blocks, block: tl.constexpr,
):  # fmt: skip
    """Each program counts the chosen cells of a block, and names the two best of the finest that are not chosen."""
    b, pid = (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks
    image = _image(images + b * image_stride, budget)
    threshold, low, above = _search_state(state + b * steps * 3, sums + b * steps * CANDIDATES, steps, steps, image[3])
    i = pid * block + tl.arange(0, block)
    chosen, spare = _chosen(i, keys + b * n, n, (threshold, low), image, (h, w, levels))
    at = b * blocks + pid
    tl.store(counts + at, tl.sum(chosen.to(tl.int32), 0))
    spare = spare & (above < image[3])
    key = tl.where(spare, _sortable_key(tl.load(rest + b * size + i, mask=spare, other=0)), LOWEST)
    for place in tl.static_range(2):
        best, cell = _argmax(key, i)
        tl.store(highest + 2 * at + place, best)
        tl.store(spares + 2 * at + place, cell)
        key = tl.where(i == cell, LOWEST, key)


@triton.jit(do_not_specialize=["image_stride", "budget", "steps", "blocks"])  # type: ignore[untyped-decorator]
def _gather(  # type: ignore[no-untyped-def]
    state, sums, counts, highest, spares, extra, images, image_stride, budget, steps, blocks, block: tl.constexpr,
):  # fmt: skip
    """One program finds where the cells of each block of an image go, and which get the tokens that are left."""
    b = tl.program_id(0).to(tl.int64)
    capacity = _image(images + b * image_stride, budget)[3]
    _, _, above = _search_state(state + b * steps * 3, sums + b * steps * CANDIDATES, steps, steps, capacity)
    counts, highest, spares = counts + b * blocks, highest + 2 * b * blocks, spares + 2 * b * blocks
    before = tl.full((), 0, tl.int32)
    for start in range(0, blocks, block):
        i = start + tl.arange(0, block)
        count = tl.load(counts + i, mask=i < blocks, other=0)
        tl.store(counts + i, before + tl.cumsum(count, 0) - count, mask=i < blocks)
        before += tl.sum(count, 0)
    taken = tl.full((), -1, tl.int32)
    for place in tl.static_range(2):
        best, at = tl.full((), LOWEST, tl.int64), tl.full((), -1, tl.int32)
        for start in range(0, tl.where(above + place < capacity, 2 * blocks, 0), block):
            i = start + tl.arange(0, block)
            cell = tl.load(spares + i, mask=i < 2 * blocks, other=-1)
            key = tl.load(highest + i, mask=i < 2 * blocks, other=LOWEST)
            best, at = _update_argmax(tl.where(cell == taken, LOWEST, key), cell, best, at)
        tl.store(extra + 2 * b + place, at)
        taken = at


@triton.jit(do_not_specialize=["image_stride", "budget", "n", "steps", "max_chosen", "h", "w", "levels", "blocks"])  # type: ignore[untyped-decorator]
def _write(  # type: ignore[no-untyped-def]
    keys, state, sums, counts, extra, out, images, image_stride, budget, n, steps, h, w, levels, max_chosen, blocks,
    block: tl.constexpr,
):  # fmt: skip
    """Each program writes down the chosen cells of a block."""
    b, pid = (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks
    image = _image(images + b * image_stride, budget)
    threshold, low, _ = _search_state(state + b * steps * 3, sums + b * steps * CANDIDATES, steps, steps, image[3])
    i = pid * block + tl.arange(0, block)
    chosen, _ = _chosen(i, keys + b * n, n, (threshold, low), image, (h, w, levels))
    begin = tl.load(counts + b * blocks + pid)
    for place in tl.static_range(2):
        cell = tl.load(extra + 2 * b + place)
        chosen = chosen | (i == cell)
        begin += ((cell >= 0) & (cell < pid * block)).to(tl.int32)
    chosen = chosen.to(tl.int32)
    slot = begin + tl.cumsum(chosen, 0) - 1
    tl.store(out + b * max_chosen + slot, i.to(tl.int64), mask=(chosen > 0) & (slot < max_chosen))


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of a batch: rows and columns of each level, finest first, and the most cells and roots of an image.

    Shape:
        images int32 [1 or B, 5]: rows and columns of an image's finest cells, its levels, cells and roots.
    """

    shapes: Sequence[tuple[int, int]]
    images: Tensor
    cells: int
    roots: int

    @property
    def arguments(self) -> tuple[Tensor, int]:
        """What kernels know of images, and how far it is from one to the next."""
        return self.images, 5 * (len(self.images) > 1)

    @property
    def layout(self) -> tuple[int, int, int]:
        """Rows and columns of the finest cells, and levels."""
        return *self.shapes[0], len(self.shapes)


def chosen(trees: Trees, gain: Tensor, rest: Tensor, budget: int) -> Tensor:
    """The cells that `cut` chooses by `gain` and `rest` [B, N], in tree order, -1 behind the last: int64 [B, most]."""
    gain, rest = gain.double().contiguous(), rest.double().contiguous()
    with torch.cuda.device_of(gain):
        keys, weights = _priorities(trees, gain, rest, budget)
        return (_by_many_programs if gain.shape[1] > LARGE else _by_one_program)(trees, rest, keys, weights, budget)


def _priorities(trees: Trees, gain: Tensor, rest: Tensor, budget: int) -> tuple[Tensor, Tensor]:
    """What cells are ranked by, int64, and what they take of the capacity, int8: [B, n] of those that are searched."""
    B, size = gain.shape
    n = size - math.prod(trees.shapes[0]) if budget >= trees.roots else size  # roots can be finest cells
    keys, weights = gain.new_empty(B, n, dtype=torch.int64), gain.new_empty(B, n, dtype=torch.int8)
    tile = min(max(triton.next_power_of_2(max(trees.shapes[0])) // 2, 8), TILE)
    rise = tile.bit_length()
    for base in range(0, max(len(trees.shapes) - 1, 1), rise):
        tiles = math.prod(triton.cdiv(side, 2 * tile) for side in trees.shapes[base])
        sizes = *trees.arguments, budget, n, size, *trees.layout, tiles
        _max_pool[(B * tiles,)](gain, rest, keys, weights, *sizes, base=base, tile=tile, rise=rise, num_warps=8)
    return keys, weights


def _by_one_program(trees: Trees, rest: Tensor, keys: Tensor, weights: Tensor, budget: int) -> Tensor:
    """One program for each tree."""
    (B, n), size = keys.shape, rest.shape[1]
    out = keys.new_empty(B, min(budget, trees.cells))
    sizes = budget, n, _steps(n), size, size - math.prod(trees.shapes[0]), out.shape[1], *trees.layout
    _choose[(B,)](rest, keys, weights, out, *trees.arguments, *sizes, block=BLOCK, num_warps=8)
    return out


def _by_many_programs(trees: Trees, rest: Tensor, keys: Tensor, weights: Tensor, budget: int) -> Tensor:
    """Many programs for each tree."""
    (B, n), size, arguments = keys.shape, rest.shape[1], (*trees.arguments, budget)
    steps, programs = _steps(n), max(min(triton.cdiv(n, BLOCK), PROGRAMS // B), 1)
    state, sums = keys.new_empty(B, steps, 3), keys.new_zeros(B, steps, CANDIDATES.value, dtype=torch.int32)
    for step in range(steps):
        _search[(B * programs,)](
            keys, weights, state, sums, *arguments, n, step, steps, programs, block=BLOCK, num_warps=8
        )
    blocks = triton.cdiv(size, 2 * BLOCK)
    counts, spares = (keys.new_empty(B, blocks, k, dtype=torch.int32) for k in (1, 2))
    highest, extra = keys.new_empty(B, blocks, 2), keys.new_empty(B, 2, dtype=torch.int32)
    out = keys.new_full((B, min(budget, trees.cells)), -1)
    search, grid, options = (state, sums, counts), (B * blocks,), {"block": 2 * BLOCK, "num_warps": 8}
    _count[grid](rest, keys, *search, highest, spares, *arguments, n, steps, *trees.layout, size, blocks, **options)
    _gather[(B,)](*search, highest, spares, extra, *arguments, steps, blocks, **options)
    _write[grid](keys, *search, extra, out, *arguments, n, steps, *trees.layout, out.shape[1], blocks, **options)
    return out


def _steps(n: int) -> int:
    """Steps of a search among n cells: the digits of a priority, then those of a place."""
    return DIGITS.value + max(triton.cdiv(n.bit_length(), 4), 1)
