"""Training pages: what is drawn is where the labels say, worn or scanned."""

import json
import os
import random
import subprocess
import sys
import zlib
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw

from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.reader.letters import BLANK, END, decode
from homunculus.reader.scout import QUESTION
from homunculus.train import draw as drawing
from homunculus.train import wear
from homunculus.train.atlas import BASELINE, EM, ORIGIN, Atlas
from homunculus.train.draw import Glyphs
from homunculus.train.layouts import Type, lay_out
from homunculus.train.loop import Pages, Trainer
from homunculus.train.pages import LETTERS, Draft, Labels, draw, tilt, to_grid
from homunculus.train.plot import read_log
from homunculus.train.recipe import Sources, read_plan
from homunculus.train.scans import HELD, Scans
from homunculus.train.text import Texts

CPU = torch.device("cpu")


@cache
def font() -> tuple[Atlas, Glyphs]:
    atlas = Atlas.builtin()
    return atlas, Glyphs.of(atlas, CPU)


def glyph(char: str, x: float, y: float, size: float, ink: float = 1.0, page: int = 0) -> list[float]:
    return [page, ord(char) - 33, 0, x, y, size, ink]


def middle_of(image: torch.Tensor) -> tuple[float, float]:
    """Centre of mass x, y of an image [h, w], a pixel's own being half-way through it."""
    y, x = (torch.arange(side) + 0.5 for side in image.shape)
    return float((image.sum(0) * x).sum() / image.sum()), float((image.sum(1) * y).sum() / image.sum())


# -- drawing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [9.0, 14.5, 24.0, 40.0, 80.0])
def test_a_glyph_lands_where_its_pen_is_at_any_size(size):
    atlas, glyphs = font()
    for char in "gWi,":
        x, y = 60.3, 110.7
        found = drawing.ink(torch.tensor([glyph(char, x, y, size)]), glyphs, (1, 160, 200))[0]
        tile = atlas.glyphs[0, ord(char) - 33].float() / 255
        u, v = middle_of(tile)
        expected = x + (u - ORIGIN) * size / EM, y + (v - BASELINE) * size / EM
        assert middle_of(found) == pytest.approx(expected, abs=1)
        assert float(found.sum()) == pytest.approx(float(tile.sum()) * (size / EM) ** 2, rel=0.1)


def test_light_ink_is_negative_pages_are_apart_and_ink_adds_up_to_1():
    _, glyphs = font()
    rows = [glyph("A", 20, 50, 30, 0.8), glyph("A", 20, 50, 30, -0.5, page=1), *[glyph("A", 20, 50, 30, page=2)] * 3]
    dark, light, much, none = drawing.ink(torch.tensor(rows), glyphs, (4, 64, 64))
    torch.testing.assert_close(light, dark * -0.625)
    assert dark.min() >= 0 and 0.7 < dark.max() <= 0.8 and much.max() == 1 and not none.any()
    assert not drawing.ink(torch.zeros(0, 7), glyphs, (1, 8, 8)).any()


