"""Scanned pages: boxes and questions go where the page goes, and pages val back stay apart."""

import json
import random
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from homunculus.errors import InputError
from homunculus.reader.letters import decode
from homunculus.train.config import DataSources, read_plan
from homunculus.train.scans.folders import VAL_ONE_IN, is_val
from homunculus.train.scans.scans import Scans
from homunculus.train.tasks.page_source import PageSource
from homunculus.train.trainer.plot import read_log
from homunculus.train.trainer.trainer import Trainer
from training import CPU, SMOKE

BOXES = [(60, 60, 140, 90), (180, 200, 280, 230), (40, 270, 120, 296)]


@pytest.fixture
def scanned(tmp_path) -> Path:
    """A folder of four pages, one of them kept for validation, with three dark boxes each that are taken for words."""
    names = [f"images/{i}.webp" for i in range(300)]
    val, free = ([n for n in names if (zlib.crc32(n.encode()) % VAL_ONE_IN == 0) == held] for held in (True, False))
    (tmp_path / "images").mkdir()
    words, questions = [], []
    for name in (val[0], *free[:3]):
        image = Image.new("RGB", (320, 320), (245, 245, 245))
        for box in BOXES:
            ImageDraw.Draw(image).rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=(10, 10, 10))
        image.save(tmp_path / name, lossless=True)
        texts = [{"text": text, "box": box} for text, box in zip(("total", "42.00", "Thanks"), BOXES, strict=True)]
        words.append({"image": name, "words": texts})
        questions.append({"image": name, "question": "What is the total?", "answer_boxes": [BOXES[1]]})
    for file, rows in (("words.jsonl", words), ("questions.jsonl", questions)):
        (tmp_path / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_boxes_follow_the_page_to_where_it_is_placed(scanned):
    scans = Scans([scanned], CPU)
    for seed, size in enumerate(((320, 320), (384, 352))):
        placed = scans.draft(6, size, random.Random(seed))
        torch.manual_seed(seed)
        sheets = scans.render(placed, strength=0)
        labels = sheets.labels
        assert sheets.pixels.shape == (6, 3, *size) and sheets.pixels.dtype == torch.uint8
        seen = 0
        for page in range(6):
            image = sheets.pixels[page, 0].float()
            image = 255 - image if image.median() < 128 else image  # a few are shown as negatives
            boxes = torch.cat((labels.answers[page, :, 0], labels.query_free[page]))
            for x0, y0, x1, y1 in boxes[(boxes[:, 2:] > boxes[:, :2]).all(1)].tolist():
                dark = image[int(y0) + 4 : int(y1) - 3, int(x0) + 4 : int(x1) - 3]
                assert dark.max() < 60
                above, left = image[max(0, int(y0) - 7), int(x0) + 4 : int(x1) - 3], image[int(y0), max(0, int(x0) - 7)]
                assert above.min() > 200 and left > 200
                seen += 1
        assert seen > 20
        letters = labels.letters
        assert len(letters) == 6 * len("total42.00Thanks") and labels.dense.all()
        for page, _, x, y, _ in letters.tolist():
            if 0 <= x < size[1] and 0 <= y < size[0]:
                value = sheets.pixels[int(page), 0, int(y), int(x)].float()
                assert abs(value - sheets.pixels[int(page), 0].float().median()) > 150


@pytest.fixture
def long_page(tmp_path) -> Path:
    """A folder of pages with ten dark boxes below each other, of different lengths, one of them an answer."""
    (tmp_path / "images").mkdir()
    words, questions = [], []
    for i in range(8):
        image = Image.new("RGB", (256, 512), (245, 245, 245))
        texts = []
        for row in range(10):
            box = (20, 12 + 50 * row, 60 + 18 * row, 36 + 50 * row)
            ImageDraw.Draw(image).rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=(10, 10, 10))
            texts.append({"text": f"Word{row}", "box": box})
        image.save(tmp_path / "images" / f"{i}.webp", lossless=True)
        words.append({"image": f"images/{i}.webp", "words": texts})
        for asked in ("What is it?", "What is at the top of the page?"):
            questions.append({"image": f"images/{i}.webp", "question": asked, "answer_boxes": [texts[7]["box"]]})
    for file, rows in (("words.jsonl", words), ("questions.jsonl", questions)):
        (tmp_path / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_where_bands_change_places_everything_goes_with_them(long_page):
    scans = Scans([long_page], CPU)
    scans.shuffled = 1.0
    placed = scans.draft(8, (544, 288), random.Random(3), questions=8)
    assert sum(order != sorted(order) for order in placed.bands) >= 3
    assert all(sorted(order)[0][0] == 0 and sum(e - s for s, e in order) == 512 for order in placed.bands)
    torch.manual_seed(0)
    sheets = scans.render(placed, strength=0)
    for page, order in enumerate(placed.bands):
        image = sheets.pixels[page, 0].float()
        image = 255 - image if image.median() < 128 else image
        boxes = sheets.labels.answers[page, :, 0]
        boxes = boxes[(boxes[:, 2:] > boxes[:, :2]).all(1)]
        assert len(boxes) == 8
        for x0, y0, x1, y1 in boxes.tolist():
            assert image[int(y0) + 4 : int(y1) - 3, int(x0) + 4 : int(x1) - 3].max() < 60
            assert image[int(y0) + 8, min(287, int(x1) + 7)] > 200  # as long as the line that it was
        for _, _, x, y, _ in sheets.labels.letters[sheets.labels.letters[:, 0] == page].tolist():
            assert image[int(y), int(x)] < 60
        asked = {decode(row) for row in sheets.labels.questions[page].tolist()}
        assert order == sorted(order) or "What is at the top of the page?" not in asked
    val = Scans([long_page], CPU, val=True) if any(is_val(f"images/{i}.webp") for i in range(8)) else None
    assert val is None or all(len(order) == 1 for order in val.draft(4, (544, 288), random.Random(0)).bands)


def test_questions_and_searches_of_scans_know_their_answers(scanned):
    labels = Scans([scanned], CPU).draft(4, (384, 384), random.Random(1)).labels
    for page in range(4):
        codes = labels.letters[labels.letters[:, 0] == page, 1].long()
        assert decode(codes.tolist()) == "total42.00Thanks"
    asked = {decode(row) for row in labels.questions.flatten(0, 1).tolist()} - {""}
    assert "What is the total?" in asked and any("Thanks" in question for question in asked)


def test_a_page_is_asked_as_many_questions_as_there_is_room_for(tmp_path):
    (tmp_path / "images").mkdir()
    Image.new("RGB", (320, 320), "white").save(tmp_path / "images" / "a.webp")
    said = ("Total due", "42.00", "Date paid", "1 May", "Sold by", "Ada Kern", "Due by", "2 June")
    corners = [(20 + 150 * (i % 2), 12 + 25 * (i // 2)) for i in range(len(said))]
    texts = [{"text": t, "box": (x, y, x + 90, y + 20)} for t, (x, y) in zip(said, corners, strict=True)]
    rows = [
        {"image": "images/a.webp", "question": f"What is {i}?", "answer_boxes": [texts[1]["box"]]} for i in range(9)
    ]
    (tmp_path / "words.jsonl").write_text(json.dumps({"image": "images/a.webp", "words": texts}) + "\n")
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scans = Scans([tmp_path], CPU, val=is_val("images/a.webp"))
    seen = set()
    for seed in range(12):
        labels = scans.draft(4, (384, 384), random.Random(seed), questions=3).labels
        assert labels.questions.shape[1] == 3
        seen |= {decode(row) for row in labels.questions.flatten(0, 1).tolist()}
    assert any("what is 3?" in q.lower() for q in seen) and any("total due" in q.lower() for q in seen)


def test_validation_pages_and_the_others_are_apart_and_together_all(scanned):
    free, val = Scans([scanned], CPU), Scans([scanned], CPU, val=True)
    names = [{page.name for page in scans.pages} for scans in (free, val)]
    assert len(val) == 1 and len(free) == 3 and not names[0] & names[1]
    assert names[0] | names[1] == {f"images/{file.name}" for file in (scanned / "images").iterdir()}


def test_a_folder_that_holds_no_pages_is_one_sentence(scanned, tmp_path):
    with pytest.raises(InputError, match="nowhere is no data folder: No such file") as caught:
        Scans([tmp_path / "nowhere"], CPU)
    assert "\n" not in str(caught.value)
    for file in ("words.jsonl", "questions.jsonl"):
        (scanned / file).write_text("")
    with pytest.raises(InputError, match="there are no pages in"):
        Scans([scanned], CPU)


def test_photographs_without_words_can_be_asked_about(tmp_path):
    (tmp_path / "images").mkdir()
    rows = []
    for i in range(30):
        Image.new("RGB", (320, 256), (9 * i, 90, 20)).save(tmp_path / "images" / f"{i}.webp")
        rows.append({"image": f"images/{i}.webp", "question": "what colour is it?", "answers": ["green"], "qid": i})
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scans = Scans([tmp_path], CPU)
    assert 20 < len(scans) < 30 and len(scans) + len(Scans([tmp_path], CPU, val=True)) == 30
    assert all(page.questions[0].text == "what colour is it?" and not page.dense for page in scans.pages)
    labels = scans.draft(4, (256, 320), random.Random(0)).labels
    assert not labels.answers.any() and not labels.dense.any()  # nowhere to point at, nothing to read


def test_scans_are_learned_from_and_validation_pages_are_looked_at(scanned, tmp_path):
    recipe = read_plan(
        SMOKE,
        steps=4,
        log_every=2,
        real=1.0,
        real_final=1.0,
        val_every=2,
    ).recipes["scout"]
    pages = PageSource(DataSources(scans=[str(scanned)]), CPU)
    trainer = Trainer("scout", recipe, pages, tmp_path / "run")
    trainer.run()
    rows = read_log(tmp_path / "run" / "log.jsonl")
    val = [row for row in rows if "val_find" in row]
    assert [row["step"] for row in val] == [2, 4] and (tmp_path / "run" / "best.safetensors").exists()
    assert all(np.isfinite(list(row.values())).all() for row in rows)
