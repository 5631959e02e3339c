"""Lessons for the language model, and the task that learns from them."""

import gzip
import itertools
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from homunculus.reader.language import Language, load_language
from homunculus.reader.lines import Line
from homunculus.reader.lora import Lora, sizes_of
from homunculus.reader.prompt import END, NOT_FOUND
from homunculus.train.questions import augment
from homunculus.train.questions.auto_questions import auto_questions
from homunculus.train.questions.lessons import ANSWERS, LENGTHS, Lessons, LessonSettings, val_batches
from homunculus.train.questions.locate import holds, locate
from homunculus.train.questions.pages import load_set, true_lines
from homunculus.train.questions.sample import Sample
from homunculus.train.scans.folders import is_val
from homunculus.train.tasks.answer import AnswerTask
from speaking import tiny_language

DATA = Path(os.environ.get("HOMUNCULUS_DATA", "data"))
NAMES = ("Ada Kern", "Eva Lenz", "Jon Baum", "Max Vogt", "Ida Horn")


def row_of(text: str, x: float, y: float) -> dict:
    return {"text": text, "box": [x, y, x + 8 * len(text), y + 14]}


def write_set(root: Path, name: str, pages: int = 36) -> None:
    """A set in which every page has an invoice number, a customer and a field of its own."""
    folder, rng = root / name / "train", random.Random(name)
    folder.mkdir(parents=True)
    words, questions = [], []
    for n in range(pages):
        image, number, customer = f"images/{name}{n}.webp", str(rng.randint(10_000, 99_999)), rng.choice(NAMES)
        field = f"zeta{chr(97 + n % 26)}{n}"
        rows = [row_of(f"{name} page", 40, 20), row_of("Invoice number:", 40, 60), row_of(number, 300, 61)]
        rows += [row_of("Customer:", 40, 90), row_of(customer, 300, 90), row_of(f"{field}: blue {n}", 40, 120)]
        words.append({"image": image, "words": rows})
        questions.append({"image": image, "question": "What is the invoice number?", "answers": [number]})
        questions.append({"image": image, "question": "Who is the customer?", "answers": [customer.lower(), customer]})
        questions.append({"image": image, "question": f"What is the {field} of alpha{n}?", "answers": [f"blue {n}"]})
    (folder / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in words))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))


@pytest.fixture(scope="module")
def language(tmp_path_factory) -> Language:
    return load_language(tiny_language(tmp_path_factory.mktemp("language")))


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> LessonSettings:
    root = tmp_path_factory.mktemp("data")
    write_set(root, "docvqa")
    write_set(root, "docvqa_more")
    return LessonSettings(str(root), ("docvqa", "docvqa_more"), tokens_per_batch=3072)


@pytest.fixture(scope="module")
def lessons(settings, language) -> Lessons:
    return Lessons(settings, language.tokenizer)


@pytest.fixture(scope="module")
def drawn(lessons):
    return list(itertools.islice(lessons.lessons(random.Random(3)), 400))


def test_batches_come_in_few_shapes_and_answers_line_up(lessons, language):
    end = language.tokenizer.token_to_id(END)
    for ids, at, answer in itertools.islice(lessons, 12):
        rows, length = ids.shape
        assert length in LENGTHS and rows == 3072 // length and at.shape == answer.shape
        assert at.shape == (rows, at.shape[1]) and at.shape[1] in ANSWERS and at.max() < length
        known = answer >= 0
        assert known.any(1).all() and (answer[known] == ids.gather(1, (at + 1).clamp(max=length - 1))[known]).all()
        assert (answer.gather(1, known.sum(1, keepdim=True) - 1) == end).all()
        text = language.tokenizer.decode(ids[0, : at[0, 0] + 1].tolist(), skip_special_tokens=False)
        assert text.endswith("assistant\n")


def test_the_same_seed_gives_the_same_batches_and_workers_differ(lessons, settings, language):
    first, again = (list(itertools.islice(Lessons(settings, language.tokenizer), 3)) for _ in range(2))
    assert all(torch.equal(a, b) for x, y in zip(first, again, strict=True) for a, b in zip(x, y, strict=True))
    loaded = list(itertools.islice(DataLoader(lessons, batch_size=None, num_workers=2), 4))
    assert all(torch.equal(a, b) for a, b in zip(loaded[0], first[0], strict=True))
    assert loaded[1][0].shape != first[0][0].shape or not torch.equal(loaded[1][0], first[0][0])
    later = next(iter(Lessons(settings, language.tokenizer, start=100)))
    assert later[0].shape != first[0][0].shape or not torch.equal(later[0], first[0][0])


