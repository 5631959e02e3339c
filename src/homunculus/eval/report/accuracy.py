"""Sections on scores: every method on every set, the differences between methods, and ablations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from homunculus.eval.backends import Row
from homunculus.eval.metrics import metric_of
from homunculus.eval.report import plots
from homunculus.eval.report.markdown import markdown_table, score_cell
from homunculus.eval.report.table import KINDS, Table
from homunculus.eval.report.verdict import OURS, points


def scores(folder: Path, table: Table) -> Iterator[str]:
    """A table a set: mean scores with their intervals, the best of each budget in bold."""
    plots.pareto(table, table.plain_methods, folder / "pareto.png")
    yield "## Accuracy against tokens\n\n![Score against tokens, a panel a set](pareto.png)\n"
    for dataset in table.sets:
        budgets = [b for b in table.budgets if any(table.of(dataset, method, b) for method in table.plain_methods)]
        found = {method: [table.score(dataset, method, b) for b in budgets] for method in table.plain_methods}
        found = {method: scores for method, scores in found.items() if any(scores)}
        best = [max(each["value"] for each in column if each) for column in zip(*found.values(), strict=True)]
        lines = []
        for method, scores in found.items():
            tops = [each is not None and each["value"] == top for each, top in zip(scores, best, strict=True)]
            lines.append([method, *map(score_cell, scores, tops)])
        counts = {len(rows) for (name, _, _), rows in table.cells.items() if name == dataset}
        count = f"{max(counts)}" if len(counts) == 1 else f"from {min(counts)} to {max(counts)}"
        head = ["method", *(f"{budget} tokens" for budget in budgets)]
        yield f"### {dataset}\n\n{metric_of(dataset)}, n {count}.\n\n{markdown_table(head, lines)}"


def differences(table: Table, budget: int) -> str:
    """How much better `foveated` is than each other method, by kind of set."""
    lines = []
    for method in table.plain_methods:
        if method == OURS:
            continue
        gains = [table.against(table.of_kind(kind), (OURS, budget), (method, budget)) for kind in KINDS]
        if any(gains):
            lines.append([method, *(points(gain) if gain else "" for gain in gains)])
    text = f"`{OURS}` less each of the others at {budget} tokens, in points; below 0 the other one is better."
    return f"## Against each other\n\n{text}\n\n" + markdown_table(["other", *KINDS], lines)


def answers_among_lines(table: Table, budget: int) -> Iterator[str]:
    """How often the answer could be read at all."""
    lines = []
    for method in table.plain_methods:
        rows = [list(table.of(name, method, budget).values()) for name in table.sets]
        shares = [f"{np.mean([row['found'] for row in some]):.1%}" if _all_read(some) else "" for some in rows]
        if any(shares):
            lines.append([method, *shares])
    if lines:
        text = f"Share of questions whose answer stands in the lines that were read, at {budget} tokens."
        yield f"## Answers among the lines\n\n{text}\n\n" + markdown_table(["method", *table.sets], lines)


def _all_read(rows: Sequence[Row]) -> bool:
    return bool(rows) and all("found" in row for row in rows)


def ablations(table: Table, budget: int) -> Iterator[str]:
    """Ablations: methods with options, and other relevances of `foveated`."""
    names = [method for method in table.methods if ":" in method or method.endswith("/oracle")]
    names += [m for m in table.methods if m.startswith("foveated/") and m != OURS and m not in names]
    if not names:
        return
    lines = []
    for method in [OURS, *names, "pyramid/query", "stratified/query"]:
        shown = [table.mean(table.of_kind(kind), method, budget) for kind in KINDS]
        base = "stratified/query" if method.startswith("stratified:") else OURS
        gains = [table.against(table.of_kind(kind), (method, budget), (base, budget)) for kind in KINDS]
        cells = [
            f"{100 * value:.1f}" + (f", {points(gain)}" if gain and method not in (OURS, base) else "")
            if value is not None
            else (points(gain) + " on those that have it" if gain else "")
            for value, gain in zip(shown, gains, strict=True)
        ]
        lines.append([method, *cells])
    text = (
        f"At {budget} tokens: mean score in points, and the difference to `{OURS}` (to `stratified/query` for strata)."
    )
    yield f"## Ablations\n\n{text}\n\n" + markdown_table(["variant", *KINDS], lines)
