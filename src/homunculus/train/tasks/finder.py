"""What the line finder learns: cores, heights and centre lines of text lines, and which way up a page is."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.reader.finder import CORE, MAX_ZOOM, PIXELS, SHRINK, STRIDE, LineFinder
from homunculus.reader.strips import axes_of
from homunculus.train.scans.page_store import PageStore
from homunculus.train.synth.degradations import degrade, random_apply
from homunculus.train.tasks.base import Losses, Task

SIDE = 960  # pixels of a training crop
TURNED = 0.25  # share of crops that lie on a side or upside down
TILTED = 0.5  # share of the others that are tilted
TILT = math.radians(2.0)  # deviation of the tilt; three of it at most
WIDER = 0.35  # of the print height: how far around a core the loss ignores


class PageLines:
    """Lines [n, 5] of every stored page, and how often each page is drawn."""

    def __init__(self, pages: PageStore, lines: Sequence[Tensor], weight: Sequence[float]) -> None:
        self.pages, self.lines, self.weight = pages, list(lines), list(weight)


@torch.no_grad()
def crops_of(store: PageLines, count: int, rng: random.Random, jitter: bool = True) -> tuple[Tensor, list[Tensor]]:
    """Random crops of pages at about the scale of reading: [n, 1, SIDE, SIDE] from 0 to 1, and the lines in them."""
    device = store.pages.flat.device
    picked = rng.choices(range(len(store.lines)), store.weight, k=count)
    maps, levels, lines = [], [], []
    for page in picked:
        height, width = store.pages.shapes[page]
        scale = min(MAX_ZOOM, math.sqrt(PIXELS / (height * width)))
        scale *= rng.uniform(0.8, 1.25) if jitter else 1.0
        tilt = max(-3.0, min(3.0, rng.gauss(0, 1))) * TILT if jitter and rng.random() <= TILTED else 0.0
        free_space = [max(0.0, side * scale - SIDE) for side in (width, height)]
        middle = [
            side / 2 + (rng.random() - 0.5) * free / scale
            for side, free in zip((width, height), free_space, strict=True)
        ]
        turn = torch.tensor([[math.cos(tilt), -math.sin(tilt)], [math.sin(tilt), math.cos(tilt)]])
        maps.append((turn / scale, torch.tensor(middle)))
        levels.append(min(store.pages.base.shape[1] - 1, max(0, int(math.log2(1 / scale) + 0.25)) if scale < 1 else 0))
        known = store.lines[page]
        back = (turn.T * scale).to(device)
        ends = [(known[:, i : i + 2] - torch.tensor(middle, device=device)) @ back.T + SIDE / 2 for i in (0, 2)]
        lines.append(torch.cat((*ends, known[:, 4:] * scale), 1))
    linear = torch.stack([m for m, _ in maps]).to(device)
    centre = torch.stack([c for _, c in maps]).to(device)
    step = torch.arange(SIDE, device=device) + 0.5 - SIDE / 2
    at = torch.stack((step[None, :].expand(SIDE, -1), step[:, None].expand(-1, SIDE)), -1)  # [S, S, 2]
    pages = []
    for n, page in enumerate(picked):
        image = store.pages.page(page, levels[n])  # at 1 to 1.7 times the scale of the crop
        size = torch.tensor([image.shape[1], image.shape[0]], device=device) * 2.0 ** levels[n]
        grid = (at @ linear[n].T + centre[n]) / size * 2 - 1
        pages.append(F.grid_sample(image[None, None].float(), grid[None], padding_mode="border", align_corners=False))
    return torch.cat(pages) / 255, lines


def targets_of(lines: Tensor, side: int = SIDE) -> Tensor:
    """Core, log print height, offset and weight at every place: lines [n, 5] in pixels -> [4, side / 4, side / 4]."""
    places = side // STRIDE
    centre = (torch.arange(places, device=lines.device) + 0.5) * STRIDE
    if not len(lines):
        nothing = torch.zeros(places, places, device=lines.device)
        return torch.stack((nothing, nothing, nothing, nothing + 1))
    along, across, length = axes_of(lines)
    x, y = centre[None, None, :] - lines[:, 0, None, None], centre[None, :, None] - lines[:, 1, None, None]
    u = x * along[:, 0, None, None] + y * along[:, 1, None, None]  # [n, places, places]
    v = x * across[:, 0, None, None] + y * across[:, 1, None, None]
    high = lines[:, 4].clamp(min=2.0)[:, None, None]
    shrink = torch.minimum(SHRINK * high, length[:, None, None] / 4)
    half = (CORE * high).clamp(min=0.55 * STRIDE)
    beyond = torch.maximum(shrink - u, u - (length[:, None, None] - shrink)).clamp(min=0)
    core = (v.abs() <= half) & (beyond <= 0)
    near = (v.abs() <= half + WIDER * high * 0.5) & (beyond <= 0.5 * STRIDE)
    nearest = torch.where(core, v.abs() / high, torch.inf).argmin(0, keepdim=True)
    inside = core.any(0)
    height = high.expand_as(v).gather(0, nearest)[0].log()
    offset = (-v / high).gather(0, nearest)[0]
    weight = torch.where(near.any(0) & ~inside, 0.3, 1.0)
    return torch.stack((inside.float(), height, offset, weight))


class FinderTask(Task):
    """Finding lines."""

    model: LineFinder
    bf16_on_cpu = True
    capturable = False

    def __init__(self, model: LineFinder, seed: int = 0) -> None:
        super().__init__(model, seed)
        self.header = {"sizes": model.sizes}

    @torch.no_grad()
    def make_batch(self, store: PageLines, count: int, strength: float) -> list[Tensor]:
        """Crops [n, 1, SIDE, SIDE], targets [n, 4, h, w], quarter turns [n] to bring each upright.

        `strength` is that of degradations; without any, crops are not jittered either.
        """
        pages, lines = crops_of(store, count, self.rng, jitter=strength > 0)
        targets = torch.stack([targets_of(known, pages.shape[2]) for known in lines])
        if strength:
            pages = random_apply(degrade(pages, 0.5 * strength), 0.06 * strength, lambda x: 1 - x)
        turns = []
        for n in range(count):
            turn = self.rng.randint(1, 3) if self.rng.random() < TURNED else 0
            turns.append(turn)
            if turn:
                pages[n] = torch.rot90(pages[n], -turn, (1, 2))
                targets[n, 3] = 0  # lines are only looked for upright
        return [pages.half(), targets, torch.tensor(turns, device=pages.device)]

    def forward(self, pages: Tensor, targets: Tensor, turns: Tensor) -> Losses:
        """Losses of cores, print heights, offsets and turns; `hit` is the overlap of cores."""
        maps, turn = self.model(pages.float() * 2 - 1)
        core, height, offset = maps.float().unbind(1)
        true, log_height, true_offset, weight = targets.unbind(1)
        inside = true * (weight > 0)
        probs = core.sigmoid() * (weight > 0)
        shared = (probs * inside).sum((1, 2))
        dice = 1 - (2 * shared + 1) / (probs.sum((1, 2)) + inside.sum((1, 2)) + 1)
        each = F.binary_cross_entropy_with_logits(core, true, weight * (1 + true), reduction="none")
        count = inside.sum().clamp(min=1)
        found = (core > 0) & (weight > 0)
        both = (found & (true > 0)).sum() / (found | (inside > 0)).sum().clamp(min=1)
        return {
            "core": each.mean() * 4,
            "dice": (dice * (inside.sum((1, 2)) > 0)).mean(),
            "height": ((height - log_height).abs() * inside).sum() / count,
            "offset": ((offset - true_offset).abs() * inside).sum() / count,
            "turn": F.cross_entropy(turn.float(), turns) * 0.3,
            "hit": both.float(),
        }
