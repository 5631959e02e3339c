"""The service as an app: its routes, its errors and its metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from homunculus import __version__
from homunculus.errors import ImageError, InputError
from homunculus.studio.routes import PAGE, open_to_all, v1
from homunculus.studio.service import ApiConfig, Service
from homunculus.studio.uploads import RequestError, error_body, first_error
from homunculus.studio.work import BusyError, UnreadyError, Worker

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 408: {"Connection": "close"}}  # of a status
log = logging.getLogger("homunculus.studio")


class Metrics:
    """Metrics for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        names: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("homunculus_requests", "Requests by path and status", ["path", "status"], **names)
        self.seconds = Histogram("homunculus_request_seconds", "Seconds of a request", ["path"], **names)
        self.waiting = Gauge("homunculus_waiting", "Requests in the queue", **names)
        self.batch_size = Histogram("homunculus_batch_size", "Requests of a batch", buckets=[1, 2, 4, 8, 16], **names)

    def observe(self, name: str, value: float) -> None:
        """A value from the work thread."""
        if name == "waiting":
            self.waiting.set(value)
        else:
            self.batch_size.observe(value)


def create_app(work: Worker, config: ApiConfig | None = None) -> FastAPI:
    """The service over a queue and its thread."""
    service, metrics = Service(work, config or ApiConfig()), Metrics()
    work.observe, work.limits = metrics.observe, service.limits

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        work.start()
        yield
        await asyncio.to_thread(work.stop)

    app = FastAPI(title="Homunculus", version=__version__, lifespan=life, docs_url=None, redoc_url=None)
    app.state.service, app.state.metrics = service, metrics
    _observed(app, metrics)
    _errors(app)
    app.include_router(open_to_all)
    app.include_router(v1)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    return app


def _observed(app: FastAPI, metrics: Metrics) -> None:
    """Every request gets an id, a line in the log and its place in the metrics."""

    @app.middleware("http")
    async def observe(request: Request, call: Callable[[Request], Any]) -> Response:
        begun, name = time.monotonic(), request.headers.get("x-request-id", "")[:64].strip() or uuid.uuid4().hex
        try:
            response: Response = await call(request)
        except Exception:
            log.exception(json.dumps({"id": name, "path": request.url.path}))
            fault = f"the service failed at this request; its log says more under {name}"
            response = JSONResponse(error_body(fault, "server_error"), 500)
        path = getattr(request.scope.get("route"), "path", "other")
        spent = time.monotonic() - begun
        metrics.requests.labels(path, response.status_code).inc()
        metrics.seconds.labels(path).observe(spent)
        entry = {"id": name, "method": request.method, "path": path, "status": response.status_code}
        log.info(json.dumps(entry | {"ms": round(spent * 1e3, 1)}))
        response.headers["x-request-id"] = name
        return response


def _errors(app: FastAPI) -> None:
    """Every error is one sentence."""

    def on(kind: type[Exception], answer: Callable[[Any], JSONResponse]) -> None:
        async def handler(_: Request, error: Exception) -> JSONResponse:
            return answer(error)

        app.add_exception_handler(kind, handler)

    def plain(message: str, status: int, headers: Any = None) -> JSONResponse:
        return JSONResponse(error_body(message), status, headers or HEADERS.get(status))

    def busy(error: BusyError) -> JSONResponse:
        return JSONResponse(error_body(str(error), "rate_limit_error"), 429, {"Retry-After": str(error.seconds)})

    on(RequestError, lambda error: plain(str(error), error.status))
    on(RequestValidationError, lambda error: plain(first_error(error), 422))
    on(HTTPException, lambda error: plain(_named(error), error.status_code, error.headers))
    on(ClientDisconnect, lambda error: plain("the request broke off", 400))
    on(InputError, lambda error: plain(str(error), 422))
    on(ImageError, lambda error: plain(str(error), 422))
    on(UnreadyError, lambda error: JSONResponse(error_body(str(error), "server_error"), 503))
    on(BusyError, busy)


def _named(error: HTTPException) -> str:
    """An error of the framework as a sentence."""
    known = {404: "there is nothing at this address", 405: "this address takes other methods; see /openapi.json"}
    return known.get(error.status_code, str(error.detail))
