"""Which questions of a page are asked: for the scout those whose answer can be pointed at, for the reader all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from homunculus.reader.talk import ASK, NOTES, REPLY, note_ids, question_ids, reply_ids, row
from homunculus.train.aloud import Line, Said, read_aloud
from homunculus.train.dictation import Alike, dictated, swapped
from homunculus.train.layouts import Layout, Question

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PARTS = 4  # boxes that an answer may consist of
ASIDE = {"search"}  # sorts of question that say nothing about what people tend to ask
WORKED = {"count", "yesno", "absent"}  # sorts of question whose answer stands nowhere
SWAPPED = 0.4  # share of dictated lessons in which another answer stands in the place of the one on the page
Array = np.ndarray[Any, Any]


class Asks(NamedTuple):
    """Questions about one page, boxes of their answers [n, PARTS, 4], boxes that people ask about [m, 4], answers.

    Where they are dictated, also notes for each of them and the answers that these have.
    """

    questions: list[str]
    answers: Array
    usual: Array
    replies: list[str]
    notes: Sequence[str] = ()
    noted: Sequence[str] = ()

    def dictated(
        self, lines: Sequence[Line], picked: Sequence[Said], rng: random.Random, others: Alike | None = None
    ) -> Asks:
        """With notes as they may be taken from the lines of the page; `others` are answers to be exchanged for."""
        missing = [""] * (len(self.questions) - len(picked))
        notes, answers = [dictated(lines, said, rng) for said in picked], [said.answer for said in picked]
        notes, answers = swapped(notes, answers, rng, SWAPPED, others)
        return self._replace(notes=notes + missing, noted=answers + missing)

    @classmethod
    def of(cls, picked: Sequence[Said], count: int, common: Sequence[Array], most: int) -> Asks:
        """From what is asked, filled up with empty questions, and from boxes that people tend to ask about."""
        answers, usual = np.zeros((count, PARTS, 4), np.float32), np.zeros((most, 4), np.float32)
        for n, said in enumerate(picked):
            answers[n, : min(PARTS, len(said.boxes))] = said.boxes[:PARTS]
        for n, box in enumerate(common[:most]):
            usual[n] = box
        missing = [""] * (count - len(picked))
        return cls([said.text for said in picked] + missing, answers, usual, [said.answer for said in picked] + missing)


def about_layout(
    layout: Layout, rng: random.Random, count: int, most: int, aloud: float, answering: bool, dictating: bool = False
) -> Asks:
    """So many questions about a drawn page; a share of them reading lessons where they are to be answered."""
    stand = [asked for asked in layout.questions if _stands(layout, asked)]
    usable = [asked for asked in layout.questions if asked.sort not in ASIDE] if answering else stand
    lessons = read_aloud(lines_of(layout), part_of(count, aloud, rng), rng) if answering else []
    picked = rng.sample(usable, min(count - len(lessons), len(usable)))
    said = [Said(asked.text, _boxes(layout, asked), asked.answer) for asked in picked]
    common = [box for asked in stand if asked.sort not in ASIDE for box in by_line(layout, asked.words)]
    asks = Asks.of([*lessons, *said], count, rng.sample(common, min(most, len(common))), most)
    return asks.dictated(lines_of(layout), [*lessons, *said], rng) if dictating else asks


def lines_of(layout: Layout) -> list[Line]:
    """The lines of a drawn page."""
    members: dict[int, list[int]] = {}
    for word, line in enumerate(layout.word_lines.tolist()):
        members.setdefault(line, []).append(word)
    return [Line([layout.words[word] for word in words], layout.word_boxes[words]) for words in members.values()]


def by_line(layout: Layout, words: list[int]) -> list[Array]:
    """One box for each line that the words of an answer stand in."""
    lines: dict[int, list[int]] = {}
    for word in words:
        lines.setdefault(int(layout.word_lines[word]), []).append(word)
    found = (layout.word_boxes[members] for members in lines.values())
    return [np.concatenate((boxes[:, :2].min(0), boxes[:, 2:].max(0))) for boxes in found]


def tokenised(asks: Sequence[Asks], tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Questions [B, Q, ASK] and answers [B, Q, REPLY] as ids; both empty where an answer is too long to be learned."""
    asked, replies = [], []
    for page in asks:
        said = [reply_ids(tokenizer, reply) if reply else [] for reply in page.replies]
        heard = [question_ids(tokenizer, q) if s else [] for q, s in zip(page.questions, said, strict=True)]
        asked.append(torch.stack([row(ids, ASK) for ids in heard]))
        replies.append(torch.stack([row(ids, REPLY) for ids in said]))
    return torch.stack(asked), torch.stack(replies)


def dictation(asks: Sequence[Asks], tokenizer: Tokenizer) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Notes [B, Q, NOTES] and the answers in them [B, Q, REPLY] as ids, both empty where there is no such lesson."""
    if not any(page.notes for page in asks):
        return None, None
    noted, replies = [], []
    for page in asks:
        said = [reply_ids(tokenizer, reply) if text else [] for text, reply in zip(page.notes, page.noted, strict=True)]
        read = note_ids(tokenizer, page.notes)
        noted.append(torch.stack([row(ids if s else [], NOTES) for ids, s in zip(read, said, strict=True)]))
        replies.append(torch.stack([row(ids, REPLY) for ids in said]))
    return torch.stack(noted), torch.stack(replies)


def _boxes(layout: Layout, asked: Question) -> Array:
    """Where the answer stands, or what it is worked out from; none for what stands nowhere or all over the page."""
    boxes = by_line(layout, asked.words) if asked.words and asked.sort not in WORKED else []
    return np.stack(boxes) if 0 < len(boxes) <= PARTS else np.zeros((0, 4), np.float32)


def part_of(count: int, share: float, rng: random.Random) -> int:
    """A share of a number, rounded up or down by lot."""
    return int(count * share + rng.random()) if share else 0


def _stands(layout: Layout, asked: Question) -> bool:
    """Whether the answer of a question is what its words say, and can so be found."""
    return bool(asked.words) and asked.sort not in WORKED and asked.answer == layout.said(asked.words)
