"""Published token reduction: each rule on a case worked out by hand, and what all of them promise."""

import importlib
from dataclasses import fields, replace
from itertools import pairwise

import pytest
import torch

from homunculus import InputError
from homunculus.peers import (
    BEFORE,
    INSIDE,
    LayerState,
    ReducedTokens,
    Stage,
    VisualTokens,
    inside,
    list_peers,
    mean_tokens,
    reduce,
)
from homunculus.peers.base import evenly, share_out, stretched
from homunculus.peers.pooling import pooled_shape
from homunculus.peers.prumerge import standing_out
from homunculus.peers.pyramid_pruning import tiling
from homunculus.peers.sparsevlm import clustered, rating
from homunculus.peers.stages import scaled


def sight(tokens, grid, **given) -> VisualTokens:
    """One image with the tokens of a grid; nothing is attended to and nothing asked unless told."""
    tokens = torch.as_tensor(tokens, dtype=torch.float32)
    tokens = (tokens if tokens.ndim == 2 else tokens[:, None])[None]
    rows, columns = grid
    n = torch.arange(rows * columns)
    told = {name: torch.as_tensor(value, dtype=torch.float32)[None] for name, value in given.items()}
    question = told.get("question", torch.zeros(1, 0, tokens.shape[2]))
    return VisualTokens(
        tokens=tokens,
        keys=told.get("keys", tokens),
        attention=told.get("attention", torch.zeros(1, len(n))),
        early=told.get("early", torch.zeros(1, len(n))),
        question=question,
        question_mask=torch.ones(question.shape[:2], dtype=torch.bool),
        mask=torch.ones(1, len(n), dtype=torch.bool),
        positions=torch.stack((n // columns, n % columns), 1)[None].float(),
        grid=torch.tensor([grid]),
    )


def at_angles(*degrees: float) -> torch.Tensor:
    turn = torch.tensor(degrees).deg2rad()
    return torch.stack((turn.cos(), turn.sin()), 1)


def assert_kept(kept: ReducedTokens, index: list[int], tokens: list[float] | None = None) -> None:
    assert kept.index.tolist() == [index]
    if tokens is not None:
        assert kept.tokens[0].flatten().tolist() == pytest.approx(tokens, rel=1e-5)


# ---- before the language model: by hand ---------------------------------------------------------------------------


def test_pooling_keeps_the_aspect_and_adds_what_the_means_lose():
    # 4 x 4 and five tokens: 2 x 2 bins with the means (0 + 1 + 4 + 5) / 4 = 2.5, then 4.5, 10.5 and 62 / 4 = 15.5. All
    # four tokens of a bin are equally near to its middle: the first stands for it. Token 15 is 11.5 off its mean, the
    # others 5.5 at most: it comes as it is. One bin: 132 / 16, and 5 is the first of four next to the middle.
    visual = sight([*range(15), 27], (4, 4))
    assert_kept(reduce("pooling", visual, 5), [0, 2, 8, 10, 15], [2.5, 4.5, 10.5, 15.5, 27])
    assert_kept(reduce("pooling", visual, 1), [5], [8.25])


@pytest.mark.parametrize(
    ("grid", "budget", "shape"),
    [
        ((24, 24), 64, (8, 8)),
        ((24, 24), 273, (16, 16)),
        ((24, 12), 64, (11, 5)),
        ((1, 50), 7, (1, 7)),
        ((9, 9), 3, (1, 1)),
    ],
)
def test_pooled_shapes(grid, budget, shape):
    assert pooled_shape(torch.tensor([grid]), budget).tolist() == [list(shape)]


def test_tome_merges_the_most_similar_pairs_of_alternating_tokens():
    # First set 0, 2, 4 at 0, 90, 80 degrees; second 1, 3, 5 at 10, 5, 100. Matches: 0-3 (5 off), 2-5 (10), 4-5 (20).
    visual = sight([1, 2, 3, 4, 5, 6], (2, 3), keys=at_angles(0, 10, 90, 5, 80, 100))
    # Two merges leave four: 0 into 3, (1 + 4) / 2; 2 into 5, (3 + 6) / 2.
    assert_kept(reduce("tome", visual, 4), [1, 3, 4, 5], [2, 2.5, 5, 4.5])
    # Three is the most of one round: {0, 3}, {2, 4, 5}, {1}. Then 1, 3, 5 are left: 1 (10 degrees) goes to 3 (2.5), so
    # (1 + 4 + 2) / 3 and (3 + 5 + 6) / 3: the older pair weighs twice as much as the single token.
    assert_kept(reduce("tome", visual, 2), [3, 5], [7 / 3, 14 / 3])


def test_visionzip_takes_dominant_tokens_and_merges_the_rest_onto_even_targets():
    # Ten tokens: 8 dominant, 2 contextual. The rest is 2, 5, 8, 9, 12, its targets numbers 0 and 3 of five: 2 and 9.
    # 8 has a key like 2's: (2 + 8) / 2. 5 and 12 have keys like 9's: (9 + 5 + 12) / 3.
    rest = {2: (1.0, 0.0), 5: (0.2, 1.0), 8: (1.0, 0.1), 9: (0.0, 1.0), 12: (0.0, 2.0)}
    attention = [0.0 if i in rest else 1.0 for i in range(13)]
    keys = [rest.get(i, (1.0, 1.0)) for i in range(13)]
    kept = reduce("visionzip", sight(range(13), (1, 13), keys=keys, attention=attention), 10)
    assert_kept(kept, [0, 1, 2, 3, 4, 6, 7, 9, 10, 11], [0, 1, 5, 3, 4, 6, 7, 26 / 3, 10, 11])


def test_hired_gives_each_quadrant_its_share():
    # Early attention 0.52, 0.28, 0.2, 0 of five tokens: 2.6, 1.4, 1, 0; whole parts 2, 1, 1, 0; the one left over goes
    # to the largest remainder: 3, 1, 1, 0. Late attention grows with the number: 5, 4, 1 of the first quadrant, ...
    early = torch.zeros(16)
    early[[0, 3, 12]] = torch.tensor([0.52, 0.28, 0.2])
    visual = sight(range(16), (4, 4), early=early, attention=torch.arange(16.0))
    assert_kept(reduce("hired", visual, 5), [1, 4, 5, 7, 13], [1, 4, 5, 7, 13])


def test_shares_stay_below_the_room_and_are_whole():
    room = torch.tensor([[4, 4, 4, 4]])
    assert share_out(torch.tensor([[1.0, 0, 0, 0]]), room, 6).tolist() == [[4, 1, 1, 0]]
    assert share_out(torch.tensor([[8.0, 1, 1, 0]]), room, 8).tolist() == [[4, 2, 2, 0]]
    assert share_out(torch.zeros(1, 4), room, 5).tolist() == [[2, 1, 1, 1]]
    assert share_out(torch.rand(50, 4), room, 13).sum(1).tolist() == [13] * 50


def test_prumerge_keeps_outliers_fills_up_evenly_and_weighs_neighbours_by_attention(monkeypatch):
    # Quartiles 1 and 1: only token 7 stands out. Two evenly spaced ones of the other seven: 0 and 4.
    # Shares of attention: 1/16 each, 9/16 for token 7; all seven others are among the 32 nearest.
    # 0: (0 + 21/16 + 63/16) / (1 + 6/16 + 9/16); 4: (4 + 17/16 + 63/16) / (31/16); 7: (7 + 21/16) / (1 + 7/16).
    angles = at_angles(0, 10, 50, 52, 90, 95, 140, 143)
    visual = sight(range(8), (2, 4), attention=[1, 1, 1, 1, 1, 1, 1, 9], keys=angles)
    assert_kept(reduce("prumerge", visual, 3), [0, 4, 7], [84 / 31, 144 / 31, 133 / 23])
    # With the nearest alone: 0 takes in 1, 4 takes in 5, 7 takes in 6, each with weight 1/16.
    monkeypatch.setattr(importlib.import_module("homunculus.peers.prumerge"), "NEAREST", 1)
    assert_kept(reduce("prumerge", visual, 3), [0, 4, 7], [1 / 17, 69 / 17, 118 / 17])


def test_prumerge_cuts_outliers_by_rank():
    # Quartiles 1 and (1 + 5) / 2 = 3, so the fence is at 3 + 1.5 * 2 = 6: 9 and 7 stand out, 5 does not.
    attention = torch.tensor([[1.0] * 8 + [5, 9, 7]])
    assert standing_out(attention, torch.ones(1, 11, dtype=torch.bool))[0].nonzero().flatten().tolist() == [9, 10]
    assert reduce("prumerge", sight(range(11), (1, 11), attention=attention[0]), 1).index.tolist() == [[9]]


def test_divprune_starts_far_from_any_neighbour_and_goes_on_far_from_all_chosen():
    # Nearest neighbours of 0, 10, 100, 120, 200 degrees are 10, 10, 20, 20, 80 off: start at 200. 170 off lies 10; then
    # 0 is 10 off the nearest chosen one, 100 is 90 off, 120 is 80 off.
    visual = sight(at_angles(0, 10, 100, 120, 200), (1, 5))
    assert [reduce("divprune", visual, k).index[0].tolist() for k in (1, 2, 3)] == [[4], [1, 4], [1, 2, 4]]


def test_cdpruner_weighs_relevance_against_likeness():
    # Products with the question 1, 1.1, 0.5, 0.2, -0.2, so relevance 12/13, 1, 7/13, 4/13, 0. First 1. Then what is new
    # in the others: 0 has (12/13)^2 * (1 - 0.64) = 0.31, 2 has (7/13)^2 * (1 - 0.36) = 0.19, 3 has (4/13)^2 = 0.09:
    # 0 follows. Now 2 lies in the plane of 0 and 1 and adds nothing: 3, though less relevant. Then the most relevant.
    tokens = [[1, 0, 0], [0.8, 0.6, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]]
    visual = sight(tokens, (1, 5), question=[[0.5, 0.5, 0.2], [0.5, 0, 0]])
    found = [reduce("cdpruner", visual, k).index[0].tolist() for k in (1, 2, 3, 4)]
    assert found == [[1], [0, 1], [0, 1, 3], [0, 1, 2, 3]]


def test_greedy_rules_agree_with_trying_every_token():
    visual = IMAGES[2]
    unit = torch.nn.functional.normalize(visual.tokens[0].double(), dim=1)
    question = torch.nn.functional.normalize(visual.question[0].double().mean(0), dim=0)
    relevance = stretched((unit @ question)[None], visual.mask)[0] + 1e-6
    kernel = relevance[:, None] * (unit @ unit.T) * relevance
    distance = (1 - unit @ unit.T).fill_diagonal_(torch.inf)
    likely: list[int] = []
    apart = [int(distance.amin(1).argmax())]
    for _ in range(6):
        rest = [n for n in range(36) if n not in likely]
        likely.append(max(rest, key=lambda n: float(kernel[[*likely, n]][:, [*likely, n]].det())))
        apart.append(max({*range(36)} - {*apart}, key=lambda n: float(distance[n, apart].min())))
    assert reduce("cdpruner", visual, 6).index[0].tolist() == sorted(likely)
    assert reduce("divprune", visual, 7).index[0].tolist() == sorted(apart)


def test_vscan_scans_windows_and_the_whole_and_merges_the_rest():
    # Two windows of six columns, four tokens. Local: the best of each by early attention, 3 and 8. Global: the best of
    # the rest by late attention, 0 and 11 (3 is taken). 1, 2 point where 0 does: (1 + 2 + 2) / 3; 4 to 7 where 3 does:
    # (1 + 4 * 3) / 5; 9 where 8 does: (1 + 4) / 2; 10 where 11 does: (1 + 5) / 2.
    right, down, left, up = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    tokens = [right, 2 * right, 2 * right, down, *[3 * down] * 4, left, 4 * left, 5 * up, up]
    early, late = torch.zeros(12), torch.zeros(12)
    early[[3, 2, 8, 7]] = torch.tensor([0.4, 0.3, 0.2, 0.1])
    late[[3, 0, 11, 5]] = torch.tensor([0.5, 0.3, 0.2, 0.1])
    kept = reduce("vscan", sight(torch.stack(tokens), (1, 12), early=early, attention=late), 4)
    assert_kept(kept, [0, 3, 8, 11], [5 / 3, 0, 0, 13 / 5, -2.5, 0, 0, -3])


def test_vscan_serves_all_windows_before_it_serves_one_twice():
    early = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1, 0, 0, 0, 0, 0])
    visual = sight(torch.eye(12), (1, 12), early=early, attention=early)
    assert reduce("vscan", visual, 6).index.tolist() == [[0, 1, 2, 3, 4, 6]], "local 0, 6, 1; global 2, 3, 4"


