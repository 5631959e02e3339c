"""A token's position is where it came from, whatever was selected beside it."""

import math

import pytest
import torch

from homunculus import CellTree, InputError, allocate
from homunculus.positions import coordinates, logpolar, mrope_ids, rotary, rotate

TREE = CellTree(640, 960)


def everything(tree: CellTree):
    return allocate("grid", tree, torch.rand(1, tree.size), tree.size)


def test_coordinates_are_level_and_centre_in_cells():
    places = coordinates(everything(TREE))[0]
    assert torch.equal(places[:, 0].long(), TREE.level)
    torch.testing.assert_close(places[:, 1:], TREE.centre / 32)


def test_positions_do_not_depend_on_what_else_was_selected():
    whole = everything(TREE)
    some = allocate("dag", TREE, torch.rand(1, TREE.size), 60)
    kept = some.indices[0]
    for positions in (coordinates, mrope_ids):
        a, b = positions(whole), positions(some)
        torch.testing.assert_close(a[..., kept, :] if positions is coordinates else a[..., kept], b)
    gaze = torch.tensor([[100.0, 200.0]])
    torch.testing.assert_close(logpolar(whole, gaze)[:, kept], logpolar(some, gaze))


def test_mrope_ids_of_the_finest_level_are_rows_and_columns():
    tree = CellTree(100, 130)  # cells that the image only partly fills keep their place
    selection = allocate("grid", tree, torch.rand(1, tree.size), tree.fine_counts[0])
    ids = mrope_ids(selection, start=7)[:, 0]
    assert ids[0].tolist() == [7] * 20
    assert ids[1].tolist() == [7 + r for r in range(4) for _ in range(5)]
    assert ids[2].tolist() == [7 + c for _ in range(4) for c in range(5)]


def test_mrope_ids_of_coarse_cells_lie_in_the_middle_of_those_they_cover():
    selection = everything(TREE)
    ids, whole = mrope_ids(selection)[:, 0], mrope_ids(selection, whole=True)[:, 0]
    side = 2 ** TREE.level.double()
    torch.testing.assert_close(ids[1], (TREE.row + 0.5) * side - 0.5)
    torch.testing.assert_close(ids[2], (TREE.column + 0.5) * side - 0.5)
    assert whole.dtype == torch.long and (ids - whole >= 0).all() and (ids - whole < 1).all()


def test_rotary_attention_sees_only_differences_of_position():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 64, generator=generator)
    places = torch.tensor([[[1.0, 3.5, 7.0]], [[2.0, 10.5, 2.0]], [[0.0, 4.0, 4.0]]])

    def score(a: torch.Tensor, b: torch.Tensor) -> float:
        return float((rotate(q, rotary(a[None], 64)) * rotate(k, rotary(b[None], 64))).sum())

    shift = torch.tensor([1.0, -2.0, 5.0])
    for a in places:
        for b in places:
            assert score(a, b) == pytest.approx(score(a + shift, b + shift), abs=1e-4)
    assert abs(score(places[0], places[1]) - score(places[0], places[2])) > 1e-2


def test_rotary_keeps_lengths_and_uses_all_three_coordinates():
    x = torch.randn(2, 4, 9, 48)
    angles = rotary(torch.rand(2, 9, 3) * 50, 48)
    assert angles.shape == (2, 9, 24) and angles.dtype == torch.float32
    torch.testing.assert_close(rotate(x, angles).norm(dim=-1), x.norm(dim=-1))
    assert rotate(x.bfloat16(), angles).dtype == torch.bfloat16
    zero = torch.zeros(1, 1, 3)
    for axis in range(3):
        moved = zero.clone()
        moved[..., axis] = 1
        assert (rotary(moved, 48) != rotary(zero, 48)).any()
    with pytest.raises(InputError, match="width"):
        rotary(zero, 5)


def test_logpolar_positions():
    tree = CellTree(400, 400, cell=8)
    selection = allocate("grid", tree, torch.rand(1, tree.size), tree.fine_counts[0])
    gaze = torch.tensor([[204.0, 204.0]], dtype=torch.float64)
    where = logpolar(selection, gaze)[0]
    here = int(((selection.centre[0] - gaze).abs().sum(1) == 0).nonzero())
    assert where[here].tolist() == [0.0, 0.0]
    right = int((selection.centre[0] == torch.tensor([300.0, 204.0])).all(1).nonzero())
    assert where[right].tolist() == pytest.approx([math.log1p(96 / 20 / 0.35), 0.0])
    with pytest.raises(InputError, match="fixation must be"):
        logpolar(selection, torch.zeros(2))
