"""The reader: looks at a page under a fixed budget of tokens, reads what it sees, and answers questions about it.

Finder, scout, allocator, recogniser and language model in a row. The page is taken in once; every question looks at it
anew. What the look shows legibly is read and given to the language model as text in page layout.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.errors import InputError, whole_number
from homunculus.eye import Glance, save
from homunculus.reader.blocks import steady
from homunculus.reader.calibration import Calibration, features_of
from homunculus.reader.finder import LineFinder
from homunculus.reader.language import Language, fingerprint
from homunculus.reader.lines import Line
from homunculus.reader.lora import Lora
from homunculus.reader.photo import PhotoReader
from homunculus.reader.prompt import END, MAX_TOKENS, NOT_FOUND, Order, build_prompt, start_ids
from homunculus.reader.read_lines import ReadLines
from homunculus.reader.scout import Scout
from homunculus.reader.session import Page, PageReader, Recognizing, check_question
from homunculus.runtime.decoding import SEEDS, decode

if TYPE_CHECKING:
    from PIL import Image

    from homunculus.image import Source

MAX_NEW_TOKENS = 64  # of an answer unless told
BATCH_SIZE = 8  # questions that are answered at a time
REFUSAL = 3.0  # log odds by which "not on the page" must be likelier than the best beginning of an answer
LOADING = ("page", "dpi", "max_pixels")
READ_AHEAD = 1.25  # text read for each token of the prompt: how long a line is shows only when it is read


@dataclass(frozen=True)
class GenerationConfig:
    """How to generate an answer.

    Args:
        max_new_tokens: of an answer.
        temperature, seed: above 0 it is sampled, from that seed.
        max_text_tokens: of the page's text that the language model is given.
    """

    max_new_tokens: int = MAX_NEW_TOKENS
    temperature: float = 0.0
    seed: int = 0
    max_text_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        whole_number("max_new_tokens", self.max_new_tokens, 1)
        whole_number("seed", self.seed, *SEEDS)
        whole_number("max_text_tokens", self.max_text_tokens, 0)

    @classmethod
    def pop_from(cls, options: dict[str, Any]) -> GenerationConfig:
        """Made of those options that are its own, which are taken out."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls) if field.name in options})


