"""Published token reduction: what all rules promise."""

from dataclasses import replace

import pytest
import torch

from homunculus import InputError
from homunculus.peers import (
    BEFORE,
    INSIDE,
    LayerState,
    ReducedTokens,
    inside,
    list_peers,
    reduce,
)
from visual_tokens import GRIDS, IMAGES, batch, visual_tokens


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
    mask = torch.arange(36) % 5 != 2
    holes = reduce(name, replace(full, mask=mask[None]), 9)
    per_token = ("tokens", "keys", "attention", "early", "mask", "positions")
    without = reduce(name, replace(full, **{key: getattr(full, key)[:, mask] for key in per_token}), 9)
    assert torch.equal(holes.index[0], mask.nonzero()[:, 0][without.index[0]])
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
        text_mask = torch.ones(1, words, dtype=torch.bool)
        mask = torch.ones(1, n, dtype=torch.bool)
        found.append(LayerState(torch.randn(1, n, 8), torch.rand(1, words, n).softmax(2), text_mask, mask))
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
        generator = torch.Generator().manual_seed(seed)
        grids = torch.randint(2, 10, (3, 2), generator=generator).tolist()

        def some(*shape: int, generator=generator) -> torch.Tensor:
            return torch.randint(0, 2, shape, generator=generator).float()

        parts = [
            visual_tokens(some(r * c, 8), (r, c), keys=some(r * c, 8), attention=some(r * c), question=some(4, 8))
            for r, c in grids
        ]
        joint = reduce(name, batch(parts), 17)
        for i, part in enumerate(parts):
            index, count = reduce(name, part, 17).index[0], min(17, part.mask.shape[1])
            assert torch.equal(joint.index[i, :count], index[:count])
            assert torch.allclose(joint.tokens[i, :count], reduce(name, part, 17).tokens[0, :count], atol=1e-5)
