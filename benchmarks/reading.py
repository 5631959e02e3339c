"""How well text is read: lines found, and words and lines read exactly, at native and at half size.

python benchmarks/reading.py --data FOLDER                              # writes results/reading.json
python benchmarks/reading.py --data FOLDER --limit 10 --readers own     # 10 pages of each set, without PP-OCR

"boxes" reads the boxes of words.jsonl from the whole page: the recogniser alone. "look" opens the page, finds its lines
and reads what so many tokens show: a word or line counts as read if its whole text stands in what was read there, with
no word or number of it going on (data sets cut "3/31/95" into three words, and one printed line into two);
case and spaces do not count. PP-OCR (pip install 'homunculus[ocr]') reads the same strips. Intervals hold 95 % of 1,000
draws of pages.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from homunculus import InputError
from homunculus.eval.machine import machine
from homunculus.eval.metrics import interval
from homunculus.reader import load_page_reader
from homunculus.reader.letters import plain
from homunculus.reader.lines import Line
from homunculus.reader.session import Page, PageReader
from homunculus.reader.strips import boxes_of, grey_pyramid, sample_strips
from homunculus.runtime.files import replacing

SETS = {"funsd": "words", "sroie": "lines", "docvqa": "lines"}
READERS = ("own", "ppocr")
BUDGETS = (273, 1536)
WHOLE = 10**6  # tokens: all cells of any page here
SMALLEST = 5  # pixels: lower words are not counted
FOUND, SIZE = 0.7, (0.5, 2.0)  # share of a word that a line must cover to have found it, and how high it may be
LEVELS = 4


@dataclass(frozen=True)
class Truth:
    """What stands on a page: texts and boxes [n, 4]."""

    image: Path
    texts: list[str]
    boxes: np.ndarray


def pages_of(folder: Path, name: str, limit: int | None) -> list[Truth]:
    """Pages of a set's val split with their words or lines."""
    place, pages = folder / name / "val", []
    try:
        rows = [json.loads(row) for row in (place / "words.jsonl").read_text(encoding="utf-8").splitlines() if row]
    except OSError as error:
        raise InputError(f"{place} has no words.jsonl: {error.strerror}") from error
    for row in rows[:limit]:
        words = [w for w in row["words"] if folded(plain(w["text"])) and w["box"][3] - w["box"][1] >= SMALLEST]
        if words:
            boxes = np.array([w["box"] for w in words], np.float32)
            pages.append(Truth(place / row["image"], [folded(plain(w["text"])) for w in words], boxes))
    return pages


def folded(text: str) -> str:
    return " ".join(text.lower().split())


