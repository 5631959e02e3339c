"""Training of line finder, recogniser and LoRA: what they are taught, and runs from a plan to shipped files."""

import gzip
import json
import math
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from homunculus import InputError
from homunculus.reader import load_finder, load_reader, load_recognizer
from homunculus.reader.finder import STRIDE, lines_of
from homunculus.reader.recognizer import CLASSES
from homunculus.reader.shown import points_on
from homunculus.reader.strips import MAX_WIDTH, grey_pyramid, sample_strips
from homunculus.reader.weights import SHIPPED, about
from homunculus.train.config import Canvas, DataSources, Recipe, read_plan
from homunculus.train.questions.pages import load_transcripts
from homunculus.train.scans import line_pages
from homunculus.train.scans.folders import is_val
from homunculus.train.scans.line_pages import OcrPage, read_pages, segments_of
from homunculus.train.scans.page_store import LEVELS, PageStore, shares_of
from homunculus.train.tasks import finder, line_source, recognizer
from homunculus.train.tasks.finder import SIDE, FinderTask, PageLines, crops_of, targets_of
from homunculus.train.tasks.recognizer import LineStore, RecognizerTask, jittered
from homunculus.train.tasks.registry import TASKS
from homunculus.train.tasks.text_source import TextSource, settings_of
from homunculus.train.trainer.plot import read_log
from homunculus.train.trainer.trainer import Trainer
from lined import TEXTS, letter, likeness, lines_in
from speaking import tiny_language
from training import CPU

HEIGHT, WIDTH, SIZE = 352, 416, 20
FINDER = {"widths": [8, 8, 16, 16, 24], "neck": 8}
RECOGNIZER = {"stages": [8, 8, 16, 16], "width": 24, "depth": 1, "heads": 2}
STAGES = ("finder", "recognizer", "answer")
FIGURES = {
    "finder": {"core", "dice", "height", "offset", "turn", "hit"},
    "recognizer": {"ctc", "exact"},
    "answer": {"answer", "exact"},
}


def word_rows(draw: ImageDraw.ImageDraw, text: str, x: int, y: int) -> list[dict]:
    """Draws a line; its words with the boxes of their ink."""
    font, rows = ImageFont.load_default(SIZE), []
    draw.text((x, y), text, 0, font)
    for n, word in enumerate(text.split()):
        before = " ".join([*text.split()[:n], ""])
        rows.append({"text": word, "box": draw.textbbox((x + font.getlength(before), y), word, font)})
    return rows


