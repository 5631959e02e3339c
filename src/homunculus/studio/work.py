"""One thread that owns the models. Requests wait in a queue of bounded length; questions of one budget share a batch.

The last pages stay open: a further question about an image finds its lines and its looks known, and what was read is
not read again.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from homunculus.errors import ImageError
from homunculus.eye import Glance
from homunculus.reader.model import Answer, GenerationConfig, Reader
from homunculus.reader.read_lines import glance_as_given
from homunculus.reader.session import Page, page_cache
from homunculus.studio.files import read
from homunculus.studio.uploads import Limits

MAX_QUEUE = 64  # requests that may wait
BATCH_SIZE = 8  # questions that are answered at a time
Kind = Literal["look", "ask"]
log = logging.getLogger("homunculus.studio")


class BusyError(Exception):
    """The queue is full, or the service is about to end; try again in so many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many requests are waiting; try again in {seconds} s")
        self.seconds = seconds


class UnreadyError(Exception):
    """There is no reader to answer with."""

    def __init__(self, failure: str) -> None:
        super().__init__(f"the reader could not be loaded: {failure}")


@dataclass(frozen=True)
class ReaderRequest:
    """What is wanted of an image: a look, or an answer.

    Args:
        image, image_id: the file, and what names it: the same bytes have the same id.
        page: of the file, from 0.
        fixation: x, y in pixels of the image as it was given; None is the peak of the relevance.
        options: of the allocator.
    """

    kind: Kind
    image: bytes
    image_id: str
    question: str
    allocator: str = "foveated"
    relevance: str = "query"
    budget: int = 273
    page: int = 0
    max_new_tokens: int = 64
    temperature: float = 0.0
    seed: int = 0
    fixation: tuple[float, float] | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def batch_key(self) -> tuple[Any, ...]:
        """Equal for requests that can share a batch."""
        return self.kind, self.budget, self.max_new_tokens, self.temperature, self.seed


@dataclass(frozen=True, eq=False)
class Look:
    """A glance at a page; what it gives is on the image as it was given, though the page may have been turned."""

    glance: Glance
    page: Page

    def to_json(self) -> str:
        """The glance's entries as one line of JSON."""
        return json.dumps(glance_as_given(self.glance, self.page), allow_nan=False) + "\n"

    def reconstruct(self, level: int = 0) -> Tensor:
        """The image as the chosen cells show it, scaled by 2^-level: uint8 [3, h, w]."""
        return torch.rot90(self.glance.reconstruct(level), -self.page.turns, (1, 2))


@dataclass(eq=False)
class Job:
    """A request in the queue. `notify` is called from the thread with a Look, growing Answers, or an exception."""

    request: ReaderRequest
    notify: Callable[[Any, bool], None]  # the result, and whether it is the last
    cancelled: bool = False  # nobody waits for it any more


@dataclass(frozen=True)
class _Looked:
    """A job whose look is done, and how long that took."""

    job: Job
    look: Look
    seconds: dict[str, float] = field(default_factory=dict)

    def answer(self, answer: Answer) -> Answer:
        """Its answer, with the page's number and the seconds of the look."""
        return replace(answer, page=self.job.request.page, seconds=self.seconds | answer.seconds)