def test_glyphs_that_leave_the_page_are_cut_off():
    _, glyphs = font()
    whole = drawing.ink(torch.tensor([glyph("M", 40, 60, 40)]), glyphs, (1, 100, 100))[0]
    for dx, dy in ((-50, 0), (40, 0), (0, -50), (0, 55), (-500, 0)):
        part = drawing.ink(torch.tensor([glyph("M", 40 + dx, 60 + dy, 40)]), glyphs, (1, 100, 100))[0]
        expected = F.pad(whole, (100, 100, 100, 100)).roll((dy, dx), (0, 1))[100:200, 100:200]
        torch.testing.assert_close(part, expected if abs(dx) < 100 else torch.zeros(100, 100), rtol=0, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_fills_are_exact_to_the_pixel(channels):
    rng = np.random.default_rng(0)
    low = rng.uniform(-10, 50, (20, 2))
    boxes = np.concatenate(
        (rng.integers(0, 2, (20, 1)), low, low + rng.uniform(0, 25, (20, 2)), rng.uniform(0, 0.4, (20, 2))), 1
    ).astype(np.float32)
    boxes[::2, 6] = 0
    expected = np.zeros((2, channels, 40, 60))
    for page, x0, y0, x1, y1, dark, tint in boxes:
        hue = 0.5 + 0.5 * np.cos(2 * np.pi * (tint + np.arange(3) / 3)) if tint > 0 else np.ones(3)
        hue = hue.mean(keepdims=True) if channels == 1 else hue
        for y in range(max(0, int(np.rint(y0))), min(40, int(np.rint(y1)))):
            for x in range(max(0, int(np.rint(x0))), min(60, int(np.rint(x1)))):
                expected[int(page), :, y, x] += dark * hue
    found = drawing.fills(torch.from_numpy(boxes), (2, 40, 60), channels)
    np.testing.assert_allclose(found.numpy(), expected.clip(0, 1), atol=1e-4)


@pytest.mark.parametrize("end", [(100, 20), (100, 90), (20, 95)])
@pytest.mark.parametrize("width", [1.0, 2.5])
def test_strokes_cover_their_ends_and_nothing_beyond(end, width):
    start = np.array([20, 20])
    way = (np.array(end) - start) / np.linalg.norm(np.array(end) - start)
    found = drawing.strokes(torch.tensor([[1, *start, *end, width, 0.9]], dtype=torch.float32), (2, 110, 120))
    assert not found[0].any()

    def most(point: np.ndarray) -> float:
        x, y = np.rint(point).astype(int)
        return float(found[1, y - 1 : y + 1, x - 1 : x + 1].max())

    assert most((start + end) / 2) > 0.4 and most(start) > 0.2 and most(np.array(end)) > 0.2
    assert most(start - 5 * way) == 0 and most(end + 5 * way) == 0
    across = np.array([-way[1], way[0]])
    assert most((start + end) / 2 + 5 * across) == 0


TRITON = """
import torch
from homunculus.train import draw
from homunculus.train.atlas import Atlas
from homunculus.train.draw import SHAPE, Glyphs
from homunculus.train.stamp import stamp

font = Glyphs.of(Atlas.builtin(), "cpu")
torch.manual_seed(0)
n = 12
glyphs = torch.stack((torch.arange(n) % 2, torch.randint(0, 94, (n,)), torch.zeros(n), torch.rand(n) * 100 - 5,
    torch.rand(n) * 80 + 10, torch.tensor([9.0, 13, 16, 24, 33, 60]).repeat(2), torch.rand(n) * 2 - 1), 1)
slow, fast = torch.zeros(2 * 96 * 100), torch.zeros(2 * 96 * 100)
draw.stamp(slow, glyphs, font.texels, font.starts, 96, 100)
stamp(fast, glyphs, font.texels, font.starts, 96, 100, **SHAPE)
assert slow.abs().max() > 0.3
torch.testing.assert_close(fast, slow, rtol=0, atol=2e-3)
"""


def test_the_triton_kernel_draws_what_torch_draws():
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "-c", TRITON],
        capture_output=True,
        text=True,
        env=os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert run.returncode == 0, run.stderr


def test_a_stroke_on_the_last_page_of_a_large_batch_lies_where_it_should():
    size = (24, 1024, 1024)  # more pixels than float32 can count one by one
    drawn = drawing.strokes(torch.tensor([[23.0, 101, 501, 141, 541, 2, 1]]), size)
    rows, columns = drawn[23].nonzero().unbind(1)
    assert drawn[:23].sum() == 0 and drawn[23, 520, 120] > 0
    assert (rows - columns - 400).abs().max() <= 3


# -- pages -----------------------------------------------------------------------------------------------------


def draft_of(kind: str, seed: int = 0, pages: int = 3) -> Draft:
    atlas, _ = font()
    type_, rng, texts = Type(atlas.advance.numpy(), atlas.traits, atlas.names), random.Random(seed), Texts.builtin(seed)
    return Draft.of([lay_out(kind, 320, 320, texts, type_, rng) for _ in range(pages)], type_.advance, rng)


@pytest.mark.parametrize("kind", ["letter", "form", "receipt", "sign"])
def test_labelled_letters_stand_on_ink(kind):
    torch.manual_seed(0)
    sheets = draw(draft_of(kind), font()[1], hard=0)
    assert sheets.pixels.dtype == torch.uint8 and sheets.pixels.shape == (3, 3, 320, 320)
    assert len(sheets.levels) == CellTree(320, 320).levels
    contrasts = []
    for page, _, x, y, em in sheets.labels.letters.tolist():
        left, top = max(0, int(x - 0.25 * em)), max(0, int(y - 0.35 * em))
        box = sheets.pixels[int(page), :, top : int(y + 0.35 * em) + 1, left : int(x + 0.25 * em) + 1].float()
        if box.numel():
            contrasts.append(float((box.amax((1, 2)) - box.amin((1, 2))).max()))
    assert len(contrasts) > 10 and (torch.tensor(contrasts) > 0).float().mean() >= 0.95
    assert torch.tensor(contrasts).median() > 40


