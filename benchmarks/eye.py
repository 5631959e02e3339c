"""Does the eye look where the answer is, and what does a look take? Figures for docs/eye.md.

python benchmarks/eye.py --data FOLDER                            # all parts; writes results/eye.json
python benchmarks/eye.py --data FOLDER --parts found --limit 60   # the first 60 questions of each set
python benchmarks/eye.py --parts speed --device cuda --out results/eye_cuda.json

found    is the answer in cells that are fine enough to read it, by method and budget
overlap  how many of the finest cells two questions about distant places of one page share
speed    of the scout, the encoder and, on a GPU, the whole way from pixels to patches
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor

import eye_data as data
from allocators import median_ms
from homunculus import CellTree, InputError, allocate, reader
from homunculus.eval.machine import machine
from homunculus.eval.metrics import ratio, resamples
from homunculus.positions import coordinates
from homunculus.reader.weights import SHIPPED, digest
from homunculus.relevance import Scene
from homunculus.runtime.files import replacing
from homunculus.tokens import patches
from homunculus.train.tasks.selections import nearest

PARTS = ("found", "overlap", "speed")
METHODS = ("query", "opponent", "learned", "saliency", "information", "centre", "random", "oracle")
LOOKS = [(allocator, method) for allocator in ("dag", "foveated") for method in METHODS] + [("uniform", "uniform")]
LOOKS.append(("reader", "query"))
BUDGETS = (273, 150, 64)
QUESTION = "What is the total amount?"
STAGES = ("pyramid", "scout", "allocation", "patches")


def bars(console: Console) -> Progress:
    columns = TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console)


# ---- found and overlap: one pass over the pages -------------------------------------------------------------------


class Looks:
    """What was seen on each page of a set: hits [Q] by look and budget, overlaps of pairs by allocator and budget."""

    def __init__(self) -> None:
        self.hits: dict[tuple[str, str, int], list[np.ndarray]] = defaultdict(list)
        self.overlaps: dict[tuple[str, int], list[np.ndarray]] = defaultdict(list)

    def add(self, page: data.Page, scout, parts: list[str], device: str) -> None:
        """Look at one page in every way; its scene, its relevances and the scout's view of it are made once."""
        scene, questions = data.scene_of(page.image, device), page.questions
        ways = data.ways(scene, questions, scout, () if "found" in parts else ("query",))
        ways["uniform"] = data.centre_way(scene.tree)
        for allocator, method in LOOKS:
            if method not in ways:
                continue
            for budget in BUDGETS:
                selection = data.choose(scene, allocator, method, ways[method], budget)
                if "found" in parts:
                    self.hits[allocator, method, budget].append(data.hits(selection, questions))
                if "overlap" in parts and method == "query":
                    shared = data.overlaps(selection, scene.tree, data.distant(questions, scene.tree))
                    self.overlaps[allocator, budget].append(shared)


def look_at(name: str, pages: list[data.Page], scout, parts: list[str], device: str, console: Console) -> Looks:
    looks = Looks()
    with bars(console) as progress:
        for page in progress.track(pages, description=f"{' and '.join(parts)}, {name}"):
            looks.add(page, scout, parts, device)
    return looks


def found_rows(name: str, pages: list[data.Page], looks: Looks) -> dict[str, list[dict]]:
    """Shares of questions found, differences of query to what knows no question, and shares by sort of question."""
    draws, asked = resamples(len(pages)), [len(page.questions) for page in pages]
    sums = {key: np.array([h.sum() for h in hits]) for key, hits in looks.hits.items()}
    out: dict[str, list[dict]] = {"rows": [], "differences": [], "sorts": []}
    for (allocator, method, budget), hits in looks.hits.items():
        key = {"set": name, "allocator": allocator, "method": method, "budget": budget}
        share = ratio(sums[allocator, method, budget], asked, draws)
        out["rows"].append(key | share | {"n": sum(asked), "pages": len(pages)})
        if name == "sroie":
            out["sorts"] += [key | row for row in data.by_sort(pages, np.concatenate(hits))]
    for allocator, budget in [(a, b) for a, m, b in sums if m == "saliency"]:
        out["differences"] += differences(name, allocator, budget, sums, asked, draws)
    return out


def differences(name, allocator, budget, sums, asked, draws) -> list[dict]:
    """Query minus each method that knows no question, with a paired interval; `best` marks the strongest of them."""
    against = {method: sums[allocator, method, budget] for method in data.QUERY_FREE}
    most = max(hits.sum() for hits in against.values())
    against["uniform"] = sums["uniform", "uniform", budget]
    rows = []
    for method, hits in against.items():
        best = method != "uniform" and hits.sum() == most
        key = {"set": name, "allocator": allocator, "budget": budget, "against": method, "best": bool(best)}
        rows.append(key | ratio(sums[allocator, "query", budget] - hits, asked, draws))
    return rows


def overlap_rows(name: str, looks: Looks) -> list[dict]:
    rows = []
    for (allocator, budget), per_page in looks.overlaps.items():
        counts = [len(values) for values in per_page]
        key = {"set": name, "allocator": allocator, "budget": budget, "n": sum(counts)}
        if sum(counts):
            sums = [values.sum() for values in per_page]
            rows.append(key | ratio(sums, counts, resamples(len(per_page))))
    return rows