def write_pages(root: Path, name: str = "docvqa", count: int = 14) -> Path:
    """A data folder of drawn pages with their words and a question about each."""
    folder, rng = root / name / "train", random.Random(name)
    (folder / "images").mkdir(parents=True)
    words, questions = [], []
    for n in range(count):
        page, number = Image.new("L", (WIDTH, HEIGHT), 255), str(rng.randint(10_000, 99_999))
        draw, rows = ImageDraw.Draw(page), []
        for place, text in enumerate(
            (f"Invoice number: {number}", rng.choice(TEXTS), f"field {n} of {name}", "Total 7")
        ):
            rows += word_rows(draw, text, 20, 24 + 80 * place)
        image = f"images/{name}{n}.png"
        page.save(folder / image)
        words.append({"image": image, "words": rows})
        questions.append({"image": image, "question": "What is the invoice number?", "answers": [number]})
    (folder / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in words))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_pages(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def language(tmp_path_factory) -> Path:
    return tiny_language(tmp_path_factory.mktemp("language"))


def plan_of(place: Path, folder: Path, language: Path, steps: int) -> Path:
    """A plan of all stages in miniature."""
    common = f"steps = {steps}\nwarmup = 1\nema = 0.5\nbatch = 1\nlog_every = 1\nval_every = 2\nreal = 0.5\n"
    common += "canvases = [{ height = 192, width = 256, batch = 2 }]\n"
    parts = [f'[sources]\nlanguage = "{language}"\nscans = ["{folder}"]\n']
    sizes = {"finder": FINDER, "recognizer": RECOGNIZER, "answer": {"rank": 2}}
    for stage in STAGES:
        entries = ", ".join(f"{name} = {json.dumps(value)}" for name, value in sizes[stage].items())
        parts.append(f"[{stage}]\n{common}sizes = {{ {entries} }}\n")
    path = place / f"plan{steps}.toml"
    path.write_text("\n".join(parts))
    return path


@pytest.fixture
def few_val(monkeypatch) -> None:
    """One batch of validation pages, smaller crops."""
    monkeypatch.setattr(line_source, "VAL_BATCHES", 1)
    monkeypatch.setattr("homunculus.train.tasks.text_source.VAL_BATCHES", 1)
    monkeypatch.setattr(finder, "SIDE", 320)


# -- pages and their lines -------------------------------------------------------------------------------------


def item(text: str, x0: float, x1: float, y: float = 50, high: float = 20) -> tuple[str, np.ndarray]:
    return text, np.array([x0, y, x1, y + high], np.float32)


def test_words_are_put_together_to_segments_where_no_gap_is_wide():
    words = [
        item("of", 60, 80),
        item("Date", 20, 55),
        item("issue", 85, 130),
        item("May", 200, 240),
        item("3", 246, 256),
    ]
    words += [item("below", 20, 70, 80), item("higher", 75, 130, 76, 26), item("apart", 135, 180, 95)]
    found = {text: box.tolist() for text, box in segments_of(words)}
    assert found == {
        "Date of issue": [20, 50, 130, 70],
        "May 3": [200, 50, 256, 70],
        "below higher": [20, 76, 130, 102],
        "apart": [135, 95, 180, 115],
    }
    assert segments_of([]) == []


def test_pages_have_segments_to_find_and_texts_to_read(folder):
    pages, val = read_pages([folder]), read_pages([folder], val=True)
    names = [json.loads(row)["image"] for row in (folder / "words.jsonl").open()]
    assert len(val) == sum(map(is_val, names)) > 0 and len(pages) == len(names) - len(val)
    page, first = pages[0], next(n for n, name in enumerate(names) if not is_val(name))
    assert page.source == "docvqa" and page.pixels.shape == (HEIGHT, WIDTH) and page.pixels.dtype == np.uint8
    assert len(page.segments) == 4 and not page.sheet and len(page.texts) == len(page.boxes)
    assert f"field {first} of docvqa" in page.texts and "field" in page.texts
    for x0, y0, x1, y1 in page.segments.astype(int):
        assert page.pixels[y0:y1, x0:x1].mean() < 235 and page.pixels[y0 : y0 + 2, :10].min() == 255


def test_texts_that_are_not_sure_or_not_level_are_not_read(tmp_path):
    place = tmp_path / "scans" / "train"
    (place / "images").mkdir(parents=True)
    Image.new("L", (300, 200), 255).save(place / "images" / "a.png")
    row = {"image": "images/a.png", "words": [{"text": "two words", "box": [10, 10, 90, 30]}]}
    row["words"] += [
        {"text": "unsure", "box": [10, 40, 90, 60], "score": 0.5},
        {"text": "dot", "box": [10, 70, 12, 90]},
    ]
    row["words"] += [{"text": "upwards", "box": [200, 10, 220, 190]}, {"text": "Straße", "box": [10, 100, 90, 120]}]
    row["words"] += [{"text": "x" * 120, "box": [10, 130, 290, 150]}, {"text": "请问", "box": [10, 160, 60, 180]}]
    for entries, texts, segments in (
        ({}, ["two words", "Strasse"], 5),
        ({"sheet": True}, ["two words", "Strasse"], 0),
        ({"spaces": False}, [], 5),
    ):
        (place / "words.jsonl").write_text(json.dumps(row | entries) + "\n\n")
        [page] = read_pages([place], val=is_val("images/a.png"))
        assert (page.texts, len(page.segments), page.source) == (texts, segments, "scans"), entries
    with pytest.raises(InputError, match="nowhere is no data folder"):
        read_pages([tmp_path / "nowhere"])
    with pytest.raises(InputError, match=r"no pages with words\.jsonl"):
        read_pages([place], val=not is_val("images/a.png"))
    assert line_pages.SINGLE.fullmatch("12.50") and not line_pages.SINGLE.fullmatch("Date of")


def test_sets_are_drawn_in_their_shares():
    def page(source: str, sheet: bool = False) -> OcrPage:
        return OcrPage(source, np.zeros((1, 1)), np.zeros((0, 4)), [], np.zeros((0, 4)), sheet)

    pages, counts = [page("a"), page("b"), page("a"), page("c")], [1, 5, 3, 0]
    found = shares_of(pages, {"a": 4.0, "c": 9.0}, counts)
    assert found == [1, 1, 3, 0] and shares_of([], {}, []) == []


def test_a_store_of_pages_has_their_pixels():
    generator = torch.Generator().manual_seed(0)
    shapes = [(40, 60), (33, 21), (1, 1), (64, 128)]
    pages = [torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator) for shape in shapes]
    store = PageStore.of(pages, CPU)
    assert store.shapes == shapes and store.sizes.shape == (4, LEVELS, 2)
    for n, page in enumerate(pages):
        for level, expected in enumerate(grey_pyramid(page, LEVELS)):
            assert store.sizes[n, level].tolist() == list(expected.shape)
            y, x = torch.meshgrid(*(torch.arange(side) for side in expected.shape), indexing="ij")
            spots = (torch.stack((x, y), -1) + 0.5) * 2**level
            found = store.sample(torch.tensor([n]), torch.tensor([level]), spots[None])
            assert torch.equal(found[0], expected.float())
    beyond = torch.tensor([[[[-9.0, -9], [999, 999]]]])  # edges are repeated
    found = store.sample(torch.tensor([1]), torch.tensor([0]), beyond)
    assert found.flatten().tolist() == [pages[1][0, 0], pages[1][-1, -1]]
    between = torch.tensor([[[[1.0, 0.5]]]])
    assert store.sample(torch.tensor([0]), torch.tensor([0]), between).item() == pages[0][0, :2].float().mean()


