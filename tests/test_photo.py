"""The photographs' adapter: its LoRA counts in rows that show photographs, its lessons are laid out as prompts are."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from homunculus.reader.language import Language
from homunculus.reader.lora import sizes_of
from homunculus.reader.photo import PhotoAdapter
from homunculus.train.tasks.photo import IGNORED, PhotoTask, collate


@pytest.fixture
def language():
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=60,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    return Language(model, None, "")


@pytest.fixture
def adapter(language):
    torch.manual_seed(1)
    found = PhotoAdapter(rank=4, width=16, **sizes_of(language.model))
    for weights in found.lora.weights:
        torch.nn.init.normal_(weights.b, std=0.3)
    return found


@torch.no_grad()
def test_rows_without_a_photograph_stay_as_they_are(language, adapter):
    ids = torch.randint(60, (3, 7))
    before = language.model(ids).logits
    switch = adapter.attach(language.model)
    assert torch.equal(language.model(ids).logits, before)
    with switch.on(torch.tensor([False, True, False])):
        mixed = language.model(ids).logits
    torch.testing.assert_close(mixed[[0, 2]], before[[0, 2]])
    assert (mixed[1] - before[1]).abs().max() > 0.01
    with switch.on(torch.zeros(3, dtype=torch.bool)):
        assert torch.equal(language.model(ids).logits, before)
    assert torch.equal(language.model(ids).logits, before)


def test_answers_are_predicted_behind_cells_and_question():
    starts, ids, at, answers = collate([1, 2], [([3, 4, 5], [6, 7]), ([8], [9])], cells=10)
    assert ids[0, :7].tolist() == [1, 2, 3, 4, 5, 6, 7] and ids[1, :4].tolist() == [1, 2, 8, 9]
    assert starts.tolist() == [2, 2] and answers.tolist() == [[6, 7], [9, IGNORED]]
    for row in range(2):
        for place, answer in zip(at[row].tolist(), answers[row].tolist(), strict=True):
            if answer != IGNORED:
                assert ids[row, place + 1 - 10] == answer  # the token behind the place, cells left out


def test_the_adapter_learns_to_tell_photographs_apart(language, adapter):
    task = PhotoTask(adapter, language)
    torch.manual_seed(2)
    cells = torch.randn(4, 6, 16)
    texts = [([3, 4], [10 + row]) for row in range(4)]  # one question, an answer for each photograph
    batch = [cells, *collate([1, 2], texts, cells=6)]
    optimizer = torch.optim.AdamW(task.parameters(), 1e-2)
    frozen = [p.clone() for p in language.model.parameters()]
    assert task(*batch)["exact"] < 1
    for _ in range(60):
        losses = task(*batch)
        optimizer.zero_grad()
        losses["answer"].backward()
        optimizer.step()
    assert losses["exact"] == 1
    assert all(torch.equal(p, q) for p, q in zip(language.model.parameters(), frozen, strict=True))
