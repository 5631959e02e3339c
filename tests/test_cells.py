"""The tree is what everything stands on: its cells nest, tile every level, and never lie on padding."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from homunculus import CellTree, InputError, Selection
from homunculus.allocators import allocate

sides = st.one_of(st.integers(1, 80), st.integers(80, 2500))
trees = st.builds(
    lambda h, w, cell, levels: CellTree(h, w, cell, levels),
    sides,
    sides,
    st.sampled_from([14, 28, 32, 64]),
    st.one_of(st.none(), st.integers(1, 7)),
)


@given(trees)
def test_every_level_tiles_the_image(tree):
    boxes = tree.box
    for level in range(tree.levels):
        part = boxes[tree.at(level)]
        assert int(((part[:, 2] - part[:, 0]) * (part[:, 3] - part[:, 1])).sum()) == tree.height * tree.width
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 2] <= tree.width).all() and (boxes[:, 3] <= tree.height).all()
    assert (boxes[:, 2:] > boxes[:, :2]).all(), "a cell that lies on padding alone"


@given(trees)
def test_parents_and_children_know_each_other(tree):
    parent, children = tree.parent, tree.children
    assert ((parent == -1) == (tree.level == tree.levels - 1)).all()
    for i in torch.randperm(tree.size)[:50].tolist():
        below = children[i][children[i] >= 0]
        assert len(below) == int(tree.child_count[0, i]) and (tree.level[i] == 0) == (len(below) == 0)
        assert (parent[below] == i).all()
        if len(below):
            x0, y0, x1, y1 = tree.box[i].tolist()
            around = tree.box[below]
            assert [around[:, 0].min(), around[:, 1].min(), around[:, 2].max(), around[:, 3].max()] == [x0, y0, x1, y1]


@given(trees)
def test_tree_order_is_coarse_to_fine_and_row_by_row(tree):
    key = torch.stack((-tree.level, tree.row, tree.column), 1)
    assert key.tolist() == sorted(key.tolist())


@given(sides, sides, st.sampled_from([14, 32]))
def test_default_levels_leave_at_most_16_roots_and_no_level_more(height, width, cell):
    tree = CellTree(height, width, cell)
    assert tree.root_counts[0] <= 16
    assert tree.levels == 1 or math.prod(tree.shapes[-2]) > 16


def test_known_sizes():
    assert CellTree(2048, 2048, levels=7).size == 5461
    assert CellTree(2048, 2048).shapes[-1] == (4, 4)
    assert CellTree(1, 1).size == 1 and CellTree(1, 30_000).shapes[0] == (1, 938)
    assert len(CellTree(100, 70)) == CellTree(100, 70).size == 12


@pytest.mark.parametrize(
    "arguments",
    [(0, 5), (5, -1), (5.0, 5), (True, 5), ("5", 5), (5, 5, 0), (5, 5, 32, 0), (5, 5, 32, 99), (5, 5, 32, 2.5)],
)
def test_a_wrong_size_is_named(arguments):
    with pytest.raises(InputError, match=r"must be"):
        CellTree(*arguments)


@given(trees, st.data())
def test_locate_finds_the_cell_around_a_point(tree, data):
    level = data.draw(st.integers(0, tree.levels - 1))
    point = [data.draw(st.floats(0, tree.width)), data.draw(st.floats(0, tree.height))]
    i = tree.locate(torch.tensor([[point]], dtype=torch.float64), level)[0, 0]
    x0, y0, x1, y1 = tree.box[i].tolist()
    assert tree.level[i] == level and x0 <= point[0] <= x1 and y0 <= point[1] <= y1


@given(trees, st.sampled_from(["mean", "sum", "max"]))
def test_lift_agrees_with_a_walk_over_the_fine_cells(tree, how):
    torch.manual_seed(0)
    fine = torch.rand(1, math.prod(tree.shapes[0]), dtype=torch.float64)
    lifted = tree.lift(fine, how)[0]
    boxes, below = tree.box, tree.box[tree.at(0)]
    for i in torch.randperm(tree.size)[:20].tolist():
        inside = (below[:, :2] >= boxes[i, :2]).all(1) & (below[:, 2:] <= boxes[i, 2:]).all(1)
        assert lifted[i] == pytest.approx(float(getattr(fine[0, inside], how)()))


def test_lift_knows_three_ways_only():
    with pytest.raises(InputError, match="median"):
        CellTree(64, 64).lift(torch.zeros(1, 4), "median")


@given(st.lists(st.tuples(sides, sides), min_size=1, max_size=4), st.one_of(st.none(), st.integers(1, 5)))
def test_a_bucket_holds_each_image_s_own_tree(sizes, levels):
    bucket = CellTree.bucket(sizes, levels=levels)
    for b, (height, width) in enumerate(sizes):
        alone = CellTree(height, width, levels=levels)
        mine = bucket.valid[b]
        boxes = bucket.box[b]
        assert int(mine.sum()) == alone.size == bucket.counts[b]
        assert torch.equal(boxes[mine], alone.box) and torch.equal(bucket.level[mine], alone.level)
        assert torch.equal(bucket.child_count[b][mine], alone.child_count[0])
        assert int(bucket.roots[b].sum()) == alone.root_counts[0]


def test_a_mask_alone_gives_the_same_bucket():
    bucket = CellTree.bucket([(640, 960), (320, 1280), (96, 64)])
    plain = CellTree(bucket.height, bucket.width, levels=bucket.levels)
    again = plain.restrict(bucket.valid)
    assert again.depths == bucket.depths and torch.equal(again.valid, bucket.valid)
    with pytest.raises(InputError, match="bool"):
        plain.restrict(bucket.valid.float())
    with pytest.raises(InputError, match="anchored"):
        plain.restrict(bucket.valid & (torch.rand(bucket.valid.shape) < 0.9))
    with pytest.raises(InputError, match="without any finest cell"):
        plain.restrict(torch.zeros_like(bucket.valid))
    with pytest.raises(InputError, match="at least one image"):
        CellTree.bucket([])
    for wrong in ([5, 7], [(5, 7, 3)], [(5, 0)]):
        with pytest.raises(InputError):
            CellTree.bucket(wrong)
    assert CellTree.bucket([(64, 32)]).box.shape == (1, 2, 4)


@given(sides, sides, st.integers(1, 60), st.sampled_from(["grid", "pyramid", "dag", "logpolar", "uniform"]))
def test_coverage_is_the_share_of_painted_pixels(height, width, budget, name):
    tree = CellTree(height, width)
    selection = allocate(name, tree, torch.rand(1, tree.size), budget)
    painted = torch.zeros(height, width, dtype=torch.bool)
    for x0, y0, x1, y1 in selection.boxes[0].round().long().tolist():
        painted[y0:y1, x0:x1] = True
    assert float(selection.coverage()[0]) == pytest.approx(
        float(painted.double().mean()), abs=1e-9 if name != "uniform" else 0.02
    )
    if name == "uniform":
        assert float(selection.coverage()[0]) == pytest.approx(1, abs=1e-12)


def test_a_row_of_a_selection_stands_alone():
    bucket = CellTree.bucket([(640, 960), (64, 64)])
    selection = allocate("dag", bucket, torch.rand(2, bucket.size), 100)
    assert selection.mask.sum(1).tolist() == [100, 4] and len(selection) == 2
    alone = selection.row(1)
    assert alone.boxes.shape == (1, 4, 4) and alone.mask.all() and isinstance(alone, Selection)
    assert alone.sizes.tolist() == [[64, 64]] and (selection.indices[1, 4:] == -1).all()


def test_copies_on_a_device_are_made_once():
    tree = CellTree(64, 64)
    assert tree.to("cpu") is tree and tree.to("meta") is tree.to("meta")
    assert "64x64" in repr(tree)


def test_a_mask_that_leaves_part_of_the_tree_to_nobody_says_how_large_the_tree_should_be():
    tree = CellTree(1024, 1024)
    small = (tree.box[:, 0] < 300) & (tree.box[:, 1] < 500)
    with pytest.raises(InputError, match="lay it out for 512 x 320 pixels and 4 levels"):
        tree.restrict(small[None])
