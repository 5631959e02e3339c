"""`homunculus look` and `homunculus view`: which tokens a question gets, and the same as images for any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import track

from homunculus.allocators import check_options
from homunculus.cli import options as opt
from homunculus.cli.console import OutputFiles, err, out, print_error
from homunculus.errors import ImageError, InputError
from homunculus.eye import Eye, Glance
from homunculus.giga import GiantGlance
from homunculus.image import MAX_PIXELS, load
from homunculus.runtime.files import replacing
from homunculus.segment import list_segmenters

if TYPE_CHECKING:
    from homunculus.adapters.crops import Crop


def look(
    images_and_question: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGE... QUESTION", help='PNG, JPEG, WebP, TIFF or PDF; then what to look for, "" for a free look.'
        ),
    ],
    allocator: opt.Allocator = "foveated",
    relevance: opt.Relevance = "opponent",
    budget: opt.Budget = 273,
    fixation: opt.Fixation = None,
    fixations: Annotated[int, typer.Option(min=1, help="How many places to look at.")] = 1,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="NAME=VALUE for the allocator; may be repeated.")
    ] = None,
    cell: Annotated[int, typer.Option(help="Side of a cell in pixels.")] = 32,
    levels: Annotated[
        int | None, typer.Option(min=1, help="Levels of the tree; else as many as leave 16 roots.")
    ] = None,
    segmenter: Annotated[
        str, typer.Option(help=f"What gives atlas its segments: {' or '.join(list_segmenters())}.")
    ] = list_segmenters()[0],
    dpi: opt.Dpi = 144,
    page: opt.PageNumber = 0,
    max_pixels: opt.MaxPixels = MAX_PIXELS,
    png: Annotated[Path | None, typer.Option(help="Write the picture of what was looked at.")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", help="Write the tokens as JSON; - for standard output, a line an image.")
    ] = None,
) -> None:
    """Choose the tokens for a question about an image, and show which.

    [dim]homunculus look page.png "What is the total?" --png look.png --json look.json[/dim]

    A tiled file above --max-pixels is looked at by the allocator fractal, which decodes only some of its tiles.

    With several images, each gets its own files: look.png becomes look-NAME.png. The
    command names an image that it cannot read, and goes on with the others.
    """
    images, question = _split_question(images_and_question)
    options = opt.parse_options(option or [])
    check_options(allocator, options)
    eye = Eye(allocator, relevance, budget, cell=cell, levels=levels, segmenter=segmenter, **options)
    how: dict[str, Any] = {"fixation": opt.parse_fixation(fixation), "fixations": fixations}
    how |= asdict(opt.ImageOptions(page, dpi, max_pixels))
    files, failed = OutputFiles(png, json_), 0
    listed = track(images, "looking", console=err, transient=True) if len(images) > 1 and err.is_terminal else images
    for i, image in enumerate(listed):
        try:
            _report(eye.look(image, question, **how), image, files.of_image(i, images))
        except (ImageError, InputError) as error:
            failed += 1
            print_error(error if image in str(error) or len(images) == 1 else f"{image}: {error}")
    if failed:
        raise typer.Exit(2)


def view(
    image: opt.Image,
    question: Annotated[str, typer.Argument(help="What will be asked.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the images.")],
    relevance: opt.Relevance = "query",
    budget: opt.Budget = 273,
    cell: Annotated[int, typer.Option(help="Side of a token in pixels.")] = 32,
    dpi: opt.Dpi = 144,
    page: opt.PageNumber = 0,
    max_pixels: opt.MaxPixels = MAX_PIXELS,
) -> None:
    """Make a view for any model: a small copy of the image, and pieces in full resolution where the question looks.

    [dim]homunculus view page.png "What is the total?" --budget 273 --out view/[/dim]

    Send the images in the order of their names with the question. The command prints what they cost with common models.
    """
    from homunculus.adapters.base import as_pil
    from homunculus.adapters.crops import COSTS, cost, crops

    picture = as_pil(load(image, page=page, dpi=dpi, max_pixels=max_pixels))
    found = crops(picture, question, budget, Eye(relevance=relevance, cell=cell))
    _write_crops(found, folder)
    sizes = [crop.image.size for crop in found]
    for name in COSTS:
        out.print(f"{name}: {cost(name, sizes)} tokens; the image itself {cost(name, [picture.size])}")


def _split_question(words: list[str]) -> tuple[list[str], str]:
    """Images, and the question that follows them."""
    *images, question = words
    if not images or (len(question) < 255 and Path(question).is_file()):
        given = " ".join(words)
        raise InputError(f'a question is missing: homunculus look {given} "QUESTION", with "" for a free look')
    return images, question


def _report(glance: Glance, image: str, files: OutputFiles) -> None:
    """Write the files of a glance, and print what it spent where."""
    files.write_json(glance.to_json())
    if files.png:
        glance.save(files.png)
    levels = glance.selection.levels[0].double()
    spent = ", ".join(f"{int((levels == l).sum())} at level {l:.3g}" for l in levels.unique().tolist())
    places = " ".join(f"({x:.0f}, {y:.0f})" for x, y in glance.fixations.tolist())
    tree, console = glance.tree, files.console
    console.print(f"[bold]{escape(image)}[/bold] {tree.width} x {tree.height}: {glance.allocator} looked at {places}")
    if isinstance(glance, GiantGlance):
        passed = ", after one pass over the whole file" if glance.tiles.streamed else ""
        console.print(
            f"  too large to decode, so read tile by tile: {glance.tiles.decoded} of {glance.tiles.all} tiles{passed}"
        )
    tokens = "1 token" if levels.numel() == 1 else f"{levels.numel()} tokens"
    console.print(f"  {tokens}: {spent}; {float(glance.selection.coverage()[0]):.0%} of the image covered")
    files.print_written(files.png, files.json)


def _write_crops(crops: Sequence[Crop], folder: Path) -> None:
    """Write the pieces of a view; those of a former view with more of them go."""
    folder.mkdir(parents=True, exist_ok=True)
    for n, crop in enumerate(crops):
        file = folder / (f"{n}-piece.png" if n else "0-whole.png")
        with replacing(file) as unfinished:
            crop.image.save(unfinished, format="PNG")
        out.print(
            f"{escape(str(file))}: {crop.image.width} x {crop.image.height}, {crop.tokens} tokens, of {list(crop.box)}"
        )
    for old in folder.glob("*-piece.png"):
        number = old.name.split("-")[0]
        if number.isdecimal() and int(number) >= len(crops):
            old.unlink()
