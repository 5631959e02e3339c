"""One HTTP request: what it brings, the result it waits for, and how long it may take."""

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
from homunculus.studio.uploads import AskFields, Limits, LookFields, RequestError, body_of, media_of, validated
from homunculus.studio.work import Job, Kind, ReaderRequest, Worker

TIMEOUT = 120.0  # seconds that a request may take
DECODERS = 4  # threads that open files and write pictures
T = TypeVar("T")


@dataclass(frozen=True)
class ApiConfig:
    """How the service runs."""

    token: str = ""  # if there is one, requests must bring it
    timeout: float = TIMEOUT
    limits: Limits = field(default_factory=Limits)


class Service:
    """What all requests share: the queue, the images that are kept, and threads for what takes long."""

    def __init__(self, work: Worker, config: ApiConfig) -> None:
        self.work, self.config, self.limits = work, config, config.limits
        self.store = Store(config.limits)
        self.threads = ThreadPoolExecutor(DECODERS, "decode")


class Call:
    """An HTTP request and the time at which it must be done."""

    def __init__(self, request: Request) -> None:
        self.request, self.loop = request, asyncio.get_running_loop()
        self.service: Service = request.app.state.service
        self.limits, self.store = self.service.limits, self.service.store
        self.deadline = self.loop.time() + self.service.config.timeout

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """What is done here must end before the deadline."""
        try:
            async with asyncio.timeout_at(self.deadline):
                yield
        except TimeoutError as error:
            seconds = self.service.config.timeout
            raise RequestError(f"the request took longer than {seconds:g} s; send less, or try again", 408) from error

    async def in_thread(self, function: Callable[..., T], *given: Any) -> T:
        """What a function returns, computed beside the event loop."""
        async with self.in_time():
            return await self.loop.run_in_executor(self.service.threads, partial(function, *given))

    async def body(self) -> bytes:
        """The bytes of the request."""
        async with self.in_time():
            return await body_of(self.request, self.limits)

    async def sent(self, kind: type[LookFields], by_id: bool = True) -> tuple[Upload, Any]:
        """The image of the request and its fields; `by_id`: an image that was sent before may come as its id."""
        media = media_of(self.request)
        if media == "multipart/form-data":
            async with self.in_time():
                content, fields = await uploads.from_form(self.request, self.limits)
        elif media == "application/json":
            content, fields = await self.in_thread(uploads.from_json, await self.body(), self.limits)
        else:
            raise RequestError("send the image as multipart/form-data or as a data URL in application/json", 415)
        image_id = fields.pop("image_id", None) if by_id else None
        if (content is None) == (image_id is None):
            either = " or an image_id" if by_id else ""
            raise RequestError(
                f"the request needs an image (a file, or a data URL in JSON){either}, and one alone", 422
            )
        how = validated(kind, fields)
        return await self.upload(content, image_id, how.page), how

    async def upload(self, content: bytes | None, image_id: Any, page: int) -> Upload:
        """The image that was sent, or the one that is kept under this id, if it has the page."""
        if content is not None:
            return await self.in_thread(Upload.of, content, page, self.limits)
        upload = self.store.get(str(image_id)).upload
        check_page(page, upload.pages)
        return upload

    async def reader_request(self, kind: Kind, fields: type[LookFields]) -> ReaderRequest:
        """What a form or JSON wants of the reader."""
        return request_for(kind, *await self.sent(fields))

    async def chat(self) -> tuple[Chat, ReaderRequest]:
        """A conversation, and what it wants of the reader."""
        if media_of(self.request) != "application/json":
            raise RequestError("send the conversation as application/json", 415)
        chat: Chat = await self.in_thread(_chat, await self.body())
        url, how = chat.image(), chat.fields()
        content = None if url is None else await self.in_thread(uploads.from_data_url, url, self.limits)
        upload = await self.upload(content, chat.image_id, how.page)
        return chat, request_for("ask", upload, how, chat.temperature or 0.0, chat.seed or 0)

    async def stream(self, request: ReaderRequest) -> AsyncIterator[Any]:
        """The results of a request as they come; its job is cancelled if nobody listens any more."""
        results = asyncio.Queue[tuple[Any, bool]]()

        def notify(result: Any, last: bool) -> None:
            self.loop.call_soon_threadsafe(results.put_nowait, (result, last))

        job = Job(request, notify)
        self.service.work.submit(job)
        try:
            last = False
            while not last:
                async with self.in_time():
                    result, last = await results.get()
                if isinstance(result, Exception):
                    raise result
                yield result
        finally:
            job.cancelled = True

    async def result(self, request: ReaderRequest) -> Any:
        """The last result of a request."""
        return [result async for result in self.stream(request)][-1]


def _chat(body: bytes) -> Chat:
    chat: Chat = validated(Chat, uploads.json_of(body))
    return chat


async def _call(request: Request) -> Call:
    return Call(request)


CurrentCall = Annotated[Call, Depends(_call)]


def request_for(kind: Kind, upload: Upload, how: LookFields, temperature: float = 0.0, seed: int = 0) -> ReaderRequest:
    """The fields of an HTTP request as a request to the reader."""
    if (how.x is None) != (how.y is None):
        raise RequestError("a place to look at needs both x and y", 422)
    if isinstance(how, AskFields) and not how.question.strip():
        raise RequestError("a question is missing: ask something about the image", 422)
    fixation = None if how.x is None or how.y is None else (how.x, how.y)
    options = () if how.fovea is None or how.allocator != "foveated" else (("fovea", how.fovea),)
    fields = how.model_dump(exclude={"x", "y", "fovea"})  # all others are named as those of the request
    return ReaderRequest(
        kind, upload.content, upload.image_id, temperature=temperature, seed=seed, fixation=fixation,
        options=options, **fields,
    )  # fmt: skip