@dataclass(frozen=True, eq=False)
class Answer:
    """What the reader says to a question, how sure it is (0 to 1), what it read, and how long each part took."""

    text: str
    confidence: float
    read: ReadLines
    seconds: dict[str, float] = field(default_factory=dict)
    ended: bool = True  # else it has as many tokens as it may have, and would go on
    page: int = 0
    features: tuple[float, ...] = ()  # what the confidence was worked out from

    @property
    def lines(self) -> tuple[Line, ...]:
        """What the look showed legibly; boxes are in pixels of the image as it was given."""
        return self.read.lines

    @property
    def glance(self) -> Glance:
        """The look that was taken."""
        return self.read.glance

    @property
    def glances(self) -> list[Glance]:
        """The looks that were taken, first one first."""
        return [self.glance]

    @property
    def visual_tokens(self) -> int:
        """Tokens spent on the image, over all looks."""
        return self.read.visual_tokens

    @property
    def how_sure(self) -> str:
        """The confidence in words."""
        return f"{self.confidence:.0%} sure"

    def to_dict(self) -> dict[str, Any]:
        """The glance's entries with answer, confidence, lines and seconds, ready for JSON."""
        answer = {"answer": self.text, "confidence": self.confidence, "page": self.page, "seconds": self.seconds}
        return self.read.to_dict() | answer

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"

    def picture(self) -> Image.Image:
        """The picture of the glance with the answer above it and frames around the lines that were read."""
        return self.read.picture(f"{self.text}   ({self.how_sure})")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture (.png, .jpg, .webp) or the numbers (.json)."""
        save(self, path)


class Reader(PageReader):
    """Answers questions about images. `homunculus.load_reader()` makes one from the shipped weights.

    Args:
        finder, scout, recognizer: find text lines, find what is asked for, read lines.
        lora: merged into the language model's weights.
        fits: fingerprint of the language model that the LoRA was trained for.
        calibration: turns what is known of an answer into the probability of its being right.
        photo: vision encoder, adapter, kind and calibration for photographs; without it they are read like documents.
    """

    def __init__(
        self,
        finder: LineFinder,
        scout: Scout,
        recognizer: Recognizing,
        lora: Lora,
        language: Language,
        fits: str = "",
        calibration: Calibration | None = None,
        photo: Callable[[nn.Module], PhotoReader] | None = None,
    ) -> None:
        if fits and fingerprint(language.model) != fits:
            warnings.warn(
                f"the reader was trained with another language model than the one in {language.folder}; "
                "its answers will be poor",
                stacklevel=2,
            )
        super().__init__(finder, scout, recognizer)
        lora.merge(language.model)
        self.language = language
        self.calibration = calibration or Calibration()
        self.photo = photo(language.model) if photo else None
        self.hashes: dict[str, str] = {}  # of the files that it was loaded from
        self.ends, self.refusal = set(language.encode(END)), language.encode(NOT_FOUND)[0]

    @overload
    def ask(self, image: Source, question: str, **how: Any) -> Answer: ...

    @overload
    def ask(self, image: Source, question: Sequence[str], **how: Any) -> list[Answer]: ...

    def ask(self, image: Source, question: str | Sequence[str], **how: Any) -> Answer | list[Answer]:
        """Answer a question about an image, or several about the same image, which is then taken in only once.

        `budget`, `allocator`, `relevance`, `fixation` and options of the allocator say how to look (see
        `homunculus.Eye`), `max_new_tokens` how many tokens an answer may have; `temperature` above 0 samples, from
        `seed`; `max_text_tokens` limits the text that the language model is given. page, dpi, max_pixels go to the
        loading.
        """
        questions = [question] if isinstance(question, str) else list(question)
        loading = {name: how.pop(name) for name in LOADING if name in how}
        begun = time.perf_counter()
        page = self.open(image, **loading)
        opened = {"open": time.perf_counter() - begun}
        answers = self.answer(page, questions, seconds=opened, number=loading.get("page", 0), **how)
        return answers[0] if isinstance(question, str) else answers

    def stream(self, image: Source, question: str, **how: Any) -> Iterator[Answer]:
        """The answer as it grows, token by token; the last is the whole."""
        loading = {name: how.pop(name) for name in LOADING if name in how}
        config = GenerationConfig.pop_from(how)
        clock = _Clock(None)
        page = self.open(image, **loading)
        clock.lap("open")
        glances = page.looks([check_question(question)], **how)
        clock.lap("look")
        number = loading.get("page", 0)
        for grown in self.reply([page], glances, config, clock.seconds, number):
            yield grown[0]

    def answer(
        self,
        page: Page,
        questions: Sequence[str],
        seconds: dict[str, float] | None = None,
        number: int = 0,
        **how: Any,
    ) -> list[Answer]:
        """Answers to questions about an opened page."""
        config = GenerationConfig.pop_from(how)
        questions = [check_question(question) for question in questions]
        if not questions:
            raise InputError("a question is missing: ask something about the image")
        answers: list[Answer] = []
        for first in range(0, len(questions), BATCH_SIZE):
            part = questions[first : first + BATCH_SIZE]
            begun = time.perf_counter()
            glances = page.looks(part, **how)
            spent = dict(seconds or {}) | {"look": time.perf_counter() - begun}
            *_, last = self.reply([page] * len(part), glances, config, spent, number, every=False)
            answers += last
        return answers

    @torch.no_grad()
    def reply(
        self,
        pages: Sequence[Page],
        glances: Sequence[Glance],
        config: GenerationConfig | None = None,
        seconds: dict[str, float] | None = None,
        number: int = 0,
        every: bool = True,
    ) -> Iterator[list[Answer]]:
        """Answers to the questions of glances at opened pages, in one batch.

        After each further token of theirs, or only when they are whole if not `every`.
        """
        config, clock = config or GenerationConfig(), _Clock(seconds)
        prompts, lines = self.prompts(pages, glances, config.max_text_tokens)
        seen = [
            self.photo.embeddings(glance) if self.photo and self.is_photo(page) else None
            for page, glance in zip(pages, glances, strict=True)
        ]
        clock.lap("read")
        rows = [_Row(page, glance, read, number) for page, glance, read in zip(pages, glances, lines, strict=True)]
        refusals: list[float] = []
        next_logits = self._next_logits(prompts, seen, refusals)
        for step in decode(next_logits, self.ends, config.max_new_tokens, config.temperature, config.seed):
            clock.lap("answer" if "prefill" in clock.seconds else "prefill")
            for row, token, prob, active, refusal in zip(rows, *step, refusals, strict=True):
                row.refusal = refusal
                if active:
                    row.ids.append(token)
                    row.probs.append(prob)
            if every:
                yield [self._answer(row, clock.seconds) for row in rows]
        if not every:
            yield [self._answer(row, clock.seconds) for row in rows]

    def prompts(
        self, pages: Sequence[Page], glances: Sequence[Glance], max_text_tokens: int = MAX_TOKENS
    ) -> tuple[list[list[int]], list[list[Line]]]:
        """What the language model is given for each glance, and the lines that were read for it."""
        prompts, lines = [], []
        for page, glance in zip(pages, glances, strict=True):
            read, scores = page.read_shown(glance, round(max_text_tokens * READ_AHEAD))
            order: Order = "page-first" if self.is_photo(page) else "question-first"
            prompts.append(build_prompt(self.language.tokenizer, glance.question, read, scores, max_text_tokens, order))
            lines.append(read)
        return prompts, lines

    def is_photo(self, page: Page) -> bool:
        """Whether a page is read as a photograph."""
        return self.photo is not None and self.photo.is_document(page.kind) < 0.5

    def _embedded(self, prompts: Sequence[list[int]], seen: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
        """Prompts as embeddings [B, L, hidden], cells behind their start, and their mask [B, L]; padded on the left."""
        embed, start = cast(Any, self.language.model).get_input_embeddings(), len(start_ids(self.language.tokenizer))
        rows = []
        for prompt, cells in zip(prompts, seen, strict=True):
            words = embed(torch.tensor(prompt, device=self.device))
            rows.append(words if cells is None else torch.cat((words[:start], cells.to(words.dtype), words[start:])))
        length = max(map(len, rows))
        mask = torch.tensor([[0] * (length - len(row)) + [1] * len(row) for row in rows], device=self.device)
        return torch.stack([F.pad(row, (0, 0, length - len(row), 0)) for row in rows]), mask

    def _next_logits(
        self, prompts: Sequence[list[int]], seen: Sequence[Tensor | None], refusals: list[float]
    ) -> Callable[[Tensor | None], Tensor]:
        """What `decode` calls; `refusals` receives the probability of each answer that it begins "not on the page".

        `seen` are the cells of those prompts that are about photographs.
        """
        model = cast(Any, self.language.model)
        embeddings, mask = self._embedded(prompts, seen)
        photos = torch.tensor([cells is not None for cells in seen], device=self.device)
        past: Any = None

        def next_logits(ids: Tensor | None) -> Tensor:
            nonlocal mask, past
            if ids is None:
                position_ids = (mask.cumsum(1) - 1).clamp(min=0)
            else:
                mask = torch.cat((mask, mask.new_ones(len(mask), 1)), 1)
                position_ids = mask.sum(1, keepdim=True) - 1
            words = {"inputs_embeds": embeddings} if ids is None else {"input_ids": ids}
            with steady(), self.photo.switch.on(photos) if self.photo else nullcontext():
                out = model(
                    **words, attention_mask=mask, position_ids=position_ids,
                    past_key_values=past, use_cache=True, logits_to_keep=1,
                )  # fmt: skip
            past, logits = out.past_key_values, out.logits[:, -1].float()
            if ids is None:
                refusals[:] = logits.softmax(1)[:, self.refusal].tolist()
                logits[:, self.refusal] -= REFUSAL
            return logits

        return next_logits

    def _answer(self, row: _Row, seconds: dict[str, float]) -> Answer:
        text = self.language.decode([token for token in row.ids if token not in self.ends]).strip()
        features = features_of(text, row.probs, row.refusal, row.lines)
        about_photo = self.photo is not None and self.is_photo(row.page)
        sure = (self.photo.calibration if self.photo and about_photo else self.calibration)(features)
        sure = 1 - sure if text.lower() == NOT_FOUND else sure
        read = ReadLines(tuple(row.page.as_given(line) for line in row.lines), row.glance, row.page)
        ended = bool(row.ids) and row.ids[-1] in self.ends
        return Answer(text, sure, read, dict(seconds), ended, row.number, tuple(features))


@dataclass(eq=False)
class _Row:
    """An answer that is growing."""

    page: Page
    glance: Glance
    lines: list[Line]
    number: int
    ids: list[int] = field(default_factory=list)
    probs: list[float] = field(default_factory=list)
    refusal: float = 0.0  # probability that the answer is "not on the page"


class _Clock:
    """Seconds spent on each part."""

    def __init__(self, seconds: dict[str, float] | None) -> None:
        self.seconds, self.last = dict(seconds or {}), time.perf_counter()

    def lap(self, name: str) -> None:
        """Everything since the last lap belongs to this part."""
        now = time.perf_counter()
        self.seconds[name], self.last = self.seconds.get(name, 0.0) + now - self.last, now
