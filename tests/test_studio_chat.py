"""OpenAI's own client against the service, over a real socket."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from homunculus.studio.chat import Chat, chunks
from homunculus.studio.service import Settings
from homunculus.studio.uploads import RequestError
from studio import data_url, noise, served, small_reader

openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def address(reader) -> Iterator[str]:
    with served(lambda: reader, Settings(token="secret")) as address:
        yield f"{address}/v1"


@pytest.fixture(scope="module")
def client(address):
    return openai.OpenAI(base_url=address, api_key="secret", max_retries=0)


@pytest.fixture(scope="module")
def png() -> bytes:
    return noise()


def messages(png: bytes, question: str = "What is the total?") -> list[dict]:
    parts = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": data_url(png)}}]
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]


def test_the_official_client_is_answered(client, reader, png):
    assert [model.id for model in client.models.list()] == ["homunculus"]
    said = client.chat.completions.create(
        model="homunculus", messages=messages(png), max_tokens=5, extra_body={"budget": 24}
    )
    own = reader.ask(png, "What is the total?", budget=24, most=5)
    assert said.choices[0].message.content == own.text and said.choices[0].finish_reason == "stop"
    assert said.usage.prompt_tokens == 24 + 4 and said.homunculus["confidence"] == pytest.approx(
        own.confidence, abs=1e-4
    )


def test_a_stream_is_the_answer_in_pieces(client, reader, png):
    how = {"max_tokens": 5, "stream": True, "stream_options": {"include_usage": True}, "extra_body": {"budget": 24}}
    pieces = list(client.chat.completions.create(model="homunculus", messages=messages(png), **how))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == reader.ask(png, "What is the total?", budget=24, most=5).text
    assert (
        pieces[-1].usage.total_tokens > 24 and [p.choices[0].finish_reason for p in pieces if p.choices][-1] == "stop"
    )


def test_a_stream_that_takes_too_long_ends_with_a_sentence(reader, png):
    async def answers():
        yield reader.ask(png, "What is the total?", budget=24, most=2)
        raise RequestError("the request took longer than 1 s", 408)

    async def events() -> list[str]:
        return [event async for event in chunks(Chat(messages=[{"role": "user", "content": "x"}]), answers())]

    *_, last = asyncio.run(events())
    assert json.loads(last.removeprefix("data: "))["error"]["message"] == "the request took longer than 1 s"
    assert last.endswith("\n\n")


def test_a_second_turn_is_about_the_same_image(client, reader, png):
    talk = [*messages(png), {"role": "assistant", "content": "12"}, {"role": "user", "content": "Who signed it?"}]
    said = client.chat.completions.create(model="homunculus", messages=talk, max_tokens=4, extra_body={"budget": 16})
    assert said.choices[0].message.content == reader.ask(png, "Who signed it?", budget=16, most=4).text


def test_what_is_wrong_is_told_as_the_client_expects(client, address, png):
    elsewhere = {"type": "image_url", "image_url": {"url": "http://x/y.png"}}
    none, empty = [{"role": "user", "content": "What?"}], messages(png, " ")
    for talk in (none, empty, [{"role": "user", "content": [{"type": "text", "text": "What?"}, elsewhere]}]):
        with pytest.raises(openai.UnprocessableEntityError) as wrong:
            client.chat.completions.create(model="homunculus", messages=talk)
        assert "\n" not in wrong.value.body["message"] and len(wrong.value.body["message"]) > 20
    with pytest.raises(openai.UnprocessableEntityError, match="no allocator"):
        client.chat.completions.create(model="homunculus", messages=messages(png), extra_body={"allocator": "none"})
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=address, api_key="other", max_retries=0).models.list()