# ---- speed --------------------------------------------------------------------------------------------------------


def speed_rows(pages: dict[str, Tensor], scout, encoder, device: str) -> list[dict]:
    """Milliseconds, medians: the scout's view of a page from its pixels, a question, vectors of 273 cells."""
    rows, questions = [], (f"{QUESTION} {n}" for n in count())  # a new one each time: known ones are remembered

    def add(what: str, page: str, call, repeat: int) -> None:
        rows.append({"what": what, "page": page, "ms": median_ms(call, repeat, device)})

    for name, pixels in pages.items():
        scene = data.scene_of(pixels, device)
        seen = scout.page(scene)
        add("scout, page", name, lambda s=scene: scout.page(Scene(s.pixels, s.tree)), 5)
        add("scout, question", name, lambda s=scene, p=seen: scout.ask(p, s, [next(questions)]), 5)
        point = torch.tensor([[scene.tree.width / 2, scene.tree.height / 2]], device=scene.tree.device)
        selection = nearest(scene.tree, point, 0, BUDGETS[0])
        cells, places = patches(scene.levels, selection), coordinates(selection)
        add("encoder, 273 cells", name, partial(encoder, cells, places), 10)
    if device == "cuda":
        rows += way_through(scout, torch.stack([data.text_page(2048, 2048, seed) for seed in range(8)]).cuda())
    return rows


def way_through(scout, pixels: Tensor, repeat: int = 20) -> list[dict]:
    """The whole way from pixels on the GPU to patches, and each stage of it, by CUDA events."""
    tree, questions = CellTree(*pixels.shape[2:]).to(pixels.device), [QUESTION] * len(pixels)
    times: dict[str, list[float]] = defaultdict(list)
    for turn in range(repeat + 3):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(STAGES) + 1)]
        marks[0].record()
        scene = Scene(pixels, tree)
        levels = scene.levels
        marks[1].record()
        relevance = scout(scene, questions)
        marks[2].record()
        selection = allocate("foveated", tree, relevance, BUDGETS[0], error=scene.lost)
        marks[3].record()
        patches(levels, selection)
        marks[4].record()
        torch.cuda.synchronize()
        if turn >= 3:
            for stage, start, end in zip(STAGES, marks[:-1], marks[1:], strict=True):
                times[stage].append(start.elapsed_time(end))
            times["all"].append(marks[0].elapsed_time(marks[-1]))
    page = f"{len(pixels)} x {pixels.shape[3]} x {pixels.shape[2]}"
    return [{"what": what, "page": page, "ms": statistics.median(ms)} for what, ms in times.items()]


# ---- the tables, on the screen and in docs/eye.md -----------------------------------------------------------------


def percent(row: dict, sign: str = "") -> str:
    return f"{row['value'] * 100:{sign}.1f} ({row['low'] * 100:{sign}.1f} to {row['high'] * 100:{sign}.1f})"


def by_budget(rows: list[dict], key: tuple[str, ...], cell) -> list[list[str]]:
    """One line for each value of the key, one column for each budget."""
    lines: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for row in rows:
        lines[tuple(row[k] for k in key)][row["budget"]] = cell(row)
    return [[*line, *(cells.get(budget, "") for budget in BUDGETS)] for line, cells in lines.items()]


def grids(results: dict) -> list[tuple[str, list[str], list[list[str]]]]:
    """All tables of a results file: title, header, lines."""
    out, budgets = [], [f"{budget} tokens" for budget in BUDGETS]
    found = results.get("found", {"rows": [], "differences": [], "sorts": []})
    for name in dict.fromkeys(row["set"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["set"] == name]
        title = f"{name}: % of {rows[0]['n']} questions found on {rows[0]['pages']} pages (95 % interval)"
        out.append((title, ["allocator", "relevance", *budgets], by_budget(rows, ("allocator", "method"), percent)))
        rows = [row for row in found["differences"] if row["set"] == name]
        if rows:
            lines = by_budget(
                rows, ("allocator", "against"), lambda r: percent(r, "+") + (" best" if r["best"] else "")
            )
            title = f"{name}: query minus what knows no question, points (paired 95 % interval)"
            out.append((title, ["allocator", "against", *budgets], lines))
    sorts = {row["sort"]: row["n"] for row in found["sorts"]}
    if sorts:
        header = ["allocator", "relevance", "tokens", *(f"{sort} ({n})" for sort, n in sorts.items())]
        out.append(("sroie: % found by sort of question", header, sort_lines(found["sorts"], list(sorts))))
    return out + other_grids(results, budgets)


def sort_lines(rows: list[dict], sorts: list[str]) -> list[list[str]]:
    lines: dict[tuple, dict[str, str]] = defaultdict(dict)
    for row in rows:
        lines[row["allocator"], row["method"], str(row["budget"])][row["sort"]] = f"{row['value'] * 100:.0f}"
    return [[*key, *(cells[sort] for sort in sorts)] for key, cells in lines.items()]


def other_grids(results: dict, budgets: list[str]) -> list[tuple[str, list[str], list[list[str]]]]:
    out = []
    if rows := results.get("overlap", {}).get("rows"):
        lines = by_budget(rows, ("set", "allocator"), lambda row: f"{percent(row)}, {row['n']} pairs")
        title = "Finest cells shared by two questions about distant places, % (95 % interval)"
        out.append((title, ["set", "allocator", *budgets], lines))
    if rows := results.get("speed", {}).get("rows"):
        lines = [[row["what"], row["page"], f"{row['ms']:.1f}"] for row in rows]
        out.append((f"Milliseconds, median, on {results['machine']['device']}", ["what", "page", "ms"], lines))
    return out


def table(results: dict) -> str:
    """The tables in Markdown."""
    parts = []
    for title, header, lines in grids(results):
        rule = "|".join("---" for _ in header)
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"**{title}**\n\n| {' | '.join(header)} |\n|{rule}|\n{body}\n")
    return "\n".join(parts)