def test_a_letter_lies_at_its_label_after_the_tilt():
    draft = draft_of("letter", pages=1)
    rows = torch.tensor([glyph("o", x, 170, 30) for x in (50, 250)])
    labels = replace(
        draft.labels,
        letters=torch.tensor([[0, 80, x + 30 * float(font()[0].advance[0, 79]) / 2, 162, 30] for x in (50, 250)]),
    )
    draft = replace(draft, glyphs=rows, fills=torch.zeros(0, 7), strokes=torch.zeros(0, 7), labels=labels)
    for seed in range(8):
        torch.manual_seed(seed)
        sheets = draw(draft, font()[1], hard=0)
        page = sheets.pixels[0].float().mean(0)
        ink = (page - page.median()).abs()
        ink = torch.where(ink > 0.5 * ink.max(), ink, 0.0)
        for half, (_, _, x, y, em) in zip(
            (slice(0, 160), slice(160, 320)), sheets.labels.letters.tolist(), strict=True
        ):
            found_x, found_y = middle_of(ink[:, half])
            assert found_x + half.start == pytest.approx(x, abs=2) and found_y == pytest.approx(y, abs=2.5)
            assert 26 < em < 31


def test_moved_labels_are_those_of_moved_points():
    labels = draft_of("form").labels
    torch.manual_seed(0)
    matrix = tilt(3, 320, 320, CPU)
    moved = labels.moved(matrix)

    def direct(page: int, x: float, y: float) -> list[float]:
        return (matrix[page, :, :2] @ torch.tensor([x, y]) + matrix[page, :, 2]).tolist()

    for before, after in zip(labels.letters[::17], moved.letters[::17], strict=True):
        page, _, x, y, em = before.tolist()
        growth = float(torch.linalg.det(matrix[int(page), :, :2])) ** 0.5
        assert after[2:4].tolist() == pytest.approx(direct(int(page), x, y), abs=1e-3)
        assert after[:2].tolist() == before[:2].tolist() and float(after[4]) == pytest.approx(em * growth, rel=1e-4)
    for page in range(3):
        there = (labels.text[page] != BLANK) & (labels.text[page] != END)
        for (x, y), spot in zip(labels.centres[page][there][::31], moved.centres[page][there][::31], strict=True):
            assert spot.tolist() == pytest.approx(direct(page, float(x), float(y)), abs=1e-3)
        for name in ("read_boxes", "usual", "answers"):
            before, after = (getattr(l, name)[page].reshape(-1, 4) for l in (labels, moved))
            full = (before[:, 2:] > before[:, :2]).all(1)
            assert full.any() and torch.equal(after[~full], torch.zeros_like(after[~full]))
            for old, new in zip(before[full], after[full], strict=True):
                middle = (new[:2] + new[2:]) / 2
                assert middle.tolist() == pytest.approx(direct(page, *((old[:2] + old[2:]) / 2).tolist()), abs=1e-3)
                size = (old[2:] - old[:2]) * matrix[page, :, :2].norm(dim=0)
                torch.testing.assert_close(new[2:] - new[:2], size, rtol=1e-3, atol=1e-3)
    still = torch.eye(2, 3).expand(3, 2, 3)
    for field in fields(Labels):
        torch.testing.assert_close(getattr(labels.moved(still), field.name), getattr(labels, field.name))


@pytest.mark.parametrize("kind", ["letter", "form", "receipt"])
def test_texts_to_read_are_made_of_the_pages_letters(kind):
    draft = draft_of(kind)
    labels = draft.labels
    known = {(int(page), int(code), round(x, 2), round(y, 2)) for page, code, x, y, _ in labels.letters.tolist()}
    assert labels.text.shape == (3, 60, LETTERS) and labels.line.sum() == 60
    texts = []
    for page in range(3):
        for row in range(60):
            codes = labels.text[page, row].tolist()
            if codes[0] == BLANK:
                assert labels.ems[page, row] == 0 and not labels.read_boxes[page, row].any()
                continue
            texts.append(decode(codes))
            assert (
                codes.count(END) == 1 and set(codes[codes.index(END) + 1 :]) <= {BLANK} and labels.ems[page, row] >= 8
            )
            assert labels.line[page, row] or " " not in texts[-1]
            x0, y0, x1, y1 = labels.read_boxes[page, row].tolist()
            for code, (x, y) in zip(codes[: codes.index(END)], labels.centres[page, row].tolist(), strict=False):
                assert x0 - 1 <= x <= x1 + 1 and y0 <= y <= y1
                assert code == 1 or (page, code, round(x, 2), round(y, 2)) in known
    assert len(texts) > 20 and any(" " in text for text in texts)


