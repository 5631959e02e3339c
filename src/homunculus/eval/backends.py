"""What answers in an evaluation: our reader, or a VLM with an adapter. Pages are opened once for all settings."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from homunculus.eval.data import Item
from homunculus.eval.metrics import answer_in, score_of
from homunculus.eval.settings import ORACLE, Setting
from homunculus.eye import Glance
from homunculus.fixation import PAGE_DEGREES
from homunculus.reader.blocks import steady
from homunculus.reader.model import MAX_NEW_TOKENS, Answer, GenerationConfig, Reader
from homunculus.reader.prompt import MAX_TOKENS
from homunculus.reader.session import Page, page_cache

if TYPE_CHECKING:
    from homunculus.adapters import VLM

Row = dict[str, Any]
Opened = tuple[Page, "EvalSample"]


@dataclass(frozen=True)
class EvalSample:
    """A question, and the one that the page was looked at for: itself, unless `region` says where that one's lies."""

    item: Item
    target: Item
    region: str = ""


class Prediction(NamedTuple):
    """An answer: text, confidence, visual tokens, the share of the image they cover, the fixation in its pixels."""

    text: str
    confidence: float
    tokens: float
    coverage: float
    fixation: list[float] | None


class Backend(Protocol):
    """Answers a few questions in many settings."""

    def answers(
        self, samples: Sequence[EvalSample], settings: Sequence[Setting]
    ) -> Iterator[tuple[Setting, list[Row]]]:
        """Rows of results for each setting; pages are opened once for all of them."""
        ...

    def first_token(self, samples: Sequence[EvalSample], setting: Setting) -> float:
        """Milliseconds a question until its answer begins."""
        ...


def row_of(sample: EvalSample, setting: Setting, prediction: Prediction, ms: float) -> Row:
    """A line of results.jsonl."""
    item = sample.item
    return {
        "dataset": item.dataset,
        "qid": item.qid,
        "image": item.image.name,
        "question": item.question,
        "answers": list(item.answers),
        "allocator": setting.method,
        "relevance": setting.relevance,
        "budget": setting.budget,
        "region": sample.region,
        "looked": sample.target.qid,
        "prediction": prediction.text,
        "score": round(score_of(item.dataset)(prediction.text, item.answers), 6),
        "confidence": round(prediction.confidence, 4),
        "tokens": round(prediction.tokens, 1),
        "coverage": round(prediction.coverage, 4),
        "fixation": prediction.fixation,
        "ms": round(ms, 2),
    }


class ReaderBackend:
    """Our reader, with any allocator and relevance."""

    def __init__(self, reader: Reader, max_new_tokens: int = MAX_NEW_TOKENS, max_text_tokens: int = MAX_TOKENS) -> None:
        self.reader, self.max_new_tokens, self.max_text_tokens = reader, max_new_tokens, max_text_tokens
        self.pages = page_cache()  # by file

    @torch.no_grad()
    def answers(
        self, samples: Sequence[EvalSample], settings: Sequence[Setting]
    ) -> Iterator[tuple[Setting, list[Row]]]:
        """Rows for each setting. What all share (finding lines, pyramid, scout) is done before the clock runs."""
        opened = self._open(samples)
        for setting in settings:
            known = [(page, sample) for page, sample in opened if setting.relevance != ORACLE or sample.target.boxes]
            yield setting, self._rows(known, setting) if known else []

    @torch.no_grad()
    def first_token(self, samples: Sequence[EvalSample], setting: Setting) -> float:
        """Milliseconds a question, all at once, about pages of which nothing is known that a setting finds out."""
        self.pages.clear()
        return self._timed(self._open(samples), setting, 1)[1]

    def _rows(self, opened: Sequence[Opened], setting: Setting) -> list[Row]:
        answers, ms = self._timed(opened, setting, self.max_new_tokens)
        rows = []
        for (_, sample), answer in zip(opened, answers, strict=True):
            found = answer_in([line.text for line in answer.lines], sample.item.answers)
            rows.append(row_of(sample, setting, prediction_of(answer), ms) | {"found": found})
        return rows

    def _open(self, samples: Sequence[EvalSample]) -> list[Opened]:
        """Each sample with its page, opened unless it is still open; the scout has found what is asked."""
        opened: list[Opened] = []
        for image, group in groupby(samples, key=lambda sample: sample.item.image):
            if image not in self.pages:
                self.pages[image] = self.reader.open(image)
            page, on_page = self.pages[image], list(group)
            questions = [item.question for sample in on_page for item in (sample.target, sample.item)]
            with steady():
                self.reader.scout.found(self.reader.scout.page(page.scene), questions)
            opened += [(page, sample) for sample in on_page]
        return opened

    def _timed(self, opened: Sequence[Opened], setting: Setting, max_new_tokens: int) -> tuple[list[Answer], float]:
        """Answers of up to so many tokens, and milliseconds a question; every setting reads its lines itself."""
        for page, _ in opened:
            page.texts.clear()
        if self.reader.device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        answers = self._answers(opened, setting, max_new_tokens)
        return answers, (time.perf_counter() - begun) * 1e3 / len(opened)

    def _answers(self, opened: Sequence[Opened], setting: Setting, max_new_tokens: int) -> list[Answer]:
        glances: list[Glance] = []
        for page, group in groupby(opened, key=lambda each: each[0]):
            on_page = [sample for _, sample in group]
            found = look_at(page, [sample.target for sample in on_page], setting)
            glances += [replace(g, question=sample.item.question) for g, sample in zip(found, on_page, strict=True)]
        config = GenerationConfig(max_new_tokens, max_text_tokens=self.max_text_tokens)
        *_, answers = self.reader.reply([page for page, _ in opened], glances, config, every=False)
        return answers


