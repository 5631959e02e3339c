"""Cells out of the kernels: what torch cuts out of a whole pyramid, in every layout, from as little as they need."""

import math
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch

from homunculus import CellTree, Selection, adapters, allocate, pyramid, tokens
from homunculus.adapters import qwen
from pyramids import devices, pixels
from vlms import tiny

pytest.importorskip("triton")


def chosen(rule: str, size: tuple[int, int], budget: int, batch: int, cell: int) -> tuple[torch.Tensor, Selection]:
    tree, x = CellTree(*size, cell, levels=None if cell > 8 else 3), pixels(batch, 3, *size)
    lots = torch.Generator().manual_seed(budget)
    return x, allocate(rule, tree, torch.rand(batch, tree.size, generator=lots), budget)


def cells_of(selection: Selection, device: str):
    from homunculus.kernels.gather import Cells

    return Cells(*(part.to(device) for part in (selection.boxes, selection.levels, selection.mask, selection.sizes)))


CASES = [
    ("pyramid", (9, 14), 5, 1, 4),
    ("uniform", (5, 7), 1, 1, 4),  # one cell: to the interpreter those between levels are the longest
]
LARGE = [
    ("foveated", (2048, 2048), 273, 2, 32),
    ("foveated", (1753, 1241), 273, 2, 28),
    ("uniform", (700, 900), 64, 2, 32),
    ("vortex", (1000, 777), 150, 2, 32),
    ("uniform", (9, 14), 2, 1, 4),
]


@devices
@pytest.mark.parametrize("case", CASES + [pytest.param(case, marks=pytest.mark.gpu) for case in LARGE])
def test_cells_are_those_of_torch(device, kernels, case):
    from homunculus.kernels import gather, mip

    x, selection = chosen(*case)
    cell, count = case[-1], math.ceil(selection.levels.max()) + 1
    levels = pyramid.gaussian(x, count)
    expected = tokens.patches(levels, selection)
    cells, image = cells_of(selection, device), x.to(device)
    built = [image, *mip.build(image, count - 1)]
    assert mip.is_built(built)
    assert count == 1 or not mip.is_built([image, *(level.clone() for level in built[1:])])
    for found in (gather.gather(built, cells, cell), gather.build_and_gather(image, count, cells, cell)):
        apart = (found.cpu().int() - expected.int()).abs()
        if selection.indices is not None:
            assert apart.max() == 0
        else:  # sums of floats in another order: a value between two may go either way
            assert apart.max() <= 1 and (apart > 0).float().mean() < 0.01


CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
COLOURS = [(((0.5,) * 3, (0.5,) * 3), True), (((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)), False)]
COLOURS += [pytest.param(CLIP, True, marks=pytest.mark.gpu)]


@devices
@pytest.mark.parametrize(("colours", "straight"), COLOURS)
def test_cells_come_in_the_layout_of_a_tower(device, kernels, colours, straight):
    """To the bit, for every value of a channel, whether rounded colours lie on a line, as most do, or one does not."""
    from homunculus.kernels import gather, mip

    _, selection = chosen("pyramid", (16, 16), 6, 1, 8)  # all cells
    x = torch.stack([torch.randperm(256).view(16, 16) for _ in range(3)])[None].to(torch.uint8)
    count = int(selection.levels.max()) + 1
    assert (selection.levels == 0).sum() == 4 and count == 3
    mean, deviation = colours
    expected = tokens.patches(pyramid.gaussian(x, count), selection).float() / 255
    expected = (expected - torch.tensor(mean)[:, None, None]) / torch.tensor(deviation)[:, None, None]
    image, cells = x.to(device), cells_of(selection, device)
    built = [image, *mip.build(image, count - 1)]
    plain = gather.gather(built, cells, 8, gather.PatchLayout.normalised(torch.float32, mean, deviation, device=device))
    torch.testing.assert_close(plain.cpu(), expected)
    blocks = expected.flatten(0, 1).view(-1, 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5)  # [K, m, m, 3, p, p]
    blocks = blocks[:, :, :, :, None].expand(-1, -1, -1, -1, 2, -1, -1).reshape(-1, 3 * 2 * 4 * 4)
    layout = gather.PatchLayout.normalised(torch.bfloat16, mean, deviation, 2, 2, device)
    assert (layout.affine is not None) is straight
    check_colours(gather.gather(built, cells, 8, layout), blocks.bfloat16(), device == "cpu" and straight)


