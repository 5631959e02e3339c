"""`homunculus bench`: how long each part of an answer takes, for several rules and budgets."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from homunculus.allocators import check_options
from homunculus.cli.console import STANDARD_OUTPUT, OutputFiles, err, loading
from homunculus.cli.options import Budgets, Device, Language, Weights, check_question, parse_budgets, parse_list
from homunculus.errors import InputError

if TYPE_CHECKING:
    from homunculus.image import Source
    from homunculus.reader.model import Reader

PARTS = ("open", "look", "read", "prefill", "answer")  # of `Answer.seconds`


def bench(
    image: Annotated[
        str | None, typer.Argument(metavar="[IMAGE]", help="Image or PDF to ask about; else a page of text is drawn.")
    ] = None,
    question: Annotated[str, typer.Option("--question", "-q", help="What to ask.")] = "What is the total?",
    allocators: Annotated[str, typer.Option(help="Rules to compare.")] = "foveated,grid,uniform",
    budgets: Budgets = "64,273",
    repeat: Annotated[int, typer.Option(min=1, help="Answers that a median is taken over.")] = 5,
    device: Device = "cpu",
    weights: Weights = "",
    language: Language = "",
    json_: Annotated[
        Path | None, typer.Option("--json", help="Write the figures as JSON; - for standard output.")
    ] = None,
) -> None:
    """Measure how long each part of an answer takes on this machine.

    open: the file, its text lines and its pyramid; look: choosing the cells for the question; read: the lines that
    these cells show; prefill: the first token of the language model; answer: all further tokens.

    [dim]homunculus bench[/dim]
    [dim]homunculus bench page.png --allocators foveated,dag --budgets 150,273,576 --device cuda[/dim]

    Times are medians in milliseconds, one question at a time; the first answer of each rule and budget does not count.
    """
    from homunculus.eval.machine import machine
    from homunculus.reader import load_reader

    check_question(question)
    settings = [(rule, budget) for rule in parse_list(allocators) for budget in parse_budgets(budgets)]
    if not settings:
        raise InputError("nothing to measure: name allocators and budgets")
    for rule, _ in settings:
        check_options(rule, {})
    with loading("the reader"):
        reader = load_reader(weights, language, device)
    rows = list(measure(reader, image or draw_page(), question, settings, repeat))
    found = {"machine": machine(device), "question": question, "rows": rows}
    files = OutputFiles(json=json_)
    files.write_json(json.dumps(found, indent=None if json_ == STANDARD_OUTPUT else 1) + "\n")
    files.console.print(_table(rows))


def measure(
    reader: Reader, image: Source, question: str, settings: Sequence[tuple[str, int]], repeat: int
) -> Iterator[dict[str, Any]]:
    """Median milliseconds of each part of an answer, for each rule and budget."""
    with Progress(console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("answering", total=len(settings) * (repeat + 1))
        for rule, budget in settings:
            taken = []
            for _ in range(repeat + 1):
                taken.append(reader.ask(image, question, allocator=rule, budget=budget).seconds)
                bar.advance(task)
            parts = {part: 1000 * statistics.median(each.get(part, 0.0) for each in taken[1:]) for part in PARTS}
            total = 1000 * statistics.median(sum(each.values()) for each in taken[1:])
            yield {"allocator": rule, "budget": budget, **parts, "total": total}


def draw_page(height: int = 2048, width: int = 1448) -> Source:
    """A page of text, the same each time."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (width, height), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(size=28)
    for i, y in enumerate(range(80, height - 120, 44)):
        price = f"{(i * 37) % 90 + 10}.{i * 7 % 100:02d}"
        pen.text((90, y), f"Item {i + 1:03d} of the list, at {price} each", "black", font)
    pen.text((90, height - 90), "Total 1,284.50", "black", font)
    return page


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("rule", "tokens", *(f"{part}, ms" for part in PARTS), "in all, ms", box=None)
    for row in rows:
        times = [f"{row[part]:.1f}" for part in (*PARTS, "total")]
        table.add_row(row["allocator"], str(row["budget"]), *times)
    return table
