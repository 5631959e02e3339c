"""`homunculus train`: the networks that come with the package, trained again or further."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from homunculus.cli import options as opt
from homunculus.errors import InputError

app = typer.Typer(help="Train the networks: eye (encoder and scout), reader; plot a run.", no_args_is_help=True)


@app.command()
def eye(
    config: opt.Plan,
    out: opt.RunFolder = Path("runs/eye"),
    only: Annotated[str, typer.Option(help="encoder or scout; else both.")] = "",
    start: opt.Start = None,
    device: opt.FastDevice = "",
    minutes: opt.Minutes = 0,
) -> None:
    """Train the encoder and the scout by a plan; a killed run continues when the command is given again.

    [dim]homunculus train eye --config configs/eye.toml --out runs/eye[/dim]
    [dim]torchrun --nproc-per-node 4 -m homunculus train eye --config configs/eye.toml[/dim]
    """
    from homunculus.train.config import EYE

    if only and only not in EYE:
        raise InputError(f"--only must be encoder or scout, got {only!r}")
    _train([only] if only else list(EYE), opt.RunOptions(config, out, start, device, minutes))


@app.command()
def reader(
    config: opt.Plan,
    out: opt.RunFolder = Path("runs/reader"),
    stage: Annotated[str, typer.Option(help="finder, recognizer or answer; else all in turn.")] = "",
    start: opt.Start = None,
    device: opt.FastDevice = "",
    minutes: opt.Minutes = 0,
) -> None:
    """Train the reader's networks: line finder, recogniser, LoRA of the language model.

    [dim]homunculus train reader --config configs/reader.toml --stage recognizer --out runs/reader[/dim]
    [dim]homunculus train transcripts runs/reader --data data --out runs/transcripts.jsonl.gz[/dim]
    [dim]homunculus train reader --config configs/reader.toml --stage answer --out runs/reader[/dim]
    """
    from homunculus.train.config import STAGES

    if stage and stage not in STAGES:
        raise InputError(f"--stage must be one of {', '.join(STAGES)}, got {stage!r}")
    _train([stage] if stage else list(STAGES), opt.RunOptions(config, out, start, device, minutes))


def _train(names: list[str], options: opt.RunOptions) -> None:
    """Train the sections of a plan in turn."""
    from homunculus.train.config import read_plan
    from homunculus.train.tasks.registry import TASKS
    from homunculus.train.trainer.distributed import set_up, take_down
    from homunculus.train.trainer.trainer import Trainer

    plan = read_plan(options.config)
    recipes = {name: plan.recipes[name] for name in names if name in plan.recipes}
    if not recipes:
        raise InputError(f"{options.config} has no section [{names[0]}]")
    started, seconds = time.monotonic(), 60 * options.minutes
    device = set_up(options.device or _usual_device())
    for name, recipe in recipes.items():
        source = TASKS[name].source(plan.sources, device)
        trainer = Trainer(name, recipe, source, options.out / name, plan.sources.workers, options.start)
        trainer.run(seconds - (time.monotonic() - started) if seconds else math.inf)
    take_down()


def _usual_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@app.command()
def plot(run: Annotated[Path, typer.Argument(help="Folder of one network's run, such as runs/eye/scout.")]) -> None:
    """Draw the log of a run as log.png beside it."""
    from homunculus.train.trainer.plot import plot as draw

    if not draw(run / "log.jsonl", run / "log.png"):
        raise InputError("plots need matplotlib: pip install 'homunculus[train]'")
    typer.echo(f"wrote {run / 'log.png'}")


@app.command()
def ship(
    run: Annotated[Path, typer.Argument(help="Folder of a run, such as runs/eye or runs/reader.")],
    out: Annotated[Path, typer.Argument(help="Folder to write int8 weights and their hashes to.")],
    which: Annotated[str, typer.Option(help="last or best on validation pages.")] = "last",
) -> None:
    """Store a run's weights in int8, with hashes, as the package carries them.

    [dim]homunculus train ship runs/eye src/homunculus/reader/weights[/dim]
    [dim]homunculus train ship runs/reader src/homunculus/reader/weights[/dim]
    """
    from homunculus.train.trainer.export import export_weights

    for name, size in export_weights(run, out, which).items():
        typer.echo(f"{name}: {size / 1e6:.1f} MB")


@app.command()
def transcripts(
    weights: opt.ShippedWeights,
    data: Annotated[list[Path], typer.Option(help="Data folders such as data/docvqa/train; may be given repeatedly.")],
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("runs/transcripts.jsonl.gz"),
    device: opt.FastDevice = "",
) -> None:
    """Write what line finder and recogniser read on training pages; the language model learns from it.

    [dim]homunculus train transcripts runs/weights --data data/docvqa/train --data data/funsd/train[/dim]
    """
    from homunculus.train.scans.transcripts import transcribe

    count = transcribe(weights, data, out, device or _usual_device())
    typer.echo(f"{count} pages, in {out}")


@app.command()
def calibrate(
    weights: opt.ShippedWeights,
    data: Annotated[Path, typer.Option(help="Folder of the sets whose train pages were learned from.")],
    sets: Annotated[str, typer.Option(help="Names of the sets.")] = "docvqa,sroie,funsd,chartqa",
    limit: Annotated[int, typer.Option(min=1, help="Questions of each set.")] = 100,
    photos: Annotated[bool, typer.Option(help="Answers about photographs; name their sets.")] = False,
    language: opt.Language = "",
    device: opt.Device = "cpu",
) -> None:
    """Fit the reader's confidence on held-back pages, and store it with the weights of its LoRA.

    [dim]homunculus train calibrate src/homunculus/reader/weights --data data[/dim]
    [dim]homunculus train calibrate src/homunculus/reader/weights --data data --photos --sets daquar,caltech101[/dim]
    """
    from homunculus.train.trainer.calibration import calibrate as fit

    typer.echo(str(fit(weights, data, opt.parse_list(sets), limit, device, language or None, photos)))


@app.command()
def kind(
    weights: opt.ShippedWeights,
    data: Annotated[Path, typer.Option(help="Folder of the sets whose train images were learned from.")],
    documents: Annotated[str, typer.Option(help="Names of sets of documents.")] = "docvqa,funsd,sroie,chartqa",
    photos: Annotated[str, typer.Option(help="Names of sets of photographs.")] = "daquar,caltech101,flickr8k",
    limit: Annotated[int, typer.Option(min=1, help="Images of each set.")] = 100,
    device: opt.Device = "cpu",
) -> None:
    """Fit what tells documents from photographs, and store it with the weights of the photographs' adapter.

    [dim]homunculus train kind src/homunculus/reader/weights --data data[/dim]
    """
    from homunculus.train.trainer.kinds import fit_kind

    _, right = fit_kind(weights, data, opt.parse_list(documents), opt.parse_list(photos), limit, device)
    typer.echo(f"{right:.1%} of the images are told rightly")
