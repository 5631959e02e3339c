"""Whatever the schema allows, and much that it does not: the service answers, and never with an error of its own."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from studio import served, small_reader

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator:
    reader = small_reader(tmp_path_factory)
    with served(lambda: reader) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


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
                message = response.json()["error"]["message"]
                assert message and "\n" not in message and "Traceback" not in message

        holds()
        met.append(f"{operation.method.upper()} {operation.path}")
    assert {"POST /v1/look", "POST /v1/ask", "POST /v1/chat/completions", "GET /healthz"} <= set(met)
