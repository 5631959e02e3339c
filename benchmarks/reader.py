"""How well the reader answers: every allocator on the same weights and the same questions.

python benchmarks/reader.py --data FOLDER --device cuda                      # all ways; writes results/reader.json
python benchmarks/reader.py --data FOLDER --sets funsd --ways foveated/query/273 --limit 50

Answers are appended to results/reader.jsonl as they come; after a kill the same command goes on where it was. A way is
ALLOCATOR/RELEVANCE/BUDGET. `--pages other` asks each question of another page of its set: how often is it confident?
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from homunculus import InputError
from homunculus.eval.asking import answered
from homunculus.eval.data import Item, items
from homunculus.eval.machine import machine
from homunculus.eval.metrics import ratio, resamples, score_of
from homunculus.files import replacing
from homunculus.reader import load_reader
from homunculus.reader.prompt import NOT_FOUND

SETS = ("docvqa", "sroie", "funsd", "chartqa", "icdar2015", "daquar", "coco_vqa")
DOCUMENTS = SETS[:4]
ALLOCATORS = ("uniform", "random", "grid", "pyramid", "stratified", "logpolar", "dag", "frequency", "foveated")
BUDGETS = (273, 150, 64)
NATURAL = [f"{allocator}/query/{budget}" for budget in BUDGETS for allocator in ("uniform", "foveated")]
CONFIDENT = 0.5
ROOT = Path(__file__).parents[1]


def all_ways() -> list[str]:
    """Every allocator with the question's relevance, `foveated` with saliency, and the upper bound."""
    ways = [f"{allocator}/query/{budget}" for budget in BUDGETS for allocator in ALLOCATORS]
    ways += [f"foveated/saliency/{budget}" for budget in BUDGETS]
    return [*ways, "uniform/query/1536", "foveated/query/1536"]


class Answers:
    """Lines of a file: what was answered so far, and more."""

    def __init__(self, path: Path, about: dict) -> None:
        self.path, self.rows = path, []
        if path.is_file():
            lines = path.read_text().splitlines()
            self.rows = [json.loads(line) for line in lines if line.endswith("}")]
            if lines and not lines[-1].endswith("}"):  # cut off by a kill
                path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        known = [row for row in self.rows if "weights" in row]
        if known and known[0]["weights"] != about["weights"]:
            raise SystemExit(f"{path} holds answers of other weights; move it away or choose another --out")
        if about["machine"] not in [row["machine"] for row in known]:  # another may go on with it
            self.add([about])
        self.done = {(row["dataset"], row["qid"], row["way"]) for row in self.rows if "way" in row}

    def add(self, rows: list[dict]) -> None:
        with self.path.open("a") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
        self.rows += rows


def answer_all(
    todo: list[tuple[Item, str]], reader, args: argparse.Namespace, answers: Answers, console: Console
) -> None:
    columns = TextColumn("answers"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left")
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("", total=len(todo))
        for batch in answered(reader, todo, args.batch, args.most):
            rows = []
            for item, way, answer in batch:
                row = {"dataset": item.dataset, "qid": item.qid, "image": item.image.name, "way": way}
                row |= {"answer": answer.text, "confidence": round(answer.confidence, 4)}
                rows.append(row | {"score": score_of(item.dataset)(answer.text, item.answers)})
            answers.add(rows)
            progress.advance(bar, len(batch))


def other_pages(listed: list[Item]) -> list[Item]:
    """Each question with the image of another page of its set, which does not answer it."""
    images = sorted({item.image for item in listed})
    following = dict(zip(images, images[1:] + images[:1], strict=True))
    moved = [Item(item.dataset, item.qid, following[item.image], item.question, item.answers) for item in listed]
    return sorted(moved, key=lambda item: item.image)


# ---- figures ------------------------------------------------------------------------------------------------------


def figures(rows: list[dict]) -> list[dict]:
    """Scores with intervals over pages, and how far confidence can be trusted, for every set and way."""
    found = defaultdict(list)
    for row in rows:
        if "way" in row:
            found[row["dataset"], row["way"]].append(row)
    table = []
    for (dataset, way), group in found.items():
        pages = defaultdict(list)
        for row in group:
            pages[row["image"]].append(row["score"])
        sums, counts = [sum(page) for page in pages.values()], [len(page) for page in pages.values()]
        figure = ratio(sums, counts, resamples(len(pages)))
        sure = np.array([row["confidence"] for row in group])
        right = np.array([row["score"] >= 0.5 for row in group], float)
        entry = {"dataset": dataset, "way": way, "n": len(group), "pages": len(pages), **figure}
        confident = (sure >= CONFIDENT) & np.array([row["answer"] != NOT_FOUND for row in group])
        table.append(
            entry | {"calibration_error": calibration_error(sure, right), "confident": float(confident.mean())}
        )
    return table


def calibration_error(sure: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: how far confidence and share of right answers differ, over bins of confidence."""
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(sure[place == b].mean() - right[place == b].mean()) * (place == b).mean() for b in set(place.tolist())]
    return float(sum(gaps))


def table(results: list[dict]) -> str:
    """Markdown: a line a way, a column a set."""
    sets = [name for name in SETS if any(row["dataset"] == name for row in results)]
    lines = ["| way | " + " | ".join(sets) + " |", "|---" * (len(sets) + 1) + "|"]
    by_key = {(row["way"], row["dataset"]): row for row in results}
    ways = dict.fromkeys(row["way"] for row in results)
    for way in [*(way for way in all_ways() if way in ways), *(way for way in ways if way not in all_ways())]:
        cells = []
        for name in sets:
            row = by_key.get((way, name))
            shown = f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f}), n {row['n']}" if row else ""
            cells.append(shown)
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--split", default="val")
    parser.add_argument("--sets", type=lambda t: t.split(","), default=list(SETS))
    parser.add_argument(
        "--ways", type=lambda t: t.split(","), help="all unless told; natural images: foveated and uniform"
    )
    parser.add_argument("--limit", type=int, help="questions a set")
    parser.add_argument("--pages", choices=("own", "other"), default="own")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--most", type=int, default=48, help="tokens of an answer")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--exact", action="store_true", help="float32 on a GPU too")
    parser.add_argument("--memory", type=float, default=1.0, help="share of the GPU memory, if several run at once")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--language", help="folder or hub id of the language model")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "reader.json")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    args = arguments(words)
    console = Console(stderr=True)
    try:
        if args.device.startswith("cuda"):
            torch.set_float32_matmul_precision("high")
            torch.cuda.set_per_process_memory_fraction(args.memory)
        reader = load_reader(args.weights, args.language, args.device, torch.float32 if args.exact else None)
        todo = []
        for name in args.sets:
            listed = items(args.data, name, args.split, args.limit)
            listed = other_pages(listed) if args.pages == "other" else listed
            ways = args.ways or (all_ways() if name in DOCUMENTS else NATURAL)
            todo += [(item, way) for item in listed for way in ways]
        weights = {"weights": reader.marks, "pages": args.pages, "machine": machine(args.device)}
        answers = Answers(args.out.with_suffix(".jsonl"), weights)
    except InputError as error:
        sys.exit(str(error))
    todo = [(item, way) for item, way in todo if (item.dataset, item.qid, way) not in answers.done]
    answer_all(todo, reader, args, answers, console)
    machines = [row["machine"] for row in answers.rows if "weights" in row]
    results = {"machines": machines, "split": args.split, "pages": args.pages, "rows": figures(answers.rows)}
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results["rows"]))
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
