"""Automatic questions of scanned pages, and where their answers stand."""

import random

import numpy as np

from homunculus.train.scans.box_questions import AutoQuestion, WordLine, box_questions

HIGH = 20


def line(text: str, x: float, y: float) -> WordLine:
    words = text.split(" ")
    boxes, at = [], x
    for word in words:
        boxes.append((at, y, at + 10 * len(word), y + HIGH))
        at += 10 * (len(word) + 1)
    return WordLine(words, np.array(boxes, np.float32))


def answer(page: list[WordLine], one: AutoQuestion) -> str:
    """The words of a page that stand in the box of an answer."""
    x0, y0, x1, y1 = one.box[0].tolist()
    words = ((word, *box) for row in page for word, box in zip(row.words, row.boxes.tolist(), strict=True))
    return " ".join(word for word, a, b, c, d in words if a >= x0 and b >= y0 and c <= x1 and d <= y1)


PAGE = [
    line("Invoice", 400, 0),
    line("2026-0417", 500, 0),
    line("Due date:", 400, 40),
    line("13 April 2026", 500, 40),
    line("Customer: Ada Kern", 0, 40),
    line("Item", 0, 100),
    line("Price", 300, 100),
    line("Amount", 500, 100),
    line("Oak plank", 0, 140),
    line("18.50", 300, 140),
    line("222.00", 500, 140),
    line("Brass hinge", 0, 180),
    line("3.15", 300, 180),
    line("75.60", 500, 180),
    line("Please pay within thirty days of the receipt of this letter", 0, 400),
]


def test_keys_and_cells_are_asked_about():
    found = {one.names: one for one in box_questions(PAGE)}
    answers = {names: answer(PAGE, one) for names, one in found.items()}
    assert answers["Invoice",] == "2026-0417" and answers["Due date",] == "13 April 2026"
    assert answers["Customer",] == "Ada Kern"  # in one line with its key
    np.testing.assert_array_equal(found["Customer",].box, [[100, 40, 180, 60]])
    assert answers["Oak plank", "Price"] == "18.50" and answers["Brass hinge", "Amount"] == "75.60"
    np.testing.assert_array_equal(found["Brass hinge", "Amount"].box, [[500, 180, 550, 200]])
    assert answers["Oak plank",] == "18.50"  # what stands next to it, not what comes later in the row
    assert not any("Please" in name for names in found for name in names)


def test_what_is_named_twice_is_not_asked_about():
    twice = [*PAGE, line("Invoice", 0, 500), line("2026-0418", 100, 500)]
    assert ("Invoice",) not in {one.names for one in box_questions(twice)}
    assert box_questions([]) == [] and box_questions([line("alone", 0, 0)]) == []


def test_they_are_worded_in_many_ways_that_name_what_is_meant():
    one = next(one for one in box_questions(PAGE) if one.names == ("Oak plank", "Price"))
    phrased = [one.phrase(random.Random(seed)) for seed in range(60)]
    assert len({ask.text for ask in phrased}) > 10
    assert all("oak plank" in ask.text.lower() and "price" in ask.text.lower() for ask in phrased)
    assert all(ask.boxes is one.box and ask.boxes.shape == (1, 4) for ask in phrased)


def test_what_is_the_only_one_of_its_form_is_asked_for_by_it():
    page = [
        line("Harvest report", 0, 0),
        line("Rosenau, 13 April 2026", 0, 60),
        line("Call 555 - 010 or (555) 010-4711", 0, 90),
    ]
    page[0] = WordLine(page[0].words, page[0].boxes * np.array([1, 1, 1, 1.6], np.float32))
    page += [line("paid 12 %", 0, 120), line("of 40 %", 0, 150), line("12", 300, 1000)]
    found = {one.templates[0]: one for one in box_questions(page) if one.templates}
    assert {first: answer(page, one) for first, one in found.items()} == {
        "What is the date?": "13 April 2026",
        "What is the telephone number?": "(555) 010-4711",
        "What is the title of the document?": "Harvest report",
        "What is the page number?": "12",
    }  # two percentages: none
    assert found["What is the date?"].box[0].tolist() == [90, 60, 220, 80]  # without the place before it
    assert all(one.phrase(random.Random(0)).text in one.templates for one in found.values())
