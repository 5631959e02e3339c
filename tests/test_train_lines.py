"""Pages to learn lines from: segments, texts, shares of sets, and the store of their pixels."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from homunculus import InputError
from homunculus.reader.strips import grey_pyramid
from homunculus.train.scans import line_pages
from homunculus.train.scans.folders import is_val
from homunculus.train.scans.line_pages import OcrPage, read_pages, segments_of
from homunculus.train.scans.page_store import LEVELS, PageStore, shares_of
from ocr_pages import HEIGHT, WIDTH, write_pages
from training import CPU


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_pages(tmp_path_factory.mktemp("data"))


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
