"""Lessons without a look: notes made from what is known to stand on a page."""

import random

import numpy as np
import torch

from homunculus.reader import Encoder, Scout, talk
from homunculus.reader.language import load_language
from homunculus.reader.notes import Note
from homunculus.train.aloud import Line, Said
from homunculus.train.answering import Joint, ReaderTask
from homunculus.train.asks import Asks, dictation, tokenised
from homunculus.train.dictation import alike, confused, dictated, misread, shape, swapped, told
from homunculus.train.pages import Labels
from speaking import SMALL, bridge_for, tiny_language


def line(text: str, x: float, y: float) -> Line:
    words, boxes = text.split(), []
    for word in words:
        boxes.append((x, y, x + 8 * len(word), y + 14))
        x += 8 * len(word) + 8
    return Line(words, np.array(boxes, np.float32))


PAGE = [
    line("ACME Trading", 40, 20),
    *(line(f"{name}:", 40, 60 + 30 * n) for n, name in enumerate(("Total", "Date", "Invoice", "Customer"))),
    *(line(v, 300, 60 + 30 * n) for n, v in enumerate(("12.50", "3 May 2021", "4711", "Ada Kern"))),
]
TOTAL = Said("What is the Total?", PAGE[5].box[None], "12.50")


def test_notes_hold_the_answer_where_it_stands_but_not_always_first():
    found = [dictated(PAGE, TOTAL, random.Random(seed)) for seed in range(200)]
    held = [notes for notes in found if notes]
    assert len(held) > 150 and all(told("12.50", notes) for notes in held)
    first = sum("*** 12.50" in notes for notes in held) / len(held)
    assert 0.2 < first < 0.75
    beside = [notes for notes in held if any("Total" in row and "12.50" in row for row in notes.split("\n"))]
    assert len(beside) > len(held) / 2  # the name in the same row
    assert any("?" in notes for notes in held) and any("ACME" in notes for notes in held)
    assert dictated([], TOTAL, random.Random(0)) == ""


def test_an_answer_that_stands_nowhere_is_no_lesson_unless_it_is_plain():
    nowhere = np.zeros((0, 4), np.float32)
    assert all(dictated(PAGE, Said("How many?", nowhere, "seventeen"), random.Random(n)) == "" for n in range(20))
    for answer in ("yes", talk.NOT_FOUND):
        assert dictated(PAGE, Said("Is there a date?", nowhere, answer), random.Random(0))


def test_told_wants_half_of_the_words_and_short_ones_whole():
    assert told("Ada Kern", "*** Ada K3rn") and not told("Ada Kern", "*** Adal K3rn")
    assert told("5", "Total | 5") and not told("5", "Total | 15")
    assert told("12.50", "$12.50")


def test_misread_texts_are_wrong_in_about_as_many_letters_as_told():
    text, rng = "Invoice number 4711 of the third of March " * 20, random.Random(0)
    wrong = misread(text, 0.1, rng)
    assert 0.04 < sum(a != b for a, b in zip(text.split(" "), wrong.split(" "), strict=False)) / 160 < 0.75
    assert misread(text, 0.0, rng) == text and misread("a", 1.0, rng)


def test_a_confused_scout_orders_notes_otherwise_and_loses_none():
    notes = [Note(str(n), (0, n), (1, n), n) for n in range(20)]
    assert confused(notes, random.Random(0), 0.0) == notes
    orders = [confused(notes, random.Random(seed), 1.0) for seed in range(60)]
    assert all(sorted(order) == sorted(notes) for order in orders)
    assert 3 < sum(order[0] == notes[0] for order in orders) < 40


def test_swapped_lessons_say_another_answer_of_the_same_shape_in_notes_and_reply():
    pages = ["Total | *** 12.50\nNet 11", "*** Ada Kern\nRosenau", "nothing of it", "*** 7"]
    answers = ["12.50", "Ada Kern", "missing", "9.80"]
    seen = set()
    for seed in range(40):
        texts, said = swapped(pages, answers, random.Random(seed), 1.0)
        seen.add((texts[0], said[0]))
        assert (texts[1:], said[1:]) == (pages[1:], answers[1:])  # no other of their shape, or not among the notes
    assert seen == {(pages[0], "12.50"), (pages[0].replace("12.50", "9.80"), "9.80")}
    texts, said = swapped(pages, answers, random.Random(0), 1.0, alike(["Eva Lenz", "EVA"]))
    assert said[1] == "Eva Lenz" and texts[1] == "*** Eva Lenz\nRosenau"
    assert swapped(pages, answers, random.Random(0), 0.0) == (pages, answers)
    assert shape("Ada Kern, 3 May") == shape("Eva Lenz, 12 Jun") != shape("EVA LENZ, 12 Jun")


def test_dictated_lessons_are_answered_without_a_look(tmp_path):
    language = load_language(tiny_language(tmp_path))
    asks = [Asks.of([TOTAL], 3, [], 2).dictated(PAGE, [TOTAL], random.Random(seed)) for seed in range(6)]
    asked, replies = tokenised(asks, language.tokenizer)
    noted, said = dictation(asks, language.tokenizer)
    assert noted.shape == (6, 3, talk.NOTES) and (noted[:, 1:] == talk.PAD).all()
    held = [bool(page.notes[0]) for page in asks]
    assert (noted[:, 0, 0] != talk.PAD).tolist() == held and (said[:, 0, 0] != talk.PAD).tolist() == held
    assert dictation([Asks.of([TOTAL], 3, [], 2)], language.tokenizer) == (None, None)
    joint = Joint(bridge_for(language.model), Encoder(**SMALL))
    task = ReaderTask(joint, language, Scout(), dictated=1.0)
    none = torch.zeros(0)
    labels = Labels(*[none] * 10, asked, replies, noted, said)
    lesson = task._dictation(labels)
    losses = task(*lesson)
    assert lesson[0].shape[1] == 0 and lesson[-1].ge(0).any(1).sum() == sum(held)
    assert losses.keys() == {"answer", "exact"} and losses["answer"].item() > 0
    losses["answer"].backward()
    assert all(added.up.weight.grad.abs().sum() > 0 for added in joint.bridge.added)
