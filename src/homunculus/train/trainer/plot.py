"""The log of a training run as a picture."""

from __future__ import annotations

import json
from pathlib import Path

from homunculus.errors import InputError
from homunculus.runtime.files import replacing

NOT_DRAWN = {"step", "seconds", "pages", "lr"}


def read_log(path: Path) -> list[dict[str, float]]:
    """Rows of a log; a half-written last line is left out."""
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def plot(log: Path, picture: Path) -> bool:
    """Draw every figure of a log against its step; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    if not log.is_file():
        raise InputError(f"there is no log {log}; give the folder of a training run")
    rows = read_log(log)
    names = sorted({name.removeprefix("val_") for row in rows for name in row} - NOT_DRAWN)
    figure = Figure(figsize=(4 * len(names) or 4, 3.2), layout="constrained")
    for at, name in enumerate(names, 1):
        axes = figure.add_subplot(1, len(names), at)
        for key, style, label in ((name, "-", "training"), (f"val_{name}", "o-", "validation")):
            points = [(row["step"], row[key]) for row in rows if key in row]
            if points:
                axes.plot(*zip(*points, strict=True), style, label=label, markersize=3, linewidth=1)
        axes.set_title(name)
        axes.set_xlabel("step")
        axes.legend()
    with replacing(picture) as unfinished:
        figure.savefig(unfinished, format="png", dpi=110)
    return True
