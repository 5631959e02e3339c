"""Cells out of the kernels: what torch cuts out of a whole pyramid, in every layout, from as little as they need."""

import math
import os
import subprocess
import sys

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
    ("uniform", (9, 14), 2, 1, 4),
]
LARGE = [
    ("foveated", (2048, 2048), 273, 2, 32),
    ("foveated", (1753, 1241), 273, 2, 28),
    ("uniform", (700, 900), 64, 2, 32),
    ("vortex", (1000, 777), 150, 2, 32),
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
    assert mip.made(built)
    assert count == 1 or not mip.made([image, *(level.clone() for level in built[1:])])
    for found in (gather.gather(built, cells, cell), gather.touched(image, count, cells, cell)):
        apart = (found.cpu().int() - expected.int()).abs()
        if selection.indices is not None:
            assert apart.max() == 0
        else:  # sums of floats in another order: a value between two may go either way
            assert apart.max() <= 1 and (apart > 0).float().mean() < 0.01


@devices
def test_cells_come_in_the_layout_of_a_tower(device, kernels):
    from homunculus.kernels import gather, mip

    x, selection = chosen("pyramid", (16, 16), 2, 1, 8)
    count = int(selection.levels.max()) + 1
    mean, deviation = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    expected = tokens.patches(pyramid.gaussian(x, count), selection).float() / 255
    expected = (expected - torch.tensor(mean)[:, None, None]) / torch.tensor(deviation)[:, None, None]
    image, cells = x.to(device), cells_of(selection, device)
    built = [image, *mip.build(image, count - 1)]
    plain = gather.gather(built, cells, 8, gather.Layout.normalised(torch.float32, mean, deviation, device=device))
    torch.testing.assert_close(plain.cpu(), expected)
    blocks = expected.flatten(0, 1).view(-1, 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5)  # [K, m, m, 3, p, p]
    blocks = blocks[:, :, :, :, None].expand(-1, -1, -1, -1, 2, -1, -1).reshape(-1, 3 * 2 * 4 * 4)
    layout = gather.Layout.normalised(torch.bfloat16, mean, deviation, 2, 2, device)
    assert torch.equal(gather.gather(built, cells, 8, layout).cpu(), blocks.bfloat16())


@devices
def test_only_what_cells_need_is_made(device, kernels, monkeypatch):
    """Memory that no cell needs stays as it was."""
    from homunculus.kernels import mip

    x = pixels(1, 1, 8, 720).to(device)  # three strips side by side: of level 1, 0 and 3
    boxes = torch.tensor([[[0, 0, 16, 8], [300, 0, 308, 8], [600, 0, 664, 8]]], device=device)
    levels, mask = torch.tensor([[1, 0, 3]], device=device), torch.ones(1, 3, dtype=torch.bool, device=device)
    usual = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **how: usual(*size, **how).fill_(77))
    first, second, third = (
        level[0, 0].cpu() for level in mip.build(x, 3, chosen=mip.Chosen(boxes, levels, mask))
    )  # fmt: skip
    monkeypatch.undo()
    _, one, _, three = (level[0, 0] for level in pyramid.gaussian(x.cpu(), 4))
    assert torch.equal(first[:, :120], one[:, :120]) and (first[:, 120:] == 77).all()
    assert (second == 77).all()
    assert torch.equal(third[:, 60:], three[:, 60:]) and (third[:, :60] == 77).all()


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
        monkeypatch.setattr(qwen, "kernels_for", lambda x: True)
    blocks = family._blocks(levels, found)
    expected = family._patches(tokens.patches([level.clone() for level in levels], found)[0]).bfloat16()
    assert blocks.dtype == torch.bfloat16 and torch.equal(family._patches(blocks[0]), expected)


def mip_of(x: torch.Tensor) -> list[torch.Tensor]:
    from homunculus.kernels import mip

    return mip.build(x, 1)


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from homunculus.kernels import gather, mip

TYPES = dict.fromkeys(("x", "out", "floats", "image", "rest", "need", "colours"), "*u8")
TYPES |= {"mask": "*i1", "total": "i64"}
TYPES |= dict.fromkeys(("table", "boxes", "levels", "sizes"), "*i64")
MIP = {"room": 8, "raw": False, "wide": False, "some": False}
CELLS = {"cell": 32, "room": 32, "count": 7, "between": False, "merge": 0, "times": 1}
CASES = [(mip._kernel, MIP, {}), (mip._kernel, MIP | {"raw": True, "some": True}, {})]
CASES += [(mip._kernel, MIP | {"wide": True}, {"floats": "*fp16"}), (mip._mark, {}, {"blocks": "*i32"})]
CASES += [(gather._kernel, CELLS | {"merge": 2, "times": 2}, {"out": "*bf16", "colours": "*bf16"})]
CASES += [(gather._kernel, CELLS | {"between": True}, {"boxes": "*fp64", "levels": "*fp64"})]
for kernel, constants, types in CASES:
    types = TYPES | types | dict.fromkeys(constants, "constexpr")
    signature = {name: types.get(name, "i32") for name in kernel.arg_names}
    constants = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
    if kernel is mip._kernel:  # a lane has one of 32: it asks those beside it
        text = made.asm["ttgir"]
        assert "sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1]" in text and "convert_layout" not in text
    print("made")
"""


def test_the_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """The interpreter takes much that the compiler does not, and knows no instructions of the GPU's own."""
    env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    env["TRITON_CACHE_DIR"] = str(tmp_path)
    run = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=env)
    assert run.returncode == 0 and run.stdout.count("made") == 6, run.stderr
