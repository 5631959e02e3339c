"""Several trees under one budget: the exact total, each image covered, no order of trees, and one tree as alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import loops
from homunculus import CellTree, InputError, allocate, allocate_forest
from homunculus.allocators import ALLOCATORS, frame
from trees import KINDS, PAGE, flat, layers, one_place, relevance_of

CUTS = [name for name, entry in ALLOCATORS.items() if entry.is_cut]
OTHERS = [name for name in ALLOCATORS if name not in CUTS]
SIZES = [(64, 64), (640, 480), (640, 480), (480, 640), (1000, 90), (33, 700), (1, 1)]
SHAPES = [*(CellTree(*size) for size in SIZES), CellTree(300, 200, cell=14), CellTree(300, 200, levels=1)]

trees = st.lists(st.sampled_from(SHAPES), min_size=1, max_size=5)
budgets = st.one_of(st.integers(1, 40), st.integers(1, 1500))


def relevances_of(trees, kinds, seed=0):
    return [relevance_of(kind, 1, tree.size, seed + i) for i, (tree, kind) in enumerate(zip(trees, kinds, strict=True))]


@st.composite
def forests(draw, kinds=tuple(KINDS)):
    """Trees, their relevances, a budget, fixations, weights."""
    forest = draw(trees)
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=len(forest), max_size=len(forest)))
    fixation = weights = None
    if draw(st.booleans()):
        at = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=2)
        fixation = [
            torch.tensor(draw(at), dtype=torch.float64) * torch.tensor([tree.width, tree.height]) for tree in forest
        ]
    if draw(st.booleans()):
        weights = draw(st.lists(st.sampled_from([0.01, 0.5, 1.0, 7.0]), min_size=len(forest), max_size=len(forest)))
    return forest, relevances_of(forest, chosen, draw(st.integers(0, 99))), draw(budgets), fixation, weights


def cells_of(selections):
    return [selection.indices[0].tolist() for selection in selections]


def fits(forest, budget):
    """Whether there are tokens for all roots and not for more than all fine cells."""
    return sum(t.root_counts[0] for t in forest) <= budget <= sum(t.fine_counts[0] for t in forest)


@pytest.mark.parametrize("name", CUTS)
@given(forests())
def test_exactly_the_budget_in_all_of_distinct_cells_in_tree_order(name, drawn):
    forest, relevances, budget, fixation, weights = drawn
    selections = allocate_forest(name, forest, relevances, budget, fixation, weights=weights)
    assert len(selections) == len(forest)
    assert sum(s.indices.shape[1] for s in selections) == min(budget, sum(tree.size for tree in forest))
    for tree, selection in zip(forest, selections, strict=True):
        assert (selection.indices.diff(dim=1) > 0).all() and selection.mask.all()
        assert torch.equal(selection.boxes, tree.boxes(selection.indices))
        assert torch.equal(selection.levels, tree.level[selection.indices])
        assert selection.sizes.tolist() == [[tree.height, tree.width]]


@pytest.mark.parametrize("name", CUTS)
@given(forests())
def test_every_image_is_covered_once_and_what_is_left_over_goes_to_the_best_fine_cells(name, drawn):
    forest, relevances, budget, fixation, _ = drawn
    if not fits(forest, budget):
        budget = sum(tree.root_counts[0] + tree.fine_counts[0] for tree in forest) // 2
    selections = allocate_forest(name, forest, relevances, budget, fixation)
    taken, missed = [], []
    for tree, relevance, selection in zip(forest, relevances, selections, strict=True):
        times, extra = layers(tree, selection.indices[0])
        assert (times - extra[tree.at(0)].long() == 1).all(), "a pixel that the cut does not cover exactly once"
        assert (tree.level[extra] == 0).all()
        rest = torch.ones(tree.size, dtype=torch.bool)
        rest[: tree.inner] = rest[selection.indices[0]] = False
        taken += relevance[0, extra].tolist()
        missed += relevance[0, rest].tolist()
    assert len(taken) <= 2 and (not taken or not missed or min(taken) >= max(missed))


@pytest.mark.parametrize("name", CUTS)
@given(forests())
def test_one_tree_is_what_allocate_chooses_cell_for_cell(name, drawn):
    forest, relevances, budget, fixation, _ = drawn
    tree, relevance, at = forest[0], relevances[0], None if fixation is None else fixation[0][None]
    alone = allocate(name, tree, relevance, budget, at)
    for given_ in (relevance, relevance[0]):
        found = allocate_forest(name, [tree], [given_], budget, at, weights=[3.0])[0]
        for key in ("boxes", "levels", "indices", "mask", "sizes"):
            mine, theirs = getattr(found, key), getattr(alone, key)
            assert mine.dtype == theirs.dtype and torch.equal(mine, theirs), key


@pytest.mark.parametrize("name", CUTS)
@given(trees.filter(lambda forest: len(set(forest)) == len(forest)), st.integers(0, 99), budgets)
def test_the_sort_chooses_what_one_queue_over_all_trees_chooses(name, forest, seed, budget):
    generator = torch.Generator().manual_seed(seed)
    relevances = [torch.rand(tree.size, dtype=torch.float64, generator=generator) ** 3 for tree in forest]
    fixations = [torch.rand(2, generator=generator) * torch.tensor([tree.width, tree.height]) for tree in forest]
    found = allocate_forest(name, forest, relevances, budget, fixations)
    points = [tuple(at.double().tolist()) for at in fixations]
    assert cells_of(found) == loops.forest(name, forest, relevances, budget, points)


@pytest.mark.parametrize("name", CUTS)
@given(forests(), st.randoms(use_true_random=False))
def test_the_order_of_the_trees_does_not_matter(name, drawn, random):
    forest, relevances, budget, fixation, weights = drawn
    order = list(range(len(forest)))
    random.shuffle(order)
    first = cells_of(allocate_forest(name, forest, relevances, budget, fixation, weights=weights))
    moved = [None if each is None else [each[i] for i in order] for each in (forest, relevances, fixation, weights)]
    second = cells_of(allocate_forest(name, moved[0], moved[1], budget, moved[2], weights=moved[3]))
    if len({(repr(tree), str(r.tolist())) for tree, r in zip(forest, relevances, strict=True)}) == len(forest):
        assert second == [first[i] for i in order]
    else:  # images of which the same is known may change places
        assert sorted(second) == sorted(first)


@pytest.mark.parametrize("name", CUTS)
@given(forests(), st.integers(0, 4), st.sampled_from([1.01, 3.0, 1e6]))
def test_a_larger_weight_never_makes_a_cell_coarser(name, drawn, which, factor):
    forest, relevances, budget, fixation, weights = drawn
    which, weights = which % len(forest), weights or [1.0] * len(forest)
    raised = [weight * factor if i == which else weight for i, weight in enumerate(weights)]
    before, after = (
        allocate_forest(name, forest, relevances, budget, fixation, weights=w)[which].indices[0]
        for w in (weights, raised)
    )
    if fits(forest, budget):
        tree = forest[which]
        assert set(split_in(tree, before)) <= set(split_in(tree, after))
        assert len(after) >= len(before) - 2  # those left over are no part of the cut
    else:
        assert len(after) >= len(before)


@pytest.mark.parametrize("name", CUTS)
@given(st.integers(0, 99), st.integers(48, 3 * 256), st.integers(0, 2), st.sampled_from([1.01, 3.0, 1e6]))
def test_a_larger_weight_never_gives_fewer_cells_where_all_splits_cost_the_same(name, seed, budget, which, factor):
    tree = CellTree(512, 512)
    relevances = relevances_of([tree] * 3, ["random", "peaked", "sparse"], seed)
    raised = [factor if i == which else 1.0 for i in range(3)]
    before, after = (allocate_forest(name, [tree] * 3, relevances, budget, weights=w)[which] for w in (None, raised))
    assert after.indices.shape[1] >= before.indices.shape[1]


def split_in(tree, indices):
    """The cells that a cut has split, some of it below them."""
    chosen = torch.zeros(tree.size, dtype=torch.bool)
    chosen[indices] = True
    chosen &= ~layers(tree, indices)[1]
    split = torch.zeros_like(chosen)
    for i in reversed(range(tree.size)):
        if (chosen[i] or split[i]) and tree.parent[i] >= 0:
            split[tree.parent[i]] = True
    return split.nonzero()[:, 0].tolist()


@given(forests(kinds=("random", "peaked")), st.sampled_from(SHAPES), st.integers(1, 4))
def test_an_image_that_wants_nothing_takes_no_more_than_its_roots(drawn, empty, count):
    forest, relevances, _, _, _ = drawn
    budget = sum(tree.root_counts[0] + tree.fine_counts[0] for tree in forest) // 2
    alone = cells_of(allocate_forest("dag", forest, relevances, budget))
    mates, nothing = [empty] * count, [torch.zeros(empty.size)] * count
    found = cells_of(
        allocate_forest("dag", [*mates, *forest], [*nothing, *relevances], budget + count * empty.root_counts[0])
    )
    assert found[count:] == alone
    assert found[:count] == [list(range(empty.root_counts[0]))] * count


@pytest.mark.parametrize("name", CUTS)
def test_equal_images_get_equally_many_cells(name):
    relevance = one_place(PAGE, 400, 600, 300)
    counts = [s.indices.shape[1] for s in allocate_forest(name, [PAGE] * 8, [relevance] * 8, 2000)]
    assert sum(counts) == 2000 and max(counts) - min(counts) <= 5


@pytest.mark.parametrize("name", CUTS)
def test_a_hard_image_borrows_from_easy_ones(name):
    tree = CellTree(1024, 1024)
    hard, easy = torch.ones(tree.size), torch.full((tree.size,), 0.01)
    counts = [s.indices.shape[1] for s in allocate_forest(name, [tree] * 3, [easy, hard, easy], 300)]
    assert counts[1] > 200 and min(counts) >= tree.root_counts[0]
    likely = allocate_forest(name, [tree] * 3, [hard] * 3, 300, weights=[1, 1, 100])
    assert likely[2].indices.shape[1] > 200


@pytest.mark.parametrize("name", CUTS)
def test_long_rows_choose_what_a_full_sort_chooses(name, monkeypatch):
    forest = [PAGE, PAGE, CellTree(700, 1200), CellTree(31, 31)]
    for kind in KINDS:
        relevances = relevances_of(forest, [kind] * 4)
        for budget in (10, 60, 64, 300, 2000, 8000):
            usual = cells_of(allocate_forest(name, forest, relevances, budget))
            monkeypatch.setattr(frame, "LONG", 0)
            assert cells_of(allocate_forest(name, forest, relevances, budget)) == usual
            monkeypatch.undo()


@pytest.mark.parametrize("name", CUTS)
def test_too_few_tokens_give_the_best_roots_and_too_many_all_cells(name):
    forest = [CellTree(256, 256), CellTree(640, 480)]
    relevances = [torch.full((forest[0].size,), 0.5), torch.ones(forest[1].size)]
    few = allocate_forest(name, forest, relevances, 5)
    assert [s.indices.shape[1] for s in few] == [0, 5] and (few[1].levels == forest[1].levels - 1).all()
    assert few[0].boxes.shape == (1, 0, 4) and few[0].coverage().tolist() == [0]
    for budget in (10**30, sum(tree.size for tree in forest)):
        everything = allocate_forest(name, forest, relevances, budget)
        assert [s.indices.shape[1] for s in everything] == [tree.size for tree in forest]


# ---- options ------------------------------------------------------------------------------------------------------


def test_the_error_of_each_cell_decides_across_trees():
    tree = CellTree(1024, 1024)
    error = [torch.ones(tree.size), torch.full((1, tree.size), 20.0)]
    for name in ("dag", "foveated"):
        counts = [s.indices.shape[1] for s in allocate_forest(name, [tree] * 2, [flat(tree)] * 2, 400, error=error)]
        assert counts[1] > 2 * counts[0]
        alone = allocate(name, tree, flat(tree), 100, error=error[1])
        assert cells_of(allocate_forest(name, [tree], [flat(tree)], 100, error=error[1:])) == alone.indices.tolist()


def test_orientations_are_shared_by_the_question_about_each_image():
    tree, generator = CellTree(1024, 1024), torch.Generator().manual_seed(0)
    energy = [torch.rand(tree.size, 4, generator=generator) for _ in range(2)]
    how = {"energy": energy[:1], "question": "What is written here?"}
    alone = allocate("frequency", tree, flat(tree), 100, energy=energy[0][None], question=how["question"])
    assert cells_of(allocate_forest("frequency", [tree], [flat(tree)], 100, **how)) == alone.indices.tolist()
    questions = ["What is written here?", "Which building is the tallest?"]
    first, second = (
        allocate_forest("frequency", [tree] * 2, [flat(tree)] * 2, 300, energy=energy[:1] * 2, question=q)
        for q in (questions, questions[::-1])
    )
    assert cells_of(first) == cells_of(second[::-1]) and cells_of(first)[0] != cells_of(first)[1]


@pytest.mark.parametrize("name", [name for name in CUTS if ALLOCATORS[name].cuts_by_legibility])
def test_illegible_print_of_all_pages_comes_first(name):
    y0 = 200.0 + 32 * torch.arange(30)
    full = torch.full_like
    small = torch.stack([full(y0, 100), y0, full(y0, 1100), y0 + 24, full(y0, 24)], 1)
    none = torch.zeros(0, 5)
    pages, how = [PAGE] * 3, {"error": "legibility"}
    found = allocate_forest(name, pages, [flat(PAGE)] * 3, 150, lines=[none, small, none], **how)
    alone = allocate(name, PAGE, flat(PAGE), 150 - 2 * PAGE.root_counts[0], lines=[small], **how)
    assert [split_in(PAGE, s.indices[0]) for s in found] == [[], split_in(PAGE, alone.indices[0]), []]
    one = allocate_forest(name, [PAGE], [flat(PAGE)], 273, lines=[small], **how)[0]
    assert torch.equal(one.indices, allocate(name, PAGE, flat(PAGE), 273, lines=[small], **how).indices)


def test_a_share_for_the_fovea_is_of_all_tokens():
    tree = CellTree(1024, 1024)
    found = allocate_forest("foveated", [tree] * 2, [flat(tree)] * 2, 200, fovea=0.5)
    assert sum(int((s.levels == 0).sum()) for s in found) >= 100
    alone = allocate("foveated", tree, flat(tree), 200, fovea=0.5)
    assert cells_of(allocate_forest("foveated", [tree], [flat(tree)], 200, fovea=0.5)) == alone.indices.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("name", CUTS)
def test_the_gpu_chooses_what_the_cpu_chooses(name):
    relevances = relevances_of(SHAPES, ["random"] * len(SHAPES))
    here = allocate_forest(name, SHAPES, relevances, 600)
    there = allocate_forest(name, SHAPES, [relevance.cuda() for relevance in relevances], 600)
    assert there[0].boxes.is_cuda and cells_of(there) == cells_of(here)


# ---- wrong input --------------------------------------------------------------------------------------------------

TREE, OTHER = CellTree(200, 300), CellTree(64, 64)
BOTH, ONES = [TREE, OTHER], [torch.ones(TREE.size), torch.ones(1, OTHER.size)]
NAN = torch.full((OTHER.size,), torch.nan)

WRONG = [
    ({"trees": []}, "trees must be a list of at least one CellTree"),
    ({"trees": TREE}, "trees must be a list"),
    ({"trees": [TREE, 7]}, "tree 1 is 7"),
    ({"trees": [TREE, CellTree.bucket([(64, 64), (32, 32)])]}, "tree 1 is a tree of several images"),
    ({"relevances": ONES[:1]}, "relevances must be a list of 2, one for each tree, got 1"),
    ({"relevances": ONES[::-1]}, rf"relevance of tree 0 must be \[{TREE.size}\]"),
    ({"relevances": [ONES[0], torch.ones(2, OTHER.size)]}, "relevance of tree 1"),
    ({"relevances": [ONES[0], "many"]}, "relevance of tree 1 must be a tensor of numbers"),
    ({"relevances": [ONES[0], NAN]}, "relevance must be finite, got nan in tree 1, cell 0"),
    ({"budget": 0}, "budget must be a whole number of at least 1"),
    ({"budget": 2.5}, "budget must be a whole number"),
    ({"weights": [1.0]}, "weights must be 2 finite numbers above 0"),
    ({"weights": [1.0, 0.0]}, "weights must be 2 finite numbers above 0"),
    ({"weights": [1.0, torch.inf]}, "weights must be 2 finite numbers above 0"),
    ({"fixation": [(1, 1)]}, "fixation must be a list of 2"),
    ({"fixation": [(1, 1), (1, 2, 3)]}, r"fixation of tree 1 must be \[2\] or \[F, 2\]"),
    ({"fixation": [(1, 1), (1, 65)]}, "of tree 1 lies outside its 64 x 64 pixels"),
    ({"error": torch.ones(1, TREE.size)}, "error must be a list of 2"),
    ({"error": [ONES[0], NAN[1:]]}, rf"error of tree 1 must be \[{OTHER.size}\]"),
    ({"error": [ONES[0], NAN]}, "error must hold finite numbers"),
    ({"error": "legibility"}, "needs the option lines"),
    ({"error": "legibility", "lines": [torch.zeros(0, 5)]}, "lines must be a list of 2"),
    ({"lines": [torch.zeros(0, 5), torch.zeros(1, 4)]}, "image 1 has"),
    ({"rule": "frequency", "energy": [torch.ones(TREE.size, 4), torch.ones(OTHER.size, 2)]}, "as many values a cell"),
    ({"scales": 4}, "scales must be 1 for several trees"),
    ({"detail": -1}, "detail must be from 0 to 8"),
    ({"fovea": 0.5}, "dag has no option 'fovea'"),
    ({"rule": "dga"}, "no allocator 'dga'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_wrong_input_is_named_in_one_sentence(wrong, message):
    given_ = {"rule": "dag", "trees": BOTH, "relevances": ONES, "budget": 40} | wrong
    with pytest.raises(InputError, match=message) as caught:
        allocate_forest(**given_)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", OTHERS)
def test_rules_that_are_no_cut_are_refused_with_those_that_are(name):
    with pytest.raises(InputError, match=rf"{name} is no cut.*{', '.join(CUTS)}"):
        allocate_forest(name, BOTH, ONES, 40)
