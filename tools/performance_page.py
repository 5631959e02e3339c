"""Writes docs/performance.md and its plots from the results files: python tools/performance_page.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from kernels_section import kernels_section
from published import DOCS, describe_machine, read_results, write_page, write_plot

PAGE = """# Performance

This page is written by `python tools/performance_page.py` from the files in `results/`.

## Choosing the cells

`python benchmarks/allocators.py` (writes `results/allocators_cpu.json`; `--device cuda` for a GPU). Milliseconds per
*batch of 8* images, median; {cpu}, and {gpu}.
A 2048 x 2048 image has 5,461 cells over 7 levels. "Loop" is the same rule as plain Python loops over images and cells
(`tests/loops.py`), measured in turns with the batched one; both choose the same cells. The rows with "+" are what
`Eye` runs: with band energies, segments and the question.

| allocator | 1024², 273 | **2048², 273** | 4096², 273 | 2048², 1024 | loop, 2048², 273 | faster | H200, 2048², 273 |
|---|---|---|---|---|---|---|---|
{allocators}

Limits that the benchmark checks on two cores at 2048² and 273 tokens: 4 ms for the cut family (`dag`, `foveated`,
`frequency`), 10 ms for all others, `stratified` and `logpolar` at least 30 times faster than their loops. On the GPU
these times are launches of small kernels, not work: they hardly grow with the size of the image.

## Looking

`python benchmarks/look.py` (writes `results/look_cpu.json`): `Eye().look` on pixels in memory, `foveated` with
`opponent` relevance, {look}. The scout's share is the same
for every page from half a megapixel on; the rest follows the number of pixels, and no float copy of a large image is
ever made.

| image | seconds | ns a pixel | peak memory of the process, MiB |
|---|---|---|---|
{looks}
{vlm}{kernels}{peers}"""
VLM = """
## The first token of a VLM

`python benchmarks/qwen3vl.py --device cuda` (writes `results/qwen3vl_h200.json`): Qwen3-VL in the shape of its 8B
model, random weights, bf16, pixels on the GPU, {where}.
Milliseconds to the first token, median, beside {text} tokens of text; stock begins with patches that are ready, the
others with pixels. `ours` is pyramid, scout, allocation, gather and packing; "captured" runs the language model as a
CUDA graph too; "by attention" asks the model itself where to look; "after" is the sum of its parts. A further token is
transformers' own eager step, which waits for launches and varies from run to run.

![Time to the first token against tokens, stock and chosen](images/qwen3vl.png)

{parts}
| image | batch | way | tokens | to first token | tower | prefill | ours | a further token | memory, GB | faster |
|---|---|---|---|---|---|---|---|---|---|---|
{rows}
"""
PEERS = """
## What published methods take to choose

`python benchmarks/peers.py` (writes `results/peers_cpu.json`; `--device cuda` for a GPU): milliseconds, median, one
image, tokens of 4,096 numbers; {where}. "A stage" is one cut between layers of the language model, from attention that
is there. All of them begin when the vision tower has seen every token; `foveated` chooses before it.

