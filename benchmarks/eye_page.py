"""Writes docs/eye.md from results/eye*.json: python benchmarks/eye_page.py"""

from __future__ import annotations

import json
from pathlib import Path

from eye import table
from homunculus.runtime.files import replacing
from performance_page import where

ROOT = Path(__file__).parents[1]
PAGE = """# The eye: what it finds

This page is written by `python benchmarks/eye_page.py` from the files in `results/`, which
`python benchmarks/eye.py --data DATA` makes ({machine};
code of {commits}). What the networks are:
[model_card.md](model_card.md); how they are trained: [training.md](training.md).

**Found** is the share of questions whose answer box is at least 80 % covered by chosen cells in which its text is
still legible: of level at most max(0, floor(log2(h / 12))) for a box h pixels high. Where an answer stands in several
places any of them counts; the lines of an address count together. `oracle` knows the place and shows what the cut could
do; `centre` and `random` know nothing; `uniform` is plain downsampling. Intervals are over pages (bootstrap),
differences are paired.

{tables}
"""


def main() -> None:
    results = json.loads((ROOT / "results" / "eye.json").read_text())
    tables = [table(results)]
    gpu = ROOT / "results" / "eye_gpu.json"
    if gpu.is_file():
        tables.append(table(json.loads(gpu.read_text())))
    with replacing(ROOT / "docs" / "eye.md") as unfinished:
        commits = ", ".join(f"{commit} ({part})" for part, commit in results["commits"].items())
        unfinished.write_text(PAGE.format(machine=where(results["machine"]), commits=commits, tables="\n".join(tables)))


if __name__ == "__main__":
    main()
