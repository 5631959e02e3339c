"""What a setting costs: the time until an answer begins, in one process that has the machine to itself.

Answers of a sweep are timed too, but its processes share the machine, and how long an answer is decides how long it
takes. Here nothing runs beside, and nothing that a setting finds out about a page is there before it.
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
from homunculus.eval.backends import Backend, EvalSample
from homunculus.eval.data import Item
from homunculus.eval.runner import drop_half_line, dumped, parsed
from homunculus.eval.settings import ORACLE, Setting

COSTS = "costs.jsonl"
ROUNDS = 3  # of a setting
WARM = 2  # before them on a GPU: what comes in the same shape again is captured, and runs differently from then on

Key = tuple[str, str, int]


def measure(
    backend: Backend, items: Sequence[Item], settings: Sequence[Setting], path: Path, machine: dict[str, Any]
) -> Path:
    """Append what is missing: lines for each set and setting, one a round. Tests of a method are left out."""
    known = parsed(path)
    on_gpu = machine["device"] != "cpu"
    device = str(machine["device"]) if on_gpu else f"{machine['cores']} cores of {machine['processor']}"
    done = Counter(key_of(row) for row in known)
    by_set = [
        (name, [EvalSample(item, item) for item in some]) for name, some in groupby(items, key=lambda i: i.dataset)
    ]
    _refuse_others(path, known, device, {name: len(samples) for name, samples in by_set})
    plain = [setting for setting in settings if setting.relevance != ORACLE and ":" not in setting.method]
    pairs = [(samples, setting, (name, setting.name, setting.budget)) for name, samples in by_set for setting in plain]
    with path.open("a", encoding="utf-8") as file:
        drop_half_line(file, path)
        for samples, setting, key in track(
            [pair for pair in pairs if done[pair[2]] < ROUNDS], "costs", console=Console(stderr=True)
        ):
            for _ in range(WARM if on_gpu else 0):
                backend.first_token(samples, setting)
            for _ in range(ROUNDS - done[key]):
                row = dict(zip(("dataset", "method", "budget"), key, strict=True)) | {"n": len(samples)}
                row |= {"device": device, "commit": machine["commit"]} | _round(backend, samples, setting)
                file.write(dumped(row))
                file.flush()
    return path


def _refuse_others(path: Path, known: Sequence[dict[str, Any]], device: str, counts: dict[str, int]) -> None:
    """Times of another machine, or of another number of questions, are not to stand beside these."""
    for row in known:
        name, n = row["dataset"], counts.get(row["dataset"], row["n"])
        pairs = (row["device"], device), (f"{row['n']} questions of {name}", f"{n} questions of {name}")
        for then, now in pairs:
            if then != now:
                raise InputError(f"{path} holds times of {then}, not of {now}; move it away first")


def _round(backend: Backend, samples: Sequence[EvalSample], setting: Setting) -> dict[str, float]:
    """Milliseconds a question, and on a GPU the most megabytes that were taken, weights included."""
    if not torch.cuda.is_initialized():
        return {"ms": round(backend.first_token(samples, setting), 3)}
    torch.cuda.reset_peak_memory_stats()
    return {"ms": round(backend.first_token(samples, setting), 3), "MB": torch.cuda.max_memory_allocated() >> 20}


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


def conditions(path: Path) -> str:
    """What was measured, and on what: a sentence for a report."""
    rows = parsed(path)
    counts = {row["dataset"]: row["n"] for row in rows}
    questions = ", ".join(f"{n} question{'s' * (n > 1)} of {name} at once" for name, n in counts.items())
    commits = " and ".join(dict.fromkeys(row["commit"] for row in rows))
    return f"{questions}, on {rows[0]['device']}, commit {commits}"
