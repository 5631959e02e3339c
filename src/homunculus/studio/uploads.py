"""What a request brings: an image from a form, or as a data URL in JSON, and a few words; all of it checked."""

from __future__ import annotations

import base64
import binascii
import io
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Protocol

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from homunculus.allocators import list_allocators
from homunculus.errors import ImageError
from homunculus.relevance import list_relevances

CHUNK = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What the service takes: bytes of a request, pixels of a page, pages of a file, letters of a question."""

    upload: int = 32 << 20
    pixels: int = 50_000_000
    pages: int = 2000
    letters: int = 2000
    budget: int = 4096


class RequestError(Exception):
    """A request that cannot be served, in a sentence, with the status that says why."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Looking(BaseModel):
    """How to look at an image."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(max_length=2000, description="What to look for; empty for a free look.")] = ""
    allocator: Annotated[str, Field(description="A rule, see GET /v1/allocators.")] = "foveated"
    relevance: Annotated[str, Field(description="What matters, see GET /v1/allocators.")] = "query"
    budget: Annotated[int, Field(ge=1, le=4096, description="How many tokens.")] = 273
    page: Annotated[int, Field(ge=0, description="Page of a PDF or TIFF, from 0.")] = 0
    fovea: Annotated[float | None, Field(ge=0, le=1, description="Share of tokens kept for the fovea.")] = None
    x: Annotated[float | None, Field(description="Where to look, in pixels; else where relevance peaks.")] = None
    y: Annotated[float | None, Field(description="Where to look, in pixels.")] = None

    @field_validator("allocator")
    @classmethod
    def _known_rule(cls, name: str) -> str:
        if name not in list_allocators():
            raise ValueError(f"there is no allocator {name!r}; choose one of {', '.join(list_allocators())}")
        return name

    @field_validator("relevance")
    @classmethod
    def _known_relevance(cls, name: str) -> str:
        if name not in list_relevances():
            raise ValueError(f"there is no relevance {name!r}; choose one of {', '.join(list_relevances())}")
        return name


class Asking(Looking):
    """How to answer a question about an image."""

    question: Annotated[str, Field(min_length=1, max_length=2000, description="What to answer.")]
    most: Annotated[int, Field(ge=1, le=256, description="Tokens of the answer at most.")] = 64


@dataclass(frozen=True)
class Upload:
    """An image as it came, and its mark."""

    content: bytes
    mark: str

    @classmethod
    def of(cls, content: bytes) -> Upload:
        """Named by its bytes."""
        return cls(content, sha256(content).hexdigest())


class Known(Protocol):
    """Who remembers images that were sent."""

    def get(self, mark: str) -> Upload:
        """An image by its mark."""
        ...


async def received(
    request: Request, kind: type[Looking], limits: Limits, known: Known | None = None
) -> tuple[Upload, Any]:
    """The image of a request and how to look at it, from a form or from JSON; `known` may have the image already."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limits.upload * 3 // 2:
        raise RequestError(f"the request is larger than {limits.upload >> 20} MB; send a smaller image", 413)
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media == "multipart/form-data":
        content, words = await _from_form(request, limits)
    elif media == "application/json":
        content, words = await _from_json(request, limits)
    else:
        raise RequestError("send the image as multipart/form-data or as a data URL in application/json", 415)
    mark = words.pop("image_id", None) if known else None
    if (content is None) == (mark is None):
        either = " or an image_id" if known else ""
        raise RequestError(f"the request needs an image (a file, or a data URL in JSON){either}, and one alone", 422)
    try:
        how = kind.model_validate(words)
    except ValidationError as error:
        raise RequestError(told(error), 422) from error
    if known and mark is not None:
        return known.get(str(mark)), how
    return Upload.of(content or b""), how


def told(error: Any) -> str:
    """The first thing that is wrong, in a sentence."""
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"])) or "the request"
    return f"{name}: {first['msg'].removeprefix('Value error, ')}"


async def _from_form(request: Request, limits: Limits) -> tuple[bytes | None, dict[str, Any]]:
    try:
        form = await request.form(max_files=1, max_fields=16, max_part_size=limits.letters * 4)
    except (MultiPartException, ValueError) as error:
        raise RequestError(f"the form cannot be read: {getattr(error, 'message', error)}") from error
    words = {name: value for name, value in form.items() if isinstance(value, str)}
    image = form.get("image")
    if not isinstance(image, UploadFile):
        if "image" in words or len(words) < len(form):
            raise RequestError("the form needs a file with the name image", 422)
        return None, words
    parts, size = [], 0
    while chunk := await image.read(CHUNK):
        size += len(chunk)
        if size > limits.upload:
            raise RequestError(f"the image is larger than {limits.upload >> 20} MB", 413)
        parts.append(chunk)
    return b"".join(parts), words


async def _from_json(request: Request, limits: Limits) -> tuple[bytes | None, dict[str, Any]]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.upload * 3 // 2:
            raise RequestError(f"the request is larger than {limits.upload >> 20} MB; send a smaller image", 413)
    try:
        words = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError("the request is no JSON") from error
    if not isinstance(words, dict):
        raise RequestError("the request needs an image as a data URL", 422)
    image = words.pop("image", None)
    if image is not None and not isinstance(image, str):
        raise RequestError("the image must be a data URL", 422)
    return None if image is None else from_data_url(image, limits), words


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


def pages_of(content: bytes, limits: Limits) -> int:
    """How many pages a file has, if that is within the limit."""
    if not content.startswith(b"%PDF"):
        return 1
    import pypdfium2

    from homunculus.image import _PDFIUM_LOCK

    try:
        with _PDFIUM_LOCK:
            document = pypdfium2.PdfDocument(io.BytesIO(content))
            count = len(document)
            document.close()
    except pypdfium2.PdfiumError as error:
        raise ImageError("the PDF cannot be read: it is damaged or has a password") from error
    if count > limits.pages:
        raise RequestError(f"the PDF has {count} pages, more than {limits.pages}; send fewer", 413)
    return count
