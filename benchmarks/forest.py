"""Seconds of one cut over many trees under one total budget, for trees of one shape and of several.

python benchmarks/forest.py                      # 1,000 trees; prints the table, writes results/forest_cpu.json
python benchmarks/forest.py --device cuda

"busy" is the processor time of all threads: on a machine with other work it says more than the seconds on the wall.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from allocators import write_rows
from homunculus import CellTree, allocate_forest
from homunculus.allocators import ALLOCATORS

ROOT = Path(__file__).parents[1]
LIMIT = 1.0  # seconds for 1,000 trees of one shape on two cores
SIZES = [(2048, 2048), (1754, 1240), (1240, 1754), (2339, 1654), (1024, 1024), (768, 1366), (3000, 1200), (600, 450)]


def measure(args: argparse.Namespace, sizes: list[tuple[int, int]]) -> list[dict[str, object]]:
    """One row a rule: the median, and the fastest, of several calls on fresh trees and relevances that are ready."""
    generator = torch.Generator().manual_seed(0)
    shapes = [sizes[i % len(sizes)] for i in range(args.trees)]
    relevances = [(torch.rand(CellTree(*size).size, generator=generator) ** 3).to(args.device) for size in shapes]
    rows = []
    for name in (name for name, entry in ALLOCATORS.items() if entry.is_cut):
        seconds, busy = [], []
        for _ in range(args.repeat + 1):
            made = {size: CellTree(*size) for size in sizes}  # what is laid out for a shape is part of the time
            trees = [made[size] for size in shapes]
            start, used = time.perf_counter(), time.process_time()
            selections = allocate_forest(name, trees, relevances, args.budget * args.trees)
            if args.device != "cpu":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
            busy.append(time.process_time() - used)
            assert sum(selection.boxes.shape[1] for selection in selections) == args.budget * args.trees
        row = {"allocator": name, "trees": args.trees, "shapes": len(sizes), "budget": args.budget * args.trees}
        row |= {"cells": sum(map(len, relevances)), "seconds": statistics.median(seconds[1:])}
        rows.append(row | {"fastest": min(seconds[1:]), "busy": statistics.median(busy[1:])})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=273, help="tokens a tree, on average")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0, help="of torch; its own choice unless told")
    parser.add_argument("--out", type=Path, default=None, help="results file; results/forest_DEVICE.json unless told")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    rows = measure(args, SIZES[:1]) + measure(args, SIZES)
    print(f"{'':12}{'trees':>8}{'shapes':>8}{'cells':>12}{'tokens':>10}{'seconds':>10}{'fastest':>10}{'busy':>10}")
    for row in rows:
        print(
            f"{row['allocator']:12}{row['trees']:8}{row['shapes']:8}{row['cells']:12}{row['budget']:10}"
            f"{row['seconds']:10.2f}{row['fastest']:10.2f}{row['busy']:10.2f}"
        )
    good = all(row["seconds"] <= LIMIT for row in rows if row["shapes"] == 1)
    print(f"\nlimit for trees of one shape, {LIMIT:.0f} s on two cores: {'met' if good else 'NOT met'}")
    write_rows(args.out or ROOT / "results" / f"forest_{args.device}.json", args.device, rows)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
