"""Runs the service: uvicorn over the app, logs as lines of JSON."""

from __future__ import annotations

import contextlib
import logging
import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homunculus.errors import InputError

if TYPE_CHECKING:
    from homunculus.reader.model import Reader

BACKLOG = 2048  # connections that wait to be accepted


@dataclass(frozen=True)
class ServeConfig:
    """Where the service listens, and what it accepts.

    Args:
        token: if there is one, requests must bring it.
        max_queue, batch_size: requests that may wait; questions that are answered in one batch.
        max_pixels, max_upload: pixels and bytes of an image.
    """

    host: str
    port: int
    token: str
    max_queue: int
    batch_size: int
    max_pixels: int
    max_upload: int


def serve(config: ServeConfig, load: Callable[[], Reader]) -> None:
    """Serve until a signal; requests that were accepted are finished."""
    try:
        import uvicorn

        from homunculus.studio.app import create_app
        from homunculus.studio.service import ApiConfig
        from homunculus.studio.uploads import Limits
        from homunculus.studio.work import Worker
    except ImportError as error:
        raise InputError(f"the service needs {error.name}: pip install 'homunculus[serve]'") from error
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    api = ApiConfig(config.token, limits=Limits(upload=config.max_upload, pixels=config.max_pixels))
    work = Worker(load, config.max_queue, config.batch_size)
    with listening(config.host, config.port) as listener:
        name = f"[{config.host}]" if ":" in config.host else config.host
        print(f"http://{name}:{listener.getsockname()[1]}  (Ctrl-C ends it)", flush=True)
        timeout = math.ceil(api.timeout) + 1  # no request takes longer
        server = uvicorn.Config(create_app(work, api), log_level="warning", timeout_graceful_shutdown=timeout)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, raised again after all is done
            uvicorn.Server(server).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens already, before anybody is told its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named TCP, it sends without delay
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        why = error.strerror or error
        raise InputError(f"cannot listen on {host}:{port} ({why}); choose another --host or --port") from error
    return listener
