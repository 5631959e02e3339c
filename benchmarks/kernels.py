"""The kernels against what one would use without them, in one run on one GPU.

python benchmarks/kernels.py                       # writes results/kernels_<device>.json
python benchmarks/kernels.py --parts mip,cut       # some of it: mip, gather, cut, graph, sizes, texture
python benchmarks/kernels.py --parts gather --calls 8 --out results/kernels_h200_eight.json

What is not all of it, or timed otherwise, is written only where `--out` says.

Milliseconds are medians between events of the device, of several calls in one captured graph where a way can be
captured, and of plain calls otherwise (`captured` says which). Bandwidths count bytes that must be read and written
once, as a share of what a plain copy of a gigabyte reaches in the same run; reading once is timed anew beside each way.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import homunculus as hm
from homunculus import positions, pyramid, tokens
from homunculus.allocators.cut import by_kernel, partition
from homunculus.allocators.frame import Request, as_indices, fill
from homunculus.eval.machine import machine
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
BATCH, SIDE, LEVELS, TOKENS = 8, 2048, 7, 273
PARTS = ("mip", "gather", "cut", "graph", "sizes", "texture")
TOGETHER = 4  # calls of a graph, unless told
MEAN, DEVIATION = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)


# ---- time ---------------------------------------------------------------------------------------------------------


def captured(call: Callable[[], object], together: int = 1) -> Callable[[], object] | None:
    """So many calls as a graph, or None if they cannot be one."""
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            kept = [call() for _ in range(together)]
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    return lambda: (graph.replay(), kept)


def timed(call: Callable[[], object], runs: int = 15, together: int | None = None, graph: bool = True) -> dict:
    """Median milliseconds of a call, of so many one after the other."""
    together = together or TOGETHER
    whole = captured(call, together) if graph else None
    again = whole or (lambda: [call() for _ in range(together)])
    for _ in range(3):
        again()
    spans = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        again()
        end.record()
        end.synchronize()
        spans.append(begin.elapsed_time(end) / together)
    return {"ms": statistics.median(spans), "captured": whole is not None}


def images(batch: int, height: int, width: int) -> Tensor:
    lots = torch.Generator("cuda").manual_seed(height)
    return torch.randint(0, 256, (batch, 3, height, width), dtype=torch.uint8, device="cuda", generator=lots)


def choice(batch: int, side: int, budget: int = TOKENS) -> tuple[hm.CellTree, hm.Selection]:
    """Cells around some place of each image, as a question would have it."""
    tree = hm.CellTree(side, side).to("cuda")
    lots = torch.Generator("cuda").manual_seed(side)
    relevance = torch.rand(batch, tree.size, device="cuda", generator=lots) ** 4
    places = torch.rand(batch, 1, 2, device="cuda", generator=lots) * side
    return tree, hm.allocate("foveated", tree, relevance, budget, places)


# ---- parts --------------------------------------------------------------------------------------------------------


def copy_speed() -> float:
    """Bytes a second, read and written, of a plain copy."""
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.numel() / timed(lambda: y.copy_(x))["ms"] * 1e3


def reading(count: int) -> Callable[[], object]:
    """Reads so many bytes once, as fast as a plain kernel does."""
    import triton
    import triton.language as tl

    @triton.jit
    def total(x, out, n, block: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0), 0))

    words, block = -(-count // 16) * 4, 8192
    x = torch.ones(words, dtype=torch.int32, device="cuda")
    out = torch.empty(triton.cdiv(words, block), dtype=torch.int32, device="cuda")
    return lambda: total[(len(out),)](x, out, words, block=block, num_warps=8)


def plain_levels(x: Tensor, step: Callable[[Tensor], Tensor], count: int = LEVELS) -> list[Tensor]:
    found = [x]
    while len(found) < count:
        found.append(step(found[-1]))
    return found


def mip_ways(x: Tensor) -> dict[str, Callable[[], object]]:
    from homunculus.kernels import mip, texture

    half = x.half()
    ways: dict[str, Callable[[], object]] = {
        "mip (Triton), uint8": lambda: mip.build(x, LEVELS - 1),
        "mip (Triton), fp16": lambda: mip.build(x, LEVELS - 1, torch.float16),
        "torch, pooling layers, fp16": lambda: plain_levels(half, lambda y: F.avg_pool2d(y, 2)),
        "torch, pooling layers, uint8 to fp16": lambda: plain_levels(x.half(), lambda y: F.avg_pool2d(y, 2)),
        "torch, antialiased interpolation": lambda: plain_levels(
            x.float(), lambda y: F.interpolate(y, scale_factor=0.5, mode="bilinear", antialias=True)
        ),
        "torch, our weights as a convolution, fp16": lambda: plain_levels(x.half(), convolution()),
    }
    if find_spec("kornia"):
        from kornia.geometry.transform import build_pyramid

        ways["kornia, build_pyramid"] = lambda: build_pyramid(x.float(), LEVELS)
    if find_spec("torchvision"):
        from torchvision.transforms.v2.functional import resize

        ways["torchvision, resize"] = lambda: plain_levels(
            x, lambda y: resize(y, [y.shape[2] // 2, y.shape[3] // 2], antialias=True)
        )
    units = texture.Mipmap(*(len(x), *x.shape[2:]), LEVELS)
    ways["texture units"] = lambda: units.fill(x)
    return ways


def convolution() -> Callable[[Tensor], Tensor]:
    line = torch.tensor([1.0, 3.0, 3.0, 1.0], device="cuda", dtype=torch.float16) / 8
    weight = (line[:, None] * line).expand(3, 1, 4, 4).contiguous()
    return lambda y: F.conv2d(F.pad(y, (1, 1, 1, 1), mode="replicate"), weight, stride=2, groups=3)


def mip_part(speed: float) -> list[dict]:
    x = images(BATCH, SIDE, SIDE)
    least = x.numel() + sum(x.numel() // 4**l for l in range(1, LEVELS))
    rows = []
    for name, call in mip_ways(x).items():
        row = {"way": name} | timed(call)
        rows.append(row | {"share of copy": least / row["ms"] * 1e3 / speed})
    return rows


def gather_part() -> list[dict]:
    return [row for size in ((BATCH, SIDE), (1, SIDE), (1, 4096), (1, 8192)) for row in gather_rows(*size)]


def gather_rows(batch: int, side: int) -> list[dict]:
    from homunculus.kernels import gather, texture

    x = images(batch, side, side)
    tree, chosen = choice(batch, side)
    cells = gather.Cells(chosen.boxes, chosen.levels, chosen.mask, chosen.sizes)
    layout = gather.PatchLayout.normalised(torch.bfloat16, MEAN, DEVIATION, merge_size=2, temporal_patch_size=2)
    levels = pyramid.gaussian(x, tree.levels)
    plain = [level.contiguous().clone() for level in levels]
    seen = int((chosen.boxes[..., 2:] - chosen.boxes[..., :2]).prod(2).sum()) * 3
    once = reading(seen)
    units = texture.Mipmap(batch, side, side, tree.levels)
    units.fill(x)
    ways: dict[str, Callable[[], object]] = {
        "touched only (Triton), blocks of Qwen, bf16": lambda: gather.build_and_gather(
            x, tree.levels, cells, 32, layout
        ),
        "touched only (Triton), uint8": lambda: gather.build_and_gather(x, tree.levels, cells, 32),
        "levels there (Triton), blocks of Qwen, bf16": lambda: gather.gather(levels, cells, 32, layout),
        "levels there (Triton), uint8": lambda: gather.gather(levels, cells, 32),
        "levels there, torch": lambda: tokens.at_once(plain, chosen),
        "levels there, texture units": lambda: texture.sample(
            units, chosen.boxes, chosen.levels, 32, chosen.sizes, chosen.mask
        ),
    }
    rows = []
    for name, call in ways.items():
        read = timed(once)["ms"]
        row = {"way": name, "batch": batch, "side": side, "touched MB": seen / 1e6, "read once ms": read} | timed(call)
        rows.append(row | {"times reading": row["ms"] / read})
    return rows


def cut_part() -> list[dict]:
    rows = []
    for batch, side in ((8, SIDE), (1024, SIDE), (1, 32 * 512), (1, 32 * 4096)):
        tree = hm.CellTree(side, side).to("cuda")
        lots = torch.Generator("cuda").manual_seed(1)
        gain = torch.rand(batch, tree.size, device="cuda", dtype=torch.float64, generator=lots)
        rest = torch.rand_like(gain)
        request = Request(tree, rest, gain.new_zeros(batch, 1, 2), TOKENS)

        def by_torch(request: Request = request, gain: Tensor = gain, rest: Tensor = rest) -> Tensor:
            mask = partition(request, request.tree.subtree_max(gain))
            return as_indices(fill(request, mask, rest), request.max_count)

        def by_triton(request: Request = request, gain: Tensor = gain, rest: Tensor = rest) -> Tensor:
            return by_kernel(request, gain, rest)

        same = bool(torch.equal(by_triton(), by_torch()))
        for name, call in (("cut (Triton)", by_triton), ("torch, sorted", by_torch)):
            row = {"way": name, "batch": batch, "cells": tree.size, "same as torch": same} | timed(call, 9, 2)
            rows.append(row)
    return rows


def graph_part() -> list[dict]:
    """From a decoded batch and relevance to patches and positions."""
    from homunculus.kernels import gather

    x = images(BATCH, SIDE, SIDE)
    tree, _ = choice(BATCH, SIDE)
    relevance = torch.rand(BATCH, tree.size, device="cuda")
    places = torch.rand(BATCH, 1, 2, device="cuda") * SIDE
    layout = gather.PatchLayout.normalised(torch.bfloat16, MEAN, DEVIATION, merge_size=2, temporal_patch_size=2)

    def whole() -> tuple[Tensor, Tensor]:
        chosen = hm.allocate("foveated", tree, relevance, TOKENS, places).in_rows()
        cells = gather.Cells(chosen.boxes, chosen.levels, chosen.mask, chosen.sizes)
        return gather.build_and_gather(x, tree.levels, cells, 32, layout), positions.mrope_ids(chosen)

    def choosing() -> object:
        return hm.allocate("foveated", tree, relevance, TOKENS, places).in_rows()

    named = (("decoded batch to patches and positions", whole), ("of it choosing", choosing))
    return [{"way": name} | timed(call) for name, call in named]


def size_part() -> list[dict]:
    return [row for side in (512, 1024, 2048, 4096, 8192, 10_000) for row in size_rows(side)]


def size_rows(side: int) -> list[dict]:
    from homunculus.kernels import gather, mip

    x = images(1, side, side)
    tree, chosen = choice(1, side, min(TOKENS, (side // 32) ** 2))
    cells = gather.Cells(chosen.boxes, chosen.levels, chosen.mask, chosen.sizes)
    levels = pyramid.gaussian(x, tree.levels)
    ways: dict[str, Callable[[], object]] = {
        "mip": lambda: mip.build(x, tree.levels - 1),
        "touched only": lambda: gather.build_and_gather(x, tree.levels, cells, 32),
        "levels there": lambda: gather.gather(levels, cells, 32),
        "torch, pooling layers": lambda: plain_levels(x.half(), lambda y: F.avg_pool2d(y, 2), tree.levels),
    }
    return [{"way": name, "megapixels": side * side / 1e6} | timed(call) for name, call in ways.items()]


def texture_part() -> list[dict]:
    """What the texture units' arithmetic does to pixels, against `pyramid.gaussian` and `tokens.patches`."""
    from homunculus.kernels import texture

    page = hm.image.load(ROOT / "examples" / "invoice.png")[None].cuda()
    rows = []
    for name, x in (("a page", page), ("noise", images(1, 1024, 1024))):
        tree = hm.CellTree(*x.shape[2:]).to("cuda")
        levels = pyramid.gaussian(x, tree.levels)
        units = texture.Mipmap(1, *x.shape[2:], tree.levels).fill(x)
        for l in range(1, tree.levels):
            rows.append({"of": name, "what": f"level {l}"} | apart(units.level(l), levels[l]))
        for rule in ("foveated", "uniform"):
            chosen = hm.allocate(rule, tree, torch.rand(1, tree.size, device="cuda"), 150)
            parts = (chosen.boxes, chosen.levels, 32, chosen.sizes, chosen.mask)
            expected = tokens.patches(levels, chosen)
            rows.append({"of": name, "what": f"cells of {rule}"} | apart(texture.sample(units, *parts), expected))
    return rows


