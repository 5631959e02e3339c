"""Time per batch of every allocator over image size and budget, against plain loops over images and cells.

python benchmarks/allocators.py                      # prints the table, writes results/allocators_cpu.json
python benchmarks/allocators.py --device cuda
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import loops
from homunculus import CellTree, allocate, list_allocators
from homunculus.files import replacing
from machine import machine

CUTS = ("dag", "foveated", "frequency")
LIMITS = {name: 4.0 if name in CUTS else 10.0 for name in list_allocators()}  # ms a batch on two cores
FASTER = {"stratified": 30, "logpolar": 30}  # than the loop


def median_ms(call: Callable[[], object], repeat: int, device: str) -> float:
    for _ in range(3):
        call()
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
    return statistics.median(times)


def measure(args: argparse.Namespace) -> list[dict[str, object]]:
    rows = []
    for side in args.sizes:
        tree = CellTree(side, side, levels=7 if side == 2048 else None)
        generator = torch.Generator().manual_seed(0)
        relevance = torch.rand(args.batch, tree.size, generator=generator).to(args.device)
        fixation = (torch.rand(args.batch, 2, generator=generator) * side).double().to(args.device)
        for budget in args.budgets:
            for name in list_allocators():
                case = (name, tree, relevance, budget, fixation)
                ms = median_ms(partial(allocate, *case), args.repeat, args.device)
                row = {
                    "allocator": name,
                    "side": side,
                    "cells": tree.size,
                    "budget": budget,
                    "batch": args.batch,
                    "ms": ms,
                }
                if (side, budget) == (2048, 273):
                    row["loop_ms"] = median_ms(partial(loops.allocate, *case), 5, "cpu")
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
    for name in list_allocators():
        mine = {(r["side"], r["budget"]): r for r in rows if r["allocator"] == name}
        line = f"{name:20}" + "".join(f"{mine[case]['ms']:10.2f}" for case in cases)
        row = mine.get((2048, 273))
        if row:
            ratio = row["loop_ms"] / row["ms"]
            within = args.device != "cpu" or (row["ms"] <= LIMITS[name] and ratio >= FASTER.get(name, 0))
            good &= within
            line += f"{row['loop_ms']:10.1f}{ratio:8.0f}x" + ("" if within else "  above its limit")
        print(line)
    if args.device == "cpu":
        print("\nlimits at 2048/273 on two cores: 4 ms for " + ", ".join(CUTS) + ", 10 ms for the others;")
        print("stratified and logpolar at least 30x faster than their loops: " + ("all met" if good else "NOT all met"))
    return good


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
    out = args.out or Path(__file__).parents[1] / "results" / f"allocators_{args.device}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as unfinished:
        unfinished.write_text(json.dumps({"machine": machine(args.device), "rows": rows}, indent=1) + "\n")
    print(f"wrote {out}")
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
