"""Answers from the lines that a look can read, end to end with a small random language model."""

import json
import math
import shutil
import warnings
from itertools import cycle, pairwise
from pathlib import Path

import pytest
import torch
from PIL import Image

from homunculus import InputError
from homunculus.reader import load_reader
from homunculus.reader import model as answering
from homunculus.reader.calibration import FEATURES, Calibration, features_of
from homunculus.reader.language import fingerprint
from homunculus.reader.lines import Line
from homunculus.reader.model import GenerationConfig, Reader
from homunculus.reader.prompt import END, NOT_FOUND
from homunculus.reader.weights import SHIPPED, digest, save, write_hashes
from lined import TEXTS, card, letter, likeness
from speaking import loud_lora, small_language, tiny_language

QUESTIONS = ["What is the total amount?", "When does the meeting begin, and where is it held?", "Who?"]
CALIBRATION = {"weights": [0.5, 0.25, 1.0, 0.5, -0.1], "bias": -0.5}
HOW = {"budget": 60, "max_new_tokens": 6}
REFUSED = 0.1  # probability of "not on the page" where a test says what the language model says


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """Weights of a reader, and its language model."""
    folder = tmp_path_factory.mktemp("reader")
    language, weights = tiny_language(folder / "language"), folder / "weights"
    weights.mkdir()
    for name in ("finder", "scout", "recognizer"):
        shutil.copy(SHIPPED / f"{name}.safetensors", weights)
    lora = loud_lora()
    header = {"sizes": lora.sizes, "fits": fingerprint(small_language(300)), "calibration": CALIBRATION}
    save(lora, weights / "lora.safetensors", header)
    write_hashes(weights)
    return weights, language


@pytest.fixture(scope="module")
def reader(folders) -> Reader:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is the language model that the LoRA was made for
        return load_reader(*folders, dtype=torch.float32)


@pytest.fixture(scope="module")
def image() -> Image.Image:
    return Image.fromarray(card()[0].numpy())


@pytest.fixture
def counted(reader, monkeypatch) -> list[int]:
    """How many strips the recogniser is given at a time."""
    calls, recognizer = [], reader.recognizer

    class Counting:
        height = recognizer.height

        def __call__(self, strips, widths):
            calls.append(len(strips))
            return recognizer(strips, widths)

    monkeypatch.setattr(reader, "recognizer", Counting())
    return calls


def saying(reader: Reader, monkeypatch, text: str, probs: list[float]) -> None:
    """The language model says a text, the last of its tokens being the end."""
    ids = reader.language.encode(text + END)

    def next_logits(prompts, seen, refusals):
        refusals[:] = [REFUSED] * len(prompts)
        steps = iter(zip(ids, cycle(probs)))

        def one_more(chosen):
            token, prob = next(steps)
            logits = torch.full((len(prompts), 300), math.log((1 - prob) / 299))
            logits[:, token] = math.log(prob)
            return logits

        return one_more

    monkeypatch.setattr(reader, "_next_logits", next_logits)


def same(one, other) -> bool:
    """Whether two answers say the same from the same lines."""
    return (
        one.text == other.text
        and one.lines == other.lines
        and one.confidence == pytest.approx(other.confidence, abs=1e-3)
        and one.ended == other.ended
    )


# -- answers ---------------------------------------------------------------------------------------------------


def test_an_answer_tells_what_it_was_made_from(reader, image):
    answer = reader.ask(image, QUESTIONS[0], **HOW)
    assert isinstance(answer.text, str) and 0 <= answer.confidence <= 1 and answer.page == 0
    assert answer.visual_tokens == 60 == answer.glance.budget and answer.glance.allocator == "foveated"
    assert answer.glances == [answer.glance] and answer.glance.question == QUESTIONS[0]
    assert likeness([line.text for line in answer.lines], TEXTS[:4]) > 0.8 and len(answer.features) == len(FEATURES)
    assert {"open", "look", "read", "prefill"} <= answer.seconds.keys() and min(answer.seconds.values()) >= 0
    entries = answer.to_dict()
    assert {"answer", "confidence", "lines", "visual_tokens", "page", "seconds", "tokens", "image"} <= entries.keys()
    assert entries["answer"] == answer.text and entries["visual_tokens"] == 60 == len(entries["tokens"])
    assert json.loads(answer.to_json()) == entries


def test_an_answer_is_saved_as_picture_and_numbers(reader, image, tmp_path):
    answer = reader.ask(image, QUESTIONS[0], **HOW)
    answer.save(tmp_path / "a.png")
    answer.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["answer"] == answer.text
    assert Image.open(tmp_path / "a.png").size == answer.picture().size and answer.how_sure.endswith("% sure")