# -- what the finder is taught ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rise", [0.0, 12.0])
def test_targets_are_maps_from_which_the_lines_are_found_again(rise):
    lines = torch.tensor([[40.0, 60, 280, 60 + rise, 24], [100, 150, 300, 150 + rise * 5 / 6, 14]])
    core, height, offset, weight = targets_of(lines, 320)
    assert core.shape == (80, 80) and set(core.unique().tolist()) == {0, 1} == {0, *core.unique().tolist()}
    assert (weight[core > 0] == 1).all() and 0 < (weight < 1).float().mean() < 0.1 and weight.min() > 0
    maps = torch.stack(((core * 2 - 1) * 9, height, offset)).numpy()
    found, scores = lines_of(maps)
    found = torch.from_numpy(found) * torch.tensor([STRIDE] * 5)
    order = found[:, 4].argsort(descending=True)
    assert len(found) == 2 and scores.min() > 0.99
    torch.testing.assert_close(found[order], lines, atol=3.0, rtol=0)


def test_a_place_of_two_lines_belongs_to_the_nearer_and_no_lines_are_targets_too():
    core, height, _, _ = targets_of(torch.tensor([[20.0, 40, 200, 40, 40], [20, 60, 200, 60, 20]]), 224)
    assert core[9, 25] == core[15, 25] == 1
    assert float(height[9, 25]) == pytest.approx(math.log(40)) and float(height[15, 25]) == pytest.approx(math.log(20))
    nothing = targets_of(torch.zeros(0, 5), 224)
    assert nothing.shape == (4, 56, 56) and (nothing[:3] == 0).all() and (nothing[3] == 1).all()


def bars() -> tuple[PageLines, torch.Tensor]:
    """A white page with two black bars, which are its lines."""
    page = torch.full((620, 500), 255, dtype=torch.uint8)
    lines = torch.tensor([[60.0, 110, 440, 110, 20], [100, 520, 300, 520, 40]])
    page[100:120, 60:440] = page[500:540, 100:300] = 0
    return PageLines(PageStore.of([page], CPU), [lines], [1.0]), lines


def test_crops_show_their_lines_where_they_say(monkeypatch):
    monkeypatch.setattr(finder, "TILTED", 1.0)
    (store, known), seen = bars(), 0
    for plain, seed in ((True, 0), (False, 1), (False, 2)):
        crops, lines = crops_of(store, 1, random.Random(seed), jitter=not plain)
        assert crops.shape == (1, 1, SIDE, SIDE) and crops.min() >= 0 and crops.max() <= 1 + 1e-5
        for line in lines[0]:
            x, y = points_on(line[None] * torch.tensor([1, 1, 1, 1, 0.8]))[0].flatten(0, 1).long().unbind(1)
            inside = (x > 2) & (y > 2) & (x < SIDE - 2) & (y < SIDE - 2)
            seen += bool(inside.any())  # a crop may leave out a part of the page
            assert not inside.any() or crops[0, 0, y[inside], x[inside]].mean() < 0.1
        slopes = (lines[0][:, 3] - lines[0][:, 1]) / (lines[0][:, 2] - lines[0][:, 0])
        assert (slopes == 0).all() if plain else (slopes != 0).all()
        zoom = lines[0][:, 4] / known[:, 4]
        assert zoom[0] == zoom[1] and 1 < zoom[0] < 2.5
    assert seen >= 4


@torch.no_grad()
def test_turned_crops_are_brought_upright_by_their_label_and_not_searched(monkeypatch):
    monkeypatch.setattr(finder, "TURNED", 1.0)
    store, _ = bars()
    task = FinderTask(finder.LineFinder(**FINDER), seed=3)
    pages, targets, turns = task.make_batch(store, 2, 0.0)
    crops, _ = crops_of(store, 2, random.Random(3), jitter=False)
    assert (targets[:, 3] == 0).all() and set(turns.tolist()) <= {1, 2, 3}
    for page, upright, turn in zip(pages, crops, turns.tolist(), strict=True):
        assert (torch.rot90(page.float(), turn, (1, 2)) - upright).abs().max() < 0.01
        assert (page.float() - upright).abs().mean() > 0.01
    losses = task(*(part[:1] for part in (pages, targets, turns)))
    assert losses.keys() == FIGURES["finder"] and all(map(torch.isfinite, losses.values()))
    assert float(losses["dice"]) == float(losses["height"]) == 0 and float(losses["turn"]) > 0