class Worker:
    """The queue and its thread.

    Args:
        load_reader: makes the reader, in the thread; requests that come meanwhile wait.
        max_queue: requests that may wait; more are refused.
        batch_size: questions that are answered at a time.
        limits: what pages may take.
        observe: called with the name and value of a metric, "waiting" or "batch_size".
    """

    def __init__(
        self,
        load_reader: Callable[[], Reader],
        max_queue: int = MAX_QUEUE,
        batch_size: int = BATCH_SIZE,
        limits: Limits | None = None,
        observe: Callable[[str, float], None] = lambda name, value: None,
    ) -> None:
        self.load_reader, self.max_queue, self.batch_size = load_reader, max_queue, batch_size
        self.limits, self.observe = limits or Limits(), observe
        self.queue: deque[Job] = deque()
        self.change = threading.Condition()
        self.state: Literal["loading", "ready", "failed", "ending"] = "loading"
        self.failure = ""
        self.working = 0  # requests that are being worked on
        self.job_seconds = 1.0  # that a request takes, a moving average
        self.pages = page_cache()  # by image_id and page
        self.thread = threading.Thread(target=self._run, name="work", daemon=True)

    def start(self) -> None:
        """Begin to load and to work."""
        self.thread.start()

    def submit(self, job: Job) -> None:
        """Put a job into the queue."""
        with self.change:
            if self.state == "ending" or len(self.queue) >= self.max_queue:
                raise BusyError(max(1, min(60, round(self.job_seconds * (len(self.queue) + 1)))))
            if self.state == "failed":
                raise UnreadyError(self.failure)
            self.queue.append(job)
            self.observe("waiting", len(self.queue))
            self.change.notify()

    def stop(self, timeout: float = 60.0) -> None:
        """Take no more requests, finish those that were taken."""
        with self.change:
            self.state = "ending"
            self.change.notify()
        if self.thread.is_alive():
            self.thread.join(timeout)

    # ---- in the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.reader = self.load_reader()
        except Exception as error:  # every request is told
            log.error(json.dumps({"failure": str(error)}))
            with self.change:
                self.state, self.failure = "failed", str(error)
                refused, self.queue = list(self.queue), deque()
            for job in refused:
                job.notify(UnreadyError(self.failure), True)
            return
        with self.change:
            if self.state == "loading":
                self.state = "ready"
        while jobs := self._next():
            begun = time.monotonic()
            self._work_on([job for job in jobs if not job.cancelled])
            self.job_seconds = 0.8 * self.job_seconds + 0.2 * (time.monotonic() - begun) / len(jobs)
            self.observe("batch_size", len(jobs))

    def _next(self) -> list[Job]:
        """The first job of the queue and those that can share its batch; none at the end."""
        with self.change:
            self.working = 0
            while not self.queue:
                if self.state == "ending":
                    return []
                self.change.wait()
            first = self.queue.popleft()
            room = self.batch_size - 1 if first.request.kind == "ask" else 0
            like = [job for job in self.queue if job.request.batch_key == first.request.batch_key][:room]
            for job in like:
                self.queue.remove(job)
            self.observe("waiting", len(self.queue))
            self.working = 1 + len(like)
            return [first, *like]

    def _work_on(self, jobs: Sequence[Job]) -> None:
        """Look for each job, then answer those that ask, in one batch."""
        looked: list[_Looked] = []
        for job in jobs:
            try:
                looked.append(self._look(job))
            except Exception as error:
                job.notify(error, True)
        if looked and looked[0].job.request.kind == "ask":
            self._answer(looked)
            return
        for each in looked:
            each.job.notify(each.look, True)

    def _answer(self, looked: Sequence[_Looked]) -> None:
        """Answers to a batch of questions, as they grow."""
        how, answers = looked[0].job.request, list[Answer]()
        config = GenerationConfig(how.max_new_tokens, how.temperature, how.seed)
        pages, glances = [each.look.page for each in looked], [each.look.glance for each in looked]
        try:
            for answers in self.reader.reply(pages, glances, config):
                for each, answer in zip(looked, answers, strict=True):
                    each.job.notify(each.answer(answer), False)
        except Exception as error:
            for each in looked:
                each.job.notify(error, True)
            return
        for each, answer in zip(looked, answers, strict=True):
            each.job.notify(each.answer(answer), True)

    def _look(self, job: Job) -> _Looked:
        """Where a request looks; an answer mostly follows a look, which its page still has."""
        request, begun = job.request, time.perf_counter()
        page = self._page(request)
        opened = time.perf_counter()
        glance = page.look(
            request.question,
            request.budget,
            request.allocator,
            request.relevance,
            request.fixation,
            **dict(request.options),
        )
        seconds = {"open": opened - begun, "look": time.perf_counter() - opened}
        return _Looked(job, Look(glance, page), seconds)

    def _page(self, request: ReaderRequest) -> Page:
        """The opened page, if it is not open any more opened again."""
        key = (request.image_id, request.page)
        if key not in self.pages:
            try:
                self.pages[key] = self.reader.open(read(request.image, request.page, self.limits))
            except MemoryError as error:
                raise ImageError("the image is too large for this machine") from error
        return self.pages[key]
