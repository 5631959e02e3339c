"""Dictation: notes as the eye might take them, made from what is known to stand on a page.

To find the answer among notes is a matter of language alone, and a lesson without a look costs far less.
What the scout would point at is drawn by lot: on pages that it has learned from it is right far more often than on new
ones, and whoever learns to trust it there does not learn to read.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable, Sequence

import numpy as np

from homunculus.reader.notes import LETTERS, Note, laid_out
from homunculus.reader.talk import NOT_FOUND
from homunculus.train.aloud import Array, Line, Said

CELL = 32.0  # pixels of a fine cell
FIRST = 0.25  # share of notes in which the scout's first place is right
BEHIND = 8.0  # about how many places lie before the right one otherwise
LOST = 0.12  # share of lines that the eye does not get
NAMES = 0.7  # share of lines with words of the question that are read because they stand beside a place
CLEAR, CLEARER = 0.6, 0.85  # shares of lines read without fault, of others and of those with the answer
FAULTS = (0.02, 0.2)  # share of the letters of another line that are wrong
DOUBTED, TRUSTED = 0.1, 0.3  # shares of good readings that the eye was not sure of, and of bad ones that it was
LIKE = ("0OoDQ", "1lI|i!", "5Ss", "8B3", "2Zz", "6Gb", "9gq", "ceo", "nhu", "mrn", "vyw", "tfl", ".,", ":;", "-_~")
PLAIN = {"yes", "no", NOT_FOUND}  # answers that stand nowhere
SHORTEST = 3  # letters of a word of the question that tells something

Alike = dict[str, list[str]]


def dictated(lines: Sequence[Line], said: Said, rng: random.Random) -> str:
    """Notes of a page for one question, laid out; empty if the answer cannot be had from them."""
    lines = [line for line in lines if line.words]
    if not lines:
        return ""
    boxes = np.stack([line.box for line in lines])
    holds = _holding(boxes, said.boxes)
    shared, ranked = _ranked(lines, boxes, said, rng)
    order = [i for i in ranked if i not in holds and rng.random() >= LOST]
    place = 0 if rng.random() < FIRST else int(rng.expovariate(1 / BEHIND))
    order = order[: rng.randint(3, 50)]
    order[place:place] = holds
    aside = [0.5 if shared[i] and i not in holds and rng.random() < NAMES else 0.0 for i in order]
    text = laid_out([_note(lines[i], boxes[i], rank + aside[rank], i in holds, rng) for rank, i in enumerate(order)])
    return text if said.answer.lower() in PLAIN or told(said.answer, text) else ""


def told(answer: str, notes: str) -> bool:
    """Whether at least half of the words of an answer stand among notes."""
    there, words = notes.lower(), _bare(answer.split())
    whole = set(_bare(there.split()))
    return 2 * sum(word in (there if len(word) > 3 else whole) for word in words) >= len(words)


def confused(notes: Sequence[Note], rng: random.Random, share: float) -> list[Note]:
    """Notes in another order, in a share of all cases: as if the scout had been less sure where to look."""
    if rng.random() >= share:
        return list(notes)
    return [note for _, note in sorted((note.rank + rng.expovariate(1 / BEHIND), note) for note in notes)]


def swapped(
    pages: Sequence[str], answers: Sequence[str], rng: random.Random, share: float, others: Alike | None = None
) -> tuple[list[str], list[str]]:
    """Notes and answers; in a share of the pages whose notes say the answer, both say another, which is not longer.

    Whoever remembers pages rather than reads them is then wrong. The other is of the same shape: a name stands for a
    name, a date for a date.
    """
    others = alike(answers) if others is None else others
    texts, said = list(pages), list(answers)
    for i, (page, answer) in enumerate(zip(pages, answers, strict=True)):
        other = rng.choice(others.get(shape(answer)) or [answer])
        if 1 < len(other) <= len(answer) and answer in page and rng.random() < share:
            texts[i], said[i] = page.replace(answer, other), other
    return texts, said


def alike(answers: Iterable[str]) -> Alike:
    """Answers by their shape."""
    found: Alike = {}
    for answer in dict.fromkeys(answers):
        found.setdefault(shape(answer), []).append(answer)
    return found


def shape(text: str) -> str:
    """What a text looks like, whatever it says: capitals, small letters and figures, each run as one."""
    return re.sub(r"[0-9]+", "9", re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", text)))


def _holding(boxes: Array, answer: Array) -> list[int]:
    """The lines that parts of an answer stand in."""
    if not len(answer):
        return []
    middle = (answer[:, :2] + answer[:, 2:]) / 2
    inside = ((middle[:, None] >= boxes[:, :2] - 1) & (middle[:, None] <= boxes[:, 2:] + 1)).all(2)  # [parts, lines]
    return sorted({int(np.argmax(row)) for row in np.asarray(inside) if np.any(row)})


def _ranked(lines: Sequence[Line], boxes: Array, said: Said, rng: random.Random) -> tuple[list[int], list[int]]:
    """How many words each line shares with the question, and the order in which a scout might find the lines.

    That goes by these words, by how near the answer is, and by chance.
    """
    asked = {word for word in _bare(said.text.split()) if len(word) >= SHORTEST}
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    high = np.maximum(1.0, np.median(boxes[:, 3] - boxes[:, 1]))
    away = np.full(len(lines), 99.0)
    if len(said.boxes):
        to = (said.boxes[0, :2] + said.boxes[0, 2:]) / 2
        away = np.abs(middle - to) @ np.array([0.3, 1.0]) / high
    shared = [len(asked.intersection(_bare(line.words))) for line in lines]
    chance = np.array([-np.log(rng.expovariate(1.0)) for _ in lines])
    score = 1.2 * np.minimum(np.array(shared), 3) + 2.0 * np.exp(-away / 4) + chance
    return shared, np.argsort(-score).tolist()


def _bare(words: Sequence[str]) -> list[str]:
    return [word.strip(string.punctuation).lower() for word in words]


def _note(line: Line, box: Array, rank: float, answers: bool, rng: random.Random) -> Note:
    text = line.text[:LETTERS].strip()
    well = rng.random() < (CLEARER if answers else CLEAR)
    if not well:
        text = misread(text, rng.uniform(*FAULTS) * (0.5 if answers else 1), rng)
    clear = rng.random() >= DOUBTED if well else rng.random() < TRUSTED
    step = (box[2] - box[0]) / max(1, len(line.text)) / CELL
    y = float(box[1] + box[3]) / 2 / CELL
    x = float(box[0]) / CELL + step / 2
    return Note(text, (x, y), (x + step * max(0, len(text) - 1), y), rank, clear)


def misread(text: str, share: float, rng: random.Random) -> str:
    """A text with a share of its letters wrong: taken for others that look like them, left out, doubled."""
    letters = []
    for letter in text:
        if letter == " " or rng.random() >= share:
            letters.append(letter)
        elif (how := rng.random()) < 0.7:
            like = next((group for group in LIKE if letter in group), string.ascii_lowercase)
            letters.append(rng.choice(like))
        elif how < 0.85:
            letters.append(2 * letter)
    return "".join(letters) or text
