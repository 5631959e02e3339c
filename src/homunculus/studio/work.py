"""One thread that owns the models. Jobs wait in a line of bounded length; questions of one budget go together.

That is what a fixed budget is for: every look of K tokens fits into the same batch.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from homunculus.errors import ImageError
from homunculus.eye import Eye, Glance
from homunculus.reader.model import Answer, Reader
from homunculus.relevance import Scene
from homunculus.studio.files import read
from homunculus.studio.uploads import Limits

WAITING = 64  # jobs that may wait
TOGETHER = 8  # questions that are answered at a time
PIXELS = 64_000_000  # of all pages that are remembered
GLANCES = 32  # looks that are remembered
Kind = Literal["look", "ask"]
log = logging.getLogger("homunculus.studio")


class BusyError(Exception):
    """The line is full, or the service is about to end; come back in so many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many requests are waiting; try again in {seconds} s")
        self.seconds = seconds


class UnreadyError(Exception):
    """There is no reader to answer with."""

    def __init__(self, failure: str) -> None:
        super().__init__(f"the reader could not be loaded: {failure}")


@dataclass(frozen=True)
class Wish:
    """What is wanted of an image: a look, or an answer."""

    kind: Kind
    image: bytes
    mark: str  # names the image: the same bytes, the same mark
    question: str
    allocator: str = "foveated"
    relevance: str = "query"
    budget: int = 273
    page: int = 0
    most: int = 64
    temperature: float = 0.0
    seed: int = 0
    fixation: tuple[float, float] | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def look(self) -> tuple[Any, ...]:
        """What makes two looks the same, the page first."""
        how = self.question, self.allocator, self.relevance, self.budget, self.fixation, self.options
        return self.mark, self.page, *how

    @property
    def batch(self) -> tuple[Any, ...]:
        """What jobs must have in common to be done together."""
        return self.kind, self.budget, self.most, self.temperature, self.seed


@dataclass(eq=False)
class Job:
    """A wish in the line, and whom to tell: `tell` is called from the thread with a glance, answers, or an error."""

    wish: Wish
    tell: Callable[[Any, bool], None]  # what, and whether it is the last
    began: float = field(default_factory=time.monotonic)
    dropped: bool = False  # nobody waits for it any more


class Work:
    """The line and its thread.

    Args:
        load_reader: makes the reader, in the thread: whoever asks meanwhile waits.
        waiting: jobs that may wait; more are refused.
        together: questions that are answered at a time.
        limits: what pages may take.
    """

    def __init__(
        self,
        load_reader: Callable[[], Reader],
        waiting: int = WAITING,
        together: int = TOGETHER,
        limits: Limits | None = None,
        watch: Callable[[str, float], None] = lambda name, value: None,
    ) -> None:
        self.load_reader, self.waiting, self.together = load_reader, waiting, together
        self.limits, self.watch = limits or Limits(), watch
        self.line: deque[Job] = deque()
        self.change = threading.Condition()
        self.state: Literal["loading", "ready", "failed", "ending"] = "loading"
        self.failure = ""
        self.working = 0  # jobs that are being done
        self.pace = 1.0  # seconds that a job takes, by late experience
        self.scenes: OrderedDict[tuple[str, int], Scene] = OrderedDict()
        self.glances: OrderedDict[tuple[Any, ...], Glance] = OrderedDict()
        self.thread = threading.Thread(target=self._run, name="work", daemon=True)

    def start(self) -> None:
        """Begin to load and to work."""
        self.thread.start()

    def submit(self, job: Job) -> None:
        """Put a job into the line."""
        with self.change:
            if self.state == "ending" or len(self.line) >= self.waiting:
                raise BusyError(max(1, min(60, round(self.pace * (len(self.line) + 1)))))
            if self.state == "failed":
                raise UnreadyError(self.failure)
            self.line.append(job)
            self.watch("waiting", len(self.line))
            self.change.notify()

    def stop(self, patience: float = 60.0) -> None:
        """Take nothing more, finish what was taken."""
        with self.change:
            self.state = "ending"
            self.change.notify()
        if self.thread.is_alive():
            self.thread.join(patience)

    # ---- in the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.reader = self.load_reader()
        except Exception as error:  # told to whoever asks
            log.error(json.dumps({"failure": str(error)}))
            with self.change:
                self.state, self.failure = "failed", str(error)
                refused, self.line = list(self.line), deque()
            for job in refused:
                job.tell(UnreadyError(self.failure), True)
            return
        with self.change:
            if self.state == "loading":
                self.state = "ready"
        while jobs := self._next():
            begun = time.monotonic()
            self._do([job for job in jobs if not job.dropped])
            self.pace = 0.8 * self.pace + 0.2 * (time.monotonic() - begun) / len(jobs)
            self.watch("together", len(jobs))

    def _next(self) -> list[Job]:
        """The first job in the line and those that can be done with it; none at the end."""
        with self.change:
            self.working = 0
            while not self.line:
                if self.state == "ending":
                    return []
                self.change.wait()
            first = self.line.popleft()
            most = self.together if first.wish.kind == "ask" else 1
            like = [job for job in self.line if job.wish.batch == first.wish.batch][: most - 1]
            for job in like:
                self.line.remove(job)
            self.watch("waiting", len(self.line))
            self.working = 1 + len(like)
            return [first, *like]

    def _do(self, jobs: Sequence[Job]) -> None:
        ready: list[tuple[Job, Glance]] = []
        for job in jobs:
            try:
                with torch.no_grad():
                    ready.append((job, self._look(job.wish)))
            except Exception as error:
                job.tell(error, True)
        if not ready or ready[0][0].wish.kind == "look":
            for job, glance in ready:
                job.tell(glance, True)
            return
        wish, said = ready[0][0].wish, list[Answer]()
        try:
            glances = [glance for _, glance in ready]
            for said in self.reader.reply(glances, wish.most, wish.temperature, wish.seed):
                for (job, _), answer in zip(ready, said, strict=True):
                    job.tell(answer, False)
        except Exception as error:
            for job, _ in ready:
                job.tell(error, True)
            return
        for (job, _), answer in zip(ready, said, strict=True):
            job.tell(answer, True)

    def _look(self, wish: Wish) -> Glance:
        """Where to look; the last glances are remembered, for an answer mostly follows a look."""
        scene = self._scene(wish)
        if wish.look not in self.glances:
            eye = Eye(wish.allocator, wish.relevance, wish.budget, scout=self.reader.scout, **dict(wish.options))
            self.glances[wish.look] = eye.look_at(scene, wish.question, wish.fixation)
        self.glances.move_to_end(wish.look)
        while len(self.glances) > GLANCES:
            self.glances.popitem(last=False)
        return self.glances[wish.look]

    def _scene(self, wish: Wish) -> Scene:
        """A page ready to be looked at; the last ones are remembered, up to so many pixels."""
        key = (wish.mark, wish.page)
        if key not in self.scenes:
            try:
                pixels = read(wish.image, wish.page, self.limits)
            except MemoryError as error:
                raise ImageError("the image is too large for this machine") from error
            self.scenes[key] = Eye(scout=False).scene(pixels.to(self.reader.device))
        self.scenes.move_to_end(key)
        while len(self.scenes) > 1 and sum(s.tree.width * s.tree.height for s in self.scenes.values()) > PIXELS:
            forgotten, _ = self.scenes.popitem(last=False)
            for look in [look for look in self.glances if look[:2] == forgotten]:  # they would keep its pixels
                del self.glances[look]
        return self.scenes[key]
