"""Time per batch of every allocator over image size and budget, against plain loops over images and cells.

python benchmarks/allocators.py                      # prints the table, writes results/allocators_cpu.json
python benchmarks/allocators.py --device cuda
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch

from homunculus import CellTree, allocate, list_allocators
from homunculus.eval.machine import machine
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

import loops  # noqa: E402 - the oracles of the tests

CUTS = ("dag", "foveated", "frequency")
FASTER = {"stratified": 30, "logpolar": 30}  # than the loop


def median_ms(call: Callable[[], object], repeat: int, device: str) -> float:
    for _ in range(3):
        call()
    return statistics.median(times_ms(call, repeat, device))


def against_loop(
    fast: Callable[[], object], loop: Callable[[], object], repeat: int, device: str
) -> tuple[float, float]:
    """Medians of both, taken in turns, so that a busy moment of the machine meets both alike."""
    ours, theirs = [], []
    for _ in range(9):
        ours += times_ms(fast, repeat, device)
        theirs += times_ms(loop, 1, "cpu")
    return statistics.median(ours), statistics.median(theirs)


def times_ms(call: Callable[[], object], repeat: int, device: str) -> list[float]:
    times = []
    for _ in range(repeat):
        if device == "cuda":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        else:
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e3)
    return times


def with_context(tree: CellTree, batch: int, device: str) -> dict[str, tuple[str, dict[str, object]]]:
    """The rules once more with what the eye gives them beyond relevance: band energies, segments, the question."""
    generator = torch.Generator().manual_seed(1)
    energy = torch.rand(batch, tree.size, 4, generator=generator).to(device)
    segments = torch.randint(0, 96, (batch, *tree.shapes[0]), generator=generator).to(device)
    return {
        "dag + error": ("dag", {"error": energy[..., 0]}),
        "frequency + energy": ("frequency", {"energy": energy, "question": "What is written here?"}),
        "atlas + segments": ("atlas", {"segments": segments}),
    }


def measure(args: argparse.Namespace) -> list[dict[str, object]]:
    rows = []
    for side in args.sizes:
        tree = CellTree(side, side, levels=7 if side == 2048 else None)
        generator = torch.Generator().manual_seed(0)
        relevance = torch.rand(args.batch, tree.size, generator=generator).to(args.device)
        fixation = (torch.rand(args.batch, 2, generator=generator) * side).double().to(args.device)
        cases = {name: (name, {}) for name in list_allocators()} | with_context(tree, args.batch, args.device)
        for budget in args.budgets:
            for label, (name, options) in cases.items():
                case = (name, tree, relevance, budget, fixation)
                ms = median_ms(partial(allocate, *case, **options), args.repeat, args.device)
                row = {
                    "allocator": label,
                    "side": side,
                    "cells": tree.size,
                    "budget": budget,
                    "batch": args.batch,
                    "ms": ms,
                }
                if (side, budget) == (2048, 273) and not options:
                    loop = partial(loops.allocate, *case)
                    row["ms"], row["loop_ms"] = against_loop(partial(allocate, *case), loop, args.repeat, args.device)
                rows.append(row)
    return rows


def report(rows: list[dict[str, object]], args: argparse.Namespace) -> bool:
    """Print one line an allocator; True if the figures at 2048 x 2048 and 273 tokens stay within the limits."""
    cases = [(side, budget) for side in args.sizes for budget in args.budgets]
    print(
        f"ms per batch of {args.batch} on {args.device}, median of {args.repeat}; columns: side of the image / tokens"
    )
    print(f"{'':20}" + "".join(f"{f'{side}/{budget}':>10}" for side, budget in cases) + f"{'loop':>10}{'faster':>9}")
    good = True
    for label in dict.fromkeys(r["allocator"] for r in rows):
        mine = {(r["side"], r["budget"]): r for r in rows if r["allocator"] == label}
        line = f"{label:20}" + "".join(f"{mine[case]['ms']:10.2f}" for case in cases)
        row = mine.get((2048, 273), {})
        if "loop_ms" in row:
            line += f"{row['loop_ms']:10.1f}{row['loop_ms'] / row['ms']:8.0f}x"
        if row and args.device == "cpu" and not _within(label, row):
            good, line = False, line + "  misses its limit"
        print(line)
    if args.device == "cpu":
        print("\nlimits at 2048/273 on two cores: 4 ms for " + ", ".join(CUTS) + ", 10 ms for the others;")
        print("stratified and logpolar at least 30x faster than their loops: " + ("all met" if good else "NOT all met"))
    return good


def _within(label: str, row: dict[str, object]) -> bool:
    fast = row["ms"] <= (4.0 if label.split()[0] in CUTS else 10.0)
    return fast and (label not in FASTER or row["loop_ms"] / row["ms"] >= FASTER[label])


def write_rows(out: Path, device: str, rows: list[dict]) -> None:
    """Write a results file: machine, date and rows."""
    out.parent.mkdir(parents=True, exist_ok=True)
    about = {"machine": machine(device), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    with replacing(out) as unfinished:
        unfinished.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    print(f"wrote {out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda t: [int(v) for v in t.split(",")], default=[512, 1024, 2048, 4096])
    parser.add_argument("--budgets", type=lambda t: [int(v) for v in t.split(",")], default=[64, 273, 1024])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--out", type=Path, default=None, help="results file; results/allocators_DEVICE.json unless told"
    )
    args = parser.parse_args()
    rows = measure(args)
    good = report(rows, args)
    write_rows(args.out or ROOT / "results" / f"allocators_{args.device}.json", args.device, rows)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
