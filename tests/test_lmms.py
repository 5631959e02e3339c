"""The model of lmms-eval: a run of its own evaluator on a set made here, and what its requests are turned into."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from homunculus import InputError
from homunculus.adapters import load
from homunculus.reader.session import page_cache
from readers import tiny_reader
from vlms import tiny

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("lmms_eval") is None,
    reason="lmms-eval is not installed; `make setup` installs it, and little of what it depends on",
)
INVOICE = Path(__file__).parents[1] / "examples" / "invoice.png"
FUNCTIONS = """
from PIL import Image

def visuals(doc):
    return [Image.open(path).convert("RGB") for path in doc["images"]]

def text(doc, prompts):
    return prompts["pre_prompt"] + doc["question"] + prompts["post_prompt"]
"""
TASK = r"""
task: pages
dataset_path: json
dataset_kwargs: {data_files: {test: QUESTIONS}}
test_split: test
output_type: generate_until
doc_to_visual: !function functions.visuals
doc_to_text: !function functions.text
doc_to_target: answers
generation_kwargs: {max_new_tokens: 32, until: ["\n"], temperature: 0, do_sample: false}
lmms_eval_specific_kwargs:
  default: {pre_prompt: "", post_prompt: "\nAnswer the question using a single word or phrase."}
metric_list:
  - {metric: anls, aggregation: mean, higher_is_better: true}
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""


@pytest.fixture(scope="module")
def card() -> Image.Image:
    image = Image.new("RGB", (640, 320), "white")
    for row, line in enumerate(("Name: Ada Kern", "Date: 14 March 2026")):
        ImageDraw.Draw(image).text((60, 80 + 80 * row), line, "black", ImageFont.load_default(32))
    return image


@pytest.fixture(scope="module")
def lmms() -> Any:
    return importlib.import_module("homunculus.eval.lmms")


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> dict[str, str]:
    """Weights and language model of a small reader, as arguments of the model."""
    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return {"weights": str(weights), "language": str(language)}


@pytest.fixture(scope="module")
def model(lmms, own) -> Any:
    return ready(lmms.Homunculus(budget=128, device="cpu", batch_size=2, **own))


@pytest.fixture
def exact(model) -> Iterator[None]:
    """float32: in bfloat16, which some processors have, an answer depends on what else is in its batch."""
    language = model.answer.reader.language.model
    usual = language.dtype
    language.float()
    yield
    language.to(usual)


def ready(model: Any) -> Any:
    model.task_dict = {"pages": {"test": [{}]}}
    return model


def request(text: str, *visuals: Any, **kwargs: Any) -> Any:
    """A request as lmms-eval makes it of a document."""
    return SimpleNamespace(args=(text, kwargs, lambda doc: list(visuals), 0, "pages", "test"))


@pytest.mark.timeout(240)
def test_the_evaluator_runs_the_reader_on_a_local_task(model, own, card, page, tmp_path):
    card.save(tmp_path / "card.png")
    page.save(tmp_path / "page.png")
    asked = [
        ("What is the total?", INVOICE, tmp_path / "card.png"),
        ("What is the date?", tmp_path / "card.png", INVOICE),
        ("Which entry is the last?", tmp_path / "page.png"),
    ]
    how = {"max_new_tokens": 32, "until": ["\n"]}
    expected = model.generate_until([request(question, Image.open(paths[0]), **how) for question, *paths in asked])
    assert len(set(expected)) == 3 and all(expected)
    answers = [[expected[0]], [expected[1]], ["something else"]]  # so a third is wrong
    lines = [
        {"question": question, "answers": right, "images": list(map(str, paths))}
        for (question, *paths), right in zip(asked, answers, strict=True)
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "pages.yaml").write_text(TASK.replace("QUESTIONS", str(tmp_path / "questions.jsonl")))
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "OMP_NUM_THREADS": "1"}
    way = "budget=128,allocator=foveated,relevance=query," + ",".join(f"{key}={path}" for key, path in own.items())
    command = [sys.executable, "-m", "lmms_eval", "--model", "homunculus", "--model_args", way, "--tasks", "pages"]
    command += ["--include_path", tmp_path, "--output_path", tmp_path / "out", "--log_samples"]
    command += ["--batch_size", "2", "--device", "cpu"]
    run = subprocess.run(command, cwd=tmp_path, env=os.environ | offline, capture_output=True, text=True, check=False)
    written = [*(tmp_path / "out").rglob("*results.json")]
    assert run.returncode == 0 and len(written) == 1, run.stdout[-3000:] + run.stderr[-3000:]
    assert run.stdout.count("the reader looks at the first of them") == 1

    told = json.loads(written[0].read_text())
    assert told["results"]["pages"]["anls,none"] == pytest.approx(2 / 3)
    assert told["n-samples"]["pages"] == {"original": 3, "effective": 3}
    assert told["config"]["model"] == "homunculus" and told["config"]["model_args"] == way
    assert told["config"]["model_backend"] == "homunculus.eval.lmms.Homunculus (simple)"
    samples = [json.loads(line) for line in next((tmp_path / "out").rglob("*.jsonl")).read_text().splitlines()]
    said = [sample["filtered_resps"] for sample in sorted(samples, key=lambda sample: sample["doc_id"])]
    assert said == expected