def check_colours(found: torch.Tensor, expected: torch.Tensor, nearly: bool) -> None:
    """To the bit; `nearly` where Triton's interpreter reckons, which cuts floats of 16 bits off without rounding."""
    apart = {"rtol": 2**-7, "atol": 1e-6} if nearly else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(found.cpu(), expected.cpu(), **apart)


def laid(levels: list[torch.Tensor], device: str, skew: int = 0) -> list[torch.Tensor]:
    """Levels as the kernels lay them, among other bytes; the image begins `skew` bytes after a word does."""
    from homunculus.kernels import mip

    x = levels[0]
    place, total = mip.level_places(*x.shape[2:], 3, len(levels) - 1)
    image = torch.full((x.numel() + 16,), 77, dtype=torch.uint8, device=device)[skew : skew + x.numel()].view_as(x)
    rest = torch.full((len(x), total), 77, dtype=torch.uint8, device=device)
    found = [image.copy_(x)]
    for level, (h, w, pitch, start) in zip(levels[1:], place, strict=False):
        found.append(rest.as_strided((len(x), 3, h, w), (total, h * pitch, pitch, 1), start).copy_(level))
    assert mip.is_built(found)
    return found


@pytest.fixture
def read(device: str, kernels: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Places and sizes of words that the interpreter reads, which does not mind where they begin: a GPU does."""
    found: list[tuple[int, int]] = []
    if device == "cpu":
        from triton.runtime.interpreter import InterpreterBuilder

        usual, usual_ = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

        def places(pointers, mask):
            size, active = max(1, pointers.get_element_ty().primitive_bitwidth // 8), mask.data.astype(bool)
            assert not (pointers.data[active] % size).any()
            return [(int(place), size) for place in pointers.data[active]]

        def load(self, pointers, mask, *rest):
            found.extend(places(pointers, mask) if pointers.data.size > 1 else [])
            return usual(self, pointers, mask, *rest)

        def store(self, pointers, value, mask, *rest):
            places(pointers, mask)
            return usual_(self, pointers, value, mask, *rest)

        monkeypatch.setattr(InterpreterBuilder, "create_masked_load", load)
        monkeypatch.setattr(InterpreterBuilder, "create_masked_store", store)
    return found


def edges(tree: CellTree, many: int) -> Selection:
    """The first and last cells of each level of each image, `many` in all, and then a place that is empty."""
    rows = []
    for b in range(len(tree.sizes)):
        each = [(tree.valid[b] & (tree.level == l)).nonzero()[:, 0].tolist() for l in range(tree.levels)]
        row = [ends[k] for k in (-1, 0) for ends in each if ends] + [k for ends in each for k in ends[1:-1]]
        rows.append([*row[:many], *[-1] * (many + 1 - len(row[:many]))])
    return Selection.of(tree, torch.tensor(rows))


ANYWHERE = [  # cell, sizes of images, parts of a cell, type, where the image begins
    (8, [(19, 43), (12, 24)], 0, torch.uint8, 0),  # rows that begin between words
    (8, [(16, 40), (5, 3)], 2, torch.bfloat16, 3),  # less than a cell and than a word
    (16, [(16, 40), (5, 3)], 2, torch.uint8, 7),
    (8, [(16, 30)], 0, torch.uint8, 0),  # of the second level, one column is missing
    (5, [(7, 12)], 0, torch.uint8, 1),
    (14, [(20, 30)], 2, torch.float16, 0),
    (28, [(40, 60), (28, 57)], 2, torch.bfloat16, 0),
    (28, [(28, 28)], 0, torch.uint8, 4),
    (32, [(40, 96), (33, 45)], 0, torch.uint8, 0),
    (32, [(32, 64)], 2, torch.float32, 0),
]
ANYWHERE_LARGE = [
    (cell, sizes, merge, dtype, skew)
    for cell, sizes in (
        (8, [(301, 403), (300, 64), (7, 9)]),
        (14, [(301, 403), (300, 64), (7, 9)]),
        (28, [(560, 840), (333, 333), (28, 1000)]),
        (32, [(1024, 960), (1023, 961), (31, 700)]),
        (37, [(300, 300)]),
        (384, [(1024, 960), (500, 300)]),
    )
    for merge, dtype, skew in ((0, torch.uint8, 0), (0, torch.uint8, 5), (2, torch.bfloat16, 0), (2, torch.float32, 1))
    if cell % max(merge, 1) == 0
]


@devices
@pytest.mark.parametrize("case", ANYWHERE + [pytest.param(case, marks=pytest.mark.gpu) for case in ANYWHERE_LARGE])
def test_cells_are_read_in_words_wherever_they_lie(device, read, case):
    """At words or between them, inside images or over their borders, and of images that are less than a cell."""
    from homunculus.kernels import gather

    cell, sizes, merge, dtype, skew = case
    tree = CellTree.bucket(sizes, cell, levels=2 if device == "cpu" else 4)
    selection = edges(tree, 6 if device == "cpu" else 300)
    assert not selection.mask.all()
    height, width = (max(side) for side in zip(*sizes, strict=True))
    levels = pyramid.gaussian(pixels(len(sizes), 3, height, width), tree.levels)
    expected, layout = tokens.patches(levels, selection), None
    if dtype != torch.uint8:
        table = torch.randn(3, 256, generator=torch.Generator().manual_seed(cell)).to(dtype)
        expected = torch.stack([table[c][expected[:, :, c].int()] for c in range(3)], 2)
        layout = gather.PatchLayout(table.to(device), merge, 2)
    elif merge:
        layout = gather.PatchLayout(None, merge, 2)
    if merge:
        p = cell // merge
        expected = expected.flatten(0, 1).view(-1, 3, merge, p, merge, p).permute(0, 2, 4, 1, 3, 5)
        expected = expected[:, :, :, :, None].expand(-1, -1, -1, -1, 2, -1, -1).reshape(-1, 3 * 2 * p * p)
    there = laid(levels, device, skew)
    found = gather.gather(there, cells_of(selection, device), cell, layout)
    assert torch.equal(found.cpu(), expected)
    memory = [(there[0].data_ptr(), there[0].numel())]
    memory += [(there[1].data_ptr(), there[1].untyped_storage().nbytes())] if len(there) > 1 else []
    for place, size in read if dtype == torch.uint8 else []:  # at least a byte of each word is theirs
        assert any(begin - size < place < begin + count for begin, count in memory)


@pytest.mark.parametrize("device", ["cpu"])
@pytest.mark.parametrize(("width", "x"), [(64, 32), (64, 16), (64, 12), (61, 0)])
def test_cells_inside_are_read_in_whole_words_and_nothing_beside_them(device, read, width, x):
    """Each word once where rows of the cell begin at words, else at most twice; of 61 bytes every eighth row does."""
    from homunculus.kernels import gather

    image = pixels(1, 3, 32, width)
    box, size = torch.tensor([[[x, 0, x + 32, 32]]]), torch.tensor([[32, width]])
    cells = gather.Cells(box, torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1, dtype=torch.bool), size)
    found = gather.gather([image], cells, 32)
    assert torch.equal(found[0, 0], image[0, :, :, x : x + 32])
    begin, end = image.data_ptr(), image.data_ptr() + image.numel()
    words = Counter((place, size) for place, size in read if begin - size < place < end)
    assert {size for _, size in words} == {8}
    for row in range(3 * 32):
        first = begin + row * width + x
        held = range(first // 8 * 8, first + 32, 8)
        times = [words.pop((place, 8), 0) for place in held]
        assert times == [1] * 4 if first % 8 == 0 else all(1 <= count <= 2 for count in times)
    assert not words, "words are read that hold nothing of the cell"


@pytest.mark.gpu
def test_cells_of_more_than_two_gigabytes():
    from homunculus.kernels import gather, mip

    x = torch.zeros(2, 3, 20_000, 30_016, dtype=torch.uint8, device="cuda")
    x[1, 2] = torch.randint(256, x.shape[2:], dtype=torch.uint8, device="cuda")
    boxes = torch.tensor([[29_952, 19_936, 29_984, 19_968], [29_952, 19_904, 30_016, 19_968]], device="cuda")
    cells = gather.Cells(boxes.expand(2, 2, 4), torch.tensor([[0, 1]], device="cuda").expand(2, 2),
                         torch.ones(2, 2, dtype=torch.bool, device="cuda"),
                         torch.tensor([[20_000, 30_016]], device="cuda").expand(2, 2))  # fmt: skip
    levels = [x, *mip.build(x, 1)]
    found = gather.gather(levels, cells, 32)
    assert torch.equal(found[1, 0], x[1, :, 19_936:19_968, 29_952:29_984]) and found[1, 0, 2].any()
    assert torch.equal(found[1, 1], levels[1][1, :, 9952:9984, 14_976:15_008])


@pytest.mark.parametrize("size", [(2048, 2048), (1753, 1241), (9, 14), (60_000, 50_000)])
def test_starts_of_levels_make_no_kernels_of_their_own(size):
    """Triton compiles anew for a 1 and for numbers that 16 divides."""
    from homunculus.kernels import gather, mip

    starts = gather._starts(*size, 5)
    assert all(start % 2 and start > 1 for start in starts)
    found = [(start - gather.START_BIAS.value) * gather.START_UNIT.value for start in starts[1:]]
    assert found == [place.start for place in mip.level_places(*size, 3, 4)[0][:4]]


@devices
@pytest.mark.parametrize("between", [False, True])
def test_only_what_cells_need_is_made(device, kernels, between, monkeypatch):
    """Memory that no cell needs stays as it was."""
    from homunculus.kernels import mip

    x = pixels(1, 1, 8, 1440).to(device)  # three strips side by side: of level 1, 0 and 3
    boxes = torch.tensor([[0, 0, 16, 8], [600, 0, 608, 8], [1200, 0, 1264, 8], [0, 0, 1440, 8]], device=device)
    levels = torch.tensor([[1, 0, 3, 2]], device=device).repeat(1, 40)  # more than are looked at at once
    boxes, mask = boxes[None].repeat(1, 40, 1), levels != 2
    if between:  # a little of a level for what lies between its pixels
        boxes, levels = boxes.double() + 0.5, levels.double() + 0.25
    usual = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **how: usual(*size, **how).fill_(77))
    first, second, third = (
        level[0, 0].cpu() for level in mip.build(x, 3, chosen=mip.ChosenCells(boxes, levels, mask))
    )  # fmt: skip
    monkeypatch.undo()
    _, one, _, three = (level[0, 0] for level in pyramid.gaussian(x.cpu(), 4))
    assert torch.equal(first[:, :248], one[:, :248]) and (first[:, 248:] == 77).all()
    assert (second == 77).all()
    assert torch.equal(third[:, 122:], three[:, 122:]) and (third[:, :122] == 77).all()


@devices
@pytest.mark.parametrize("x", [488, 496])
def test_a_cell_beside_the_border_of_two_strips_needs_one_of_them(device, kernels, x, monkeypatch):
    from homunculus.kernels import mip

    image = pixels(1, 1, 8, 992).to(device)  # two strips: up to pixel 496 and all that is left
    boxes, one = torch.tensor([[[x, 0, x + 7, 8]]], device=device), torch.ones(1, 1, dtype=torch.int64, device=device)
    usual = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **how: usual(*size, **how).fill_(77))
    found = mip.build(image, 1, chosen=mip.ChosenCells(boxes, one, one > 0))[0][0, 0].cpu()
    monkeypatch.undo()
    expected = pyramid.halve(image.cpu())[0, 0]
    left, right = (found[:, :248], expected[:, :248]), (found[:, 248:], expected[:, 248:])
    (mine, true), (other, _) = (left, right) if x < 496 else (right, left)
    assert torch.equal(mine, true) and (other == 77).all()


@devices
def test_of_a_strip_only_pieces_are_written_that_a_cell_touches(device, kernels, monkeypatch):
    """Some of them are made upwards."""
    from homunculus.kernels import mip

    image = pixels(1, 1, 256, 64).to(device)
    piece = (
        4 * mip._launches(1, 1, 256, 64, 1, mip.WARPS_PER_PROGRAM, image.device)[0].rows_per_piece
    )  # rows of the first level
    boxes, one = torch.tensor([[[0, 165, 9, 170]]], device=device), torch.ones(1, 1, dtype=torch.int64, device=device)
    usual = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **how: usual(*size, **how).fill_(77))
    found = mip.build(image, 1, chosen=mip.ChosenCells(boxes, one, one > 0))[0][0, 0].cpu()
    monkeypatch.undo()
    rows = torch.arange(128) // piece
    touched = (rows >= 165 // 2 // piece) & (rows <= 170 // 2 // piece)
    assert 0 < touched.sum() < 64 and torch.equal(found[touched], pyramid.halve(image.cpu())[0, 0][touched])
    assert (found[~touched] == 77).all()


@pytest.mark.gpu
def test_patches_take_the_kernel_by_themselves():
    x, selection = chosen("foveated", (700, 900), 64, 2, 32)
    image = x.cuda()
    levels = pyramid.gaussian(image, int(selection.levels.max()) + 1)
    there = Selection(*(part.cuda() for part in (selection.boxes, selection.levels, selection.indices)),
                      selection.mask.cuda(), selection.sizes.cuda(), 32)  # fmt: skip
    expected = tokens.patches([level.cpu() for level in levels], selection)
    assert tokens.by_kernel(levels, there) is not None
    assert torch.equal(tokens.patches(levels, there).cpu(), expected)
    assert torch.equal(tokens.patches([level.clone() for level in levels], there).cpu(), expected)


@devices
@pytest.mark.parametrize("name", ["qwen3_vl", pytest.param("qwen2_5_vl", marks=pytest.mark.gpu)])
def test_a_tower_gets_its_patches_from_the_kernel(device, kernels, name, tmp_path, monkeypatch):
    """To the bit what its processor and torch would have made of the same cells."""
    family = adapters.wrap(*tiny(name, tmp_path)).family
    family.model.to(device, torch.bfloat16)
    side = 3 * family.cell
    x, tree = pixels(1, 3, side, side).to(device), CellTree(side, side, family.cell, levels=2).to(device)
    found = allocate("grid", tree, torch.rand(1, tree.size, device=device), 3).in_rows()
    levels = [x, *mip_of(x)]
    if device == "cpu":
        monkeypatch.setattr(qwen, "use_triton", lambda x: True)
    blocks = family._blocks(levels, found)
    expected = family._patches(tokens.patches([level.clone() for level in levels], found)[0]).bfloat16()
    assert blocks.dtype == torch.bfloat16
    check_colours(family._patches(blocks[0]), expected, device == "cpu" and family._layout.affine is not None)


def mip_of(x: torch.Tensor) -> list[torch.Tensor]:
    from homunculus.kernels import mip

    return mip.build(x, 1)


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from homunculus.kernels import gather, gather_kernel, mip, mip_kernel

TYPES = dict.fromkeys(("x", "out", "floats", "image", "coarse"), "*u8") | dict.fromkeys(("mask", "cell_mask"), "*i1")
TYPES |= dict.fromkeys(("source_start", "source_stride", "out_start", "out_stride"), "i64")
TYPES |= dict.fromkeys(("image_stride", "coarse_stride"), "i64")
TYPES |= dict.fromkeys(("boxes", "levels", "sizes"), "*i64") | {"starts": ("i32",) * 7}
MIP = {"table_block": 32, "partial_lanes": False, "unaligned": False, "to_float": False, "only_needed": False}
MIP |= {"from_table": False, "prefetch": mip.PREFETCH_ROWS, "warps": 1, "pdl": False, "release_early": False}
NEEDED = {"only_needed": True, "warps": mip.WARPS_PER_PROGRAM}
UNALIGNED = {"partial_lanes": True, "unaligned": True, "prefetch": mip.PREFETCH_ROWS_UNALIGNED}
LATE = {"partial_lanes": True, "to_float": True, "pdl": True, "release_early": True}
CELLS = {"cell": 32, "merge_size": 1, "temporal_patch_size": 1}
WORDS = {"word_type": gather.WORD_TYPES[8], "words": 128, "pixels_per_store": 8}
WORDS |= {"use_affine": False, "pdl": False, "cells_ready": False}
QWEN, AFFINE = {"merge_size": 2, "temporal_patch_size": 2}, {"merge_size": 2, "use_affine": True}
CASES = [(mip_kernel.kernel, MIP | constants, types) for constants, types in (
    (UNALIGNED | NEEDED, {}),
    ({"from_table": True, "pdl": True}, {}),
    (LATE, {"floats": "*fp16"}),
    (NEEDED, {"boxes": "*fp64", "levels": "*fp64"}),
    (NEEDED | {"pdl": True}, {}),
)]
CASES += [(gather_kernel.kernel, CELLS | WORDS | constants, {"table": "*u8"} | types) for constants, types in (
    ({"pdl": True}, {}),
    ({}, {"starts": ("i32",) * 6 + ("i64",)}),
    (QWEN, {"out": "*bf16", "table": "*bf16"}),
    (AFFINE, {"out": "*bf16", "table": "*fp32"}),
)]
FRACTIONAL = {"boxes": "*fp64", "levels": "*fp64", "table": "*u8"}
CASES += [(gather_kernel.fractional_kernel, CELLS | {"block": 32}, FRACTIONAL)]
for kernel, constants, types in CASES:
    types = {"table": "*i64"} | TYPES | types | dict.fromkeys(constants, "constexpr")
    signature, warps = {name: types.get(name, "i32") for name in kernel.arg_names}, constants.get("warps", 1)
    pdl = constants.get("pdl", False)
    constants = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    options = {"num_warps": warps, "launch_pdl": pdl}
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    before, wait, after = made.asm["ptx"].partition("griddepcontrol.wait")
    assert bool(wait) == pdl and "ld.global" not in (before if pdl else ""), "read before it was written"
    if kernel is mip_kernel.kernel:  # a lane has one of each 32: shuffles reach those beside it
        text, layout = made.asm["ttgir"], f"sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [{warps}]"
        assert text.count("#ttg.blocked") == 1 and layout in text and "convert_layout" not in text
    print("made")
"""


def test_the_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """The interpreter takes much that the compiler does not, and knows no instructions of the GPU's own."""
    env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    env["TRITON_CACHE_DIR"] = str(tmp_path)
    run = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=env)
    assert run.returncode == 0 and run.stdout.count("made") == 10, run.stderr
