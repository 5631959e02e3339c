"""Writes docs/performance.md from the results files: python benchmarks/performance_page.py"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
PAGE = """# Performance

This page is written by `python benchmarks/performance_page.py` from the files in `results/`.

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
PARTS = ("load", "pyramid", "scout", "allocation", "gather")


def read(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def known(name: str) -> bool:
    return (ROOT / "results" / f"{name}.json").is_file()


def where(machine: dict) -> str:
    if machine["device"] == "cpu":
        place = f"{machine['cores']} cores of an {machine['processor']}"
    else:
        place = machine["device"]
    return f"{place}, torch {machine['torch']}, commit {machine['commit']}"


def allocator_rows(cpu: dict, gpu: dict) -> str:
    def ms(results: dict, name: str, side: int, budget: int) -> dict:
        key = (name, side, budget)
        return next(r for r in results["rows"] if (r["allocator"], r["side"], r["budget"]) == key)

    lines = []
    for name in dict.fromkeys(row["allocator"] for row in cpu["rows"]):
        here = ms(cpu, name, 2048, 273)
        loop = f"{here['loop_ms']:.0f} | {here['loop_ms'] / here['ms']:.0f}x" if "loop_ms" in here else " | "
        sizes = " | ".join(f"{ms(cpu, name, side, budget)['ms']:.1f}" for side, budget in ((4096, 273), (2048, 1024)))
        small, device = ms(cpu, name, 1024, 273)["ms"], ms(gpu, name, 2048, 273)["ms"]
        lines.append(f"| {name} | {small:.1f} | **{here['ms']:.1f}** | {sizes} | {loop} | {device:.1f} |")
    return "\n".join(lines)


def vlm_section(results: dict, picture: Path) -> str:
    """The first token of a VLM: a table, a line on what is ours, and a plot."""
    names = ("total", "tower", "prefill", "ours", "decode", "memory")
    lines = []
    for row in results["rows"]:
        shown = " | ".join(f"{row[name]:.1f}" if name in row else "" for name in names)
        head = f"| {row['size']}² | {row['batch']} | {row['way']} | {row['budget']} | "
        lines.append(f"{head}{shown} | {row['times']:.1f}x |")
    detailed = [row for row in results["rows"] if row["way"] == "before, captured"]
    at = max(detailed, key=lambda row: (row["size"] == 2048, row["batch"], -abs(row["budget"] - 273)))
    parts = ", ".join(f"{name} {at[name]:.1f}" for name in PARTS)
    place = f"At {at['size']}², batch {at['batch']} and {at['budget']} tokens"
    told = f"{place}, in milliseconds: {parts} (loading is not in the total).\n"
    plot_vlm(results["rows"], at["size"], picture)
    return VLM.format(where=where(results["machine"]), rows="\n".join(lines), parts=told, text=at["text"])


def peer_section() -> str:
    """How long each published method takes, on what was measured."""
    files = [read(name) for name in ("peers_cpu", "peers_cuda") if known(name)]
    if not files:
        return ""
    heads, columns = [], []
    for file in files:
        device = "CPU" if file["machine"]["device"] == "cpu" else str(file["machine"]["device"])
        for key in dict.fromkeys((row["tokens"], row["budget"]) for row in file["rows"] if row["batch"] == 1):
            here = [row for row in file["rows"] if (row["tokens"], row["budget"], row["batch"]) == (*key, 1)]
            heads.append(f"{key[0]} to {key[1]}, {device}")
            columns.append({row["method"]: row["ms"] for row in here})
    rows = [
        f"| {name} | " + " | ".join(f"{column[name]:.1f}" if name in column else "" for column in columns) + " |"
        for name in columns[0]
    ]
    places = " and ".join(where(file["machine"]) for file in files)
    return PEERS.format(where=places, heads=" | ".join(heads), lines="---|" * len(heads), rows="\n".join(rows))


def kernel_section(results: dict, picture: Path) -> str:
    """The kernels against what one would use without them; a part that failed says so."""

    def rows(name: str, line: Callable[[dict], str]) -> str:
        return "\n".join(f"| failed: {row['failed']} |" if "failed" in row else line(row) for row in results[name])

    mips = {row["way"]: row["ms"] for row in results["mip"] if "ms" in row}
    ours = mips.get("mip (Triton), uint8", 0.0)
    cuts = {(row["batch"], row["cells"]): row["same as torch"] for row in results["cut"] if "ms" in row}
    times = {(row["batch"], row["cells"], row["way"]): row["ms"] for row in results["cut"] if "ms" in row}
    cut_rows = [
        f"| {key[0]} | {key[1]:,} | {times[*key, 'cut (Triton)']:.3f} | {times[*key, 'torch, sorted']:.2f} | "
        f"{'yes' if same else '**no**'} |"
        for key, same in cuts.items()
    ]
    graph = [f"{row['way']} {row['ms']:.2f} ms" for row in results["graph"] if "ms" in row]
    pooling = [ms for way, ms in mips.items() if "pooling" in way]
    texture = ""
    if "texture units" in mips and pooling:
        texture = TEXTURE.format(
            units=mips["texture units"],
            pooling=min(pooling),
            times=min(pooling) / mips["texture units"],
            mip=ours,
            slower=mips["texture units"] / ours,
            gather=gathered(results["gather"]),
            rows=rows("texture", texture_row),
        )
    plot_sizes([row for row in results["sizes"] if "ms" in row], picture)
    return KERNELS.format(
        where=where(results["machine"]),
        copy=results["copy GB/s"],
        mip=rows("mip", lambda r: f"| {r['way']} | {r['ms']:.3f} | {r['share of copy']:.0%} | {r['ms'] / ours:.1f}x |"),
        gather=rows(
            "gather",
            lambda r: f"| {r['batch']} | {r['side']}² | {r['way']} | {r['ms']:.3f} | {r['times reading']:.2f} |",
        ),
        eight=eight_calls(results, read("kernels_h200_eight")) if known("kernels_h200_eight") else "",
        cut="\n".join(cut_rows),
        graph=f"Batch of 8 at 2048², as one graph: {', '.join(graph)}.",
        texture=texture,
    )


def eight_calls(four: dict, eight: dict) -> str:
    def times(results: dict, kind: str) -> float:
        found = (row for row in results["gather"] if row["side"] == 8192 and row["way"].startswith("touched only"))
        return next(row["times reading"] for row in found if row["way"].endswith(kind))

    return EIGHT.format(times=times(eight, "bf16"), four=times(four, "bf16"), small=times(eight, "uint8"))


def gathered(rows: list[dict]) -> str:
    """Triton against texture units, 8-bit cells of levels that are there."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row["batch"], row["side"]), {})[row["way"]] = row["ms"]
    names = "levels there (Triton), uint8", "levels there, texture units"
    told = [
        f"{ways[names[0]] * 1e3:.1f} µs against {ways[names[1]] * 1e3:.1f} for {batch} of {side}²"
        for (batch, side), ways in found.items()
        if all(name in ways for name in names)
    ]
    return ", ".join(told)


def texture_row(row: dict) -> str:
    quality = "" if row["PSNR dB"] is None else f"{row['PSNR dB']:.1f}"
    return f"| {row['of']} | {row['what']} | {row['most']} | {row['same']:.1%} | {quality} |"


def plot_sizes(rows: list[dict], path: Path) -> None:
    """What the size of an image costs."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for way in dict.fromkeys(row["way"] for row in rows):
        points = [(row["megapixels"], row["ms"]) for row in rows if row["way"] == way]
        axes.plot(*zip(*points, strict=True), marker="o", label=way)
    axes.set(xlabel="megapixels", ylabel="ms", xscale="log", yscale="log", title="One image, 273 cells")
    axes.legend(fontsize=7)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=130, metadata={"Software": None})


