"""`homunculus train`: the networks that come with the package, trained again or further."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homunculus.errors import InputError

app = typer.Typer(help="Train the networks: eye (encoder and scout); plot a run.", no_args_is_help=True)


@app.command()
def eye(
    config: Annotated[Path, typer.Option("--config", help="The plan, such as configs/eye.toml.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; an unfinished run in it is taken up again.")] = Path(
        "runs/eye"
    ),
    only: Annotated[str, typer.Option(help="encoder or scout; both if not given.")] = "",
    start: Annotated[Path | None, typer.Option(help="Folder of weights to start from.")] = None,
    device: Annotated[str, typer.Option(help="cuda, cpu; cuda where there is one.")] = "",
    minutes: Annotated[float, typer.Option(min=0, help="Stop after so long, saved; 0 for no limit.")] = 0,
) -> None:
    """Train the encoder and the scout by a plan; kill it and start it again, and it goes on where it was.

    [dim]homunculus train eye --config configs/eye.toml --out runs/eye[/dim]
    [dim]torchrun --nproc-per-node 4 -m homunculus.cli train eye --config configs/eye.toml[/dim]
    """
    import math

    import torch

    from homunculus.reader.weights import checked
    from homunculus.train.loop import TASKS, Pages, Trainer, set_up, take_down
    from homunculus.train.recipe import read_plan

    if only and only not in TASKS:
        raise InputError(f"--only must be encoder or scout, got {only!r}")
    plan = read_plan(config)
    recipes = {"encoder": plan.encoder, "scout": plan.scout}
    wanted = {name: recipe for name, recipe in recipes.items() if recipe and only in ("", name)}
    if not wanted:
        raise InputError(f"{config} has no section [{only or 'encoder'}]")
    pages = Pages(plan.sources, set_up(device or ("cuda" if torch.cuda.is_available() else "cpu")))
    for name, recipe in wanted.items():
        weights = checked(start, name) if start else None
        trainer = Trainer(name, recipe, pages, out / name, plan.sources.workers, weights)
        trainer.run(60 * minutes or math.inf)
    take_down()


@app.command()
def plot(run: Annotated[Path, typer.Argument(help="Folder of one network's run, such as runs/eye/scout.")]) -> None:
    """Draw the log of a run as log.png beside it."""
    from homunculus.train.plot import plot as draw

    if not draw(run / "log.jsonl", run / "log.png"):
        raise InputError("plots need matplotlib: pip install 'homunculus[train]'")
    typer.echo(f"wrote {run / 'log.png'}")


@app.command()
def ship(
    run: Annotated[Path, typer.Argument(help="Folder of a run that holds encoder/ and scout/, such as runs/eye.")],
    out: Annotated[Path, typer.Argument(help="Folder to write int8 weights and their hashes to.")],
    which: Annotated[str, typer.Option(help="last or best on held-back pages.")] = "last",
) -> None:
    """Store a run's weights in int8, with hashes, as the package carries them."""
    from homunculus.reader import Encoder, Scout
    from homunculus.reader.weights import about, load, save, write_hashes

    kinds: dict[str, type[Encoder | Scout]] = {"encoder": Encoder, "scout": Scout}
    found = {name: run / name / f"{which}.safetensors" for name in kinds}
    found = {name: path for name, path in found.items() if path.is_file()}
    if not found:
        raise InputError(f"there are no {which}.safetensors in {run}/encoder or {run}/scout; train them first")
    out.mkdir(parents=True, exist_ok=True)
    for name, path in found.items():
        header = about(path)
        model = kinds[name](**header.get("sizes", {}))
        load(model, path)
        save(model, out / f"{name}.safetensors", header)
        typer.echo(f"{name}: {(out / f'{name}.safetensors').stat().st_size / 1e6:.1f} MB")
    write_hashes(out)
