"""Properties that hold for every allocator: exact count, tree order, no padding, independence of batch mates."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import loops
from homunculus import CellTree, InputError, allocate, list_allocators
from homunculus.allocators import ALLOCATORS
from trees import KINDS, layers, relevance_of

NAMES = list_allocators()
TREE_RULES = [name for name in NAMES if name != "uniform"]
CUTS = [*(name for name, entry in ALLOCATORS.items() if entry.is_cut), "fractal"]

sides = st.one_of(st.integers(1, 64), st.integers(33, 1200), st.integers(1, 4096))
sizes = st.tuples(sides, sides)
kinds = st.sampled_from(KINDS)


@st.composite
def requests(draw, largest_batch=8):
    height, width = draw(sizes)
    tree = CellTree(
        height, width, draw(st.sampled_from([14, 32, 32, 32])), draw(st.one_of(st.none(), st.integers(1, 8)))
    )
    rows = draw(st.integers(1, largest_batch))
    relevance = relevance_of(draw(kinds), rows, tree.size, draw(st.integers(0, 99)))
    budget = draw(st.one_of(st.integers(1, 20), st.sampled_from([64, 150, 273]), st.integers(1, tree.size + 20)))
    fixation = None
    if draw(st.booleans()):
        at = torch.tensor([[draw(st.floats(0, 1)), draw(st.floats(0, 1))] for _ in range(rows)], dtype=torch.float64)
        fixation = at * torch.tensor([width, height])
    return tree, relevance, budget, fixation


def same(a, b) -> bool:
    """Two selections of one image each choose the same."""
    if (a.indices is None) != (b.indices is None) or a.boxes.shape != b.boxes.shape:
        return False
    return torch.equal(a.boxes, b.boxes) and torch.equal(a.levels, b.levels)


@pytest.mark.parametrize("name", TREE_RULES)
@given(requests())
def test_exactly_the_budget_of_distinct_cells_in_tree_order_inside_the_image(name, request_):
    tree, relevance, budget, fixation = request_
    selection = allocate(name, tree, relevance, budget, fixation)
    count = min(budget, tree.size)
    assert selection.indices.shape == (len(relevance), count) and selection.mask.all()
    assert (selection.indices.diff(dim=1) > 0).all(), "not distinct, or not in tree order"
    assert (selection.indices >= 0).all() and (selection.indices < tree.size).all()
    assert torch.equal(selection.boxes, tree.box[selection.indices])
    assert torch.equal(selection.levels, tree.level[selection.indices])
    assert (selection.boxes[..., :2] >= 0).all() and (selection.boxes[..., 2:] > selection.boxes[..., :2]).all()
    assert (selection.boxes[..., 2] <= tree.width).all() and (selection.boxes[..., 3] <= tree.height).all()


@pytest.mark.parametrize("name", NAMES)
@given(requests(largest_batch=4))
def test_the_same_twice_and_row_by_row_the_same_as_alone(name, request_):
    tree, relevance, budget, fixation = request_
    together = allocate(name, tree, relevance, budget, fixation)
    assert same(together, allocate(name, tree, relevance, budget, fixation))
    for b in range(len(relevance)):
        at = None if fixation is None else fixation[b : b + 1]
        assert same(together.row(b), allocate(name, tree, relevance[b : b + 1], budget, at))


@pytest.mark.parametrize("name", NAMES)
@given(
    st.lists(st.tuples(st.integers(1, 1500), st.integers(1, 1500)), min_size=2, max_size=4),
    st.one_of(st.none(), st.integers(1, 6)),
    st.integers(1, 400),
    kinds,
)
def test_images_of_mixed_sizes_in_one_batch_come_out_as_alone(name, sizes, levels, budget, kind):
    bucket = CellTree.bucket(sizes, levels=levels)
    singles = [CellTree(h, w, levels=levels) for h, w in sizes]
    own = [relevance_of(kind, 1, tree.size, b) for b, tree in enumerate(singles)]
    relevance = torch.full((len(sizes), bucket.size), torch.nan)  # what lies on padding must not matter
    for b, r in enumerate(own):
        relevance[b, bucket.valid[b]] = r[0]
    together = allocate(name, bucket, relevance, budget)
    for b, tree in enumerate(singles):
        alone = allocate(name, tree, own[b], budget)
        row = together.row(b)
        assert torch.equal(row.boxes, alone.boxes) and torch.equal(row.levels, alone.levels)
        if alone.indices is not None:
            to_bucket = bucket.valid[b].nonzero()[:, 0]
            assert torch.equal(row.indices, to_bucket[alone.indices])


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(1, 900), st.integers(1, 900), st.one_of(st.integers(1, 30), st.integers(1, 700)), st.integers(0, 99))
def test_the_batched_rule_chooses_what_its_plain_loop_chooses(name, height, width, budget, seed):
    tree = CellTree(height, width)
    generator = torch.Generator().manual_seed(seed)
    relevance = torch.rand(2, tree.size, dtype=torch.float64, generator=generator) ** 3
    fixation = torch.rand(2, 2, dtype=torch.float64, generator=generator) * torch.tensor([width, height])
    fast = allocate(name, tree, relevance, budget, fixation)
    slow = loops.select(name, tree, relevance, budget, fixation)
    if name == "uniform":
        torch.testing.assert_close(fast.boxes[0], torch.tensor(slow[0], dtype=torch.float64))
    else:
        assert fast.indices.tolist() == slow


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.uint8, torch.int64])
def test_any_type_of_number_gives_the_same_cells(name, dtype):
    """Of whole numbers that all types hold: what a rule makes of them is not rounded to the type."""
    tree, generator = CellTree(700, 500), torch.Generator().manual_seed(0)
    relevance = torch.randint(1, 256, (2, tree.size), generator=generator).double()
    assert same(allocate(name, tree, relevance, 64), allocate(name, tree, relevance.to(dtype), 64))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [2.0**-1030, 2.0**-200, 2.0**900])
def test_the_scale_of_the_relevance_does_not_matter(name, scale):
    tree = CellTree(700, 500)
    relevance = torch.rand(2, tree.size).double() + 0.01
    assert same(allocate(name, tree, relevance, 64), allocate(name, tree, relevance * scale, 64))


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_the_gpu_chooses_what_the_cpu_chooses(name):
    generator = torch.Generator().manual_seed(0)
    for height, width in ((2048, 2048), (333, 1900), (31, 40)):
        tree = CellTree(height, width)
        relevance = torch.rand(4, tree.size, generator=generator)
        here, there = allocate(name, tree, relevance, 273), allocate(name, tree, relevance.cuda(), 273)
        assert there.boxes.is_cuda
        torch.testing.assert_close(there.boxes.cpu().double(), here.boxes.double())


# ---- the cut ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CUTS)
@given(requests(largest_batch=2), st.floats(0, 1))
def test_the_cut_covers_every_pixel_once_and_the_rest_goes_to_the_best_fine_cells(name, request_, share):
    tree, relevance, _, fixation = request_
    roots, fine = tree.root_counts[0], tree.fine_counts[0]
    budget = max(1, round(roots + share * (fine - roots)))
    selection = allocate(name, tree, relevance, budget, fixation)
    for b, indices in enumerate(selection.indices):
        times, extra = layers(tree, indices)
        extras = extra.nonzero()[:, 0]
        assert len(extras) <= 2 and (tree.level[extras] == 0).all()
        assert (times - extra[tree.at(0)].long() == 1).all(), "a pixel that the cut does not cover exactly once"
        rest = torch.ones(tree.size, dtype=torch.bool)
        rest[: tree.inner] = rest[indices] = False
        missed = rest & ~extra
        if len(extras) and missed.any():
            assert relevance[b, extras].min() >= relevance[b, missed].max(), "a better fine cell is left out"


@pytest.mark.parametrize("name", CUTS)
def test_fewer_tokens_than_roots_gives_roots_and_more_than_fine_cells_gives_all_of_them(name):
    tree = CellTree(2048, 1500)
    relevance = torch.rand(3, tree.size)
    few = allocate(name, tree, relevance, tree.root_counts[0] - 3)
    assert (few.levels == tree.levels - 1).all()
    many = allocate(name, tree, relevance, tree.fine_counts[0] + 10)
    assert ((many.levels == 0).sum(1) == tree.fine_counts[0]).all()
    for b in range(3):
        ancestors = many.indices[b][many.levels[b] > 0]
        assert sorted(ancestors.tolist()) == sorted(relevance[b, : tree.inner].topk(10).indices.tolist())


@given(requests(largest_batch=1), st.data())
def test_dag_never_makes_a_cell_coarser_whose_relevance_was_raised(request_, data):
    tree, relevance, _, _ = request_
    budget = data.draw(st.integers(tree.root_counts[0], tree.fine_counts[0]))
    cell = data.draw(st.integers(0, tree.size - 1))
    raised = relevance.clone()
    raised[0, cell] += data.draw(st.sampled_from([1e-6, 0.1, 1.0, 100.0]))
    x0, y0, x1, y1 = tree.box[cell].tolist()
    before, after = (finest(tree, allocate("dag", tree, r, budget)) for r in (relevance, raised))
    boxes = tree.box[tree.at(0)]
    inside = (boxes[:, 0] >= x0) & (boxes[:, 1] >= y0) & (boxes[:, 2] <= x1) & (boxes[:, 3] <= y1)
    assert inside.any() and (after[inside] <= before[inside]).all()


def finest(tree: CellTree, selection) -> torch.Tensor:
    """Level of the cut's cell over each fine cell; the one or two left-over tokens are no part of the cut."""
    _, extra = layers(tree, selection.indices[0])
    chosen = torch.zeros(tree.size, dtype=torch.bool)
    chosen[selection.indices[0]] = True
    chosen &= ~extra
    over = torch.where(chosen, tree.level, 99)
    for level in reversed(range(tree.levels - 1)):
        here = tree.at(level)
        over[here] = torch.minimum(over[here], over[tree.parent[here]])
    return over[tree.at(0)]


