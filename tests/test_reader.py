"""The reader: from weights to an answer, on the command line and in the benchmark."""

import json
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import LlamaForCausalLM
from typer.testing import CliRunner, Result

import ask as asking
import reader as reading
import reader_page
from homunculus import Eye, InputError, cli
from homunculus.eval.metrics import anls
from homunculus.reader import load_reader
from homunculus.reader.bridge import Bridge, sizes_of
from homunculus.reader.language import fingerprint, load_language
from homunculus.reader.model import calibrated
from homunculus.reader.sight import Sight
from homunculus.reader.weights import SHIPPED, save, write_hashes
from homunculus.train.calibration import fitted
from homunculus.train.scans import held_back
from speaking import loud, tiny_language

ROOT = Path(__file__).parents[1]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Path]:
    """The shipped networks with a bridge of chance for a tiny language model, and that model."""
    folder = tmp_path_factory.mktemp("reader")
    language, weights = tiny_language(folder / "language"), folder / "weights"
    shutil.copytree(SHIPPED, weights)
    torch.manual_seed(0)
    spoken = load_language(language).model
    bridge = loud(Bridge(rank=4, **sizes_of(spoken)))
    save(bridge, weights / "bridge.safetensors", {"sizes": bridge.sizes, "fits": fingerprint(spoken)})
    write_hashes(weights)
    return weights, language


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


def test_attention_needs_no_plan_for_a_new_length(trained, page):
    """cuDNN's makes one for each; whoever calls finds it as it was."""
    reader, allowed = load_reader(*trained), []
    for part in (reader.encoder, reader.language.model):
        part.register_forward_hook(lambda *_: allowed.append(torch.backends.cuda.cudnn_sdp_enabled()))
    before = torch.backends.cuda.cudnn_sdp_enabled()
    reader.ask(page, "What is the total?", budget=40, most=2)
    assert len(allowed) == 3 and not any(allowed)
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_a_captured_look_shows_the_language_model_the_same(trained, page):
    """On a GPU a new page is looked at in one piece, see `Sight`; here it is asked to, step by step."""
    reader, questions = load_reader(*trained), ["What is entry 3?", "What is it called?"]
    eye = Eye(relevance="query", budget=40, scout=reader.scout)
    pixels = torch.from_numpy(np.array(page)).permute(2, 0, 1)
    one, other = eye.scene(pixels), eye.scene(pixels)
    relevance = reader.scout.ask(reader.scout.page(other), other, questions)
    found, expected = reader.sight.glances(one, questions, eye), eye.look_for(other, questions, relevance=relevance)
    with torch.no_grad():
        (seen, notes), (wanted, lines) = reader.see(found), reader.see(expected)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(seen, wanted, strict=True)) and notes == lines
    assert one in reader.scout.seen and len(seen[0]) == 40


@pytest.mark.gpu
def test_on_a_gpu_pages_of_a_size_are_looked_at_in_a_graph(page):
    from homunculus.reader import load_scout
    from homunculus.reader.model import Reader

    scout = load_scout(device="cuda")
    reader = Reader.__new__(Reader)  # without its language model, which has no part in looking
    reader.scout, reader.sight = scout, Sight()
    eye = Eye(relevance="query", budget=40, scout=scout)
    pixels = torch.from_numpy(np.array(page)).permute(2, 0, 1).cuda()
    looks = [
        reader._looks(eye, eye.scene(pixels.flip(2) if turn % 2 else pixels), None, ["What?"]) for turn in range(4)
    ]
    (way,) = reader.sight.ways.values()
    assert len(way.graphs) == 1
    assert torch.equal(looks[0][0].cells, looks[2][0].cells) and torch.equal(looks[1][0].cells, looks[3][0].cells)
    assert not torch.equal(looks[0][0].cells, looks[1][0].cells)


def test_an_answer_grows_as_it_is_streamed(trained, page):
    reader = load_reader(*trained)
    grown = [answer.text for answer in reader.stream(page, "What is the total?", budget=32, most=6)]
    assert 1 <= len(grown) <= 6 and grown[-1] == reader.ask(page, "What is the total?", budget=32, most=6).text
    sampled = {reader.ask(page, "Total?", budget=32, most=8, temperature=2.0, seed=seed).text for seed in (0, 0, 1, 2)}
    assert 2 <= len(sampled) <= 3  # the same seed says the same


def test_an_answer_knows_whether_it_has_ended_and_the_coldest_sample_is_the_likeliest(trained, page):
    reader = load_reader(*trained)
    plain, cold = (reader.ask(page, "Total?", budget=16, most=4, temperature=t) for t in (0.0, 1e-45))
    assert plain.text == cold.text
    reader.ends = set()
    assert not reader.ask(page, "Total?", budget=16, most=2).ended
    reader.ends = set(range(300))
    assert reader.ask(page, "Total?", budget=16, most=2).ended


def test_a_reader_names_what_is_wrong(trained, page, tmp_path):
    weights, language = trained
    reader = load_reader(weights, language)
    for wrong in ("", "  "):
        with pytest.raises(InputError, match="question is missing"):
            reader.ask(page, wrong)
    with pytest.raises(InputError, match="knows no 'colour'"):
        reader.ask(page, "Total?", colour="red")
    with pytest.raises(InputError, match="seed must be"):
        reader.ask(page, "Total?", temperature=1.0, seed=1 << 64)
    with pytest.raises(InputError, match="no device 'abacus'"):
        load_reader(weights, language, "abacus")
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


