"""Rules that go by what cells would lose, and how a question's words share out orientations."""

import pytest

from homunculus import Eye, allocate
from homunculus.allocators.frequency import orientation_shares
from homunculus.allocators.wording import Wording
from trees import SQUARE, flat, one_place


def test_dag_splits_where_the_error_is():
    error = one_place(SQUARE, 1700, 1700, 200) * SQUARE.span.double() ** 2
    selection = allocate("dag", SQUARE, flat(SQUARE), 273, error=error)
    fine = selection.centre[0][selection.levels[0] == 0]
    assert len(fine) > 50 and int((fine > 1024).all(1).sum()) >= len(fine) - 2, "but for the tokens left over"


def test_more_detail_refines_more_evenly():
    relevance = one_place(SQUARE, 500, 500, 100)
    fine = [int((allocate("dag", SQUARE, relevance, 273, detail=d).levels == 0).sum()) for d in (0.0, 1.0, 3.0)]
    assert fine[0] >= fine[1] > fine[2]


@pytest.mark.parametrize(
    ("question", "side"),
    [
        ("What does the text say?", "left"),
        ("What is written in the second line?", "left"),
        ("How many windows does the facade have?", "right"),
        ("Is there a tower or a fence?", "right"),
    ],
)
def test_frequency_gives_horizontal_detail_to_text_and_vertical_to_facades(stripes, question, side):
    glance = Eye("frequency", "information", 273).look(stripes, question)
    fine = glance.selection.centre[0][glance.selection.levels[0] == 0][:, 0]
    left, right = int((fine < 512).sum()), int((fine > 512).sum())
    assert left + right > 80
    assert (left > 2 * right) if side == "left" else (right > 2 * left)


def test_frequency_treats_open_questions_alike_and_shares_can_be_told(stripes):
    glance = Eye("frequency", "information", 273).look(stripes, "What is this?")
    fine = glance.selection.centre[0][glance.selection.levels[0] == 0][:, 0]
    assert abs(int((fine < 512).sum()) - int((fine > 512).sum())) < 20
    told = Eye("frequency", "information", 273, shares=(0, 0, 1, 0)).look(stripes, "What is written?")
    fine = told.selection.centre[0][told.selection.levels[0] == 0][:, 0]
    assert int((fine > 512).sum()) > 0.9 * len(fine)


def test_the_shares_of_orientations_are_those_of_the_specification():
    shares = orientation_shares(["What does it say?", "the building", "anything"], 4)
    assert shares.tolist() == [[128, 32, 32, 32], [32, 32, 128, 32], [32, 32, 32, 32]]


def test_wording_reads_kinds_of_words():
    assert Wording.of("What is written on the building's sign?").text == 1
    assert Wording.of("") == Wording(0, 0, False, False, False)
    assert Wording.of("Describe everything").broad and Wording.of("first row").rows
