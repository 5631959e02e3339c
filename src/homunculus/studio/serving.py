"""Runs the service: uvicorn over the app, logs as lines of JSON."""

from __future__ import annotations

import logging
from pathlib import Path

from homunculus.errors import InputError
from homunculus.reader import load_reader


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

        from homunculus.studio.app import Settings, create_app
        from homunculus.studio.uploads import Limits
        from homunculus.studio.work import Work
    except ImportError as error:
        raise InputError(f"the service needs {error.name}: pip install 'homunculus[serve]'") from error
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    work = Work(lambda: load_reader(weights, language, device), waiting, together, max_pixels)
    app = create_app(work, Settings(token, limits=Limits(upload=max_upload, pixels=max_pixels)))
    print(f"http://{host}:{port}  (Ctrl-C ends it)", flush=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=60)