def test_validation_pages_are_validated_on_and_never_trained_on(lessons, settings, language):
    names = {page.name.split("/", 2)[2] for page, _ in lessons.composer.sources.auto}
    assert names and not any(map(is_val, names))
    kept = {page.name.split("/", 2)[2] for page in load_set(Path(settings.data), "docvqa", {}, val=True)}
    assert kept and all(map(is_val, kept)) and not kept & names
    batches = val_batches(settings, language.tokenizer, 50)
    asked = sum(int((answer[:, 0] >= 0).sum()) for _, _, answer in batches)
    pages = [page for name in settings.sets for page in load_set(Path(settings.data), name, {}, val=True)]
    assert asked == sum(len(page.questions) for page in pages)
    assert len(val_batches(settings, language.tokenizer, 1)) == 1


def test_about_a_tenth_of_the_lessons_is_unanswerable_and_says_so(drawn):
    absent = [lesson for lesson in drawn if lesson.sample.kind == "unanswerable"]
    assert 0.05 < len(absent) / len(drawn) < 0.2
    assert all(lesson.sample.answer == NOT_FOUND for lesson in absent)
    shared = {"what is the invoice number?", "who is the customer?"}  # every page answers these
    assert not any(lesson.sample.question.lower() in shared for lesson in absent if lesson.source == "docvqa")


def test_extractive_answers_are_nearly_always_legible_in_the_lesson(drawn):
    human = [lesson for lesson in drawn if lesson.source == "docvqa" and lesson.sample.kind == "human"]
    seen = [any(holds(one.sample.answer, line.text) for line in one.sample.lines) for one in human]
    assert len(human) > 60 and sum(seen) / len(seen) > 0.8
    sources = {lesson.source for lesson in drawn}
    assert sources == {"docvqa", "auto", "drawn"}


PAGE = Sample(
    "What is the code 35 of Ada Kern?",
    "AB 3510",
    tuple(
        Line(text, (40, 30 * n, 40 + 8 * len(text), 30 * n + 14))
        for n, text in enumerate(("Code 35", "Ada Kern: AB 3510", "2024", "5 3 1", "end 12", "Rosenau"))
    ),
    (1,),
)


def test_digits_change_alike_in_page_question_and_answer():
    for seed in range(20):
        changed = augment.permute_digits(PAGE, random.Random(seed))
        texts = [PAGE.question, PAGE.answer, *(line.text for line in PAGE.lines)]
        others = [changed.question, changed.answer, *(line.text for line in changed.lines)]
        pairs = {(a, b) for one, two in zip(texts, others, strict=True) for a, b in zip(one, two, strict=True)}
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)  # one to one
        assert all(a == b for a, b in pairs if not a.isdigit()) and changed.answer in changed.lines[1].text
    most = replace(PAGE, question="Which is the highest code?")
    assert augment.permute_digits(most, random.Random(0)) == most


def test_another_answer_of_the_same_shape_stands_wherever_the_first_did():
    pool = augment.by_shape(["AB 3510", "XY 77", "QR 1234", "Ada Kern"])
    found = {augment.swap_answer(PAGE, pool, random.Random(seed)).answer for seed in range(30)}
    assert found == {"AB 3510", "QR 1234", "XY 77"}
    for seed in range(30):
        swapped = augment.swap_answer(PAGE, pool, random.Random(seed))
        assert swapped.lines[1].text == f"Ada Kern: {swapped.answer}" and swapped.question == PAGE.question


def test_misreadings_leave_the_answer_legible_and_exchanged_bands_keep_all_lines():
    for seed in range(40):
        wrong = augment.misread(PAGE, random.Random(seed))
        assert len(wrong.lines) == len(PAGE.lines) and all(line.text for line in wrong.lines)
        assert "3" in wrong.lines[1].text and wrong.answer == PAGE.answer
        moved = augment.exchange_bands(PAGE, random.Random(seed))
        assert [line.text for line in moved.lines] == [line.text for line in PAGE.lines]
        assert len({line.box[1] for line in moved.lines}) == len(PAGE.lines)
    assert any(augment.misread(PAGE, random.Random(seed)) != PAGE for seed in range(40))


