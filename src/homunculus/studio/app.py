"""The HTTP API: look, ask, chat, and what tells how the service is doing."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi import Path as Path_
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from PIL import Image
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import ValidationError

from homunculus import __version__
from homunculus.allocators import list_allocators
from homunculus.errors import ImageError, InputError
from homunculus.eye import Glance
from homunculus.image import load
from homunculus.reader.model import Answer
from homunculus.relevance import list_relevances
from homunculus.studio.chat import Chat, chunks, completion
from homunculus.studio.store import Store, webp
from homunculus.studio.uploads import Asking, Limits, Looking, RequestError, pages_of, received, told
from homunculus.studio.work import BusyError, Job, Wish, Work

PAGE = Path(__file__).parent / "page"
TIMEOUT = 120.0  # seconds that a request may take
log = logging.getLogger("homunculus.studio")


@dataclass(frozen=True)
class Settings:
    """How the service runs."""

    token: str = ""  # if there is one, requests must bring it
    timeout: float = TIMEOUT
    limits: Limits = field(default_factory=Limits)


class Meters:
    """What Prometheus reads."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        names: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("homunculus_requests", "Requests by path and status", ["path", "status"], **names)
        self.seconds = Histogram("homunculus_request_seconds", "Seconds of a request", ["path"], **names)
        self.waiting = Gauge("homunculus_waiting", "Jobs in the line", **names)
        self.together = Histogram("homunculus_together", "Jobs done together", buckets=[1, 2, 4, 8, 16, 32], **names)

    def watch(self, name: str, value: float) -> None:
        """What the work tells."""
        if name == "waiting":
            self.waiting.set(value)
        else:
            self.together.observe(value)


def create_app(work: Work, settings: Settings | None = None) -> FastAPI:
    """The service over a line of work."""
    settings = settings or Settings()
    meters = Meters()
    work.watch = meters.watch

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        work.start()
        yield
        await asyncio.to_thread(work.stop)

    app = FastAPI(title="Homunculus", version=__version__, lifespan=life, docs_url=None, redoc_url=None)
    app.state.work, app.state.settings, app.state.meters = work, settings, meters
    _watched(app, meters)
    _errors(app)
    _routes(app, work, settings)
    if PAGE.is_dir():
        app.mount("/static", StaticFiles(directory=PAGE), name="static")
    return app


