"""`homunculus serve` as a process of its own: it tells where it listens, and what it accepted it finishes."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2 as httpx
import pytest

from readers import tiny_reader
from studio import data_url, noise

COMMAND = [sys.executable, "-m", "homunculus", "serve"]
MANY = 3  # requests of each kind


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return ["--weights", str(weights), "--language", str(language)]


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """The process and its address, once it is ready."""
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        address = re.match(r"(http://127\.0\.0\.1:\d+)  \(Ctrl-C ends it\)\n", process.stdout.readline())[1]
        threading.Thread(target=process.stdout.read, daemon=True).start()  # so that the log does not stand in its way
        while httpx.get(f"{address}/healthz", timeout=60).json()["state"] == "loading":
            time.sleep(0.05)
        yield process, address
    finally:
        process.kill()
        process.wait(60)


def asking(address: str, path: str, words: dict, said: list) -> threading.Thread:
    """A client that waits for its answer, whatever it is."""

    def ask() -> None:
        try:
            said.append(httpx.post(f"{address}{path}", json=words, timeout=120))
        except httpx.TransportError as error:
            said.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def requests(image: str) -> Iterator[tuple[str, dict]]:
    """Questions that take a while and cannot be answered together, streams among them, and looks."""
    for n in range(MANY):
        how = {"budget": 300 + n, "relevance": "saliency"}
        talk = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}]
        talk += [{"role": "user", "content": "What is the total?"}]
        yield "/v1/ask", {"image": image, "question": "What is the total?", "max_new_tokens": 48} | how
        yield "/v1/chat/completions", {"messages": talk, "max_tokens": 48, "stream": True, "seed": n} | how
        yield "/v1/look", {"image": image} | how


def accepted(address: str) -> int:
    """Requests that wait or are worked on."""
    health = httpx.get(f"{address}/healthz", timeout=60).json()
    return health["waiting"] + health["working"]


def refused(address: str) -> bool:
    """Whether nobody listens any more."""
    host, port = address.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=60).close()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_what_was_accepted_is_finished(files, ending):
    with serving(*files) as (process, address):
        said: list = []
        wanted = list(requests(data_url(noise((640, 480)))))
        threads = [asking(address, path, words, said) for path, words in wanted]
        while len(said) + (left := accepted(address)) < len(wanted):
            time.sleep(0.01)
        process.send_signal(ending)
        while not refused(address):
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        assert [getattr(each, "status_code", each) for each in said] == [200] * len(wanted)
        assert left > 0, "all was done before it was told to end"
        streams = [each.text for each in said if each.headers["content-type"].startswith("text/event-stream")]
        assert len(streams) == MANY and all(stream.endswith("data: [DONE]\n\n") for stream in streams)
        assert process.wait(60) in (0, -ending)


def test_a_port_that_is_taken_is_told_in_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr and "--port" in done.stderr
