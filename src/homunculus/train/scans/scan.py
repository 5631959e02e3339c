"""One scanned page of a data folder: its pixels, words, lines, and questions whose answers have boxes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from homunculus.errors import InputError
from homunculus.reader.letters import encode, plain
from homunculus.train.pages import PARTS, Array, BoxQuestion
from homunculus.train.scans.box_questions import AutoQuestion, WordLine, box_questions
from homunculus.train.scans.folders import Row, answer_boxes, in_parallel, is_val, read_rows, runs_across
from homunculus.train.scans.placement import Gap, gaps

NARROW, WIDE = set("iljtfrI.,:;'|!()[] "), set("mwMWQOGD@%&")
Item = tuple[str, Array]  # text and box


@dataclass(frozen=True, eq=False)
class Scan:
    """One page: its pixels, what stands on it, what was asked about it."""

    name: str
    pixels: Array  # uint8 [C, h, w]
    letters: Array  # [n, 4] code, centre x, centre y, pixels per em; none where boxes hold whole lines
    searches: list[Item]  # texts that stand on the page once
    questions: list[BoxQuestion]  # of people
    auto_questions: list[AutoQuestion]
    gaps: list[Gap]
    dense: bool  # whether letters has all text there is


def read_scans(folder: Path, val: bool) -> list[Scan]:
    """The pages of a data folder to train on, or those kept for validation; photographs have no words.jsonl."""
    try:
        has_words = (folder / "words.jsonl").is_file()
        words = {row["image"]: row["words"] for row in read_rows(folder, "words.jsonl")} if has_words else {}
        questions: dict[str, list[Row]] = {}
        for row in read_rows(folder, "questions.jsonl"):
            questions.setdefault(row["image"], []).append(row)
    except KeyError as error:
        raise InputError(f"{folder}: a line of words.jsonl or questions.jsonl cannot be used: {error}") from error
    names = sorted(name for name in {*words, *questions} if is_val(name) == val)
    return in_parallel(_scan, [(folder, name, words.get(name, []), questions.get(name, [])) for name in names])


def _scan(folder: Path, name: str, words: list[Row], questions: list[Row]) -> Scan:
    pixels = _pixels(folder / name)
    single = not any(" " in word["text"].strip() for word in words)  # else the boxes hold whole lines
    items = [(plain(word["text"]), np.asarray(word["box"], np.float32)) for word in words]
    items = [(t, b) for t, b in items if t and b[2] > b[0] and b[3] > b[1] and runs_across(t, b)]
    lines = _joined(items) if single else [_line(t, b) for t, b in items]
    parts = items if single else [word for t, b in items for word in _long_words(t, b)]
    letters = [_letters(t, b) for t, b in items] if single else []
    parsed = [BoxQuestion(plain(row["question"]), _boxes(answer_boxes(row)[:PARTS])) for row in questions]
    filled = [
        _boxes([b for _, b in parts] + [line.box for line in lines]),
        *(question.boxes for question in parsed),
    ]
    return Scan(
        name,
        pixels,
        np.concatenate([np.zeros((0, 4), np.float32), *letters]),
        _searches(items),
        parsed,
        box_questions(lines),
        gaps(np.concatenate(filled), pixels.shape[1]),
        single and bool(items),
    )


def _pixels(path: Path) -> Array:
    """An image as uint8 [C, h, w], one channel where it is grey."""
    try:
        pixels = np.asarray(Image.open(path).convert("RGB"))
    except OSError as error:
        raise InputError(f"cannot read the image {path}: {error.strerror or error}") from error
    grey = np.abs(pixels[::7, ::7, 0].astype(np.int16) - pixels[::7, ::7, 2]).max() < 8
    return np.ascontiguousarray((pixels[:, :, :1] if grey else pixels).transpose(2, 0, 1))


def _boxes(boxes: list[Array] | list[tuple[float, ...]]) -> Array:
    return np.asarray(boxes, np.float32).reshape(-1, 4)


def _line(text: str, box: Array) -> WordLine:
    """A line of text in a box, with about where its words stand."""
    ends = box[0] + np.concatenate(([0], _widths(text).cumsum())) * (box[2] - box[0])
    words, boxes, at = text.split(" "), [], 0
    for word in words:
        boxes.append((ends[at], box[1], ends[at + len(word)], box[3]))
        at += len(word) + 1
    return WordLine(words, np.array(boxes, np.float32))


def _joined(items: list[Item]) -> list[WordLine]:
    """Words put together to lines: those that follow each other at one height."""
    lines: list[list[Item]] = []
    for text, box in items:
        last = lines[-1][-1][1] if lines else None
        high = box[3] - box[1]
        follows = last is not None and abs(last[1] - box[1]) < 0.5 * high and -0.5 * high < box[0] - last[2] < 2 * high
        if follows:
            lines[-1].append((text, box))
        else:
            lines.append([(text, box)])
    return [WordLine([text for text, _ in line], np.stack([box for _, box in line])) for line in lines]


def _widths(text: str) -> Array:
    """About how wide the characters of a text are, as shares of its width."""
    wide = np.array([0.7 if c in NARROW else 1.35 if c in WIDE else 1.1 if c.isupper() else 1.0 for c in text])
    return np.asarray(wide / wide.sum())


def _letters(text: str, box: Array) -> Array:
    """The characters of a word that fills a box, and about where they stand: code, x, y, pixels per em. [n, 4]"""
    wide = _widths(text)
    x = box[0] + (wide.cumsum() - wide / 2) * (box[2] - box[0])
    y, em = np.full((2, len(text)), [[(box[1] + box[3]) / 2], [0.95 * (box[3] - box[1])]])
    return np.stack((encode([text], len(text))[0].numpy(), x, y, em), 1).astype(np.float32)


def _long_words(text: str, box: Array) -> list[Item]:
    """The longer words of a line and about where they stand."""
    line = _line(text, box)
    return [(word, b) for word, b in zip(line.words, line.boxes, strict=True) if len(word) >= 4 and " " in text]


def _searches(items: list[Item]) -> list[Item]:
    """Words and lines that stand on the page once, with their box [1, 4]."""
    pieces = [(t, b) for t, b in items if len(t) <= 40] + [piece for t, b in items for piece in _long_words(t, b)]
    seen: dict[str, int] = {}
    for t, _ in pieces:
        seen[t.lower()] = seen.get(t.lower(), 0) + 1
    return [(t, b[None]) for t, b in pieces if len(t) >= 3 and seen[t.lower()] == 1]
