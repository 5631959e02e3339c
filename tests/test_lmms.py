"""The model of lmms-eval: a run of its own evaluator on a set made here, and what its requests are turned into."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from homunculus import InputError
from homunculus.adapters import load
from homunculus.eye import Eye
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
def model(lmms) -> Any:
    return ready(lmms.Homunculus(budget=128, device="cpu", batch_size=2))


def ready(model: Any) -> Any:
    model.task_dict = {"pages": {"test": [{}]}}
    return model


def request(text: str, *visuals: Any, **wishes: Any) -> Any:
    """A request as lmms-eval makes it of a document."""
    return SimpleNamespace(args=(text, wishes, lambda doc: list(visuals), 0, "pages", "test"))


@pytest.mark.timeout(240)
def test_the_evaluator_runs_the_reader_on_a_local_task(card, tmp_path):
    card.save(tmp_path / "card.png")
    rows = [
        ("What is the total?", ["926.52"], INVOICE, tmp_path / "card.png"),
        ("What is the date?", ["14 March 2026"], tmp_path / "card.png", INVOICE),
        ("What is the customer number?", ["something else"], INVOICE),  # so a third is wrong
    ]
    lines = [
        {"question": question, "answers": answers, "images": list(map(str, paths))}
        for question, answers, *paths in rows
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "pages.yaml").write_text(TASK.replace("QUESTIONS", str(tmp_path / "questions.jsonl")))
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "OMP_NUM_THREADS": "1"}
    way = "budget=273,allocator=foveated,relevance=query"
    command = [sys.executable, "-m", "lmms_eval", "--model", "homunculus", "--model_args", way, "--tasks", "pages"]
    command += ["--include_path", tmp_path, "--output_path", tmp_path / "out", "--log_samples"]
    command += ["--batch_size", "2", "--device", "cpu"]
    run = subprocess.run(command, cwd=tmp_path, env=os.environ | offline, capture_output=True, text=True, check=False)
    written = [*(tmp_path / "out").rglob("*results.json")]
    assert run.returncode == 0 and len(written) == 1, run.stdout[-3000:] + run.stderr[-3000:]
    assert run.stdout.count("the reader looks at the first of them") == 1

    told = json.loads(written[0].read_text())
    scores = told["results"]["pages"]
    assert scores["anls,none"] == pytest.approx(2 / 3) and scores["exact_match,none"] == pytest.approx(2 / 3)
    assert told["n-samples"]["pages"] == {"original": 3, "effective": 3}
    assert told["config"]["model"] == "homunculus" and told["config"]["model_args"] == way
    assert told["config"]["model_backend"] == "homunculus.eval.lmms.Homunculus (simple)"
    samples = [json.loads(line) for line in next((tmp_path / "out").rglob("*.jsonl")).read_text().splitlines()]
    said = [sample["filtered_resps"] for sample in sorted(samples, key=lambda sample: sample["doc_id"])]
    assert said == ["926.52", "14 March 2026", "K-2209"]


def test_a_page_is_taken_in_once_and_answers_come_in_order(model, lmms, card, monkeypatch):
    taken: list[tuple[int, ...]] = []
    scene = Eye.scene
    monkeypatch.setattr(Eye, "scene", lambda eye, pixels: taken.append(tuple(pixels.shape)) or scene(eye, pixels))
    model.answer.scenes.clear()
    page = Image.open(INVOICE).crop((620, 220, 1240, 480))
    asked = [
        request("<image>\nWhat is the customer number?", page, max_new_tokens=24),
        request("What is the name?", card, max_new_tokens=24),
        request("What is the invoice number?", page.copy(), max_new_tokens=24),  # the same pixels, not the same object
        request("What is the invoice number?", page, until="-", max_new_tokens=24),
        request("What is the invoice number?", page, max_new_tokens=1),
    ]
    customer, name, number, cut, short = model.generate_until(asked)
    assert (customer, name, number, cut) == ("K-2209", "Ada Kern", "2026-0417", "2026")
    assert short and number.startswith(short) and len(short) < len(number)
    assert taken == [(3, page.height, page.width), (3, card.height, card.width)]
    assert model.answer.reader.ask(card, "What is the name?", budget=128).text == name

    monkeypatch.setattr(lmms, "PAGES", 1)
    taken.clear()
    kept = [model.answer.scene(image) for image in (page, card, page)]
    assert len(taken) == 2 and kept[0] is not kept[2] and [*model.answer.scenes.values()] == [kept[2]]


def test_answers_by_lot_differ_from_one_to_the_next(model):
    torch.manual_seed(0)
    wild = request("What is the name?", Image.new("RGB", (96, 64)), max_new_tokens=3, temperature=4.0, do_sample=True)
    first, _, third = model.generate_until([wild] * 3)  # the third is in a batch of its own
    assert first != third


@pytest.mark.parametrize(
    ("wishes", "most", "temperature", "until"),
    [
        ({}, 64, 0.0, ()),
        ({"max_new_tokens": 7, "until": "\n", "temperature": 0}, 7, 0.0, ("\n",)),
        ({"until": ["\n\n", "", "."], "do_sample": False, "temperature": 0.7}, 64, 0.0, ("\n\n", ".")),
        ({"until": None, "do_sample": True}, 64, 1.0, ()),
        ({"temperature": 0.5, "do_sample": None}, 64, 0.5, ()),
        ({"temperature": None, "do_sample": True}, 64, 0.0, ()),
    ],
)
def test_what_tasks_ask_for(lmms, wishes, most, temperature, until):
    assert lmms.Manner.of(wishes) == lmms.Manner(most, temperature, until)


def test_an_answer_ends_at_the_first_of_its_ends(lmms):
    manner = lmms.Manner(until=("\n", "stop", "."))
    assert manner.cut("one stop two.\nthree") == "one" and manner.cut(" all of it ") == "all of it"


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
    monkeypatch.setattr(model, "told", set())
    wishes = {"max_new_tokens": 2, "num_beams": 4, "top_p": None}
    model.generate_until([request("Name?", small, small, **wishes), request("Date?", small, small, **wishes)])
    assert len(said) == 2 and "num_beams=4" in said[0] and "several images" in said[1]


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda model, lmms: model.loglikelihood([]), "no loglikelihood"),
        (lambda model, lmms: model.generate_until_multi_round([]), "no generate_until_multi_round"),
        (lambda model, lmms: model.generate_until([request("What is it?")]), "document 0 of pages has no image"),
        (lambda model, lmms: model.generate_until([request("<image> ", "page.png")]), "has no question"),
        (lambda model, lmms: model.generate_until([request("Total?", "x.png", max_new_tokens=0)]), "max_new_tokens"),
        (lambda model, lmms: lmms.Reading(model.answer.reader, where="before"), "add model=NAME"),
        (lambda model, lmms: lmms.Reading(model.answer.reader, colour="red"), "knows no 'colour'"),
        (lambda model, lmms: lmms.Reading(model.answer.reader, budget=1.5), "budget must be a whole number"),
        (lambda model, lmms: lmms.Homunculus(model="a", weights="b"), "give one"),
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
    alone = [vlm.ask(image, [text], most=6, where="before", budget=60)[0].text for text, image in asked]
    assert said == alone and all(alone)
    shown, given = [], wrapped.answer.vlm.given
    monkeypatch.setattr(wrapped.answer.vlm, "given", lambda seen: shown.append(seen) or given(seen))
    wrapped.generate_until([request("Which is older?", card, page, max_new_tokens=2)])
    assert len(shown[0].views) == 2 and not wrapped.told  # it looks at both
    wrapped.clean()
    assert not hasattr(wrapped, "answer")