def test_pyramid_pruning_shares_by_region_and_listens_to_the_instruction():
    # 4 x 4 has 2 x 2 regions with attention 0.6, 0.4, 0, 0: of five tokens 3, 2, 0, 0. Saliency of 0, 1, 4, 5 is 1,
    # 2/3, 1/3, 0. The instruction singles out token 5: 0.5 against 0.5, 0.33, 0.17 of the others, so 4 is left out.
    attention, tokens = torch.zeros(16), torch.zeros(16)
    attention[[0, 1, 4]] = torch.tensor([0.3, 0.2, 0.1])
    attention[[2, 3, 6, 7]] = torch.tensor([0.2, 0.1, 0.05, 0.05])
    tokens[5] = 10
    visual = sight(tokens, (4, 4), attention=attention, question=[[1.0], [-1.0]])
    assert reduce("pyramid-pruning", visual, 5).index.tolist() == [[0, 1, 2, 3, 5]]
    unasked = replace(visual, question_mask=torch.zeros(1, 2, dtype=torch.bool))
    assert reduce("pyramid-pruning", unasked, 5).index.tolist() == [[0, 1, 2, 3, 4]]


def test_regions_follow_the_aspect():
    grids = torch.tensor([[4, 4], [24, 36], [10, 60], [7, 1], [20, 21]])
    assert tiling(grids).tolist() == [[2, 2], [2, 3], [1, 6], [6, 1], [2, 2]]