def plot_vlm(rows: list[dict], size: int, path: Path) -> None:
    """Time to the first token against tokens, one panel a batch size."""
    batches = sorted({row["batch"] for row in rows if row["size"] == size})
    figure = Figure(figsize=(5 * len(batches), 3.4), layout="constrained")
    for i, batch in enumerate(batches):
        axes = figure.add_subplot(1, len(batches), i + 1)
        here = [row for row in rows if (row["size"], row["batch"]) == (size, batch)]
        for way in dict.fromkeys(row["way"] for row in here):
            points = sorted((row["budget"], row["total"]) for row in here if row["way"] == way)
            axes.plot(*zip(*points, strict=True), marker="o", label=way)
        axes.set(
            title=f"{size}², batch {batch}", xlabel="tokens", ylabel="ms to the first token", xscale="log", yscale="log"
        )
    figure.axes[0].legend(fontsize=7)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=130, metadata={"Software": None})


def main() -> None:
    cpu, gpu, look = read("allocators_cpu"), read("allocators_cuda"), read("look_cpu")
    looks = []
    for row in look["rows"]:
        per_pixel = row["seconds"] / row["side"] ** 2 * 1e9
        looks.append(f"| {row['side']}² | {row['seconds']:.2f} | {per_pixel:.0f} | {row['peak_mib']:.0f} |")
    page = PAGE.format(
        cpu=where(cpu["machine"]),
        gpu=where(gpu["machine"]),
        look=where(look["machine"]),
        allocators=allocator_rows(cpu, gpu),
        looks="\n".join(looks),
        vlm=vlm_section(read("qwen3vl_h200"), ROOT / "docs/images/qwen3vl.png") if known("qwen3vl_h200") else "",
        kernels=kernel_section(read("kernels_h200"), ROOT / "docs/images/kernels.png") if known("kernels_h200") else "",
        peers=peer_section(),
    )
    with replacing(ROOT / "docs" / "performance.md") as unfinished:
        unfinished.write_text(page)


if __name__ == "__main__":
    main()