def error_body(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    return {"error": {"message": message, "type": kind}}


def _watched(app: FastAPI, meters: Meters) -> None:
    """Every request gets an id, a line in the log and its place in the figures."""

    @app.middleware("http")
    async def watch(request: Request, call: Callable[[Request], Any]) -> Response:
        begun, name = time.monotonic(), request.headers.get("x-request-id", "")[:64] or uuid.uuid4().hex
        response: Response = await call(request)
        path = getattr(request.scope.get("route"), "path", "other")
        spent = time.monotonic() - begun
        meters.requests.labels(path, response.status_code).inc()
        meters.seconds.labels(path).observe(spent)
        entry = {"id": name, "method": request.method, "path": path, "status": response.status_code}
        log.info(json.dumps(entry | {"ms": round(spent * 1e3, 1)}))
        response.headers["x-request-id"] = name
        return response


def _errors(app: FastAPI) -> None:
    """Whatever is wrong with a request is told in one sentence."""

    @app.exception_handler(RequestError)
    async def wrong(_: Request, error: RequestError) -> JSONResponse:
        return JSONResponse(error_body(str(error)), error.status)

    @app.exception_handler(RequestValidationError)
    async def unfit(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse(error_body(told(error)), 422)

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> JSONResponse:
        return JSONResponse(error_body(str(error), "rate_limit_error"), 429, {"Retry-After": str(error.seconds)})

    @app.exception_handler(InputError)
    async def refused(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse(error_body(str(error)), 422)

    @app.exception_handler(ImageError)
    async def unreadable(_: Request, error: ImageError) -> JSONResponse:
        return JSONResponse(error_body(str(error)), 422)


async def done(work: Work, wish: Wish, timeout: float) -> AsyncIterator[Any]:
    """What comes of a wish, bit by bit; the job is dropped if nobody listens any more."""
    loop, bits = asyncio.get_running_loop(), asyncio.Queue[tuple[Any, bool]]()
    job = Job(wish, lambda what, last: loop.call_soon_threadsafe(bits.put_nowait, (what, last)))  # type: ignore[arg-type]
    work.submit(job)
    try:
        while True:
            try:
                what, last = await asyncio.wait_for(bits.get(), timeout)
            except TimeoutError as error:
                raise RequestError(f"the answer took longer than {timeout:.0f} s", 408) from error
            if isinstance(what, Exception):
                raise what
            yield what
            if last:
                return
    finally:
        job.dropped = True


async def whole(work: Work, wish: Wish, timeout: float) -> Any:
    """The last of what comes of a wish."""
    bits = [what async for what in done(work, wish, timeout)]
    return bits[-1]


def wish_of(kind: Any, upload: Any, how: Looking, limits: Limits) -> Wish:
    """A request as a wish."""
    count = pages_of(upload.content, limits)
    if upload.content.startswith(b"%PDF") and how.page >= count:
        raise RequestError(f"the file has {count} pages, counted from 0: there is no page {how.page}", 422)
    if (how.x is None) != (how.y is None):
        raise RequestError("a place to look at needs both x and y", 422)
    place = None if how.x is None or how.y is None else (how.x, how.y)
    options = () if how.fovea is None or how.allocator != "foveated" else (("fovea", how.fovea),)
    most = how.most if isinstance(how, Asking) else 64
    return Wish(
        kind, upload.content, upload.mark, how.question, how.allocator, how.relevance, how.budget, how.page, most,
        fixation=place, options=options,
    )  # fmt: skip


def _routes(app: FastAPI, work: Work, settings: Settings) -> None:
    def allowed(request: Request) -> None:
        given = request.headers.get("authorization", "")
        if settings.token and not secrets.compare_digest(given.encode(), f"Bearer {settings.token}".encode()):
            raise RequestError("this service needs a token: Authorization: Bearer TOKEN", 401)

    secured, store = [Depends(allowed)], Store(settings.limits)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    @app.get("/healthz")
    async def health() -> JSONResponse:
        """Whether the reader is there."""
        status = 503 if work.state == "failed" else 200
        return JSONResponse({"state": work.state, "waiting": len(work.line), "failure": work.failure}, status)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(generate_latest(app.state.meters.registry), media_type="text/plain; version=0.0.4")

    @app.get("/v1/allocators", dependencies=secured)
    async def allocators() -> dict[str, list[str]]:
        """Rules and relevances by name."""
        return {"allocators": list_allocators(), "relevances": list_relevances()}

    @app.get("/v1/models", dependencies=secured)
    async def models() -> dict[str, Any]:
        """The one model that there is."""
        return {"object": "list", "data": [{"id": "homunculus", "object": "model", "owned_by": "homunculus"}]}

    @app.post("/v1/look", dependencies=secured, openapi_extra=_body(Looking))
    async def look(request: Request) -> Response:
        """Which tokens an image and a question get, as `homunculus look --json` tells."""
        upload, how = await received(request, Looking, settings.limits, store)
        glance = await whole(work, wish_of("look", upload, how, settings.limits), settings.timeout)
        return Response(await asyncio.to_thread(glance.to_json), media_type="application/json")

    @app.post("/v1/reconstruction", dependencies=secured, openapi_extra=_body(Looking))
    async def reconstruction(request: Request, side: Annotated[int, Query(ge=16, le=4096)] = 1600) -> Response:
        """The image as these tokens still know it, as WebP no larger than `side` either way."""
        upload, how = await received(request, Looking, settings.limits, store)
        glance = await whole(work, wish_of("look", upload, how, settings.limits), settings.timeout)
        return Response(await asyncio.to_thread(_known, glance, side), media_type="image/webp")

    @app.post("/v1/images", dependencies=secured, openapi_extra=_body(None))
    async def images(request: Request) -> dict[str, Any]:
        """Send an image once; later requests name it by `image_id`. It is kept in memory, for a while."""
        upload, _ = await received(request, Looking, settings.limits)
        size = await asyncio.to_thread(_size, upload.content, settings.limits)  # a broken one is not remembered
        count = await asyncio.to_thread(store.add, upload)
        return {"id": upload.mark, "pages": count, "width": size[0], "height": size[1]}

    @app.get("/v1/images/{mark}", dependencies=secured)
    async def image(mark: str) -> dict[str, Any]:
        """What was told of an image when it was sent, if it is still remembered."""
        upload = store.get(mark)
        size = await asyncio.to_thread(_size, upload.content, settings.limits)
        return {"id": mark, "pages": pages_of(upload.content, settings.limits), "width": size[0], "height": size[1]}

    @app.get("/v1/images/{mark}/pages/{page}", dependencies=secured)
    async def picture(
        mark: str, page: Annotated[int, Path_(ge=0)], side: Annotated[int, Query(ge=16, le=4096)] = 1600
    ) -> Response:
        """A page of an image that was sent, as WebP no larger than `side` either way."""
        content = await asyncio.to_thread(store.picture, mark, page, side)
        return Response(content, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})

    @app.post("/v1/chat/completions", dependencies=secured)
    async def completions(chat: Chat) -> Response:
        """OpenAI's chat completions, with images as data URLs; `stream` sends the answer as it grows."""
        upload = chat.image(settings.limits, store)
        try:
            how = chat.asking()
        except ValidationError as error:
            raise RequestError(told(error), 422) from error
        wish = replace(wish_of("ask", upload, how, settings.limits), temperature=chat.temperature, seed=chat.seed)
        answers = done(work, wish, settings.timeout)
        if not chat.stream:
            return JSONResponse(completion(chat, [answer async for answer in answers][-1]))
        first = await anext(answers)  # what is wrong is told before the stream begins
        return StreamingResponse(chunks(chat, _from(first, answers)), media_type="text/event-stream")

    @app.post("/v1/ask", dependencies=secured, openapi_extra=_body(Asking))
    async def ask(request: Request) -> Response:
        """The answer to a question about an image, as `homunculus ask --json` tells."""
        upload, how = await received(request, Asking, settings.limits, store)
        if not how.question.strip():
            raise RequestError("a question is missing: ask something about the image", 422)
        answer = await whole(work, wish_of("ask", upload, how, settings.limits), settings.timeout)
        return Response(await asyncio.to_thread(answer.to_json), media_type="application/json")


async def _from(first: Answer, rest: AsyncIterator[Answer]) -> AsyncIterator[Answer]:
    """The first and the rest."""
    yield first
    async for each in rest:
        yield each


def _known(glance: Glance, side: int) -> bytes:
    """What tokens know of an image, made from the coarsest level that has as many pixels as are shown."""
    fits = [l for l, level in enumerate(glance.scene.levels) if max(level.shape[2:]) >= side]
    picture = Image.fromarray(glance.reconstruct(max(fits, default=0)).permute(1, 2, 0).cpu().numpy())
    picture.thumbnail((side, side))
    return webp(picture)


def _size(content: bytes, limits: Limits) -> tuple[int, int]:
    """Width and height of the first page."""
    pixels = load(content, max_pixels=limits.pixels)
    return pixels.shape[2], pixels.shape[1]


def _body(kind: type[Looking] | None) -> dict[str, Any]:
    """What the schema says of a body that comes as a form or as JSON."""
    schema = kind.model_json_schema() if kind else {"properties": {}}
    words = schema["properties"]
    if kind:
        words = words | {"image_id": {"type": "string", "description": "Of POST /v1/images, in place of an image."}}
    must = [*([] if kind else ["image"]), *schema.get("required", [])]
    form = {"image": {"type": "string", "format": "binary"}} | words
    text = {"image": {"type": "string", "description": "A data URL."}} | words
    shapes = {"multipart/form-data": form, "application/json": text}
    content = {
        media: {"schema": {"type": "object", "properties": parts, "required": must, "additionalProperties": False}}
        for media, parts in shapes.items()
    }
    return {"requestBody": {"required": True, "content": content}}
