"""How much of a page's text is legible under a budget? Share of lines, by rule and budget.

python benchmarks/legible.py --data FOLDER                              # all pages; writes results/legible.json
python benchmarks/legible.py --data FOLDER --sets docvqa --limit 20     # 20 pages of one set, drawn by a fixed seed

A line is legible when cells in which its print is at least 11 pixels high cover 80 % of it; --min-print asks for less,
as our recogniser does. There is no question: relevance is the same everywhere. "true" rules know the lines of
words.jsonl, "found" rules those of the line finder; both are measured on the former. Rules "at any scale" cut the page
at one of four scales. Intervals hold 95 % of 1,000 draws of pages.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor

from homunculus import Eye, InputError
from homunculus.allocators.legibility import MIN_PRINT, legible
from homunculus.eval.data import items
from homunculus.eval.machine import machine
from homunculus.eye import LineFunction
from homunculus.image import load
from homunculus.relevance import Scene
from homunculus.runtime.files import replacing

SETS = ("docvqa", "funsd", "sroie")
BUDGETS = (64, 150, 273, 576)
RULES = ("dag", "foveated")
SCALES = 4  # as the reader has them
SMALLEST = 6  # pixels: lower lines are not counted
DRAWS = 1000

Shares = dict[tuple[str, int], float]


def true_lines(folder: Path, name: str) -> dict[Path, Tensor]:
    """Lines [n, 5] of each page of a set that has some, in a fixed random order; print is as high as its box."""
    place = folder / name / "val"
    try:
        rows = [json.loads(line) for line in (place / "words.jsonl").read_text(encoding="utf-8").split("\n") if line]
    except OSError as error:
        raise InputError(f"{place} has no words.jsonl: {error.strerror}") from error
    asked, found = sorted({item.image for item in items(folder, name)}), {}
    random.Random(2).shuffle(asked)
    for row in rows:
        boxes = [word["box"] for word in row["words"] if word["box"][3] - word["box"][1] >= SMALLEST]
        if boxes:
            lines = torch.tensor(boxes, dtype=torch.float64)
            found[place / row["image"]] = torch.cat((lines, lines[:, 3:] - lines[:, 1:2]), 1)
    return {image: found[image] for image in asked if image in found}


def finder_of(without: bool, console: Console) -> LineFunction | None:
    """The shipped line finder, where there is one."""
    if without:
        return None
    try:
        from homunculus.reader import load_finder

        return load_finder()
    except (ImportError, OSError, InputError) as error:
        console.print(f"no line finder: rules that need it are left out ({error})", style="yellow")
        return None


def shares_of(scene: Scene, lines: Tensor, finder: LineFunction | None, min_print: float) -> Shares:
    """Share of a page's lines that each rule shows legibly at each budget."""
    flat, shares = torch.ones(1, scene.tree.size, device=scene.tree.device), {}
    ways: dict[str, tuple[str, dict[str, Any]]] = {rule: (rule, {}) for rule in ("uniform", *RULES)}
    for source, known in (("true", {"lines": [lines]}), ("found", {"finder": finder})):
        options = known | {"error": "legibility", "min_print": min_print}
        if source == "true" or finder is not None:
            ways |= {f"{rule} ({source})": (rule, options) for rule in RULES}
            ways |= {f"{rule} ({source}), any scale": (rule, options | {"scales": SCALES}) for rule in RULES}
    for name, (rule, options) in ways.items():
        for budget in BUDGETS:
            chosen = Eye(rule, budget=budget, **options).choose(scene, [""], flat)
            shares[name, budget] = float(legible(chosen, [lines], min_print)[0].double().mean())
    return shares


def interval(values: Sequence[float]) -> list[float]:
    """95 % of the means of as many values drawn with replacement."""
    found = np.array(values)
    draws = np.random.default_rng(0).integers(0, len(found), (DRAWS, len(found)))
    return np.quantile(found[draws].mean(1), (0.025, 0.975)).tolist()


def rows_of(name: str, pages: Sequence[Shares], lines: int) -> list[dict]:
    """One row for each rule and budget: the mean over pages and its interval."""
    columns = defaultdict(list)
    for shares in pages:
        for key, value in shares.items():
            columns[key].append(value)
    return [
        {"set": name, "rule": rule, "budget": budget, "share": float(np.mean(values)), "interval": interval(values)}
        | {"pages": len(values), "lines": lines}
        for (rule, budget), values in columns.items()
    ]


def measure(args: argparse.Namespace, console: Console) -> dict:
    results = {"machine": machine(args.device), "date": f"{datetime.now(UTC):%Y-%m-%d}", "min_print": args.min_print}
    results["rows"] = []
    finder = finder_of(args.true_only, console)
    if isinstance(finder, torch.nn.Module):
        finder = finder.to(args.device)
    columns = TextColumn("{task.description:8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as progress:
        for name in args.sets:
            pages = dict(list(true_lines(args.data, name).items())[: args.limit])
            if not pages:
                raise InputError(f"{args.data / name} has no page with lines")
            shares = [
                shares_of(Eye("dag").scene(load(image).to(args.device)), lines, finder, args.min_print)
                for image, lines in progress.track(pages.items(), description=name)
            ]
            results["rows"] += rows_of(name, shares, sum(map(len, pages.values())))
    return results


def show(results: dict, console: Console) -> None:
    grid = Table("set", "rule", *map(str, BUDGETS), "pages", title="Lines legible, %", title_justify="left")
    groups = defaultdict(dict)
    for row in results["rows"]:
        groups[row["set"], row["rule"]][row["budget"]] = row
    for key, row in groups.items():
        figures = [[100 * value for value in (each["share"], *each["interval"])] for each in row.values()]
        grid.add_row(*key, *("{:.1f} ({:.0f}-{:.0f})".format(*each) for each in figures), str(row[BUDGETS[0]]["pages"]))
    console.print(grid)


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=SETS, help=f"of {','.join(SETS)}")
    parser.add_argument("--limit", type=int, help="pages of each set; all unless told")
    parser.add_argument("--true-only", action="store_true", help="leave out the rules that need the line finder")
    parser.add_argument("--min-print", type=float, default=MIN_PRINT, help="pixels that print needs")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    default = Path(__file__).parents[1] / "results" / "legible.json"
    parser.add_argument("--out", type=Path, default=default, help="results file")
    args = parser.parse_args(words)
    if args.limit is not None and args.limit < 1:
        parser.error(f"--limit must be at least 1, got {args.limit}")
    return args


def main(words: list[str] | None = None) -> None:
    args, console = arguments(words), Console(stderr=True)
    try:
        results = measure(args, console)
    except InputError as error:
        sys.exit(f"error: {error}")
    show(results, console)
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
