"""How fast training pages are laid out, drawn and labelled, what is on them, and whether the same seed repeats them.

python benchmarks/pages.py                           # built-in letters and words; writes results/pages_cpu.json
python benchmarks/pages.py --config configs/eye.toml --device cuda     # every canvas of a plan

layout   pages a second from the worker processes
drawing  pages a second from a draft to degraded pixels and labels on the device; the mean counts slow batches in full
both     pages a second through one into the other, as a run takes them

Only drawn pages are measured: real scans of a plan are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from allocators import times_ms
from homunculus import InputError
from homunculus.eval.machine import machine
from homunculus.reader.letters import BLANK
from homunculus.runtime.files import replacing
from homunculus.train.config import Canvas, DataSources, Recipe, read_plan
from homunculus.train.synth.drafts import Draft
from homunculus.train.synth.layouts import Typefaces, lay_out
from homunculus.train.tasks.page_source import PageSource
from homunculus.train.tasks.page_stream import PageStream
from homunculus.train.trainer.distributed import set_up

CANVAS = Canvas(1024, 768, 16)  # without a plan
COUNTED = 256  # pages whose contents are counted
WARM = 4  # batches drawn before the clock starts
CHECKED = 4  # batches drawn twice


def measure(source: PageSource, recipe: Recipe, canvas: Canvas, workers: int, batches: int) -> dict[str, object]:
    """All figures of one canvas."""
    recipe = replace(recipe, canvases=[canvas])
    stream = PageStream(recipe, source.atlas, source.texts, None, 0)
    rounds = batches + -batches % max(1, workers)  # whole turns of the workers
    layout, drafts = layout_speed(stream, workers, rounds, keep=batches)
    times = draw_times(source, drafts, recipe)
    both = speed_of_both(stream, source, workers, rounds)
    row = {"height": canvas.height, "width": canvas.width, "batch": canvas.batch}
    row |= {"layout_pages_s": layout, "draw_pages_s": canvas.batch / statistics.median(times)}
    row |= {"draw_mean_pages_s": canvas.batch / statistics.mean(times), "both_pages_s": both}
    row |= on_a_page(source, recipe, canvas) | labelled(drafts)
    return row | repeats(stream, source, drafts)


def layout_speed(stream: PageStream, workers: int, batches: int, keep: int) -> tuple[float, list[Draft]]:
    """Pages a second from the loader once nothing that it made ahead is left, and the first drafts."""
    loader = stream.loader(workers)
    drafts = [next(loader) for _ in range(2 * max(1, workers))][:keep]
    begin = time.perf_counter()
    for _ in range(batches):
        draft = next(loader)
        if len(drafts) < keep:
            drafts.append(draft)
    return batches * stream.recipe.canvases[0].batch / (time.perf_counter() - begin), drafts


def draw_times(source: PageSource, drafts: list[Draft], recipe: Recipe) -> list[float]:
    """Seconds of each draft from its tensors in memory to pixels on the device."""
    _draw((drafts[turn % len(drafts)] for turn in range(WARM)), source, recipe.degrade, WARM)
    torch.manual_seed(recipe.seed)
    device = source.device.type
    return [times_ms(lambda d=draft: source.render(d, recipe.degrade), 1, device)[0] / 1e3 for draft in drafts]


def speed_of_both(stream: PageStream, source: PageSource, workers: int, batches: int) -> float:
    """Pages a second when each batch is drawn as the workers hand it over and lay out the next."""
    loader = stream.loader(workers)
    _draw(loader, source, stream.recipe.degrade, 2 * max(1, workers))
    torch.manual_seed(stream.recipe.seed)  # the same random degradations as in `draw_times`
    begin = time.perf_counter()
    _draw(loader, source, stream.recipe.degrade, batches)
    return batches * stream.recipe.canvases[0].batch / (time.perf_counter() - begin)


def _draw(drafts: Iterator[Draft], source: PageSource, strength: float, batches: int) -> None:
    for _ in range(batches):
        source.render(next(drafts), strength)
    _finish(source.device)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def on_a_page(source: PageSource, recipe: Recipe, canvas: Canvas) -> dict[str, float]:
    """How many characters, words and questions there are on a page, on average."""
    rng = random.Random(recipe.seed)
    source.texts.reseed(recipe.seed)
    typefaces = Typefaces.of(source.atlas)
    kinds = rng.choices([*recipe.kinds] or [None], [*recipe.kinds.values()] or None, k=COUNTED)
    found = [lay_out(kind, canvas.height, canvas.width, source.texts, typefaces, rng) for kind in kinds]
    counts = {"characters": "glyphs", "words": "words", "questions": "questions"}
    return {name: statistics.mean(len(getattr(page, part)) for page in found) for name, part in counts.items()}


def labelled(drafts: list[Draft]) -> dict[str, float]:
    """How many questions to answer a page of a batch carries, on average."""
    asked = sum(int((draft.labels.questions != BLANK).any(2).sum()) for draft in drafts)
    return {"questions_asked": asked / sum(draft.size[0] for draft in drafts)}


def repeats(stream: PageStream, source: PageSource, drafts: list[Draft]) -> dict[str, object]:
    """Whether this process makes the drafts that the workers made, and whether a seed gives the same pixels twice."""
    drafts = drafts[:CHECKED]
    alike = all(same(draft, stream.batch(n)) for n, draft in enumerate(drafts))
    wrong = total = 0
    for n, draft in enumerate(drafts):
        twice = []
        for _ in range(2):
            torch.manual_seed(n)
            twice.append(source.render(draft, stream.recipe.degrade).pixels)
        wrong += int((twice[0] != twice[1]).sum())
        total += twice[0].numel()
    return {"same_drafts": alike, "same_pixels": wrong == 0, "share_of_pixels_that_differ": wrong / total}


def same(one: object, other: object) -> bool:
    """Whether two dataclasses of tensors hold exactly the same."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if is_dataclass(one):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return one == other


