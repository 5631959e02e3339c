"""What answers in an evaluation: our reader, or a VLM with an adapter. Pages are opened once for all settings."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from homunculus.eval.data import Item
from homunculus.eval.metrics import answer_in, score_of
from homunculus.eval.ways import ORACLE, Way
from homunculus.eye import Glance
from homunculus.fixation import PAGE_DEGREES
from homunculus.reader.blocks import steady
from homunculus.reader.model import MAX_NEW_TOKENS, Answer, Reader
from homunculus.reader.prompt import MAX_TOKENS
from homunculus.reader.session import Page

Row = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """A question, and the one that the page was looked at for: itself, unless `region` says where that one's lies."""

    item: Item
    looked: Item
    region: str = ""


class Prediction(NamedTuple):
    """An answer: text, confidence, visual tokens, the share of the image they cover, the fixation in its pixels."""

    text: str
    confidence: float
    tokens: float
    coverage: float
    fixation: list[float] | None


class Backend(Protocol):
    """Answers a few questions in many ways."""

    def answers(self, asks: Sequence[Ask], ways: Sequence[Way]) -> Iterator[tuple[Way, list[Row]]]:
        """Rows of results for each way; pages are opened once for all of them."""
        ...

    def first_token(self, asks: Sequence[Ask], way: Way) -> float:
        """Milliseconds a question until its answer begins."""
        ...


def row_of(ask: Ask, way: Way, said: Prediction, ms: float) -> Row:
    """A line of results.jsonl."""
    item = ask.item
    score = score_of(item.dataset)(said.text, item.answers)
    row: Row = {"dataset": item.dataset, "qid": item.qid, "image": item.image.name, "question": item.question}
    row |= {"answers": list(item.answers), "allocator": way.method, "relevance": way.relevance, "budget": way.budget}
    row |= {"region": ask.region, "looked": ask.looked.qid, "prediction": said.text, "score": round(score, 6)}
    row |= {"confidence": round(said.confidence, 4), "tokens": round(said.tokens, 1)}
    return row | {"coverage": round(said.coverage, 4), "fixation": said.fixation, "ms": round(ms, 2)}


class ReaderBackend:
    """Our reader, with any allocator and relevance."""

    def __init__(self, reader: Reader, max_new_tokens: int = MAX_NEW_TOKENS, max_text_tokens: int = MAX_TOKENS) -> None:
        self.reader, self.max_new_tokens, self.max_text_tokens = reader, max_new_tokens, max_text_tokens
        self.pages: dict[Path, Page] = {}

    @torch.no_grad()
    def answers(self, asks: Sequence[Ask], ways: Sequence[Way]) -> Iterator[tuple[Way, list[Row]]]:
        """Rows for each way. What all ways share (finding lines, pyramid, scout) is done before the clock runs."""
        self._open(asks)
        for way in ways:
            mine = [ask for ask in asks if way.relevance != ORACLE or ask.looked.boxes]
            yield way, self._rows(mine, way) if mine else []

    @torch.no_grad()
    def first_token(self, asks: Sequence[Ask], way: Way) -> float:
        """Milliseconds a question, all at once, about pages of which no way has found out anything yet."""
        self.pages.clear()
        self._open(asks)
        return self._timed(asks, way, 1)[1]

    def _rows(self, asks: Sequence[Ask], way: Way) -> list[Row]:
        answers, ms = self._timed(asks, way, self.max_new_tokens)
        rows = []
        for ask, answer in zip(asks, answers, strict=True):
            found = answer_in([line.text for line in answer.lines], ask.item.answers)
            rows.append(row_of(ask, way, said_by(answer), ms) | {"found": found})
        return rows

    def _open(self, asks: Sequence[Ask]) -> None:
        """Open the pages that are not open yet, forget all others, and let the scout find what is asked."""
        images = dict.fromkeys(ask.item.image for ask in asks)
        self.pages = {image: self.pages.get(image) or self.reader.open(image) for image in images}
        for page, about in self._by_page(asks):
            scout, questions = self.reader.scout, [item.question for ask in about for item in (ask.looked, ask.item)]
            with steady():
                scout.found(scout.page(page.scene), questions)

    def _timed(self, asks: Sequence[Ask], way: Way, max_new_tokens: int) -> tuple[list[Answer], float]:
        """Answers of up to so many tokens, and milliseconds a question; every way reads its lines itself."""
        for page, _ in self._by_page(asks):
            page.texts.clear()
        if self.reader.device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        answers = self._answers(asks, way, max_new_tokens)
        return answers, (time.perf_counter() - begun) * 1e3 / len(asks)

    def _answers(self, asks: Sequence[Ask], way: Way, max_new_tokens: int) -> list[Answer]:
        pages: list[Page] = []
        glances: list[Glance] = []
        for page, about in self._by_page(asks):
            pages += [page] * len(about)
            found = look_at(page, [ask.looked for ask in about], way)
            glances += [replace(glance, question=ask.item.question) for ask, glance in zip(about, found, strict=True)]
        *_, answers = self.reader.reply(
            pages, glances, max_new_tokens=max_new_tokens, max_text_tokens=self.max_text_tokens, every=False
        )
        return answers

    def _by_page(self, asks: Sequence[Ask]) -> Iterator[tuple[Page, list[Ask]]]:
        """Pages with their questions; those about one page stand together."""
        for image, group in groupby(asks, key=lambda ask: ask.item.image):
            yield self.pages[image], list(group)


