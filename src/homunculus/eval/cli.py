"""The command line of the harness: `homunculus eval` and `homunculus report`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from homunculus.errors import whole_number

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def evaluate(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Folders of sets, or docvqa, textvqa, ... from the hub.")
    ],
    out_: Annotated[Path, typer.Option("--out", help="Folder of results; the same command goes on with it.")],
    allocators: Annotated[
        str, typer.Option(help="Allocators, with options as NAME:KEY=VALUE; with --model peers too.")
    ] = "",
    relevance: Annotated[
        str, typer.Option("--relevance", "-r", help="What allocators go by; one or several.")
    ] = "query",
    budgets: Annotated[str, typer.Option(help="Numbers of tokens.")] = "273",
    ways: Annotated[str, typer.Option(help="METHOD/RELEVANCE/BUDGET each, beside or instead of the above.")] = "",
    regions: Annotated[str, typer.Option(help="Ways that are asked about other places of the page too.")] = "",
    sets: Annotated[str, typer.Option(help="Only sets of these names.")] = "",
    split: Annotated[str, typer.Option(help="Which part of the sets.")] = "val",
    limit: Annotated[int | None, typer.Option(min=1, help="Questions a set at most.")] = None,
    model: Annotated[str, typer.Option(help="Folder or hub id of a VLM; else the reader.")] = "",
    where: Annotated[str, typer.Option(help="With --model: before, after or crops.")] = "",
    weights: Annotated[str, typer.Option(help="Folder of the reader's weights; else the shipped ones.")] = "",
    language: Annotated[str, typer.Option(help="Folder or hub id of the reader's language model.")] = "",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    exact: Annotated[bool, typer.Option("--exact", help="float32, also where bfloat16 is usual.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Questions answered together.")] = 16,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own model.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="On a Ray cluster, with --workers workers.")] = False,
    time: Annotated[int, typer.Option(min=0, help="Questions a set by which ways are timed, one after the other.")] = 0,
    gaze: Annotated[str, typer.Option(help="Folder of gaze sets, to compare with where people look.")] = "",
) -> None:
    """Answer sets of questions by many methods and budgets, and write a report with a verdict.

    [dim]homunculus eval data --allocators foveated,grid,uniform --budgets 64,273 --out results/first[/dim]
    [dim]homunculus eval data --model FOLDER --where after --allocators foveated,visionzip --out results/vlm[/dim]

    Answers are appended to results.jsonl as they come; after a kill the same command goes on where it was. The report
    is written from that file alone: homunculus report FOLDER writes it again.
    """
    from homunculus.eval import costs, gaze_agreement
    from homunculus.eval.data import collect
    from homunculus.eval.machine import machine
    from homunculus.eval.report import write
    from homunculus.eval.runner import ModelSpec, plan, run
    from homunculus.eval.settings import Setting, settings_of

    def listed(text: str) -> list[str]:
        return [part.strip() for part in text.split(",") if part.strip()]

    named = [Setting.parse(text) for text in listed(ways)]
    numbers = [whole_number("a budget", int(text) if text.isdecimal() else text) for text in listed(budgets)]
    methods = listed(allocators) or ([] if named else ["foveated", "grid", "uniform"])
    every = list(dict.fromkeys([*settings_of(methods, listed(relevance), numbers), *named]))
    items = collect(data, split, limit, listed(sets))
    spec = ModelSpec(model, where, weights, language, device, exact)
    about: dict[str, Any] = {
        "data": [str(Path(source).resolve()) if Path(source).exists() else source for source in data]
    }
    about |= {"split": split, "machine": machine(device)}
    batches = plan(items, every, list(dict.fromkeys(map(Setting.parse, listed(regions)))), batch_size)
    load = cache(spec.load)  # the sweep and the times ask the same model
    run(batches, spec, out_, workers, ray, err, about, load)
    if time:
        some = collect(data, split, time, listed(sets))
        costs.measure(load(), some, every, out_ / costs.COSTS, about["machine"])
    if gaze:
        gaze_agreement.measure(Path(gaze), out_)
    out.print(f"wrote {escape(str(write(out_)))}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder with results.jsonl, as eval writes it.")],
    title: Annotated[str, typer.Option(help="Of the report.")] = "Results",
) -> None:
    """Write report.md, summary.json and plots again, from results.jsonl alone."""
    from homunculus.eval.report import write

    out.print(f"wrote {escape(str(write(folder, title)))}")