# ---- the command --------------------------------------------------------------------------------------------------


def show(results: dict, console: Console) -> None:
    title = f"Pages a second on {results['machine']['device']}, {results['workers']} workers; averages of a page"
    header = ("recipe", "canvas", "batch", "layout", "drawing, median", "mean", "both")
    contents = ("characters", "words", "questions", "same drafts", "same pixels")
    grid = Table(*header, *contents, title=title, title_justify="left")
    for row in results["rows"]:
        speeds = [f"{row[f'{what}_pages_s']:,.1f}" for what in ("layout", "draw", "draw_mean", "both")]
        counts = [f"{row[name]:,.1f}" for name in ("characters", "words", "questions")]
        checks = [str(row[name]).lower() for name in ("same_drafts", "same_pixels")]
        canvas = f"{row['height']} x {row['width']}"
        grid.add_row(row["recipe"], canvas, str(row["batch"]), *speeds, *counts, *checks)
    console.print(grid)


def plan_of(args: argparse.Namespace) -> tuple[DataSources, dict[str, Recipe]]:
    """Sources without scans, and the recipes to go through."""
    if args.config is None:
        return DataSources(workers=os.cpu_count() or 1), {"built-in": Recipe(1, [CANVAS])}
    plan = read_plan(args.config)
    if not plan.recipes:
        raise InputError(f"{args.config} has no recipe")
    return replace(plan.sources, scans=[]), plan.recipes


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, help="a plan, such as configs/eye.toml; none is needed")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=int, help="processes that lay out; as the plan says, or one a core")
    parser.add_argument("--batch", type=int, help="pages a batch; as the plan says")
    parser.add_argument("--batches", type=int, default=30, help="batches to measure")
    parser.add_argument("--out", type=Path, help="results file; results/pages_DEVICE.json unless told")
    args = parser.parse_args(words)
    for name, least in (("workers", 0), ("batch", 1), ("batches", 1)):
        given = getattr(args, name)
        if given is not None and given < least:
            parser.error(f"--{name} must be at least {least}, got {given}")
    args.out = args.out or Path(__file__).parents[1] / "results" / f"pages_{args.device}.json"
    return args


def run(args: argparse.Namespace, console: Console) -> dict:
    sources, recipes = plan_of(args)
    source = PageSource(sources, set_up(args.device))
    workers = sources.workers if args.workers is None else args.workers
    results = {"machine": machine(args.device), "config": args.config.name if args.config else "built-in"}
    results |= {"workers": workers, "batches": args.batches, "rows": []}
    for name, recipe in recipes.items():
        for canvas in recipe.canvases:
            canvas = replace(canvas, batch=args.batch or canvas.batch)
            console.print(f"{name}, {canvas.height} x {canvas.width}: {args.batches} batches of {canvas.batch} pages")
            results["rows"].append({"recipe": name} | measure(source, recipe, canvas, workers, args.batches))
    return results


def main(words: list[str] | None = None) -> None:
    args = arguments(words)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    try:
        results = run(args, console)
    except InputError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    show(results, console)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
