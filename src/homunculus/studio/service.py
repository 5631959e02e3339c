"""One request under way: what it brings, what is wished for, and how long it may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from homunculus.studio import uploads
from homunculus.studio.chat import Chat
from homunculus.studio.files import check_page
from homunculus.studio.store import Store, Upload
from homunculus.studio.uploads import Asking, Limits, Looking, RequestError, body_of, fit, media_of
from homunculus.studio.work import Job, Kind, Wish, Work

TIMEOUT = 120.0  # seconds that a request may take
DECODERS = 4  # threads that open files and write pictures
T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """How the service runs."""

    token: str = ""  # if there is one, requests must bring it
    timeout: float = TIMEOUT
    limits: Limits = field(default_factory=Limits)


class Service:
    """What all requests share: the line of work, the images that are remembered, and threads for what takes long."""

    def __init__(self, work: Work, settings: Settings) -> None:
        self.work, self.settings, self.limits = work, settings, settings.limits
        self.store = Store(settings.limits)
        self.threads = ThreadPoolExecutor(DECODERS, "decode")


class Call:
    """A request and the time until which it must be done."""

    def __init__(self, request: Request) -> None:
        self.request, self.loop = request, asyncio.get_running_loop()
        self.service: Service = request.app.state.service
        self.limits, self.store = self.service.limits, self.service.store
        self.until = self.loop.time() + self.service.settings.timeout

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """What is done here must end in time."""
        try:
            async with asyncio.timeout_at(self.until):
                yield
        except TimeoutError as error:
            seconds = self.service.settings.timeout
            raise RequestError(f"the request took longer than {seconds:g} s; send less, or try again", 408) from error

    async def heavy(self, function: Callable[..., T], *given: Any) -> T:
        """What a function gives, worked out beside the requests rather than among them."""
        async with self.in_time():
            return await self.loop.run_in_executor(self.service.threads, partial(function, *given))

    async def sent(self, kind: type[Looking], known: bool = True) -> tuple[Upload, Any]:
        """The image of the request and how to look at it; an image that is `known` may come as its mark."""
        media = media_of(self.request)
        if media == "multipart/form-data":
            async with self.in_time():
                content, words = await uploads.from_form(self.request, self.limits)
        elif media == "application/json":
            content, words = await self.heavy(uploads.from_json, await self.body(), self.limits)
        else:
            raise RequestError("send the image as multipart/form-data or as a data URL in application/json", 415)
        mark = words.pop("image_id", None) if known else None
        if (content is None) == (mark is None):
            either = " or an image_id" if known else ""
            raise RequestError(
                f"the request needs an image (a file, or a data URL in JSON){either}, and one alone", 422
            )
        how = fit(kind, words)
        return await self.upload(content, mark, how.page), how

    async def upload(self, content: bytes | None, mark: Any, page: int) -> Upload:
        """The image that was sent, or the one that is remembered by this mark, if it has the page."""
        if content is not None:
            return await self.heavy(Upload.of, content, page, self.limits)
        upload = self.store.get(str(mark)).upload
        check_page(page, upload.pages)
        return upload

    async def body(self) -> bytes:
        """The bytes of the request."""
        async with self.in_time():
            return await body_of(self.request, self.limits)

    async def wish(self, kind: Kind, form: type[Looking]) -> Wish:
        """What is wished for in a form or in JSON."""
        return wish_of(kind, *await self.sent(form))

    async def chat(self) -> tuple[Chat, Wish]:
        """What is wished for in a conversation."""
        if media_of(self.request) != "application/json":
            raise RequestError("send the conversation as application/json", 415)
        chat: Chat = await self.heavy(_chat, await self.body())
        url, how = chat.image(), chat.asking()
        content = None if url is None else await self.heavy(uploads.from_data_url, url, self.limits)
        upload = await self.upload(content, chat.image_id, how.page)
        return chat, wish_of("ask", upload, how, chat.temperature or 0.0, chat.seed or 0)

    async def done(self, wish: Wish) -> AsyncIterator[Any]:
        """What comes of a wish, bit by bit; the job is dropped if nobody listens any more."""
        bits = asyncio.Queue[tuple[Any, bool]]()

        def tell(what: Any, last: bool) -> None:
            self.loop.call_soon_threadsafe(bits.put_nowait, (what, last))

        job = Job(wish, tell)
        self.service.work.submit(job)
        try:
            last = False
            while not last:
                async with self.in_time():
                    what, last = await bits.get()
                if isinstance(what, Exception):
                    raise what
                yield what
        finally:
            job.dropped = True

    async def whole(self, wish: Wish) -> Any:
        """The last of what comes of a wish."""
        return [what async for what in self.done(wish)][-1]


def _chat(body: bytes) -> Chat:
    return fit(Chat, uploads.json_of(body))


async def _call(request: Request) -> Call:
    return Call(request)


Calling = Annotated[Call, Depends(_call)]


def wish_of(kind: Kind, upload: Upload, how: Looking, temperature: float = 0.0, seed: int = 0) -> Wish:
    """A request as a wish."""
    if (how.x is None) != (how.y is None):
        raise RequestError("a place to look at needs both x and y", 422)
    if isinstance(how, Asking) and not how.question.strip():
        raise RequestError("a question is missing: ask something about the image", 422)
    place = None if how.x is None or how.y is None else (how.x, how.y)
    options = () if how.fovea is None or how.allocator != "foveated" else (("fovea", how.fovea),)
    most = how.most if isinstance(how, Asking) else 64
    return Wish(
        kind, upload.content, upload.mark, how.question, how.allocator, how.relevance, how.budget, how.page, most,
        temperature, seed, place, options,
    )  # fmt: skip
