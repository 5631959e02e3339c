"""Published methods on the reader: with all tokens it is the reader itself, with fewer it knows only what was kept."""

import pytest
import torch

from homunculus import load_reader
from homunculus.eye import Eye
from homunculus.peers import BEFORE, INSIDE, list_peers
from homunculus.peers.layers import Dropping, Text, gathered
from homunculus.peers.reading import TOKENS, Bases, received
from readers import tiny_reader

QUESTIONS = ["What is the total?", "Who signed it, and when?"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(*tiny_reader(tmp_path_factory.mktemp("reader")))


@pytest.fixture(scope="module")
def scenes():
    lots = torch.Generator().manual_seed(0)
    sizes = [(288, 224), (192, 320)]
    return [Eye().scene(torch.randint(0, 256, (3, *size), dtype=torch.uint8, generator=lots)) for size in sizes]


@pytest.mark.parametrize("name", list_peers())
def test_with_room_for_all_it_is_the_reader_on_an_even_look(name, reader, scenes):
    even = Eye("uniform", "information", TOKENS, scout=False)
    glances = [even.look_for(scene, [asked])[0] for scene, asked in zip(scenes, QUESTIONS, strict=True)]
    *_, own = reader.reply(glances, most=5)
    looks, answers, tokens = Bases(reader).answers(name, 5000, scenes, QUESTIONS, QUESTIONS, 5)
    assert [answer.text for answer in answers] == [answer.text for answer in own]
    for mine, theirs in zip(answers, own, strict=True):
        assert mine.confidence == pytest.approx(theirs.confidence, abs=1e-3) and mine.notes == theirs.notes
    assert tokens == [63, 60] and [len(look.selection.boxes[0]) for look in looks] == [63, 60]


@pytest.mark.parametrize("budget", [20, 50])
@pytest.mark.parametrize("name", list_peers())
def test_fewer_tokens_are_as_many_as_told_and_the_same_in_any_company(name, budget, reader, scenes):
    bases = Bases(reader)
    looks, answers, tokens = bases.answers(name, budget, scenes, QUESTIONS, QUESTIONS, 4)
    for i, scene in enumerate(scenes):
        look, answer, count = (
            part[0] for part in bases.answers(name, budget, [scene], QUESTIONS[i : i + 1], QUESTIONS[i : i + 1], 4)
        )
        assert answer.text == answers[i].text and count == tokens[i]
        assert torch.equal(look.selection.boxes, looks[i].selection.boxes)
        if name in BEFORE and name not in INSIDE:
            assert count == budget


@pytest.mark.parametrize("name", ["visionzip", "fastv"])
def test_notes_are_read_from_kept_cells_alone(name, reader, scenes, monkeypatch):
    from homunculus.peers import reading

    masks = []

    def watched(encoder, x, places, points, mask):
        masks.append(mask)
        return take(encoder, x, places, points, mask)

    take = reading.take
    monkeypatch.setattr(reading, "take", watched)
    looks, _, _ = Bases(reader).answers(name, 12, scenes, QUESTIONS, QUESTIONS, 3)
    counts = [count for mask in masks for count in mask.sum(1).tolist()]
    assert counts == [len(look.selection.boxes[0]) for look in looks]
    assert max(counts) <= (12 if name == "visionzip" else 60)


def test_what_is_attended_to_is_a_share_of_all(reader):
    blocks, noted = reader.encoder.blocks, {}
    x = torch.randn(1, 9, 96)
    with received(blocks, noted):
        for block in blocks:
            x = block(x)
    assert all(torch.allclose(row.sum(1), torch.ones(1), atol=1e-5) for row in noted.values()) and noted
    assert not any(block.attention._forward_hooks for block in blocks)


@torch.no_grad()
def test_dropping_nothing_is_the_model_itself_and_dropped_tokens_are_gone(reader):
    model = reader.language.model
    x = torch.randn(2, 14, 64, generator=torch.Generator().manual_seed(1))
    there = torch.ones(2, 14, dtype=torch.long)
    there[1, :3] = 0
    places = (there.cumsum(1) - 1).clamp(min=0)
    visual = torch.zeros(2, 14, dtype=torch.bool)
    visual[:, 5:10] = True
    own = model(inputs_embeds=x, attention_mask=there, position_ids=places).logits[:, -1]
    run = Dropping(model.model, model.lm_head)
    logits, left = run.begin(Text.of(x, there, visual, places), INSIDE["fastv"], [])
    torch.testing.assert_close(logits, own, rtol=1e-4, atol=1e-4)
    assert left.all() and left.shape == (2, 5)
    text = Text.of(x, there, visual, places).take(~visual)
    torch.testing.assert_close(text.x[0], torch.cat((x[0, :5], x[0, 10:])))
    assert text.there.sum(1).tolist() == [9, 6] and text.places[1, -1] == places[1, -1]
    at, there = gathered(visual)
    assert at.tolist() == [[5, 6, 7, 8, 9]] * 2 and there.all()
