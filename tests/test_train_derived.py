"""Questions that the lines of a page ask by themselves."""

import random

import numpy as np

from homunculus.train.page_lines import WordLine
from homunculus.train.scans.box_questions import derived

HIGH = 20


def line(text: str, x: float, y: float) -> WordLine:
    words = text.split(" ")
    boxes, at = [], x
    for word in words:
        boxes.append((at, y, at + 10 * len(word), y + HIGH))
        at += 10 * (len(word) + 1)
    return WordLine(words, np.array(boxes, np.float32))


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
    found = {one.names: one for one in derived(PAGE)}
    assert found["Invoice",].answer == "2026-0417" and found["Due date",].answer == "13 April 2026"
    assert found["Customer",].answer == "Ada Kern"  # in one line with its key
    np.testing.assert_array_equal(found["Customer",].box, [[100, 40, 180, 60]])
    assert found["Oak plank", "Price"].answer == "18.50" and found["Brass hinge", "Amount"].answer == "75.60"
    np.testing.assert_array_equal(found["Brass hinge", "Amount"].box, [[500, 180, 550, 200]])
    assert found["Oak plank",].answer == "18.50"  # what stands next to it, not what comes later in the row
    assert not any("Please" in name for names in found for name in names)


def test_what_is_named_twice_is_not_asked_about():
    twice = [*PAGE, line("Invoice", 0, 500), line("2026-0418", 100, 500)]
    assert ("Invoice",) not in {one.names for one in derived(twice)}
    assert derived([]) == [] and derived([line("alone", 0, 0)]) == []


def test_they_are_worded_in_many_ways_that_name_what_is_meant():
    one = next(one for one in derived(PAGE) if one.names == ("Oak plank", "Price"))
    said = [one.said(random.Random(seed)) for seed in range(60)]
    assert len({ask.text for ask in said}) > 10
    assert all("oak plank" in ask.text.lower() and "price" in ask.text.lower() for ask in said)
    assert all(ask.answer == "18.50" and ask.boxes.shape == (1, 4) for ask in said)


def test_what_is_the_only_one_of_its_form_is_asked_for_by_it():
    page = [
        line("Harvest report", 0, 0),
        line("Rosenau, 13 April 2026", 0, 60),
        line("Call 555 - 010 or (555) 010-4711", 0, 90),
    ]
    page[0] = WordLine(page[0].words, page[0].boxes * np.array([1, 1, 1, 1.6], np.float32))
    page += [line("paid 12 %", 0, 120), line("of 40 %", 0, 150), line("12", 300, 1000)]
    asked = {one.asked: (one.answer, one.box[0].tolist()) for one in derived(page) if one.asked}
    answers = {ways[0]: answer for ways, (answer, _) in asked.items()}
    assert answers == {
        "What is the date?": "13 April 2026",
        "What is the telephone number?": "(555) 010-4711",
        "What is the title of the document?": "Harvest report",
        "What is the page number?": "12",
    }  # two percentages: none
    box = next(box for ways, (_, box) in asked.items() if ways[0] == "What is the date?")
    assert box == [90, 60, 220, 80]  # without the place before it
    assert all(one.said(random.Random(0)).text in one.asked for one in derived(page) if one.asked)
