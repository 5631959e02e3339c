"""From strips of text lines to text."""

from pathlib import Path

import pytest
import torch

from homunculus import image
from homunculus.reader import Recognizer, load_finder, load_recognizer
from homunculus.reader import recognizer as recognizing
from homunculus.reader.letters import BLANK, even_case
from homunculus.reader.recognizer import CLASSES, STRIDE, decode
from homunculus.reader.strips import MAX_WIDTH, STRIP_HEIGHT, columns_of, grey, grey_pyramid, sample_strips
from lined import INVOICE, TEXTS, letter, likeness, lines_in, share_read

EXAMPLE = Path(__file__).parents[1] / "examples" / "invoice.png"


@pytest.mark.parametrize(
    ("read", "meant"),
    [
        ("InvOiCe nO. 12", "Invoice nO. 12"),
        ("PAiD OUT: DESCRiPTiON", "PAID OUT: DESCRIPTION"),
        ("TAxABlE AccOUNT", "TAXABLE ACCOUNT"),
        ("ServiCe ChanGe", "Service Change"),
        ("McDonald pays by AutoPay, USED kWh", "McDonald pays by AutoPay, USED kWh"),
        ("BAlance HGR25-R Ångström", "BAlance HGR25-R Ångström"),
        ("", ""),
    ],
)
def test_words_of_mixed_case_are_evened_out(read, meant):
    assert even_case(read) == meant == even_case(meant)


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return load_recognizer()


@pytest.fixture(scope="module")
def strips() -> tuple[torch.Tensor, torch.Tensor]:
    """Strips of TEXTS in one size, the lines as high as their font."""
    page, boxes = letter()
    lines = lines_in(boxes)
    lines[:, 4] = 26
    return sample_strips(grey_pyramid(page, 4), lines)


def logits_of(*paths: str, prob: float = 0.9) -> torch.Tensor:
    """Logits of paths, a character for each time step, "_" for a blank, each of them with this probability."""
    logits = torch.zeros(len(paths), max(map(len, paths)), CLASSES)
    for row, path in zip(logits, paths, strict=True):
        for step, char in zip(row, path, strict=False):
            others = torch.tensor((1 - prob) / (CLASSES - 1)).log()
            step[:] = others
            step[BLANK if char == "_" else ord(char) - 31] = torch.tensor(prob).log()
    return logits


# -- decoding --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("hheel_llo", "hello"),
        ("_a_a__", "aa"),
        ("aaa", "a"),
        ("11_1", "11"),
        ("_ a  _  b _", "a b"),
        ("~!_~", "~!~"),
        ("____", ""),
        ("  _ ", ""),
    ],
)
def test_repeats_are_one_character_and_blanks_none(path, text):
    [(found, sure)] = decode(logits_of(path), torch.tensor([STRIDE * len(path)]))
    assert found == text and sure == pytest.approx(0.9 if text else 0.0, abs=1e-5)


def test_a_strip_ends_where_its_width_does():
    logits = logits_of("abcdef", "abcdef", "abcdef")
    found = decode(logits, torch.tensor([24, 9, 8]))
    assert [text for text, _ in found] == ["abcdef", "abc", "ab"]  # a time step that has begun counts


def test_the_confidence_is_the_mean_over_the_characters():
    logits = torch.cat((logits_of("a", prob=0.9), logits_of("_", prob=0.3), logits_of("b", prob=0.5)), 1)
    [(text, sure)] = decode(logits, torch.tensor([12]))
    assert text == "ab" and sure == pytest.approx(0.7, abs=1e-5)


def test_batches_hold_every_strip_once_in_order_of_width():
    widths = torch.randint(8, MAX_WIDTH, (300,), generator=torch.Generator().manual_seed(0)).tolist()
    order = sorted(range(300), key=widths.__getitem__)
    found = recognizing._batches(order, widths, STRIP_HEIGHT, cuda=False)
    assert [row for rows in found for row in rows] == order and len(found) > 10
    for rows in found:
        assert len(rows) * STRIP_HEIGHT * max(widths[row] for row in rows) <= recognizing.BATCH_PIXELS


# -- the network -----------------------------------------------------------------------------------------------


def test_no_strips_have_no_texts(recognizer):
    assert recognizer(torch.zeros(0, 1, STRIP_HEIGHT, 32, dtype=torch.uint8), torch.zeros(0, dtype=torch.long)) == []


def test_what_is_blank_is_not_read(recognizer):
    for value in (255, 128, 0):
        strip = torch.full((1, 1, STRIP_HEIGHT, 320), value, dtype=torch.uint8)
        [(text, sure)] = recognizer(strip, torch.tensor([280]))
        assert len(text) <= 2 and (text or sure == 0)


def test_a_reading_depends_neither_on_batch_mates_nor_on_what_lies_behind_the_end(recognizer, strips):
    pixels, widths = strips
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.manual_seed(0)
    noise = torch.randint(0, 256, (1, 1, STRIP_HEIGHT, columns_of(MAX_WIDTH)), dtype=torch.uint8)
    others = torch.full((len(order) + 1, *noise.shape[1:]), 40, dtype=torch.uint8)
    others[:-1, ..., : pixels.shape[3]] = pixels[order]
    others[-1:] = noise
    for row, width in enumerate(widths[order].tolist()):
        others[row, ..., width:] = noise[0, ..., width:]
    together = recognizer(others, torch.cat((widths[order], torch.tensor([MAX_WIDTH]))))
    assert len({int(width) for width in widths}) == len(widths)
    for place, row in enumerate(order.tolist()):
        [(text, sure)] = recognizer(pixels[row : row + 1], widths[row : row + 1])
        assert together[place][0] == text and together[place][1] == pytest.approx(sure, abs=1e-4)


@torch.no_grad()
def test_logits_of_a_strip_are_the_same_in_a_wider_batch():
    torch.manual_seed(0)
    model = Recognizer([8, 8, 16, 16], 24, 1, 2).eval()
    strip, width = torch.rand(1, 1, STRIP_HEIGHT, 160) * 2 - 1, torch.tensor([128])
    wide = torch.cat((strip, torch.rand(1, 1, STRIP_HEIGHT, 320)), 3)
    alone, together = model.logits(strip, width), model.logits(wide, width)
    assert alone.shape == (1, 40, CLASSES) and together.shape == (1, 120, CLASSES)
    torch.testing.assert_close(together[:, :32], alone[:, :32], atol=1e-5, rtol=1e-4)


def test_long_lines_are_read_whole_in_several_batches(recognizer, strips, monkeypatch):
    monkeypatch.setattr(recognizing, "BATCH_PIXELS", 1)
    pixels, widths = strips
    alone = recognizer(pixels, widths)
    monkeypatch.undo()
    together = recognizer(pixels, widths)
    assert [text for text, _ in alone] == [text for text, _ in together]


def test_drawn_lines_are_read(recognizer, strips):
    found = recognizer(*strips)
    texts = [text for text, _ in found]
    assert share_read([t.lower() for t in texts], [t.lower() for t in TEXTS]) >= 0.5 and likeness(texts, TEXTS) > 0.85
    assert all(0.7 < sure <= 1 for _, sure in found)


def test_most_lines_of_the_invoice_are_read_exactly(recognizer):
    page = grey(image.load(EXAMPLE)[None])[0]
    texts = [text for text, _ in recognizer(*sample_strips(grey_pyramid(page, 4), load_finder().find(page).lines))]
    assert share_read(texts, INVOICE) > 0.55 and likeness(texts, INVOICE) > 0.85
