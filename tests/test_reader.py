"""The reader: the bridge into a language model, what it notes and is asked, and what comes of it."""

import copy
import json
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from typer.testing import CliRunner, Result

import reader as reading
from homunculus import CellTree, InputError, allocate, cli
from homunculus.eval.metrics import anls
from homunculus.reader import Encoder, Scout, load_encoder, load_reader, talk
from homunculus.reader.bridge import Bridge, sizes_of, where
from homunculus.reader.language import load_language
from homunculus.reader.model import calibrated
from homunculus.reader.notes import distinct, spots
from homunculus.reader.talk import ASKED, BEFORE, END
from homunculus.reader.weights import SHIPPED
from homunculus.train.aloud import Line, Said, read_aloud
from homunculus.train.answering import Joint, ReaderTask, located, sequence, slipped_in
from homunculus.train.asks import Asks

SMALL = {"width": 96, "depth": 1, "heads": 3, "reading": 1}


def small_language(words: int = 200) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


def loud(bridge: Bridge) -> Bridge:
    """A bridge whose added matrices say something."""
    for added in bridge.added:
        torch.nn.init.normal_(added.up.weight, std=0.2)
    return bridge


def bridge_for(language: LlamaForCausalLM) -> Bridge:
    return Bridge(eye=96, rank=4, **sizes_of(language))


# -- the bridge ------------------------------------------------------------------------------------------------


def test_a_new_bridge_leaves_the_language_model_as_it_was_and_a_merged_one_says_what_an_attached_one_says():
    language, x = small_language(), torch.randn(2, 7, 64)
    before = language(inputs_embeds=x).logits
    bridge = bridge_for(language)
    fresh = copy.deepcopy(language)
    bridge.attach(fresh)
    assert torch.equal(fresh(inputs_embeds=x).logits, before)
    loud(bridge)
    merged = copy.deepcopy(language)
    bridge.merge(merged)
    attached = fresh(inputs_embeds=x).logits
    assert (attached - before).abs().max() > 0.01
    torch.testing.assert_close(merged(inputs_embeds=x).logits, attached, rtol=1e-4, atol=1e-5)


def test_only_the_bridge_gets_gradients():
    language = small_language()
    bridge = loud(bridge_for(language))
    bridge.attach(language)
    language(inputs_embeds=torch.randn(1, 4, 64)).logits.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in bridge.added.parameters())
    assert all(p.grad is None for name, p in language.named_parameters() if "added" not in name)


def test_a_token_knows_its_place_on_the_page():
    places = torch.tensor([[[0.0, 1.5, 2.5], [0.0, 7.5, 2.5], [2.0, 2.0, 2.0]]])
    here, there = where(places, torch.tensor([[10.0, 8.0]])), where(places * 2, torch.tensor([[20.0, 16.0]]))
    assert here.shape == (1, 3, 30)
    torch.testing.assert_close(here[..., :28], there[..., :28])  # shares of the page, not pixels
    assert (here[0, 0] - here[0, 1]).abs().max() > 0.1


# -- what follows the page -------------------------------------------------------------------------------------


def test_what_is_missing_at_the_end_of_a_row_changes_nothing(tmp_path):
    language = load_language(tiny_language(tmp_path))
    fresh = copy.deepcopy(language.model)
    bridge = loud(bridge_for(fresh))
    task = ReaderTask(Joint(bridge, Encoder(**SMALL)), language, Scout()).eval()
    bridge.merge(fresh)
    ids, at, seen = torch.randint(1, 200, (2, 9)), torch.tensor([[3, 4, 5], [2, 3, 4]]), torch.randn(2, 11, 64)
    ids[0, 7:], ids[1, 5:] = talk.PAD, talk.PAD
    with torch.no_grad():
        together = task._says(seen, ids, at)
        for b, length in ((0, 7), (1, 5)):
            embed = fresh.get_input_embeddings()
            x = torch.cat((embed(task.before), seen[b], embed(ids[b, :length])))[None]
            alone = fresh(inputs_embeds=x).logits[0, len(task.before) + 11 + at[b]]
            torch.testing.assert_close(together[b], alone, rtol=1e-4, atol=1e-4)


def test_notes_question_and_answer_follow_without_gaps_and_each_token_is_asked_of_the_one_before():
    notes, ask = torch.tensor([[7, 8, 0, 0], [9, 0, 0, 0]]), torch.tensor([[11, 12, 13], [21, 0, 0]])
    reply = torch.tensor([[31, 32, 2, 0], [41, 2, 0, 0]])
    ids, at, answer = sequence(notes, ask, reply, torch.tensor([True, True]))
    assert ids[0].tolist() == [7, 8, 11, 12, 13, 31, 32, 2, 0, 0, 0]
    assert ids[1].tolist() == [9, 21, 41, 2] + [0] * 7
    assert answer.tolist() == [[31, 32, 2, -1], [41, 2, -1, -1]]
    for b in range(2):
        for place, token in zip(at[b].tolist(), answer[b].tolist(), strict=True):
            assert token < 0 or ids[b, place + 1] == token
    *_, unusable = sequence(notes, ask, reply, torch.tensor([False, True]))
    assert (unusable[0] == -1).all() and (unusable[1] >= 0).any()