| method | {heads} |
|---|{lines}
{rows}
"""
PARTS = ("load", "pyramid", "scout", "allocation", "gather")
Results = dict[str, Any]


def allocator_rows(cpu: Results, gpu: Results) -> str:
    """Milliseconds of each allocator, a line each."""

    def row_of(results: Results, name: str, side: int, budget: int) -> Results:
        key = (name, side, budget)
        return next(r for r in results["rows"] if (r["allocator"], r["side"], r["budget"]) == key)

    lines = []
    for name in dict.fromkeys(row["allocator"] for row in cpu["rows"]):
        main = row_of(cpu, name, 2048, 273)
        loop = f"{main['loop_ms']:.0f} | {main['loop_ms'] / main['ms']:.0f}x" if "loop_ms" in main else " | "
        sizes = ((4096, 273), (2048, 1024))
        others = " | ".join(f"{row_of(cpu, name, side, budget)['ms']:.1f}" for side, budget in sizes)
        small, device = row_of(cpu, name, 1024, 273)["ms"], row_of(gpu, name, 2048, 273)["ms"]
        lines.append(f"| {name} | {small:.1f} | **{main['ms']:.1f}** | {others} | {loop} | {device:.1f} |")
    return "\n".join(lines)


def look_rows(results: Results) -> str:
    """Seconds and memory of a look, a line for each size of image."""
    lines = []
    for row in results["rows"]:
        per_pixel = row["seconds"] / row["side"] ** 2 * 1e9
        lines.append(f"| {row['side']}² | {row['seconds']:.2f} | {per_pixel:.0f} | {row['peak_mib']:.0f} |")
    return "\n".join(lines)


def vlm_section(results: Results, docs: Path) -> str:
    """The first token of a VLM: a table, a line on what is ours, and a plot."""
    if not results:
        return ""
    names = ("total", "tower", "prefill", "ours", "decode", "memory")
    lines = []
    for row in results["rows"]:
        figures = " | ".join(f"{row[name]:.1f}" if name in row else "" for name in names)
        head = f"| {row['size']}² | {row['batch']} | {row['way']} | {row['budget']} | "
        lines.append(f"{head}{figures} | {row['times']:.1f}x |")
    detailed = [row for row in results["rows"] if row["way"] == "before, captured"]
    at = max(detailed, key=lambda row: (row["size"] == 2048, row["batch"], -abs(row["budget"] - 273)))
    parts = ", ".join(f"{name} {at[name]:.1f}" for name in PARTS)
    place = f"At {at['size']}², batch {at['batch']} and {at['budget']} tokens"
    sentence = f"{place}, in milliseconds: {parts} (loading is not in the total).\n"
    write_plot("qwen3vl", plot_vlm(results["rows"], at["size"]), docs)
    where = describe_machine(results["machine"])
    return VLM.format(where=where, rows="\n".join(lines), parts=sentence, text=at["text"])


def plot_vlm(rows: list[Results], size: int) -> Figure:
    """Time to the first token against tokens, one panel for each batch size."""
    batches = sorted({row["batch"] for row in rows if row["size"] == size})
    figure = Figure(figsize=(5 * len(batches), 3.4), layout="constrained")
    for i, batch in enumerate(batches):
        axes = figure.add_subplot(1, len(batches), i + 1)
        panel = [row for row in rows if (row["size"], row["batch"]) == (size, batch)]
        for way in dict.fromkeys(row["way"] for row in panel):
            points = sorted((row["budget"], row["total"]) for row in panel if row["way"] == way)
            axes.plot(*zip(*points, strict=True), marker="o", label=way)
        axes.set(
            title=f"{size}², batch {batch}", xlabel="tokens", ylabel="ms to the first token", xscale="log", yscale="log"
        )
    figure.axes[0].legend(fontsize=7)
    return figure


def peers_section() -> str:
    """How long each published method takes, on what was measured."""
    files = [file for name in ("peers_cpu", "peers_cuda") if (file := read_results(name, missing_ok=True))]
    if not files:
        return ""
    heads, columns = [], []
    for file in files:
        device = "CPU" if file["machine"]["device"] == "cpu" else str(file["machine"]["device"])
        for key in dict.fromkeys((row["tokens"], row["budget"]) for row in file["rows"] if row["batch"] == 1):
            rows = [row for row in file["rows"] if (row["tokens"], row["budget"], row["batch"]) == (*key, 1)]
            heads.append(f"{key[0]} to {key[1]}, {device}")
            columns.append({row["method"]: row["ms"] for row in rows})
    lines = [
        f"| {name} | " + " | ".join(f"{column[name]:.1f}" if name in column else "" for column in columns) + " |"
        for name in columns[0]
    ]
    machines = " and ".join(describe_machine(file["machine"]) for file in files)
    return PEERS.format(where=machines, heads=" | ".join(heads), lines="---|" * len(heads), rows="\n".join(lines))


def main(docs: Path = DOCS) -> None:
    """Write the page and its plots."""
    cpu, gpu, look = read_results("allocators_cpu"), read_results("allocators_cuda"), read_results("look_cpu")
    page = PAGE.format(
        cpu=describe_machine(cpu["machine"]),
        gpu=describe_machine(gpu["machine"]),
        look=describe_machine(look["machine"]),
        allocators=allocator_rows(cpu, gpu),
        looks=look_rows(look),
        vlm=vlm_section(read_results("qwen3vl_h200", missing_ok=True), docs),
        kernels=kernels_section(read_results("kernels_h200", missing_ok=True), docs),
        peers=peers_section(),
    )
    write_page("performance", page, docs)


if __name__ == "__main__":
    main()