# -- what the recogniser is taught -----------------------------------------------------------------------------


def line_store() -> tuple[LineStore, torch.Tensor, torch.Tensor]:
    page, boxes = letter()
    lines, count = lines_in(boxes), len(TEXTS)
    store = LineStore(PageStore.of([page], CPU), torch.zeros(count).long(), lines, list(TEXTS), torch.ones(count))
    return store, lines, page


def test_strips_of_training_are_those_of_reading_when_nothing_is_degraded():
    store, lines, page = line_store()
    expected, widths = sample_strips(grey_pyramid(page, LEVELS), lines)
    strips, found = recognizer.strips_of(store, torch.arange(len(lines)), 512, 0.0)
    assert torch.equal(found, widths.clamp(max=512))
    for mine, theirs, width in zip(strips, expected, widths.tolist(), strict=True):
        assert (mine[..., :width] * 255 - theirs[..., :width]).abs().max() <= 0.51
    torch.manual_seed(0)
    degraded, _ = recognizer.strips_of(store, torch.arange(len(lines)), 512, 1.0)
    assert degraded.shape == strips.shape and not torch.equal(degraded, strips)
    assert degraded.min() >= 0 and degraded.max() <= 1


def test_some_strips_go_through_cells_of_two_levels():
    lines = line_store()[1]
    spots = recognizer.strip_grid(lines, recognizer.widths_of(lines), 512)
    level = torch.ones(len(lines), dtype=torch.long)
    torch.manual_seed(0)
    chosen = recognizer._random_cells(spots, level)
    cell = (spots / 64).floor()
    for n in range(len(lines)):
        for place in cell[n].view(-1, 2).unique(dim=0):
            here = (cell[n] == place).all(-1)
            assert chosen[n][here].unique().numel() == 1  # a cell is at one level as a whole
    assert 0.3 < chosen.float().mean() < 0.7


def test_lines_are_off_by_little():
    lines = line_store()[1]
    torch.manual_seed(0)
    other = jittered(lines, 1.0)
    difference = (other - lines).abs() / lines[:, 4:]
    assert jittered(lines, 0.0) is lines and difference.max() < 0.5 and (difference > 0).all()


def test_batches_are_of_lines_of_about_one_width():
    store, lines, _ = line_store()
    assert len(store.lines) == len(lines)
    rows, columns = store.batch(2 * 32 * 512, random.Random(0))
    assert len(rows) == 2 * 32 * 512 // (32 * columns) and columns in recognizer.BUCKETS
    assert all(recognizer.widths_of(store.lines[rows]) <= columns)
    page = torch.full((60, MAX_WIDTH), 255, dtype=torch.uint8)
    wrong = torch.tensor([[0.0, 30, 20, 30, 20], [0, 30, 400, 30, 4], [0, 30, 400, 30, 20]])
    texts = ["too many letters for it", "print too small", "请问"]
    empty = LineStore(PageStore.of([page], CPU), torch.zeros(3).long(), wrong, texts, torch.ones(3))
    assert len(empty.lines) == 0 and empty.batch(1000, random.Random(0)) is None


def test_a_batch_of_the_recogniser_is_learned(monkeypatch):
    monkeypatch.setattr(recognizer, "BUCKETS", (256, 384, 512))
    store, _, _ = line_store()
    torch.manual_seed(0)
    task = RecognizerTask(recognizer.Recognizer(**RECOGNIZER))
    batch = task.make_batch(store, 4, 0.0)
    optimizer, losses = torch.optim.AdamW(task.parameters(), 3e-3), []
    for _ in range(12):
        found = task(*batch)
        optimizer.zero_grad()
        found["ctc"].backward()
        optimizer.step()
        losses.append(float(found["ctc"].detach()))
    assert losses[-1] < 0.7 * losses[0] and 0 <= found["exact"] <= 1


def test_strips_read_exactly_are_counted_as_they_are_decoded():
    paths = ["hheel_llo_", "_abc______", "hello_____"]
    codes = torch.tensor([[0 if c == "_" else ord(c) - 31 for c in path] for path in paths])
    logits = torch.nn.functional.one_hot(codes, CLASSES).float()
    wanted = recognizer.encode(["hello", "abc", "hello"], 12)
    assert recognizer._exact(logits, torch.full((3,), 40), wanted) == pytest.approx(2 / 3)  # "hello" needs a blank
    assert recognizer._exact(logits, torch.full((3,), 12), wanted) == pytest.approx(0)


# -- runs ------------------------------------------------------------------------------------------------------


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
    assert code == 2 and "--stage must be one of finder, recognizer, answer, got 'align'" in err


# -- transcripts -----------------------------------------------------------------------------------------------


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