# ---- wrong input --------------------------------------------------------------------------------------------------

TREE = CellTree(200, 300)
FLAT = torch.ones(2, TREE.size)


@pytest.mark.parametrize("budget", [0, -3, 2.5, True, "9", None])
def test_a_wrong_budget_is_named(budget):
    with pytest.raises(InputError, match="budget must be a whole number of at least 1"):
        allocate("dag", TREE, FLAT, budget)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_relevance_that_is_no_number_is_named_with_its_place(value):
    wrong = FLAT.clone()
    wrong[1, 7] = value
    with pytest.raises(InputError, match=r"finite.*row 1, cell 7"):
        allocate("grid", TREE, wrong)


@pytest.mark.parametrize("shape", [(TREE.size,), (2, TREE.size + 1), (2, TREE.size, 1), (0, TREE.size)])
def test_relevance_of_the_wrong_size_is_named(shape):
    with pytest.raises(InputError, match=rf"relevance must be \[B, {TREE.size}\]"):
        allocate("grid", TREE, torch.ones(shape))


def test_a_bucket_wants_a_row_for_each_image():
    bucket = CellTree.bucket([(64, 64), (100, 32)])
    with pytest.raises(InputError, match=r"2 images.*3 rows"):
        allocate("grid", bucket, torch.ones(3, bucket.size))


