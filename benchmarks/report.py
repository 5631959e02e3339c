"""A report on the reader: all allocators on all sets, ablations, regions and gaze.

python benchmarks/report.py --data FOLDER --out out/report           # all; answers go to results/report
python benchmarks/report.py --data FOLDER --out out/report --limit 12 --part methods    # a small one
python benchmarks/report.py --data FOLDER --out out/report --part costs     # times of each setting, one after the other

Answers are appended; after a kill the same command continues. With --kept their scores, without the data, go into a
file that another machine continues from. Another reader's answers do not mix with them: they need another --results.
`tools/report_page.py` writes docs/report, which has the measurements of version 0.1.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from homunculus import InputError
from homunculus.allocators import list_allocators
from homunculus.eval import costs, gaze_agreement
from homunculus.eval.data import collect
from homunculus.eval.machine import machine
from homunculus.eval.packed import pack, unpack
from homunculus.eval.report import write
from homunculus.eval.runner import Batch, ModelSpec, key_in, plan, run
from homunculus.eval.settings import Setting, settings_of

ROOT = Path(__file__).parents[1]
BUDGETS = (64, 150, 273, 576)
DOCUMENTS = ("docvqa", "sroie", "funsd", "chartqa")
OTHERS = ("icdar2015", "daquar", "coco_vqa")
SEVEN = ("uniform", "random", "grid", "pyramid", "logpolar", "dag", "foveated")
MAIN = 273
TIMED = {"cuda": 16, "cpu": 4}  # questions at once when costs are measured


def ablations() -> list[Setting]:
    """What `foveated` owes to its parts, and to what it goes by."""
    names = [f"foveated:fovea={share}/query" for share in (0.2, 0.3, 0.4, 1.0)]  # 1: fovea only
    names += ["foveated:off=2/query", "foveated:error=None/query", "stratified:strata=8/query"]
    names += [f"foveated/{given}" for given in ("saliency", "information", "opponent", "oracle")]
    return [Setting.parse(f"{name}/{MAIN}") for name in names]


def bounds() -> list[Setting]:
    """As many tokens as a page has."""
    return [Setting.parse("uniform/query/1536"), Setting.parse("foveated/query/1536")]


def batches(args: argparse.Namespace) -> list[Batch]:
    """What a part of the report asks."""
    documents = collect([str(args.data)], limit=args.limit, only=DOCUMENTS)
    others = collect([str(args.data)], limit=args.limit or args.others, only=OTHERS)
    if args.part == "methods":
        settings = settings_of(SEVEN, ["query"], [MAIN])
        return plan([*documents, *others], settings, (), args.batch_size)
    settings = [*settings_of(list_allocators(), ["query"], BUDGETS), *bounds(), *ablations()]
    looks = [Setting.parse(f"{name}/query/{MAIN}") for name in ("foveated", "grid", "uniform")]
    return [*plan(documents, settings, looks, args.batch_size), *plan(others, settings, (), args.batch_size)]


def measure_costs(args: argparse.Namespace, spec: ModelSpec) -> None:
    """Time all settings, on the set with the largest pages."""
    count = args.limit or TIMED[args.device.split(":")[0]]
    items = collect([str(args.data)], limit=count, only=DOCUMENTS[:1])
    settings = [*settings_of(list_allocators(), ["query"], (MAIN, BUDGETS[0])), *bounds(), *ablations()]
    args.results.mkdir(parents=True, exist_ok=True)
    path = costs.measure(spec.load(), items, settings, args.results / costs.COSTS, machine(args.device))
    print(f"wrote {path}")


def answer(args: argparse.Namespace, spec: ModelSpec) -> None:
    """Ask what is missing."""
    config = {"data": [str(args.data)], "split": "val", "machine": machine(args.device)}
    begun, todo = time.monotonic(), batches(args)
    rows = run(todo, spec, args.results, args.workers, config=config)
    planned = {key for batch in todo for setting in batch.settings for key in batch.keys(setting)}
    print(f"{len(rows):,} answers, {len(planned - {key_in(row) for row in rows}):,} of {len(planned):,} are missing")
    print(f"this run took {time.monotonic() - begun:.0f} s")


def make_report(args: argparse.Namespace, spec: ModelSpec) -> None:
    """Ask what is missing, and write the report of all that there is."""
    if args.kept and args.kept.is_file() and not (args.results / "results.jsonl").is_file():
        print(f"{unpack(args.kept, collect([str(args.data)]), args.results):,} answers were there")
    answer(args, spec)
    if args.kept:
        pack(args.results, args.kept)
    gaze = ROOT / "results" / "gaze.json"
    if not args.no_gaze and not gaze.is_file():
        shutil.copy(gaze_agreement.measure(args.data, args.results), gaze)
    write_report(args.results, args.out, args.data)


def write_report(results: Path, out: Path, data: Path, title: str = "Report", note: str = "") -> None:
    """Write the report of a folder of results into another folder, with what is known of gaze."""
    gaze = ROOT / "results" / "gaze.json"
    if gaze.is_file():
        shutil.copy(gaze, results / gaze.name)
    report = write(results, title, data=data, note=note)
    out.mkdir(parents=True, exist_ok=True)
    for path in (report, *sorted(results.glob("*.png")), results / "summary.json"):
        shutil.copy(path, out / path.name)
    print(f"wrote {out / 'report.md'}")


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument(
        "--part",
        choices=("all", "methods", "costs"),
        default="all",
        help="methods: seven of them at 273 tokens; costs: what each takes, alone on the machine",
    )
    parser.add_argument("--limit", type=int, help="questions a set")
    parser.add_argument("--others", type=int, default=400, help="questions of sets that are no documents")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", default="")
    parser.add_argument("--language", default="", help="folder or hub id of the language model")
    parser.add_argument("--exact", action="store_true", help="float32, also where bfloat16 is usual")
    parser.add_argument("--no-gaze", action="store_true", help="do not measure it; results/gaze.json is used if there")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "report", help="folder of answers")
    parser.add_argument("--out", type=Path, required=True, help="folder of the report")
    parser.add_argument("--kept", type=Path, help="file of scores")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    args = arguments(words)
    spec = ModelSpec(weights=args.weights, language=args.language, device=args.device, exact=args.exact)
    try:
        if args.part == "costs":
            measure_costs(args, spec)
        else:
            make_report(args, spec)
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
