"""Scores against cases worked by hand, and against a second, slow and plain writing of each definition."""

import json
from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homunculus import InputError
from homunculus.eval.data import items
from homunculus.eval.metrics import (
    CONTRACTIONS,
    SCORES,
    anls,
    answer_in,
    daquar,
    exact,
    metric_of,
    relaxed,
    score_of,
    vqa,
    vqa_form,
)

# ---- the definitions, written plainly -----------------------------------------------------------------------------


@cache
def plain_edits(one: str, other: str) -> int:
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return plain_edits(one[1:], other[1:])
    return 1 + min(plain_edits(one[1:], other), plain_edits(one, other[1:]), plain_edits(one[1:], other[1:]))


def plain_anls(said: str, answers: list[str]) -> float:
    best = 0.0
    for answer in answers:
        a, b = " ".join(said.strip().lower().split()), " ".join(answer.strip().lower().split())
        off = plain_edits(a, b) / max(len(a), len(b)) if a or b else 0
        if off <= 0.5:
            best = max(best, 1 - off)
    return best


def plain_relaxed(said: str, answers: list[str]) -> float:
    def value(text: str) -> float | None:
        try:
            if text[-1:] == "%":
                return float(text.rstrip("%")) / 100
            return float(text)
        except ValueError:
            return None

    for answer in answers:
        told, gold = value(said.strip()), value(answer.strip())
        if told is None or gold is None or gold == 0:
            right = said.strip().lower() == answer.strip().lower()
        else:
            right = abs(told - gold) / abs(gold) <= 0.05
        if right:
            return 1.0
    return 0.0


# wrong and right spellings as VQA's rules list them, those with two and three apostrophes and the odd one among them
SPELLED = {
    "aint": "ain't", "cant": "can't", "couldve": "could've", "couldnt": "couldn't", "couldn'tve": "couldn't've",
    "couldnt've": "couldn't've", "dont": "don't", "hed": "he'd", "hed've": "he'd've", "he'dve": "he'd've",
    "isnt": "isn't", "itll": "it'll", "maam": "ma'am", "notve": "not've", "oclock": "o'clock", "ow's'at": "'ow's'at",
    "'ows'at": "'ow's'at", "'ow'sat": "'ow's'at", "somebody'd": "somebodyd", "somebodyd've": "somebody'd've",
    "thats": "that's", "therere": "there're", "twas": "'twas", "wed've": "we'd've", "whats": "what's", "wont": "won't",
    "yall": "y'all", "yall'll": "y'all'll", "y'allll": "y'all'll", "yall'd've": "y'all'd've", "y'alld've": "y'all'd've",
    "y'all'dve": "y'all'd've", "youre": "you're",
}  # fmt: skip
DIGITS = {
    "none": "0", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10",
}  # fmt: skip
PUNCTUATION = [";", "/", "[", "]", '"', "{", "}", "(", ")", "=", "+", "\\", "_", "-", ">", "<", "@", "`", ",", "?", "!"]


def plain_form(text: str) -> str:
    text = "".join(" " if letter in "\n\t" else letter for letter in text).strip()
    threes = zip(text, text[1:], text[2:], strict=False)
    grouped = any(a.isdecimal() and b == "," and c.isdecimal() for a, b, c in threes)
    unmarked = ""
    for letter in text:
        if letter not in PUNCTUATION:
            unmarked += letter
        elif not grouped and letter + " " not in text and " " + letter not in text:
            unmarked += " "
    unstopped = ""
    for i, letter in enumerate(unmarked):
        if letter != "." or unmarked[i + 1 : i + 2].isdecimal():
            unstopped += letter
    words = []
    for word in unstopped.lower().split():
        word = DIGITS.get(word, word)
        if word not in ("a", "an", "the"):
            words.append(SPELLED.get(word, word))
    return " ".join(words)


def plain_vqa(said: str, answers: list[str]) -> float:
    scores = []
    for left_out in range(len(answers)):
        others = [plain_form(answer) for i, answer in enumerate(answers) if i != left_out]
        scores.append(min(1, sum(answer == plain_form(said) for answer in others) / 3))
    return sum(scores) / len(scores)


# ---- edit distance and ANLS ---------------------------------------------------------------------------------------

FEW = st.text("ab c", max_size=10)


