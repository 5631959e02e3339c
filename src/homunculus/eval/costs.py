"""What a way costs: the time until an answer begins, in one process that has the machine to itself.

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

import torch
from rich.console import Console
from rich.progress import track

from homunculus.errors import InputError
from homunculus.eval.backends import Ask, Backend
from homunculus.eval.data import Item
from homunculus.eval.runner import drop_half_line, dumped, parsed
from homunculus.eval.ways import ORACLE, Way

COSTS = "costs.jsonl"
ROUNDS = 3  # of a way
WARM = 2  # before them on a GPU: what comes in the same shape again is captured, and runs differently from then on

Key = tuple[str, str, int]


def measure(backend: Backend, items: Sequence[Item], ways: Sequence[Way], path: Path, machine: dict[str, Any]) -> Path:
    """Append what is missing: lines for each set and way, one a round. Ways for tests of a method are left out."""
    known = parsed(path)
    on_gpu = machine["device"] != "cpu"
    device = str(machine["device"]) if on_gpu else f"{machine['cores']} cores of {machine['processor']}"
    there = Counter(key_of(row) for row in known)
    by_set = [(name, [Ask(item, item) for item in some]) for name, some in groupby(items, key=lambda i: i.dataset)]
    _refuse_others(path, known, device, {name: len(asks) for name, asks in by_set})
    plain = [way for way in ways if way.relevance != ORACLE and ":" not in way.method]
    todo = [(name, asks, way) for name, asks in by_set for way in plain if there[name, way.name, way.budget] < ROUNDS]
    with path.open("a", encoding="utf-8") as file:
        drop_half_line(file, path)
        for name, asks, way in track(todo, "costs", console=Console(stderr=True)):
            for _ in range(WARM if on_gpu else 0):
                backend.first_token(asks, way)
            for _ in range(ROUNDS - there[name, way.name, way.budget]):
                row = {"dataset": name, "method": way.name, "budget": way.budget, "n": len(asks), "device": device}
                file.write(dumped(row | {"commit": machine["commit"]} | _round(backend, asks, way)))
                file.flush()
    return path


def _refuse_others(path: Path, known: Sequence[dict[str, Any]], device: str, counts: dict[str, int]) -> None:
    """Times of another machine, or of another number of questions, are not to stand beside these."""
    for row in known:
        name, n = row["dataset"], counts.get(row["dataset"], row["n"])
        pairs = (row["device"], device), (f"{row['n']} questions of {name}", f"{n} questions of {name}")
        for theirs, mine in pairs:
            if theirs != mine:
                raise InputError(f"{path} holds times of {theirs}, not of {mine}; move it away first")


def _round(backend: Backend, asks: Sequence[Ask], way: Way) -> dict[str, float]:
    """Milliseconds a question, and on a GPU the most megabytes that were taken, weights included."""
    if not torch.cuda.is_initialized():
        return {"ms": round(backend.first_token(asks, way), 3)}
    torch.cuda.reset_peak_memory_stats()
    return {"ms": round(backend.first_token(asks, way), 3), "MB": torch.cuda.max_memory_allocated() >> 20}


def key_of(row: dict[str, Any]) -> Key:
    """What a line is about."""
    return row["dataset"], row["method"], row["budget"]


def medians(path: Path, name: str = "ms") -> dict[Key, float]:
    """Milliseconds a question, or other costs, of each set, method and budget; nothing if nothing was measured."""
    found: dict[Key, list[float]] = defaultdict(list)
    for row in parsed(path):
        if name in row:
            found[key_of(row)].append(row[name])
    return {key: median(each) for key, each in found.items()}


def told(path: Path) -> str:
    """How it was measured, in words."""
    rows = parsed(path)
    counts = {row["dataset"]: row["n"] for row in rows}
    asked = ", ".join(f"{n} question{'s' * (n > 1)} of {name} at once" for name, n in counts.items())
    commits = " and ".join(dict.fromkeys(row["commit"] for row in rows))
    return f"{asked}, on {rows[0]['device']}, commit {commits}"
