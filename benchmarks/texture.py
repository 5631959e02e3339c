"""What texture units would do to answers: the reader, with cells between levels as they sample them.

python benchmarks/texture.py --data FOLDER            # writes results/texture_answers.json
python benchmarks/texture.py --data FOLDER --limit 9  # a small one

Cells of the tree are the same bytes by every way (`benchmarks/kernels.py` says so), so that only rules that leave it
can tell: `uniform` at 273 tokens. Three ways to sample its cells: ours (scaled to the level in between), trilinear with
exact weights, and trilinear with the units' 8 bits, by `kernels.texture.emulate_sample`, which a GPU is tested against.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import torch
from rich.progress import Progress
from torch import Tensor

from homunculus import tokens
from homunculus.eval.asker import Ask, row_of, told
from homunculus.eval.data import Item, collect
from homunculus.eval.machine import machine
from homunculus.eval.runner import dumped, read
from homunculus.eval.table import Table
from homunculus.eval.verdict import points
from homunculus.eval.ways import Way
from homunculus.eye import Eye, Glance
from homunculus.files import replacing
from homunculus.image import load
from homunculus.kernels.texture import emulate_sample
from homunculus.reader import load_reader
from homunculus.reader.model import Reader

ROOT = Path(__file__).parents[1]
SETS = ("docvqa", "sroie", "funsd", "chartqa")
BUDGET = 273
WAYS = {"ours": None, "trilinear": 30, "texture units": 8}  # bits of weights


def cells(glance: Glance, bits: int | None) -> Tensor:
    """Pixels of a glance's cells: ours, or blended with weights of so many bits."""
    levels, chosen = glance.scene.levels, glance.selection
    if bits is None:
        return tokens.patches(levels, chosen)[0]
    places = chosen.boxes, chosen.levels, chosen.cell, chosen.sizes, chosen.mask
    return emulate_sample(levels, *places, bits=bits)[0]


@torch.no_grad()
def answers(reader: Reader, items: Sequence[Item]) -> Iterator[list[dict]]:
    """Rows of results for the questions about a page, one for each way to sample."""
    eye = Eye("uniform", "query", BUDGET, scout=reader.scout)
    for image, group in groupby(items, key=lambda item: item.image):
        about, scene, rows = list(group), eye.scene(load(image).to(reader.device)), list[dict]()
        looks = eye.look_for(scene, [item.question for item in about])
        looks = [replace(look, selection=look.selection.in_rows()) for look in looks]
        for name, bits in WAYS.items():
            seen = [replace(look, cells=cells(look, bits)) for look in looks]
            *_, said = reader.reply(seen, most=32)
            for item, glance, answer in zip(about, seen, said, strict=True):
                way = Way.of(f"uniform/query/{BUDGET}")
                rows.append(row_of(Ask(item, item), way, told(answer, glance), 0.0) | {"allocator": name})
        yield rows


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--limit", type=int, default=30, help="questions a set")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "texture_answers.json")
    args = parser.parse_args(words)
    items = collect([str(args.data)], limit=args.limit, only=SETS)
    kept = args.out.with_suffix(".jsonl")  # after a kill the same command goes on from here
    there = {(row["dataset"], row["qid"]) for row in read(kept)}
    left = [item for item in items if (item.dataset, item.qid) not in there]
    with Progress() as progress, kept.open("a", encoding="utf-8") as file:
        bar = progress.add_task("questions", total=len(items), completed=len(items) - len(left))
        for rows in answers(load_reader(device=args.device), left) if left else ():
            file.write("".join(map(dumped, rows)))
            file.flush()
            progress.advance(bar, len(rows) // len(WAYS))
    wanted = {(item.dataset, item.qid) for item in items}
    rows = [row for row in read(kept) if (row["dataset"], row["qid"]) in wanted]
    table = Table(rows)
    found = {"machine": machine(args.device), "budget": BUDGET, "questions": len(items), "rows": []}
    for name in WAYS:
        way, ours = (f"{name}/query", BUDGET), ("ours/query", BUDGET)
        gap = None if name == "ours" else table.against(table.sets, way, ours)
        scores = {dataset: table.score(dataset, *way)["value"] for dataset in table.sets}
        other = sum(a["prediction"] != b["prediction"] for a, b in zip(of(rows, name), of(rows, "ours"), strict=True))
        found["rows"].append({"way": name, "scores": scores, "difference": gap, "other answers": other})
        shown = "  ".join(f"{dataset} {100 * score:.1f}" for dataset, score in scores.items())
        print(f"{name:14}{shown}  {points(gap)}  {other} answers other")
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(found, indent=1) + "\n")
    kept.unlink()  # another reader would answer otherwise
    print(f"wrote {args.out}")


def of(rows: Sequence[dict], name: str) -> list[dict]:
    return [row for row in rows if row["allocator"] == name]


if __name__ == "__main__":
    main()
