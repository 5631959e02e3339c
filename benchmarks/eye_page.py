"""Writes docs/eye.md and its plot from results/eye*.json: python benchmarks/eye_page.py"""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.figure import Figure

from eye import table
from homunculus.files import replacing
from performance_page import where

ROOT = Path(__file__).parents[1]
PAGE = """# The eye: what it finds, what it reads

This page is written by `python benchmarks/eye_page.py` from the files in `results/`, which
`python benchmarks/eye.py --data DATA --words 200` makes ({machine};
code of {commits}). What the networks are:
[model_card.md](model_card.md); how they are trained: [training.md](training.md).

**Found** is the share of questions whose answer box is at least 80 % covered by chosen cells in which its text is
still legible: of level at most max(0, floor(log2(h / 12))) for a box h pixels high. Where an answer stands in several
places any of them counts; the lines of an address count together. `oracle` knows the place and shows what the cut could
do; `centre` and `random` know nothing; `uniform` is plain downsampling. Intervals are over pages (bootstrap),
differences are paired.

**Read** is the share of words (FUNSD) and whole lines (SROIE) that the encoder reads exactly, case aside, when pointed
at their middle, from the 273 cells of one level nearest to it, and from a `foveated` look there.

![Share of words and lines read exactly, by level](images/reading.png)

{tables}
"""


def curve(rows: list[dict], path: Path) -> None:
    """How reading falls with level."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for name in dict.fromkeys(row["set"] for row in rows):
        points = [row for row in rows if row["set"] == name and row["way"].startswith("level")]
        levels = [int(row["way"].split()[1]) for row in points]
        low = [100 * (row["exact"]["value"] - row["exact"]["low"]) for row in points]
        high = [100 * (row["exact"]["high"] - row["exact"]["value"]) for row in points]
        label = {"funsd": "words (FUNSD)", "sroie": "lines (SROIE)"}.get(name, name)
        axes.errorbar(levels, [100 * row["exact"]["value"] for row in points], (low, high), marker="o", label=label)
    axes.set(xlabel="level", ylabel="read exactly, %", xticks=[0, 1, 2], ylim=(0, 100))
    axes.legend()
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=130, metadata={"Software": None})


def main() -> None:
    results = json.loads((ROOT / "results" / "eye.json").read_text())
    tables = [table(results)]
    gpu = ROOT / "results" / "eye_gpu.json"
    if gpu.is_file():
        tables.append(table(json.loads(gpu.read_text())))
    curve(results["read"]["rows"], ROOT / "docs" / "images" / "reading.png")
    with replacing(ROOT / "docs" / "eye.md") as unfinished:
        commits = ", ".join(f"{commit} ({part})" for part, commit in results["commits"].items())
        unfinished.write_text(PAGE.format(machine=where(results["machine"]), commits=commits, tables="\n".join(tables)))


if __name__ == "__main__":
    main()
