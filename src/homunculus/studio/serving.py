"""Runs the service: uvicorn over the app, logs as lines of JSON."""

from __future__ import annotations

import contextlib
import logging
import math
import socket
from pathlib import Path

from homunculus.errors import InputError
from homunculus.reader import load_reader

BACKLOG = 2048  # connections that wait to be taken


def serve(
    host: str,
    port: int,
    token: str,
    device: str,
    weights: Path | None,
    language: str | None,
    waiting: int,
    together: int,
    max_pixels: int,
    max_upload: int,
) -> None:
    """Serve until told to stop; what was accepted is finished."""
    try:
        import uvicorn

        from homunculus.studio.app import create_app
        from homunculus.studio.service import Settings
        from homunculus.studio.uploads import Limits
        from homunculus.studio.work import Work
    except ImportError as error:
        raise InputError(f"the service needs {error.name}: pip install 'homunculus[serve]'") from error
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings(token, limits=Limits(upload=max_upload, pixels=max_pixels))
    work = Work(lambda: load_reader(weights, language, device), waiting, together)
    with door_at(host, port) as door:
        name = f"[{host}]" if ":" in host else host
        print(f"http://{name}:{door.getsockname()[1]}  (Ctrl-C ends it)", flush=True)
        patience = math.ceil(settings.timeout) + 1  # no request takes longer
        config = uvicorn.Config(create_app(work, settings), log_level="warning", timeout_graceful_shutdown=patience)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, raised again after all is done
            uvicorn.Server(config).run(sockets=[door])


def door_at(host: str, port: int) -> socket.socket:
    """Where requests come in; before the port is told, it listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # said to be TCP, it sends without delay
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        door.listen(BACKLOG)
    except OSError as error:
        door.close()
        why = error.strerror or error
        raise InputError(f"cannot listen on {host}:{port} ({why}); choose another --host or --port") from error
    return door
