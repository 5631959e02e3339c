"""PP-OCR as a recogniser of strips."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from homunculus import InputError
from homunculus.reader import ppocr

TEXTS = [
    "Invoice No. 2024-117",
    "Total: $1,284.50",
    "No",
    "The quick brown fox jumps over the lazy dog",
    "alpha@example.org",
    "Straße, café, naïve",
    "7",
    "R&D budget (in %) = 37.5",
    "a longer line of text that goes on and on, and then some more words to fill the width of a page",
]


@pytest.fixture(scope="module")
def recognizer():
    pytest.importorskip("rapidocr")
    pytest.importorskip("onnxruntime")
    return ppocr.PPOCR()


def strips_of(texts: list[str], background: int = 255) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts drawn 48 pixels high, as strips [n, 1, 48, W] and widths [n]."""
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")), 30)
    widths = [int(font.getlength(text)) + 16 for text in texts]
    strips = torch.full((len(texts), 1, 48, max(widths)), background, dtype=torch.uint8)
    for i, (text, width) in enumerate(zip(texts, widths, strict=True)):
        image = Image.new("L", (width, 48), 255)
        ImageDraw.Draw(image).text((8, 6), text, 0, font)
        strips[i, 0, :, :width] = torch.from_numpy(np.array(image))
    return strips, torch.tensor(widths)


def test_drawn_lines_are_read_exactly(recognizer):
    found = recognizer(*strips_of(TEXTS))
    assert [text for text, _ in found] == TEXTS
    assert all(0.9 < confidence <= 1 for _, confidence in found)


def test_a_reading_depends_neither_on_batch_mates_nor_on_what_lies_behind_the_end(recognizer):
    strips, widths = strips_of(TEXTS[:4], background=90)
    together = recognizer(strips, widths)
    for i in range(4):
        [(text, confidence)] = recognizer(strips[i : i + 1, :, :, : widths[i]], widths[i : i + 1])
        assert text == together[i][0] and confidence == pytest.approx(together[i][1], abs=1e-3)


def test_an_empty_strip_and_no_strips_at_all(recognizer):
    assert recognizer(torch.full((1, 1, 48, 200), 255, dtype=torch.uint8), torch.tensor([200])) == [("", 0.0)]
    assert recognizer(torch.zeros(0, 1, 48, 64, dtype=torch.uint8), torch.zeros(0, dtype=torch.long)) == []


def test_strips_of_another_height_are_an_error(recognizer):
    for strips in (torch.zeros(1, 1, 32, 64, dtype=torch.uint8), torch.zeros(1, 1, 48, 64)):
        with pytest.raises(InputError, match="strips must be uint8"):
            recognizer(strips, torch.tensor([64]))
    with pytest.raises(InputError, match="1 strips but 2 widths"):
        recognizer(torch.zeros(1, 1, 48, 64, dtype=torch.uint8), torch.tensor([64, 64]))


def test_what_is_missing_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(ppocr, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"rapidocr and onnxruntime: pip install 'homunculus\[ocr\]'"):
        ppocr.PPOCR()


def test_batches_hold_every_strip_once_at_its_own_padding():
    widths = [5, 32, 33, 64, 700, 31, 1500] * 9
    found = ppocr.batches(widths, 48)
    assert sorted(row for rows, _ in found for row in rows) == list(range(len(widths)))
    assert all(0 <= columns - max(widths[row], 320) < 32 for rows, columns in found for row in rows)
    assert all(len(rows) * columns * 48 <= max(ppocr.BATCH_PIXELS, columns * 48) for rows, columns in found)
