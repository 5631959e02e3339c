"""What a request brings: an image from a form, or as a data URL in JSON, and its other fields; all of it checked."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from homunculus.allocators import list_allocators
from homunculus.errors import shown
from homunculus.relevance import list_relevances

FIELDS = 16  # of a form, beside the image
LONGEST = 500  # letters of a sentence that says what is wrong
FARTHEST = 1e9  # pixels from the page: a place to look at may lie beside it


@dataclass(frozen=True)
class Limits:
    """What the service takes: bytes of an image, pixels of a page, pages of a file and their pixels, letters."""

    upload: int = 32 << 20
    pixels: int = 50_000_000
    pages: int = 2000
    film: int = 500_000_000  # pixels of all pages, where one can be seen only after all before it
    seconds: int = 10  # of work on a page of a PDF
    letters: int = 2000

    @property
    def body(self) -> int:
        """Bytes of a request: an image in base64 and what is around it."""
        return self.upload * 3 // 2


class RequestError(Exception):
    """A request that cannot be served, in a sentence, with the status that says why."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def sentence(text: str) -> str:
    """A text as one line that is not too long, whatever a request put into it."""
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 2 * LONGEST]).split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 4]} ..."


def error_body(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    return {"error": {"message": sentence(message), "type": kind}}


class LookFields(BaseModel):
    """How to look at an image."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(max_length=2000, description="What to look for; empty for a free look.")] = ""
    allocator: Annotated[str, Field(description="A rule, see GET /v1/allocators.")] = "foveated"
    relevance: Annotated[str, Field(description="What matters, see GET /v1/allocators.")] = "query"
    budget: Annotated[int, Field(ge=1, le=4096, description="How many tokens.")] = 273
    page: Annotated[int, Field(ge=0, description="Page of a PDF or TIFF, from 0.")] = 0
    fovea: Annotated[float | None, Field(ge=0, le=1, description="Share of tokens kept for the fovea.")] = None
    x: Annotated[
        float | None,
        Field(ge=-FARTHEST, le=FARTHEST, description="Where to look, in pixels; else the peak of the relevance."),
    ] = None
    y: Annotated[float | None, Field(ge=-FARTHEST, le=FARTHEST, description="Where to look, in pixels.")] = None

    @field_validator("allocator")
    @classmethod
    def _known_rule(cls, name: str) -> str:
        if name not in list_allocators():
            raise ValueError(f"there is no allocator {shown(name)}; choose one of {', '.join(list_allocators())}")
        return name

    @field_validator("relevance")
    @classmethod
    def _known_relevance(cls, name: str) -> str:
        if name not in list_relevances():
            raise ValueError(f"there is no relevance {shown(name)}; choose one of {', '.join(list_relevances())}")
        return name


class AskFields(LookFields):
    """How to answer a question about an image."""

    question: Annotated[str, Field(min_length=1, max_length=2000, description="What to answer.")]
    max_new_tokens: Annotated[int, Field(ge=1, le=256, description="Tokens of the answer at most.")] = 64


def media_of(request: Request) -> str:
    """What kind of body a request has."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def stream_of(request: Request, limits: Limits) -> AsyncGenerator[bytes, None]:
    """The body of a request piece by piece, up to the limit."""
    large = RequestError(f"the request is larger than {limits.upload >> 20} MB; send a smaller image", 413)
    length, size = request.headers.get("content-length", ""), 0
    if length.isdecimal() and int(length) > limits.body:
        raise large
    async for piece in request.stream():
        size += len(piece)
        if size > limits.body:
            raise large
        yield piece


async def body_of(request: Request, limits: Limits) -> bytes:
    """The whole body of a request."""
    body = bytearray()
    async for piece in stream_of(request, limits):
        body += piece
    return bytes(body)


class _Form(MultiPartParser):
    """A form that stays in memory."""

    spool_max_size = 1 << 40


async def from_form(request: Request, limits: Limits) -> tuple[bytes | None, dict[str, Any]]:
    """The image of a form, if it has one, and its other fields."""
    parser = _Form(
        request.headers, stream_of(request, limits), max_files=1, max_fields=FIELDS, max_part_size=4 * limits.letters
    )
    try:
        form = await parser.parse()
    except (MultiPartException, ValueError) as error:
        why = str(getattr(error, "message", error)).split(".")[0].lower()
        raise RequestError(f"the form cannot be read ({why}); send one file and at most {FIELDS} fields") from error
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    image = form.get("image")
    if not isinstance(image, UploadFile):
        if "image" in fields or len(fields) < len(form):
            raise RequestError("the form needs a file with the name image", 422)
        return None, fields
    if (image.size or 0) > limits.upload:
        raise RequestError(f"the image is larger than {limits.upload >> 20} MB", 413)
    return await image.read(), fields


def from_json(body: bytes, limits: Limits) -> tuple[bytes | None, dict[str, Any]]:
    """The image in JSON, if it has one, and its other fields."""
    fields = json_of(body)
    if not isinstance(fields, dict):
        raise RequestError("the request needs an image as a data URL", 422)
    image = fields.pop("image", None)
    if image is not None and not isinstance(image, str):
        raise RequestError("the image must be a data URL", 422)
    return None if image is None else from_data_url(image, limits), fields


def json_of(body: bytes) -> Any:
    """What JSON says."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError("the request is no JSON") from error


def from_data_url(url: str, limits: Limits) -> bytes:
    """The bytes of a data URL; nothing is ever fetched."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise RequestError("images come as data URLs (data:image/png;base64,...); other addresses are not fetched", 422)
    if len(body) > limits.upload * 4 // 3 + 4:
        raise RequestError(f"the image is larger than {limits.upload >> 20} MB", 413)
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError("the data URL's base64 cannot be read", 422) from error


def validated(kind: type[Any], fields: Any) -> Any:
    """Fields as a model of them; what is wrong is a RequestError."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise RequestError(first_error(error), 422) from error


def first_error(error: Any) -> str:
    """What is wrong, in a sentence: of several errors the first, of several ways to put it the nearest."""
    first = max(error.errors(), key=lambda each: len(each["loc"]))
    name = ".".join(str(part)[:40] for part in first["loc"]) or "the request"
    return f"{name}: {first['msg'].removeprefix('Value error, ')}"
