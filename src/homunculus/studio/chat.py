"""OpenAI's chat completions over the reader: the last question of a conversation, about its last image."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from homunculus.reader.model import Answer
from homunculus.studio.uploads import Asking, RequestError, error_body, fit

MODEL = "homunculus"
LOOKING = ("allocator", "relevance", "budget", "page", "fovea", "x", "y")


class Url(BaseModel):
    """Where an image is: in the request itself."""

    url: Annotated[str, Field(description="A data URL.")]
    detail: str | None = None


class Part(BaseModel):
    """A piece of a message."""

    type: Literal["text", "image_url"]
    text: str | None = None
    image_url: Url | None = None


class Message(BaseModel):
    """One turn."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]


class StreamOptions(BaseModel):
    """What a stream ends with."""

    include_usage: bool = False


class Chat(BaseModel):
    """A request for the next turn; `budget` and what follows it is ours, as for `/v1/ask`."""

    model_config = ConfigDict(extra="ignore")

    messages: Annotated[list[Message], Field(min_length=1, max_length=256)]
    model: str = MODEL
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] = 0
    budget: Annotated[int, Field(ge=1, le=4096)] = 273
    allocator: str = "foveated"
    relevance: str = "query"
    page: Annotated[int, Field(ge=0)] = 0
    fovea: Annotated[float | None, Field(ge=0, le=1)] = None
    x: float | None = None
    y: float | None = None
    image_id: Annotated[str | None, Field(description="Of POST /v1/images, in place of images in messages.")] = None

    def asking(self) -> Asking:
        """How to answer it."""
        texts, most = self.question(), self.max_completion_tokens or self.max_tokens or 64
        look = {name: getattr(self, name) for name in LOOKING}
        return cast(Asking, fit(Asking, {"question": texts[:2000], "most": min(most, 256)} | look))

    def question(self) -> str:
        """The text of the last turn of the user."""
        for message in reversed(self.messages):
            if message.role == "user":
                parts = [message.content] if isinstance(message.content, str) else [p.text for p in message.content]
                text = " ".join(filter(None, parts)).strip()
                if text:
                    return text
        raise RequestError("a question is missing: the last message of the user has no text", 422)

    def image(self) -> str | None:
        """The address of the last image of the conversation; none if one is named."""
        if self.image_id is not None:
            return None
        for message in reversed(self.messages):
            parts = [] if isinstance(message.content, str) else message.content
            for part in reversed(parts):
                if part.image_url is not None:
                    return part.image_url.url
        raise RequestError("an image is missing: add one to a message as image_url with a data URL", 422)


def completion(chat: Chat, answer: Answer) -> dict[str, Any]:
    """A whole answer as OpenAI's clients read it; beside it what is ours."""
    choice = {"index": 0, "message": {"role": "assistant", "content": answer.text}, "finish_reason": "stop"}
    return _head(chat, "chat.completion") | {"choices": [choice], "usage": usage(answer), "homunculus": ours(answer)}


def ours(answer: Answer) -> dict[str, Any]:
    """What OpenAI's clients do not ask for: how sure the answer is, where was looked, with how many tokens."""
    look = {"fixations": answer.glance.fixations.tolist(), "tokens": int(answer.glance.selection.mask.sum())}
    return {"answer": answer.text, "confidence": answer.confidence} | look


def usage(answer: Answer) -> dict[str, int]:
    """Visual tokens and words in, words out; words as blanks part them, since clients want some number."""
    seen = int(answer.glance.selection.mask.sum()) + len(answer.glance.question.split())
    said = max(1, len(answer.text.split()))
    return {"prompt_tokens": seen, "completion_tokens": said, "total_tokens": seen + said}


async def chunks(chat: Chat, answers: AsyncIterator[Answer]) -> AsyncIterator[str]:
    """A growing answer as server-sent events."""
    head, told, last = _head(chat, "chat.completion.chunk"), "", None

    def event(delta: dict[str, Any], ended: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": ended}
        return f"data: {json.dumps(head | {'choices': [choice]} | more)}\n\n"

    yield event({"role": "assistant", "content": ""})
    try:
        async for last in answers:
            if last.text.startswith(told) and last.text != told:
                yield event({"content": last.text[len(told) :]})
                told = last.text
    except RequestError as error:  # too late for a status
        yield f"data: {json.dumps(error_body(str(error)))}\n\n"
        return
    yield event({}, "stop", **({} if last is None else {"homunculus": ours(last)}))
    if last is not None and chat.stream_options and chat.stream_options.include_usage:
        yield f"data: {json.dumps(head | {'choices': [], 'usage': usage(last)})}\n\n"
    yield "data: [DONE]\n\n"


def _head(chat: Chat, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": MODEL}
