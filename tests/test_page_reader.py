"""Pages that are opened, looked at and read under a budget, from Python and on the command line."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from homunculus import ImageError, InputError
from homunculus.reader import load_page_reader
from homunculus.reader.session import (
    MAX_GLANCES,
    MAX_READ,
    MIN_CONFIDENCE,
    READ_PRINT,
    Page,
    PageReader,
    page_cache,
)
from homunculus.reader.strips import STRIP_HEIGHT
from lined import INVOICE, TEXTS, letter, likeness, share_read
from readers import count_work

EXAMPLE = Path(__file__).parents[1] / "examples" / "invoice.png"
DOCUMENTS = Path(__file__).parent / "documents"
WORDS = {
    row["image"]: [word["text"] for word in row["words"]]
    for row in map(json.loads, (DOCUMENTS / "words.jsonl").read_text(encoding="utf-8").splitlines())
}
SURE = 0.9


class Counting:
    """A recogniser that notes how many strips it is given at a time."""

    height = STRIP_HEIGHT

    def __init__(self, recognizer) -> None:
        self.recognizer, self.calls = recognizer, []

    def __call__(self, strips: torch.Tensor, widths: torch.Tensor) -> list[tuple[str, float]]:
        assert strips.dtype == torch.uint8 and len(strips) == len(widths)
        self.calls.append(len(strips))
        return self.recognizer(strips, widths)


@pytest.fixture(scope="module")
def reader() -> PageReader:
    return load_page_reader()


@pytest.fixture(scope="module")
def invoice(reader) -> Page:
    return reader.open(EXAMPLE)


@pytest.fixture
def counted(reader) -> tuple[PageReader, list[int]]:
    counting = Counting(reader.recognizer)
    return PageReader(reader.finder, reader.scout, counting), counting.calls


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("letter") / "letter.png"
    Image.fromarray(letter()[0].numpy()).save(path)
    return path


def texts(lines) -> list[str]:
    return [line.text for line in lines]


# -- reading ---------------------------------------------------------------------------------------------------


def test_the_example_is_read_at_the_usual_budget(invoice):
    lines = invoice.read(273)
    assert share_read(texts(lines), INVOICE) > 0.4 and likeness(texts(lines), INVOICE) > 0.75
    for line in lines:
        x0, y0, x1, y1 = line.box
        assert 0 <= x0 < x1 <= 1240 and 0 <= y0 < y1 <= 1754
        assert MIN_CONFIDENCE <= line.confidence <= 1 and 0 <= line.level < 4 and line.text == line.text.strip()
    tops = [line.box[1] for line in lines]
    assert all(later > earlier - 20 for earlier, later in pairwise(tops))  # row by row


@pytest.mark.parametrize("name", ["invoice", "insurance_form"])
def test_documents_are_read_the_better_the_more_tokens_there_are(reader, name):
    page, known = reader.open(DOCUMENTS / "images" / f"{name}.png"), WORDS[f"images/{name}.png"]
    shares = []
    for budget in (16, 64, 273):
        words = [word for line in page.read(budget) for word in line.text.split()]
        shares.append(share_read(words, known))
    assert shares[0] < 0.05 and shares[0] <= shares[1] < shares[2] and shares[2] > 0.35


def test_with_few_tokens_little_is_read_and_nothing_confidently_wrong(invoice):
    for budget in (16, 40):
        lines = invoice.read(budget)
        assert len(lines) < 20
        sure = [line.text.lower() for line in lines if line.confidence > SURE]
        assert all(likeness([text.lower() for text in INVOICE], [text]) > 0.7 for text in sure)


def test_only_print_that_is_large_enough_in_the_chosen_cells_is_read(invoice):
    read = invoice.read_look(150)
    assert len({line.level for line in read.lines}) > 1
    assert all((line.box[3] - line.box[1]) / 2**line.level >= 0.95 * READ_PRINT for line in read.lines)


def test_a_question_leads_to_its_lines(invoice):
    asked = {"What is the total amount?": "926.52", "What is the invoice number?": "2026-0417"}
    for question, answer in asked.items():
        read = invoice.read_look(48, question)
        assert read.glance.allocator == "foveated" and read.glance.question == question and read.visual_tokens == 48
        assert likeness(texts(read.lines), [answer]) > 0.8
    first, second = (set(texts(invoice.read(48, question))) for question in asked)
    assert len(first ^ second) > 5


@pytest.mark.parametrize("budget", [1, 16, 100, 273])
def test_the_budget_is_exact(invoice, budget):
    read = invoice.read_look(budget)
    assert read.visual_tokens == budget == read.glance.budget and read.glance.allocator == "dag"


def test_how_to_look_can_be_said(invoice):
    read = invoice.read_look(90, allocator="pyramid", split=(1, 0, 0, 0))
    assert read.glance.allocator == "pyramid" and set(read.glance.selection.levels[0].tolist()) == {0}
    assert invoice.read_look(40, allocator="uniform").glance.selection.indices is None
    fine = invoice.read_look(60, error=None).glance.selection
    assert not torch.equal(fine.indices, invoice.read_look(60).glance.selection.indices)
    spaces = invoice.read_look(60, "  ")
    assert spaces.glance.allocator == "dag"
    left, right = (invoice.read_look(60, allocator="foveated", fixation=at).glance for at in ((150, 270), (1050, 1000)))
    assert left.fixations.tolist() == [[150, 270]] and not torch.equal(left.selection.indices, right.selection.indices)
    with pytest.raises(InputError, match="no option 'colour'"):
        invoice.read(60, colour="red")
    with pytest.raises(InputError, match="budget"):
        invoice.read(0)


def test_every_allocator_can_be_read_from(reader):
    import homunculus

    page = reader.open(Image.fromarray(letter()[0].numpy()))
    for name in homunculus.list_allocators():
        read = page.read_look(30, allocator=name)
        assert 0 < read.visual_tokens <= 30 and all(line.confidence > 0 for line in read.lines)


# -- what was read before --------------------------------------------------------------------------------------


def test_the_same_look_is_not_read_twice(counted):
    reader, calls = counted
    page = reader.open(Image.fromarray(letter()[0].numpy()))
    assert calls == []
    first = page.read(200)
    assert sum(calls) >= len(first) >= len(TEXTS) - 1 and len(calls) == 1
    assert page.read(200) == first and len(calls) == 1
    again = reader.open(Image.fromarray(letter()[0].numpy())).read(200)
    assert again == first and len(calls) == 2  # nothing is kept beyond the page


def test_a_further_question_repeats_none_of_the_first_one_s_work(reader, monkeypatch):
    counts = count_work(reader, monkeypatch)
    page = reader.open(EXAMPLE)
    first = page.read_look(64, "What is the total amount?")
    once = dict(counts)
    assert once["found"] > 0 and once["encoded"] == 1 and once["read"] >= len(first.lines) > 0
    again = page.read_look(64, "What is the total amount?")
    assert again.glance is first.glance and again.lines == first.lines and counts == once
    page.read(64, "Who is the customer?")
    assert (counts["found"], counts["encoded"]) == (once["found"], 1)
    assert counts["read"] == len(page.texts) < 2 * once["read"]  # no line twice from the same cells


def test_a_look_is_kept_for_the_same_words_alone(invoice):
    question, first = "What is the total amount?", invoice.look("What is the total amount?", 24)
    assert invoice.look(question, 24) is first
    options: list[dict] = [
        {"budget": 25}, {"allocator": "dag"}, {"relevance": "saliency"}, {"fixation": (9.0, 9.0)}, {"fovea": 0.5},
    ]  # fmt: skip
    others = [
        invoice.look("Who is the customer?", 24),
        *(invoice.look(question, **{"budget": 24} | o) for o in options),
    ]
    assert len({id(look) for look in (first, *others)}) == len(others) + 1
    place = torch.tensor([9.0, 9.0])  # a tensor's values may change
    assert invoice.look(question, 24, fixation=place) is not invoice.look(question, 24, fixation=place)
    one, *more, last = invoice.looks([question, "Who pays?", question], 24)
    assert one is last is first and more[0].question == "Who pays?"
    with pytest.raises(InputError):
        invoice.look(question, True)
    for n in range(MAX_GLANCES + 3):
        invoice.look(f"{n}?", 8)
    assert len(invoice.glances) == MAX_GLANCES and invoice.look(question, 24) is not first


def test_pages_stay_open_up_to_so_many_pixels(reader):
    pages, image = page_cache(2 * 64 * 64), Image.new("RGB", (64, 64), "white")
    for key in "abac":
        pages[key] = pages.get(key) or reader.open(image)
    assert [*pages] == ["a", "c"]  # the one longest unused was closed
    pages["d"] = reader.open(Image.new("RGB", (640, 64), "white"))
    assert [*pages] == ["d"]


def test_lines_seen_better_are_read_anew_and_the_others_are_not(counted):
    reader, calls = counted
    page = reader.open(EXAMPLE)
    page.read(64, "What is the total amount?")
    first = sum(calls)
    page.read(64, "Who is the customer?")
    both = sum(calls)
    assert 0 < first < both == len(page.texts)
    page.read(64, "What is the total amount?")
    assert sum(calls) == both


def test_readings_that_are_kept_are_bounded(counted, monkeypatch):
    from homunculus.reader import session

    reader, _ = counted
    assert MAX_READ >= 1000
    monkeypatch.setattr(session, "MAX_READ", 3)
    page = reader.open(Image.fromarray(letter()[0].numpy()))
    assert len(page.read(200)) >= len(TEXTS) - 1 and len(page.texts) == 3


def test_of_a_limit_of_text_the_most_relevant_lines_are_read(counted):
    reader, calls = counted
    page = reader.open(EXAMPLE)
    glance = page.look("What is the total amount?", 273)
    lines, scores = page.read_shown(glance, 20)
    assert 0 < len(lines) == len(scores) <= 10 and sum(calls) <= 12
    assert min(scores) >= sorted(page.scores(glance.question))[-sum(calls)]
    every, _ = page.read_shown(glance)
    assert set(texts(lines)) <= set(texts(every)) and len(every) > len(lines)
    assert page.read_shown(glance, 0) == ([], [])


# -- odd images ------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
ODD = {
    "blank": np.full((800, 600, 3), 255, np.uint8),
    "noise": rng.integers(0, 256, (700, 500, 3), dtype=np.uint8),
    "photo": np.stack(
        np.broadcast_arrays(np.linspace(40, 220, 600)[:, None], np.linspace(200, 90, 800)[None], 128.0), 2
    ).astype(np.uint8),
    "tiny": np.full((5, 7, 3), 200, np.uint8),
    "one pixel": np.zeros((1, 1, 3), np.uint8),
    "thin": np.full((3, 4000, 3), 255, np.uint8),
}


@pytest.mark.parametrize("name", ODD)
def test_where_nothing_is_written_nearly_nothing_is_read(reader, name):
    page = reader.open(ODD[name])
    for budget, question in ((1, ""), (16, "What is the total?"), (273, "")):
        lines = page.read(budget, question)
        assert len(lines) <= 6 and all(line.confidence < 0.75 for line in lines)
    read = page.read_look(9)
    assert json.loads(read.to_json())["lines"] == [] or name == "noise"


# -- what comes out --------------------------------------------------------------------------------------------


def test_all_of_it_as_numbers(invoice):
    read = invoice.read_look(120)
    entries = read.to_dict()
    assert json.loads(read.to_json()) == entries and read.to_json().endswith("}\n")
    assert entries["visual_tokens"] == len(entries["tokens"]) == entries["budget"] == 120
    assert entries["image"] == {"width": 1240, "height": 1754} and len(entries["lines"]) == len(read.lines) > 10
    for row, line in zip(entries["lines"], read.lines, strict=True):
        assert row.keys() == {"text", "box", "confidence", "level"} and row["text"] == line.text
        assert tuple(row["box"]) == line.box and row["confidence"] == pytest.approx(line.confidence, abs=1e-4)


def test_pictures_and_numbers_are_saved(invoice, tmp_path):
    read = invoice.read_look(120)
    read.save(tmp_path / "read.png")
    read.save(tmp_path / "read.json")
    assert json.loads((tmp_path / "read.json").read_text()) == read.to_dict()
    framed, bare = (
        np.asarray(picture.convert("RGB")).astype(int) for picture in (read.picture(), read.glance.picture())
    )
    assert np.asarray(Image.open(tmp_path / "read.png")).shape == framed.shape
    assert framed.shape == bare.shape and 0.001 < (framed != bare).any(2).mean() < 0.2  # frames around the lines
    with pytest.raises(InputError, match="its ending must be"):
        read.save(tmp_path / "read.doc")


def test_a_reader_without_a_language_model_says_what_answers(invoice, reader):
    for ask in (lambda: invoice.ask("What is the total?"), lambda: reader.answer(invoice, ["What?"])):
        with pytest.raises(InputError, match=r"no language model: load_reader makes one that answers"):
            ask()


def test_what_loading_takes_is_said(reader, tmp_path):
    with pytest.raises(InputError, match="reading must be 'own' or 'ppocr', got 'aloud'"):
        load_page_reader(reading="aloud")
    with pytest.raises(InputError, match=r"no weights recognizer\.safetensors"):
        load_page_reader(tmp_path)
    with pytest.raises(InputError, match="no device 'abacus'"):
        load_page_reader(device="abacus")
    with pytest.raises(ImageError, match="above the limit of 1000"):
        reader.open(EXAMPLE, max_pixels=1000)


def test_pp_ocr_reads_the_same_strips():
    pytest.importorskip("rapidocr")
    pytest.importorskip("onnxruntime")
    lines = load_page_reader(reading="ppocr").open(EXAMPLE).read(273)
    assert share_read(texts(lines), INVOICE) > 0.7


# -- the command line ------------------------------------------------------------------------------------------


def test_read_prints_the_lines_and_how_many_tokens_they_took(homunculus, file):
    code, out, err = homunculus("read", file, "--budget", 150)
    rows = out.splitlines()
    assert code == 0 and err == "" and rows[-1].endswith(" lines in 150 tokens")
    assert len(rows) - 1 == int(rows[-1].split()[0]) >= len(TEXTS) - 1
    assert all("%, level " in row for row in rows[:-1])
    assert likeness([row.split("  ")[0] for row in rows], TEXTS) > 0.8


def test_read_writes_numbers_and_a_picture(homunculus, file, tmp_path):
    code, out, _ = homunculus(
        "read", file, "What is paid?", "-k", 80, "--json", tmp_path / "a.json", "--png", tmp_path / "a.png"
    )
    entries = json.loads((tmp_path / "a.json").read_text())
    assert code == 0 and str(tmp_path / "a.png") in out and Image.open(tmp_path / "a.png").width > 300
    assert entries["allocator"] == "foveated" and entries["question"] == "What is paid?"
    assert f"{len(entries['lines'])} lines in 80 tokens" in out
    code, out, err = homunculus("read", file, "-k", 80, "-a", "pyramid", "--json", "-")
    assert code == 0 and json.loads(out)["allocator"] == "pyramid" and "lines in 80 tokens" in err


def test_read_takes_a_page_of_a_pdf(homunculus, file, tmp_path):
    first, second = Image.new("L", (640, 800), 255), Image.open(file)
    first.save(tmp_path / "two.pdf", save_all=True, append_images=[second], resolution=72)
    found = []
    for page in (0, 1):
        code, out, _ = homunculus("read", tmp_path / "two.pdf", "-k", 150, "--page", page, "--dpi", 72, "--json", "-")
        assert code == 0
        found.append(json.loads(out))
    assert found[0]["lines"] == [] and len(found[1]["lines"]) >= len(TEXTS) - 1
    assert found[1]["image"] == {"width": 640, "height": 800}


WRONG = {
    "no such file": (("none.png",), "none.png"),
    "no budget": (("{file}", "--budget", 0), "budget"),
    "unknown allocator": (("{file}", "-a", "guess"), "guess"),
    "unknown recogniser": (("{file}", "--reading", "aloud"), "reading must be"),
    "no weights": (("{file}", "--weights", "nowhere"), "no weights recognizer.safetensors in nowhere"),
    "no device": (("{file}", "--device", "abacus"), "no device 'abacus'"),
    "no page": (("{file}", "--page", 7), "page"),
    "no picture": (("{file}", "--png", "out.doc"), "its ending must be"),
    "too large": (("{file}", "--max-pixels", 1000), "max_pixels"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_sentence_and_exit_code_2(homunculus, file, name):
    arguments, message = WRONG[name]
    code, _, err = homunculus("read", *(str(a).format(file=file) for a in arguments))
    assert code == 2 and message in err and err.startswith("homunculus: ") and err.count("\n") == 1