@pytest.mark.parametrize(
    ("said", "answers", "score"),
    [
        ("1,234", ["1,234"], 1.0),
        ("Philip Moris", ["philip morris"], 1 - 1 / 13),
        ("Philip  Morris", [" PHILIP\nMORRIS\t"], 1.0),
        ("Philip Morris.", ["PHILIP MORRIS"], 1 - 1 / 14),  # a full stop is a letter too
        ("abcd", ["abxy"], 0.5),  # half wrong is not yet wrong, as DocVQA's own script counts
        ("abcde", ["abxyz"], 0.0),
        ("ab", ["abcd"], 0.5),
        ("ab", ["abcde"], 0.0),
        ("abcde", ["abcxy", "zzzzz"], 0.6),
        ("abcde", ["zzzzz", "abcdx", "abcxy"], 0.8),  # the best of all
        ("ab", ["abc"], 2 / 3),
        ("", ["yes"], 0.0),
        ("", [""], 1.0),
        (" ", [""], 1.0),
        ("yes", [], 0.0),
        ("ÉTÉ", ["été"], 1.0),
        ("été", ["ete"], 0.0),  # 2 of 3
    ],
)
def test_anls(said, answers, score):
    assert anls(said, answers) == pytest.approx(score) == plain_anls(said, answers)


@given(FEW, st.lists(FEW, max_size=3))
def test_anls_of_anything(said, answers):
    assert anls(said, answers) == pytest.approx(plain_anls(said, answers))


@pytest.mark.parametrize(
    ("lines", "answers", "there"),
    [
        (["Total:  EUR 926.52"], ["926.52"], True),
        (["TOTAL: 926"], ["total:  926"], True),
        (["14 March", "2026"], ["14 march 2026"], True),  # over two lines
        (["March", "14"], ["14 March"], False),
        (["926,52"], ["926.52"], False),
        (["a b"], ["x", "B"], True),
        (["abc"], [" ", ""], False),  # an empty answer stands nowhere
        ([], ["a"], False),
    ],
)
def test_an_answer_stands_in_lines(lines, answers, there):
    assert answer_in(lines, answers) is there


# ---- relaxed accuracy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "answers", "right"),
    [
        ("10.4", ["10"], True),
        ("10.5", ["10"], True),
        ("10.6", ["10"], False),
        ("9.5", ["10"], True),
        ("-10.5", ["-10"], True),
        ("10", ["-10"], False),
        ("1e3", ["1000"], True),
        ("45%", ["0.45"], True),  # per cent are hundredths
        ("45%", ["44%"], True),
        ("45%", ["44"], False),
        ("45", ["44"], True),
        ("45 %", ["0.45"], True),  # float does not mind the blank
        ("%", ["%"], True),
        ("1,050", ["1000"], False),  # no number to the script
        ("1,050", ["1,050"], True),
        ("$3", ["3"], False),
        ("0", ["0"], True),
        ("0.0", ["0"], False),  # nothing is within 5 % of 0: compared as text
        ("0.01", ["0"], False),
        ("0", ["0.001"], False),
        ("nigeria", [" Nigeria "], True),
        ("Nigeria.", ["Nigeria"], False),
        ("Niger", ["Nigeria"], False),
        ("ten", ["10"], False),
        ("3", ["2", "3"], True),
        ("nan", ["nan"], False),  # a number that equals none
        ("", [""], True),
        ("yes", [], False),
    ],
)
def test_relaxed_accuracy(said, answers, right):
    assert relaxed(said, answers) == float(right) == plain_relaxed(said, answers)


NUMERIC = st.one_of(st.text("0123456789.,%$-+e ab", max_size=6), st.integers(-40, 40).map(str))


@given(NUMERIC, st.lists(NUMERIC, max_size=3))
def test_relaxed_accuracy_of_anything(said, answers):
    assert relaxed(said, answers) == plain_relaxed(said, answers)


# ---- VQA accuracy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("The cat!", "cat"),
        ("a", ""),
        ("An apple, a day", "apple day"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("black /white-ish", "black white ish"),  # a slash beside a blank goes, the hyphen is a blank
        ("well-known - yes", "wellknown yes"),  # one hyphen beside a blank: all hyphens go
        ("1,000", "1000"),
        ("1,000-2,000", "10002000"),  # a comma between digits: all marks go
        ("1, 2", "1 2"),
        ("3.5", "3.5"),
        (".5", ".5"),
        ("3.", "3"),
        ("v.2", "v.2"),  # a digit follows
        ("U.S.A.", "usa"),
        ("...", ""),
        ("5:30", "5:30"),  # a colon is no mark
        ("john's", "john's"),
        ("#1 & 50%", "#1 & 50%"),
        ("None", "0"),
        ("Ten two", "10 2"),
        ("twenty-one", "twenty 1"),
        ("dont", "don't"),
        ("Im", "im"),  # the rules have it with a capital, which no longer stands there
        ("somebody'd", "somebodyd"),
        ("Y'ALL'DVE", "y'all'd've"),
        (" two\n dogs\t", "2 dogs"),
        ("", ""),
        ("a_b", "b"),
    ],
)
def test_vqa_form(text, form):
    assert vqa_form(text) == form == plain_form(text)


