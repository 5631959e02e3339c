"""Where samples come from: people's questions about real pages, automatic questions about them, drawn documents."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from homunculus.errors import InputError
from homunculus.reader.prompt import NOT_FOUND
from homunculus.train.questions import templates
from homunculus.train.questions.augment import Shapes, by_shape
from homunculus.train.questions.auto_questions import auto_questions
from homunculus.train.questions.drawn import draw_page
from homunculus.train.questions.locate import locate, normalise
from homunculus.train.questions.pages import YES_NO, TextPage, TextQuestion, load_set, load_transcripts
from homunculus.train.questions.reading_tasks import reading_task
from homunculus.train.questions.sample import CHART, UNANSWERABLE, Sample, compares
from homunculus.train.questions.visibility import words_of
from homunculus.train.synth.layouts import Typefaces
from homunculus.train.synth.text import Texts

AUTO, DRAWN = "auto", "drawn"
CHARTS = ("chartqa",)
NO_DOCUMENTS = ("sroie", "wildreceipt", "chartqa")  # receipts and charts: no titles and page numbers
READING = 0.15  # share of automatic questions that are reading tasks
TRIES = 16  # draws of another page's question
KNOWN = 0.34  # part of the words of an unanswerable question that the page may have
GENERIC = frozenset(
    {
        "number", "date", "title", "total", "amount", "company", "report", "letter", "year", "address", "person",
        "table", "figure", "type", "receipt", "phone", "telephone", "time", "signed", "subject", "heading", "city",
        "state", "country", "organization", "sent", "received", "addressed", "department", "form", "graph", "chart",
        "percentage", "code", "first", "second", "last", "top", "bottom", "line", "text", "mention", "memo",
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pool:
    """Questions of one entry of the mix, and which of them are asked about several pages."""

    entries: list[tuple[TextPage, TextQuestion]]
    common: frozenset[str]

    @classmethod
    def of(cls, pages: Sequence[TextPage]) -> Pool:
        """The human questions of some pages."""
        entries = [(page, question) for page in pages for question in page.questions]
        times = Counter(question.text.lower() for _, question in entries)
        return cls(entries, frozenset(text for text, count in times.items() if count > 1))


class LessonSources:
    """All pages and questions, by entry of the mix.

    Args:
        root: the data folder; empty for drawn documents alone.
        sets: names of its data sets. "x" and "x_more" are one entry of the mix.
        transcripts: a file of what a recogniser read, or empty.
        transcribed: share of samples of transcribed pages that use a transcript.
        val: the pages kept for validation, instead of those to train on.
    """

    def __init__(
        self, root: str, sets: Sequence[str], transcripts: str = "", transcribed: float = 0.6, val: bool = False
    ) -> None:
        self.transcribed = transcribed
        read = load_transcripts(Path(transcripts)) if transcripts else {}
        pages = {name: load_set(Path(root), name, read, val) for name in sets} if root else {}
        groups: dict[str, list[TextPage]] = {}
        for name, found in pages.items():
            groups.setdefault(name.removesuffix("_more"), []).extend(found)
        self.pools = {name: pool for name, group in groups.items() if (pool := Pool.of(group)).entries}
        self.charts = frozenset(page for name in CHARTS for page in groups.get(name, ()))
        self.auto = [
            (page, auto_questions(page.versions[0], not name.startswith(NO_DOCUMENTS)))
            for name, found in pages.items()
            for page in found
        ]
        answers = [question.answer for pool in self.pools.values() for _, question in pool.entries]
        answers += [question.answer for _, questions in self.auto for question in questions]
        self.answers: Shapes = by_shape(answers)

    def names(self, mix: Mapping[str, float]) -> dict[str, float]:
        """The entries of a mix that there are pages for."""
        available = {*self.pools, DRAWN, *((AUTO,) if self.auto else ())}
        unknown = [name for name in self.pools if name not in mix]
        if unknown:
            raise InputError(f"the mix has no entry {unknown[0]!r}; it has {', '.join(mix)}")
        return {name: share for name, share in mix.items() if name in available and share > 0}

    def human(self, name: str, rng: random.Random) -> Sample:
        """A question that people asked about a page of a set."""
        page, question = rng.choice(self.pools[name].entries)
        return self.sample(page, question, rng)

    def automatic(self, rng: random.Random) -> Sample | None:
        """A question that follows from the lines of a page, or a reading task; every kind equally often."""
        page, questions = rng.choice(self.auto)
        if not questions or rng.random() < READING:
            task = reading_task(page.versions[0], rng)
            return self.sample(page, task, rng, 0) if task else None
        kind = rng.choice(sorted({question.kind for question in questions}))
        return self.sample(page, rng.choice([question for question in questions if question.kind == kind]), rng)

    def sample(self, page: TextPage, question: TextQuestion, rng: random.Random, version: int | None = None) -> Sample:
        """A question about one version of its page, in words."""
        if version is None:
            others = len(page.versions) - 1
            version = rng.randint(1, others) if others and rng.random() < self.transcribed else 0
        lines = page.versions[version]
        if version < len(question.holders):
            holders = question.holders[version]
        else:
            boxes = [page.versions[0][i].box for i in question.holders[0]]
            holders = locate(question.answer, boxes, lines)
        automatic = question.kind in templates.TEMPLATES
        text = templates.phrase(question.kind, question.text, rng) if automatic else question.text
        kind = CHART if page in self.charts and question.kind == "human" else question.kind
        return Sample(text, question.answer, lines, holders, kind, version > 0)

    def unanswerable(self, name: str, sample: Sample, rng: random.Random) -> Sample | None:
        """A page with a question about another page, which it does not answer; None if none was found."""
        page = normalise("".join(line.text for line in sample.lines))
        for _ in range(TRIES):
            text, answer, named = self._other(name, rng)
            specific = words_of(text) - GENERIC
            known = sum(normalise(word) in page for word in specific)
            enough = len(specific) >= (1 if named else 2) and known <= KNOWN * (len(specific) - 1)
            if enough and normalise(answer) and normalise(answer) not in page:
                return Sample(text, NOT_FOUND, sample.lines, (), UNANSWERABLE, sample.misread)
        return None

    def _other(self, name: str, rng: random.Random) -> tuple[str, str, bool]:
        """A question that is not asked about many pages, its answer, and whether it names a field."""
        if name == AUTO:
            _, questions = rng.choice(self.auto)
            named = [question for question in questions if question.kind in ("key", "row", "cell")]
            if not named:
                return "", "", False
            question = rng.choice(named)
            return templates.phrase(question.kind, question.text, rng), question.answer, True
        pool = self.pools[name]
        _, question = rng.choice(pool.entries)
        generic = question.text.lower() in pool.common or compares(question.text)
        if generic or question.answer.lower() in YES_NO:
            return "", "", False
        return question.text, question.answer, "the field '" in question.text


class Drawings:
    """Samples from drawn documents; each document serves for several."""

    def __init__(self, texts: Texts, fonts: Typefaces, per_page: int = 3) -> None:
        self.texts, self.fonts, self.per_page = texts, fonts, per_page
        self.queue: list[Sample] = []

    def draw(self, unanswerable: float, rng: random.Random) -> Sample | None:
        """The next sample; `unanswerable` is the share of questions that the page does not answer."""
        if not self.queue:
            page = draw_page(self.texts, self.fonts, rng)
            absent = [question for question in page.questions if question.kind == UNANSWERABLE]
            stated = [question for question in page.questions if question.kind != UNANSWERABLE]
            rng.shuffle(stated)
            for question in stated[: self.per_page]:
                if absent and rng.random() < unanswerable:
                    question = rng.choice(absent)
                sample = Sample(question.text, question.answer, page.versions[0], question.holders[0], question.kind)
                self.queue.append(sample)
        return self.queue.pop() if self.queue else None
