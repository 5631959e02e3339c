"""Writes docs/eye.md from results/eye*.json: python tools/eye_page.py"""

from __future__ import annotations

import sys
from pathlib import Path

from published import DOCS, describe_machine, read_results, write_page

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from eye import table

PAGE = """# The eye: what it finds

This page is written by `python tools/eye_page.py` from the files in `results/`, which
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


def main(docs: Path = DOCS) -> None:
    """Write the page."""
    results = read_results("eye")
    tables = [table(each) for each in (results, read_results("eye_gpu", missing_ok=True)) if each]
    commits = ", ".join(f"{commit} ({part})" for part, commit in results["commits"].items())
    machine = describe_machine(results["machine"])
    write_page("eye", PAGE.format(machine=machine, commits=commits, tables="\n".join(tables)), docs)


if __name__ == "__main__":
    main()
