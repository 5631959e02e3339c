"""How well the reader answers, and how often the answer is among the lines that it read.

python benchmarks/reader.py --data FOLDER                                   # writes results/reader.json
python benchmarks/reader.py --data FOLDER --sets funsd --ways foveated/query/273,uniform/query/64 --limit 5
python benchmarks/reader.py --data FOLDER --wrong-page                      # writes results/reader_wrong_page.json

Every setting (ALLOCATOR/RELEVANCE/BUDGET) answers the same questions with the same weights. Answers are appended to a
folder beside the summary, results/reader/, as they come; after a kill the same command continues. `homunculus report
results/reader` writes a full report on them. Intervals hold 95 % of 1,000 draws of pages. --wrong-page asks each
question about the next page of its set and counts the answers that are given with a confidence above 0.5.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from homunculus import InputError
from homunculus.eval.data import Item, items
from homunculus.eval.machine import machine
from homunculus.eval.metrics import interval, metric_of
from homunculus.eval.runner import BATCH_SIZE, Batch, ModelSpec, Row, key_in, plan, run
from homunculus.eval.settings import Setting
from homunculus.reader.prompt import MAX_TOKENS, NOT_FOUND
from homunculus.reader.weights import device_of, usual_dtype
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("docvqa", "funsd", "sroie", "chartqa")
SETS = (*DOCUMENTS, "icdar2015", "daquar", "coco_vqa")
MAIN = "foveated/query/273"
SETTINGS = [f"foveated/query/{budget}" for budget in (273, 64, 150, 1536)]
SETTINGS += [f"{name}/query/{budget}" for name in ("uniform", "grid", "dag") for budget in (273, 64)]
ON_PHOTOS = [MAIN, "uniform/query/273"]
CONFIDENT, RIGHT, BINS = 0.5, 0.5, 10


# ---- what is asked --------------------------------------------------------------------------------------------------


def questions(folder: Path, name: str, split: str, limit: int | None) -> list[Item]:
    """The questions about the first pages of a set."""
    listed = items(folder, name, split)
    pages = list(dict.fromkeys(item.image for item in listed))[:limit]
    return [item for item in listed if item.image in set(pages)]


def of_next_page(listed: Sequence[Item]) -> list[Item]:
    """Each question with the next page of its set, the last with the first: most of these do not answer it."""
    pages = list(dict.fromkeys(item.image for item in listed))
    if len(pages) < 2:
        raise InputError("--wrong-page needs at least two pages of each set")
    following = dict(zip(pages, pages[1:] + pages[:1], strict=True))
    return sorted((replace(item, image=following[item.image], boxes=()) for item in listed), key=lambda i: i.image)


def batches(args: argparse.Namespace) -> list[Batch]:
    """Everything that is asked, set by set."""
    found = []
    for name in args.sets:
        listed = questions(args.data, name, args.split, args.limit)
        listed = of_next_page(listed) if args.wrong_page else listed
        usual = [MAIN] if args.wrong_page else SETTINGS if name in DOCUMENTS else ON_PHOTOS
        found += plan(listed, [Setting.parse(text) for text in args.ways or usual], (), args.batch_size)
    return found


# ---- figures --------------------------------------------------------------------------------------------------------


def figures(rows: Sequence[Row], wrong_page: bool = False) -> list[dict[str, Any]]:
    """A row for each set and setting, shares with intervals over pages."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["dataset"], f"{row['allocator']}/{row['relevance']}/{row['budget']}"].append(row)
    return [figure(name, setting, group, wrong_page) for (name, setting), group in groups.items()]


def figure(name: str, setting: str, rows: Sequence[Row], wrong_page: bool) -> dict[str, Any]:
    pages = [row["image"] for row in rows]
    sure = [row["confidence"] for row in rows]
    refused = [row["prediction"].lower() == NOT_FOUND for row in rows]
    found: dict[str, Any] = {"dataset": name, "way": setting, "n": len(rows), "pages": len(set(pages))}
    found["confident"] = interval([c > CONFIDENT and not r for c, r in zip(sure, refused, strict=True)], pages)
    found["refused"] = interval(refused, pages)
    if wrong_page:
        return found
    right = [row["score"] >= RIGHT for row in rows]
    found |= {"metric": metric_of(name), "score": interval([row["score"] for row in rows], pages)}
    found |= {"found": interval([row["found"] for row in rows], pages)}
    found |= {"calibration_error": calibration_error(sure, right), "ms": float(np.median([row["ms"] for row in rows]))}
    return found


def calibration_error(sure: Sequence[float], right: Sequence[bool]) -> float:
    """Expected calibration error: how far confidence and share of right answers differ, over bins of confidence."""
    p, hit = np.asarray(sure, float), np.asarray(right, float)
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    return float(sum(abs(p[bins == b].mean() - hit[bins == b].mean()) * (bins == b).mean() for b in set(bins.tolist())))


