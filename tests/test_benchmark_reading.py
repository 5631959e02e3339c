"""The benchmark of reading counts what it says, and the docs state what it measured."""

import json
from pathlib import Path

import numpy as np
import pytest

import reading
from homunculus.reader.lines import Line

ROOT = Path(__file__).parents[1]


def truth(*words: tuple[str, list[float]]) -> reading.Truth:
    return reading.Truth(Path("page.png"), [text for text, _ in words], np.array([box for _, box in words], np.float32))


def test_a_text_is_read_if_it_stands_as_a_whole_in_what_was_read_there():
    page = truth(("total", [10, 10, 50, 24]), ("12.50", [60, 10, 100, 24]), ("date", [10, 40, 50, 54]))
    lines = [Line("Total  12.5O", (8, 9, 102, 25)), Line("Date", (8, 39, 52, 55))]
    for kind in ("words", "lines"):
        right, wrong = reading.compare(page.texts, reading.from_look(lines, page, kind, 1.0))
        assert right == [1.0, 0.0, 1.0] and wrong == pytest.approx(1 / 14)
    assert reading.compare(page.texts, [[], [], []]) == ([0.0, 0.0, 0.0], 1.0)


@pytest.mark.parametrize(
    ("text", "line", "stands"),
    [
        ("31/", "3/31/95", True),
        ("b & w", "b&w web site", True),
        ("#", "#reps", True),
        ("3", "31/95", False),
        ("nov", "nov9", False),
        ("total", "totals", False),
        ("1.50", "11.50", False),
    ],
)
def test_whole_means_that_no_word_or_number_goes_on(text, line, stands):
    assert reading.stands_in(text, line) == stands


def test_half_size_looks_for_words_at_half_their_places():
    page = truth(("total", [20, 20, 100, 48]))
    assert reading.from_look([Line("total", (9, 9, 51, 25))], page, "words", 0.5) == [["total"]]
    assert reading.from_look([Line("total", (9, 9, 51, 25))], page, "words", 1.0) == [[]]


def test_the_docs_state_what_was_measured():
    results = json.loads((ROOT / "results" / "reading.json").read_text())
    page = (ROOT / "docs" / "reading.md").read_text()
    assert reading.table(results) in page
    assert results["machine"]["commit"] in page and results["date"] in page
    assert "with changes" not in results["machine"]["commit"]
