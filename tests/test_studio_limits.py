"""What the service does about requests that are too large, too slow, or no HTTP, and that others hardly notice them."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator

import httpx2 as httpx
import pytest

from homunculus.errors import ImageError
from homunculus.image import load
from homunculus.studio.files import read
from homunculus.studio.service import ApiConfig
from homunculus.studio.uploads import Limits
from pictures import pdf as form_pdf
from studio import data_url, memory, noise, served, sheets, slow_pdf, small_reader

FORM = {"Content-Type": "multipart/form-data; boundary=b"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def tight(reader) -> Iterator[str]:
    """A service that takes 10 kB, and a second for each page of a PDF."""
    with served(lambda: reader, ApiConfig(limits=Limits(upload=10_000, seconds=1))) as address:
        yield address


@pytest.fixture(scope="module")
def hasty(reader) -> Iterator[str]:
    """A service that takes half a second for each request."""
    with served(lambda: reader, ApiConfig(timeout=0.5)) as address:
        yield address


def raw(address: str, request: bytes, end: bool = False) -> bytes:
    """All that comes back for these bytes, until the other side closes."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(request)
        if end:
            wire.shutdown(socket.SHUT_WR)
        said = b""
        with contextlib.suppress(ConnectionError):  # closed while more was to come
            while piece := wire.recv(1 << 16):
                said += piece
        return said


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def pieces(content: bytes) -> Iterator[bytes]:
    """Without a length, so that it is sent in chunks."""
    for at in range(0, len(content), 1000):
        yield content[at : at + 1000]


PATHS = ("/v1/look", "/v1/ask", "/v1/images", "/v1/reconstruction", "/v1/chat/completions")


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_grows_and_grows_is_refused_whatever_its_length_says(tight, path):
    image = {"image": data_url(noise((200, 200))), "messages": [{"role": "user", "content": "x" * 30_000}]}
    for content in (json.dumps(image).encode(), iter(pieces(json.dumps(image).encode()))):
        said = httpx.post(tight + path, content=content, headers=JSON, timeout=60)
        assert said.status_code == 413 and "larger than" in said.json()["error"]["message"]
    if "chat" not in path:
        part = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
        body = part + bytes(100_000) + b"\r\n--b--\r\n"
        for content in (body, iter(pieces(body))):
            assert httpx.post(tight + path, content=content, headers=FORM, timeout=60).status_code == 413


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_does_not_come_is_not_waited_for(hasty, path):
    kinds = ["application/json"] if "chat" in path else ["application/json", "multipart/form-data; boundary=b"]
    for kind in kinds:
        said = raw(hasty, head(path, f"Content-Type: {kind}", "Content-Length: 500") + b"--b\r\n")
        assert said.startswith(b"HTTP/1.1 408 ") and b"connection: close" in said.lower()
        assert b"took longer than 0.5 s" in said


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: -5"],
        ["Content-Length: many"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: " + "9" * 300],
        ["Transfer-Encoding: other"],
        ["X: " + "y" * 100_000],
        ["no header"],
    ],
)
def test_a_wrong_head_is_refused(tight, lines):
    said = raw(tight, head("/v1/look", "Connection: close", "Content-Type: application/json", *lines) + b"{}\r\n")
    assert said.startswith(b"HTTP/1.1 4") and b"Traceback" not in said
    assert httpx.get(f"{tight}/healthz").json()["state"] == "ready"


def test_what_is_no_http_or_breaks_off_harms_nobody(tight):
    for request in (b"\x16\x03\x01\x02\0\x01", b"\0" * 500, b"GET\r\n\r\n"):
        assert raw(tight, request, end=True)[:12] in (b"", b"HTTP/1.1 400")
    said = raw(tight, b"POST /v1/look HTTP/9.9\r\n\r\n", end=True)[:12]
    assert said in (b"", b"HTTP/1.1 400", b"HTTP/1.1 415", b"HTTP/1.1 505")  # some parsers take any version
    for path in PATHS:
        for length, part in (("Content-Length: 90", b"{"), ("Transfer-Encoding: chunked", b"zz\r\n")):
            broken = head(path, "Content-Type: application/json", length) + part
            assert raw(tight, broken, end=True)[:12] in (b"", b"HTTP/1.1 400")  # if anybody hears it
    assert httpx.get(f"{tight}/healthz").json()["state"] == "ready"


def test_an_answer_that_does_not_come_is_not_waited_for(reader):
    held = threading.Event()
    with served(lambda: held.wait() and reader, ApiConfig(timeout=0.5)) as address:
        for path, how in (("look", {}), ("ask", {"question": "What?"}), ("reconstruction", {})):
            said = httpx.post(f"{address}/v1/{path}", files={"image": noise()}, data=how, timeout=60)
            assert said.status_code == 408 and "took longer than 0.5 s" in said.json()["error"]["message"]
        held.set()


def test_a_page_that_takes_minutes_to_draw_is_given_up_and_others_are_served_meanwhile(tight):
    said, health = [], 0

    def send() -> None:
        said.append(httpx.post(f"{tight}/v1/images", files={"image": slow_pdf()}, timeout=60))

    thread = threading.Thread(target=send)
    thread.start()
    while thread.is_alive():
        health += httpx.get(f"{tight}/healthz", timeout=60).json()["state"] == "ready"
    assert said[0].status_code == 422 and "too long" in said[0].json()["error"]["message"]
    assert health > 5


def test_a_page_of_a_pdf_takes_no_more_time_and_memory_than_it_may():
    before = memory()
    with pytest.raises(ImageError, match="too long or too much memory"):
        read(slow_pdf(), 0, Limits(seconds=1))
    assert memory() - before < 100


@pytest.mark.parametrize("page", range(3))
def test_a_pdf_is_drawn_as_everywhere_else(page):
    many = sheets("PDF")
    assert read(many, page, Limits()).equal(load(many, page=page))
    if page == 0:
        assert read(form_pdf(), 0, Limits()).equal(load(form_pdf()))
        assert read(b"\n\n" + form_pdf(), 0, Limits()).equal(load(form_pdf()))
