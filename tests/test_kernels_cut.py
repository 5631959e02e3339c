"""The cut's kernels choose the cells that torch's sort chooses, one by one."""

import os
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from homunculus import CellTree, allocate
from homunculus.allocators import cut as twin
from homunculus.allocators.frame import Request, as_indices, fill
from pyramids import devices


@pytest.fixture(params=["one", "many"])
def programs(request, device: str, kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program for each tree or many, with tiles and blocks that cut even small trees into pieces."""
    from homunculus.kernels import cut

    large = -1 if request.param == "many" else 1 << 31
    for name, value in (("LARGE", large), ("BLOCK", 64 if device == "cpu" else 256), ("PROGRAMS", 3), ("TILE", 8)):
        monkeypatch.setattr(cut, name, value)


def requested(tree: CellTree, rest: Tensor, budget: int) -> Request:
    return Request(tree, rest, rest.new_zeros(len(rest), 1, 2), budget)


def by_kernel(tree: CellTree, gain: Tensor, rest: Tensor, budget: int) -> Tensor:
    return twin.by_kernel(requested(tree, rest, budget), gain, rest)


def by_torch(tree: CellTree, gain: Tensor, rest: Tensor, budget: int) -> Tensor:
    request = requested(tree, rest, budget)
    return as_indices(fill(request, twin.partition(request, tree.subtree_max(gain)), rest), request.max_count)


def check(device: str, tree: CellTree, gain: Tensor, rest: Tensor, budget: int) -> None:
    found = by_kernel(tree.to(device), gain.to(device), rest.to(device), budget)
    expected = by_torch(tree, gain, rest, budget)
    assert found.dtype == torch.int64 and torch.equal(found.cpu(), expected), (tree, budget)


KINDS = ["random", "peaked", "near", "few", "zeros", "flat", "sparse", "tiny", "endless"]


def values(kind: str, rows: int, cells: int, seed: int) -> Tensor:
    """float64 [rows, cells], of most kinds full of equals."""
    x = torch.randn(rows, cells, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return {
        "random": x,
        "peaked": x.exp() ** 12,
        "near": 1 + (x * 4).round() * torch.finfo(torch.float64).eps,  # apart in the last bits alone
        "few": (x * 2).round() / 2,
        "zeros": torch.where(x > 0, 0.0, -0.0),
        "flat": torch.full_like(x, -3),
        "sparse": (x > 2).double(),
        "tiny": (x * 9).round() * 5e-324,  # smaller than a normal number can be
        "endless": torch.where(x.abs() > 1, x.sign() * torch.inf, x.round()),
    }[kind]


@st.composite
def cuts(draw: st.DrawFn) -> tuple[CellTree, Tensor, Tensor, int]:
    cell, levels = draw(st.sampled_from([2, 3, 4])), draw(st.one_of(st.none(), st.integers(1, 8)))
    sides = st.one_of(st.integers(1, 9), st.integers(1, 90))
    sizes = draw(st.lists(st.tuples(sides, sides), min_size=1, max_size=3))
    bucket = draw(st.booleans())
    tree = CellTree.bucket(sizes, cell, levels) if bucket else CellTree(*sizes[0], cell, levels)
    rows, seed = len(sizes) if bucket else draw(st.integers(1, 2)), draw(st.integers(0, 99))
    gain, rest = (values(draw(st.sampled_from(KINDS)), rows, tree.size, seed + i) for i in range(2))
    gain = torch.where(tree.valid, gain, torch.nan)  # what lies on padding must not matter
    rest = torch.where(tree.valid, rest, torch.nan)
    edges = sorted({*tree.root_counts, *tree.fine_counts, *tree.counts})
    near = st.builds(lambda edge, by: max(1, edge + by), st.sampled_from(edges), st.integers(-2, 2))
    return tree, gain, rest, draw(st.one_of(near, st.integers(1, tree.size + 5), st.just(10**6)))


@devices
def test_the_kernels_choose_as_torch_does(device, programs):
    usual = settings.default.max_examples  # the interpreter takes a second for each

    @given(cuts())
    @settings(max_examples=5 * usual if device == "cuda" else usual // 10, suppress_health_check=list(HealthCheck))
    def alike(case):
        check(device, *case)

    alike()


@devices
@pytest.mark.parametrize(("kind", "budget"), [("few", 3), ("few", 25), ("zeros", 23), ("few", 10**6)])
def test_equals_in_a_bucket_go_in_tree_order(device, programs, kind, budget):
    """Budgets lie below the roots of some images (6, 2, 4), above the finest cells of others (50, 24, 13)."""
    tree = CellTree.bucket([(9, 20), (12, 8), (2, 26)], cell=2, levels=3)
    check(device, tree, values(kind, 3, tree.size, 1), values(kind, 3, tree.size, 2), budget)


@devices
@pytest.mark.parametrize("budget", [2, 5])
def test_cells_that_cost_nothing_are_split_up_to_the_first_that_is_too_dear(device, programs, budget):
    tree = CellTree(1, 17, cell=1, levels=6)
    assert (tree.split_price[:, : tree.inner] == 0).sum() == 4
    gain = torch.cat([values(kind, 1, tree.size, 3) for kind in ("flat", "few")])
    check(device, tree, gain, values("random", 2, tree.size, 4), budget)


@devices
def test_gains_of_any_type_and_memory_order(device, programs):
    tree = CellTree(40, 24, cell=4, levels=3)
    gain, rest = values("random", tree.size, 2, 0).T.float(), values("few", 1, tree.size, 1).expand(2, -1).half()
    check(device, tree, gain, rest, 33)


@devices
@pytest.mark.parametrize("name", ["dag", "foveated"])
def test_allocators_take_the_kernels_by_themselves(device, programs, name, monkeypatch):
    tree = CellTree.bucket([(90, 110), (33, 70)], cell=8).to(device)
    relevance, calls, usual = values("few", 2, tree.size, 5).to(device), [], twin.by_kernel
    monkeypatch.setattr(twin, "by_kernel", lambda *args: calls.append(1) or usual(*args))
    monkeypatch.setattr(twin, "use_triton", lambda x: False)
    expected = allocate(name, tree, relevance, 50)
    monkeypatch.setattr(twin, "use_triton", lambda x: True)
    found = allocate(name, tree, relevance, 50)
    assert torch.equal(found.indices, expected.indices) and torch.equal(found.boxes, expected.boxes)
    assert found.mask.sum(1).tolist() == [50, min(50, tree.counts[1])] and calls == [1]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["random", "few", "flat"])
@pytest.mark.parametrize(("height", "width", "batch"), [(64, 64, 1024), (61, 300, 64), (512, 510, 3), (4096, 4096, 1)])
def test_large_batches_and_large_trees(height, width, batch, kind):
    tree = CellTree(height, width, cell=1, levels=7 if height == 64 else None).to("cuda")
    gain, rest = (values(kind, batch, tree.size, seed).cuda() for seed in (1, 2))
    for budget in (5, 273, tree.counts[0] // 3, tree.fine_counts[0] + 7):
        assert torch.equal(by_kernel(tree, gain, rest, budget), by_torch(tree, gain, rest, budget)), budget


@pytest.mark.gpu
@pytest.mark.parametrize("side", [64, 512])
def test_a_graph_holds_the_cut(side):
    tree = CellTree(side, side, cell=1).to("cuda")
    gain, rest = (values("few", 2, tree.size, seed).cuda() for seed in (1, 2))
    by_kernel(tree, gain, rest, 273)  # compiles the kernels and lays out what they know of the tree
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = by_kernel(tree, gain, rest, 273)
    for seed in (3, 4):
        gain.copy_(values("random", 2, tree.size, seed))
        graph.replay()
        assert torch.equal(found, by_torch(tree, gain, rest, 273))


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from homunculus.kernels import cut

TYPES = {"gain": "*fp64", "rest": "*fp64", "weights": "*i8"}
TYPES |= dict.fromkeys(("keys", "out", "state", "highest"), "*i64")
TYPES |= dict.fromkeys(("images", "sums", "counts", "spares", "extra"), "*i32")
POOL, BLOCKS = {"tile": cut.TILE, "rise": cut.TILE.bit_length()}, {"_choose": 1, "_search": 1}
KERNELS = [(cut._max_pool, POOL | {"base": base}) for base in (0, POOL["rise"])]
for name in ("_choose", "_search", "_count", "_gather", "_write"):
    KERNELS.append((getattr(cut, name), {"block": cut.BLOCK * BLOCKS.get(name, 2)}))
for kernel, constants in KERNELS:
    types = TYPES | dict.fromkeys(constants, "constexpr")
    signature = {argument: types.get(argument, "i32") for argument in kernel.arg_names}
    constants = {(kernel.arg_names.index(argument),): value for argument, value in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
    print(made.metadata.name, made.metadata.shared)
    assert made.metadata.shared <= 48 << 10
"""


def test_the_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """An H200's code needs no H200 to be made; the interpreter takes much that the compiler does not."""
    pytest.importorskip("triton")
    env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    env["TRITON_CACHE_DIR"] = str(tmp_path)
    run = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=env)
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 7, run.stderr
