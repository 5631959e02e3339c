"""The part of docs/performance.md on kernels; `performance_page.py` writes the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from published import describe_machine, read_results, write_plot

KERNELS = """
## From pixels to patches on a GPU

`python benchmarks/kernels.py` (writes `results/kernels_h200.json`): medians between events of the device, as captured
graphs where that is possible; {where}.
A plain copy reaches {copy:.0f} GB/s here, read and written; "share" is what a way reaches of it, counting every byte
that must be read or written once (more than all of it where levels stay in the cache until they are read again).
[Kernels](kernels.md) says what they are.

All levels of 8 images of 2048 x 2048, 8-bit RGB on the GPU:

| way | ms | share of copy | mip is faster |
|---|---|---|---|
{mip}

273 cells of 32 x 32 out of an image. "Touched only" begins with the image and makes of its levels what these cells
need; "times reading" compares with reading the pixels under the cells once.

| batch | image | way | ms | times reading |
|---|---|---|---|---|
{gather}
{eight}
The cut: which cells to split until 273 remain.

| trees | cells each | Triton, ms | torch, ms | same cells |
|---|---|---|---|---|
{cut}

{graph}

![Milliseconds against megapixels](images/kernels.png)
{texture}"""
EIGHT = """
A graph of these has four calls, each with a result of its own. With eight
(`--parts gather --calls 8 --out results/kernels_h200_eight.json`) the results of Qwen's blocks at 8192² are 27 MB and
"touched only" takes {times:.2f} times reading instead of {four:.2f}, probably since results then go to memory while the
next image is read. In 8 bits they are a quarter of that, and it stays at {small:.2f}.
"""
TEXTURE = """
Texture units were said to be 50 times faster than pooling layers, 0.1 ms against 5 ms. Here filling a mipmapped array
takes {units:.2f} ms, pooling layers {pooling:.2f} ms ({times:.1f} times), and the Triton kernel {mip:.3f} ms without
special hardware: {slower:.1f} times as fast as the units, which read every level back to make the next and need a
fourth byte for each pixel. Cells of levels that are there, Triton against units:
{gather}.
CUDA lets nobody reach the driver's own mip generation; graphics APIs alone do.

What the units' arithmetic does to pixels, against `pyramid.gaussian` and `tokens.patches`: levels and cells of the tree
are the same to the bit, since weights of quarters fit into 8 bits; cells between levels (`uniform`) are blends of two.

| image | | largest difference | pixels the same | PSNR, dB |
|---|---|---|---|---|
{rows}
"""
Row = dict[str, Any]


def kernels_section(results: Row, docs: Path) -> str:
    """The kernels against what one would use without them; a part that failed says so."""
    if not results:
        return ""
    mip_ms = milliseconds(results["mip"])
    ours = mip_ms.get("mip (Triton), uint8", 0.0)
    write_plot("kernels", plot_sizes([row for row in results["sizes"] if "ms" in row]), docs)
    return KERNELS.format(
        where=describe_machine(results["machine"]),
        copy=results["copy GB/s"],
        mip=lines(results["mip"], lambda r: mip_line(r, ours)),
        gather=lines(results["gather"], gather_line),
        eight=eight_calls(results, read_results("kernels_h200_eight", missing_ok=True)),
        cut=cut_lines(results["cut"]),
        graph=graph_sentence(results["graph"]),
        texture=texture_section(results, mip_ms, ours),
    )


def milliseconds(rows: list[Row]) -> dict[str, float]:
    """Of each way that worked."""
    return {row["way"]: row["ms"] for row in rows if "ms" in row}


def lines(rows: list[Row], line: Callable[[Row], str]) -> str:
    """A line for each row, also of those that failed."""
    return "\n".join(f"| failed: {row['failed']} |" if "failed" in row else line(row) for row in rows)


def mip_line(row: Row, ours: float) -> str:
    """A way to make all levels."""
    return f"| {row['way']} | {row['ms']:.3f} | {row['share of copy']:.0%} | {row['ms'] / ours:.1f}x |"


def gather_line(row: Row) -> str:
    """A way to take cells out of an image."""
    return f"| {row['batch']} | {row['side']}² | {row['way']} | {row['ms']:.3f} | {row['times reading']:.2f} |"


def texture_line(row: Row) -> str:
    """What the units' arithmetic does to pixels."""
    quality = "" if row["PSNR dB"] is None else f"{row['PSNR dB']:.1f}"
    return f"| {row['of']} | {row['what']} | {row['most']} | {row['same']:.1%} | {quality} |"


def cut_lines(rows: list[Row]) -> str:
    """The cut by the kernel and by torch, a line for each size."""
    measured = [row for row in rows if "ms" in row]
    same = {(row["batch"], row["cells"]): row["same as torch"] for row in measured}
    times = {(row["batch"], row["cells"], row["way"]): row["ms"] for row in measured}
    return "\n".join(
        f"| {key[0]} | {key[1]:,} | {times[*key, 'cut (Triton)']:.3f} | {times[*key, 'torch, sorted']:.2f} | "
        f"{'yes' if equal else '**no**'} |"
        for key, equal in same.items()
    )


def graph_sentence(rows: list[Row]) -> str:
    """What the steps take together."""
    parts = [f"{way} {ms:.2f} ms" for way, ms in milliseconds(rows).items()]
    return f"Batch of 8 at 2048², as one graph: {', '.join(parts)}."


def eight_calls(four: Row, eight: Row) -> str:
    """What more calls in a graph change."""
    if not eight:
        return ""

    def times(results: Row, kind: str) -> float:
        found = (row for row in results["gather"] if row["side"] == 8192 and row["way"].startswith("touched only"))
        return next(row["times reading"] for row in found if row["way"].endswith(kind))

    return EIGHT.format(times=times(eight, "bf16"), four=times(four, "bf16"), small=times(eight, "uint8"))


def texture_section(results: Row, mip_ms: dict[str, float], ours: float) -> str:
    """Texture units against pooling layers and the Triton kernel."""
    pooling = [ms for way, ms in mip_ms.items() if "pooling" in way]
    if "texture units" not in mip_ms or not pooling:
        return ""
    return TEXTURE.format(
        units=mip_ms["texture units"],
        pooling=min(pooling),
        times=min(pooling) / mip_ms["texture units"],
        mip=ours,
        slower=mip_ms["texture units"] / ours,
        gather=gather_sentence(results["gather"]),
        rows=lines(results["texture"], texture_line),
    )


def gather_sentence(rows: list[Row]) -> str:
    """Triton against texture units, 8-bit cells of levels that are there."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row["batch"], row["side"]), {})[row["way"]] = row["ms"]
    names = "levels there (Triton), uint8", "levels there, texture units"
    return ", ".join(
        f"{ms[names[0]] * 1e3:.1f} µs against {ms[names[1]] * 1e3:.1f} for {batch} of {side}²"
        for (batch, side), ms in found.items()
        if all(name in ms for name in names)
    )


def plot_sizes(rows: list[Row]) -> Figure:
    """Milliseconds against megapixels."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for way in dict.fromkeys(row["way"] for row in rows):
        points = [(row["megapixels"], row["ms"]) for row in rows if row["way"] == way]
        axes.plot(*zip(*points, strict=True), marker="o", label=way)
    axes.set(xlabel="megapixels", ylabel="ms", xscale="log", yscale="log", title="One image, 273 cells")
    axes.legend(fontsize=7)
    return figure
