"""Sections on what was measured beside the answers: agreement with human gaze, and costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from homunculus.eval import costs
from homunculus.eval.report import plots
from homunculus.eval.report.markdown import markdown_table
from homunculus.eval.report.table import Table

LIKE_PEOPLE = 0.85  # share of the variance of people's gaze that was hoped for


def gaze_agreement(folder: Path) -> Iterator[str]:
    """Relevances against human gaze, if that was measured."""
    path = folder / "gaze.json"
    if not path.is_file():
        return
    rows = json.loads(path.read_text())["rows"]
    names = ("nss", "auc", "sauc", "cc", "kl")
    lines = [[row["set"], row["relevance"], str(row["n"]), *(_number(row.get(name)) for name in names)] for row in rows]
    text = (
        "Relevance as a map against where people looked: NSS, AUC (Judd), shuffled AUC, correlation, KL divergence "
        "(lower is better). Published for free viewing on OSIE: centre prior NSS 0.80, AUC 0.72; FastGaze NSS 1.79, "
        "AUC 0.84."
    )
    shares = {row["set"]: row["cc"] ** 2 for row in rows if row["relevance"] == "learned"}
    if shares:
        listed = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        verdict = "confirmed" if min(shares.values()) > LIKE_PEOPLE else "refuted"
        rule = f"Supervised importance against human labels (r² of `learned` above {LIKE_PEOPLE})"
        text += f" {rule}: **{verdict}**, {listed}."
    yield f"## Agreement with human gaze\n\n{text}\n\n" + markdown_table(
        ["set", "relevance", "n", "NSS", "AUC", "sAUC", "CC", "KL"], lines
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def costs_of_methods(folder: Path, table: Table) -> str:
    """Time and memory of each method and budget, with the plot of score against time."""
    plots.costs(table, table.plain_methods, folder / "costs.png")
    path = folder / costs.COSTS
    memory = costs.medians(path, "MB")
    what = (
        "Median milliseconds a question until its answer begins, measured in one process with the machine to itself, "
        f"{costs.conditions(path)}: looking, reading lines or encoding, and the first pass of the language model"
        if table.costs
        else "Median milliseconds a question, as this run was answered, in batches and perhaps by several processes: "
        "looking, reading lines or encoding, and the language model"
    )
    text = (
        f"{what}. Finding lines, pyramid and scout, the same for all, are not in it. Score per token is the mean over "
        "all sets, per thousand." + " Memory is the most that was taken, weights included." * bool(memory)
    )
    head = ["method", "budget", "tokens", "ms", "score per 1,000 tokens", *(["MB"] if memory else ())]
    lines = _cost_lines(table, memory)
    return f"## Costs\n\n{text}\n\n![Score against time, a panel a set](costs.png)\n\n" + markdown_table(head, lines)


def _cost_lines(table: Table, memory: Mapping[costs.Key, float]) -> list[list[str]]:
    lines = []
    for method in table.plain_methods:
        for budget in table.budgets:
            ms = table.ms(method, budget)
            if ms is None:
                continue
            tokens, score = table.middle("tokens", method, budget), table.mean(table.sets, method, budget)
            per_token = f"{1000 * score / tokens:.2f}" if score is not None and tokens else ""
            line = [method, str(budget), f"{tokens:.0f}", f"{ms:.1f}", per_token]
            if memory:
                line.append(f"{max(memory.get((name, method, budget), 0) for name in table.sets):,.0f}")
            lines.append(line)
    return lines
