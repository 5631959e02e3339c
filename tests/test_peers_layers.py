"""Published token reduction between layers: stages, plans and rules on cases worked out by hand."""

from itertools import pairwise

import pytest
import torch

from homunculus.peers import (
    INSIDE,
    LayerState,
    Stage,
    inside,
    mean_tokens,
)
from homunculus.peers.sparsevlm import clustered, rating
from homunculus.peers.stages import scaled
from visual_tokens import assert_kept


def between(attention, text_mask=None) -> LayerState:
    attention = torch.tensor([attention])
    n, text_mask = attention.shape[2], text_mask or [True] * attention.shape[1]
    hidden = torch.arange(float(n))[None, :, None]
    return LayerState(hidden, attention, torch.tensor([text_mask]), torch.ones(1, n, dtype=torch.bool))


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
    mask = torch.tensor([[True] * 6 + [False]])
    centre, owner = clustered(points, mask, torch.tensor([[2]]))
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
