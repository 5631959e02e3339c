"""The report of this repository: all allocators and peers on all sets, ablations, regions and gaze.

python benchmarks/report.py --data FOLDER --device cuda --workers 12   # answers: results/report; report: docs/report
python benchmarks/report.py --data FOLDER --limit 12 --part methods    # a small one, on a CPU
python benchmarks/report.py --data FOLDER --device cuda --part costs   # what each way takes: results/costs_cuda.jsonl

Answers are appended; after a kill the same command goes on. docs/report gets report and plots, nothing of the data;
results/report.jsonl.xz keeps the scores, from which another machine that has the data goes on; results/costs_*.jsonl
what ways take on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from homunculus.allocators import list_allocators
from homunculus.eval import costs, gazing
from homunculus.eval.data import collect
from homunculus.eval.machine import machine
from homunculus.eval.packed import pack, unpack
from homunculus.eval.report import write
from homunculus.eval.runner import Batch, Who, key_in, plan, run
from homunculus.eval.ways import Way, ways_of
from homunculus.peers import list_peers

ROOT = Path(__file__).parents[1]
BUDGETS = (64, 150, 273, 576)
DOCUMENTS = ("docvqa", "sroie", "funsd", "chartqa")
OTHERS = ("icdar2015", "daquar", "coco_vqa")
TWELVE = ("uniform", "random", "grid", "pyramid", "logpolar", "dag", "foveated")
TWELVE += ("pooling", "visionzip", "divprune", "cdpruner", "pyramid-pruning")
MAIN = 273
TIMED = {"cuda": 16, "cpu": 4}  # questions at once when costs are measured


def ablations() -> list[Way]:
    """What `foveated` owes to its parts, and to what it goes by."""
    names = [f"foveated:fovea={share}/query" for share in (0.2, 0.3, 0.4, 1.0)]  # 1: fovea only
    names += ["foveated:off=2/query", "stratified:strata=8/query"]
    names += [f"foveated/{given}" for given in ("saliency", "information", "opponent", "oracle")]
    return [Way.of(f"{name}/{MAIN}") for name in names]


def batches(args: argparse.Namespace, part: str) -> list[Batch]:
    """What a part of the report asks."""
    documents = collect([str(args.data)], limit=args.limit, only=DOCUMENTS)
    others = collect([str(args.data)], limit=args.limit or args.others, only=OTHERS)
    if part == "methods":
        ways = ways_of(TWELVE, ["query"], [MAIN])
        return plan([*documents, *others], ways, (), args.batch)
    every = ways_of([*list_allocators(), *list_peers()], ["query"], BUDGETS)
    looks = [
        Way.of(f"{name}/{MAIN}") for name in ("foveated/query", "grid/query", "uniform/query", "visionzip", "cdpruner")
    ]
    return [
        *plan(documents, [*every, *bounds(), *ablations()], looks, args.batch),
        *plan(others, [*every, *bounds(), *ablations()], (), args.batch),
    ]


def measure_costs(args: argparse.Namespace, who: Who) -> None:
    """Time all ways, on the set with the largest pages."""
    kind = args.device.split(":")[0]
    items = collect([str(args.data)], limit=args.limit or TIMED[kind], only=DOCUMENTS[:1])
    ways = ways_of([*list_allocators(), *list_peers()], ["query"], (MAIN, BUDGETS[0]))
    path = costs_of(kind)
    costs.measure(who.asker(), items, [*ways, *bounds(), *ablations()], path, machine(args.device))
    print(f"wrote {path}")


def costs_of(kind: str) -> Path:
    """What was measured on such a kind of device."""
    return ROOT / "results" / f"costs_{kind}.jsonl"


def bounds() -> list[Way]:
    """As many tokens as a page has, or as peers choose from."""
    return [Way.of("uniform/query/1536")]


def make_report(args: argparse.Namespace, who: Who) -> None:
    """Ask what is missing, and write the report of all that there is."""
    about = {"data": [str(args.data)], "split": "val", "machine": machine(args.device)}
    begun = time.monotonic()
    kept = args.kept or (ROOT / "results" / "report.jsonl.xz" if args.part == "all" and not args.limit else None)
    if kept and kept.is_file() and not (args.results / "results.jsonl").is_file():
        print(f"{unpack(kept, collect([str(args.data)]), args.results):,} answers were there")
    todo = batches(args, args.part)
    rows = run([] if args.as_it_is else todo, who, args.results, args.workers, about=about)
    planned = {key for batch in todo for way in batch.ways for key in batch.wanted(way)}
    missing = len(planned - {key_in(row) for row in rows})
    print(f"{len(rows):,} answers, {missing:,} of {len(planned):,} planned are missing")
    print(f"this run took {time.monotonic() - begun:.0f} s")
    if kept:
        pack(args.results, kept)
    gaze = ROOT / "results" / "gaze.json"
    if not args.no_gaze and not gaze.is_file():
        shutil.copy(gazing.measure(args.data, args.results), gaze)
    if gaze.is_file():
        shutil.copy(gaze, args.results / gaze.name)
    measured = [path for path in map(costs_of, TIMED) if path.is_file()]  # a GPU's first
    if kept and measured:
        shutil.copy(measured[0], args.results / costs.COSTS)
    report = write(args.results, "The first report", data=args.data)
    args.out.mkdir(parents=True, exist_ok=True)
    for path in (report, *sorted(args.results.glob("*.png")), args.results / "summary.json"):
        shutil.copy(path, args.out / path.name)
    print(f"wrote {args.out / 'report.md'}")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument(
        "--part",
        choices=("all", "methods", "costs"),
        default="all",
        help="methods: twelve of them at 273 tokens; costs: what each takes, alone on the machine",
    )
    parser.add_argument("--limit", type=int, help="questions a set")
    parser.add_argument("--others", type=int, default=400, help="questions of sets that are no documents")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", default="")
    parser.add_argument("--exact", action="store_true", help="float32 on a GPU too")
    parser.add_argument("--no-gaze", action="store_true", help="do not measure it; results/gaze.json is used if there")
    parser.add_argument("--as-it-is", action="store_true", help="ask nothing more; report what there is")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "report")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "report")
    parser.add_argument("--kept", type=Path, help="file of scores: results/report.jsonl.xz for the whole report")
    args = parser.parse_args(words)
    who = Who(weights=args.weights, device=args.device, exact=args.exact)
    if args.part == "costs":
        measure_costs(args, who)
    else:
        make_report(args, who)


if __name__ == "__main__":
    main()
