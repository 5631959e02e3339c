"""Whatever the schema allows, and much that it does not: the service answers, and never with an error of its own."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from homunculus import load_reader
from homunculus.studio.app import create_app
from homunculus.studio.work import Work
from readers import tiny_reader

schemathesis = pytest.importorskip("schemathesis")
uvicorn = pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator:
    reader = load_reader(*tiny_reader(tmp_path_factory.mktemp("reader")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(Work(lambda: reader)), "127.0.0.1", port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    server.should_exit = True
    thread.join(20)


def test_no_request_breaks_it(api):
    met = []
    for found in api.get_all_operations():
        operation = found.ok()

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def holds(case):
            response = case.call()
            assert response.status_code < 500, response.text
            if response.status_code >= 400:
                told = response.json()
                message = told["error"]["message"] if "error" in told else told["detail"]
                assert message and "Traceback" not in str(message)

        holds()
        met.append(f"{operation.method.upper()} {operation.path}")
    assert {"POST /v1/look", "POST /v1/ask", "POST /v1/chat/completions", "GET /healthz"} <= set(met)
