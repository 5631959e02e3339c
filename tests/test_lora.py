"""LoRA: attached for training, merged for inference, the same either way."""

import copy

import pytest
import torch

from homunculus.reader.lora import TARGETS, Lora, LoraLinear, sizes_of
from homunculus.reader.weights import about, load, save
from speaking import small_language


@pytest.fixture
def language():
    return small_language(64)


def random_lora(language) -> Lora:
    torch.manual_seed(1)
    lora = Lora(rank=4, **sizes_of(language))
    for weights in lora.weights:
        torch.nn.init.normal_(weights.b, std=0.2)
    return lora


@torch.no_grad()
def logits(language) -> torch.Tensor:
    return language(torch.arange(12)[None]).logits


def test_attached_and_merged_models_say_the_same(language):
    lora, attached, merged = random_lora(language), copy.deepcopy(language), copy.deepcopy(language)
    lora.attach(attached)
    lora.merge(merged)
    assert not torch.allclose(logits(attached), logits(language), atol=1e-2)
    torch.testing.assert_close(logits(attached), logits(merged), atol=1e-4, rtol=1e-4)


def test_a_fresh_lora_changes_nothing_and_all_of_it_learns(language):
    lora, attached = Lora(rank=4, **sizes_of(language)), copy.deepcopy(language)
    lora.attach(attached)
    torch.testing.assert_close(logits(attached), logits(language))
    attached(torch.arange(12)[None]).logits.square().mean().backward()
    assert all(weights.b.grad.abs().sum() > 0 for weights in lora.weights)
    trained = [p for p in attached.parameters() if p.requires_grad]
    assert {id(p) for p in trained} == {id(p) for p in lora.parameters()}


def test_every_linear_layer_is_adapted(language):
    lora = random_lora(language)
    lora.attach(language)
    adapted = [m for m in language.modules() if isinstance(m, LoraLinear)]
    assert len(adapted) == len(TARGETS) * language.config.num_hidden_layers == len(lora.weights)


def test_sizes_rebuild_it_from_a_file(language, tmp_path):
    lora, path = random_lora(language), tmp_path / "lora.safetensors"
    save(lora, path, {"sizes": lora.sizes}, int8=False)
    again = Lora(**about(path)["sizes"])
    load(again, path)
    assert all(torch.equal(a, b) for a, b in zip(lora.parameters(), again.parameters(), strict=True))
    assert not any("base" in name for name in lora.state_dict())