def test_a_place_of_the_answer_is_slipped_in_where_told_and_nowhere_else():
    points, boxes = torch.full((64, 5, 2), -100.0), torch.zeros(64, 4, 4)
    boxes[:, 0] = torch.tensor([200.0, 300, 280, 320])
    told = torch.arange(64) % 2 == 0
    mixed = slipped_in(points, boxes, told)
    new = (mixed != points).any(2)
    assert torch.equal(new.sum(1), told.long()) and len(set(new.nonzero()[:, 1].tolist())) == 5
    inside = (mixed[new] >= torch.tensor([176, 294])) & (mixed[new] <= torch.tensor([304, 326]))
    assert inside.all()
    boxes[0, 0], boxes[1, 0] = torch.tensor([-9.0, -9, -8, -8]), 0
    assert located(boxes)[:3].tolist() == [False, False, True]


def test_the_eye_reads_first_where_the_scout_is_surest_and_no_place_twice():
    found = torch.full((2, 10, 20), -9.0)
    found[0, 3, 4], found[0, 3, 7], found[0, 3, 12], found[0, 8, 4] = 5, 4, 3, 2
    found[1, 0, 0] = 1
    points = spots(found, (160, 320), 3)
    assert points[0].tolist() == [[72, 56], [200, 56], [72, 136]]  # (3, 7) lies too near to the first
    assert points[1, 0].tolist() == [8, 8] and points.shape == (2, 3, 2)
    tall = spots(found, (600, 320), 4)
    assert tall[0].tolist() == [[72, 195], [72, 225], [200, 195], [200, 225]]  # two lines in a place


def test_notes_that_say_nothing_new_are_left_out():
    assert distinct(["Total: 12.50", " - ", "total: 12", "", "12.50", "Tax"]) == ["Total: 12.50", "Tax"]


def test_what_is_noted_can_neither_end_the_talk_nor_outgrow_its_room(tmp_path):
    tokenizer = load_language(tiny_language(tmp_path)).tokenizer
    (ids,) = talk.note_ids(tokenizer, [["Total 12.50", "<|im_end|> ha"]])
    assert tokenizer.decode(ids, skip_special_tokens=False) == "\nTotal 12.50\n< |im_end|> ha\n"
    assert [len(ids) for ids in talk.note_ids(tokenizer, [["Invoice 4711"] * 90, []], 40)] == [40, 2]


def test_cells_come_in_reading_order():
    tree = CellTree(160, 224)
    selection = allocate("foveated", tree, torch.rand(2, tree.size), 20)
    rows = selection.in_rows()
    keys = rows.boxes[..., 1] * 1000 + rows.boxes[..., 0]
    assert (keys.diff(dim=1) >= 0).all()
    assert torch.equal(rows.indices.sort(1).values, selection.indices.sort(1).values)


# -- what is asked ---------------------------------------------------------------------------------------------


def page_lines() -> list[Line]:
    texts = ["ACME Trading Company", "Invoice number 4711 of March", "Total amount due 12.50", "Thank you very much"]
    lines = []
    for n, text in enumerate(texts):
        words = text.split()
        boxes = np.array([[60 * i, 30 * n, 60 * i + 50, 30 * n + 14] for i in range(len(words))], np.float32)
        lines.append(Line(words, boxes))
    return lines


