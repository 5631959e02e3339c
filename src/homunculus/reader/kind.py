"""Is an image a document or a photograph? Four plain features decide, by logistic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from homunculus.reader.strips import axes_of

FEATURES = ("lines", "print", "white", "flat")  # in the order of the weights
MIN_PRINT = 6.0  # pixels: lower lines do not count
SIDE = 1000  # pixels: features are taken at the first level of the pyramid that is no larger
WHITE = 200  # grey level from which a pixel is white
AROUND, RANGE = 9, 12  # pixels, grey levels: a place is flat if its surround varies less


@dataclass(frozen=True)
class KindClassifier:
    """The probability that an image is a document."""

    weights: tuple[float, ...]
    bias: float

    def __call__(self, features: Sequence[float]) -> float:
        """From FEATURES, see `kind_features`."""
        total = sum(w * f for w, f in zip(self.weights, features, strict=True)) + self.bias
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def kind_features(levels: Sequence[Tensor], lines: Tensor) -> list[float]:
    """FEATURES of an image, from its grey pyramid [h, w] each and its text lines [n, 5].

    Logarithms of how many lines there are and of the share of the image that they cover, shares of its places that are
    white and that are flat.
    """
    lines = lines[lines[:, 4] >= MIN_PRINT]
    *_, length = axes_of(lines)
    covered = float((length * lines[:, 4]).sum()) / levels[0].numel()
    page = next((level for level in levels if max(level.shape) <= SIDE), levels[-1])[None, None].float()
    around = AROUND // 2
    high, low = (F.max_pool2d(F.pad(side, (around,) * 4, "replicate"), AROUND, 1) for side in (page, -page))
    flat = (high + low < RANGE).float().mean()
    return [math.log1p(len(lines)), math.log(covered + 1e-3), float((page > WHITE).float().mean()), float(flat)]
