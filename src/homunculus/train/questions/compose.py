"""From a sample to a lesson: augmentation, a look, the prompt and the answer as token ids."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from homunculus.reader.prompt import Order, answer_ids, encode_page, frame_page
from homunculus.train.questions import augment, templates
from homunculus.train.questions.sample import UNANSWERABLE, Sample
from homunculus.train.questions.sources import AUTO, DRAWN, Drawings, LessonSources
from homunculus.train.questions.visibility import overlap, visible_lines

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_TOKENS = (160, 256, 384, 512, 700, 900)  # of the page's text
SAME_QUESTIONS = ("sroie", "wildreceipt")  # sets that ask the same of every page, so none is unanswerable
GUESSED = 0.2  # share of lessons kept of those whose look does not show the answer
UNLOCATED = 0.35  # share kept of those whose answer was not found among the lines of the page
TRIES = 20  # draws from a source until another is drawn
MIX = {
    "docvqa": 0.32,
    "funsd": 0.08,
    "sroie": 0.06,
    "wildreceipt": 0.03,
    "chartqa": 0.09,
    AUTO: 0.14,
    DRAWN: 0.28,
}


@dataclass(frozen=True)
class Augmentation:
    """How often each change is made."""

    digits: float = 0.4
    swap: float = 0.3
    misread: float = 1.0  # some of these pages still have no errors
    bands: float = 0.2
    resegment: float = 0.15
    reword: float = 1.0  # most of these questions stay as they are


@dataclass(frozen=True)
class Lesson:
    """Token ids of a prompt and of its answer, and the sample that they come from."""

    prompt: list[int]
    answer: list[int]
    sample: Sample
    source: str


@dataclass(frozen=True)
class Composer:
    """Draws samples by a mix of sources and makes lessons of them."""

    sources: LessonSources
    drawings: Drawings
    tokenizer: Tokenizer
    mix: Mapping[str, float] = field(default_factory=lambda: dict(MIX))
    unanswerable: float = 0.1
    order: Order = "question-first"
    max_tokens: tuple[int, ...] = MAX_TOKENS
    augmentation: Augmentation = Augmentation()

    def restarted(self) -> Composer:
        """The same with no document half used."""
        return replace(self, drawings=Drawings(self.drawings.texts, self.drawings.fonts, self.drawings.per_page))

    def draw(self, rng: random.Random) -> Lesson:
        """One lesson, from a source drawn by the mix."""
        mix = self.sources.names(self.mix)
        while True:
            source = rng.choices(list(mix), list(mix.values()))[0]
            for _ in range(TRIES):
                lesson = self.draw_from(source, rng)
                if lesson is not None:
                    return lesson

    def draw_from(self, source: str, rng: random.Random) -> Lesson | None:
        """One lesson from a source; None if the sample drawn does not make one."""
        sample = self._sample(source, rng)
        if sample is None or not sample.lines or not self._usable(sample, rng):
            return None
        sample = self._augmented(sample, rng)
        max_tokens = rng.choice(self.max_tokens)
        sample, scores = visible_lines(sample, max_tokens, rng)
        return self.lesson(sample, scores, max_tokens, source, rng)

    def lesson(
        self, sample: Sample, scores: list[float], max_tokens: int, source: str, rng: random.Random
    ) -> Lesson | None:
        """The lesson of a sample; None if its answer is too long, or not shown and not to be guessed."""
        answer = answer_ids(self.tokenizer, sample.answer)
        if not answer:
            return None
        page = encode_page(self.tokenizer, sample.lines, scores, max_tokens)
        expected = not sample.whole and sample.kind != UNANSWERABLE
        if expected and not sample.answered_by([i for i, _ in page]) and rng.random() >= GUESSED:
            return None
        prompt = frame_page(self.tokenizer, sample.question, [token for _, ids in page for token in ids], self.order)
        return Lesson(prompt, answer, sample, source)

    def validation(self, rng: random.Random) -> list[Lesson]:
        """All human questions of the sources in random order: whole pages, the true lines, nothing changed."""
        lessons = []
        for source, pool in sorted(self.sources.pools.items()):
            for page, question in pool.entries:
                sample = self.sources.sample(page, question, rng, 0)
                scores = overlap(sample).tolist()
                lessons.append(self.lesson(replace(sample, kind="yesno"), scores, self.max_tokens[-1], source, rng))
        rng.shuffle(lessons)
        return [lesson for lesson in lessons if lesson is not None]

    def _sample(self, source: str, rng: random.Random) -> Sample | None:
        if source == DRAWN:
            return self.drawings.draw(self.unanswerable, rng)
        sample = self.sources.automatic(rng) if source == AUTO else self.sources.human(source, rng)
        possible = 1 - sum(self.mix.get(name, 0.0) for name in SAME_QUESTIONS) / sum(self.mix.values())
        if sample is not None and source not in SAME_QUESTIONS and rng.random() < self.unanswerable / possible:
            return self.sources.unanswerable(source, sample, rng) or sample
        return sample

    def _usable(self, sample: Sample, rng: random.Random) -> bool:
        unknown = not sample.holders and sample.kind not in (UNANSWERABLE, "yesno", "count")
        return not unknown or rng.random() < UNLOCATED

    def _augmented(self, sample: Sample, rng: random.Random) -> Sample:
        rates = self.augmentation
        if rng.random() < rates.resegment:
            sample = augment.resegment(sample, rng)
        if rng.random() < rates.bands:
            sample = augment.exchange_bands(sample, rng)
        if rng.random() < rates.swap:
            sample = augment.swap_answer(sample, self.sources.answers, rng)
        if rng.random() < rates.digits:
            sample = augment.permute_digits(sample, rng)
        if rng.random() < rates.misread:
            sample = augment.misread(sample, rng)
        if rng.random() < rates.reword:
            sample = replace(sample, question=templates.reword(sample.question, rng))
        return sample