def test_questions_have_answers_inside_the_page():
    labels = draft_of("receipt").labels
    assert labels.questions.shape == (3, 8, QUESTION) and labels.answers.shape == (3, 8, 4, 4)
    asked = labels.questions[:, :, 0] != BLANK
    full = (labels.answers[..., 2:] > labels.answers[..., :2]).all(3)
    assert asked.sum() > 6 and torch.equal(full.any(2), asked)
    for boxes in (labels.answers, labels.usual, labels.read_boxes):
        assert (boxes >= 0).all() and (boxes <= 320).all()
    first = labels.first(1)
    assert len(first.answers) == 1 and (first.letters[:, 0] == 0).all() and len(first.letters) < len(labels.letters)


def test_the_same_seed_draws_the_same_pages():
    sheets = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        sheets.append(draw(draft_of("table"), font()[1]))
    for field in fields(Labels):
        one, other = (getattr(sheet.labels, field.name) for sheet in sheets[:2])
        assert (one is None and other is None) or torch.equal(one, other)
    assert torch.equal(sheets[0].pixels, sheets[1].pixels) and not torch.equal(sheets[0].pixels, sheets[2].pixels)


def test_a_known_shift_is_a_known_grid():
    image = torch.rand(1, 1, 24, 40)
    matrix = torch.tensor([[[1.0, 0, 5], [0, 1, 3]]])
    for target in ((24, 40), (30, 50)):
        theta = to_grid(matrix, torch.tensor([[24, 40]]), target)
        grid = F.affine_grid(theta, [1, 1, *target], align_corners=False)
        found = F.grid_sample(image, grid, align_corners=False)[0, 0]
        expected = torch.zeros(target)
        part = image[0, 0, : target[0] - 3, : target[1] - 5]
        expected[3 : 3 + part.shape[0], 5 : 5 + part.shape[1]] = part
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    double = to_grid(matrix * 2, torch.tensor([[24, 40]]), (48, 80))
    point = double[0] @ torch.tensor([2 * (2 * 12.0 + 10) / 80 - 1, 2 * (2 * 7.0 + 6) / 48 - 1, 1.0])
    torch.testing.assert_close(point, torch.tensor([2 * 12.0 / 40 - 1, 2 * 7.0 / 24 - 1]), rtol=0, atol=1e-5)


# -- wear ------------------------------------------------------------------------------------------------------


def test_every_kind_of_wear_keeps_shape_and_range():
    torch.manual_seed(0)
    for channels in (1, 3):
        images = torch.rand(4, channels, 48, 64)
        ways = {
            "blur": lambda x: wear.blur(x, wear.between(x, 0.3, 1.3)),
            "coarse": lambda x: wear.coarse(x, 0.5),
            "binary": wear.binary,
            "fax": wear.fax,
            "specks": wear.specks,
            "jpeg": lambda x: wear.jpeg(x, wear.between(x, 8, 60)),
            "wear": wear.wear,
        }
        for name, way in ways.items():
            found = way(images.clone())
            assert found.shape == images.shape and torch.isfinite(found).all(), name
            assert found.min() > -0.5 and found.max() < 1.5, name
            assert name == "specks" or not torch.equal(found, images), name
        assert wear.wear(images.clone()).min() >= 0 and wear.wear(images.clone()).max() <= 1
        assert torch.equal(wear.wear(images.clone(), hard=0), images)
        clouds = wear.texture(images)
        assert clouds.shape == (4, 1, 48, 64) and abs(float(clouds.mean())) < 1 and 0.1 < float(clouds.std()) < 3
        still = torch.eye(2, 3).expand(4, 2, 3)
        torch.testing.assert_close(wear.warp(images, still), images, rtol=0, atol=1e-4)


def test_good_jpeg_is_nearly_the_identity_and_bad_jpeg_is_not():
    torch.manual_seed(0)
    images = draw(draft_of("letter"), font()[1], hard=0).pixels.float() / 255
    near, far = (wear.jpeg(images, torch.full((3, 1, 1, 1), float(q))) for q in (95, 5))
    assert (near - images).abs().mean() < 0.02 < (far - images).abs().mean()


def test_blur_spreads_a_point_by_its_sigma():
    image = torch.zeros(2, 1, 21, 21)
    image[:, :, 10, 10] = 1
    found = wear.blur(image, torch.tensor([0.01, 1.0]).view(2, 1, 1, 1))
    torch.testing.assert_close(found[0], image[0], rtol=0, atol=1e-4)
    x = torch.arange(21) - 10.0
    assert float((found[1, 0].sum(0) * x**2).sum()) == pytest.approx(1, rel=0.1)


