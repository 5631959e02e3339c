"""`homunculus ask` and `homunculus read`: answers about an image, and the text lines that a budget shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from homunculus.cli import options as opt
from homunculus.cli.console import OutputFiles, loading
from homunculus.image import MAX_PIXELS, load

if TYPE_CHECKING:
    from homunculus.adapters.vlm import Reply
    from homunculus.reader.model import Answer


@dataclass(frozen=True)
class AskRequest:
    """Questions about an image, and how to answer them."""

    image: str
    questions: list[str]
    image_options: opt.ImageOptions
    look_options: opt.LookOptions
    generation_options: opt.GenerationOptions

    def ask_reader(self, fixation: str | None, weights: str, language: str, device: str, reading: str) -> list[Answer]:
        """The reader's answers."""
        from homunculus.reader import load_reader

        place = opt.parse_fixation(fixation)
        with loading("the reader"):
            reader = load_reader(weights, language, device, reading=reading)
        return reader.ask(self.image, self.questions, fixation=place, **asdict(self.image_options), **self._how())

    def ask_vlm(self, model: str, where: str, device: str) -> list[Reply]:
        """The answers of another model, which sees what was chosen."""
        from homunculus import adapters
        from homunculus.adapters.base import as_pil

        with loading(model):
            vlm = adapters.load(model, device)
        picture = as_pil(load(self.image, **asdict(self.image_options)))
        return vlm.ask(picture, self.questions, where=where, **self._how())

    def _how(self) -> dict[str, Any]:
        return asdict(self.look_options) | asdict(self.generation_options)


def ask(
    image: opt.Image,
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="What to answer; one or several.")],
    allocator: Annotated[
        str,
        typer.Option("--allocator", "-a", help="Rule; else foveated, or grid for a model that takes tiles."),
    ] = "",
    relevance: opt.Relevance = "query",
    budget: opt.Budget = 273,
    fixation: opt.Fixation = None,
    model: Annotated[
        str, typer.Option(help="Folder or hub id of a VLM to ask, such as Qwen/Qwen3-VL-2B-Instruct; else the reader.")
    ] = "",
    where: Annotated[
        str,
        typer.Option(help="With --model: before or after its vision tower, or crops; else the first that it supports."),
    ] = "",
    language: opt.Language = "",
    weights: opt.Weights = "",
    device: opt.Device = "cpu",
    reading: opt.Reading = "",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens that an answer may have.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, help="Above 0, sample the answer.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    dpi: opt.Dpi = 144,
    page: opt.PageNumber = 0,
    max_pixels: opt.MaxPixels = MAX_PIXELS,
    png: Annotated[Path | None, typer.Option(help="Write the picture of what was looked at, answer on top.")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", help="Write answer and tokens as JSON; - for standard output.")
    ] = None,
) -> None:
    """Answer questions about an image or a page of a PDF, and say how sure the answer is.

    [dim]homunculus ask page.png "What is the total?" --png look.png[/dim]
    [dim]homunculus ask page.png "What is the total?" --model Qwen/Qwen3-VL-2B-Instruct --device cuda[/dim]

    The page is opened once; each question looks at it anew. With several questions each gets its own picture:
    look.png becomes look-1.png, look-2.png; the JSON has a line for each.
    """
    for question in questions:
        opt.check_question(question)
    if model:
        readers = {"--fixation": fixation, "--weights": weights, "--language": language, "--reading": reading}
        opt.refuse("with --model", readers)
        opt.refuse("with --where crops", {"--allocator": allocator if where == "crops" else None})
    else:
        opt.refuse("without --model", {"--where": where})
        allocator = allocator or "foveated"
    request = AskRequest(
        image,
        questions,
        opt.ImageOptions(page, dpi, max_pixels),
        opt.LookOptions(allocator, relevance, budget),
        opt.GenerationOptions(max_new_tokens, temperature, seed),
    )
    answers: Sequence[Answer | Reply]
    if model:
        answers = request.ask_vlm(model, where, device)
    else:
        answers = request.ask_reader(fixation, weights, language, device, reading or "own")
    _report(questions, answers, OutputFiles(png, json_))


def read(
    image: opt.Image,
    question: Annotated[str, typer.Argument(help="Lines that matter to it come first; all of them without one.")] = "",
    budget: opt.Budget = 273,
    allocator: Annotated[
        str, typer.Option("--allocator", "-a", help="Rule; else dag without a question, foveated with one.")
    ] = "",
    reading: opt.Reading = "own",
    weights: opt.Weights = "",
    device: opt.Device = "cpu",
    dpi: opt.Dpi = 144,
    page: opt.PageNumber = 0,
    max_pixels: opt.MaxPixels = MAX_PIXELS,
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

    with loading("the reader"):
        reader = load_page_reader(weights, device, reading=reading)
    opened = reader.open(image, page=page, dpi=dpi, max_pixels=max_pixels)
    found = opened.read_look(budget, question, **({"allocator": allocator} if allocator else {}))
    files = OutputFiles(png, json_)
    files.write_json(found.to_json())
    for line in found.lines:
        files.console.print(f"{escape(line.text)}  [dim]{line.confidence:.0%}, level {line.level:g}[/dim]")
    files.console.print(f"{len(found.lines)} lines in {found.visual_tokens} tokens", style="dim")
    if png:
        found.save(png)
        files.print_written(png)


def _report(questions: list[str], answers: Sequence[Answer | Reply], files: OutputFiles) -> None:
    """Write the files of the answers, and print each with how sure it is."""
    files.write_json("".join(answer.to_json() for answer in answers))
    for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        if len(answers) > 1:
            files.console.print(escape(question), style="dim")
        files.console.print(f"[bold]{escape(answer.text)}[/bold]  [dim]{answer.how_sure}[/dim]")
        if png := files.of_question(i, len(answers)).png:
            answer.save(png)
            files.print_written(png)