def test_several_questions_are_answered_as_one_by_one(reader, image, monkeypatch):
    together = reader.ask(image, QUESTIONS, **HOW)
    assert len({answer.text for answer in together}) > 1
    for question, answer in zip(QUESTIONS, together, strict=True):
        alone = reader.ask(image, question, **HOW)
        assert same(answer, alone) and answer.glance.question == question
        assert torch.equal(answer.glance.selection.indices, alone.glance.selection.indices)
    monkeypatch.setattr(answering, "BATCH_SIZE", 2)
    assert all(map(same, reader.ask(image, QUESTIONS, **HOW), together))


def test_the_last_of_what_is_streamed_is_the_answer(reader, image):
    asked = reader.ask(image, QUESTIONS[1], **HOW)
    streamed = list(reader.stream(image, QUESTIONS[1], **HOW))
    assert 1 <= len(streamed) <= 6 and same(streamed[-1], asked) and streamed[-1].seconds.keys() == asked.seconds.keys()
    assert all(longer.text.startswith(shorter.text[:-1]) for shorter, longer in pairwise(streamed))


def test_streamed_answers_name_their_page(reader, image, tmp_path):
    image.save(tmp_path / "two.pdf", save_all=True, append_images=[image], resolution=72)
    how = {"page": 1, "dpi": 72, "budget": 40, "max_new_tokens": 1}
    assert reader.ask(tmp_path / "two.pdf", "Who?", **how).page == 1
    assert [answer.page for answer in reader.stream(tmp_path / "two.pdf", "Who?", **how)] == [1]


def test_an_opened_page_is_asked_again_and_again(reader, counted):
    page, how = reader.open(Image.fromarray(letter()[0].numpy())), {"budget": 150, "max_new_tokens": 2}
    first = page.ask(QUESTIONS[0], **how)
    read = sum(counted)
    assert read >= len(first.lines) > 0
    assert same(page.ask(QUESTIONS[0], **how), first) and sum(counted) == read
    page.ask(QUESTIONS[1], **how)
    assert sum(counted) == len(page.texts) < 2 * read  # lines that are seen as before are not read again
    [answer] = reader.answer(page, [QUESTIONS[0]], **how)
    assert same(answer, first)


def test_pages_are_answered_together_as_alone(reader, image):
    other = Image.fromarray(card(18)[0].numpy()).rotate(2, fillcolor=255)
    pages = [reader.open(image), reader.open(other)]
    glances = [page.look(question, 60) for page, question in zip(pages, QUESTIONS, strict=False)]
    *_, together = reader.reply(pages, glances, GenerationConfig(6))
    for page, question, answer in zip(pages, QUESTIONS, together, strict=False):
        assert same(page.ask(question, **HOW), answer)


def test_answers_are_as_long_as_they_may_be_and_sampled_from_a_seed(reader, image, monkeypatch):
    page = reader.open(image)

    def said(**how) -> str:
        return page.ask("What?", budget=60, **how).text

    monkeypatch.setattr(reader, "ends", set())
    lengths = [len(list(reader.stream(image, "What?", budget=60, max_new_tokens=n))) for n in (1, 5)]
    assert lengths == [1, 5] and not page.ask("What?", budget=60, max_new_tokens=3).ended
    warm = [said(temperature=2.0, seed=seed, max_new_tokens=8) for seed in (1, 1, 2, 3)]
    assert warm[0] == warm[1] and len(set(warm)) > 1
    assert said(temperature=0.0, seed=5, max_new_tokens=8) == said(max_new_tokens=8)


def test_the_text_for_the_language_model_is_limited(reader, image):
    page = reader.open(image)
    glance = page.look(QUESTIONS[0], 60)
    empty = len(reader.prompts([page], [glance], 0)[0][0])
    lengths = []
    for most in (0, 16, 40, 512):
        [prompt], [lines] = reader.prompts([page], [glance], most)
        assert len(prompt) - empty <= most and (lines or most == 0)
        lengths.append(len(prompt))
    assert lengths == sorted(lengths) and lengths[1] < lengths[-1]
    assert page.ask(QUESTIONS[0], max_text_tokens=0, **HOW).lines == ()


def test_what_is_wrong_is_named(reader, image):
    for wrong in ("", "  ", [], ["What?", " "], [7]):
        with pytest.raises(InputError, match="question is missing"):
            reader.ask(image, wrong)
    with pytest.raises(InputError, match="question is missing"):
        next(reader.stream(image, " "))
    with pytest.raises(InputError, match="question is missing"):
        reader.open(image).ask("")
    for name, value in (("max_new_tokens", 0), ("seed", 1 << 64), ("max_text_tokens", -1), ("budget", 0)):
        with pytest.raises(InputError, match=name):
            reader.ask(image, "What?", **{name: value})
    with pytest.raises(InputError, match="no option 'colour'"):
        reader.ask(image, "What?", colour="red")


