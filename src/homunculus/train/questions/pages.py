"""Pages as text: lines with boxes, and questions about them, read from the data folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from homunculus.errors import InputError
from homunculus.reader.letters import plain
from homunculus.reader.lines import Line, group_rows
from homunculus.train.questions.locate import locate, normalise
from homunculus.train.scans.folders import Row, answer_boxes, is_val, read_jsonl, read_rows, runs_across

WORD_GAP = 0.8, 2.2  # word spaces in heights of the higher word: always one, never one
WIDER = 2.2  # in between, a gap that is so much wider than the page's median parts two lines
YES_NO = frozenset({"yes", "no"})

Lines = tuple[Line, ...]


@dataclass(frozen=True)
class TextQuestion:
    """A question, its answer, and the indices of the lines that hold the answer, per version of the page.

    `holders[0]` belongs to the page's own lines, `holders[1:]` to its transcripts; empty where the place is unknown.
    """

    text: str
    answer: str
    holders: tuple[tuple[int, ...], ...]
    kind: str = "human"


@dataclass(frozen=True, eq=False)
class TextPage:
    """One page: versions[0] are its true lines, the others are what a recogniser read."""

    name: str  # set/split/images/file
    versions: tuple[Lines, ...]
    questions: tuple[TextQuestion, ...]


def load_set(root: Path, name: str, transcripts: dict[str, list[Lines]], val: bool = False) -> list[TextPage]:
    """The pages of a set's train split to train on, or those kept for validation."""
    folder = root / name / "train"
    words = {row["image"]: row for row in read_rows(folder, "words.jsonl")}
    asked: dict[str, list[Row]] = {}
    for row in read_rows(folder, "questions.jsonl"):
        asked.setdefault(row["image"], []).append(row)
    pages = []
    for image, row in words.items():
        if is_val(image) != val:
            continue
        key = f"{name}/train/{image}"
        versions = (true_lines(row["words"]), *transcripts.get(key, ()))
        if versions[0]:
            questions = [read_question(one, versions) for one in asked.get(image, ())]
            pages.append(TextPage(key, versions, tuple(one for one in questions if one is not None)))
    return pages


def load_transcripts(path: Path) -> dict[str, list[Lines]]:
    """What a recogniser read on each page, by the page's name; one entry for each scale that it was shown at.

    Each row of the JSONL file, gzipped or not, has `image` and `lines`; boxes are in pixels of the full-size page.
    """
    found: dict[str, list[Lines]] = {}
    try:
        rows = read_jsonl(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    for row in rows:
        lines = [_line(line, line.get("confidence", 1.0)) for line in row["lines"]]
        if any(line.text for line in lines):
            found.setdefault(row["image"], []).append(tuple(line for line in lines if line.text))
    return found


def true_lines(words: Sequence[Row]) -> Lines:
    """The lines of a page. Where the set has single words they are joined by row and gap."""
    found = [_line(word, word.get("score", 1.0)) for word in words]
    found = [line for line in found if line.text and _is_level(line)]
    single = not any(" " in line.text for line in found) and not any("label" in word for word in words)
    return tuple(_join_words(found)) if single else tuple(found)


def _line(row: Row, confidence: float) -> Line:
    x0, y0, x1, y1 = map(float, row["box"])
    return Line(plain(row["text"]), (x0, y0, x1, y1), float(confidence))


def read_question(row: Row, versions: Sequence[Lines]) -> TextQuestion | None:
    """A question of a data folder with the answer that the page has, as the page writes it; None without an answer."""
    answers = [text for answer in row.get("answers") or () if (text := plain(str(answer)))]
    if not row["question"] or not answers:
        return None
    if answers[0].lower() in YES_NO:
        return TextQuestion(plain(row["question"]), answers[0].capitalize(), ((),) * len(versions), "yesno")
    boxes = answer_boxes(row)
    answer = next((a for a in answers if _written(a, versions[0])), None)
    if answer is None:
        answer = next((a for a in answers if locate(a, boxes, versions[0])), answers[0])
    answer = _written(answer, versions[0]) or answer
    holders = tuple(locate(answer, boxes, lines) for lines in versions)
    return TextQuestion(plain(row["question"]), answer, holders)


def _written(answer: str, lines: Lines) -> str:
    """The answer with the page's capitals, if a line has it; preferably as a whole word."""
    low, found = answer.lower(), ""
    for line in lines:
        at = line.text.lower().find(low)
        if at < 0:
            continue
        text, end = line.text, at + len(low)
        whole = not (text[max(0, at - 1) : at].isalnum() or text[end : end + 1].isalnum())
        if whole:
            return text[at:end]
        found = found or text[at:end]
    if len(normalise(found)) > 3:
        return found
    key = normalise(answer)
    return next((line.text for line in lines if key and normalise(line.text) == key), "")


def _join_words(words: Sequence[Line]) -> Iterator[Line]:
    """Lines of words that stand side by side without a wide gap."""
    rows = group_rows(words)
    gaps = [words[b].box[0] - words[a].box[2] for row in rows for a, b in pairwise(row)]
    typical = WIDER * median(gaps) if gaps else 0.0
    for row in rows:
        group: list[Line] = []
        for word in (words[i] for i in row):
            high = max(height(word), height(group[-1])) if group else 0.0
            if group and word.box[0] - group[-1].box[2] > min(max(WORD_GAP[0] * high, typical), WORD_GAP[1] * high):
                yield join(group)
                group = []
            group.append(word)
        yield join(group)


def height(line: Line) -> float:
    """Height of a line's box in pixels."""
    return line.box[3] - line.box[1]


def join(lines: Sequence[Line]) -> Line:
    """One line from several of a row."""
    x0, y0, x1, y1 = zip(*(line.box for line in lines), strict=True)
    box = (min(x0), min(y0), max(x1), max(y1))
    return Line(" ".join(line.text for line in lines), box, min(line.confidence for line in lines))


def _is_level(line: Line) -> bool:
    x0, y0, x1, y1 = line.box
    return x1 > x0 and y1 > y0 and runs_across(line.text, line.box)