def show(results: dict, console: Console) -> None:
    for title, header, lines in grids(results):
        grid = Table(*header, title=title, title_justify="left")
        for line in lines:
            grid.add_row(*line)
        console.print(grid)


# ---- the command --------------------------------------------------------------------------------------------------


def load(what: str, args: argparse.Namespace, results: dict) -> object:
    """`load_scout` or `load_encoder` of homunculus.reader, timed."""
    begin = time.perf_counter()
    try:
        loaded = getattr(reader, f"load_{what}")(weights=args.weights, device=args.device)
    except InputError as error:
        raise SystemExit(str(error)) from None
    results["loading_ms"][what] = (time.perf_counter() - begin) * 1e3
    return loaded


def run_looks(args: argparse.Namespace, parts: list[str], results: dict, scout, console: Console) -> None:
    found, rows = {"rows": [], "differences": [], "sorts": []}, []
    for name in args.sets:
        pages = data.question_pages(args.data, name, args.split, args.limit)
        begin = time.perf_counter()
        looks = look_at(name, pages, scout, parts, args.device, console)
        results["seconds"][f"{'+'.join(parts)} {name}"] = time.perf_counter() - begin
        rows += overlap_rows(name, looks)
        for key, more in found_rows(name, pages, looks).items():
            found[key] += more
    results |= ({"found": found} if "found" in parts else {}) | ({"overlap": {"rows": rows}} if rows else {})


def run_speed(args: argparse.Namespace, results: dict, scout, encoder) -> None:
    loading = [{"what": f"load the {what}", "page": "", "ms": ms} for what, ms in results["loading_ms"].items()]
    rows = speed_rows(data.speed_pages(args.data, args.split), scout, encoder, args.device) if scout or encoder else []
    results["speed"] = {"rows": loading + rows}


def kept(args: argparse.Namespace, about: dict) -> dict:
    """Parts that are not measured anew, from the file as it is, if they were measured in the same way."""
    before = json.loads(args.out.read_text()) if args.out.is_file() else {}
    same = all(before.get(key) == value for key, value in about.items()) and before["machine"]["device"] == args.device
    parts = [part for part in PARTS if part not in args.parts and part in before] if same else []
    return {part: before[part] for part in parts} | {"commits": {part: before["commits"][part] for part in parts}}


def measure(args: argparse.Namespace, console: Console) -> dict:
    about = {"split": args.split, "limit": args.limit}
    files = [(args.weights or SHIPPED) / f"{what}.safetensors" for what in ("scout", "encoder")]
    about["weights"] = {file.stem: digest(file) for file in files if file.is_file()}
    results: dict = about | {"machine": machine(args.device), "loading_ms": {}, "seconds": {}} | kept(args, about)
    results["commits"] |= dict.fromkeys(args.parts, results["machine"]["commit"])
    scout = load("scout", args, results) if {"found", "overlap", "speed"} & set(args.parts) else None
    encoder = load("encoder", args, results) if "speed" in args.parts else None
    looking = [part for part in ("found", "overlap") if part in args.parts]
    if looking:
        run_looks(args, looking, results, scout, console)
    if "speed" in args.parts:
        run_speed(args, results, scout, encoder)
    return results


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with sroie, funsd, docvqa; speed alone needs none")
    parser.add_argument("--split", default="val")
    parser.add_argument("--limit", type=int, help="questions a set (the first)")
    parser.add_argument("--parts", type=lambda t: t.split(","), default=list(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", type=Path, help="folder of the weights; those of the package unless told")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "eye.json")
    args = parser.parse_args(words)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    if args.limit is not None and args.limit < 1:
        parser.error(f"--limit must be at least 1, got {args.limit}")
    args.sets = data.sets_in(args.data, args.split)
    return args


def main(words: list[str] | None = None) -> None:
    args = arguments(words)
    if not args.sets and set(args.parts) != {"speed"}:
        wanted = ", ".join(f"{name}/{args.split}" for name in data.BOXES)
        print(f"there is no data in {args.data}: --data must name a folder that has {wanted}.", file=sys.stderr)
        raise SystemExit(2)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    with torch.no_grad():
        results = measure(args, console)
    show(results, console)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
