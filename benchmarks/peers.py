"""How long published methods take to choose: milliseconds, not operations.

python benchmarks/peers.py                  # writes results/peers_cpu.json
python benchmarks/peers.py --device cuda    # writes results/peers_cuda.json

Tokens as a vision tower leaves them: 576 of LLaVA-1.5 and 4,096 of a 2048 x 2048 image in Qwen3-VL, of 4,096 numbers
each, chosen down to 273 and 64. `cut` is the time of `foveated` on the tree of the same image, to compare: it works
before the tower. Methods inside the language model rank by attention that is there; what they cost is in the layers
that still have all tokens (see the report).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import homunculus as hm
from homunculus.eval.machine import machine
from homunculus.peers import BEFORE, INSIDE, LayerState, VisualTokens
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
GRIDS = {576: (24, 24), 4096: (64, 64)}
WIDTH, WORDS = 4096, 16


def visual(count: int, batch: int, device: str) -> VisualTokens:
    """Tokens of random images; those of neighbours are alike."""
    rows, columns = GRIDS[count]
    lots = torch.Generator().manual_seed(0)
    coarse = torch.randn(batch, WIDTH, rows // 4, columns // 4, generator=lots)
    smooth = torch.nn.functional.interpolate(coarse, (rows, columns), mode="bilinear").flatten(2).transpose(1, 2)
    tokens = smooth + 0.3 * torch.randn(batch, count, WIDTH, generator=lots)
    cell = torch.arange(count)
    return VisualTokens(
        tokens=tokens.to(device),
        keys=tokens[..., :64].contiguous().to(device),
        attention=torch.rand(batch, count, generator=lots).to(device),
        early=torch.rand(batch, count, generator=lots).to(device),
        question=torch.randn(batch, WORDS, WIDTH, generator=lots).to(device),
        question_mask=torch.ones(batch, WORDS, dtype=torch.bool, device=device),
        mask=torch.ones(batch, count, dtype=torch.bool, device=device),
        positions=torch.stack((cell // columns, cell % columns), 1).expand(batch, -1, -1).to(device),
        grid=torch.tensor([[rows, columns]] * batch, device=device),
    )


def timed(call: Callable[[], object], device: str, runs: int) -> float:
    """Median milliseconds."""
    spans = []
    for n in range(runs + 1):
        begun = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        if n:  # the first warms up
            spans.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(spans)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tokens", type=lambda t: [int(n) for n in t.split(",")], default=list(GRIDS))
    parser.add_argument("--batches", type=lambda t: [int(n) for n in t.split(",")], default=[1])
    parser.add_argument("--budgets", type=lambda t: [int(n) for n in t.split(",")], default=[273, 64])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(words)
    rows = []
    for count in args.tokens:
        for batch in args.batches:
            seen = visual(count, batch, args.device)
            attention = torch.rand(batch, WORDS, count, device=args.device)
            inner = LayerState(seen.tokens, attention, seen.question_mask, seen.mask)
            tree = hm.CellTree(32 * GRIDS[count][0], 32 * GRIDS[count][1]).to(args.device)
            relevance = torch.rand(batch, tree.size, device=args.device)
            for budget in args.budgets:
                calls: dict[str, Callable[[], object]] = {
                    name: lambda rule=rule: rule(seen, budget)  # noqa: B023
                    for name, rule in BEFORE.items()
                }
                calls |= {
                    f"{name}, a stage": lambda method=method: method.keep(inner, budget)  # noqa: B023
                    for name, method in INSIDE.items()
                }
                calls["cut (`foveated`)"] = lambda: hm.allocate("foveated", tree, relevance, budget)  # noqa: B023
                for name, call in calls.items():
                    row = {"method": name, "tokens": count, "batch": batch, "budget": budget}
                    rows.append(row | {"ms": timed(call, args.device, args.runs)})
                    print(
                        f"{name:28} {count:5} tokens, batch {batch}, to {budget:4}: {rows[-1]['ms']:9.2f} ms",
                        flush=True,
                    )
    kind = "cuda" if args.device.startswith("cuda") else "cpu"
    out = args.out or ROOT / "results" / f"peers_{kind}.json"
    with replacing(out) as unfinished:
        unfinished.write_text(json.dumps({"machine": machine(args.device), "rows": rows}, indent=1) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
