"""Scores against cases worked by hand and the definitions of the sets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homunculus import InputError
from homunculus.eval.data import items
from homunculus.eval.metrics import anls, edits, exact, number, relaxed, score_of, vqa


@pytest.mark.parametrize(
    ("said", "answers", "score"),
    [
        ("1,234", ["1,234"], 1.0),
        ("Philip Moris", ["philip morris"], 1 - 1 / 13),
        ("Philip  Morris.", ["PHILIP MORRIS"], 1.0),
        ("abcd", ["abxy"], 0.0),  # half wrong is wrong
        ("abcde", ["abcxy", "zzzzz"], 0.6),
        ("", ["yes"], 0.0),
        ("yes", [], 0.0),
    ],
)
def test_anls(said, answers, score):
    assert anls(said, answers) == pytest.approx(score)


@pytest.mark.parametrize(
    ("said", "answers", "right"),
    [
        ("10.4", ["10"], True),
        ("10.6", ["10"], False),
        ("1,050", ["1000"], True),
        ("45%", ["44"], True),
        ("$3", ["3"], True),
        ("0", ["0"], True),
        ("0.01", ["0"], False),
        ("nigeria", ["Nigeria"], True),
        ("Niger", ["Nigeria"], False),
        ("ten", ["10"], False),
    ],
)
def test_relaxed_accuracy(said, answers, right):
    assert relaxed(said, answers) == float(right)


def test_vqa_accuracy():
    ten = ["two"] * 2 + ["2"] * 1 + ["three"] * 7
    assert vqa("2", ten) == pytest.approx((3 * 2 / 3 + 7 * 1.0) / 10)  # three said so; each of them has two others
    assert vqa("The cat!", ["cat"] * 10) == 1.0 and vqa("dog", ["cat"] * 10) == 0.0
    assert vqa("A red, large bus", ["red large bus"]) == 1.0
    assert vqa("3.5", ["3.5"] * 4 + ["35"] * 6) == pytest.approx((4 * 1.0 + 6 * 1.0) / 10)


def test_exact_and_number():
    assert exact("Garbage bin.", ["garbage_bin", "garbage bin"]) == 1.0 and exact("bin", ["garbage bin"]) == 0.0
    assert number("$1,234.50") == 1234.5 and number("12 %") == 12 and number("about 3") is None
    assert score_of("docvqa") is anls and score_of("chartqa") is relaxed and score_of("something") is anls


@given(st.text("ab c", max_size=12), st.text("ab c", max_size=12))
def test_edits_are_a_distance(one, other):
    assert edits(one, other) == edits(other, one) <= max(len(one), len(other))
    assert (edits(one, other) == 0) == (one == other)
    assert edits(one + "z", other + "z") <= edits(one, other) + 0


def test_items_are_read_page_by_page(tmp_path):
    place = tmp_path / "docvqa" / "val"
    place.mkdir(parents=True)
    rows = [
        {"image": f"images/{name}.webp", "question": f"q{i}", "answers": [i, "x"], "qid": i}
        for i, name in enumerate("bab")
    ]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = items(tmp_path, "docvqa")
    assert [item.qid for item in found] == ["1", "0", "2"] and found[0].answers == ("1", "x")
    assert found[0].image == place / "images" / "a.webp" and len(items(tmp_path, "docvqa", limit=2)) == 2
    with pytest.raises(InputError, match="no set of questions"):
        items(tmp_path, "sroie")
    (place / "questions.jsonl").write_text('{"image": "x"}\n')
    with pytest.raises(InputError, match="cannot be used"):
        items(tmp_path, "docvqa")
