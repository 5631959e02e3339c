"""Time to the first token of Qwen3-VL (8B shape, random weights, bf16): stock, chosen after its tower, before it.

python benchmarks/qwen3vl.py --device cuda                    # writes results/qwen3vl_h200.json
python benchmarks/qwen3vl.py --tiny --sizes 256 --budgets 16  # a small model, on a CPU, to try it

Images lie on the GPU as 8-bit pixels, as a decoder leaves them; the copy there is told apart. Every figure is a median;
`ours` is all that choosing costs: pyramid, scout, allocation, gather and packing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import homunculus as hm
from homunculus import tokens
from homunculus.adapters.base import View
from homunculus.cells import CellTree
from homunculus.eval.machine import machine
from homunculus.fixation import peak
from homunculus.reader.letters import encode
from homunculus.reader.scout import QUESTION as QUESTION_LENGTH
from homunculus.reader.scout import TEMPERATURE, over_tree, small_copy
from homunculus.relevance import Scene
from homunculus.runtime.files import replacing
from homunculus.runtime.graphs import Replay

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from vlms import qwen_processor, qwen_tokenizer  # noqa: E402

QUESTION = "What is the total due?"  # the tokenizer here knows letters: with what is around it, 43 tokens
LARGEST = 4096 * 4096
SLOW, WARM = 1500.0, 2  # milliseconds from which a run need not be repeated often; runs before those that count


def build(tiny: bool, device: str) -> Any:
    """Model and processor, wrapped."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_interleaved": True}
    text = {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32}
    text |= {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 262144}
    text |= {"rope_parameters": rope | {"mrope_section": [24, 20, 20]}}
    vision = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": 4096}
    vision |= {"num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]}
    if tiny:
        text |= {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 2}
        text |= {"num_key_value_heads": 2, "head_dim": 32, "vocab_size": len(tokenizer)}
        text |= {"rope_parameters": rope | {"mrope_section": [6, 5, 5]}}
        vision |= {"depth": 3, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 64}
        vision |= {"num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
    names = {"image": "<|image_pad|>", "video": "<|video_pad|>"}
    names |= {"vision_start": "<|vision_start|>", "vision_end": "<|vision_end|>"}
    ids = {f"{name}_token_id": tokenizer.convert_tokens_to_ids(token) for name, token in names.items()}
    shape = {"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}
    config = Qwen3VLConfig(text_config=text, vision_config=vision | shape, **ids)
    torch.manual_seed(0)
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    torch.set_default_dtype(kind)
    with torch.device(device):
        model = Qwen3VLForConditionalGeneration._from_config(config, attn_implementation="sdpa")
    torch.set_default_dtype(torch.float32)
    processor = qwen_processor("Qwen3VLProcessor", 16, tokenizer, LARGEST)
    return hm.adapters.wrap(model.eval().requires_grad_(False), processor)


def timed(call: Callable[[], Any], device: str, runs: int) -> tuple[float, float]:
    """Median milliseconds, and the most memory that was taken meanwhile in gigabytes; of what is slow, fewer runs."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def once() -> float:
        begin = time.perf_counter()
        call()
        wait()
        return (time.perf_counter() - begin) * 1e3

    first = once()
    slow = first > SLOW and (first > 4 * SLOW or once() > SLOW)  # the first may have had to choose its kernels
    for _ in range(0 if slow else WARM):
        once()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    spans = [once() for _ in range(min(runs, 1 + (first < 4 * SLOW)) if slow else runs)]
    return statistics.median(spans), torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0


@torch.inference_mode()
def stock_rows(vlm: Any, pixels: torch.Tensor, device: str, runs: int) -> tuple[list[dict], float]:
    """The model as it is, from patches that are ready."""
    count, _, height, width = pixels.shape
    rows, columns = height // vlm.family.cell, width // vlm.family.cell
    scene = Scene(pixels, CellTree(height, width, vlm.family.cell))
    every = hm.allocate("grid", scene.tree, torch.ones(count, scene.tree.size, device=pixels.device), rows * columns)
    views = [View(scene, every.in_rows(), row) for row in range(count)]
    patches = torch.cat([vlm.family._patches(cells) for cells in vlm.family.cell_pixels(views)]).to(vlm.model.dtype)
    grid = torch.tensor([[1, 2 * rows, 2 * columns]] * count, device=pixels.device)
    text = vlm._text(QUESTION, 1).replace("<|image_pad|>", "<|image_pad|>" * (rows * columns))
    ids = torch.tensor(vlm.processor.tokenizer([text] * count)["input_ids"], device=pixels.device)
    kinds = (ids == vlm.family.image_token).int()
    how = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": kinds, "image_grid_thw": grid}

    def tower() -> Any:
        return vlm.model.model.get_image_features(patches, grid, return_dict=True)

    def whole() -> Any:
        return vlm.model(**how, pixel_values=patches, logits_to_keep=1, use_cache=True)

    both, memory = timed(whole, device, runs)
    seen, _ = timed(tower, device, runs)
    step = decode_step(vlm, whole().past_key_values, ids, device, runs)
    row = {"way": "stock", "budget": rows * columns, "total": both, "tower": seen, "prefill": both - seen}
    return [row | {"ours": 0.0, "memory": memory, "decode": step}], seen


@torch.inference_mode()
def decode_step(vlm: Any, cache: Any, ids: torch.Tensor, device: str, runs: int) -> float:
    """One more token on a cache, which grows by a few."""
    at = torch.full((4, len(ids), 1), cache.get_seq_length(), device=ids.device)

    def step() -> None:
        vlm.model(input_ids=ids[:, -1:], position_ids=at, past_key_values=cache, use_cache=True)

    return timed(step, device, runs)[0]


@torch.inference_mode()
def look_parts(vlm: Any, pixels: torch.Tensor, budget: int, device: str, runs: int) -> dict[str, float]:
    """What each step from pixels to those of the chosen cells adds, all of them captured as `prepare` has them."""
    tree = CellTree(*pixels.shape[2:], vlm.family.cell).to(pixels.device)
    codes = encode([QUESTION] * len(pixels), QUESTION_LENGTH).to(pixels.device)

    def way(upto: str, pixels: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        scene = Scene(pixels, tree)
        if upto == "pyramid":
            return scene.levels[-1]
        found = vlm.scout.find(vlm.scout.encode_page(small_copy(scene.levels)), codes[:, None])[:, 0]
        relevance = over_tree(scene, found / TEMPERATURE)
        if upto == "scout":
            return relevance
        chosen = hm.allocate("foveated", tree, relevance, budget, peak(tree, relevance), error=scene.lost).in_rows()
        return chosen.boxes if upto == "allocation" else tokens.patches(scene.levels, chosen)

    spans, before = {}, 0.0
    for upto in ("pyramid", "scout", "allocation", "gather"):
        step = Replay(partial(way, upto))
        spent = timed(lambda: step(pixels, codes), device, runs)[0]  # noqa: B023
        spans[upto], before = max(0.0, spent - before), spent
    return spans


@torch.inference_mode()
def chosen_rows(vlm: Any, pixels: torch.Tensor, budget: int, tower: float, device: str, runs: int) -> list[dict]:
    """Chosen after the tower and before it, eager and captured, with the time of each part."""
    images, questions = [[image] for image in pixels], [QUESTION] * len(pixels)
    parts = look_parts(vlm, pixels, budget, device, runs)

    def prepared() -> Any:
        return vlm.prepare(images, questions, budget, "before")

    inputs = prepared()
    seen = timed(lambda: vlm.family.encode_cells(inputs.views), device, runs)[0]
    eager = timed(lambda: vlm(inputs, logits_to_keep=1), device, runs)[0]
    captured = timed(lambda: vlm.prefill(inputs), device, runs)[0]
    total, memory = timed(lambda: vlm(prepared(), logits_to_keep=1), device, runs)
    quick, less = timed(lambda: vlm.prefill(prepared()), device, runs)
    asking = timed(lambda: vlm.prefill(vlm.prepare(images, questions, budget, "before", "", "attention")), device, runs)
    step = decode_step(vlm, vlm.prefill(inputs)[1], inputs["input_ids"], device, runs)
    common = {"budget": budget, "decode": step, "text": inputs["input_ids"].shape[1] - budget} | parts
    late = {"way": "after", "total": tower + eager + sum(parts.values()), "tower": tower, "prefill": eager}
    early = {"way": "before", "total": total, "tower": seen, "prefill": eager, "memory": memory}
    fast = {"way": "before, captured", "total": quick, "tower": seen, "prefill": captured, "memory": less}
    itself = {"way": "before, by attention", "total": asking[0], "memory": asking[1], "budget": budget}  # two passes
    told = [common | row | {"ours": row["total"] - row["tower"] - row["prefill"]} for row in (late, fast)]
    return [told[0], common | early, told[1], itself]  # eager, a CPU is behind: parts do not add up to the whole


def table(rows: list[dict]) -> Table:
    names = ("way", "size", "batch", "budget", "total", "tower", "prefill", "ours", "decode", "memory", "times")
    shown = Table(
        *names, title="milliseconds to the first token; gigabytes; times faster than stock", title_justify="left"
    )
    for row in rows:
        shown.add_row(*(f"{row[n]:.1f}" if isinstance(row.get(n), float) else str(row.get(n, "")) for n in names))
    return shown


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {"type": lambda t: [int(n) for n in t.split(",")]}
    parser.add_argument("--sizes", default=[1024, 2048, 4096], **numbers)
    parser.add_argument("--batches", default=[1, 8], **numbers)
    parser.add_argument("--budgets", default=[64, 150, 273, 576, 1024], **numbers)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="a small model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "qwen3vl_h200.json")
    args = parser.parse_args(words)
    vlm, rows = build(args.tiny, args.device), []
    lots = torch.Generator().manual_seed(0)
    for size in args.sizes:
        for batch in args.batches:
            cpu = torch.randint(0, 256, (batch, 3, size, size), dtype=torch.uint8, generator=lots)
            cpu = cpu.pin_memory() if args.device == "cuda" else cpu
            load = timed(lambda: cpu.to(args.device, non_blocking=True), args.device, args.runs)[0]  # noqa: B023
            pixels = cpu.to(args.device)
            made, tower = stock_rows(vlm, pixels, args.device, args.runs)
            for budget in args.budgets:
                if budget < made[0]["budget"]:
                    made += chosen_rows(vlm, pixels, budget, tower, args.device, args.runs)
            for row in made:
                row |= {"size": size, "batch": batch, "load": load, "times": made[0]["total"] / row["total"]}
            rows += made
            with replacing(args.out) as unfinished:
                unfinished.write_text(json.dumps({"machine": machine(args.device), "rows": rows}, indent=1) + "\n")
            Console().print(table(made))
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