@pytest.mark.parametrize("wrong", [None, "abc", [[1, 2], [3]], torch.ones(2, TREE.size, dtype=torch.complex64)])
def test_what_is_no_tensor_of_numbers_is_named(wrong):
    with pytest.raises(InputError, match="relevance must be"):
        allocate("dag", TREE, wrong)
    if wrong is not None:
        with pytest.raises(InputError, match="fixation must be"):
            allocate("dag", TREE, FLAT, fixation=wrong)
    with pytest.raises(InputError, match="no allocator"):
        allocate(wrong, TREE, FLAT)


def test_numpy_arrays_in_reversed_order_are_numbers_too():
    relevance = np.linspace(0, 1, 2 * TREE.size).reshape(2, -1)
    assert same(
        allocate("foveated", TREE, relevance[:, ::-1], 20, np.array([[20.0, 30.0]] * 2)[:, ::-1]),
        allocate("foveated", TREE, relevance[:, ::-1].copy(), 20, torch.tensor([[30.0, 20.0]] * 2)),
    )


def test_whole_numbers_of_any_kind_and_size_are_budgets():
    for budget in (np.int64(7), torch.tensor(7)):
        assert allocate("grid", TREE, FLAT, budget).boxes.shape == (2, 7, 4)
    for name in NAMES:
        assert allocate(name, TREE, FLAT, 10**30).boxes.shape[1] <= TREE.size


def test_what_lies_on_padding_does_not_matter_for_options_either():
    bucket = CellTree.bucket([(640, 960), (64, 64)])
    error = torch.where(bucket.valid, torch.rand(2, bucket.size), torch.nan)
    assert allocate("dag", bucket, torch.rand(2, bucket.size), 60, error=error).mask.sum(1).tolist() == [60, 4]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"no allocator 'gird'.*grid"):
        allocate("gird", TREE, FLAT)


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(InputError, match="foveated has no option 'fovae'; it takes error, detail, m0, e0"):
        allocate("foveated", TREE, FLAT, fovae=1)
    with pytest.raises(InputError, match="takes no options"):
        allocate("grid", TREE, FLAT, seed=1)


