"""Questions of training pages and their answers, worked out anew from what stands on the page."""

import random
import re
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from homunculus.reader.prompt import NOT_FOUND
from homunculus.train.synth.documents import reasoning, wording
from homunculus.train.synth.documents.asking import complete, distinct
from homunculus.train.synth.documents.page import DrawnPage, DrawnQuestion, Pen, cleaned
from homunculus.train.synth.layouts import KINDS
from homunculus.train.synth.text import Texts
from test_train_layouts import CANVASES, TYPE, WORKED, page

SEEDS = 12
SIGNS = {
    "fax": r"fax|facsimile|telecop",
    "phone": r"phone|\btel|(?<!\d)\d{3}[-. /]\d{4}(?!\d)",
    "email": r"@|mail",
    "url": r"www|http|web|\.(com|net|org|edu|gov|de|info|uk)",
}
TOPICS = {"fax number": "fax", "phone number": "phone", "e-mail address": "email", "website": "url"}
Asked = tuple[DrawnQuestion, str, dict[str, str]]  # with the name of its templates and what they were filled with


class Sheet:
    """A page with its pen, and for each of its questions how it was put."""

    def __init__(self, kind: str, height: int, width: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        put: dict[str, tuple[str, dict[str, str]]] = {}
        phrase = wording.phrase

        def noted(name: str, rng: random.Random, noun: str = "document", /, **slots: str) -> str:
            text = phrase(name, rng, noun, **slots)
            put.setdefault(text, (name, slots))
            return text

        with monkeypatch.context() as patch:
            patch.setattr(wording, "phrase", noted)
            self.pen = Pen(height, width, Texts.builtin(seed), TYPE, random.Random(seed))
            KINDS[kind](self.pen)
            self.layout = self.pen.finish(kind)
            complete(self.layout, self.pen)
        self.text = "\n".join(self.layout.lines).lower()
        self.asked: list[Asked] = [(asked, *put.get(asked.text, ("", {}))) for asked in self.layout.questions]

    def numbers(self, words: list[int]) -> list[float]:
        """The numbers that some words say, one a line."""
        lines: dict[int, str] = {}
        for word in words:
            line = int(self.layout.word_lines[word])
            lines[line] = lines.get(line, "") + self.layout.words[word]
        found = [re.search(r"-?\d[\d,]*(\.\d+)?", text) for text in lines.values()]
        return [float(match[0].replace(",", "")) for match in found if match]

    def height_of(self, text: str) -> float:
        """Where the line stands that has a text: its middle, from the top."""
        at = [line for line, said in enumerate(self.layout.lines) if text in said]
        exact = [line for line in at if cleaned(self.layout.lines[line]) == text or self.layout.lines[line] == text]
        return float(self.layout.line_boxes[(exact or at)[0], 1::2].mean())

    def named(self) -> dict[str, float]:
        """The numbers of a chart or a bill by their names, as far as they are printed; none if two share a name."""
        labels = {(key, value) for key, value, _ in self.pen.fields}
        facts = [fact for fact in self.layout.facts if fact not in labels and fact[0] != "date"]
        if self.layout.kind in ("table", "form") or len({name for name, _ in facts}) < len(facts):
            return {}
        return {name: float(re.sub(r"[^\d.-]", "", value)) for name, value in facts}

    def column(self, head: str) -> dict[str, float]:
        """The numbers of a table's column by the names of their rows, found by where they stand."""
        lines, boxes = self.layout.lines, self.layout.line_boxes
        if lines.count(head) != 1:
            return {}
        top = boxes[lines.index(head)]
        found = {}
        for box, text in zip(boxes, lines, strict=True):
            beside = np.flatnonzero(np.abs(boxes[:, 3] - box[3]) < 0.15 * (box[3] - box[1]))
            label = lines[beside[boxes[beside, 0].argmin()]]
            under = abs(box[2] - top[2]) < 1 or abs(box[0] + box[2] - top[0] - top[2]) < 2
            number = re.fullmatch(r"(US)?\$? ?(-?[\d,]+(\.\d+)?) ?%?", text)
            if under and number and box[1] > top[1] and label.lower() not in ("total", "totals", "all", "sum"):
                found[label] = float(number[2].replace(",", ""))
        return found


@pytest.fixture(params=KINDS)
def sheets(request, monkeypatch) -> list[Sheet]:
    """Some pages of each kind."""
    return [Sheet(request.param, *CANVASES[seed % 4], seed, monkeypatch) for seed in range(SEEDS)]


def stripped(text: str) -> str:
    return re.sub(r"^[#: ]+|[,;: ]+$", "", text) or text


def near(answer: str, value: float) -> bool:
    return abs(float(answer) - value) <= 0.0051 + 1e-9 * abs(value)


# -- answers that stand on the page ------------------------------------------------------------------------------


def test_what_stands_on_the_page_is_answered_by_its_words(sheets):
    for sheet in sheets:
        for asked, name, _ in sheet.asked:
            text = stripped(" ".join(sheet.layout.words[word] for word in asked.words))
            if asked.sort not in WORKED and asked.answer != text:
                assert asked.sort == "chart" and name in ("chart_value", "chart_series")  # read off the axis
                assert re.fullmatch(r"\d+(\.\d+)?", asked.answer)
            if asked.sort == "yesno":
                assert asked.answer in ("Yes", "No")
            if asked.sort == "count":
                assert asked.answer.isdigit()
            if asked.sort == "absent":
                assert asked.answer == NOT_FOUND == "not on the page" and not asked.words


def test_values_are_read_off_the_axis(monkeypatch):
    found = 0
    for seed in range(80):
        sheet = Sheet("bars", 1024, 768, seed, monkeypatch)
        layout = sheet.layout
        for asked, name, slots in sheet.asked:
            if name != "chart_value" or asked.sort != "chart" or asked.answer == layout.text_of(asked.words):
                continue
            middle = layout.word_boxes[asked.words][:, 0::2].mean()
            bars = [row for row in layout.fills if row[0] <= middle <= row[2] and row[3] - row[1] > 1]
            ticks = [line for line in range(len(layout.lines)) if layout.line_boxes[line, 2] < layout.fills[0, 0]]
            known = {sheet.layout.lines[line]: layout.line_boxes[line, 1::2].mean() for line in ticks}
            scale = [
                (float(re.sub("[, ]", "", text)), y) for text, y in known.items() if re.fullmatch(r"[\d,. ]+", text)
            ]
            if len(bars) != 1 or len(scale) < 4:
                continue
            (low, y0), (high, y1) = min(scale), max(scale)
            value = low + (bars[0][1] - y0) / (y1 - y0) * (high - low)
            assert float(asked.answer) == pytest.approx(value, abs=0.03 * high)
            assert slots["category"] in asked.text or asked.text.isupper()
            found += 1
    assert found >= 5


def test_an_answer_is_given_as_a_person_would():
    for text, answer in (("#1234", "1234"), (": $ 12.50,", "$ 12.50"), ("St. Louis, MO;", "St. Louis, MO"), (":", ":")):
        assert cleaned(text) == answer
    assert cleaned("12 %") == "12 %" and cleaned("Jones Co.") == "Jones Co."


# -- answers that are worked out ---------------------------------------------------------------------------------


def check_claims(sheet: Sheet, asked: DrawnQuestion, name: str, slots: dict[str, str]) -> bool:
    """Yes or no, worked out anew. False if this question cannot be."""
    name = name.removesuffix("_bill").removesuffix("_dated")
    numbers = sheet.numbers(asked.words)
    limit = float(slots.get("limit", "0"))
    fields = {key: cleaned(" ".join(sheet.layout.words[w] for w in words)) for key, _, words in sheet.pen.fields}
    lines = [line.lower() for line in sheet.layout.lines]
    paid = any(re.fullmatch(r"cash\W*", line) for line in lines)
    ways: dict[str, Callable[[], bool]] = {
        "mentions": lambda: slots["text"].lower() in sheet.text,
        "has": lambda: bool(re.search(SIGNS[TOPICS[slots["text"].partition(" ")[2]]], sheet.text)),
        "has_field": lambda: slots["key"].lower() in sheet.text,
        "is_value": lambda: fields[slots["key"]] == slots["value"],
        "is_named": lambda: fields[slots["key"]] == slots["value"],
        "is_filled": lambda: slots["key"] in fields,
        "is_marked": lambda: crossed(sheet.layout, asked.words),
        "total_above": lambda: numbers[0] > limit,
        "total_under": lambda: numbers[0] < limit,
        "in_cash": lambda: paid,
        "by_card": lambda: not paid,
        "is_before": lambda: sheet.height_of(slots["a"]) < sheet.height_of(slots["b"]),
    }
    said = [sheet.layout.words[word] for word in asked.words]
    if len(numbers) == 2 and slots.get("a") not in said:  # shown by their names, the numbers not being printed
        ways |= {"is_larger": lambda: numbers[0] > numbers[1], "is_smaller": lambda: numbers[0] < numbers[1]}
    if len(numbers) == 1 and slots.get("a") != sheet.layout.text_of(asked.words):
        ways |= {"is_above": lambda: numbers[0] > limit, "is_under": lambda: numbers[0] < limit}
    if name not in ways or (name in ("is_larger", "is_smaller") and not asked.words):
        return False
    assert asked.answer == ("Yes" if ways[name]() else "No"), (asked, name, slots)
    return True


def crossed(layout: DrawnPage, words: list[int]) -> bool:
    """Whether the box before an option is crossed, ticked or filled."""
    x0, y0, _, y1 = layout.word_boxes[words[0]]
    side = 0.7 * (y1 - y0) / 0.97
    left, right = x0 - 1.7 * side, x0 - 0.2 * side
    slanted = layout.strokes[
        (layout.strokes[:, 0] != layout.strokes[:, 2]) & (layout.strokes[:, 1] != layout.strokes[:, 3])
    ]
    drawn = np.concatenate((slanted[:, :4], layout.fills[layout.fills[:, 4] > 0.85][:, :4]))
    x, y = drawn[:, 0::2], drawn[:, 1::2]
    inside = (x.min(1) > left) & (x.max(1) < right) & (y.mean(1) > y0) & (y.mean(1) < y1)
    return bool(inside.any())


def test_yes_and_no_are_right(sheets):
    checked = [check_claims(sheet, *asked) for sheet in sheets for asked in sheet.asked if asked[0].sort == "yesno"]
    assert len(checked) >= SEEDS and np.mean(checked) > 0.6


def column_of(slots: dict[str, str]) -> str:
    """The column of a table that a question is about."""
    return re.sub(r"^ (in the column '|in |under )", "", slots.get("group", "")).removesuffix("'")


def check_counts(sheet: Sheet, asked: DrawnQuestion, name: str, slots: dict[str, str]) -> bool:
    """A count, worked out anew. False if this one cannot be."""
    layout, number, things = sheet.layout, int(asked.answer), slots.get("things", "")
    if asked.words and name not in ("times", "how_many_under"):
        parts = {int(layout.word_lines[word]) for word in asked.words}
        assert len(parts) >= number or things == "ingredients"
    if name == "times":
        words = [re.sub(r"[^a-z]+$|^[^a-z]+", "", word.lower()) for word in layout.words]
        assert words.count(slots["text"]) == number
    elif name == "how_many_under" and asked.words:
        assert number == len({int(layout.word_lines[word]) for word in asked.words})
    elif things == "filled fields":
        assert number == sum(not key.startswith("name of") for key, _, _ in sheet.pen.fields)
    elif things.startswith("columns") and layout.kind in ("article", "dense"):
        y0, y1 = layout.line_boxes[:, 1], layout.line_boxes[:, 3]
        middle = (y0 + y1)[:, None] / 2
        assert number <= ((y0 < middle) & (middle < y1)).sum(1).max() <= number + 1
    elif layout.kind in ("sign", "card") and things.startswith("lines"):
        assert number == len(layout.lines)
    elif layout.kind in ("receipt", "invoice") and name == "how_many" and sheet.named():
        assert number == len(sheet.named())
    elif things == "ingredients":
        said = re.search(r"ingredients: ([^.]*)\.", sheet.text.replace("\n", " "))
        assert said is not None and number == said[1].count(",") + 1
    elif things == "bars":
        bars = Counter(tuple(np.round(row[[3, 4, 5]], 3)) for row in layout.fills)
        lying = Counter(tuple(np.round(row[[0, 4, 5]], 3)) for row in layout.fills)
        assert number in (bars.most_common(1)[0][1], lying.most_common(1)[0][1])
    elif things in ("points",) and layout.kind == "line_chart":
        assert number == len(layout.fills)
    elif name.startswith("count_") and layout.kind in ("receipt", "invoice", "table"):
        above, limit = "above" in name, float(slots["limit"])
        known = sheet.column(column_of(slots)) if layout.kind == "table" else sheet.named()
        assert not known or number == sum((value > limit) == above for value in known.values())
    elif things == "columns" and layout.kind == "table":
        tops = layout.line_boxes[:, 1]
        rows = Counter(np.round(tops, 1).tolist())
        assert number in rows.values()
    else:
        return False
    return True


def test_counts_are_right(sheets):
    for sheet in sheets:
        for asked in sheet.asked:
            if asked[0].sort == "count":
                check_counts(sheet, *asked)


WORKED_OUT: dict[str, Callable[[list[float]], float]] = {
    "difference": lambda v: abs(v[0] - v[1]),
    "range": lambda v: abs(v[0] - v[1]),
    "sum": lambda v: v[0] + v[1],
    "average": lambda v: (v[0] + v[1]) / 2,
    "ratio": lambda v: v[0] / v[1],
    "sum_all": sum,
    "average_all": lambda v: sum(v) / len(v),
}


def check_comparison(sheet: Sheet, asked: DrawnQuestion, name: str, slots: dict[str, str]) -> bool:
    """A comparison, worked out anew. False if this one cannot be."""
    name = re.sub(r"_(chart|table|bill|dated)$", "", name)
    numbers, said = sheet.numbers(asked.words), sheet.layout.text_of(asked.words)
    if name in WORKED_OUT:
        if numbers:
            assert near(asked.answer, WORKED_OUT[name](numbers)), (asked, numbers)
        return bool(numbers)
    assert asked.answer == said, asked
    if name in ("earlier", "later"):
        assert asked.answer in (slots["a"], slots["b"])
        pick = min if name == "earlier" else max
        assert asked.answer == pick((slots["a"], slots["b"]), key=sheet.height_of)
        return True
    table = sheet.layout.kind == "table"
    known = sheet.column(column_of(slots)) if table else sheet.named()
    if len(known) < 2 or (slots.get("group") and not table):
        return False
    best = {"highest": max, "larger": max, "lowest": min, "smaller": min}.get(name)
    if best is None or said not in known:
        return False
    rivals = [slots["a"], slots["b"]] if "a" in slots else list(known)
    if not all(rival in known for rival in rivals):
        return False
    assert known[said] == best(known[rival] for rival in rivals), (asked, known)
    return True


def test_comparisons_are_right(sheets):
    asked = [(sheet, *asked) for sheet in sheets for asked in sheet.asked if asked[0].sort == "compare"]
    checked = [check_comparison(*one) for one in asked]
    kind = sheets[0].layout.kind
    if kind in ("table", "bars", "line_chart", "pie_chart", "receipt", "invoice"):
        assert len(asked) >= 3 * SEEDS and np.mean(checked) > 0.3


class Noted(Pen):
    """A pen that keeps its questions by the names of their templates."""

    def __init__(self) -> None:
        super().__init__(800, 800, Texts.builtin(0), TYPE, random.Random(1))
        self.put: list[tuple[str, DrawnQuestion]] = []

    def ask(self, sort: str, name: str, marks, /, **slots: str) -> None:
        super().ask(sort, name, marks, **slots)
        self.put.append((name, self.questions[-1]))

    def reply(self, sort: str, name: str, answer: str, marks=(), /, **slots: str) -> None:
        super().reply(sort, name, answer, marks, **slots)
        self.put.append((name, self.questions[-1]))


def series(values: list[float], **more) -> dict[str, set[str]]:
    """All answers to what is asked about a row of numbers, by templates; the numbers are called N0, N1 and so on."""
    pen = Noted()
    names = [pen.write(f"N{index}", 20, 20 + 30 * index, 14) for index in range(len(values))]
    marks = [pen.write(f"{value:g}", 120, 20 + 30 * index, 14) for index, value in enumerate(values)]
    for _ in range(60):
        reasoning.compare(pen, reasoning.Series("chart", "year", "sales", names, values, marks, shape="bar", **more))
    words, told = pen.finish("bars").words, dict[str, set[str]]()
    for name, asked in pen.put:
        told.setdefault(name, set()).add(asked.answer or " ".join(words[word] for word in asked.words))
    return told


def test_the_extremes_of_a_series():
    told = series([4.0, 9.5, 1.0, 7.0, 2.5])
    assert told["highest_chart"] == {"N1"} and told["lowest_chart"] == {"N2"}
    assert told["second_highest"] == {"N3"} and told["second_lowest"] == {"N4"}
    assert told["highest_value"] == {"9.5"} and told["lowest_value"] == {"1"} and told["median"] == {"4"}
    assert told["range"] == {"8.5"} and told["sum_all"] == {"24"} and told["average_all"] == {"4.8"}
    assert {"3", "5.5", "7", "1.5"} <= told["difference"] and "13.5" in told["sum"] and "0.25" in told["ratio"]
    assert told["count_above"] <= {"1", "2", "3", "4"} and len(told["count_above"]) > 2


def test_what_cannot_be_told_is_not_asked():
    assert not {"highest_chart", "lowest_chart", "larger", "smaller", "is_larger"} & set(series([5.0, 5.0]))
    told = series([5.0, 6.0, 9.0], also=[3.0, 2.0, 1.0])  # cheaper each, dearer together
    assert not {"highest_chart", "lowest_chart", "larger", "smaller"} & set(told)


def test_numbers_are_written_plainly():
    assert [reasoning.plain(value, 2) for value in (12, 12.5, 0.75, 0.754, -0.001, 1234567)] == [
        "12", "12.5", "0.75", "0.75", "0", "1234567",
    ]  # fmt: skip
    assert [reasoning.read_off(*pair) for pair in ((37.3, 100), (123, 150), (0.131, 0.4), (6032, 8000))] == [
        "38", "124", "0.13", "6000",
    ]  # fmt: skip
    assert [reasoning.between(*pair) for pair in ((3, 8), (12.1, 12.3), (5, 5), (970, 990))] == [
        "6",
        "12.2",
        "",
        "980",
    ]


# -- what is asked in vain ---------------------------------------------------------------------------------------


def test_what_is_asked_in_vain_is_not_on_the_page(sheets):
    asked = [(sheet, *asked) for sheet in sheets for asked in sheet.asked if asked[0].sort == "absent"]
    assert asked
    for sheet, question, name, slots in asked:
        if name in SIGNS:
            assert not re.search(SIGNS[name], sheet.text), question
            continue
        what = slots["key"] if name == "field" else slots.get("category") or slots.get("row") or slots["item"]
        assert what.lower() not in sheet.text and what.lower() in question.text.lower()
        if name != "field":
            assert not any(piece in sheet.text for piece in re.findall(r"\w{3,}", what.lower())), question


# -- the mix -----------------------------------------------------------------------------------------------------


def test_the_shares_of_the_sorts_hold(sheets):
    sorts, answers = Counter[str](), Counter[str]()
    for sheet in sheets:
        here = Counter(asked.sort for asked, _, _ in sheet.asked)
        assert sum(here[sort] for sort in WORKED) <= 0.4 * here.total()
        sorts += here
        answers += Counter(asked.answer for asked, _, _ in sheet.asked if asked.sort == "yesno")
    share = {sort: sorts[sort] / sorts.total() for sort in WORKED}
    assert 0.01 < share["absent"] <= 0.075 and 0.03 < share["yesno"] <= 0.11 and share["count"] <= 0.1
    assert 0.2 < answers["Yes"] / answers.total() < 0.8


def test_yes_is_as_frequent_as_no():
    asked = [asked for seed in range(300) for asked in page(None, 1024, 768, seed).questions]
    answers = Counter(question.answer for question in asked if question.sort == "yesno")
    assert 0.42 < answers["Yes"] / answers.total() < 0.58
    counts = Counter(question.sort for question in asked)
    assert counts["absent"] / counts.total() < 0.06 and counts["compare"] / counts.total() > 0.06


def test_the_known_questions_of_receipts_and_forms_are_asked():
    receipts = [{q.text for q in page("receipt", 1408, 640, seed).questions} for seed in range(60)]
    for what in ("name of the company", "date", "address of the company", "total amount"):
        assert np.mean([f"What is the {what} on this receipt?" in asked for asked in receipts]) > 0.6
    forms = [q for seed in range(20) for q in page("form", 1024, 768, seed).questions if q.sort == "key"]
    assert np.mean([q.text.startswith("What is the value of the field '") for q in forms]) > 0.2


def test_addresses_and_companies_of_receipts_may_take_several_lines():
    spread = Counter[str]()
    for seed in range(40):
        layout = page("receipt", 1408, 640, seed)
        for asked in layout.questions:
            if asked.sort in ("company", "address") and len({int(layout.word_lines[word]) for word in asked.words}) > 1:
                spread[asked.sort] += 1
                assert " " in asked.answer and not asked.answer.endswith(",")
    assert spread["address"] > 20 and spread["company"] > 0


def test_everything_can_be_put_in_many_ways():
    for name, templates in wording.TEMPLATES.items():
        ways = {way for template in templates for way in wording.ways(template)}
        assert len(ways) >= 8, name


def test_a_question_with_two_answers_is_left_out():
    make = partial(DrawnQuestion, words=[], sort="count")
    asked = [make("A?", answer="1"), make("a ?", answer="2"), make("A?", answer="1"), make("B?", answer="3")]
    assert [question.text for question in distinct(asked)] == ["B?"]
    assert len(distinct([make("A?", answer="1")] * 3)) == 1