def test_evenly_and_stretched():
    among = torch.tensor([[True, False, True, True, True, True]])
    assert [evenly(among, k).sum().item() for k in range(6)] == [0, 1, 2, 3, 4, 5]
    assert evenly(among, 2)[0].nonzero().flatten().tolist() == [0, 4]
    values = torch.tensor([[2.0, 99, 4, 3, 2, 2]])
    assert stretched(values, among).tolist() == [[0, 0, 1, 0.5, 0, 0]]


# ---- inside the language model: by hand ---------------------------------------------------------------------------


def between(attention, asked=None) -> LayerState:
    attention = torch.tensor([attention])
    n, asked = attention.shape[2], asked or [True] * attention.shape[1]
    hidden = torch.arange(float(n))[None, :, None]
    return LayerState(hidden, attention, torch.tensor([asked]), torch.ones(1, n, dtype=torch.bool))


@pytest.mark.parametrize("name", ["fastv", "pyramiddrop", "vscan"])
def test_what_the_last_token_attends_to_goes_on(name):
    attention = [[0.5, 0.0, 0.3, 0.1, 0.1], [0.1, 0.4, 0.2, 0.3, 0.0]]
    assert_kept(inside(name).keep(between(attention), 2), [1, 3], [1, 3])
    assert_kept(inside(name).keep(between(attention, [True, False]), 2), [0, 2], [0, 2])