@pytest.mark.parametrize(
    "fixation", [torch.zeros(2), torch.zeros(3, 2), torch.zeros(2, 3), torch.zeros(2, 0, 2), torch.zeros(2, 1, 1, 2)]
)
def test_a_fixation_of_the_wrong_shape_is_named(fixation):
    with pytest.raises(InputError, match=r"fixation must be \[2, 2\]"):
        allocate("foveated", TREE, FLAT, fixation=fixation)


@pytest.mark.parametrize("point", [(-1, 5), (5, 201), (301, 5), (torch.nan, 5)])
def test_a_fixation_outside_the_image_is_named(point):
    with pytest.raises(InputError, match="lies outside its 300 x 200 pixels"):
        allocate("foveated", TREE, FLAT, fixation=torch.tensor([(5, 5), point]))


WRONG_OPTIONS = [
    ("random", {"seed": 1.5}),
    ("pyramid", {"depth": 0}),
    ("pyramid", {"weights": (1, 2)}),
    ("pyramid", {"weights": (1, 2, 0, 1)}),
    ("pyramid", {"split": (1, 2)}),
    ("pyramid", {"split": (0, 0, 0, 0)}),
    ("pyramid", {"split": "half"}),
    ("foveated", {"e0": 0}),
    ("foveated", {"m0": -1}),
    ("foveated", {"degrees": 0}),
    ("foveated", {"fovea": 1.5}),
    ("foveated", {"floor": -1}),
    ("foveated", {"detail": -1}),
    ("foveated", {"error": torch.ones(1, 3)}),
    ("atlas", {"segments": torch.zeros(1, 5, 5, dtype=torch.long)}),
    ("atlas", {"segments": torch.zeros(2, 5, 5)}),
    ("atlas", {"segments": -torch.ones(2, 5, 5, dtype=torch.long)}),
    ("dag", {"error": torch.ones(2, 3)}),
    ("dag", {"error": -FLAT}),
    ("dag", {"error": FLAT * torch.nan}),
    ("dag", {"detail": -1}),
    ("dag", {"error": torch.ones(2, TREE.size, 4)}),
    ("frequency", {"energy": torch.ones(2, TREE.size, 0)}),
    ("frequency", {"shares": (-1, 2, 3)}),
    ("pyramid", {"split": (1e308, 1e308, 1e308, 1e308)}),
    ("frequency", {"energy": torch.ones(2, TREE.size, 2, 2)}),
    ("frequency", {"energy": torch.ones(2, TREE.size, 4), "shares": (1, 2)}),
    ("frequency", {"energy": torch.ones(2, TREE.size, 4), "question": ["only one"]}),
    ("logpolar", {"rings": 0}),
    ("logpolar", {"radius": "linear"}),
    ("logpolar", {"alpha": 0}),
    ("logpolar", {"beta": -1}),
    ("logpolar", {"oversample": 0.5}),
    ("stratified", {"strata": 0}),
    ("stratified", {"strata": (2, -1)}),
    ("adaptive-stratified", {"question": 7}),
    ("pseudo-logpolar", {"centres": torch.zeros(3)}),
    ("pseudo-logpolar", {"temperature": 0}),
    ("vortex", {"turns": 0}),
    ("vortex", {"turns": "many"}),
    ("vortex", {"turns": float("inf")}),
    ("stratified", {"strata": "x"}),
    ("stratified", {"strata": (2, 2, 2)}),
    ("logpolar", {"offgrid": 1}),
    ("pyramid", {"weights": "1234"}),
]


@pytest.mark.parametrize(("name", "options"), WRONG_OPTIONS, ids=lambda v: v if isinstance(v, str) else ",".join(v))
def test_a_wrong_option_is_named_in_one_sentence(name, options):
    with pytest.raises(InputError) as caught:
        allocate(name, TREE, FLAT, 40, **options)
    *_, wrong = options  # others are right, and needed for it
    assert re.search(rf"\b{wrong}\b", str(caught.value)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_documented(name):
    entry = ALLOCATORS[name]
    undocumented = [option for option in entry.options if f"`{option}`" not in entry.description]
    assert not undocumented and 0 < len(entry.description.splitlines()[0]) < 120
