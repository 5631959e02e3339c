"""What a look costs on images of 1, 100 and 1,074 megapixels, of which only some tiles are decoded.

python benchmarks/giga.py          # draws the images (half a gigabyte), looks in fresh processes; results/giga_cpu.json

Each look runs in a process of its own, which also loads the package and the scout: `memory_mb` is the peak of all that.
`seconds` is the fastest of four such looks on one thread, from opening the file to the tokens' pixels: the first decode
is in it, loading the package and the scout is not. `cpu_seconds` is what that look took of all cores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from draw_giant import PLACES, Label, draw
from homunculus.eval.machine import machine
from homunculus.runtime.files import replacing

SIDES = {"1": 1024, "100": 10_000, "1074": 32_768}  # megapixels: side
QUESTION, BUDGET = "What is written on the label?", 273
REPEATS = 4
MARGIN = 40  # pixels around a label that the recogniser gets to see


def look(path: str, labels: list[Label], reading: bool) -> dict[str, object]:
    """One look at the first label and one without a fixation; and, if asked, whether each label can be read."""
    import torch

    from homunculus import Eye
    from homunculus.eye import shipped_scout
    from homunculus.giga import open_tiled

    torch.set_num_threads(1)
    shipped_scout()
    begin, cpu = time.perf_counter(), time.process_time()
    image = open_tiled(path)
    glance = Eye("fractal", "query", BUDGET).look(image, QUESTION, fixation=labels[0].middle)
    figures: dict[str, object] = {
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "tiles": glance.tiles.decoded,
        "all_tiles": glance.tiles.all,
        "tokens": glance.selection.boxes.shape[1],
        "coverage": float(glance.selection.coverage()[0]),
    }
    return figures | (read(path, labels) if reading else {})


def read(path: str, labels: list[Label]) -> dict[str, object]:
    """Labels that the recogniser reads from the tokens of a look at them; and what a free look comes upon."""
    from homunculus import Eye
    from homunculus.giga import open_tiled
    from homunculus.reader import load_page_reader

    eye, image, reader, right = Eye("fractal", "query", BUDGET), open_tiled(path), load_page_reader(), 0
    for label in labels:
        glance = eye.look(image, QUESTION, fixation=label.middle)
        x0, y0, x1, y1 = label.box
        box = max(x0 - MARGIN, 0), max(y0 - MARGIN, 0), min(x1 + MARGIN, image.width), min(y1 + MARGIN, image.height)
        lines = reader.open(glance.crop(box)).read()
        right += label.text in " ".join(line.text for line in lines)
    free = Eye("fractal", "saliency", BUDGET).look(image)
    x, y = free.fixations[0].tolist()
    found = any(b.box[0] - 32 <= x <= b.box[2] + 32 and b.box[1] - 32 <= y <= b.box[3] + 32 for b in labels)
    return {"labels": len(labels), "labels_read": right, "free_look_finds_a_label": found}


def run(path: Path, labels: list[Label], reading: bool) -> dict:
    """One look in a fresh process."""
    words = [str(path), json.dumps([[each.text, each.box] for each in labels]), str(int(reading))]
    done = subprocess.run([sys.executable, __file__, "--one", *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def summary(runs: list[dict]) -> dict[str, object]:
    """The fastest look at one file, and the largest memory."""
    row, fastest = dict(runs[0]), min(runs, key=lambda each: each["seconds"])
    row |= {name: round(fastest[name], 3) for name in ("seconds", "cpu_seconds")}
    row["memory_mb"] = round(max(each["memory_mb"] for each in runs))
    return row | {"share_of_tiles": round(row["tiles"] / row["all_tiles"], 5)}


def show(rows: list[dict], console: Console) -> None:
    """The table."""
    table = Table("megapixels", "file", "seconds", "CPU s", "peak MB", "tiles", "of", "labels read")
    for row in rows:
        values = [row["megapixels"], row["file"], row["seconds"], row["cpu_seconds"], row["memory_mb"], row["tiles"]]
        table.add_row(*map(str, [*values, row["all_tiles"], f"{row['labels_read']} of {row['labels']}"]))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--sides", default=",".join(SIDES), help="megapixels: 1, 100, 1074")
    parser.add_argument("--out", type=Path, default=Path("results/giga_cpu.json"))
    args = parser.parse_args()
    if args.one:
        path, labels, reading = args.one
        print(json.dumps(look(path, [Label(text, tuple(box)) for text, box in json.loads(labels)], reading == "1")))
        return
    about = {"machine": machine("cpu") | {"threads": 1}, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        with ProcessPoolExecutor(1, get_context("spawn")) as drawing:  # its memory must not count as that of a look
            for name, kind in itertools.product(args.sides.split(","), ("pyramid", "flat")):
                path = Path(folder, f"{name}-{kind}.tif")
                labels = drawing.submit(draw, path, SIDES[name], kind == "pyramid", labels=len(PLACES)).result()
                files.append((int(name), kind, path, labels))
        # in turns: what else the machine does slows all of them alike
        turns = [[run(path, labels, turn == 0) for *_, path, labels in files] for turn in range(REPEATS)]
    runs = zip(files, zip(*turns, strict=True), strict=True)
    rows = [{"megapixels": name, "file": kind, **summary(each)} for (name, kind, *_), each in runs]
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(about | {"budget": BUDGET, "rows": rows}, indent=1) + "\n")
    show(rows, Console())


if __name__ == "__main__":
    main()
