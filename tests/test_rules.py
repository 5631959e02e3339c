"""What each rule promises beyond the properties that all of them share."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from homunculus import CellTree, InputError, allocate
from homunculus.allocators import PseudoLogPolar, coverage_loss
from homunculus.allocators.acuity import E0, acuity_cells, magnification
from homunculus.allocators.frame import Request
from homunculus.allocators.pseudo_logpolar import start_centres
from homunculus.allocators.strata import strata_for, stratum_of
from homunculus.cells import Selection
from homunculus.fixation import eccentricity, peak
from trees import PAGE, SQUARE, flat, one_place

# ---- acuity -------------------------------------------------------------------------------------------------------


def slope_of_size(tree: CellTree, selection: Selection, fixation: torch.Tensor) -> float:
    """Exponent b of the fit side ~ (e + e0)^b over all tokens; M(e) = m0 / (e + e0) asks for 1.

    Sizes come in octaves and cannot fall below the finest cell, which flattens the fit a little.
    """
    e = eccentricity(tree, fixation[:, None])[0, selection.indices[0]]
    x, y = (e + E0).log(), selection.levels[0].double() * math.log(2)
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


@pytest.mark.parametrize("name", ["foveated", "logpolar", "vortex", "pseudo-logpolar"])
@pytest.mark.parametrize("tree", [SQUARE, PAGE, CellTree(4096, 4096)], ids=repr)
@pytest.mark.parametrize("place", [(0.5, 0.5), (0.2, 0.3), (0.9, 0.95)])
@pytest.mark.parametrize("budget", [150, 273])
@pytest.mark.parametrize("relevance", ["flat", "random"])
def test_cell_size_grows_with_eccentricity_as_cortical_magnification_says(name, tree, place, budget, relevance):
    fixation = torch.tensor([[place[0] * tree.width, place[1] * tree.height]], dtype=torch.float64)
    torch.manual_seed(0)
    values = flat(tree) if relevance == "flat" else torch.rand(1, tree.size)
    selection = allocate(name, tree, values, budget, fixation)
    assert 0.75 < slope_of_size(tree, selection, fixation) < 1.2
    if relevance == "random":
        return  # then the finest cell may lie elsewhere
    at_gaze = ((selection.centre[0] - fixation).abs().amax(1) <= selection.span[0] / 2).nonzero()[:, 0]
    assert int(selection.levels[0][at_gaze].min()) == int(selection.levels.min()), (
        "the gaze is not where cells are finest"
    )


def test_magnification_is_the_formula():
    assert float(magnification(torch.tensor(0.75))) == pytest.approx(17 / 1.5)
    assert float(magnification(torch.tensor(2.0), m0=10, e0=0.5)) == pytest.approx(4)


def test_foveated_leaves_empty_paper_coarse_however_near():
    relevance = torch.ones(1, SQUARE.size)
    centre = torch.tensor([[1024.0, 1024.0]])
    printed = SQUARE.centre[:, 0] > 1024  # the right half of the page
    error = torch.where(printed, 4.0 ** SQUARE.level.double(), 0.0)[None]

    def fine_cells_left(**options) -> int:
        selection = allocate("foveated", SQUARE, relevance, 273, centre, **options)
        return int(((selection.levels == 0) & (selection.centre[..., 0] < 1024)).sum())

    everywhere, some, none = fine_cells_left(), fine_cells_left(error=error), fine_cells_left(error=error, detail=0)
    assert everywhere == none > 20 and some < everywhere / 4


def test_foveated_follows_relevance_too_and_the_floor_says_how_much():
    relevance = one_place(SQUARE, 1800, 300, 60)
    corner = torch.tensor([[200.0, 1800.0]], dtype=torch.float64)

    def fine_cells_there(floor: float) -> int:
        boxes = allocate("foveated", SQUARE, relevance, 273, corner, floor=floor)
        near = (boxes.centre[0] - torch.tensor([1800, 300])).square().sum(1).sqrt() < 150
        return int((near & (boxes.levels[0] == 0)).sum())

    assert fine_cells_there(100.0) <= 2, "the tokens left over go to the most relevant fine cells"
    assert 10 < fine_cells_there(0.05) < fine_cells_there(0.0)


@pytest.mark.parametrize("name", ["foveated", "logpolar"])
@pytest.mark.parametrize("share", [0.2, 0.3, 0.4])
def test_the_fovea_gets_its_share_of_the_tokens(name, share):
    at = torch.tensor([[900.0, 1200.0]], dtype=torch.float64)
    selection = allocate(name, SQUARE, torch.rand(1, SQUARE.size), 273, at, fovea=share)
    e = eccentricity(SQUARE, at[:, None])[0]
    wanted = SQUARE.inner + e[SQUARE.at(0)].argsort(stable=True)[: round(share * 273)]
    assert set(wanted.tolist()) <= set(selection.indices[0].tolist())


def test_several_fixations_are_all_looked_at():
    places = torch.tensor([[[300.0, 300.0], [1700.0, 1500.0]]], dtype=torch.float64)
    for name in ("foveated", "logpolar", "pseudo-logpolar", "vortex"):
        selection = allocate(name, SQUARE, flat(SQUARE), 273, places)
        for place in places[0]:
            near = (selection.centre[0] - place).abs().amax(1) < 100
            assert near.sum() >= 5 and (selection.levels[0][near] == 0).double().mean() > 0.8


# ---- log-polar and its kin ----------------------------------------------------------------------------------------


def test_logpolar_serves_every_direction():
    centre = torch.tensor([[1024.0, 1024.0]], dtype=torch.float64)
    for seed in range(3):
        torch.manual_seed(seed)
        selection = allocate("logpolar", SQUARE, torch.rand(1, SQUARE.size) ** 8, 273, centre)
        away = selection.centre[0] - centre
        sector = ((torch.atan2(away[:, 1], away[:, 0]) / (2 * math.pi) % 1) * 17).long()
        assert (torch.bincount(sector, minlength=17) >= 6).all()


def test_logpolar_takes_the_most_relevant_cell_of_a_bin():
    torch.manual_seed(1)
    relevance = torch.rand(1, SQUARE.size, dtype=torch.float64)
    gaze = torch.tensor([[1000.0, 1010.0]], dtype=torch.float64)
    chosen = set(allocate("logpolar", SQUARE, relevance, 273, gaze).indices[0].tolist())
    offered = acuity_cells(Request(SQUARE, relevance, gaze[:, None], 273), oversample=1.5)[0][0].tolist()
    missed = [cell for cell in offered if cell not in chosen and cell >= 0]
    assert len(missed) > 100
    for cell in missed[::10]:
        raised = relevance.clone()
        raised[0, cell] = 2.0
        assert cell in allocate("logpolar", SQUARE, raised, 273, gaze).indices[0].tolist()


@pytest.mark.parametrize("options", [{"radius": "acuity"}, {"beta": 0.5}, {"alpha": 0.25}, {"rings": 8, "sectors": 10}])
def test_logpolar_options_change_the_choice_but_not_the_count(options):
    torch.manual_seed(0)
    relevance = torch.rand(2, SQUARE.size)
    plain = allocate("logpolar", SQUARE, relevance)
    changed = allocate("logpolar", SQUARE, relevance, **options)
    assert changed.indices.shape == (2, 273) and not torch.equal(plain.indices, changed.indices)


@given(st.integers(1, 2500), st.integers(1, 2500), st.integers(1, 300), st.floats(0, 1), st.floats(0, 1))
def test_offgrid_points_are_exactly_as_many_distinct_boxes_inside_the_image(height, width, budget, x, y):
    tree = CellTree(height, width)
    fixation = torch.tensor([[x * width, y * height]], dtype=torch.float64)
    selection = allocate("logpolar", tree, torch.rand(1, tree.size), budget, fixation, offgrid=True)
    boxes = selection.boxes[0]
    assert selection.indices is None and len(boxes) == min(budget, tree.size)
    assert selection.mask.all()
    assert len({(*box, l) for box, l in zip(boxes.tolist(), selection.levels[0].tolist(), strict=True)}) == len(boxes)
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 2] <= width).all() and (boxes[:, 3] <= height).all()
    assert (boxes[:, 2:] > boxes[:, :2]).all()
    assert (selection.levels[0].diff() <= 0).all(), "not coarse to fine"


def test_offgrid_gives_all_cells_of_a_small_image_and_the_same_beside_a_large_one():
    sizes = [(1400, 640), (300, 200), (33, 31)]
    bucket, singles = CellTree.bucket(sizes), [CellTree(*size) for size in sizes]
    together = allocate("logpolar", bucket, torch.zeros(3, bucket.size), 273, offgrid=True)
    for b, tree in enumerate(singles):
        alone = allocate("logpolar", tree, torch.zeros(1, tree.size), 273, offgrid=True)
        row = together.row(b)
        assert torch.equal(row.boxes, alone.boxes) and torch.equal(row.levels, alone.levels)
        if tree.size <= 273:
            assert sorted(alone.boxes[0].long().tolist()) == sorted(tree.box.tolist())


def test_offgrid_centres_a_patch_on_the_fixation():
    fixation = torch.tensor([[1003.0, 777.0]], dtype=torch.float64)
    selection = allocate("logpolar", SQUARE, flat(SQUARE), 273, fixation, offgrid=True)
    assert ((selection.centre[0] - fixation).abs().amax(1) == 0).any()


def test_offgrid_looks_at_every_fixation_and_refuses_what_it_does_not_know():
    places = torch.tensor([[[300.0, 300.0], [1700.0, 1500.0], [1000.0, 400.0]]], dtype=torch.float64)
    selection = allocate("logpolar", SQUARE, flat(SQUARE), 273, places, offgrid=True)
    for place in places[0]:
        assert ((selection.centre[0] - place).abs().amax(1) == 0).any()
    for options in ({"fovea": 0.3}, {"beta": 0.2}, {"radius": "acuity"}, {"fovea": -1.0}):
        with pytest.raises(InputError):
            allocate("logpolar", SQUARE, flat(SQUARE), 273, places, offgrid=True, **options)


def test_pseudo_logpolar_starts_with_a_quarter_in_the_fovea_and_can_be_trained():
    start = start_centres(272)
    assert int((start.square().sum(1).sqrt() <= 1.5).sum()) == 68
    bins = PseudoLogPolar(bins=40)
    target = torch.tensor([[6.0, -4.0]]) + 0.5 * torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    before = allocate(
        "pseudo-logpolar", SQUARE, flat(SQUARE), 150, torch.tensor([[1024.0, 1024.0]]), centres=bins.centres
    )
    optimizer = torch.optim.Adam(bins.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        assignment = bins(target[None])
        spread = (target[:, None] - bins.centres).square().sum(2)
        loss = (assignment[0] * spread).sum(1).mean() + 0.1 * bins.dead_bin_loss(assignment)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    after = allocate(
        "pseudo-logpolar", SQUARE, flat(SQUARE), 150, torch.tensor([[1024.0, 1024.0]]), centres=bins.centres
    )
    assert not torch.equal(before.indices, after.indices)


def test_dead_bins_cost_and_even_use_does_not():
    even, dead = torch.full((1, 10, 4), 0.25), torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0]).expand(1, 10, 4)
    assert float(PseudoLogPolar.dead_bin_loss(even)) == pytest.approx(0, abs=1e-6)
    assert float(PseudoLogPolar.dead_bin_loss(dead)) > 1


def test_vortex_lies_along_a_spiral():
    centre = torch.tensor([[1024.0, 1024.0]], dtype=torch.float64)
    selection = allocate("vortex", SQUARE, flat(SQUARE), 273, centre, oversample=4.0)
    e = eccentricity(SQUARE, centre[:, None])[0]
    away = selection.centre[0] - centre
    rho = ((e[selection.indices[0]] + E0) / E0).log()
    outer = rho > 0.3 * rho.max()
    winding = 8 * rho / float(((e[SQUARE.fine[0]] + E0) / E0).log().max()) - torch.atan2(away[:, 1], away[:, 0]) / (
        2 * math.pi
    )
    off = (winding - winding.round()).abs()[outer]
    assert float(off.mean()) < 0.15, "a random choice lies 0.25 off"


# ---- strata, shares, segments -------------------------------------------------------------------------------------


@given(st.integers(1, 2500), st.integers(1, 2500), st.tuples(st.integers(1, 9), st.integers(1, 9)), st.integers(0, 200))
def test_stratified_serves_every_stratum_when_the_budget_allows(height, width, strata, more):
    tree = CellTree(height, width)
    group = stratum_of(tree, torch.tensor([strata]))[0]
    budget = strata[0] * strata[1] + more
    relevance = torch.rand(1, tree.size, generator=torch.Generator().manual_seed(more)) ** 20
    selection = allocate("stratified", tree, relevance, budget, strata=strata)
    fine = selection.indices[0][selection.levels[0] == 0] - tree.inner
    assert set(group[fine].tolist()) == set(group.tolist())


def test_stratified_shares_the_rest_in_proportion_and_takes_the_best_of_each():
    relevance = torch.zeros(1, SQUARE.size)
    group = stratum_of(SQUARE, torch.tensor([[2, 2]]))[0]
    generator = torch.Generator().manual_seed(0)
    share = torch.tensor([8.0, 4.0, 2.0, 1.0])
    relevance[0, SQUARE.at(0)] = share[group] * (1 + 0.01 * torch.rand(len(group), generator=generator))
    selection = allocate("stratified", SQUARE, relevance, 300, strata=2)
    fine = selection.indices[0] - SQUARE.inner
    assert torch.bincount(group[fine]).tolist() == [160, 80, 40, 20]
    best = relevance[0, SQUARE.at(0)].where(group == 1, torch.tensor(-1.0)).topk(80).indices
    assert set(best.tolist()) == set(fine[group[fine] == 1].tolist())


def test_fewer_tokens_than_strata_go_to_the_most_relevant_ones():
    relevance = one_place(SQUARE, 200, 200, 300)
    selection = allocate("stratified", SQUARE, relevance, 3)
    assert set(stratum_of(SQUARE, torch.tensor([[4, 4]]))[0][selection.indices[0] - SQUARE.inner].tolist()) == {0, 1, 4}


def test_the_question_and_the_spread_choose_the_strata():
    relevance = torch.stack((torch.ones(SQUARE.size), one_place(SQUARE, 1000, 1000, 40)[0]))
    request = Request(SQUARE, relevance.double(), peak(SQUARE, relevance), 273)
    assert strata_for(request, ["", ""]).tolist() == [[8, 8], [2, 2]]
    assert strata_for(request, ["Describe the page"] * 2).tolist() == [[8, 8], [8, 8]]
    assert strata_for(request, ["the third column"] * 2)[1].tolist() == [2, 8]
    assert strata_for(request, ["the last row"] * 2)[1].tolist() == [8, 2]
    wide = one_place(SQUARE, 1000, 1000, 1) + (SQUARE.centre[:, 1] < 300)
    assert strata_for(Request(SQUARE, wide.double(), peak(SQUARE, wide), 273), [""])[0].tolist() == [2, 8]


def test_atlas_spends_the_foreground_on_the_segments_that_matter():
    tree = CellTree(1024, 1024)
    segments = torch.zeros(1, 64, 64, dtype=torch.long)
    segments[:, 10:30, 10:30] = 1
    segments[:, 40:60, 40:60] = 2
    relevance = torch.full((1, tree.size), 0.05)
    inside = (tree.centre[:, 0] > 640) & (tree.centre[:, 1] > 640)
    relevance[:, inside] = 1.0
    selection = allocate("atlas", tree, relevance, 150, segments=segments)
    x, y = selection.centre[0].T / 16
    fine = selection.levels[0] == 0
    in_two = (x > 40) & (x < 60) & (y > 40) & (y < 60)
    in_one = (x > 10) & (x < 30) & (y > 10) & (y < 30)
    assert int((fine & in_two).sum()) == 80, "its share of the relevance, of 150 tokens"
    assert int((fine & in_one).sum()) == 0
    assert float(selection.coverage()[0]) > 0.8, "the background is left uncovered"


def test_atlas_takes_label_maps_of_any_resolution_one_for_each_image():
    bucket = CellTree.bucket([(300, 500), (640, 200)])
    maps = [torch.randint(0, 5, (37, 61)), torch.randint(0, 9, (640, 200))]
    relevance = torch.rand(2, bucket.size)
    together = allocate("atlas", bucket, relevance, 60, segments=maps)
    tree = CellTree(640, 200)
    alone = allocate("atlas", tree, relevance[1:][:, bucket.valid[1]], 60, segments=maps[1:])
    assert torch.equal(together.row(1).boxes, alone.boxes)


def test_atlas_takes_any_numbers_for_labels():
    tree = CellTree(320, 320)
    relevance = torch.rand(1, tree.size)
    small = torch.randint(0, 7, (1, 30, 30))
    plain = allocate("atlas", tree, relevance, 40, segments=small)
    assert torch.equal(plain.indices, allocate("atlas", tree, relevance, 40, segments=small * 10**12).indices)
    assert torch.equal(plain.indices, allocate("atlas", tree, relevance, 40, segments=[small[0]]).indices)


# ---- plain rules --------------------------------------------------------------------------------------------------


def test_grid_takes_the_most_relevant_fine_cells():
    relevance = torch.rand(2, SQUARE.size)
    selection = allocate("grid", SQUARE, relevance)
    for b in range(2):
        best = SQUARE.inner + relevance[b, SQUARE.at(0)].topk(273).indices
        assert sorted(best.tolist()) == selection.indices[b].tolist()
    assert torch.equal(selection.indices, allocate("coverage", SQUARE, relevance).indices)


def test_random_depends_on_the_seed_alone_and_is_spread_evenly():
    a, b = (
        allocate("random", SQUARE, torch.rand(1, SQUARE.size)),
        allocate("random", SQUARE, torch.rand(1, SQUARE.size)),
    )
    assert torch.equal(a.indices, b.indices)
    assert not torch.equal(a.indices, allocate("random", SQUARE, flat(SQUARE), seed=1).indices)
    counts = torch.zeros(16)
    for seed in range(40):
        cells = allocate("random", SQUARE, flat(SQUARE), seed=seed).indices[0] - SQUARE.inner
        counts += torch.bincount(stratum_of(SQUARE, torch.tensor([[4, 4]]))[0][cells], minlength=16)
    assert (counts / counts.mean() - 1).abs().max() < 0.12


def test_pyramid_weighs_coarse_levels_more_and_splits_as_told():
    tree = CellTree(1024, 1024, levels=4)
    assert allocate("pyramid", tree, flat(tree), 16).levels.unique().tolist() == [3]
    split = allocate("pyramid", tree, torch.rand(1, tree.size), 273, split=(64, 128, 64, 17))
    counts = torch.bincount(split.levels[0], minlength=4).tolist()
    assert counts == [65, 128, 64, 16], "16 cells are all that level 3 has; the 17th token goes to a fine cell"
    even = allocate("pyramid", tree, torch.rand(1, tree.size), 60, split=(1, 1, 1, 0))
    assert torch.bincount(even.levels[0], minlength=4).tolist() == [20, 20, 20, 0]
    heavy = allocate("pyramid", tree, flat(tree), 100, weights=(9, 1, 1, 1))
    assert heavy.levels.unique().tolist() == [0]


def test_the_predicted_split_is_finer_the_more_relevance_is_in_one_place():
    tree = CellTree(1024, 1024, levels=4)
    point = allocate("pyramid", tree, one_place(tree, 300, 300, 30), 200, split="auto")
    spread = allocate("pyramid", tree, torch.rand(1, tree.size) + 1, 200, split="auto")
    assert (point.levels == 0).sum() > (spread.levels == 0).sum()
    assert (spread.levels > 0).sum() > 100


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 700), st.sampled_from([14, 32]))
def test_uniform_is_the_largest_scale_that_fits_and_covers_the_image_once(height, width, budget, cell):
    tree = CellTree(height, width, cell)
    selection = allocate("uniform", tree, flat(tree), budget)
    boxes, level = selection.boxes[0], float(selection.levels[0, 0])
    assert selection.indices is None and 1 <= len(boxes) <= budget and math.copysign(1, level) == 1
    assert float(selection.coverage()[0]) <= 1
    area = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])).sum()
    assert float(area) == pytest.approx(height * width) and (boxes[:, 2:] > boxes[:, :2]).all()
    assert (boxes[:, 2] <= width).all() and (boxes[:, 3] <= height).all() and (boxes >= 0).all()
    larger = 2**-level * (1 + 1e-9)
    fits = math.ceil(height * larger / cell) * math.ceil(width * larger / cell) <= budget
    assert level == 0 or not fits, "a larger scale would have fitted"


def test_uniform_at_its_usual_sizes():
    assert allocate("uniform", SQUARE, flat(SQUARE)).boxes.shape == (1, 256, 4)
    assert allocate("uniform", SQUARE, flat(SQUARE)).levels.unique().tolist() == [2.0]
    assert allocate("uniform", SQUARE, flat(SQUARE), 99_999).boxes.shape == (1, 4096, 4)
    page = allocate("uniform", PAGE, flat(PAGE))
    assert 255 <= page.boxes.shape[1] <= 273 and float(page.levels[0, 0]) % 1 > 0


def test_the_coverage_loss_spreads_the_choice():
    tree = CellTree(1024, 1024)
    scores = one_place(tree, 200, 200, 150).float().clone().requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=0.05)

    def empty_regions() -> int:
        fine = allocate("coverage", tree, scores.detach(), 100).indices[0] - tree.inner
        return 64 - len(stratum_of(tree, torch.tensor([[8, 8]]))[0][fine].unique())

    before, start = empty_regions(), coverage_loss(scores, tree, 100).item()
    for _ in range(100):
        optimizer.zero_grad()
        coverage_loss(scores, tree, 100).backward()
        optimizer.step()
    assert coverage_loss(scores, tree, 100).item() < start / 2 and empty_regions() < before / 2
    assert 0 <= start <= 0.1


def test_the_coverage_loss_does_not_see_padding_and_names_what_is_wrong():
    bucket = CellTree.bucket([(640, 960), (64, 64)])
    scores = torch.rand(2, bucket.size)
    padded = torch.where(bucket.valid, scores, torch.nan).requires_grad_()
    loss = coverage_loss(padded, bucket, 20)
    loss.backward()
    assert loss.item() == coverage_loss(scores, bucket, 20).item() and bool(padded.grad.isfinite().all())
    for wrong in ({"budget": 0}, {"regions": 0}):
        with pytest.raises(InputError, match="must be a whole number"):
            coverage_loss(scores, bucket, **wrong)
    with pytest.raises(InputError, match=r"scores must be \[B"):
        coverage_loss(scores[:, 1:], bucket)
    assert coverage_loss(scores.to("meta"), bucket).device.type == "meta"  # the tree goes where the scores are