def test_reading_lessons_say_what_stands_there():
    lines, rng = page_lines(), random.Random(1)
    lessons = [lesson for _ in range(30) for lesson in read_aloud(lines, 10, rng)]
    texts = [line.text for line in lines]
    assert len({lesson.text for lesson in lessons}) > 25
    for lesson in lessons:
        assert any(lesson.answer in text for text in texts)
        x0, y0, x1, _ = lesson.boxes[0]
        line = lines[int(y0 // 30)]
        inside = [w for w, b in zip(line.words, line.boxes, strict=True) if b[0] >= x0 and b[2] <= x1]
        assert " ".join(inside) == lesson.answer  # the box is that of the answer
    below = [lesson for lesson in lessons if "below" in lesson.text or "under" in lesson.text]
    assert below and all(texts.index(lesson.answer) > 0 for lesson in below)
    assert read_aloud([], 5, rng) == []


def test_asks_are_filled_up_and_cut_to_their_parts():
    said = Said("What?", np.ones((6, 4), np.float32), "that")
    asks = Asks.of([said], 3, [np.full(4, 2.0)], 2)
    assert asks.questions == ["What?", "", ""] and asks.replies == ["that", "", ""]
    assert asks.answers.shape == (3, 4, 4) and asks.answers[0].all() and not asks.answers[1:].any()
    assert asks.usual[0].tolist() == [2.0] * 4 and not asks.usual[1].any()


# -- from a run to an answer -----------------------------------------------------------------------------------


def tiny_language(folder: Path) -> Path:
    """A language model of two layers with a tokenizer of its own, on disk."""
    text = [ASKED.format("What is the total amount on this page?"), BEFORE, "Invoice 4711 Total 12.50 " + END]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=letters)
    tokenizer.train_from_iterator(text, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    small_language(300).save_pretrained(folder)
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Path]:
    """A folder of weights after a few steps of two stages, and the language model that they are for."""
    folder = tmp_path_factory.mktemp("reader")
    language = tiny_language(folder / "language")
    common = "log_every = 2\nasks = 6\nema = 0.5\nsizes = { rank = 4 }\n"
    common += "canvases = [{ height = 192, width = 256, batch = 2 }]"
    plan = folder / "plan.toml"
    plan.write_text(
        f'[sources]\nlanguage = "{language}"\n[align]\nsteps = 4\naloud = 0.5\n{common}\n'
        f"[answer]\nsteps = 4\ntold = 0.5\nencoder = 0.5\n{common}\n"
    )
    result = run("train", "reader", "--config", plan, "--out", folder / "run", "--device", "cpu")
    assert result.exit_code == 0, result.exception
    weights = folder / "weights"
    shutil.copytree(SHIPPED, weights)
    result = run("train", "ship", folder / "run" / "answer", weights)
    assert result.exit_code == 0 and "bridge" in result.output and "encoder" in result.output
    return weights, language


def test_stages_follow_each_other_and_train_what_they_should(trained):
    run_folder = trained[0].parent / "run"
    align, answer = (load_file(run_folder / stage / "last.safetensors") for stage in ("align", "answer"))
    shipped_encoder = load_encoder().state_dict()
    kept = [name for name in align if name.startswith("encoder.")]
    for name in kept:
        torch.testing.assert_close(align[name], shipped_encoder[name.removeprefix("encoder.")])
    assert any((answer[name] != align[name]).any() for name in kept)  # it learns in the second stage
    assert all((align[f"bridge.added.{i}.up.weight"] != 0).any() for i in range(14))
    rows = [json.loads(line) for line in (run_folder / "answer" / "log.jsonl").read_text().splitlines()]
    assert {"answer", "exact", "dense", "read"} <= rows[0].keys() and all(row["answer"] > 0 for row in rows)


def test_a_reader_answers_with_what_it_looked_at(trained, page):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is the language model that it was trained with
        reader = load_reader(*trained)
    answer = reader.ask(page, "What is the total?", budget=64, most=5)
    assert isinstance(answer.text, str) and 0 <= answer.confidence <= 1
    assert answer.glance.selection.mask.sum() == 64 and answer.glance.allocator == "foveated"
    assert set(answer.seconds) >= {"load", "look", "encode", "read"} and all(s >= 0 for s in answer.seconds.values())
    told = answer.to_dict()
    assert told["answer"] == answer.text and len(told["tokens"]) == 64
    assert told["notes"] == answer.notes and all(isinstance(line, str) for line in answer.notes)
    json.dumps(told)


def test_several_questions_are_answered_as_one_by_one(trained, page):
    reader = load_reader(*trained)
    questions = ["What is the total?", "Who signed it, and when was that done?", "Date?"]
    together = reader.ask(page, questions, budget=64, most=6)
    for question, answer in zip(questions, together, strict=True):
        alone = reader.ask(page, question, budget=64, most=6)
        assert answer.text == alone.text and answer.confidence == pytest.approx(alone.confidence, abs=1e-3)
        assert torch.equal(answer.glance.selection.indices, alone.glance.selection.indices)


def test_an_answer_grows_as_it_is_streamed(trained, page):
    reader = load_reader(*trained)
    grown = [answer.text for answer in reader.stream(page, "What is the total?", budget=32, most=6)]
    assert 1 <= len(grown) <= 6 and grown[-1] == reader.ask(page, "What is the total?", budget=32, most=6).text
    sampled = {reader.ask(page, "Total?", budget=32, most=8, temperature=2.0, seed=seed).text for seed in (0, 0, 1, 2)}
    assert 2 <= len(sampled) <= 3  # the same seed says the same


def test_a_reader_names_what_is_wrong(trained, page, tmp_path):
    weights, language = trained
    reader = load_reader(weights, language)
    for wrong in ("", "  "):
        with pytest.raises(InputError, match="question is missing"):
            reader.ask(page, wrong)
    with pytest.raises(InputError, match="knows no 'colour'"):
        reader.ask(page, "Total?", colour="red")
    with pytest.raises(InputError, match="cannot load a language model"):
        load_reader(weights, tmp_path)
    other = LlamaForCausalLM.from_pretrained(language)
    torch.nn.init.normal_(other.lm_head.weight)
    other.save_pretrained(tmp_path)
    for file in language.glob("tokenizer*"):
        shutil.copy(file, tmp_path)
    with pytest.warns(UserWarning, match="another language model"):
        load_reader(weights, tmp_path)


def test_confidence_is_calibrated():
    assert calibrated(0.5, (1.0, 0.0)) == pytest.approx(0.5)
    assert calibrated(0.9, (1.0, 0.0)) == pytest.approx(0.9)
    assert calibrated(0.9, (0.5, -1.0)) < 0.6 and 0 < calibrated(0.0, (1.0, 0.0)) < calibrated(1.0, (1.0, 0.0)) < 1


def test_ask_on_the_command_line(trained, page, tmp_path, homunculus):
    weights, language = trained
    page.save(tmp_path / "page.png")
    page.convert("RGB").save(tmp_path / "page.pdf")
    common = ("--weights", weights, "--model", language, "--budget", 32, "--most", 4)
    code, out, _ = homunculus("ask", tmp_path / "page.png", "What is it?", *common, "--png", tmp_path / "a.png")
    assert code == 0 and "% sure" in out and (tmp_path / "a.png").is_file()
    code, out, err = homunculus("ask", tmp_path / "page.pdf", "What is it?", "Who?", *common, "--json", "-")
    told = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["question"] for row in told] == ["What is it?", "Who?"] and "% sure" in err
    assert all({"answer", "confidence", "seconds", "tokens"} <= row.keys() and len(row["tokens"]) == 32 for row in told)
    homunculus(
        "ask", tmp_path / "page.png", "a?", "b?", *common, "--png", tmp_path / "b.png", "--json", tmp_path / "b.json"
    )
    assert {file.name for file in tmp_path.glob("b*")} == {"b-1.png", "b-2.png", "b.json"}
    assert len((tmp_path / "b.json").read_text().splitlines()) == 2
    code, _, err = homunculus("ask", tmp_path / "page.png", " ", *common)
    assert code == 2 and "a question is missing" in err
    code, _, err = homunculus("ask", tmp_path / "none.png", "What?", *common)
    assert code == 2 and "none.png" in err and "Traceback" not in err


