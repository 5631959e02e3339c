"""OpenAI's own client against the service, over a real socket."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from homunculus.reader.model import Answer
from homunculus.studio.chat import Chat, chunks
from homunculus.studio.service import ApiConfig
from homunculus.studio.uploads import RequestError
from studio import data_url, letter, served, small_reader

openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def address(reader) -> Iterator[str]:
    with served(lambda: reader, ApiConfig(token="secret")) as address:
        yield f"{address}/v1"


@pytest.fixture(scope="module")
def client(address):
    return openai.OpenAI(base_url=address, api_key="secret", max_retries=0)


@pytest.fixture(scope="module")
def png() -> bytes:
    return letter()


def messages(png: bytes, question: str = "What is the total?") -> list[dict]:
    parts = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": data_url(png)}}]
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]


def test_the_official_client_is_answered(client, reader, png):
    assert [model.id for model in client.models.list()] == ["homunculus"]
    said = client.chat.completions.create(
        model="homunculus", messages=messages(png), max_tokens=5, extra_body={"budget": 60}
    )
    own = reader.ask(png, "What is the total?", budget=60, max_new_tokens=5)
    assert said.choices[0].message.content == own.text
    assert said.choices[0].finish_reason == ("stop" if own.ended else "length")
    words = sum(len(line.text.split()) for line in own.lines)
    assert own.lines and said.usage.prompt_tokens == 60 + 4 + words


def test_what_the_answer_was_read_from_comes_with_it(client, reader, png):
    how = {"max_tokens": 3, "extra_body": {"budget": 60, "x": 80, "y": 230}}
    entries = reader.ask(png, "What is the total?", budget=60, fixation=(80, 230), max_new_tokens=3).to_dict()
    whole = client.chat.completions.create(model="homunculus", messages=messages(png), **how)
    *_, last = client.chat.completions.create(model="homunculus", messages=messages(png), stream=True, **how)
    for said in (whole.homunculus, last.homunculus):
        assert said.keys() == {"answer", "confidence", "fixations", "visual_tokens", "lines"}
        assert said["lines"] == entries["lines"] != [] and said["fixations"] == [[80, 230]]
        assert said["visual_tokens"] == 60 and said["answer"] == entries["answer"]
        assert said["confidence"] == pytest.approx(entries["confidence"], abs=1e-4)


def test_a_stream_is_the_answer_in_pieces(client, reader, png):
    how = {"max_tokens": 5, "stream": True, "stream_options": {"include_usage": True}, "extra_body": {"budget": 24}}
    pieces = list(client.chat.completions.create(model="homunculus", messages=messages(png), **how))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == reader.ask(png, "What is the total?", budget=24, max_new_tokens=5).text
    assert pieces[-1].usage.total_tokens > 24
    assert [p.choices[0].finish_reason for p in pieces if p.choices][-1] in ("stop", "length")


def streamed(texts: list[str], answer: Answer, **how: object) -> tuple[str, str]:
    """What a client puts together from an answer that grows like this, and why it ended."""

    async def answers():
        for text in texts:
            yield replace(answer, text=text)

    async def events() -> list[str]:
        return [event async for event in chunks(Chat(messages=[{"role": "user", "content": "x"}], **how), answers())]

    choices = [json.loads(event.removeprefix("data: "))["choices"][0] for event in asyncio.run(events())[:-1]]
    return "".join(choice["delta"].get("content", "") for choice in choices), choices[-1]["finish_reason"]


def test_letters_of_several_tokens_come_whole_in_a_stream(reader, png):
    answer = reader.ask(png, "What is the total?", budget=24, max_new_tokens=2)
    assert streamed(["\ufffd", "Ł", "Łó", "Łód", "Łód\ufffd", "Łódź"], answer)[0] == "Łódź"
    assert streamed(["a", "a\ufffd"], answer)[0] == "a\ufffd"  # nothing more came


def test_an_answer_ends_where_the_client_wants_it_to_or_says_that_it_is_cut(client, reader, png):
    answer = reader.ask(png, "What is the total?", budget=24, max_new_tokens=2)
    grown = ["1", "12", "12.", "12.5", "12.50 EUR"]
    assert streamed(grown, replace(answer, ended=False), stop=[".50"]) == ("12", "stop")
    assert streamed(grown, replace(answer, ended=False), stop=".51") == ("12.50 EUR", "length")
    assert streamed(grown, replace(answer, ended=True), stop="") == ("12.50 EUR", "stop")
    long = reader.ask(png, "What is the total?", budget=24, max_new_tokens=5)
    said = client.chat.completions.create(
        model="homunculus", messages=messages(png), max_tokens=5, stop=long.text[1:], extra_body={"budget": 24}
    )
    assert said.choices[0].message.content == long.text[:1] and said.choices[0].finish_reason == "stop"


def test_what_is_left_open_may_be_null(client, reader, png):
    null = dict.fromkeys(("stream", "temperature", "seed", "n", "stop", "max_completion_tokens", "stream_options"))
    talk = [*messages(png), {"role": "assistant", "content": None}, {"role": "user", "content": "Who signed it?"}]
    said = client.chat.completions.create(
        model="homunculus", messages=talk, max_tokens=4, extra_body=null | {"budget": 16}
    )
    assert said.choices[0].message.content == reader.ask(png, "Who signed it?", budget=16, max_new_tokens=4).text
    assert client.models.list().data[0].created == 0


def test_a_temperature_next_to_nothing_is_none(client, reader, png):
    said = client.chat.completions.create(
        model="homunculus", messages=messages(png), max_tokens=4, temperature=1e-45, extra_body={"budget": 16}
    )
    assert said.choices[0].message.content == reader.ask(png, "What is the total?", budget=16, max_new_tokens=4).text


def test_a_stream_that_takes_too_long_ends_with_a_sentence(reader, png):
    async def answers():
        yield reader.ask(png, "What is the total?", budget=24, max_new_tokens=2)
        raise RequestError("the request took longer than 1 s", 408)

    async def events() -> list[str]:
        return [event async for event in chunks(Chat(messages=[{"role": "user", "content": "x"}]), answers())]

    *_, last = asyncio.run(events())
    assert json.loads(last.removeprefix("data: "))["error"]["message"] == "the request took longer than 1 s"
    assert last.endswith("\n\n")


def test_a_second_turn_is_about_the_same_image(client, reader, png):
    talk = [*messages(png), {"role": "assistant", "content": "12"}, {"role": "user", "content": "Who signed it?"}]
    said = client.chat.completions.create(model="homunculus", messages=talk, max_tokens=4, extra_body={"budget": 16})
    assert said.choices[0].message.content == reader.ask(png, "Who signed it?", budget=16, max_new_tokens=4).text


def test_what_is_wrong_is_told_as_the_client_expects(client, address, png):
    elsewhere = {"type": "image_url", "image_url": {"url": "http://x/y.png"}}
    none, empty = [{"role": "user", "content": "What?"}], messages(png, " ")
    for talk in (none, empty, [{"role": "user", "content": [{"type": "text", "text": "What?"}, elsewhere]}]):
        with pytest.raises(openai.UnprocessableEntityError) as wrong:
            client.chat.completions.create(model="homunculus", messages=talk)
        assert "\n" not in wrong.value.body["message"] and len(wrong.value.body["message"]) > 20
    with pytest.raises(openai.UnprocessableEntityError, match="no allocator"):
        client.chat.completions.create(model="homunculus", messages=messages(png), extra_body={"allocator": "none"})
    with pytest.raises(openai.UnprocessableEntityError, match="n: Input should be less than or equal to 1"):
        client.chat.completions.create(model="homunculus", messages=messages(png), n=2)
    with pytest.raises(openai.UnprocessableEntityError, match=r"question: .* at most 2000 characters"):
        client.chat.completions.create(model="homunculus", messages=messages(png, "Why? " * 401))
    heard = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]
    with pytest.raises(openai.UnprocessableEntityError, match="type: Input should be 'text' or 'image_url'"):
        client.chat.completions.create(model="homunculus", messages=heard)
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=address, api_key="other", max_retries=0).models.list()