def test_calibration_learns_how_far_confidence_can_be_trusted():
    rng = np.random.default_rng(0)
    chances = rng.uniform(0.05, 0.95, 4000)
    odds = np.log(chances / (1 - chances))
    right = rng.random(4000) < 1 / (1 + np.exp(-(0.5 * odds - 1)))
    slope, offset = fitted(chances, right)
    assert slope == pytest.approx(0.5, abs=0.08) and offset == pytest.approx(-1, abs=0.1)
    few = fitted([0.9, 0.8], [True, True])  # nothing to learn from: finite, and no worse than before
    assert all(np.isfinite(few)) and calibrated(0.9, few) > 0.8


def test_calibration_is_noted_in_the_weights(trained, page, tmp_path):
    weights, language = shutil.copytree(trained[0], tmp_path / "weights"), trained[1]
    place = tmp_path / "data" / "funsd" / "train"
    (place / "images").mkdir(parents=True)
    names = [f"images/{i}.png" for i in range(40)]
    held = [name for name in names if held_back(name)]
    assert 0 < len(held) < 20
    for name in names:
        page.crop((0, 0, 300, 200)).save(place / name)
    rows = [{"image": name, "question": "What?", "answers": ["x"], "qid": name} for name in names]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("train", "calibrate", weights, "--data", tmp_path / "data", "--sets", "funsd", "--language", language)
    assert result.exit_code == 0 and f"from {len(held)} answers" in result.output, result.exception
    reader = load_reader(weights, language)
    assert reader.calibration != (1.0, 0.0) and f"offset {reader.calibration[1]:.3f}" in result.output
    assert reader.ask(page, "What?", budget=32, most=2).confidence < 0.5  # none of the answers was right


def test_ask_on_the_command_line(trained, page, tmp_path, homunculus):
    weights, language = trained
    page.save(tmp_path / "page.png")
    page.convert("RGB").save(tmp_path / "page.pdf")
    common = ("--weights", weights, "--language", language, "--budget", 32, "--most", 4)
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


# -- the reader that comes with the package --------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the language model of the package is the one that it was trained with
        return load_reader()


def test_the_shipped_reader_answers_what_the_demo_asks(shipped):
    demo = (ROOT / "Makefile").read_text()
    questions = re.findall(r'"([^"]+\?)"', demo[demo.index("homunculus ask") :])
    answers = shipped.ask(ROOT / "examples" / "invoice.png", questions)
    assert [answer.text for answer in answers] == ["926.52", "K-2209", "2026-0417"]
    assert all(answer.glance.selection.mask.sum() == 273 for answer in answers)


def test_the_shipped_reader_is_not_sure_of_what_it_cannot_know(shipped):
    blank = Image.new("RGB", (800, 1000), "white")
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (600, 500, 3), np.uint8))
    for image in (blank, noise):
        for answer in shipped.ask(image, ["What is the total?", "Wie lautet die Rechnungsnummer?", "请问总额是多少?"]):
            assert answer.confidence < 0.5, (answer.text, answer.notes)


def test_all_shipped_weights_together_are_small():
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 80e6


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
    results["rows"] += [row | {"way": "foveated/query/273"} for row in results["rows"][:1]]
    (tmp_path / "reader.json").write_text(json.dumps(results))
    (tmp_path / "images").mkdir()
    reader_page.main(tmp_path, tmp_path)
    written = (tmp_path / "reader.md").read_text()
    assert (
        "| uniform/query/32 | " in written
        and "| funsd | 4 | " in written
        and (tmp_path / "images/reader.png").is_file()
    )
    assert "| funsd at 273 tokens: 0.55 | funsd 0." in written and "Not measured yet" in written
    moved = reading.other_pages(reading.items(tmp_path / "data", "funsd"))
    assert {(item.qid, item.image.stem) for item in moved} == {("a0", "b"), ("a1", "b"), ("b0", "a"), ("b1", "a")}
    sure, right = np.array([0.95, 0.95, 0.15, 0.15]), np.array([1.0, 0.0, 0.0, 0.0])
    assert reading.calibration_error(sure, right) == pytest.approx(0.5 * 0.45 + 0.5 * 0.15)


def test_the_time_of_a_question_is_told(trained, tmp_path, capsys):
    weights, language = trained
    how = ("--count", 2, "--weights", weights, "--language", language, "--out", tmp_path / "ask.json")
    asking.main([*map(str, how)])
    found = json.loads((tmp_path / "ask.json").read_text())
    assert found["count"] == 2 and 0 < sum(found["parts"].values()) <= found["slowest"] * 1.01
    assert found["loading"] > 0.5 and 0.1 < found["gigabytes"] < 64  # torch alone takes as much
    assert "s to load" in capsys.readouterr().out


def test_aims_are_told_as_they_came_out():
    rows = [
        {"dataset": "docvqa", "way": way, "value": value}
        for way, value in (("foveated/query/273", 0.5), ("uniform/query/273", 0.45), ("foveated/query/1536", 0.6))
    ]
    told = reader_page.aims(rows)
    assert "| docvqa at 273 tokens: 0.45 | docvqa 0.500 | met |" in told
    assert "| docvqa at 273 tokens: 0.1 over uniform/query | docvqa 0.050 | missed |" in told
    assert "| 95% of 1,536 tokens at 273 | docvqa 0.833 | missed |" in told and "sroie" not in told