@torch.no_grad()
def look_at(page: Page, items: Sequence[Item], way: Way) -> list[Glance]:
    """Looks at a page in a way, one for each question."""
    options = {key: value for key, value in way.options.items() if key != "off"}
    relevance = way.relevance if way.relevance != ORACLE else "information"
    questions = [item.question for item in items]
    eye = page.eye(questions, way.rule, relevance, way.budget, **options)
    given = torch.cat([oracle(page, item) for item in items]) if way.relevance == ORACLE else None
    with steady():
        glances = eye.look_for(page.scene, questions, relevance=given)
        if not way.off:
            return glances
        places = [beside(g.fixations[0], page, way.off, item.qid) for g, item in zip(glances, items, strict=True)]
        rows = [None] * len(items) if given is None else list(given.split(1))
        entries = zip(questions, places, rows, strict=True)
        return [eye.look_for(page.scene, [asked], place, relevance=row)[0] for asked, place, row in entries]


def oracle(page: Page, item: Item) -> Tensor:
    """Relevance by the answer's known place: 1 for cells of level 0 that touch it, and those above. [1, N]"""
    tree = page.scene.tree
    boxes = tree.box[tree.at(0)].double()  # [n0, 4]
    wanted = torch.tensor([page.box_upright(box) for box in item.boxes], dtype=torch.float64, device=boxes.device)
    apart = (boxes[:, None, :2] >= wanted[:, 2:]).any(2) | (boxes[:, None, 2:] <= wanted[:, :2]).any(2)
    return tree.lift((~apart).any(1).float()[None] + 1e-3, how="max")


def beside(place: Tensor, page: Page, degrees: float, qid: str) -> tuple[float, float]:
    """A place so many degrees off, in a direction that the question's name decides, inside the page."""
    tree = page.scene.tree
    angle = int.from_bytes(sha256(qid.encode()).digest()[:4], "big") / 2**32 * 2 * math.pi
    far = degrees * tree.height / PAGE_DEGREES
    x, y = float(place[0]) + far * math.cos(angle), float(place[1]) + far * math.sin(angle)
    return min(max(x, 0.0), float(tree.width)), min(max(y, 0.0), float(tree.height))


def said_by(answer: Answer) -> Prediction:
    """What is noted of an answer of the reader."""
    glance, place = answer.glance, None
    if len(glance.fixations):
        x, y = glance.fixations[0].tolist()
        place = [round(v, 1) for v in answer.read.page.box_as_given((x, y, x, y))[:2]]
    coverage = float(glance.selection.coverage()[0])
    return Prediction(answer.text, answer.confidence, float(answer.visual_tokens), coverage, place)


class VLMBackend:
    """A wrapped VLM, with allocators where it can have them and peers after its tower."""

    def __init__(self, vlm: Any, where: str = "", max_new_tokens: int = MAX_NEW_TOKENS) -> None:
        self.vlm, self.where, self.max_new_tokens = vlm, where, max_new_tokens

    def answers(self, asks: Sequence[Ask], ways: Sequence[Way]) -> Iterator[tuple[Way, list[Row]]]:
        """Rows for each way, one question after the other."""
        for way in ways:
            yield way, [row_of(ask, way, *self._timed(ask, way, self.max_new_tokens)) for ask in asks]

    def first_token(self, asks: Sequence[Ask], way: Way) -> float:
        """Milliseconds a question, one after the other."""
        return sum(self._timed(ask, way, 1)[1] for ask in asks) / len(asks)

    def _timed(self, ask: Ask, way: Way, max_new_tokens: int) -> tuple[Prediction, float]:
        begun = time.perf_counter()
        said = self._said(ask, way, max_new_tokens)
        return said, (time.perf_counter() - begun) * 1e3

    def _said(self, ask: Ask, way: Way, max_new_tokens: int) -> Prediction:
        from homunculus.peers.vlms import ask as ask_peer

        if way.is_peer:
            asked = ask.item.image, ask.item.question
            reply, count = ask_peer(self.vlm, *asked, way.rule, way.budget, max_new_tokens)
            return Prediction(reply.text, reply.probability, count, 1.0, None)
        options = {key: value for key, value in way.options.items() if key != "off"}
        how = {"allocator": way.rule, "relevance": way.relevance, "budget": way.budget, "where": self.where}
        reply = self.vlm.ask(ask.item.image, [ask.item.question], max_new_tokens=max_new_tokens, **how, **options)[0]
        selection = reply.glance.selection if reply.glance else None
        count = float(selection.mask.sum()) if selection else float(way.budget)
        return Prediction(
            reply.text, reply.probability, count, float(selection.coverage()[0]) if selection else 1.0, None
        )