def apart(found: Tensor, expected: Tensor) -> dict:
    error = (found.double() - expected.double()).abs()
    square = float(error.square().mean())
    decibels = 10 * math.log10(255**2 / square) if square else None
    return {"most": int(error.max()), "same": float((error == 0).double().mean()), "PSNR dB": decibels}


def main(words: list[str] | None = None) -> None:
    global TOGETHER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=lambda t: t.split(","), default=list(PARTS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--calls", type=int, default=TOGETHER, help="that are timed together, one after the other")
    args = parser.parse_args(words)
    TOGETHER = args.calls
    speed = copy_speed()
    found: dict[str, object] = {"machine": machine("cuda"), "copy GB/s": speed / 1e9, "calls": args.calls}
    print(f"copy: {speed / 1e9:.0f} GB/s")
    parts = {"mip": lambda: mip_part(speed), "gather": gather_part, "cut": cut_part, "graph": graph_part}
    parts |= {"sizes": size_part, "texture": texture_part}
    for name in args.parts:
        if name in parts:
            try:
                found[name] = parts[name]()
            except Exception as error:  # the other parts still count
                found[name] = [{"failed": f"{type(error).__name__}: {error}"[:400]}]
            for row in found[name]:  # type: ignore[attr-defined]
                print(name, json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}))
    name = torch.cuda.get_device_name().removeprefix("NVIDIA ").lower().replace(" ", "_")
    whole = set(args.parts) == set(PARTS) and args.calls == parser.get_default("calls")
    out = args.out or (ROOT / "results" / f"kernels_{name}.json" if whole else None)
    if out:
        with replacing(out) as unfinished:
            unfinished.write_text(json.dumps(found, indent=1) + "\n")
        print(f"wrote {out}")


if __name__ == "__main__":
    main()