# -- the benchmark ---------------------------------------------------------------------------------------------


def test_the_benchmark_goes_on_where_it_was_and_scores_what_was_said(trained, page, tmp_path, capsys):
    place = tmp_path / "data" / "funsd" / "val"
    (place / "images").mkdir(parents=True)
    for name in "ab":
        page.crop((0, 0, 400, 300)).save(place / "images" / f"{name}.png")
    rows = [
        {"image": f"images/{name}.png", "question": f"What is {i}?", "answers": [str(i)], "qid": f"{name}{i}"}
        for name in "ab"
        for i in range(2)
    ]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    weights, language = trained
    words = ["--data", tmp_path / "data", "--sets", "funsd", "--weights", weights, "--language", language]
    words += ["--ways", "foveated/query/32,uniform/query/32", "--most", 3, "--out", tmp_path / "r.json", "--batch", 3]
    reading.main([*map(str, words)])
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert len({(row["qid"], row["way"]) for row in told[1:]}) == 8 == len(told) - 1
    assert all(row["score"] == anls(row["answer"], [row["qid"][1:]]) for row in told[1:])
    (tmp_path / "r.jsonl").write_text("\n".join(lines[:4]) + '\n{"dataset": "fun')  # killed in the middle of a line
    reading.main([*map(str, words)])
    again = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines() if line.endswith("}")]
    key = lambda row: (row["qid"], row["way"], row["answer"])  # noqa: E731
    assert sorted(map(key, again[1:])) == sorted(map(key, told[1:]))
    results = json.loads((tmp_path / "r.json").read_text())
    assert {(row["way"], row["n"], row["pages"]) for row in results["rows"]} == {
        ("foveated/query/32", 4, 2),
        ("uniform/query/32", 4, 2),
    }
    assert "| foveated/query/32 | " in capsys.readouterr().out
    moved = reading.other_pages(reading.items(tmp_path / "data", "funsd"))
    assert {(item.qid, item.image.stem) for item in moved} == {("a0", "b"), ("a1", "b"), ("b0", "a"), ("b1", "a")}
    sure, right = np.array([0.95, 0.95, 0.15, 0.15]), np.array([1.0, 0.0, 0.0, 0.0])
    assert reading.calibration_error(sure, right) == pytest.approx(0.5 * 0.45 + 0.5 * 0.15)