def test_some_changes_as_many_as_it_says():
    torch.manual_seed(0)
    changed = []
    for _ in range(200):
        images = torch.zeros(10, 1, 2, 2)
        assert wear.some(images, 0.25, lambda x: x + 1) is images
        changed.append(int(images[:, 0, 0, 0].sum()))
    assert set(changed) == {2, 3} and np.mean(changed) == pytest.approx(2.5, abs=0.12)
    assert wear.some(torch.zeros(10, 1, 2, 2), 0.5, lambda x: x + 1).sum() == 20
    assert wear.some(torch.zeros(10, 1, 2, 2), 0.0, lambda x: x + 1).sum() == 0


# -- scans -----------------------------------------------------------------------------------------------------

BOXES = [(60, 60, 140, 90), (180, 200, 280, 230), (40, 270, 120, 296)]


@pytest.fixture
def scanned(tmp_path) -> Path:
    """A folder of four pages, one of them held back, with three dark boxes each that are taken for words."""
    held, free = ([f"images/{i}.webp" for i in range(300) if (zlib.crc32(f"images/{i}.webp".encode()) % HELD == 0) == h]
                  for h in (True, False))  # fmt: skip
    (tmp_path / "images").mkdir()
    words, questions = [], []
    for name in (held[0], *free[:3]):
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
        sheets = scans.show(placed, hard=0)
        labels = sheets.labels
        assert sheets.pixels.shape == (6, 3, *size) and sheets.pixels.dtype == torch.uint8
        seen = 0
        for page in range(6):
            image = sheets.pixels[page, 0].float()
            image = 255 - image if image.median() < 128 else image  # a few are shown as negatives
            boxes = torch.cat((labels.read_boxes[page], labels.answers[page, :, 0], labels.usual[page]))
            for x0, y0, x1, y1 in boxes[(boxes[:, 2:] > boxes[:, :2]).all(1)].tolist():
                dark = image[int(y0) + 4 : int(y1) - 3, int(x0) + 4 : int(x1) - 3]
                assert dark.max() < 60
                above, left = image[max(0, int(y0) - 7), int(x0) + 4 : int(x1) - 3], image[int(y0), max(0, int(x0) - 7)]
                assert above.min() > 200 and left > 200
                seen += 1
        assert seen > 30
        letters = labels.letters
        assert len(letters) == 6 * len("total42.00Thanks") and labels.dense.all()
        for page, _, x, y, _ in letters.tolist():
            if 0 <= x < size[1] and 0 <= y < size[0]:
                value = sheets.pixels[int(page), 0, int(y), int(x)].float()
                assert abs(value - sheets.pixels[int(page), 0].float().median()) > 150


def test_questions_and_searches_of_scans_know_their_answers(scanned):
    labels = Scans([scanned], CPU).draft(4, (384, 384), random.Random(1)).labels
    texts = {decode(row) for row in labels.text.flatten(0, 1).tolist()} - {""}
    assert texts == {"total", "42.00", "Thanks"}
    asked = {decode(row) for row in labels.questions.flatten(0, 1).tolist()} - {""}
    assert "What is the total?" in asked and any("Thanks" in question for question in asked)


def test_pages_held_back_and_the_others_are_apart_and_together_all(scanned):
    free, held = Scans([scanned], CPU), Scans([scanned], CPU, held=True)
    names = [{page.name for page in scans.pages} for scans in (free, held)]
    assert len(held) == 1 and len(free) == 3 and not names[0] & names[1]
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
    assert 20 < len(scans) < 30 and len(scans) + len(Scans([tmp_path], CPU, held=True)) == 30
    assert all(page.questions[0].answer == "green" and not page.dense for page in scans.pages)
    labels = scans.draft(4, (256, 320), random.Random(0)).labels
    assert not labels.answers.any() and not labels.dense.any()  # nowhere to point at, nothing to read


def test_scans_are_learned_from_and_pages_held_back_are_looked_at(scanned, tmp_path):
    recipe = read_plan(
        Path(__file__).parents[1] / "configs" / "smoke.toml",
        steps=4,
        log_every=2,
        real=1.0,
        real_late=1.0,
        held_every=2,
    ).recipes["scout"]
    pages = Pages(Sources(scans=[str(scanned)]), CPU)
    trainer = Trainer("scout", recipe, pages, tmp_path / "run")
    trainer.run()
    rows = read_log(tmp_path / "run" / "log.jsonl")
    held = [row for row in rows if "held_find" in row]
    assert [row["step"] for row in held] == [2, 4] and (tmp_path / "run" / "best.safetensors").exists()
    assert all(np.isfinite(list(row.values())).all() for row in rows)