# ---- tables, as docs/reader.md has them -----------------------------------------------------------------------------


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line a setting, a column a set: score with its interval, and the share of answers among the lines read."""
    by_key = {(row["way"], row["dataset"]): row for row in rows}
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    heads = [f"{name}, n {next(row['n'] for row in rows if row['dataset'] == name)}" for name in sets]
    asked = dict.fromkeys(row["way"] for row in rows)
    listed = dict.fromkeys([*(setting for setting in SETTINGS if setting in asked), *asked])
    lines = [f"| way | {' | '.join(heads)} |", "|---" * (len(sets) + 1) + "|"]
    lines += [f"| {setting} | {' | '.join(cell(by_key.get((setting, name))) for name in sets)} |" for setting in listed]
    return "\n".join(lines) + "\n"


def cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return (
        f"{row['score']['value']:.3f} ({row['score']['low']:.3f} to {row['score']['high']:.3f}), {share(row['found'])}"
    )


def share(figure: dict[str, float]) -> str:
    return f"{100 * figure['value']:.0f} %"


def trust(own: Sequence[dict[str, Any]], wrong: Sequence[dict[str, Any]], setting: str = MAIN) -> str:
    """What confidence is worth, a line a set; `wrong` are rows about the wrong page."""
    elsewhere = {row["dataset"]: row for row in wrong if row["way"] == setting}
    lines = [
        "| set | n | calibration error | confident | confident, wrong page | refused, wrong page |",
        "|---" * 6 + "|",
    ]
    for row in own or wrong:
        if row["way"] != setting:
            continue
        other = elsewhere.get(row["dataset"])
        cells = [row["dataset"], str(row["n"])]
        cells += [f"{row['calibration_error']:.3f}", share(row["confident"])] if own else ["", ""]
        cells += [share(other["confident"]), share(other["refused"])] if other else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# ---- the command ----------------------------------------------------------------------------------------------------


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--split", default="val")
    parser.add_argument("--sets", type=lambda t: t.split(","), default=list(DOCUMENTS), help=f"of {','.join(SETS)}")
    parser.add_argument("--ways", type=lambda t: t.split(","), help="ALLOCATOR/RELEVANCE/BUDGET each")
    parser.add_argument("--limit", type=int, help="pages of each set; all unless told")
    parser.add_argument("--wrong-page", action="store_true", help="ask about the next page of the set")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--max-text-tokens", type=int, default=MAX_TOKENS, help="of the page's text")
    parser.add_argument("--exact", action="store_true", help="float32, also where bfloat16 is usual")
    parser.add_argument("--weights", default="", help="folder of weights; else the shipped ones")
    parser.add_argument("--language", default="", help="folder or hub id of the language model")
    parser.add_argument("--out", type=Path, help="summary; answers go to the folder of that name without .json")
    args = parser.parse_args(words)
    name = "reader_wrong_page" if args.wrong_page else "reader"
    args.out = args.out or ROOT / "results" / f"{name}.json"
    return args


def command(words: Sequence[str]) -> str:
    """The command as anybody can give it: paths of this machine by name."""
    shown = " ".join(["python benchmarks/reader.py", *words])
    return re.sub(r"--(data|weights|language|out)[= ]\S+", lambda found: f"--{found[1]} {found[1].upper()}", shown)


def measure(args: argparse.Namespace, words: Sequence[str]) -> dict[str, Any]:
    """Answer what is missing, and sum up what was asked now."""
    spec = ModelSpec(
        weights=args.weights,
        language=args.language,
        device=args.device,
        exact=args.exact,
        max_text_tokens=args.max_text_tokens,
    )
    todo, here = batches(args), machine(args.device)
    split = f"{args.split}, next page" if args.wrong_page else args.split  # answers of both do not mix
    folder = args.out.with_suffix("")
    config = {"data": [str(args.data.resolve())], "split": split, "machine": here}
    every = run(todo, spec, folder, args.workers, console=Console(stderr=True), config=config)
    by_key = {key_in(row): row for row in every}
    asked = [by_key[key] for batch in todo for setting in batch.settings for key in batch.keys(setting)]
    begun = json.loads((folder / "run.json").read_text())["machine"]
    return {
        "command": command(words),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machines": [begun, here] if begun != here else [here],
        "weights": spec.fingerprint()["reader"],
        "dtype": str(torch.float32 if args.exact else usual_dtype(device_of(args.device))).removeprefix("torch."),
        "split": args.split,
        "limit": args.limit,
        "wrong_page": args.wrong_page,
        "rows": figures(asked, args.wrong_page),
    }


def main(words: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if words is None else words
    args = arguments(words)
    try:
        results = measure(args, words)
    except InputError as error:
        sys.exit(f"error: {error}")
    print(trust([], results["rows"]) if args.wrong_page else table(results["rows"]))
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(results, indent=1) + "\n")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
