"""Where a model itself looks: its attention in a coarse pass, and the pass that goes on from there."""

import copy

import pytest
import torch

import homunculus as hm
from homunculus.adapters.attention import capture_middle_layers, relevance_over_tree
from homunculus.cells import CellTree
from homunculus.errors import InputError
from test_adapters import BEFORE, last_logits, picture
from vlms import tiny

IMAGES = [picture(320, 256), picture(224, 384, 1)]
QUESTIONS = ["What is it?", "Which of the two is the larger one, and where?"]


@pytest.fixture(scope="module", params=BEFORE)
def vlm(request, tmp_path_factory):
    return hm.adapters.wrap(*tiny(request.param, tmp_path_factory.mktemp(request.param) / "model"))


def both_passes(vlm, monkeypatch, **how):
    """What is prepared, and the same with the features of both passes and without the cache of the first."""
    seen, encode_views = [], vlm.family.encode_views
    monkeypatch.setattr(
        vlm.family, "encode_views", lambda *words: seen.append(encode_views(*words)) or seen[-1], raising=False
    )
    inputs = vlm.prepare(relevance="attention", **how)
    monkeypatch.undo()
    coarse, fine = seen
    joined = coarse.select(lambda i, x: x)
    joined.features[:] = [torch.cat(pair) for pair in zip(coarse.features, fine.features, strict=True)]
    joined.deepstack[:] = [
        [torch.cat(pair) for pair in zip(*layers, strict=True)]
        for layers in zip(coarse.deepstack, fine.deepstack, strict=True)
    ]
    whole = {name: value for name, value in inputs.items() if name != "past_key_values"}
    return inputs, whole | {"mm_encoder_outputs": {"image": vlm.family.model_output(joined)}}


@torch.no_grad()
@pytest.mark.parametrize("where", ["before", "after"])
def test_going_on_from_the_first_pass_is_the_same_as_both_at_once(vlm, where, monkeypatch):
    state, config = copy.deepcopy(vlm.model.state_dict()), vlm.model.config.to_dict()
    inputs, whole = both_passes(vlm, monkeypatch, images=IMAGES, questions=QUESTIONS, budget=24, where=where)
    ids = inputs["input_ids"]
    assert ((ids == vlm.family.image_token).sum(1) == 24).all()
    known = inputs["past_key_values"].get_seq_length()
    assert ((ids[:, :known] == vlm.family.image_token).sum(1) == 6).all() and known < ids.shape[1]
    expected = last_logits(vlm(whole))
    torch.testing.assert_close(last_logits(vlm(inputs)), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(vlm.prefill(inputs)[0], expected, rtol=1e-4, atol=1e-4)
    said = vlm.generate(whole, max_new_tokens=6, do_sample=False)
    assert torch.equal(vlm.generate(inputs, max_new_tokens=6, do_sample=False), said)
    assert torch.equal(vlm.generate(inputs, max_new_tokens=6, do_sample=False), said)  # the cache was not used up
    assert vlm.model.config.to_dict() == config and vlm.model.config.text_config._attn_implementation == "sdpa"
    assert all(torch.equal(value, state[name]) for name, value in vlm.model.state_dict().items())


@torch.no_grad()
def test_after_the_tower_it_is_run_once(vlm, monkeypatch):
    runs, encode = [], vlm.family.encode_images
    monkeypatch.setattr(
        vlm.family, "encode_images", lambda shown: runs.append(len(shown)) or encode(shown), raising=False
    )
    vlm.prepare(IMAGES, QUESTIONS, budget=24, where="after", relevance="attention")
    assert runs == [2]


@torch.no_grad()
def test_alone_is_as_in_a_batch(vlm):
    how = {"budget": 24, "relevance": "attention"}
    together = vlm.generate(vlm.prepare(IMAGES, QUESTIONS, **how), max_new_tokens=5, do_sample=False)[:, -5:]
    for image, question, said in zip(IMAGES, QUESTIONS, together, strict=True):
        alone = vlm.generate(vlm.prepare([image], [question], **how), max_new_tokens=5, do_sample=False)[:, -5:]
        assert torch.equal(alone[0], said)


@torch.no_grad()
def test_what_is_watched_is_the_attention_of_the_model(vlm):
    inputs = vlm.prepare(IMAGES[:1], QUESTIONS[:1], budget=20, relevance="information")
    length = inputs["input_ids"].shape[1]
    with capture_middle_layers(vlm.prefill.text, length - 4, torch.tensor([[1, 1, 0, 1]])) as found:
        logits = vlm.prefill.run(inputs, vlm.prefill.forward).logits
    torch.testing.assert_close(logits, last_logits(vlm(inputs)), rtol=1e-4, atol=1e-4)
    vlm.model.set_attn_implementation("eager")
    attentions = vlm(inputs, output_attentions=True).attentions
    vlm.model.set_attn_implementation("sdpa")
    assert found.keys() == {1}  # of three layers
    wanted = attentions[1][:, :, -4:].mean(1)[:, [0, 1, 3]].mean(1)
    torch.testing.assert_close(found[1], wanted, rtol=1e-4, atol=1e-5)


def test_fine_cells_go_where_the_model_attends_to():
    tree = CellTree(512, 512, 32)
    look = hm.allocate("dag", tree, torch.ones(2, tree.size), 16)
    attention = torch.full((2, 16), 0.01)
    attention[0, 3], attention[1, 12] = 0.5, 0.5
    relevance = relevance_over_tree(tree, attention, look)
    assert relevance.shape == (2, tree.size) and (relevance > 0).all()
    for row, cell in ((0, 3), (1, 12)):
        x0, y0, x1, y1 = look.boxes[row, cell].tolist()
        best = hm.allocate("grid", tree, relevance, 4).boxes[row].double()
        middle = (best[:, :2] + best[:, 2:]) / 2
        assert ((middle > torch.tensor([x0, y0])) & (middle < torch.tensor([x1, y1]))).all()


@torch.no_grad()
def test_where_there_is_nothing_to_choose_nothing_is_changed(vlm):
    plain = vlm.prepare(IMAGES, QUESTIONS, budget=10_000, scout=False)
    inputs = vlm.prepare(IMAGES, QUESTIONS, budget=10_000, relevance="attention")
    assert inputs.keys() == plain.keys() and torch.equal(inputs["input_ids"], plain["input_ids"])


def test_what_cannot_be_is_said_in_a_sentence(vlm, tmp_path):
    with pytest.raises(InputError, match="one image a question"):
        vlm.prepare([IMAGES], QUESTIONS[:1], relevance="attention")
    with pytest.raises(InputError, match="at least 4"):
        vlm.prepare(IMAGES, QUESTIONS, budget=3, relevance="attention")
    if "crops" in vlm.family.where:
        with pytest.raises(InputError, match="not at crops"):
            vlm.prepare(IMAGES, QUESTIONS, where="crops", relevance="attention")
    else:
        tiled = hm.adapters.wrap(*tiny("internvl", tmp_path / "model"))
        with pytest.raises(InputError, match="not there for internvl"):
            tiled.prepare(IMAGES[:1], QUESTIONS[:1], relevance="attention")
