"""The line finder: where text lines lie on a page and how high their print is, in one pass over a small copy.

A convolution network marks the core of every line and tells, at each place of it, the print height and how far the
centre line is. Connected cores are lines; a straight line is fitted through each. A second head tells which way up the
page was scanned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.errors import InputError
from homunculus.reader.convs import ConvNorm, ConvStage
from homunculus.reader.strips import boxes_of, grey
from homunculus.relevance import Scene

PIXELS = 1.2e6  # of the small copy that is searched
MAX_ZOOM = 2.5  # a small page is enlarged by no more
MULTIPLE = 32  # sides of the small copy
STRIDE = 4  # pixels of the small copy under one place of the maps
CORE = 0.17  # of the print height: half the height of a line's core, thin enough to keep tight lines apart
SHRINK = 0.2  # of the print height: how much shorter than the line its core is at each end
THRESHOLD = 0.45  # of a core's probability
MIN_SCORE = 0.5  # mean probability of a core from which it is a line
LONG = 4.0  # print heights from which a line tells its own slope
STEEP = 0.15  # slope up to which a line is believed
INNER = 0.45  # print heights from the centre line: what lies further out joins no line
APART = 0.3  # print heights: neighbours whose centre lines differ by more belong to two lines
MAX_LINES = 1000  # of a page

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class FoundLines:
    """Text lines of one page: lines [n, 5] as in `reader.strips`, in pixels of the page after `turns`, scores [n].

    `turns` is how many quarter turns counter-clockwise the page was given before it was searched; `turn_probs` [4] how
    likely each number of further turns is needed to bring it upright.
    """

    lines: Tensor
    scores: Tensor
    turn_probs: Tensor
    turns: int = 0


class LineFinder(nn.Module):
    """About 3 million parameters. `find` gives the lines of a page."""

    def __init__(self, widths: Sequence[int] = (24, 48, 96, 160, 256), neck: int = 64) -> None:
        super().__init__()
        self.sizes = {"widths": list(widths), "neck": neck}
        depths = (0, 1, 2, 2, 2)
        self.stages = nn.ModuleList(
            ConvStage(source, width, 2, depth)
            for source, width, depth in zip((1, *widths[:-1]), widths, depths, strict=True)
        )
        self.lateral = nn.ModuleList(nn.Conv2d(width, neck, 1) for width in widths[1:])
        self.smooth = nn.Sequential(ConvNorm(neck, neck), ConvNorm(neck, neck))
        self.maps = nn.Conv2d(neck, 3, 1)  # core, log print height, offset of the centre line in print heights
        self.turn = nn.Linear(widths[-1], 4)
        nn.init.constant_(cast(Tensor, self.maps.bias), 0.0)
        with torch.no_grad():
            cast(Tensor, self.maps.bias)[:2] = torch.tensor([-3.0, math.log(16.0)])

    def forward(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        """Grey pages [B, 1, H, W] from -1 to 1 -> maps [B, 3, H / 4, W / 4], logits of quarter turns [B, 4]."""
        x = pages.contiguous(memory_format=torch.channels_last)
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        y = self.lateral[-1](features[-1])
        for lateral, finer in zip(reversed(self.lateral[:-1]), reversed(features[1:-1]), strict=True):
            y = lateral(finer) + F.interpolate(y, finer.shape[2:], mode="bilinear")
        return self.maps(self.smooth(y)), self.turn(x.mean((2, 3)))

    @torch.no_grad()
    def find(self, page: Tensor, turns: int = 0) -> FoundLines:
        """Lines of a grey page uint8 [H, W] after quarter turns counter-clockwise; see `orientation.find_upright`."""
        page = torch.rot90(page, turns) if turns else page
        maps, turn = self._look(page)
        lines, scores = lines_of(maps.float().cpu().numpy())
        scale = torch.tensor([page.shape[1] / maps.shape[2], page.shape[0] / maps.shape[1]] * 2 + [0.0])
        scale[4] = scale[:2].prod().sqrt()
        found = torch.from_numpy(lines).float() * scale, torch.from_numpy(scores).float()
        return FoundLines(*found, turn.softmax(0).cpu(), turns)

    def boxes(self, scene: Scene) -> list[Tensor]:
        """Lines of a scene's images, which are taken as upright, as `allocators.legibility` wants them: [n, 5] each."""
        found = [self.find(page).lines for page in grey(scene.pixels)]
        return [torch.cat((boxes_of(lines), lines[:, 4:]), 1).to(scene.pixels.device) for lines in found]

    def _look(self, page: Tensor) -> tuple[Tensor, Tensor]:
        """Maps [3, h, w] and turn logits [4] of one page."""
        weight = self.turn.weight
        small = small_copy(page.to(weight.device))
        maps, turn = self(small.to(weight.dtype))
        return maps[0], turn[0].float()