def test_sparsevlm_asks_its_raters_and_recycles():
    # The text tokens attend 0.9, 0.6 and 0.1 to the image, 0.53 on average: the first two rate. Twice their mean:
    # 0.3 0.22 0.4 0.2 0.15 0.11 0.07 0.05. Four of eight: one is a cluster, so 2, 0, 1 stay; of the five dropped
    # 1 + 0.3 * 5 = 2 are recycled, 3 and 4, as one: 3.5, at the place of the first.
    attention = [
        [0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05],
        [0.0, 0.02, 0.3, 0.1, 0.1, 0.06, 0.02, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0],
    ]
    inner = between(attention)
    assert (2 * rating(inner))[0].tolist() == pytest.approx([0.3, 0.22, 0.4, 0.2, 0.15, 0.11, 0.07, 0.05])
    assert_kept(inside("sparsevlm").keep(inner, 4), [0, 1, 2, 3], [0, 1, 2, 3.5])
    assert_kept(inside("sparsevlm").keep(inner, 1), [2], [2])


def test_clusters_are_density_peaks():
    # Two neighbours: mean squares 2.5, 1, 2.5 in each group of three, so its middle is the densest. The first middle is
    # as far as the farthest pair, the second 5 from it, all others 1 from something denser.
    points = torch.tensor([[0.0, 1, 2, 5, 6, 7, 99]])[..., None]
    there = torch.tensor([[True] * 6 + [False]])
    centre, owner = clustered(points, there, torch.tensor([[2]]))
    assert centre[0].nonzero().flatten().tolist() == [1, 4] and owner[0, :6].tolist() == [1, 1, 1, 4, 4, 4]


