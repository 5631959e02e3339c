"""Published token reduction before the language model: each rule on a case worked out by hand."""

import importlib
from dataclasses import replace

import pytest
import torch

from homunculus.peers import (
    reduce,
)
from homunculus.peers.base import evenly, share_out, stretched
from homunculus.peers.pooling import pooled_shape
from homunculus.peers.prumerge import standing_out
from homunculus.peers.pyramid_pruning import tiling
from visual_tokens import IMAGES, assert_kept, at_angles, visual_tokens


def test_pooling_keeps_the_aspect_and_adds_what_the_means_lose():
    # 4 x 4 and five tokens: 2 x 2 bins with the means (0 + 1 + 4 + 5) / 4 = 2.5, then 4.5, 10.5 and 62 / 4 = 15.5. All
    # four tokens of a bin are equally near to its middle: the first stands for it. Token 15 is 11.5 off its mean, the
    # others 5.5 at most: it comes as it is. One bin: 132 / 16, and 5 is the first of four next to the middle.
    visual = visual_tokens([*range(15), 27], (4, 4))
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
    visual = visual_tokens([1, 2, 3, 4, 5, 6], (2, 3), keys=at_angles(0, 10, 90, 5, 80, 100))
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
    kept = reduce("visionzip", visual_tokens(range(13), (1, 13), keys=keys, attention=attention), 10)
    assert_kept(kept, [0, 1, 2, 3, 4, 6, 7, 9, 10, 11], [0, 1, 5, 3, 4, 6, 7, 26 / 3, 10, 11])


def test_hired_gives_each_quadrant_its_share():
    # Early attention 0.52, 0.28, 0.2, 0 of five tokens: 2.6, 1.4, 1, 0; whole parts 2, 1, 1, 0; the one left over goes
    # to the largest remainder: 3, 1, 1, 0. Late attention grows with the number: 5, 4, 1 of the first quadrant, ...
    early = torch.zeros(16)
    early[[0, 3, 12]] = torch.tensor([0.52, 0.28, 0.2])
    visual = visual_tokens(range(16), (4, 4), early=early, attention=torch.arange(16.0))
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
    visual = visual_tokens(range(8), (2, 4), attention=[1, 1, 1, 1, 1, 1, 1, 9], keys=angles)
    assert_kept(reduce("prumerge", visual, 3), [0, 4, 7], [84 / 31, 144 / 31, 133 / 23])
    # With the nearest alone: 0 takes in 1, 4 takes in 5, 7 takes in 6, each with weight 1/16.
    monkeypatch.setattr(importlib.import_module("homunculus.peers.prumerge"), "NEAREST", 1)
    assert_kept(reduce("prumerge", visual, 3), [0, 4, 7], [1 / 17, 69 / 17, 118 / 17])


def test_prumerge_cuts_outliers_by_rank():
    # Quartiles 1 and (1 + 5) / 2 = 3, so the fence is at 3 + 1.5 * 2 = 6: 9 and 7 stand out, 5 does not.
    attention = torch.tensor([[1.0] * 8 + [5, 9, 7]])
    assert standing_out(attention, torch.ones(1, 11, dtype=torch.bool))[0].nonzero().flatten().tolist() == [9, 10]
    assert reduce("prumerge", visual_tokens(range(11), (1, 11), attention=attention[0]), 1).index.tolist() == [[9]]


def test_divprune_starts_far_from_any_neighbour_and_goes_on_far_from_all_chosen():
    # Nearest neighbours of 0, 10, 100, 120, 200 degrees are 10, 10, 20, 20, 80 off: start at 200. 170 off lies 10; then
    # 0 is 10 off the nearest chosen one, 100 is 90 off, 120 is 80 off.
    visual = visual_tokens(at_angles(0, 10, 100, 120, 200), (1, 5))
    assert [reduce("divprune", visual, k).index[0].tolist() for k in (1, 2, 3)] == [[4], [1, 4], [1, 2, 4]]


def test_cdpruner_weighs_relevance_against_likeness():
    # Products with the question 1, 1.1, 0.5, 0.2, -0.2, so relevance 12/13, 1, 7/13, 4/13, 0. First 1. Then what is new
    # in the others: 0 has (12/13)^2 * (1 - 0.64) = 0.31, 2 has (7/13)^2 * (1 - 0.36) = 0.19, 3 has (4/13)^2 = 0.09:
    # 0 follows. Now 2 lies in the plane of 0 and 1 and adds nothing: 3, though less relevant. Then the most relevant.
    tokens = [[1, 0, 0], [0.8, 0.6, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]]
    visual = visual_tokens(tokens, (1, 5), question=[[0.5, 0.5, 0.2], [0.5, 0, 0]])
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
    kept = reduce("vscan", visual_tokens(torch.stack(tokens), (1, 12), early=early, attention=late), 4)
    assert_kept(kept, [0, 3, 8, 11], [5 / 3, 0, 0, 13 / 5, -2.5, 0, 0, -3])


def test_vscan_serves_all_windows_before_it_serves_one_twice():
    early = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1, 0, 0, 0, 0, 0])
    visual = visual_tokens(torch.eye(12), (1, 12), early=early, attention=early)
    assert reduce("vscan", visual, 6).index.tolist() == [[0, 1, 2, 3, 4, 6]], "local 0, 6, 1; global 2, 3, 4"


def test_pyramid_pruning_shares_by_region_and_listens_to_the_instruction():
    # 4 x 4 has 2 x 2 regions with attention 0.6, 0.4, 0, 0: of five tokens 3, 2, 0, 0. Saliency of 0, 1, 4, 5 is 1,
    # 2/3, 1/3, 0. The instruction singles out token 5: 0.5 against 0.5, 0.33, 0.17 of the others, so 4 is left out.
    attention, tokens = torch.zeros(16), torch.zeros(16)
    attention[[0, 1, 4]] = torch.tensor([0.3, 0.2, 0.1])
    attention[[2, 3, 6, 7]] = torch.tensor([0.2, 0.1, 0.05, 0.05])
    tokens[5] = 10
    visual = visual_tokens(tokens, (4, 4), attention=attention, question=[[1.0], [-1.0]])
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