def small_copy(page: Tensor) -> Tensor:
    """A grey page uint8 [H, W] at about PIXELS, sides in multiples of 32: float [1, 1, h, w] from -1 to 1."""
    height, width = page.shape
    scale = min(MAX_ZOOM, math.sqrt(PIXELS / (height * width)))
    sides = [max(MULTIPLE, round(side * scale / MULTIPLE) * MULTIPLE) for side in (height, width)]
    sides = [min(side, int(PIXELS / MULTIPLE**2) * MULTIPLE) for side in sides]  # a long thin page
    whole = page[None, None].float()
    return F.interpolate(whole, sides, mode="bilinear", antialias=True) / 127.5 - 1


def lines_of(maps: Array) -> tuple[Array, Array]:
    """Lines [n, 5] in places of the maps and their scores [n], from maps [3, h, w]: core logits, log height, offset.

    The log height counts pixels of the small copy.
    """
    probs = 1 / (1 + np.exp(-maps[0]))
    high = np.exp(np.clip(maps[1], 0, 7)) / STRIDE
    y, x = np.nonzero((probs > THRESHOLD) & (np.abs(maps[2]) < INNER))
    if not len(y):
        return np.zeros((0, 5), np.float32), np.zeros(0, np.float32)
    weight, height = probs[y, x].astype(np.float64), high[y, x]
    centre = y + 0.5 + maps[2][y, x] * height  # of the line, at this column
    which, count = _groups(y, x, centre, height)

    def mean(values: Array) -> Array:
        return np.bincount(which, weight * values, count) / total

    total = np.bincount(which, weight, count)
    pixels = np.bincount(which, minlength=count)
    high, x_mean, y_mean = mean(height), mean(x + 0.5), mean(centre)
    across = np.maximum(mean((x + 0.5 - x_mean[which]) ** 2), 1e-6)
    slope = mean((x + 0.5 - x_mean[which]) * (centre - y_mean[which])) / across
    low, top = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, which, x)
    np.maximum.at(top, which, x + 1.0)
    own = (top - low > LONG * high) & (np.abs(slope) < STEEP)
    usual = float(np.median(slope[own])) if own.any() else 0.0
    slope = np.where(own, slope, usual)
    left, right = low - SHRINK * high, top + SHRINK * high
    lines = np.stack((left, y_mean + (left - x_mean) * slope, right, y_mean + (right - x_mean) * slope, high), 1)
    scores = total / np.maximum(pixels, 1)
    keep = (scores > MIN_SCORE) & (pixels >= 2) & (right - left > 0.25 * high)
    best = np.argsort(-scores[keep], kind="stable")[:MAX_LINES]
    best.sort()
    return lines[keep][best].astype(np.float32), scores[keep][best].astype(np.float32)


def _groups(y: Array, x: Array, centre: Array, height: Array) -> tuple[Array, int]:
    """Which line each place of a core belongs to, and how many there are.

    Neighbours belong together where they tell the same centre line: tight lines have cores that touch.
    """
    try:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components
    except ImportError as error:
        raise InputError("finding text lines needs scipy: pip install 'homunculus[hf]'") from error
    index = np.full((int(y.max()) + 2, int(x.max()) + 2), -1)
    index[y, x] = np.arange(len(y))
    one, other = [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        beside = index[y + down, x + right]
        source = np.nonzero(beside >= 0)[0]
        target = beside[source]
        same = np.abs(centre[source] - centre[target]) < APART * np.minimum(height[source], height[target])
        one.append(source[same])
        other.append(target[same])
    rows, columns = np.concatenate(one), np.concatenate(other)
    edges = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(len(y), len(y)))
    count, which = connected_components(edges, directed=False)
    return which, int(count)
