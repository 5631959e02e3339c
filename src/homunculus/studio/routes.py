"""What the service answers to: the page, images, looks, questions, conversations, and how it is doing."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as Path_
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from PIL import Image
from prometheus_client import generate_latest

from homunculus.allocators import list_allocators
from homunculus.eye import Glance
from homunculus.reader.model import Answer
from homunculus.relevance import list_relevances
from homunculus.studio.chat import MODEL, Chat, chunks, completion
from homunculus.studio.service import Calling
from homunculus.studio.store import webp
from homunculus.studio.uploads import Asking, Looking, RequestError
from homunculus.studio.work import Work

PAGE = Path(__file__).parent / "page"
Side = Annotated[int, Query(ge=16, le=4096)]


def allowed(request: Request) -> None:
    """Whether a request brings the token, if there is one."""
    token, given = request.app.state.service.settings.token, request.headers.get("authorization", "")
    if token and not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise RequestError("this service needs a token: Authorization: Bearer TOKEN", 401)


def body(kind: type[Looking] | None) -> dict[str, Any]:
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


def conversation() -> dict[str, Any]:
    """What the schema says of a conversation; each part of it stands where it is spoken of."""
    schema = Chat.model_json_schema()
    parts = schema.pop("$defs")

    def spelled(node: Any) -> Any:
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            return spelled(parts[name]) if name else {key: spelled(value) for key, value in node.items()}
        return [spelled(each) for each in node] if isinstance(node, list) else node

    return {"requestBody": {"required": True, "content": {"application/json": {"schema": spelled(schema)}}}}


open_to_all = APIRouter()
v1 = APIRouter(prefix="/v1", dependencies=[Depends(allowed)])


@open_to_all.get("/", include_in_schema=False)
async def page() -> FileResponse:
    """The page itself."""
    return FileResponse(PAGE / "index.html")


@open_to_all.get("/healthz")
async def health(request: Request) -> JSONResponse:
    """Whether the reader is there."""
    work: Work = request.app.state.service.work
    with work.change:
        jobs = {"waiting": len(work.line), "working": work.working}
    return JSONResponse({"state": work.state, **jobs, "failure": work.failure}, 503 if work.state == "failed" else 200)


@open_to_all.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """What Prometheus reads."""
    return Response(generate_latest(request.app.state.meters.registry), media_type="text/plain; version=0.0.4")


@v1.get("/allocators")
async def allocators() -> dict[str, list[str]]:
    """Rules and relevances by name."""
    return {"allocators": list_allocators(), "relevances": list_relevances()}


@v1.get("/models")
async def models() -> dict[str, Any]:
    """The one model that there is."""
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
    return {"object": "list", "data": [model]}


@v1.post("/look", openapi_extra=body(Looking))
async def look(call: Calling) -> Response:
    """Which tokens an image and a question get, as `homunculus look --json` tells."""
    glance = await call.whole(await call.wish("look", Looking))
    return Response(await call.heavy(glance.to_json), media_type="application/json")


@v1.post("/reconstruction", openapi_extra=body(Looking))
async def reconstruction(call: Calling, side: Side = 1600) -> Response:
    """The image as these tokens still know it, as WebP no larger than `side` either way."""
    glance = await call.whole(await call.wish("look", Looking))
    return Response(await call.heavy(_known, glance, side), media_type="image/webp")


@v1.post("/ask", openapi_extra=body(Asking))
async def ask(call: Calling) -> Response:
    """The answer to a question about an image, as `homunculus ask --json` tells."""
    answer = await call.whole(await call.wish("ask", Asking))
    return Response(await call.heavy(answer.to_json), media_type="application/json")


@v1.post("/chat/completions", openapi_extra=conversation())
async def completions(call: Calling) -> Response:
    """OpenAI's chat completions, with images as data URLs; `stream` sends the answer as it grows."""
    chat, wish = await call.chat()
    if not chat.stream:
        return JSONResponse(completion(chat, await call.whole(wish)))
    answers = call.done(wish)
    first = await anext(answers)  # what is wrong is told before the stream begins
    return StreamingResponse(chunks(chat, _from(first, answers)), media_type="text/event-stream")


@v1.post("/images", openapi_extra=body(None))
async def images(call: Calling) -> dict[str, Any]:
    """Send an image once; later requests name it by `image_id`. It is kept in memory, for a while."""
    upload, _ = await call.sent(Looking, known=False)
    kept = await call.heavy(call.store.add, upload)
    return kept.about()


@v1.get("/images/{mark}")
async def image(mark: str, call: Calling) -> dict[str, Any]:
    """What was told of an image when it was sent, if it is still remembered."""
    return call.store.get(mark).about()


@v1.get("/images/{mark}/pages/{page}")
async def picture(mark: str, page: Annotated[int, Path_(ge=0)], call: Calling, side: Side = 1600) -> Response:
    """A page of an image that was sent, as WebP no larger than `side` either way."""
    content = await call.heavy(call.store.picture, mark, page, side)
    return Response(content, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})


async def _from(first: Answer, rest: AsyncIterator[Answer]) -> AsyncIterator[Answer]:
    """The first and the rest."""
    yield first
    async for each in rest:
        yield each


def _known(glance: Glance, side: int) -> bytes:
    """What tokens know of an image, made from the coarsest level that has as many pixels as are shown."""
    fits = [l for l, level in enumerate(glance.scene.levels) if max(level.shape[2:]) >= side]
    pixels = glance.reconstruct(max(fits, default=0))
    return webp(Image.fromarray(pixels.permute(1, 2, 0).cpu().numpy()), side)
