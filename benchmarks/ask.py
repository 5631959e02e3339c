"""How long the reader takes on this machine: loading, a question, memory.

python benchmarks/ask.py --data FOLDER         # two questions each about 40 pages of docvqa/val
python benchmarks/ask.py                       # about the example page instead, several times

Writes results/ask_cpu.json. Loading is that of a new process, imports and all; the first question about a page counts
from the file to the answer, the next one from the opened page; the language model is in the cache.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import track

from homunculus import InputError, load_reader
from homunculus.cli.bench import PARTS
from homunculus.eval.data import items
from homunculus.eval.machine import machine
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "invoice.png", ["What is the total?", "What is the invoice number?"]


def chosen_pages(data: Path | None, name: str, count: int) -> list[tuple[Path, list[str]]]:
    """So many pages with the first two questions about each, evenly from all that have two."""
    if data is None:
        return [EXAMPLE] * count
    about: dict[Path, list[str]] = {}
    for item in items(data, name):
        about.setdefault(item.image, []).append(item.question)
    pages = sorted(page for page, questions in about.items() if len(questions) > 1)
    return [(page, about[page][:2]) for page in pages[:: max(1, len(pages) // count)][:count]]


def loaded_in(*how: object) -> float:
    """Seconds of a process that loads the reader and ends."""
    words = ", ".join(repr(None if word is None else str(word)) for word in how)
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import homunculus; homunculus.load_reader({words})"], check=True)
    return time.perf_counter() - begun


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--set", default="docvqa")
    parser.add_argument("--count", type=int, default=40, help="questions")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--language", help="folder or hub id of the language model")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "ask_cpu.json")
    args = parser.parse_args(words)
    try:
        reader = load_reader(args.weights, args.language, args.device)
        loading = loaded_in(args.weights, args.language, args.device)
        todo = chosen_pages(args.data, args.set, args.count)
        reader.ask(*todo[0])  # kernels are chosen at the first
        seconds, following, parts = [], [], []
        for image, (question, following_question) in track(todo, "asking"):
            begun = time.perf_counter()
            page = reader.open(image)
            opened = time.perf_counter() - begun
            parts.append({"open": opened} | page.ask(question).seconds)
            seconds.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            page.ask(following_question)
            following.append(time.perf_counter() - begun)
    except InputError as error:
        sys.exit(str(error))
    result = {
        "machine": machine(args.device),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "pages": args.set if args.data else "example",
        "count": len(seconds),
        "loading": loading,
        "median": statistics.median(seconds),
        "next_question": statistics.median(following),
        "slowest": max(seconds),
        "parts": {name: statistics.median(part.get(name, 0.0) for part in parts) for name in PARTS},
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(result, indent=1) + "\n")
    print(describe(result))


def describe(result: dict) -> str:
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result["parts"].items())
    return (
        f"{result['loading']:.1f} s to load, {result['median']:.2f} s a question in the median of {result['count']} "
        f"({parts}), {result['slowest']:.2f} s at most, {result['next_question']:.2f} s for the next question about "
        f"the same page, {result['gigabytes']:.1f} GB of memory"
    )


if __name__ == "__main__":
    main()
