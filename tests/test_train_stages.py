"""Runs of the reader's stages from a plan to shipped files, and transcripts."""

import gzip
import json
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from PIL import Image

from homunculus import InputError
from homunculus.reader import load_finder, load_reader, load_recognizer
from homunculus.reader.weights import SHIPPED, about
from homunculus.train.config import Canvas, DataSources, Recipe, read_plan
from homunculus.train.questions.pages import load_transcripts
from homunculus.train.tasks import finder, line_source, recognizer
from homunculus.train.tasks.finder import FinderTask
from homunculus.train.tasks.recognizer import RecognizerTask
from homunculus.train.tasks.registry import TASKS
from homunculus.train.tasks.text_source import TextSource, settings_of
from homunculus.train.trainer.plot import read_log
from homunculus.train.trainer.trainer import Trainer
from lined import letter, likeness
from ocr_pages import FIGURES, FINDER, HEIGHT, RECOGNIZER, STAGES, WIDTH, plan_of, write_pages
from speaking import tiny_language
from training import CPU


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_pages(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def language(tmp_path_factory) -> Path:
    return tiny_language(tmp_path_factory.mktemp("language"))


@pytest.fixture
def few_val(monkeypatch) -> None:
    """One batch of validation pages, smaller crops."""
    monkeypatch.setattr(line_source, "VAL_BATCHES", 1)
    monkeypatch.setattr("homunculus.train.tasks.text_source.VAL_BATCHES", 1)
    monkeypatch.setattr(finder, "SIDE", 320)


def test_all_stages_run_go_on_and_are_shipped(homunculus, few_val, folder, language, tmp_path):
    run, weights = tmp_path / "run", tmp_path / "weights"
    for steps in (1, 3):
        plan = plan_of(tmp_path, folder, language, steps)
        code, out, err = homunculus("train", "reader", "--config", plan, "--out", run, "--device", "cpu")
        assert code == 0 and err == "" and "answer {" in out
    for stage in STAGES:
        rows = read_log(run / stage / "log.jsonl")
        steps = [row["step"] for row in rows if "lr" in row]
        assert steps == [1, 2, 3] and all(FIGURES[stage] <= row.keys() for row in rows if "lr" in row)
        val = [row for row in rows if "lr" not in row]
        assert [row["step"] for row in val] == [1, 2, 3]
        assert {f"val_{name}" for name in FIGURES[stage]} <= val[0].keys()
        assert (run / stage / "best.safetensors").is_file()
    weights.mkdir()
    shutil.copy(SHIPPED / "scout.safetensors", weights)
    code, out, _ = homunculus("train", "ship", run, weights)
    assert code == 0 and {line.split(":")[0] for line in out.splitlines()} == {"finder", "recognizer", "lora"}
    assert about(weights / "lora.safetensors")["step"] == 3
    found = load_finder(weights).find(letter()[0])
    assert found.lines.shape[1] == 5 and load_recognizer(weights).sizes == RECOGNIZER
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the LoRA is for this language model
        reader = load_reader(weights, language, dtype=torch.float32)
    answer = reader.ask(Image.open(folder / "images" / "docvqa0.png"), "What?", budget=20, max_new_tokens=2)
    assert 0 <= answer.confidence <= 1 and answer.visual_tokens == 20


@pytest.mark.parametrize("stage", ["finder", "recognizer"])
def test_a_stage_that_was_stopped_has_all_that_it_had(stage, few_val, folder, language, tmp_path):
    plan = read_plan(plan_of(tmp_path, folder, language, 3), log_every=1, val_every=100)
    recipe, out = plan.recipes[stage], tmp_path / "out"
    source = TASKS[stage].source(plan.sources, CPU)
    first = Trainer(stage, recipe, source, out)
    first.run(0)
    assert first.step == 1
    second = Trainer(stage, recipe, source, out)
    assert second.step == 1 and second.task.rng.getstate() == first.task.rng.getstate()
    for name, value in first.model.state_dict().items():
        assert torch.equal(second.model.state_dict()[name], value)
        assert torch.equal(second.average[name], first.average[name])
    second.run(0)
    assert second.step == 2 and [row["step"] for row in read_log(out / "log.jsonl")] == [1, 2]
    further = Trainer(stage, recipe, source, tmp_path / "further", start=out)
    assert further.step == 0
    for name, value in second.average.items():
        torch.testing.assert_close(further.model.state_dict()[name], value)


def test_lessons_without_real_pages_are_drawn(few_val, language):
    torch.manual_seed(0)
    recipe = Recipe(steps=1, batch=1, canvases=[Canvas(192, 256, 2)], real=0.9)
    pages = line_source.LineSource(DataSources(), CPU)
    assert list(pages.val_batches(FinderTask(finder.LineFinder(**FINDER)), recipe)) == []
    task = RecognizerTask(recognizer.Recognizer(**RECOGNIZER))
    lessons = pages.train_batches(task, recipe, 0, line_source.Rank(), 0)
    for _ in range(line_source.USES + 1):
        (strips, widths, codes, lengths, ends), count = next(lessons)
        assert len(strips) == len(widths) == len(codes) == len(lengths) == count and torch.equal(widths, ends)
        assert strips.shape[3] >= int(widths.max()) + 32 and (lengths > 0).all() and strips.float().std() > 0.01


def test_settings_of_lessons_come_from_the_plan(folder, language, tmp_path):
    recipe = Recipe(steps=1, batch=2, max_text_tokens=[64], order="page-first", seed=4)
    settings = settings_of(DataSources(scans=[str(folder), "elsewhere/train"], transcripts="t"), recipe)
    assert (settings.data, settings.sets) == (str(folder.parent.parent), ("docvqa",)) and settings.transcripts == "t"
    assert (settings.tokens_per_batch, settings.max_tokens, settings.order) == (2048, (64,), "page-first")
    with pytest.raises(InputError, match="must lie in one folder"):
        settings_of(DataSources(scans=[str(folder), str(tmp_path / "sroie" / "train")]), recipe)
    lessons = TextSource(DataSources(language=str(language)), CPU)
    assert list(lessons.val_batches(None, recipe)) == []
    (ids, _, answer), count = next(lessons.train_batches(None, recipe, 0, line_source.Rank(), 0))
    assert len(ids) == len(answer) == count and ids.numel() <= 2048


@pytest.mark.parametrize("section", ["finder", "recognizer"])
def test_a_plan_without_canvases_is_wrong(homunculus, tmp_path, section):
    (tmp_path / "plan.toml").write_text(f"[{section}]\nsteps = 1\n")
    how = ("train", "reader", "--config", tmp_path / "plan.toml", "--out", tmp_path, "--device", "cpu")
    code, _, err = homunculus(*how)
    assert code == 2 and f"{section}.canvases must be given" in err
    code, _, err = homunculus(*how, "--stage", "align")
    assert code == 2 and "--stage must be one of finder, recognizer, vision, answer, photo, got 'align'" in err


def test_transcripts_are_what_finder_and_recogniser_read(homunculus, tmp_path):
    place = write_pages(tmp_path, count=2)
    with (place / "words.jsonl").open("a") as file:
        file.write(json.dumps({"image": "images/none.png", "words": [], "sheet": True}) + "\n")
    out = tmp_path / "new" / "read.jsonl.gz"
    code, said, err = homunculus("train", "transcripts", SHIPPED, "--data", place, "--out", out, "--device", "cpu")
    assert code == 0 and f"2 pages, in {out}" in said and err == ""
    with gzip.open(out, "rt") as file:
        rows = [json.loads(line) for line in file]
    assert [(row["image"], row["shown"]) for row in rows] == [
        (f"docvqa/train/images/docvqa{n}.png", shown) for n in range(2) for shown in ("finest", "coarsest")
    ]
    texts = [line["text"].lower() for line in rows[2]["lines"]]
    assert likeness(texts, ["field 1 of docvqa", "total 7", "invoice number:"]) > 0.7
    for row in rows:
        for line in row["lines"]:
            x0, y0, x1, y1 = line["box"]
            assert x0 < x1 <= WIDTH + 20 and 0 <= y0 < y1 <= HEIGHT and 0 < line["confidence"] <= 1 and line["text"]
    found = load_transcripts(out)
    assert found.keys() == {row["image"] for row in rows if row["lines"]}


def test_transcripts_of_no_data_folder_are_one_sentence(homunculus, tmp_path):
    how = ("train", "transcripts", SHIPPED, "--data", tmp_path, "--out", tmp_path / "read.jsonl.gz", "--device", "cpu")
    code, _, err = homunculus(*how)
    assert code == 2 and f"{tmp_path} is no data folder" in err and err.count("\n") == 1
    assert not (tmp_path / "read.jsonl.gz").exists()