def test_answers_are_found_in_one_line_in_several_and_misread():
    lines = [
        Line(text, (0, 20 * n, 200, 20 * n + 14)) for n, text in enumerate(("12", "ACME Trading", "and Sons Ltd", "2"))
    ]
    assert locate("acme trading", (), lines) == (1,)
    assert locate("Trading and Sons", (), lines) == (1, 2)
    assert locate("2", (), lines) == (3,)  # not within 12
    assert locate("ACNE Trading", (), lines) == (1,)
    assert locate("Rosenau", (), lines) == ()
    twice = [*lines, Line("ACME Trading", (0, 200, 200, 214))]
    assert locate("ACME Trading", [(0, 200, 200, 214)], twice) == (4,)


def test_single_words_are_joined_to_lines():
    words = [row_of(text, x, 20) for text, x in (("Date", 20), ("of", 58), ("issue:", 80), ("May", 300), ("3", 330))]
    assert [line.text for line in true_lines(words)] == ["Date of issue:", "May 3"]


def test_automatic_questions_ask_for_values_and_cells():
    rows = [("Region", "1986", "1987"), ("North", "12.5", "13.1"), ("South", "9.4", "8.8")]
    lines = [
        Line(text, (40 + 200 * x, 100 + 30 * y, 40 + 200 * x + 9 * len(text), 114 + 30 * y))
        for y, row in enumerate(rows)
        for x, text in enumerate(row)
    ]
    lines += [Line("Prepared by: Ada Kern", (40, 300, 220, 314)), Line("Date:", (40, 340, 80, 354))]
    lines.append(Line("3 May 1988", (120, 340, 200, 354)))
    found = {(one.kind, *one.text.split("\t")): one.answer for one in auto_questions(lines)}
    assert found["cell", "South", "1987"] == "8.8" and found["cell", "North", "1986"] == "12.5"
    assert found["key", "Prepared by"] == "Ada Kern" and found["key", "Date"] == "3 May 1988"


def test_transcripts_stand_for_the_true_lines_in_part_of_the_lessons(settings, language, tmp_path):
    path, rows = tmp_path / "read.jsonl.gz", []
    for page in load_set(Path(settings.data), "docvqa", {}):
        read = [{"text": f"~{line.text}", "box": line.box, "confidence": 0.7} for line in page.versions[0]]
        rows.append({"image": page.name, "shown": "finest", "lines": read})
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    mix = {"docvqa": 1.0}
    made = Lessons(replace(settings, sets=("docvqa",), transcripts=str(path), mix=mix), language.tokenizer)
    found = [one.sample.misread for one in itertools.islice(made.lessons(random.Random(0)), 200)]
    assert 0.45 < sum(found) / len(found) < 0.75


def test_answers_are_learned_and_only_the_lora_is_saved(lessons, tmp_path):
    language = load_language(tiny_language(tmp_path))
    torch.manual_seed(0)
    task = AnswerTask(Lora(rank=8, **sizes_of(language.model)), language)
    assert set(task.state_dict()) == {f"model.{name}" for name in task.model.state_dict()}
    assert task.header["sizes"] == task.model.sizes
    batch = next(iter(lessons))
    batch = [part[:4] for part in batch]
    optimizer = torch.optim.AdamW(task.parameters(), 1e-2)
    losses = []
    for _ in range(25):
        found = task(*batch)
        optimizer.zero_grad()
        found["answer"].backward()
        optimizer.step()
        losses.append(found["answer"].item())
    assert losses[-1] < 0.9 * losses[0] and 0 <= found["exact"] <= 1


@torch.no_grad()
def test_the_task_sees_what_the_model_itself_would(lessons, tmp_path):
    language = load_language(tiny_language(tmp_path))
    ids, at, _ = (part[:2] for part in next(iter(lessons)))
    expected = language.model(ids).logits
    task = AnswerTask(Lora(rank=4, **sizes_of(language.model)), language)
    found = task.logits(ids, at)
    torch.testing.assert_close(found, expected.gather(1, at[..., None].expand_as(found)), atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not (DATA / "docvqa" / "train").is_dir(), reason="no data folder")
def test_most_answers_of_real_pages_are_found_among_their_lines():
    for name, least in (("docvqa", 0.9), ("funsd", 0.95), ("sroie", 0.97)):
        asked = [one for page in load_set(DATA, name, {}) for one in page.questions]
        assert sum(bool(one.holders[0]) or one.kind == "yesno" for one in asked) / len(asked) > least