@pytest.mark.usefixtures("exact")
def test_a_page_is_opened_once_and_answers_come_in_order(model, lmms, card, page, monkeypatch):
    reader, opened, first = model.answer.reader, [], model.answer.reader.open
    monkeypatch.setattr(reader, "open", lambda image: opened.append(tuple(image.shape)) or first(image))
    model.answer.pages.clear()
    questions = ["Which entry is the first?", "What is the name?", "What is the total?", "Which entry is the last?"]
    invoice = Image.open(INVOICE).convert("RGB")
    pages = [page, card, invoice, page.copy()]  # the last has the same pixels and is not the same object
    config = {"max_new_tokens": 24}
    said = model.generate_until(
        [request(f"<image>\n{text}", image, **config) for text, image in zip(questions, pages, strict=True)]
    )
    assert opened == [(3, image.height, image.width) for image in pages[:3]]
    alone = [first(image).ask(text, budget=128, **config).text for text, image in zip(questions, pages, strict=True)]
    assert said == alone and len(set(said[:3])) == 3
    opened.clear()

    mark = said[2][len(said[2]) // 2]
    cut, short = model.generate_until(
        [request(questions[2], invoice, until=mark, **config), request(questions[2], invoice, max_new_tokens=1)]
    )
    assert cut == said[2].split(mark)[0].strip() and said[2].startswith(short) and len(short) < len(said[2])
    assert not opened

    monkeypatch.setattr(model.answer, "pages", page_cache(1))
    kept = [model.answer.page(image) for image in (page, card, page)]
    assert len(opened) == 3 and kept[0] is not kept[2] and [*model.answer.pages.values()] == [kept[2]]


def test_answers_by_lot_differ_from_one_to_the_next(model):
    torch.manual_seed(0)
    wild = request("What is the name?", Image.new("RGB", (96, 64)), max_new_tokens=3, temperature=4.0, do_sample=True)
    first, _, third = model.generate_until([wild] * 3)  # the third is in a batch of its own
    assert first != third


@pytest.mark.parametrize(
    ("kwargs", "max_new_tokens", "temperature", "until"),
    [
        ({}, 64, 0.0, ()),
        ({"max_new_tokens": 7, "until": "\n", "temperature": 0}, 7, 0.0, ("\n",)),
        ({"until": ["\n\n", "", "."], "do_sample": False, "temperature": 0.7}, 64, 0.0, ("\n\n", ".")),
        ({"until": None, "do_sample": True}, 64, 1.0, ()),
        ({"temperature": 0.5, "do_sample": None}, 64, 0.5, ()),
        ({"temperature": None, "do_sample": True}, 64, 0.0, ()),
    ],
)
def test_what_tasks_ask_for(lmms, kwargs, max_new_tokens, temperature, until):
    assert lmms.TaskGeneration.of(kwargs) == lmms.TaskGeneration(max_new_tokens, temperature, until)


def test_an_answer_ends_at_the_first_of_its_ends(lmms):
    config = lmms.TaskGeneration(until=("\n", "stop", "."))
    assert config.cut("one stop two.\nthree") == "one" and config.cut(" all of it ") == "all of it"


def test_the_reader_is_asked_without_the_words_that_tell_chat_models_how_to_answer(lmms):
    class Task:
        def __init__(self, prompts: dict[str, str] | None) -> None:
            self.lmms_eval_specific_kwargs = prompts

        def visual(self, doc: Any) -> list[Any]:
            return []

    task = Task({"pre_prompt": "Look. ", "post_prompt": "\nBe brief."})
    assert lmms.bare("Look. What is it?\nBe brief.", task.visual) == "What is it?"
    assert lmms.bare("What is it?", task.visual) == "What is it?" == lmms.bare("What is it?", lambda doc: [])
    assert lmms.bare("Look. Up?", Task(None).visual) == "Look. Up?"


def test_what_is_left_out_is_said_once(model, monkeypatch, lmms):
    said: list[str] = []
    small = Image.new("RGB", (96, 64))
    monkeypatch.setattr(lmms.logger, "warning", said.append)
    monkeypatch.setattr(model, "warned", set())
    kwargs = {"max_new_tokens": 2, "num_beams": 4, "top_p": None}
    model.generate_until([request("Name?", small, small, **kwargs), request("Date?", small, small, **kwargs)])
    assert len(said) == 2 and "num_beams=4" in said[0] and "several images" in said[1]


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda model, lmms: model.loglikelihood([]), "no loglikelihood"),
        (lambda model, lmms: model.generate_until_multi_round([]), "no generate_until_multi_round"),
        (lambda model, lmms: model.generate_until([request("What is it?")]), "document 0 of pages has no image"),
        (lambda model, lmms: model.generate_until([request("<image> ", "page.png")]), "has no question"),
        (lambda model, lmms: model.generate_until([request("Total?", "x.png", max_new_tokens=0)]), "max_new_tokens"),
        (lambda model, lmms: lmms.ReaderModel(model.answer.reader, where="before"), "add model=NAME"),
        (lambda model, lmms: lmms.ReaderModel(model.answer.reader, colour="red"), "knows no 'colour'"),
        (lambda model, lmms: lmms.ReaderModel(model.answer.reader, budget=1.5), "budget must be a whole number"),
        (lambda model, lmms: lmms.Homunculus(model="a", weights="b"), "weights=b is for the reader.* give one"),
        (lambda model, lmms: lmms.Homunculus(model="a", language="b"), "language=b is for the reader.* give one"),
        (lambda model, lmms: lmms.Homunculus(batch_size="many"), "batch_size must be a whole number"),
    ],
)
def test_what_is_wrong_is_named(model, lmms, do: Callable[[Any, Any], object], message):
    with pytest.raises(InputError, match=message):
        do(model, lmms)


def test_a_wrapped_model_answers_in_batches_as_it_does_alone(lmms, card, page, tmp_path, monkeypatch):
    tiny("llava", tmp_path)
    wrapped = ready(lmms.Homunculus(model=str(tmp_path), device="cpu", batch_size="auto", where="before", budget=60))
    asked = [("What is the name?", card), ("Which page of the ledger is this?", page)]
    said = wrapped.generate_until([request(*pair, max_new_tokens=6) for pair in asked])
    vlm = load(tmp_path)
    alone = [vlm.ask(image, [text], max_new_tokens=6, where="before", budget=60)[0].text for text, image in asked]
    assert said == alone and all(alone)
    shown, given = [], wrapped.answer.vlm.to_inputs
    monkeypatch.setattr(wrapped.answer.vlm, "to_inputs", lambda seen: shown.append(seen) or given(seen))
    wrapped.generate_until([request("Which is older?", card, page, max_new_tokens=2)])
    assert len(shown[0].views) == 2 and not wrapped.warned  # it looks at both
    wrapped.clean()
    assert not hasattr(wrapped, "answer")
