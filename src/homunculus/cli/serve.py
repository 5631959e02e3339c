"""`homunculus serve`: the web page and the HTTP API."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from homunculus.cli.options import BatchSize, Device, Language, MaxPixels, Weights


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 127.0.0.1 serves this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8765,
    token: Annotated[str, typer.Option(envvar="HOMUNCULUS_TOKEN", help="Bearer token that requests must send.")] = "",
    device: Device = "cpu",
    weights: Weights = "",
    language: Language = "",
    max_queue: Annotated[int, typer.Option(min=1, help="Requests that may wait; further ones get status 429.")] = 64,
    batch_size: BatchSize = 8,
    max_pixels: MaxPixels = 50_000_000,
    max_upload: Annotated[int, typer.Option(min=1, help="Megabytes of the largest upload.")] = 32,
) -> None:
    """A web page to see where it looks, and an HTTP API with OpenAI-compatible chat.

    [dim]homunculus serve[/dim], then open http://127.0.0.1:8765
    """
    from homunculus.reader import load_reader
    from homunculus.studio.serving import ServeConfig
    from homunculus.studio.serving import serve as run

    config = ServeConfig(host, port, token, max_queue, batch_size, max_pixels, max_upload << 20)
    run(config, partial(load_reader, weights, language, device))
