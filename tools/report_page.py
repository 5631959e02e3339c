"""Writes docs/report from the scores of version 0.1 in results/: python tools/report_page.py --data FOLDER

results/report.jsonl.xz has the scores, results/costs_*.jsonl the costs; FOLDER holds the sets of questions. Nothing is
asked again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from homunculus import InputError
from homunculus.eval.costs import COSTS
from homunculus.eval.data import collect
from homunculus.eval.packed import unpack
from published import DOCS, RESULTS

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from report import TIMED, write_report

NOTE = (
    "These are the measurements of version 0.1. Its reader gave its language model visual tokens, which the published "
    "methods prune; [today's reader](../reader.md) gives it the lines that a look can read."
)


def main(words: Sequence[str] | None = None) -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--scores", type=Path, default=RESULTS / "report.jsonl.xz", help="file of scores")
    parser.add_argument("--results", type=Path, default=RESULTS / "report" / "first", help="folder to unpack them to")
    parser.add_argument("--out", type=Path, default=DOCS / "report", help="folder of the report")
    costs = next((path for kind in TIMED if (path := RESULTS / f"costs_{kind}.jsonl").is_file()), None)  # a GPU's first
    parser.add_argument("--costs", type=Path, default=costs, help="file of costs")
    args = parser.parse_args(words)
    try:
        print(f"{unpack(args.scores, collect([str(args.data)]), args.results):,} answers")
    except InputError as error:
        sys.exit(f"error: {error}")
    if args.costs and args.costs.is_file():
        shutil.copy(args.costs, args.results / COSTS)
    write_report(args.results, args.out, args.data, "The first report", NOTE)


if __name__ == "__main__":
    main()
