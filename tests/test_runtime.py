"""Mechanisms that several folders share: attention capture, decoder layers, decoding, the bounded cache."""

import pytest
import torch

from homunculus.runtime.attention import attention_of, attention_probs, capture_attention
from homunculus.runtime.cache import LRUCache
from homunculus.runtime.decoder import cache_of, causal_mask, embed_images, run_layers, stacked_cache
from homunculus.runtime.decoding import MIN_TEMPERATURE, decode
from speaking import small_language

IDS = torch.tensor([[5, 9, 17, 3, 30, 2], [7, 8, 1, 4, 21, 40]])
END = 0


@pytest.fixture
def language():
    return small_language(64).eval()


# ---- attention ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_only_the_chosen_modules_are_captured_and_only_while_it_lasts(language):
    other, seen = small_language(64).eval(), {0: [], 1: []}
    modules = [attention_of(layer) for layer in language.model.layers]
    usual, names = language(IDS).logits, [set(vars(module)) for module in modules]
    ways = {model: model.config._attn_implementation for model in (language, other)}

    def note(query, key, mask, scaling):
        seen[0].append(attention_probs(query, key, causal_mask(torch.ones_like(IDS)), scaling))

    with capture_attention({modules[0]: note}):
        captured = language(IDS).logits
        other(IDS)
        with capture_attention({modules[1]: lambda *given: seen[1].append(given)}):
            language(IDS)
    assert torch.equal(captured, usual) and (len(seen[0]), len(seen[1])) == (2, 1)
    with pytest.raises(ZeroDivisionError), capture_attention({modules[0]: lambda *given: 1 / 0}):
        language(IDS)
    assert torch.equal(language(IDS).logits, usual) and (len(seen[0]), len(seen[1])) == (2, 1)
    assert [set(vars(module)) for module in modules] == names
    assert {model: model.config._attn_implementation for model in (language, other)} == ways
    language.set_attn_implementation("eager")
    wanted = language(IDS, output_attentions=True).attentions[0].mean(1)
    torch.testing.assert_close(seen[0][0], wanted, rtol=1e-4, atol=1e-5)


# ---- decoder --------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_layers_one_by_one_are_the_models_own_forward(language):
    text = language.model
    mask, x = torch.tensor([[0, 1, 1, 1, 1, 1], [1] * 6]), text.embed_tokens(IDS)
    position_ids = (mask.cumsum(1) - 1).clamp(min=0)
    wanted = language(IDS, attention_mask=mask, position_ids=position_ids).logits[:, -1]

    def logits(x):
        return language.lm_head(text.norm(x[:, -1]))

    whole = run_layers(text, x, position_ids, causal_mask(mask))
    torch.testing.assert_close(logits(whole), wanted, rtol=1e-4, atol=1e-5)
    cache = cache_of(text.config)
    run_layers(text, x[:, :4], position_ids[:, :4], causal_mask(mask[:, :4]), cache)
    cache = cache_of(text.config, *stacked_cache(cache))
    for layers in (range(1), range(1, len(text.layers))):
        x = run_layers(text, x[:, -2:], position_ids[:, 4:], causal_mask(mask, 4), cache, layers=layers)
    torch.testing.assert_close(logits(x), wanted, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_features_stand_in_the_places_of_the_image_token(language):
    text, ids = language.model, torch.tensor([[5, 9, 9, 2], [9, 9, 1, 4]])
    features = torch.randn(2, 4, text.config.hidden_size)
    x, (deepstack,) = embed_images(text.embed_tokens, ids, 9, features)
    assert torch.equal(x[ids == 9], features[0]) and torch.equal(x[ids != 9], text.embed_tokens(ids)[ids != 9])
    assert torch.equal(deepstack[ids == 9], features[1]) and not deepstack[ids != 9].any()
    position_ids = torch.arange(4)[None]
    first = run_layers(text, x, position_ids, layers=range(1))
    added = run_layers(text, x, position_ids, deepstack=[deepstack], layers=range(1))
    torch.testing.assert_close(added, first + deepstack)


# ---- decoding -------------------------------------------------------------------------------------------------------


def scripted(rows: list[list[int]], prob: float = 0.9):
    """Next logits of a model that says these tokens, each with this probability, and the tokens that it was given."""
    steps, given = iter(zip(*rows, strict=True)), []

    def next_logits(ids):
        given.append(ids)
        logits = torch.full((len(rows), 8), (1 - prob) / 7).log()
        return logits.scatter(1, torch.tensor(next(steps))[:, None], torch.tensor(prob).log().expand(len(rows), 1))

    return next_logits, given


def test_rows_end_for_themselves_and_all_of_them_end_it():
    next_logits, given = scripted([[3, END, 5, 5, 5], [4, 2, 6, END, 5]])
    steps = list(decode(next_logits, {END}, 10))
    assert [step.ids for step in steps] == [[3, 4], [END, 2], [5, 6], [5, END]]
    assert [step.active for step in steps] == [[True, True], [True, True], [False, True], [False, True]]
    assert all(step.probs == pytest.approx([0.9, 0.9]) for step in steps)
    assert given[0] is None and [ids[:, 0].tolist() for ids in given[1:]] == [step.ids for step in steps[:3]]
    assert len(list(decode(scripted([[1] * 5])[0], {END}, 4))) == 4


def test_sampling_is_from_a_seed_and_a_cold_one_takes_the_likeliest():
    def said(temperature, seed):
        return [step.ids for step in decode(scripted([[3] * 30] * 2)[0], {END}, 30, temperature, seed)]

    assert said(3.0, 1) == said(3.0, 1) != said(3.0, 2)
    assert said(MIN_TEMPERATURE, 1) == said(0.0, 2) == [[3, 3]] * 30


def test_a_process_chooses_but_probabilities_are_the_models():
    told = []

    def second_best(chosen, logits):
        told.append(None if chosen is None else chosen.tolist())
        return logits.scatter(1, torch.tensor([[3]]), -torch.inf).index_fill(1, torch.tensor([6]), 1.0)

    steps = list(decode(scripted([[3] * 3])[0], {END}, 3, process=second_best))
    assert [step.ids for step in steps] == [[6]] * 3 and told == [None, [[6]], [[6, 6]]]
    assert steps[0].probs == pytest.approx([0.1 / 7])


# ---- cache ----------------------------------------------------------------------------------------------------------


def test_what_was_longest_unused_goes_first():
    cache = LRUCache[str, int](3)
    cache.update(a=1, b=2, c=3)
    assert "a" in cache and cache.get("b") == 2 and cache.get("z") is None
    cache["d"] = 4
    assert list(cache) == ["c", "b", "d"]
    cache["c"] = 5
    cache["e"] = 6
    assert dict(cache.items()) == {"d": 4, "c": 5, "e": 6} and list(cache.values()) == [4, 5, 6]


def test_sizes_are_counted_and_the_newest_stays_even_if_it_is_too_large():
    cache = LRUCache[str, str](10, len)
    cache.update(a="xxxx", b="xxxx", c="xx")
    cache["a"] = "x"
    cache["d"] = "xxx"
    assert list(cache) == ["b", "c", "a", "d"]
    cache["e"] = "x" * 50
    assert list(cache) == ["e"]
    cache["f"] = "x"
    assert list(cache) == ["f"]
    cache.clear()
    cache.update(a="xxxxx", b="xxxxx")
    assert len(cache) == 2
