"""The routes: the web page, images, looks, questions, conversations, health and metrics."""

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
from homunculus.reader.model import Answer
from homunculus.relevance import list_relevances
from homunculus.studio.chat import MODEL, Chat, chunks, completion
from homunculus.studio.service import CurrentCall
from homunculus.studio.store import webp
from homunculus.studio.uploads import AskFields, LookFields, RequestError
from homunculus.studio.work import Look, Worker

PAGE = Path(__file__).parent / "page"
Side = Annotated[int, Query(ge=16, le=4096)]


def allowed(request: Request) -> None:
    """Whether a request brings the token, if there is one."""
    token, given = request.app.state.service.config.token, request.headers.get("authorization", "")
    if token and not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise RequestError("this service needs a token: Authorization: Bearer TOKEN", 401)


def body(kind: type[LookFields] | None) -> dict[str, Any]:
    """The schema of a body that comes as a form or as JSON."""
    schema = kind.model_json_schema() if kind else {"properties": {}}
    fields = schema["properties"]
    if kind:
        fields = fields | {"image_id": {"type": "string", "description": "Of POST /v1/images, in place of an image."}}
    required = [*([] if kind else ["image"]), *schema.get("required", [])]
    form = {"image": {"type": "string", "format": "binary"}} | fields
    text = {"image": {"type": "string", "description": "A data URL."}} | fields
    shapes = {"multipart/form-data": form, "application/json": text}
    content = {
        media: {"schema": {"type": "object", "properties": parts, "required": required, "additionalProperties": False}}
        for media, parts in shapes.items()
    }
    return {"requestBody": {"required": True, "content": content}}


def conversation() -> dict[str, Any]:
    """The schema of a conversation, with its parts in place of references to them."""
    schema = Chat.model_json_schema()
    parts = schema.pop("$defs")

    def resolved(node: Any) -> Any:
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            return resolved(parts[name]) if name else {key: resolved(value) for key, value in node.items()}
        return [resolved(each) for each in node] if isinstance(node, list) else node

    return {"requestBody": {"required": True, "content": {"application/json": {"schema": resolved(schema)}}}}


open_to_all = APIRouter()
v1 = APIRouter(prefix="/v1", dependencies=[Depends(allowed)])


@open_to_all.get("/", include_in_schema=False)
async def page() -> FileResponse:
    """The page itself."""
    return FileResponse(PAGE / "index.html")


@open_to_all.get("/healthz")
async def health(request: Request) -> JSONResponse:
    """The state of the service."""
    work: Worker = request.app.state.service.work
    with work.change:
        jobs = {"waiting": len(work.queue), "working": work.working}
    return JSONResponse({"state": work.state, **jobs, "failure": work.failure}, 503 if work.state == "failed" else 200)


@open_to_all.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    return Response(generate_latest(request.app.state.metrics.registry), media_type="text/plain; version=0.0.4")


@v1.get("/allocators")
async def allocators() -> dict[str, list[str]]:
    """Names of allocators and relevances."""
    return {"allocators": list_allocators(), "relevances": list_relevances()}


@v1.get("/models")
async def models() -> dict[str, Any]:
    """The one model."""
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
    return {"object": "list", "data": [model]}


@v1.post("/look", openapi_extra=body(LookFields))
async def look(call: CurrentCall) -> Response:
    """Which tokens an image and a question get, as `homunculus look --json` writes it."""
    found = await call.result(await call.reader_request("look", LookFields))
    return Response(await call.in_thread(found.to_json), media_type="application/json")


@v1.post("/reconstruction", openapi_extra=body(LookFields))
async def reconstruction(call: CurrentCall, side: Side = 1600) -> Response:
    """The image as these tokens show it, as WebP no larger than `side` either way."""
    found = await call.result(await call.reader_request("look", LookFields))
    return Response(await call.in_thread(_reconstructed, found, side), media_type="image/webp")


@v1.post("/ask", openapi_extra=body(AskFields))
async def ask(call: CurrentCall) -> Response:
    """The answer to a question about an image, as `homunculus ask --json` writes it."""
    answer = await call.result(await call.reader_request("ask", AskFields))
    return Response(await call.in_thread(answer.to_json), media_type="application/json")


@v1.post("/chat/completions", openapi_extra=conversation())
async def completions(call: CurrentCall) -> Response:
    """OpenAI's chat completions, with images as data URLs; `stream` sends the answer as it grows."""
    chat, request = await call.chat()
    if not chat.stream:
        return JSONResponse(completion(chat, await call.result(request)))
    answers = call.stream(request)
    first = await anext(answers)  # an error before the first piece still has a status of its own
    return StreamingResponse(chunks(chat, _from(first, answers)), media_type="text/event-stream")


@v1.post("/images", openapi_extra=body(None))
async def images(call: CurrentCall) -> dict[str, Any]:
    """Send an image once; later requests name it by `image_id`. It is kept in memory, for a while."""
    upload, _ = await call.sent(LookFields, by_id=False)
    kept = await call.in_thread(call.store.add, upload)
    return kept.about()


@v1.get("/images/{image_id}")
async def image(image_id: str, call: CurrentCall) -> dict[str, Any]:
    """Pages and size of an image that was sent, if it is still kept."""
    return call.store.get(image_id).about()


@v1.get("/images/{image_id}/pages/{page}")
async def picture(image_id: str, page: Annotated[int, Path_(ge=0)], call: CurrentCall, side: Side = 1600) -> Response:
    """A page of an image that was sent, as WebP no larger than `side` either way."""
    content = await call.in_thread(call.store.picture, image_id, page, side)
    return Response(content, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})


async def _from(first: Answer, rest: AsyncIterator[Answer]) -> AsyncIterator[Answer]:
    """The first and the rest."""
    yield first
    async for each in rest:
        yield each


def _reconstructed(look: Look, side: int) -> bytes:
    """The image as tokens show it, from the coarsest level that has as many pixels as are shown."""
    fits = [l for l, level in enumerate(look.glance.scene.levels) if max(level.shape[2:]) >= side]
    pixels = look.reconstruct(max(fits, default=0))
    return webp(Image.fromarray(pixels.permute(1, 2, 0).cpu().numpy()), side)
