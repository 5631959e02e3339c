"""Business pages for training: invoices, statements, boxed forms, dense tables, data sheets."""

import random
import re

import numpy as np
import pytest

from homunculus.train.synth.documents import business_values, wording
from homunculus.train.synth.documents.business_datasheet import SPECS
from homunculus.train.synth.documents.business_form_terms import FORMS
from homunculus.train.synth.documents.business_terms import BILLING, PAYROLL, STATEMENT
from homunculus.train.synth.documents.page import Pen
from homunculus.train.synth.layouts import KINDS, WEIGHTS, DrawnPage, lay_out
from homunculus.train.synth.text import Texts
from test_train_layouts import TYPE, WORKED, check_boxes, check_text

OURS = ("billing", "statement", "boxed_form", "dense_table", "datasheet")
CANVASES = ((1024, 768), (1792, 1408), (1408, 640), (640, 832), (2208, 1704))
SEEDS = 200
TEXTS = Texts.builtin(0)


def page(kind: str, height: int, width: int, seed: int) -> DrawnPage:
    TEXTS.reseed(seed)
    return lay_out(kind, height, width, TEXTS, TYPE, random.Random(seed))


@pytest.fixture(scope="module", params=OURS)
def pages(request) -> list[DrawnPage]:
    """200 pages of a kind, on all canvases in turn."""
    return [page(request.param, *CANVASES[seed % len(CANVASES)], seed) for seed in range(SEEDS)]


def test_text_stands_on_the_page_and_apart(pages):
    for layout in pages:
        check_boxes(layout)
        check_text(layout)
        assert len(layout.glyphs) < 3000


def test_answers_are_the_words_they_point_at(pages):
    for layout in pages:
        for asked in layout.questions:
            if asked.sort not in WORKED:
                assert asked.words and asked.answer == layout.text_of(asked.words), asked
                assert asked.answer in " ".join(layout.lines) or " " in asked.answer


def test_pages_have_many_questions_of_their_own(pages):
    asked = [[one.text for one in layout.questions] for layout in pages]
    assert all(len(set(texts)) == len(texts) for texts in asked)
    assert np.mean([len(texts) for texts in asked]) >= 18
    plain = [[one for one in layout.questions if one.sort in ("key", "table", "total", "address")] for layout in pages]
    assert np.mean([len(found) for found in plain]) >= 7
    assert len({text for texts in asked for text in texts}) > 0.75 * sum(map(len, asked))


def test_pages_are_dense_and_small_print_stays_readable(pages):
    tall = [layout for layout in pages if layout.height >= 1024]
    sizes = np.concatenate([layout.glyphs[:, 4] for layout in tall])
    assert sizes.min() >= 8.4
    assert np.median([np.median(layout.glyphs[:, 4]) / layout.width for layout in tall]) < 0.021
    assert np.mean([len(layout.lines) for layout in tall]) > 40


def test_the_same_seed_gives_the_same_page(pages):
    for seed in (0, 3, 101):
        again = page(pages[seed].kind, *CANVASES[seed % len(CANVASES)], seed)
        assert again.lines == pages[seed].lines and again.questions == pages[seed].questions
        assert (again.glyphs == pages[seed].glyphs).all() and (again.strokes == pages[seed].strokes).all()


def test_business_pages_are_half_of_all():
    weight = {kind: WEIGHTS.get(kind, 1) for kind in KINDS}
    assert 0.45 < sum(weight[kind] for kind in OURS) / sum(weight.values()) < 0.55


@pytest.mark.parametrize("kind", OURS)
def test_values_follow_one_habit(kind):
    for seed in range(12):
        texts = "\n".join(page(kind, 1024, 768, seed).lines)
        both = [re.search(mark + r"\d\d(?!\d)", texts) for mark in (r"\d\.\d{3},", r"\d,\d{3}\.")]
        assert not all(both)


def test_numbers_are_written_as_countries_do():
    seen = set()
    for seed in range(200):
        rng = random.Random(seed)
        values = business_values.Values(Pen(1024, 768, TEXTS, TYPE, rng))
        text = values.number(1234567.891)
        assert re.sub(r"[^\d]", "", text) == "123456789" and text[-3] in ".,"
        seen.add(text)
        assert values.money(-5).startswith("-") and values.english == (text in ("1,234,567.89", "1234567.89"))
    assert {"1,234,567.89", "1.234.567,89", "1 234 567,89", "1'234'567.89", "1 234 567.89"} <= seen


def test_every_field_has_synonyms_and_a_value():
    values = business_values.Values(Pen(1024, 768, TEXTS, TYPE, random.Random(0)))
    forms = [term for _, sections in FORMS.values() for _, rows in sections for term in rows]
    every = [
        *BILLING.values(),
        *STATEMENT.values(),
        *PAYROLL.values(),
        *forms,
        *(t for rows in SPECS.values() for t in rows),
    ]
    assert len(every) > 200
    for term in every:
        assert len(set(term.labels)) >= 2 or term.labels[0] in ("IBAN",), term
        value = values(term.kind)
        assert value.isascii() and value.strip() and (value != term.kind or len(term.kind) < 4), term
        for ask in term.asks:
            for way in wording.ways(ask):
                assert way.format(doc="invoice").rstrip("?."), way


def test_the_same_meaning_is_asked_by_other_words_than_the_page_has():
    other = total = 0
    for seed in range(60):
        layout = page("billing", 1024, 768, seed)
        text = "\n".join(layout.lines).lower()
        for asked in layout.questions:
            if asked.sort == "key" and (
                named := re.search(r"(?:what|which) (?:is|are) the ([a-z .-]+?) ?\?$", asked.text.lower())
            ):
                total += 1
                other += named[1] not in text
    assert total > 40 and 0.2 < other / total < 0.9
