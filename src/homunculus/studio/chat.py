"""OpenAI's chat completions over the reader: the last question of a conversation, about its last image."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from homunculus.reader.model import Answer
from homunculus.studio.uploads import AskFields, RequestError, error_body, validated

MODEL = "homunculus"
LOOK_FIELDS = ("allocator", "relevance", "budget", "page", "fovea", "x", "y")
MAX_NEW_TOKENS = 64, 256  # unless told, and at most


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
    content: str | list[Part] | None = None

    @property
    def parts(self) -> list[Part]:
        """The pieces of it, a plain text as one."""
        return [Part(type="text", text=self.content)] if isinstance(self.content, str) else self.content or []


class StreamOptions(BaseModel):
    """OpenAI's options of a stream."""

    include_usage: bool = False


class Chat(BaseModel):
    """A request for the next turn; `budget` and the fields below it are ours, as for `/v1/ask`."""

    model_config = ConfigDict(extra="ignore")

    messages: Annotated[list[Message], Field(min_length=1, max_length=256)]
    model: str = MODEL
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    seed: Annotated[int | None, Field(ge=-(1 << 63), lt=1 << 63)] = None
    n: Annotated[int | None, Field(ge=1, le=1)] = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    budget: Annotated[int, Field(ge=1, le=4096)] = 273
    allocator: str = "foveated"
    relevance: str = "query"
    page: Annotated[int, Field(ge=0)] = 0
    fovea: Annotated[float | None, Field(ge=0, le=1)] = None
    x: float | None = None
    y: float | None = None
    image_id: Annotated[str | None, Field(description="Of POST /v1/images, in place of images in messages.")] = None

    def fields(self) -> AskFields:
        """The question and how to answer it, as `/v1/ask` takes them."""
        usual, largest = MAX_NEW_TOKENS
        tokens = min(self.max_completion_tokens or self.max_tokens or usual, largest)
        look = {name: getattr(self, name) for name in LOOK_FIELDS}
        return cast(AskFields, validated(AskFields, {"question": self.question(), "max_new_tokens": tokens} | look))

    def question(self) -> str:
        """The text of the last turn of the user."""
        for message in reversed(self.messages):
            if message.role == "user":
                text = " ".join(part.text for part in message.parts if part.text).strip()
                if text:
                    return text
        raise RequestError("a question is missing: the last message of the user has no text", 422)

    def image(self) -> str | None:
        """The address of the last image of the conversation; none if one is named."""
        if self.image_id is not None:
            return None
        for message in reversed(self.messages):
            for part in reversed(message.parts):
                if part.image_url is not None:
                    return part.image_url.url
        raise RequestError("an image is missing: add one to a message as image_url with a data URL", 422)

    def text_of(self, answer: Answer, grows: bool = False) -> tuple[str, str]:
        """The text up to the first stop sequence, and the finish reason.

        While it `grows`, without an end that further tokens may change.
        """
        text, stops = answer.text, [self.stop] if isinstance(self.stop, str) else self.stop or []
        stops = [each for each in stops if each]
        found = [text.index(each) for each in stops if each in text]
        if found:
            return text[: min(found)], "stop"
        if grows:
            text = text.rstrip("\ufffd")  # a letter of several bytes, not all of them there yet
            begun = [n for each in stops for n in range(1, len(each)) if text.endswith(each[:n])]
            text = text[: len(text) - max(begun, default=0)]
        return text, "stop" if answer.ended else "length"


def completion(chat: Chat, answer: Answer) -> dict[str, Any]:
    """A whole answer as OpenAI's clients read it, with the field `homunculus`."""
    text, reason = chat.text_of(answer)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return _head("chat.completion") | {"choices": [choice], "usage": usage(answer), "homunculus": details(answer)}


def details(answer: Answer) -> dict[str, Any]:
    """Our field of a response: the answer and its confidence, fixations, number of tokens, lines that were read."""
    entries = answer.to_dict()
    return {name: entries[name] for name in ("answer", "confidence", "fixations", "visual_tokens", "lines")}


def usage(answer: Answer) -> dict[str, int]:
    """Visual tokens and words of the question and the lines in, words out; clients expect some number."""
    texts = [answer.glance.question, *(line.text for line in answer.lines)]
    prompt = answer.visual_tokens + sum(len(text.split()) for text in texts)
    completion = max(1, len(answer.text.split()))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def chunks(chat: Chat, answers: AsyncIterator[Answer]) -> AsyncIterator[str]:
    """A growing answer as server-sent events."""
    head, sent, last, reason = _head("chat.completion.chunk"), "", None, "stop"

    def event(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return f"data: {json.dumps(head | {'choices': [choice]} | more)}\n\n"

    yield event({"role": "assistant", "content": ""})
    try:
        async for last in answers:
            text, _ = chat.text_of(last, grows=True)
            if text.startswith(sent) and text != sent:
                yield event({"content": text[len(sent) :]})
                sent = text
    except RequestError as error:  # too late for a status
        yield f"data: {json.dumps(error_body(str(error)))}\n\n"
        return
    if last is not None:
        text, reason = chat.text_of(last)
        if text.startswith(sent) and text != sent:
            yield event({"content": text[len(sent) :]})
    yield event({}, reason, **({} if last is None else {"homunculus": details(last)}))
    if last is not None and chat.stream_options and chat.stream_options.include_usage:
        yield f"data: {json.dumps(head | {'choices': [], 'usage': usage(last)})}\n\n"
    yield "data: [DONE]\n\n"


def _head(kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": MODEL}
