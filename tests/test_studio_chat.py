"""OpenAI's own client against the service, over a real socket."""

import base64
import io
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from PIL import Image

from homunculus import load_reader
from homunculus.studio.app import Settings, create_app
from homunculus.studio.work import Work
from readers import tiny_reader

openai = pytest.importorskip("openai")
uvicorn = pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(*tiny_reader(tmp_path_factory.mktemp("reader")))


@pytest.fixture(scope="module")
def address(reader) -> Iterator[str]:
    """A server on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_app(Work(lambda: reader), Settings(token="secret"))
    server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}/v1"
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def client(address):
    return openai.OpenAI(base_url=address, api_key="secret", max_retries=0)


@pytest.fixture(scope="module")
def png() -> bytes:
    file = io.BytesIO()
    Image.effect_noise((320, 256), 60).convert("RGB").save(file, "PNG")
    return file.getvalue()


def messages(png: bytes, question: str = "What is the total?") -> list[dict]:
    url = "data:image/png;base64," + base64.b64encode(png).decode()
    parts = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": url}}]
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
