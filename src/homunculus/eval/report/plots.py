"""Pictures of a report: accuracy against tokens, against time, and what was looked at where it went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageDraw

from homunculus.eval.data import Box
from homunculus.eval.metrics import metric_of
from homunculus.eval.report.table import Table
from homunculus.runtime.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from homunculus.eye import Glance

WIDE = 4.2  # inches of a panel
LEGEND = 2.4  # panels that the names of all methods need below them
SIDE = 420  # pixels of a look's longer side
LEVELS = ("#d1495b", "#edae49", "#66a182", "#2e78a7", "#6c567b", "#999999", "#bbbbbb", "#dddddd")


def pareto(table: Table, methods: Sequence[str], path: Path) -> None:
    """Score against mean number of tokens, a panel a set; the best at each number stand on the line."""
    _panels(table, methods, path, "tokens", partial(table.middle, "tokens"))


def costs(table: Table, methods: Sequence[str], path: Path) -> None:
    """Score against milliseconds a question."""
    _panels(table, methods, path, "milliseconds a question", table.ms)


def _panels(
    table: Table, methods: Sequence[str], path: Path, label: str, cost: Callable[[str, int, list[str]], float | None]
) -> None:
    from matplotlib.figure import Figure

    sets = [name for name in table.sets if any(cost(m, b, [name]) for m in methods for b in table.budgets)]
    columns = min(4, len(sets))
    rows = -(-len(sets) // columns)
    figure = Figure(figsize=(WIDE * max(columns, LEGEND), 3.4 * rows + 0.8), layout="constrained")
    handles: dict[str, Any] = {}
    for i, dataset in enumerate(sets):
        axes = figure.add_subplot(rows, columns, i + 1)
        front: list[tuple[float, float]] = []
        for n, method in enumerate(methods):
            scores = [(cost(method, b, [dataset]), table.score(dataset, method, b)) for b in table.budgets]
            points = sorted((where, score["value"]) for where, score in scores if score and where is not None)
            if points:
                handles[method] = _line(axes, points, n, method)
                front += points
        best = _best(front)
        axes.plot(*zip(*best, strict=True), color="black", linewidth=3, alpha=0.15, zorder=0) if best else None
        axes.set(title=dataset, xlabel=label, ylabel=metric_of(dataset))
        _log_scale(axes)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6, fontsize=7)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=90)


def _line(axes: Axes, points: Sequence[tuple[float, float]], n: int, label: str) -> Any:
    """The line of the n-th method, in a colour and with a marker of its own."""
    style: dict[str, Any] = {
        "marker": "os^vDPX*"[n % 8],
        "markersize": 4,
        "linewidth": 1,
        "color": f"C{n % 10}",
        "label": label,
    }
    return axes.plot(*zip(*points, strict=True), "-" if n < 10 else "--", **style)[0]


def _log_scale(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="both", labelsize=7)


def _best(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that no other beats at the same or a lower cost."""
    found: list[tuple[float, float]] = []
    for where, score in sorted(points, key=lambda point: (point[0], -point[1])):
        if not found or score > found[-1][1]:
            found.append((where, score))
    return found


def look(glance: Glance, boxes: Sequence[Box]) -> Image.Image:
    """Chosen cells by level, fixations, and the answer's boxes, on white: nothing of the image itself is shown."""
    tree = glance.tree
    scale = SIDE / max(tree.width, tree.height)
    canvas = Image.new("RGB", (max(1, round(tree.width * scale)) + 2, max(1, round(tree.height * scale)) + 2), "white")
    draw = ImageDraw.Draw(canvas)
    entries = zip(glance.selection.boxes[0].tolist(), glance.selection.levels[0].tolist(), strict=True)
    for box, level in sorted(entries, key=lambda entry: -entry[1]):
        colour = LEVELS[min(round(level), len(LEVELS) - 1)]
        draw.rectangle([v * scale + 1 for v in box], outline=colour, fill=_paler(colour))
    for answer in boxes:
        draw.rectangle([v * scale + 1 for v in answer], outline="black", width=2)
    for x, y in glance.fixations.tolist():
        x, y = x * scale + 1, y * scale + 1
        draw.line((x - 7, y, x + 7, y), fill="black", width=2)
        draw.line((x, y - 7, x, y + 7), fill="black", width=2)
    return canvas


def _paler(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return (red + 3 * 255) // 4, (green + 3 * 255) // 4, (blue + 3 * 255) // 4


def gallery(looks: Sequence[Image.Image], path: Path) -> None:
    """Looks side by side in one picture."""
    wide, high = max(look.width for look in looks), max(look.height for look in looks)
    columns = min(4, len(looks))
    sheet = Image.new("RGB", (columns * (wide + 12), -(-len(looks) // columns) * (high + 12)), "#f0f0f0")
    for i, look in enumerate(looks):
        sheet.paste(look, (i % columns * (wide + 12) + 6, i // columns * (high + 12) + 6))
    with replacing(path) as unfinished:
        sheet.save(unfinished, format="PNG", optimize=True)
