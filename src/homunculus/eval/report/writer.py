"""report.md, summary.json and plots from results.jsonl alone: the verdict first, failures as plain as successes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from homunculus.errors import InputError
from homunculus.eval import costs
from homunculus.eval.metrics import metric_of
from homunculus.eval.report import accuracy, failures, measurements, questions
from homunculus.eval.report.hypotheses import weighed
from homunculus.eval.report.markdown import markdown_table
from homunculus.eval.report.table import Table, summary
from homunculus.eval.report.verdict import MAIN, Finding, decided
from homunculus.eval.runner import ModelSpec, read, run_config
from homunculus.runtime.files import replacing


def write(
    folder: Path, title: str = "Results", pictures: bool = True, data: Path | None = None, note: str = ""
) -> Path:
    """Write the report of a folder of results; report.md, with summary.json and plots beside it.

    `data` is where the sets are now, if not where they were; `note` stands below the title.
    """
    table = Table(read(folder / "results.jsonl"), costs=costs.medians(folder / costs.COSTS))
    if not table.cells:
        raise InputError(f"{folder} has no results yet: there is nothing to report")
    config = run_config(folder) | ({"data": [str(data)]} if data else {})
    with replacing(folder / "summary.json") as unfinished:
        unfinished.write_text(json.dumps({"rows": summary(table)}, indent=1) + "\n")
    parts = [f"# {title}\n", *([f"{note}\n"] if note else ()), *_parts(folder, table, config, pictures)]
    with replacing(folder / "report.md") as unfinished:
        unfinished.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return folder / "report.md"


def _parts(folder: Path, table: Table, config: dict[str, Any], pictures: bool) -> Iterator[str]:
    budget = MAIN if MAIN in table.budgets else table.budgets[len(table.budgets) // 2]
    yield _head(table, config)
    rules = "By rules that were fixed beforehand; how fast, by the costs below"
    yield _findings("Verdict", rules, decided(table, budget))
    yield _findings("Expectations", "What was expected, and what came", weighed(table, budget), "expected")
    yield from accuracy.scores(folder, table)
    yield accuracy.differences(table, budget)
    yield from accuracy.answers_among_lines(table, budget)
    yield from accuracy.ablations(table, budget)
    yield from questions.regions(table)
    yield from questions.by_wording(table, budget)
    yield from measurements.gaze_agreement(folder)
    yield measurements.costs_of_methods(folder, table)
    if pictures:
        yield from failures.gallery(folder, table, config, budget)


def _head(table: Table, config: dict[str, Any]) -> str:
    counts = {dataset: len({row["qid"] for row in table.rows if row["dataset"] == dataset}) for dataset in table.sets}
    listed = ", ".join(f"{name} {n} ({metric_of(name)})" for name, n in counts.items())
    fingerprint = config.get("fingerprint", {})
    reader = "the shipped reader" if _is_shipped(config) else "a reader with other weights than those shipped now"
    model = reader if "reader" in fingerprint else str(fingerprint.get("model", "an unknown model"))
    place = config.get("machine", {})
    on = f" on {place.get('device')}, torch {place.get('torch')}, commit {place.get('commit')}" if place else ""
    on = on.removesuffix(", commit unknown")
    return (
        f"{len(table.rows):,} answers by {model}{on}. Questions: {listed}. Scores are means from 0 to 1, in brackets "
        "their 95 % interval over resampled pages; differences are in points (hundredths), on the same questions. A "
        "method is an allocator with the relevance that it goes by, or a published method by its name. `tokens` of "
        "methods that drop tokens between layers is the mean over layers.\n"
    )


def _is_shipped(config: dict[str, Any]) -> bool:
    """Whether the reader that the package carries gave the answers."""
    return config.get("fingerprint", {}).get("reader") == ModelSpec().fingerprint()["reader"]


def _findings(title: str, text: str, found: Sequence[Finding], head: str = "rule") -> str:
    lines = [[each.rule, f"**{each.verdict}**", each.figures] for each in found]
    body = (
        markdown_table([head, "verdict", "figures"], lines) if lines else "The results have no rows for any of these.\n"
    )
    return f"## {title}\n\n{text}.\n\n{body}"
