"""Grey pages and their lines on one device, ready to be sampled: strips for the recogniser, crops for the finder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from homunculus.reader.strips import bilinear, grey_pyramid
from homunculus.train.scans.line_pages import OcrPage

LEVELS = 4


@dataclass(frozen=True, eq=False)
class PageStore:
    """Pyramids of pages in one flat tensor.

    Shape:
        flat uint8 [P]; base [n, LEVELS] where each level of each page begins; sizes [n, LEVELS, 2] height, width.
    """

    flat: Tensor
    base: Tensor
    sizes: Tensor
    shapes: list[tuple[int, int]]  # height, width of each page

    @classmethod
    def of(cls, pages: Sequence[Tensor], device: torch.device) -> PageStore:
        """From grey pages uint8 [h, w] each."""
        shapes = [(int(page.shape[0]), int(page.shape[1])) for page in pages]
        counts = [sum(h * w for h, w in _halves(shape)) for shape in shapes]
        flat = torch.empty(sum(counts), dtype=torch.uint8, device=device)  # filled in place: pages are gigabytes
        base, at = [], 0
        for page in pages:
            starts = []
            for level in grey_pyramid(page.to(device), LEVELS):
                starts.append(at)
                flat[at : at + level.numel()] = level.flatten()
                at += level.numel()
            base.append(starts)
        sizes = torch.tensor([_halves(shape) for shape in shapes], device=device)
        return cls(flat, torch.tensor(base, device=device), sizes, shapes)

    def page(self, page: int, level: int) -> Tensor:
        """One page at one level. uint8 [h, w]"""
        (height, width), start = self.sizes[page, level].tolist(), int(self.base[page, level])
        return self.flat[start : start + height * width].view(height, width)

    def sample(self, page: Tensor, level: Tensor, spots: Tensor) -> Tensor:
        """Values of pages [n] at a level each [n], at spots [n, h, w, 2] in pixels of the page: float [n, h, w]."""
        spots = spots / 2.0 ** level[:, None, None, None]
        base, sizes = self.base[page, level], self.sizes[page, level]
        return bilinear(self.flat, base[:, None, None], sizes[:, None, None], spots)


def _halves(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Heights and widths of the levels of a page."""
    return [(-(-shape[0] // 2**level), -(-shape[1] // 2**level)) for level in range(LEVELS)]


def from_boxes(boxes: Tensor) -> Tensor:
    """Level lines [n, 5] that fill boxes [n, 4]."""
    middle = (boxes[:, 1] + boxes[:, 3]) / 2
    return torch.stack((boxes[:, 0], middle, boxes[:, 2], middle, boxes[:, 3] - boxes[:, 1]), 1)


def shares_of(pages: Sequence[OcrPage], mix: dict[str, float], counts: Sequence[int]) -> list[float]:
    """How often each page is drawn: sets in the shares of `mix` (1 unless named), pages of a set by their counts."""
    totals: dict[str, int] = {}
    for page, count in zip(pages, counts, strict=True):
        totals[page.source] = totals.get(page.source, 0) + count
    return [
        mix.get(page.source, 1.0) * count / max(1, totals[page.source])
        for page, count in zip(pages, counts, strict=True)
    ]
