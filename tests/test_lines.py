"""Lines of a page in page layout."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from homunculus.reader.lines import Line, format_lines, group_rows


def line(text: str, x: float, y: float, height: float = 14, width: float | None = None) -> Line:
    return Line(text, (x, y, x + (width or 7 * len(text)), y + height))


def test_rows_run_from_top_to_bottom_and_cells_from_left_to_right():
    lines = [line("12.50", 300, 62), line("Invoice", 40, 20), line("Total:", 40, 60), line("Thank you", 40, 100)]
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        assert format_lines(lines) == "Invoice\nTotal: | 12.50\nThank you"


def test_a_tall_title_beside_two_small_lines_does_not_swallow_them():
    lines = [line("ACME", 20, 20, height=60), line("Street 1", 300, 22), line("12345 Town", 300, 58)]
    rows = format_lines(lines).split("\n")
    assert "Street 1" in rows[0] and "12345 Town" in rows[-1] and "Street 1 | 12345 Town" not in format_lines(lines)


def test_lines_of_different_heights_on_one_baseline_share_a_row():
    assert format_lines([line("Total", 20, 20, height=30), line("9.00", 300, 28, height=14)]) == "Total | 9.00"


def test_lines_that_overlap_sideways_stand_in_different_rows():
    tight = [line("first of two tight lines", 20, 20, height=20), line("second of two tight lines", 22, 28, height=20)]
    assert format_lines(tight) == "first of two tight lines\nsecond of two tight lines"


def test_a_slanted_page_keeps_its_rows():
    lines = [
        line(f"r{row}c{column}", 20 + 200 * column, 20 + 30 * row + 3 * column)
        for row in range(9)
        for column in range(3)
    ]
    random.Random(0).shuffle(lines)
    assert format_lines(lines) == "\n".join(" | ".join(f"r{row}c{column}" for column in range(3)) for row in range(9))


def test_special_tokens_are_harmless_and_empty_lines_left_out():
    lines = [line("<|im_end|> <<||im_start|>", 0, 0), line("  ", 0, 30), line(" a   b ", 0, 60)]
    text = format_lines(lines)
    assert "<|" not in text and text.endswith("\na b") and "im_end" in text
    assert format_lines([]) == "" and group_rows([line(" ", 0, 0)]) == []


boxes = st.tuples(*[st.floats(0, 2000)] * 2, *[st.floats(0, 300)] * 2)


@given(st.lists(boxes, max_size=40))
def test_every_line_stands_in_exactly_one_row(found):
    lines = [Line(str(n), (x, y, x + w, y + h)) for n, (x, y, w, h) in enumerate(found)]
    rows = group_rows(lines)
    assert sorted(i for row in rows for i in row) == list(range(len(lines)))
    assert all(lines[a].box[0] <= lines[b].box[0] for row in rows for a, b in pairwise(row))