def test_contractions_are_those_of_the_rules():
    assert SPELLED.items() <= CONTRACTIONS.items() and len(CONTRACTIONS) == 114
    assert not {"well", "were", "ill", "shell", "wed", "id", "shed"} & CONTRACTIONS.keys()


TOKENS = [*SPELLED, *DIGITS, *PUNCTUATION, *"aA.,'7 x\n", "The", "1,0", "é", "  "]
ANYTHING = st.lists(st.sampled_from(TOKENS), max_size=6).map("".join)


@given(ANYTHING)
def test_vqa_form_of_anything(text):
    assert vqa_form(text) == plain_form(text)


@pytest.mark.parametrize(
    ("said", "answers", "score"),
    [
        ("2", ["two"] * 2 + ["2"] + ["three"] * 7, (3 * 2 / 3 + 7) / 10),  # each of the three has two others
        ("cat", ["cat"] + ["dog"] * 9, 9 / 3 / 10),
        ("cat", ["cat"] * 4 + ["dog"] * 6, 1.0),
        ("The cat!", ["cat"] * 10, 1.0),
        ("dog", ["cat"] * 10, 0.0),
        ("3.5", ["3.5"] * 4 + ["35"] * 6, 1.0),
        ("yes", ["yes"] * 2, 1 / 3),
        ("", [""] * 10, 1.0),
    ],
)
def test_vqa_accuracy(said, answers, score):
    assert vqa(said, answers) == pytest.approx(score) == plain_vqa(said, answers)


def test_a_single_answer_is_right_or_wrong():
    assert vqa("A red, large bus", ["red large bus"]) == 1.0
    assert vqa("bus", ["car"]) == vqa("bus", []) == 0.0


@given(st.sampled_from("abc"), st.lists(st.sampled_from(["a", "b.", "C", "the b"]), min_size=2, max_size=10))
def test_vqa_accuracy_of_anything(said, answers):
    assert vqa(said, answers) == pytest.approx(plain_vqa(said, answers))


# ---- exact match --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "answers", "right"),
    [
        ("Garbage bin.", ["garbage_bin", "garbage bin"], True),
        ("bin", ["garbage bin"], False),
        ("  EXIT ", ["exit"], True),
    ],
)
def test_exact(said, answers, right):
    assert exact(said, answers) == float(right)


@pytest.mark.parametrize(
    ("said", "answers", "right"),
    [
        ("sofa, garbage bin", ["garbage_bin, sofa"], True),
        ("Sofa,Garbage_Bin.", ["garbage_bin, sofa", "garbage bin, sofa"], True),
        ("sofa", ["garbage_bin, sofa"], False),
        ("sofa, bin, chair", ["sofa, bin"], False),
        ("sock", ["sock, sock"], False),  # as often
        ("sock,sock", ["sock, sock"], True),
        ("sofa,", ["sofa"], True),
        ("chairs", ["chair"], False),  # no word forms
        ("2", ["2"], True),
        ("", ["chair"], False),
    ],
)
def test_daquar(said, answers, right):
    assert daquar(said, answers) == float(right)


THINGS = st.lists(st.sampled_from(["cup", "Cup", "tea_cup", "tea cup", "bed"]), min_size=1, max_size=4)


@given(THINGS, st.lists(THINGS, max_size=3))
def test_daquar_of_anything(said, answers):
    def counted(things: list[str]) -> Counter:
        return Counter(thing.lower().replace("_", " ") for thing in things)

    right = any(counted(said) == counted(answer) for answer in answers)
    assert daquar(", ".join(said), [",".join(answer) for answer in answers]) == float(right)


def test_the_scores_of_sets():
    assert score_of("docvqa") is score_of("infovqa") is score_of("docvqa_gaze") is score_of("sroie") is anls
    assert score_of("chartqa") is relaxed and score_of("daquar") is daquar and score_of("something") is anls
    assert score_of("textvqa") is score_of("vqav2") is score_of("coco_vqa") is vqa
    assert {metric_of(name) for name in SCORES} == {"anls", "relaxed", "exact", "vqa"}
    assert metric_of("daquar") == metric_of("icdar2015") == "exact" and metric_of("something") == "anls"


# ---- sets ---------------------------------------------------------------------------------------------------------


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