def shared(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Area that each box has in common with each other one. [n, m]"""
    low, high = np.maximum(boxes[:, None, :2], others[None, :, :2]), np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return (high - low).clip(min=0).prod(2)


def area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 2:] - boxes[:, :2]).prod(1)


def finding(page: Page, truth: Truth, scale: float) -> tuple[list[float], list[float]]:
    """Which words were found, and which found lines are on words."""
    true, found = truth.boxes * scale, boxes_of(page.lines).numpy()
    if not len(found):
        return [0.0] * len(true), []
    common, high = shared(true, found), (true[:, 3] - true[:, 1])[:, None]
    ratio = (found[:, 3] - found[:, 1])[None] / high
    fits = (ratio > SIZE[0]) & (ratio < SIZE[1])
    hit = (common * fits).sum(1) >= FOUND * area(true)
    return hit.astype(float).tolist(), (common.sum(0) >= 0.5 * area(found)).astype(float).tolist()


def compare(true: Sequence[str], read: Sequence[Sequence[str]]) -> tuple[list[float], float]:
    """Which texts were read exactly, and the share of wrong characters; `read` are candidates for each."""
    right, wrong = [], 0
    for text, candidates in zip(true, read, strict=True):
        exact = any(stands_in(text, line) for line in candidates)
        right.append(float(exact))
        wrong += 0 if exact else min([len(text), *(_errors(text, line) for line in candidates)])
    return right, wrong / sum(map(len, true))


def stands_in(text: str, line: str) -> bool:
    """Whether a text stands in a line as a whole: no word or number of it goes on. Spaces do not count."""
    letters = [char for char in text if not char.isspace()]
    before, behind = ("(?<![^\\W_])" if letters[0].isalnum() else ""), ("(?![^\\W_])" if letters[-1].isalnum() else "")
    return re.search(before + r"\s*".join(map(re.escape, letters)) + behind, line) is not None


def _errors(text: str, line: str) -> int:
    """The fewest characters that must be changed for a text to stand in a line: edit distance with free ends."""
    row = [0] * (len(line) + 1)
    for char in text:
        above, row = row, [row[0] + 1]
        for i, other in enumerate(line):
            row.append(min(above[i] + (char != other), above[i + 1] + 1, row[i] + 1))
    return min(row)


def from_boxes(reader: PageReader, grey: torch.Tensor, truth: Truth, scale: float) -> list[list[str]]:
    """What is read in the boxes that are known."""
    boxes = torch.from_numpy(truth.boxes) * scale
    middle = (boxes[:, 1] + boxes[:, 3]) / 2
    lines = torch.stack((boxes[:, 0], middle, boxes[:, 2], middle, boxes[:, 3] - boxes[:, 1]), 1)
    strips, widths = sample_strips(grey_pyramid(grey, LEVELS), lines, reader.recognizer.height)
    return [[folded(plain(text))] for text, _ in reader.recognizer(strips, widths)]


def from_look(lines: Sequence[Line], truth: Truth, kind: str, scale: float) -> list[list[str]]:
    """What was read where each text stands."""
    true = truth.boxes * scale
    if not lines:
        return [[] for _ in true]
    boxes, texts = np.array([line.box for line in lines], np.float32), [folded(plain(line.text)) for line in lines]
    common = shared(true, boxes)
    if kind == "lines":
        best = (common / (area(true)[:, None] + area(boxes)[None] - common)).argmax(1)
        return [[texts[n]] if common[i, n] > 0 else [] for i, n in enumerate(best)]
    return [[texts[n] for n in np.nonzero(row > 0.4 * size)[0]] for row, size in zip(common, area(true), strict=True)]


def measure_page(readers: dict[str, PageReader], truth: Truth, kind: str, half: bool) -> dict[str, Any]:
    """Figures of one page, by what was measured and reader."""
    image = Image.open(truth.image).convert("RGB")
    image, scale = (image.reduce(2), 0.5) if half else (image, 1.0)
    grey = torch.from_numpy(np.array(image.convert("L")))
    figures: dict[str, Any] = {}
    for name, reader in readers.items():
        page = reader.open(image)
        if name == "own":
            recall, precision = finding(page, truth, scale)
            figures["recall"], figures["precision"] = (recall, None), (precision, None)
        figures[f"boxes {name}"] = compare(truth.texts, from_boxes(reader, grey, truth, scale))
        for budget in (*BUDGETS, WHOLE):
            said = "all" if budget == WHOLE else budget
            read = from_look(page.read(budget), truth, kind, scale)
            figures[f"look {said} {name}"] = compare(truth.texts, read)
    return figures


def rows_of(name: str, half: bool, pages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each figure: its mean over words and interval over pages."""
    rows = []
    for key in pages[0]:
        values = [value for figures in pages for value in figures[key][0]]
        groups = [n for n, figures in enumerate(pages) for _ in figures[key][0]]
        row = {"set": name, "half": half, "what": key, "n": len(values), "pages": len(pages)}
        if values:
            found = interval(values, groups)
            row |= {"share": float(np.mean(values)), "interval": [found["low"], found["high"]]}
        wrong = [figures[key][1] for figures in pages if figures[key][1] is not None]
        rows.append(row | ({"wrong_characters": float(np.mean(wrong))} if wrong else {}))
    return rows


def readers_of(names: Sequence[str], weights: Path | None, console: Console) -> dict[str, PageReader]:
    found = {}
    for name in names:
        try:
            found[name] = load_page_reader(weights, reading=name)
        except InputError as error:
            console.print(f"without {name}: {error}", style="yellow")
    return found


def measure(args: argparse.Namespace, console: Console) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": machine("cpu"), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    readers, results["rows"] = readers_of(args.readers, args.weights, console), []
    columns = TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as progress:
        for name in args.sets:
            truths = pages_of(args.data, name, args.limit)
            for half in (False, True):
                listed = progress.track(truths, description=f"{name} {'half' if half else ''}")
                pages = [measure_page(readers, truth, SETS[name], half) for truth in listed]
                results["rows"] += rows_of(name, half, pages)
    return results


def show(results: dict[str, Any], console: Console) -> None:
    grid = Table("set", "size", "what", "share, %", "wrong characters, %", "n", title_justify="left")
    for row in results["rows"]:
        if "share" in row:
            share = "{:.1f} ({:.0f}-{:.0f})".format(*(100 * value for value in (row["share"], *row["interval"])))
            wrong = f"{100 * row['wrong_characters']:.1f}" if "wrong_characters" in row else ""
            grid.add_row(row["set"], "half" if row["half"] else "native", row["what"], share, wrong, str(row["n"]))
    console.print(grid)


COLUMNS = ("recall", "precision", "boxes own", "boxes ppocr", "look 273 own", "look all own", "look all ppocr")


def table(results: dict[str, Any]) -> str:
    """The rows as docs/reading.md has them: shares in %, in brackets the share of wrong characters."""
    lines = [f"| set | n | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    groups: dict[tuple[str, bool], dict[str, Any]] = {}
    for row in results["rows"]:
        groups.setdefault((row["set"], row["half"]), {})[row["what"]] = row
    for (name, half), rows in groups.items():
        cells = [cell(rows[what]) if "share" in rows.get(what, {}) else "" for what in COLUMNS]
        title = f"{name}, half size" if half else name
        lines.append(f"| {title} | {rows['boxes own']['n']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(row: dict[str, Any]) -> str:
    share = "{:.0f} ({:.0f} to {:.0f})".format(*(100 * value for value in (row["share"], *row["interval"])))
    return f"{share} [{100 * row['wrong_characters']:.1f}]" if "wrong_characters" in row else share


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS), help=f"of {','.join(SETS)}")
    parser.add_argument("--readers", type=lambda text: text.split(","), default=READERS, help="own,ppocr")
    parser.add_argument("--weights", type=Path, help="folder of weights; else the shipped ones")
    parser.add_argument("--limit", type=int, help="pages of each set; all unless told")
    default = Path(__file__).parents[1] / "results" / "reading.json"
    parser.add_argument("--out", type=Path, default=default, help="results file")
    args, console = parser.parse_args(words), Console(stderr=True)
    try:
        results = measure(args, console)
    except InputError as error:
        sys.exit(f"error: {error}")
    show(results, console)
    print(table(results))
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
