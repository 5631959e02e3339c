"""What a way costs: the time until an answer begins, with the machine to itself and all ways in turn.

Answers of a sweep are timed too, but its processes share the machine, and how long an answer is decides how long it
takes. Here nothing runs beside, and nothing that a way finds out about a page is there before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track

from homunculus.eval.asker import Ask, Asker
from homunculus.eval.data import Item
from homunculus.eval.runner import dumped, parsed
from homunculus.eval.ways import ORACLE, Way

COSTS = "costs.jsonl"
ROUNDS = 3  # that count; one more before them warms up

Key = tuple[str, str, int]


def measure(asker: Asker, items: Sequence[Item], ways: Sequence[Way], folder: Path, machine: dict[str, Any]) -> Path:
    """Append to costs.jsonl what is missing: a line for each set, way and round."""
    path = folder / COSTS
    by_set = [(name, [Ask(item, item) for item in some]) for name, some in groupby(items, key=lambda i: i.dataset)]
    plain = [way for way in ways if way.relevance != ORACLE and ":" not in way.method]
    there = Counter((row["dataset"], row["method"], row["budget"]) for row in parsed(path))
    turns = [
        (turn, name, asks, way)
        for name, asks in by_set
        for turn in range(-1, ROUNDS)
        for way in plain
        if there[name, way.name, way.budget] < (ROUNDS if turn < 0 else turn + 1)
    ]
    with path.open("a", encoding="utf-8") as file:
        file.truncate(path.read_bytes().rfind(b"\n") + 1)  # a line that a kill cut off
        for turn, name, asks, way in track(turns, "costs", console=Console(stderr=True)):
            row: dict[str, Any] = {"dataset": name, "method": way.name, "budget": way.budget, "n": len(asks)}
            row |= {"ms": round(asker.first_token(asks, way), 3), "device": machine["device"]}
            if turn >= 0:
                file.write(dumped(row))
                file.flush()
    return path


def medians(path: Path) -> dict[Key, float]:
    """Milliseconds a question of each set, method and budget; nothing if nothing was measured."""
    found: dict[Key, list[float]] = defaultdict(list)
    for row in parsed(path):
        found[row["dataset"], row["method"], row["budget"]].append(row["ms"])
    return {key: median(each) for key, each in found.items()}


def told(path: Path) -> str:
    """How it was measured, in words."""
    rows = parsed(path)
    counts = {row["dataset"]: row["n"] for row in rows}
    asked = ", ".join(f"{n} questions of {name} at once" for name, n in counts.items())
    return f"{asked}, on {' and '.join(dict.fromkeys(row['device'] for row in rows))}"
