"""A view made of ordinary images: the whole, small, and pieces of it in full resolution where the question looks.

It needs no access to the model, so it serves any, closed ones too: what is saved is fewer pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus.errors import whole_number
from homunculus.eye import Eye

OVERVIEW = 0.235  # share of the budget that the whole image gets: 64 of 273
WIDE = 1.6  # how much wider than high a piece is: text runs in lines
PIECES = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class Crop:
    """A piece of an image: left, top, right, bottom in its pixels; how it is shown; cells that it fills."""

    box: tuple[int, int, int, int]
    image: Image.Image
    tokens: int


def crops(image: Image.Image, question: str, budget: int = 273, eye: Eye | None = None) -> list[Crop]:
    """The whole image and pieces of it, which together fill at most `budget` cells; all of it if that is enough."""
    eye = eye or Eye(relevance="query")
    whole_number("budget", budget, 1)
    image, cell = image.convert("RGB"), eye.cell
    rows, columns = -(-image.height // cell), -(-image.width // cell)
    everything = (0, 0, image.width, image.height)
    if rows * columns <= budget:
        return [Crop(everything, image, rows * columns)]
    first = fit_grid(rows, columns, budget if budget < 16 else max(1, round(OVERVIEW * budget)))
    small = image.resize((first[1] * cell, first[0] * cell), Image.Resampling.LANCZOS)
    found = [Crop(everything, small, first[0] * first[1])]
    left = budget - found[0].tokens
    if budget < 16 or left < 4:
        return found
    scene = eye.scene(pixels_of(image))
    worth = scene.tree.grid(eye.weigh(scene, [question]), 0)[0].double()  # [rows, columns]
    candidates = [best_windows(worth, left, count) for count in PIECES if left // count >= 4]
    best = max(candidates, key=lambda made: (round(made[1], 9), -len(made[0])))[0]
    for top, start, high, wide in best:
        x = max(0, min(start * cell, image.width - wide * cell))
        y = max(0, min(top * cell, image.height - high * cell))
        box = (x, y, min(image.width, x + wide * cell), min(image.height, y + high * cell))
        found.append(Crop(box, image.crop(box), high * wide))
    return found


def pixels_of(image: Image.Image) -> Tensor:
    """The pixels of an RGB image as they are: uint8 [3, H, W]."""
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return pixels.view(image.height, image.width, 3).permute(2, 0, 1).contiguous()


def fit_grid(rows: int, columns: int, max_cells: int) -> tuple[int, int]:
    """The largest grid of at most `max_cells` cells that has about the shape of another."""
    scale = min(1.0, math.sqrt(max_cells / (rows * columns)))
    about = range(max(1, int(rows * scale) - 1), min(rows, math.ceil(rows * scale) + 1) + 1)
    fits = [(r, min(columns, max_cells // r)) for r in about if r <= max_cells] or [(1, 1)]
    shape = math.log(columns / rows)
    return min(fits, key=lambda fit: abs(math.log(fit[1] / fit[0]) - shape) - 0.02 * fit[0] * fit[1] / max_cells)


def best_windows(worth: Tensor, budget: int, count: int) -> tuple[list[tuple[int, int, int, int]], float]:
    """So many windows of equal size over cells [rows, columns] that hold the most: top, left, rows, columns of each.

    Also how much they hold together. What one has is not counted again.
    """
    rows, columns = worth.shape
    each = budget // count
    high = max(1, min(rows, int(math.sqrt(each / WIDE))))
    wide = max(1, min(columns, each // high))
    high = max(1, min(rows, each // wide))
    left, total = worth.clone(), 0.0
    found: list[tuple[int, int, int, int]] = []
    for _ in range(count):
        sums = F.avg_pool2d(left[None, None], (high, wide), 1, divisor_override=1)[0, 0]
        at = int(sums.argmax())
        top, start = divmod(at, sums.shape[1])
        total += float(sums.flatten()[at])
        found.append((top, start, high, wide))
        left[top : top + high, start : start + wide] = 0
    return found, total


def cost(name: str, sizes: Sequence[tuple[int, int]]) -> int:
    """Tokens that images of these sizes, width and height, cost with a model, by its published rule."""
    return sum(COSTS[name](width, height) for width, height in sizes)


def resized_size(width: int, height: int, side: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size to which Qwen models bring an image, in whole blocks of `side` pixels.

    The rule of transformers' `smart_resize`, for strips of any aspect, and where transformers is not installed.
    """
    w, h = (round(n / side) * side for n in (width, height))
    if w * h > max_pixels:
        scale = math.sqrt(width * height / max_pixels)
        w, h = (max(side, math.floor(n / scale / side) * side) for n in (width, height))
    elif w * h < min_pixels:
        scale = math.sqrt(min_pixels / (width * height))
        w, h = (math.ceil(n * scale / side) * side for n in (width, height))
    return w, h


def _blocks(width: int, height: int, side: int, min_pixels: int, max_pixels: int) -> int:
    w, h = resized_size(width, height, side, min_pixels, max_pixels)
    return (w // side) * (h // side)


def _gpt4o(width: int, height: int) -> int:
    """85, and 170 for each tile of 512 pixels of an image of at most 2048 at its longer and 768 at its shorter side."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height)) if min(width, height) * scale > 768 else scale
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def _claude(width: int, height: int) -> int:
    """A token for 750 pixels, after the image is brought to at most 1568 pixels at its longer side, and 1600 tokens."""
    scale = min(1.0, 1568 / max(width, height), math.sqrt(1600 * 750 / (width * height)))
    return math.ceil(width * height * scale**2 / 750)


def _gemini(width: int, height: int) -> int:
    """258 for a small image, or for each tile of 768 pixels."""
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)


COSTS = {
    "Qwen3-VL": lambda w, h: _blocks(w, h, 32, 256 * 256, 4096 * 4096),
    "Qwen2.5-VL": lambda w, h: _blocks(w, h, 28, 56 * 56, 12_845_056),
    "LLaVA-1.5": lambda w, h: 576,
    "GPT-4o": _gpt4o,
    "Claude": _claude,
    "Gemini": _gemini,
}