def test_plans_are_those_of_the_papers():
    assert inside("fastv").plan(32, 576, 306) == [Stage(2, 288)], "half the tokens after layer 2"
    assert inside("pyramiddrop").plan(32, 576, 270) == [Stage(8, 288), Stage(16, 144), Stage(24, 72)]
    vscan = INSIDE["vscan"]
    assert vscan.entering(32, 64) == 96 and vscan.plan(32, 96, 64) == [Stage(16, 32)]
    published = [(2, 300), (6, 200), (15, 110)]
    for stage, (layer, keep) in zip(inside("sparsevlm").plan(32, 576, 192), published, strict=True):
        assert stage.layer == layer and stage.keep == pytest.approx(keep, rel=0.15)


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("layers", [2, 3, 6, 28, 36])
@pytest.mark.parametrize(("count", "budget"), [(576, 400), (576, 64), (4096, 273), (10, 1), (5, 9)])
def test_a_plan_meets_the_mean_or_says_what_it_comes_to(name, layers, count, budget):
    plan = inside(name).plan(layers, count, budget)
    mean = mean_tokens(plan, layers, count)
    if count <= budget:
        assert plan == [] and mean == count
        return
    assert all(0 < a.layer < b.layer < layers and a.keep >= b.keep for a, b in pairwise(plan))
    assert 0 < plan[0].layer < layers and all(stage.keep >= 1 for stage in plan)
    spent = count * plan[0].layer + layers - plan[0].layer  # the least that any cut from there on leaves
    if spent > budget * layers:
        assert plan == [Stage(plan[0].layer, max(1, budget // 4))] and mean > budget
    else:
        assert budget * 0.9 - 3 < mean <= budget


def test_mean_tokens_and_scaled_layers():
    assert mean_tokens([Stage(2, 40), Stage(3, 10)], 4, 100) == (100 + 100 + 40 + 10) / 4
    assert scaled((2, 6, 15), 32, 64) == [4, 12, 30] and scaled((2, 6, 15), 32, 4) == [1, 2]


# ---- what all promise ---------------------------------------------------------------------------------------------

GRIDS = [(5, 7), (3, 4), (6, 6), (1, 3)]


def image(grid, seed) -> VisualTokens:
    torch.manual_seed(seed)
    n, words = grid[0] * grid[1], 2 + seed % 3
    random = {"keys": torch.randn(n, 5), "attention": torch.rand(n), "early": torch.rand(n)}
    return sight(torch.randn(n, 8), grid, question=torch.randn(words, 8), **random)


def batch(images: list[VisualTokens]) -> VisualTokens:
    """Images of different sizes in one batch, with NaN where nothing is."""
    joined = {}
    for field in fields(VisualTokens):
        parts = [getattr(one, field.name) for one in images]
        most = max(part.shape[1] for part in parts)
        fill = False if parts[0].dtype == torch.bool else float("nan")
        pad = [(0, 0) * (part.ndim - 2) + (0, most - part.shape[1]) for part in parts]
        padded = [
            torch.nn.functional.pad(p, by, value=fill) if any(by) else p for p, by in zip(parts, pad, strict=True)
        ]
        joined[field.name] = torch.cat(padded)
    return VisualTokens(**joined)


IMAGES = [image(grid, seed) for seed, grid in enumerate(GRIDS)]


def assert_sound(kept: ReducedTokens, counts: list[int], budget: int) -> None:
    assert kept.index.shape[1] == kept.tokens.shape[1] == min(budget, max(counts))
    for index, tokens, count in zip(kept.index, kept.tokens, counts, strict=True):
        found = index[index >= 0]
        assert len(found) == min(budget, count) and (index[len(found) :] == -1).all()
        assert (found.diff() > 0).all() and int(found.max()) < count
        assert tokens.isfinite().all() and not tokens[len(found) :].any()


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("budget", [1, 2, 6, 13, 34, 50])
def test_exact_distinct_ascending_finite_and_the_same_alone(name, budget):
    visual = batch(IMAGES)
    kept = reduce(name, visual, budget)
    assert_sound(kept, [rows * columns for rows, columns in GRIDS], budget)
    assert torch.equal(kept.index, reduce(name, visual, budget).index)
    assert torch.equal(kept.tokens, reduce(name, visual, budget).tokens)
    for row, one in enumerate(IMAGES):
        alone = reduce(name, one, budget)
        size = alone.index.shape[1]
        assert torch.equal(alone.index[0], kept.index[row, :size])
        assert torch.allclose(alone.tokens[0], kept.tokens[row, :size], atol=1e-5)


@pytest.mark.parametrize("name", BEFORE)
def test_enough_budget_changes_nothing(name):
    kept = reduce(name, IMAGES[0], 35)
    assert torch.equal(kept.tokens, IMAGES[0].tokens) and kept.index.tolist() == [list(range(35))]
    mixed = reduce(name, batch(IMAGES), 20)
    assert torch.equal(mixed.tokens[1, :12], IMAGES[1].tokens[0]), "small images beside larger ones"


@pytest.mark.parametrize("name", BEFORE)
def test_tokens_that_are_not_there_leave_no_trace(name):
    full = IMAGES[2]
    there = torch.arange(36) % 5 != 2
    holes = reduce(name, replace(full, mask=there[None]), 9)
    per_token = ("tokens", "keys", "attention", "early", "mask", "positions")
    without = reduce(name, replace(full, **{key: getattr(full, key)[:, there] for key in per_token}), 9)
    assert torch.equal(holes.index[0], there.nonzero()[:, 0][without.index[0]])
    assert torch.allclose(holes.tokens, without.tokens, atol=1e-5)


@pytest.mark.parametrize("name", BEFORE)
def test_equal_tokens_and_half_precision_are_no_trouble(name):
    same = replace(IMAGES[0], tokens=torch.ones(1, 35, 8), keys=torch.ones(1, 35, 5), attention=torch.zeros(1, 35))
    assert_sound(reduce(name, same, 11), [35], 11)
    assert torch.allclose(reduce(name, same, 11).tokens, torch.ones(1, 11, 8))
    none = replace(same, tokens=torch.zeros(1, 35, 8), early=torch.zeros(1, 35))
    assert_sound(reduce(name, none, 11), [35], 11)
    half = replace(IMAGES[0], **{key: getattr(IMAGES[0], key).bfloat16() for key in ("tokens", "keys", "attention")})
    kept = reduce(name, half, 11)
    assert kept.tokens.dtype == torch.bfloat16
    assert_sound(kept, [35], 11)


def inners(seed: int = 0) -> list[LayerState]:
    torch.manual_seed(seed)
    found = []
    for n, words in ((40, 3), (7, 5), (23, 1)):
        asked = torch.ones(1, words, dtype=torch.bool)
        there = torch.ones(1, n, dtype=torch.bool)
        found.append(LayerState(torch.randn(1, n, 8), torch.rand(1, words, n).softmax(2), asked, there))
    return found


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("count", [1, 2, 6, 22, 60])
def test_between_layers_the_same_holds(name, count):
    parts = inners()
    pad = torch.nn.functional.pad
    joined = LayerState(
        torch.cat([pad(p.hidden_states, (0, 0, 0, 40 - p.hidden_states.shape[1]), value=float("nan")) for p in parts]),
        torch.cat([pad(p.attention, (0, 40 - p.mask.shape[1], 0, 5 - p.text_mask.shape[1]), value=7.0) for p in parts]),
        torch.cat([pad(p.text_mask, (0, 5 - p.text_mask.shape[1])) for p in parts]),
        torch.cat([pad(p.mask, (0, 40 - p.mask.shape[1])) for p in parts]),
    )
    kept = inside(name).keep(joined, count)
    assert_sound(kept, [40, 7, 23], count)
    for row, one in enumerate(parts):
        alone = inside(name).keep(one, count)
        size = alone.index.shape[1]
        assert torch.equal(alone.index[0], kept.index[row, :size])
        assert torch.allclose(alone.tokens[0], kept.tokens[row, :size], atol=1e-5)
    assert torch.equal(inside(name).keep(parts[0], 40).tokens, parts[0].hidden_states)


def test_errors_say_what_would_be_right():
    with pytest.raises(InputError, match=r"no peer 'fast' works before .* pooling, tome"):
        reduce("fast", IMAGES[0], 4)
    with pytest.raises(InputError, match=r"no peer 'tome' works inside .* fastv, pyramiddrop"):
        inside("tome")
    with pytest.raises(InputError, match="budget must be a whole number of at least 1, got 0"):
        reduce("tome", IMAGES[0], 0)
    with pytest.raises(InputError, match=r"attention must be \[1, 35\], got \[1, 34\]"):
        reduce("tome", replace(IMAGES[0], attention=torch.rand(1, 34)), 4)
    with pytest.raises(InputError, match="at least one image"):
        inside("fastv").keep(LayerState(*(torch.zeros(0, *n) for n in ((4, 2), (1, 4), (1,), (4,)))), 2)
    with pytest.raises(InputError, match=r"attention must be \[1, 3, 40\]"):
        inside("sparsevlm").keep(replace(inners()[0], attention=torch.rand(1, 2, 40)), 2)
    with pytest.raises(InputError, match="count must be"):
        inside("sparsevlm").keep(inners()[0], 0)
    with pytest.raises(InputError, match="layers must be"):
        inside("fastv").plan(1, 10, 5)


def test_names():
    assert list_peers() == [*BEFORE, "fastv", "pyramiddrop", "sparsevlm"] and "vscan" in BEFORE


@pytest.mark.parametrize("name", BEFORE)
def test_ties_are_broken_alike_in_any_company(name):
    """Tokens and keys of zeros and ones, so that many are equally alike."""
    for seed in range(8):
        lots = torch.Generator().manual_seed(seed)
        grids = torch.randint(2, 10, (3, 2), generator=lots).tolist()

        def some(*shape: int, lots=lots) -> torch.Tensor:
            return torch.randint(0, 2, shape, generator=lots).float()

        parts = [
            sight(some(r * c, 8), (r, c), keys=some(r * c, 8), attention=some(r * c), question=some(4, 8))
            for r, c in grids
        ]
        together = reduce(name, batch(parts), 17)
        for i, part in enumerate(parts):
            index, count = reduce(name, part, 17).index[0], min(17, part.mask.shape[1])
            assert torch.equal(together.index[i, :count], index[:count])
            assert torch.allclose(together.tokens[i, :count], reduce(name, part, 17).tokens[0, :count], atol=1e-5)