@torch.no_grad()
def look_at(page: Page, items: Sequence[Item], setting: Setting) -> list[Glance]:
    """Looks at a page, one for each question."""
    questions, is_oracle = [item.question for item in items], setting.relevance == ORACLE
    relevance = "information" if is_oracle else setting.relevance
    eye = page.eye(questions, setting.rule, relevance, setting.budget, **setting.options)
    given = torch.cat([oracle(page, item) for item in items]) if is_oracle else None
    with steady():
        glances = eye.look_for(page.scene, questions, relevance=given)
        if not setting.degrees_off:
            return glances
        found = []
        for i, (glance, item) in enumerate(zip(glances, items, strict=True)):
            place = beside(glance.fixations[0], page, setting.degrees_off, item.qid)
            row = None if given is None else given[i : i + 1]
            found += eye.look_for(page.scene, [item.question], place, relevance=row)
        return found


def oracle(page: Page, item: Item) -> Tensor:
    """Relevance by the answer's known place: 1 for cells of level 0 that touch it, and those above. [1, N]"""
    tree = page.scene.tree
    boxes = tree.box[tree.at(0)].double()  # [n0, 4]
    answer_boxes = torch.tensor([page.box_upright(box) for box in item.boxes], dtype=torch.float64, device=boxes.device)
    disjoint = (boxes[:, None, :2] >= answer_boxes[:, 2:]).any(2) | (boxes[:, None, 2:] <= answer_boxes[:, :2]).any(2)
    return tree.lift((~disjoint).any(1).float()[None] + 1e-3, how="max")


def beside(place: Tensor, page: Page, degrees: float, qid: str) -> tuple[float, float]:
    """A place so many degrees off, in a direction that the question's name decides, inside the page."""
    tree = page.scene.tree
    angle = int.from_bytes(sha256(qid.encode()).digest()[:4], "big") / 2**32 * 2 * math.pi
    far = degrees * tree.height / PAGE_DEGREES
    x, y = float(place[0]) + far * math.cos(angle), float(place[1]) + far * math.sin(angle)
    return min(max(x, 0.0), float(tree.width)), min(max(y, 0.0), float(tree.height))


def prediction_of(answer: Answer) -> Prediction:
    """What is noted of an answer of the reader."""
    glance, place = answer.glance, None
    if len(glance.fixations):
        x, y = glance.fixations[0].tolist()
        place = [round(v, 1) for v in answer.read.page.box_as_given((x, y, x, y))[:2]]
    coverage = float(glance.selection.coverage()[0])
    return Prediction(answer.text, answer.confidence, float(answer.visual_tokens), coverage, place)


class VLMBackend:
    """A wrapped VLM, with allocators where it can have them and peers after its tower."""

    def __init__(self, vlm: VLM, where: str = "", max_new_tokens: int = MAX_NEW_TOKENS) -> None:
        self.vlm, self.where, self.max_new_tokens = vlm, where, max_new_tokens

    def answers(
        self, samples: Sequence[EvalSample], settings: Sequence[Setting]
    ) -> Iterator[tuple[Setting, list[Row]]]:
        """Rows for each setting, one question after the other."""
        for setting in settings:
            timed = [(sample, *self._timed(sample, setting, self.max_new_tokens)) for sample in samples]
            yield setting, [row_of(sample, setting, prediction, ms) for sample, prediction, ms in timed]

    def first_token(self, samples: Sequence[EvalSample], setting: Setting) -> float:
        """Milliseconds a question, one after the other."""
        return sum(self._timed(sample, setting, 1)[1] for sample in samples) / len(samples)

    def _timed(self, sample: EvalSample, setting: Setting, max_new_tokens: int) -> tuple[Prediction, float]:
        begun = time.perf_counter()
        prediction = self._predict(sample.item, setting, max_new_tokens)
        return prediction, (time.perf_counter() - begun) * 1e3

    def _predict(self, item: Item, setting: Setting, max_new_tokens: int) -> Prediction:
        from homunculus.peers.vlms import ask as ask_peer

        if setting.is_peer:
            reply, count = ask_peer(self.vlm, item.image, item.question, setting.rule, setting.budget, max_new_tokens)
            return Prediction(reply.text, reply.probability, count, 1.0, None)
        how: dict[str, Any] = {"allocator": setting.rule, "relevance": setting.relevance, "budget": setting.budget}
        how |= {"where": self.where} | setting.options
        reply = self.vlm.ask(item.image, [item.question], max_new_tokens=max_new_tokens, **how)[0]
        if reply.glance is None:
            return Prediction(reply.text, reply.probability, float(setting.budget), 1.0, None)
        selection = reply.glance.selection
        count, coverage = float(selection.mask.sum()), float(selection.coverage()[0])
        return Prediction(reply.text, reply.probability, count, coverage, None)
