"""`homunculus read`: the text lines that a fixed budget of tokens shows."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from homunculus.image import MAX_PIXELS
from homunculus.runtime.files import replacing

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def read(
    image: Annotated[str, typer.Argument(help="PNG, JPEG, WebP, TIFF or PDF.")],
    question: Annotated[str, typer.Argument(help="Lines that matter to it come first; all of them without one.")] = "",
    budget: Annotated[int, typer.Option("--budget", "-k", help="How many tokens.")] = 273,
    allocator: Annotated[
        str, typer.Option("--allocator", "-a", help="Rule; dag without a question, foveated with one.")
    ] = "",
    reading: Annotated[
        str, typer.Option(help="own, or ppocr for other scripts than Latin (pip install 'homunculus[ocr]').")
    ] = "own",
    weights: Annotated[Path | None, typer.Option(help="Folder of weights; else the shipped ones.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    dpi: Annotated[float, typer.Option(min=1, help="Resolution at which a PDF page is drawn.")] = 144,
    page: Annotated[int, typer.Option(min=0, help="Page of a PDF or TIFF, from 0.")] = 0,
    max_pixels: Annotated[int, typer.Option(min=1, help="Largest image to decode.")] = MAX_PIXELS,
    png: Annotated[Path | None, typer.Option(help="Write the picture of the cells and the lines read in them.")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", help="Write lines and tokens as JSON; - for standard output.")
    ] = None,
) -> None:
    """Read the text lines of an image that a budget of tokens shows legibly.

    [dim]homunculus read page.png --budget 273 --json lines.json[/dim]

    Each line has a box in pixels of the image, a confidence from 0 to 1, and the pyramid level that it was read at.
    """
    from homunculus.reader import load_page_reader

    with err.status("loading the reader") if err.is_terminal else nullcontext():
        reader = load_page_reader(weights, device, reading=reading)
    opened = reader.open(image, page=page, dpi=dpi, max_pixels=max_pixels)
    found = opened.read_look(budget, question, **({"allocator": allocator} if allocator else {}))
    if json_ == Path("-"):
        sys.stdout.write(found.to_json())
    elif json_:
        with replacing(json_) as unfinished:
            unfinished.write_text(found.to_json())
    says = err if json_ == Path("-") else out
    for line in found.lines:
        says.print(f"{escape(line.text)}  [dim]{line.confidence:.0%}, level {line.level}[/dim]")
    says.print(f"{len(found.lines)} lines in {found.visual_tokens} tokens", style="dim")
    if png:
        found.save(png)
        says.print(f"  wrote {escape(str(png))}")
