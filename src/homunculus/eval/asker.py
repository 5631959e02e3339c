"""Who answers in an evaluation: our reader, or a VLM with an adapter. Pages are taken in once for all methods."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from homunculus.eval.data import Item
from homunculus.eval.metrics import score_of
from homunculus.eval.ways import ORACLE, Way
from homunculus.eye import Eye, Glance
from homunculus.fixation import PAGE_DEGREES
from homunculus.image import load
from homunculus.reader.blocks import steady
from homunculus.relevance import Scene

MOST = 32  # tokens of an answer

Row = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """A question, and the one that the page was looked at for: itself, unless `region` says where that one's lies."""

    item: Item
    looked: Item
    region: str = ""


class Said(NamedTuple):
    """An answer: text, how sure, tokens that it took, the share of the image they cover, where it looked."""

    text: str
    confidence: float
    tokens: float
    coverage: float
    fixation: list[float] | None


class Asker(Protocol):
    """Answers a few questions in many ways."""

    def answers(self, asks: Sequence[Ask], ways: Sequence[Way]) -> Iterator[tuple[Way, list[Row]]]:
        """Rows of results for each way; pages are taken in once for all of them."""
        ...

    def first_token(self, asks: Sequence[Ask], way: Way) -> float:
        """Milliseconds a question until its answer begins."""
        ...


def row_of(ask: Ask, way: Way, said: Said, ms: float) -> Row:
    """A line of results.jsonl."""
    item = ask.item
    score = score_of(item.dataset)(said.text, item.answers)
    row: Row = {"dataset": item.dataset, "qid": item.qid, "image": item.image.name, "question": item.question}
    row |= {"answers": list(item.answers), "allocator": way.method, "relevance": way.relevance, "budget": way.budget}
    row |= {"region": ask.region, "looked": ask.looked.qid, "prediction": said.text, "score": round(score, 6)}
    row |= {"confidence": round(said.confidence, 4), "tokens": round(said.tokens, 1)}
    return row | {"coverage": round(said.coverage, 4), "fixation": said.fixation, "ms": round(ms, 2)}


class Pages:
    """Images ready to be looked at, each loaded once as long as it is needed."""

    def __init__(self, device: torch.device | str) -> None:
        self.device, self.scenes = device, dict[str, Scene]()

    def of(self, item: Item) -> Scene:
        """The scene of an item's image."""
        name = str(item.image)
        if name not in self.scenes:
            pixels = load(item.image).to(self.device)
            self.scenes[name] = Eye(scout=False).scene(pixels)
        _ = self.scenes[name].levels
        return self.scenes[name]

    def renew(self) -> None:
        """Forget what is known of the images, but not the images."""
        self.scenes = {name: Scene(scene.pixels, scene.tree) for name, scene in self.scenes.items()}

    def keep(self, asks: Sequence[Ask]) -> None:
        """Forget all images but those of these questions."""
        wanted = {str(ask.item.image) for ask in asks}
        self.scenes = {name: scene for name, scene in self.scenes.items() if name in wanted}


class ReaderAsker:
    """Our reader, with allocators and peers."""

    def __init__(self, reader: Any, most: int = MOST) -> None:
        from homunculus.peers.reading import Bases

        self.reader, self.most = reader, most
        self.pages, self.bases = Pages(reader.device), Bases(reader)

    @torch.no_grad()
    def answers(self, asks: Sequence[Ask], ways: Sequence[Way]) -> Iterator[tuple[Way, list[Row]]]:
        """Rows for each way. What is the same for all ways (pyramid, scout) is done before the clock runs."""
        self._take_in(asks)
        for way in ways:
            mine = [ask for ask in asks if way.relevance != ORACLE or ask.looked.boxes]
            if mine:
                said, ms = self._timed(mine, way, self.most)
                yield way, [row_of(ask, way, each, ms) for ask, each in zip(mine, said, strict=True)]
            else:
                yield way, []

    @torch.no_grad()
    def first_token(self, asks: Sequence[Ask], way: Way) -> float:
        """Milliseconds a question, all at once, about pages of which no way has found out anything yet."""
        self.pages.renew()
        self._take_in(asks)
        return self._timed(asks, way, 1)[1]

    def _take_in(self, asks: Sequence[Ask]) -> None:
        """What is the same for all ways: pyramids, and what the scout finds."""
        self.pages.keep(asks)
        with steady():
            for _, group in groupby(asks, key=lambda ask: ask.item.image):  # those about a page stand together
                about = list(group)
                scene = self.pages.of(about[0].item)
                self.reader.scout.found(self.reader.scout.page(scene), [ask.looked.question for ask in about])
                self.reader.places(scene, [ask.item.question for ask in about])
        self.bases.keep(list(self.pages.scenes.values()))

    def _timed(self, asks: Sequence[Ask], way: Way, most: int) -> tuple[list[Said], float]:
        """Answers of up to so many tokens, and milliseconds a question."""
        if self.reader.device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        with steady():
            said = self._peer(asks, way, most) if way.is_peer else self._said(asks, way, most)
        return said, (time.perf_counter() - begun) * 1e3 / len(asks)

    def _said(self, asks: Sequence[Ask], way: Way, most: int) -> list[Said]:
        glances: list[Glance] = []
        for _, group in groupby(asks, key=lambda ask: ask.item.image):
            about = list(group)
            found = looked(self.pages.of(about[0].item), about, way, self.reader.scout)
            glances += [replace(glance, question=ask.item.question) for ask, glance in zip(about, found, strict=True)]
        *_, answers = self.reader.reply(glances, most=most)
        return [told(answer, glance) for answer, glance in zip(answers, glances, strict=True)]

    def _peer(self, asks: Sequence[Ask], way: Way, most: int) -> list[Said]:
        scenes = [self.pages.of(ask.item) for ask in asks]
        questions, looking = [ask.item.question for ask in asks], [ask.looked.question for ask in asks]
        glances, answers, tokens = self.bases.answers(way.rule, way.budget, scenes, questions, looking, most)
        return [
            told(answer, glance)._replace(tokens=count)
            for answer, glance, count in zip(answers, glances, tokens, strict=True)
        ]


