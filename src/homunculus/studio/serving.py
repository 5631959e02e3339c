"""Runs the service: uvicorn over the app, logs as lines of JSON."""

from __future__ import annotations

import contextlib
import logging
import math
import socket
from pathlib import Path

from homunculus.errors import InputError
from homunculus.reader import load_reader

BACKLOG = 2048  # connections that wait to be accepted


def serve(
    host: str,
    port: int,
    token: str,
    device: str,
    weights: Path | None,
    language: str | None,
    max_queue: int,
    batch_size: int,
    max_pixels: int,
    max_upload: int,
) -> None:
    """Serve until a signal; requests that were accepted are finished."""
    try:
        import uvicorn

        from homunculus.studio.app import create_app
        from homunculus.studio.service import ServiceConfig
        from homunculus.studio.uploads import Limits
        from homunculus.studio.work import Worker
    except ImportError as error:
        raise InputError(f"the service needs {error.name}: pip install 'homunculus[serve]'") from error
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    config = ServiceConfig(token, limits=Limits(upload=max_upload, pixels=max_pixels))
    work = Worker(lambda: load_reader(weights, language, device), max_queue, batch_size)
    with listening(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        print(f"http://{name}:{listener.getsockname()[1]}  (Ctrl-C ends it)", flush=True)
        timeout = math.ceil(config.timeout) + 1  # no request takes longer
        server = uvicorn.Config(create_app(work, config), log_level="warning", timeout_graceful_shutdown=timeout)
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
