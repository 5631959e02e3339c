"""Changes to samples that force the model to read the page instead of remembering it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from homunculus.reader.lines import Line, group_rows
from homunculus.train.questions.locate import normalise, similarity
from homunculus.train.questions.misread import misread_text
from homunculus.train.questions.pages import height, join
from homunculus.train.questions.sample import Sample

DIGITS = "0123456789"
CLEAN_PAGES = 0.4  # share of pages without recognition errors
MAX_ERRORS = 0.1  # share of wrong characters on the worst pages
CLEAN_HOLDERS = 0.6  # share of the answer's lines that are read without errors on other pages
LEGIBLE = 0.7  # part of the answer's character pairs that its misread line must keep
SWAP_LENGTH = (0.5, 1.6)  # length of the other answer in terms of the first
JOIN_GAP = 1.6  # line heights between lines that are joined

Shapes = dict[str, list[str]]


def permute_digits(sample: Sample, rng: random.Random) -> Sample:
    """The same other digits in page, question and answer, where only reading them matters."""
    if sample.compares or sample.unlocated:
        return sample
    table = str.maketrans(DIGITS, "".join(rng.sample(DIGITS, 10)))
    lines = tuple(replace_text(line, line.text.translate(table)) for line in sample.lines)
    question, answer = sample.question.translate(table), sample.answer.translate(table)
    return replace(sample, question=question, answer=answer, lines=lines)


def swap_answer(sample: Sample, others: Shapes, rng: random.Random) -> Sample:
    """Another answer of the same shape wherever the page has the answer: a name for a name, a date for a date."""
    answer, pool = sample.answer, others.get(shape(sample.answer), ())
    if len(pool) < 2 or len(answer) < 2 or sample.compares or answer.lower() in sample.question.lower():
        return sample
    other = rng.choice(pool)
    words = any(map(str.isalpha, answer))
    low, high = (share * len(answer) for share in (SWAP_LENGTH if words else (1.0, 1.0)))
    pattern = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
    if not low <= len(other) <= high or not any(pattern.search(sample.lines[i].text) for i in sample.holders):
        return sample
    texts = (pattern.sub(lambda _: other, line.text) if answer in line.text else line.text for line in sample.lines)
    lines = tuple(replace_text(line, text) for line, text in zip(sample.lines, texts, strict=True))
    return replace(sample, answer=other, lines=lines)


def by_shape(answers: Iterable[str]) -> Shapes:
    """Answers by their shape."""
    found: Shapes = {}
    for answer in dict.fromkeys(answers):
        found.setdefault(shape(answer), []).append(answer)
    return found


def shape(text: str) -> str:
    """The pattern of a text: runs of capitals, small letters and digits as one character each."""
    return re.sub(r"[0-9]+", "9", re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", text)))


def misread(sample: Sample, rng: random.Random) -> Sample:
    """Recognition errors in the lines; the answer's own lines get fewer and stay legible."""
    if sample.misread or rng.random() < CLEAN_PAGES:
        return sample
    rate, key = rng.random() ** 2 * MAX_ERRORS, normalise(sample.answer)
    lines = []
    for i, line in enumerate(sample.lines):
        text = line.text
        if i not in sample.holders:
            text = misread_text(text, rate, rng)
        elif rng.random() >= CLEAN_HOLDERS:
            wrong = misread_text(text, rate / 2, rng)
            before, after = (similarity(key, normalise(one)) for one in (text, wrong))
            text = wrong if after >= LEGIBLE * before else text
        lines.append(replace_text(line, text))
    return replace(sample, lines=tuple(lines))


def exchange_bands(sample: Sample, rng: random.Random) -> Sample:
    """The lower part of the page above the upper one, cut where no line is cut."""
    if sample.placed or len(sample.lines) < 6:
        return sample
    boxes = np.array([line.box for line in sample.lines])  # [n, 4]
    order = np.argsort(boxes[:, 1], kind="stable")
    ends = np.maximum.accumulate(boxes[order, 3])
    gaps = np.flatnonzero(boxes[order[1:], 1] >= ends[:-1] - 1)
    if not len(gaps):
        return sample
    cut = int(rng.choice(gaps.tolist()))
    top, middle, bottom = boxes[:, 1].min(), boxes[order[cut + 1], 1], boxes[:, 3].max()
    shift = np.where(boxes[:, 1] >= middle - 1e-6, top - middle, bottom - middle + 8)
    boxes[:, 1::2] += shift[:, None]
    lines = tuple(
        Line(line.text, tuple(box), line.confidence, line.level)
        for line, box in zip(sample.lines, boxes.tolist(), strict=True)
    )
    return replace(sample, lines=lines)


def resegment(sample: Sample, rng: random.Random) -> Sample:
    """Neighbours in a row joined, as another line finder may have them."""
    groups: list[list[int]] = []
    for row in group_rows(sample.lines):
        for place, i in enumerate(row):
            last = sample.lines[row[place - 1]]
            gap = sample.lines[i].box[0] - last.box[2]
            if place and 0 <= gap < JOIN_GAP * height(last) and rng.random() < 0.7:
                groups[-1].append(i)
            else:
                groups.append([i])
    return regroup(sample, groups)


def drop_lines(sample: Sample, keep: Sequence[bool]) -> Sample:
    """The lines that are kept."""
    return regroup(sample, [[i] for i, kept in enumerate(keep) if kept])


def regroup(sample: Sample, groups: Sequence[Sequence[int]]) -> Sample:
    """Lines joined from groups of lines; those in no group are left out."""
    holders = set(sample.holders)
    members = ([sample.lines[i] for i in group] for group in groups)
    lines = tuple(group[0] if len(group) == 1 else join(group) for group in members)
    found = tuple(n for n, group in enumerate(groups) if not holders.isdisjoint(group))
    return replace(sample, lines=lines, holders=found)


def replace_text(line: Line, text: str) -> Line:
    """The line with another text."""
    return line if text == line.text else Line(text, line.box, line.confidence, line.level)