def looked(scene: Scene, asks: Sequence[Ask], way: Way, scout: Any) -> list[Glance]:
    """Looks at a page in a way, for each of some questions."""
    options = {key: value for key, value in way.options.items() if key != "off"}
    known = way.relevance if way.relevance != ORACLE else "information"
    eye = Eye(way.rule, known, way.budget, scout=scout, **options)
    wanted = [ask.looked for ask in asks]
    questions = [item.question for item in wanted]
    given = torch.cat([oracle(scene, item) for item in wanted]) if way.relevance == ORACLE else None
    glances = eye.look_for(scene, questions, relevance=given)
    if not way.off:
        return glances
    places = [beside(g.fixations[0], scene, way.off, item.qid) for g, item in zip(glances, wanted, strict=True)]
    rows = [None] * len(asks) if given is None else list(given.split(1))
    entries = zip(questions, places, rows, strict=True)
    return [eye.look_for(scene, [asked], fixation=place, relevance=row)[0] for asked, place, row in entries]


def oracle(scene: Scene, item: Item) -> Tensor:
    """Relevance by one who knows the answer's place: 1 for cells of level 0 that touch it, and those above. [1, N]"""
    tree = scene.tree
    boxes = tree.box[tree.at(0)].double()  # [n0, 4]
    wanted = torch.tensor(item.boxes, dtype=torch.float64, device=boxes.device)
    apart = (boxes[:, None, :2] >= wanted[:, 2:]).any(2) | (boxes[:, None, 2:] <= wanted[:, :2]).any(2)
    return tree.lift((~apart).any(1).float()[None] + 1e-3, how="max")


def beside(place: Tensor, scene: Scene, degrees: float, qid: str) -> tuple[float, float]:
    """A place so many degrees off, in a direction that the question's name decides, inside the image."""
    turn = int.from_bytes(sha256(qid.encode()).digest()[:4], "big") / 2**32 * 2 * math.pi
    far = degrees * scene.tree.height / PAGE_DEGREES
    x, y = float(place[0]) + far * math.cos(turn), float(place[1]) + far * math.sin(turn)
    return min(max(x, 0.0), float(scene.tree.width)), min(max(y, 0.0), float(scene.tree.height))


def told(answer: Any, glance: Glance) -> Said:
    """What is noted of an answer of the reader."""
    place = [round(float(v), 1) for v in glance.fixations[0]] if len(glance.fixations) else None
    selection = glance.selection
    count = float(selection.mask.sum())
    return Said(answer.text, answer.confidence, count, float(selection.coverage()[0]), place)


class VLMAsker:
    """A wrapped VLM, with allocators where it can have them and peers after its tower."""

    def __init__(self, vlm: Any, where: str = "", most: int = MOST) -> None:
        self.vlm, self.where, self.most = vlm, where, most

    def answers(self, asks: Sequence[Ask], ways: Sequence[Way]) -> Iterator[tuple[Way, list[Row]]]:
        """Rows for each way, one question after the other."""
        for way in ways:
            yield way, [row_of(ask, way, *self._timed(ask, way, self.most)) for ask in asks]

    def first_token(self, asks: Sequence[Ask], way: Way) -> float:
        """Milliseconds a question, one after the other."""
        return sum(self._timed(ask, way, 1)[1] for ask in asks) / len(asks)

    def _timed(self, ask: Ask, way: Way, most: int) -> tuple[Said, float]:
        begun = time.perf_counter()
        said = self._said(ask, way, most)
        return said, (time.perf_counter() - begun) * 1e3

    def _said(self, ask: Ask, way: Way, most: int) -> Said:
        from homunculus.peers.vlms import ask as ask_peer

        if way.is_peer:
            reply, count = ask_peer(self.vlm, ask.item.image, ask.item.question, way.rule, way.budget, most)
            return Said(reply.text, reply.probability, count, 1.0, None)
        options = {key: value for key, value in way.options.items() if key != "off"}
        how = {"allocator": way.rule, "relevance": way.relevance, "budget": way.budget, "where": self.where}
        reply = self.vlm.ask(ask.item.image, [ask.item.question], most=most, **how, **options)[0]
        selection = reply.glance.selection if reply.glance else None
        count = float(selection.mask.sum()) if selection else float(way.budget)
        return Said(reply.text, reply.probability, count, float(selection.coverage()[0]) if selection else 1.0, None)
