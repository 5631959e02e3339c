"""`homunculus eval` and `homunculus report`: sets of questions by many methods, and the report on their answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from homunculus.cli.console import err, out
from homunculus.cli.options import BatchSize, Budgets, Device, Language, Weights, parse_budgets, parse_list

if TYPE_CHECKING:
    from homunculus.eval.data import Item
    from homunculus.eval.settings import Setting


@dataclass(frozen=True)
class QuestionOptions:
    """Which questions are asked."""

    data: list[str]
    split: str
    sets: str

    def items(self, limit: int | None) -> list[Item]:
        """The questions, at most `limit` of each set."""
        from homunculus.eval.data import collect

        return collect(self.data, self.split, limit, parse_list(self.sets))

    def places(self) -> list[str]:
        """Where they come from: absolute folders, and names of sets of the hub."""
        return [str(Path(source).resolve()) if Path(source).exists() else source for source in self.data]


@dataclass(frozen=True)
class MethodOptions:
    """Which methods answer them, and at which budgets."""

    allocators: str
    relevance: str
    budgets: str
    settings: str

    def combinations(self) -> list[Setting]:
        """Every combination, then those that are named one by one; each once."""
        from homunculus.eval.settings import settings_of

        named, budgets = _parse_settings(self.settings), parse_budgets(self.budgets)
        methods = parse_list(self.allocators) or ([] if named else ["foveated", "grid", "uniform"])
        return list(dict.fromkeys([*settings_of(methods, parse_list(self.relevance), budgets), *named]))


def _parse_settings(text: str) -> list[Setting]:
    from homunculus.eval.settings import Setting

    return list(dict.fromkeys(map(Setting.parse, parse_list(text))))


def evaluate(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Folders of sets, or docvqa, textvqa, ... from the hub.")
    ],
    out_: Annotated[
        Path, typer.Option("--out", help="Folder of results; the same command continues an unfinished run.")
    ],
    allocators: Annotated[
        str, typer.Option(help="Allocators, with options as NAME:KEY=VALUE; with --model also published methods.")
    ] = "",
    relevance: Annotated[str, typer.Option("--relevance", "-r", help="Relevances of the allocators.")] = "query",
    budgets: Budgets = "273",
    settings: Annotated[str, typer.Option(help="METHOD/RELEVANCE/BUDGET each, with or instead of the above.")] = "",
    regions: Annotated[
        str, typer.Option(help="Settings that also answer questions about other places of the page.")
    ] = "",
    sets: Annotated[str, typer.Option(help="Only sets of these names.")] = "",
    split: Annotated[str, typer.Option(help="Split of the sets.")] = "val",
    limit: Annotated[int | None, typer.Option(min=1, help="Questions of each set at most.")] = None,
    model: Annotated[str, typer.Option(help="Folder or hub id of a VLM; else the reader.")] = "",
    where: Annotated[str, typer.Option(help="With --model: before or after its vision tower, or crops.")] = "",
    weights: Weights = "",
    language: Language = "",
    device: Device = "cpu",
    exact: Annotated[bool, typer.Option("--exact", help="float32, also where bfloat16 is usual.")] = False,
    batch_size: BatchSize = 16,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own model.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="On a Ray cluster, with --workers workers.")] = False,
    time: Annotated[int, typer.Option(min=0, help="Questions of each set that each setting is timed on.")] = 0,
    gaze: Annotated[str, typer.Option(help="Folder of gaze sets: compares looks with where people look.")] = "",
) -> None:
    """Answer sets of questions by many methods and budgets, and write a report with a verdict.

    [dim]homunculus eval data --allocators foveated,grid,uniform --budgets 64,273 --out results/first[/dim]
    [dim]homunculus eval data --model FOLDER --where after --allocators foveated,visionzip --out results/vlm[/dim]

    Answers are appended to results.jsonl as they come; after a kill the same command continues. The report
    is written from that file alone: homunculus report FOLDER writes it again.
    """
    from homunculus.eval import costs, gaze_agreement
    from homunculus.eval.machine import machine
    from homunculus.eval.report import write
    from homunculus.eval.runner import ModelSpec, plan, run

    question_set = QuestionOptions(data, split, sets)
    methods = MethodOptions(allocators, relevance, budgets, settings).combinations()
    spec = ModelSpec(model, where, weights, language, device, exact)
    load = cache(spec.load)  # the sweep and the times ask the same model
    batches = plan(question_set.items(limit), methods, _parse_settings(regions), batch_size)
    about: dict[str, Any] = {"data": question_set.places(), "split": split, "machine": machine(device)}
    run(batches, spec, out_, workers, ray, err, about, load)
    if time:
        costs.measure(load(), question_set.items(time), methods, out_ / costs.COSTS, about["machine"])
    if gaze:
        gaze_agreement.measure(Path(gaze), out_)
    out.print(f"wrote {escape(str(write(out_)))}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder with results.jsonl, as eval writes it.")],
    title: Annotated[str, typer.Option(help="Title of the report.")] = "Results",
) -> None:
    """Write report.md, summary.json and plots again from results.jsonl."""
    from homunculus.eval.report import write

    out.print(f"wrote {escape(str(write(folder, title)))}")
