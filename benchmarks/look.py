"""Time and memory of `look` from a quarter of a megapixel to a hundred: the cost should follow the pixels.

python benchmarks/look.py        # prints the table, writes results/look_cpu.json
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from allocators import write_rows
from homunculus import Eye

SIDES = (512, 1024, 2048, 4096, 8192, 10_000)


def one(side: int, repeat: int) -> dict[str, float]:
    """Median seconds of a look at side x side pixels in memory, and the peak memory of the process."""
    pixels = torch.randint(0, 256, (3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    eye, times = Eye(), []
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        eye.look(pixels, "What is at the top left?")
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"side": side, "seconds": statistics.median(times[1:]), "peak_mib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, help="measure one size in this process and print it as JSON")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(one(args.side, args.repeat)))
        return
    rows = []
    print(f"{'pixels':>16}{'seconds':>10}{'ns / pixel':>12}{'peak MiB':>10}")
    for side in SIDES:  # a process each, so that peaks do not add up
        call = [sys.executable, __file__, "--side", str(side), "--repeat", str(args.repeat)]
        row = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
        rows.append(row)
        size = f"{side} x {side}"
        print(f"{size:>16}{row['seconds']:10.3f}{row['seconds'] / side**2 * 1e9:12.1f}{row['peak_mib']:10.0f}")
    write_rows(Path(__file__).parents[1] / "results" / "look_cpu.json", "cpu", rows)


if __name__ == "__main__":
    main()