# -- confidence ------------------------------------------------------------------------------------------------


def test_calibration_is_logistic_regression():
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    assert Calibration()([0.7, -3, 1, 1, 2]) == pytest.approx(sigmoid(0.7))
    assert Calibration((1, 2, 3, 4, 5), -5)([0.1, 0.2, 0.3, 0.4, 0]) == pytest.approx(
        sigmoid(0.1 + 0.4 + 0.9 + 1.6 - 5)
    )
    assert 0 < Calibration()([-1e9, 0, 0, 0, 0]) < Calibration()([1e9, 0, 0, 0, 0]) < 1
    with pytest.raises(ValueError, match="zip"):
        Calibration()([1.0])


def test_features_are_what_language_model_and_recogniser_were_sure_of():
    lines = [Line("Total: 12.50", (0, 0, 9, 9), 0.8), Line("Sum 12.50 EUR", (0, 20, 9, 29), 0.9)]
    mean, least, read, confidence, refusal = features_of("12.50", [0.9, 0.5], 0.2, lines)
    assert mean == pytest.approx(math.log(0.7 / 0.3)) and least == pytest.approx(0)
    assert read == 1 and confidence == pytest.approx(0.8) and refusal == pytest.approx(math.log(0.2 / 0.8))
    assert features_of("SUM 12.50 eur", [0.9], 0.5, lines)[2:] == [1, pytest.approx(0.8), 0]
    assert features_of("13", [0.9], 0.5, lines)[2:] == [-1, 0, 0]
    assert features_of("", [], 0.5, lines) == [0, 0, -1, 0, 0]
    assert all(map(math.isfinite, features_of("x", [1.0, 0.0], 0.0, [])))


def test_an_answer_is_as_sure_as_its_features_say(reader, image, monkeypatch):
    page = reader.open(image)
    [line] = [line for line in page.read(70) if line.text.startswith("Deliver")]
    saying(reader, monkeypatch, "Deliver", [0.9, 0.8])
    answer = page.ask("What shall I do?", budget=70)
    probs = ([0.9, 0.8] * 20)[: len(reader.language.encode("Deliver" + END))]
    assert answer.text == "Deliver" and answer.ended and line.text in [one.text for one in answer.lines]
    assert answer.features == pytest.approx(features_of("Deliver", probs, REFUSED, answer.lines), rel=1e-5)
    assert answer.features[2] == 1
    assert reader.calibration == Calibration(tuple(CALIBRATION["weights"]), CALIBRATION["bias"])
    assert answer.confidence == pytest.approx(reader.calibration(answer.features))


def test_what_is_not_on_the_page_has_the_opposite_confidence(reader, image, monkeypatch):
    saying(reader, monkeypatch, NOT_FOUND.capitalize(), [0.95])
    answer = reader.ask(image, "What shall I do?", budget=70)
    assert answer.text == NOT_FOUND.capitalize()
    assert answer.confidence == pytest.approx(1 - reader.calibration(answer.features))


# -- loading ---------------------------------------------------------------------------------------------------


def test_a_reader_knows_its_files_and_its_language_model_is_changed(reader, folders):
    weights, language = folders
    names = ("finder", "scout", "recognizer", "lora")
    assert reader.hashes == {name: digest(weights / f"{name}.safetensors") for name in names}
    plain = small_language(300)
    changed = reader.language.model.model.layers[0].mlp.up_proj.weight - plain.model.layers[0].mlp.up_proj.weight
    assert changed.abs().max() > 0.01
    assert torch.equal(reader.language.model.lm_head.weight, plain.lm_head.weight) and language.name == "language"


def test_a_folder_without_calibration_has_the_usual_one_and_another_language_model_warns(folders, tmp_path):
    weights = shutil.copytree(folders[0], tmp_path / "weights")
    lora = loud_lora()
    save(lora, weights / "lora.safetensors", {"sizes": lora.sizes, "fits": "another"})
    with pytest.raises(InputError, match="is damaged"):
        load_reader(weights, folders[1])
    write_hashes(weights)
    with pytest.warns(UserWarning, match="another language model"):
        assert load_reader(weights, folders[1]).calibration == Calibration()
    (weights / "lora.safetensors").unlink()
    with pytest.raises(InputError, match=r"no weights lora\.safetensors"):
        load_reader(weights, folders[1])


def test_bfloat16_answers_from_the_same_lines(folders, reader, image):
    half = load_reader(*folders, dtype=torch.bfloat16)
    answer, other = (one.ask(image, QUESTIONS[0], budget=70, max_new_tokens=2) for one in (reader, half))
    assert next(half.scout.parameters()).dtype == torch.bfloat16 and 0 <= other.confidence <= 1
    assert likeness([line.text for line in other.lines], [line.text for line in answer.lines]) > 0.85
