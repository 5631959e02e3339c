"""Options that several commands take, and the groups in which their helper functions get them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from homunculus.errors import InputError, whole_number
from homunculus.relevance import list_relevances

Image = Annotated[str, typer.Argument(help="PNG, JPEG, WebP, TIFF or PDF.")]
Allocator = Annotated[str, typer.Option("--allocator", "-a", help="Rule; see [b]homunculus allocators[/b].")]
Relevance = Annotated[str, typer.Option("--relevance", "-r", help=f"What matters: {', '.join(list_relevances())}.")]
Budget = Annotated[int, typer.Option("--budget", "-k", help="How many tokens.")]
Fixation = Annotated[
    str | None, typer.Option(help="Where to look: X,Y in pixels, 'centre' or 'words'; else where relevance peaks.")
]
Dpi = Annotated[float, typer.Option(min=1, help="Resolution at which a PDF page is drawn.")]
PageNumber = Annotated[int, typer.Option(min=0, help="Page of a PDF or TIFF, from 0.")]
MaxPixels = Annotated[int, typer.Option(min=1, help="Pixels of the largest image to decode.")]
Weights = Annotated[str, typer.Option(help="Folder of the reader's weights; else the shipped ones.")]
Language = Annotated[
    str, typer.Option(help="Folder or hub id of the reader's language model; else the one on this machine.")
]
Reading = Annotated[
    str, typer.Option(help=r"own, or ppocr for other scripts than Latin (pip install 'homunculus\[ocr]').")
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
FastDevice = Annotated[str, typer.Option(help="cpu or cuda; else cuda where there is one.")]
Budgets = Annotated[str, typer.Option(help="Numbers of tokens.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Questions answered in one batch.")]
Plan = Annotated[Path, typer.Option("--config", help="Training plan, such as configs/eye.toml or configs/reader.toml.")]
RunFolder = Annotated[Path, typer.Option("--out", help="Folder of the run; an unfinished run in it continues.")]
Start = Annotated[
    Path | None, typer.Option(help="Folder of weights, or of another run's stage, that the first stage starts from.")
]
Minutes = Annotated[float, typer.Option(min=0, help="Save and stop after so many minutes; 0 for no limit.")]
ShippedWeights = Annotated[Path, typer.Argument(help="Folder of weights as `ship` wrote them.")]


@dataclass(frozen=True)
class LookOptions:
    """How to look; the fields are keyword arguments of `Reader.ask` and `VLM.ask`."""

    allocator: str
    relevance: str
    budget: int


@dataclass(frozen=True)
class ImageOptions:
    """How to load an image; the fields are keyword arguments of `homunculus.load_image`."""

    page: int
    dpi: float
    max_pixels: int


@dataclass(frozen=True)
class GenerationOptions:
    """How to generate an answer; the fields are keyword arguments of `Reader.ask` and `VLM.ask`."""

    max_new_tokens: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class RunOptions:
    """A training run: its plan, its folder, what it starts from, where it runs and for how long."""

    config: Path
    out: Path
    start: Path | None
    device: str
    minutes: float


def refuse(when: str, given: Mapping[str, object]) -> None:
    """Name options that were given where they would have no effect."""
    names = [name for name, value in given.items() if value not in (None, "")]
    if names:
        it = "it" if len(names) == 1 else "them"
        raise InputError(f"{' and '.join(names)} would have no effect {when}; leave {it} out")


def check_question(question: str) -> None:
    """An error unless something is asked."""
    if not question.strip():
        raise InputError("a question is missing: ask something about the image")


def parse_list(text: str) -> list[str]:
    """The parts of a text between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_budgets(text: str) -> list[int]:
    """Numbers of tokens between commas."""
    return [whole_number("a budget", int(part) if part.isdecimal() else part) for part in parse_list(text)]


def parse_fixation(text: str | None) -> tuple[float, float] | str | None:
    """A point as X,Y, or the name of a place."""
    if text in (None, "centre", "words"):
        return text
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"fixation is written X,Y in pixels, or centre, or words; got {text!r}") from None
    return x, y


def parse_options(given: list[str]) -> dict[str, Any]:
    """Options of an allocator from NAME=VALUE: values are Python literals or bare words."""
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise InputError(f"an option is written NAME=VALUE, got {each!r}")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value  # a bare word
    return options
