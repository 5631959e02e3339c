"""Scanned pages for the encoder and the scout: placed on a canvas in workers, brought to pixels on the device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus.errors import InputError
from homunculus.train.pages import Array, BoxQuestion, Labels, PageBatch, PageQuestions, affine_theta
from homunculus.train.scans.placement import PLACES, Band, PagePlacement, place_page
from homunculus.train.scans.scan import Scan, read_scans
from homunculus.train.synth.degradations import degrade, random_apply

HUMAN, AUTO = 0.4, 0.35  # shares of questions that people asked, and that follow from the page's lines
SHUFFLED = 0.4  # share of pages whose bands change places
QUERY_FREE = 24  # boxes of a page that people tend to ask about
SEARCHES = ("{}", "{}?", "Find '{}'", "Where is '{}'?", "Where does it say {}?", "Look for {}", 'Show me "{}"')


@dataclass(frozen=True, eq=False)
class ScanDraft:
    """Pages picked and placed but not yet rendered: maps [B, 2, 3] of their pixels to the canvas, labels on the canvas.

    The bands of each page are put together in the order given before that.
    """

    size: tuple[int, int]
    picked: list[int]
    bands: list[list[Band]]
    matrix: Tensor
    labels: Labels


class Scans:
    """Pages of some data folders; `draft` picks and places a batch of them, `render` gives its pixels on the device.

    Args:
        folders: each holds questions.jsonl, images/ and, where words are known, words.jsonl.
        val: the pages kept for validation, or all the others.
    """

    def __init__(self, folders: Sequence[Path], device: torch.device | str, val: bool = False) -> None:
        self.shuffled = 0.0 if val else SHUFFLED
        self.pages: list[Scan] = [page for folder in folders for page in read_scans(Path(folder), val)]
        if not self.pages:
            raise InputError(f"there are no pages in {', '.join(map(str, folders))}")
        self.pixels = [torch.from_numpy(page.pixels).to(device) for page in self.pages]

    def __len__(self) -> int:
        return len(self.pages)

    def draft(
        self, count: int, size: tuple[int, int], rng: random.Random, questions: int = 8, crops: bool = False
    ) -> ScanDraft:
        """Random pages on canvases, height x width: about their own size, large ones cut where `crops` allows it."""
        suited = [i for i, page in enumerate(self.pages) if _suits(page.pixels.shape[1:], size, crops)]
        picked = rng.choices(suited or range(len(self.pages)), k=count)
        pages = [self.pages[i] for i in picked]
        places = [place_page(page.pixels.shape[1:], page.gaps, size, crops, self.shuffled, rng) for page in pages]
        letters = [_letters(b, page, place) for b, (page, place) in enumerate(zip(pages, places, strict=True))]
        page_questions = [
            _questions(page, place, size, questions, rng) for page, place in zip(pages, places, strict=True)
        ]
        labels = Labels.of(letters, [page.dense for page in pages], page_questions)
        matrix = torch.from_numpy(np.stack([place.matrix for place in places]))
        return ScanDraft(size, picked, [place.bands for place in places], matrix, labels)

    @torch.no_grad()
    def render(self, draft: ScanDraft, strength: float = 0.5) -> PageBatch:
        """Pixels of a draft that lies on the device; `strength` scales how often pages are degraded."""
        H, W = draft.size
        pages = [
            torch.cat([self.pixels[i][:, start:end] for start, end in order], 1) if len(order) > 1 else self.pixels[i]
            for i, order in zip(draft.picked, draft.bands, strict=True)
        ]
        channels = max(len(page) for page in pages)
        size = torch.tensor([page.shape[1:] for page in pages], device=draft.matrix.device)
        grids = F.affine_grid(affine_theta(draft.matrix, size, (H, W)), [len(pages), 1, H, W], align_corners=False)
        images = torch.empty(len(pages), channels, H, W, device=grids.device)
        for image, page, grid in zip(images, pages, grids, strict=True):
            sampled = F.grid_sample(page[None] / 255, grid[None], padding_mode="border", align_corners=False)
            image.copy_(sampled[0].expand(channels, -1, -1))
        images = random_apply(degrade(images, strength), 0.03, lambda x: 1 - x)
        return PageBatch((images * 255).round().to(torch.uint8).expand(-1, 3, -1, -1), draft.labels)


def read_photos(folder: Path, count: int = 500, side: int = 512) -> Tensor:
    """Photographs for the backgrounds of drawn pages: uint8 [n, 3, side, side]."""
    files = sorted(Path(folder).glob("*.webp"))[:count]
    shots = [np.asarray(Image.open(file).convert("RGB").resize((side, side))) for file in files]
    return torch.from_numpy(np.stack(shots)).permute(0, 3, 1, 2).contiguous() if shots else torch.zeros(0, 3, 1, 1)


def _suits(page: Sequence[int], canvas: tuple[int, int], crops: bool) -> bool:
    """Whether a page does not vanish in a canvas and, unless it may be cut, is shown nearly whole."""
    h, w = page
    return (crops or (h <= 1.2 * canvas[0] and w <= 1.2 * canvas[1])) and h * w >= 0.3 * canvas[0] * canvas[1]


def _letters(b: int, page: Scan, place: PagePlacement) -> Array:
    """The letters of page number b on its canvas: [n, 5]."""
    code, spots, em = page.letters[:, :1], place.points(page.letters[:, 1:3]), page.letters[:, 3:] * place.matrix[1, 1]
    return np.concatenate((np.full_like(code, b), code, spots, em), 1).astype(np.float32)


def _questions(
    page: Scan, place: PagePlacement, size: tuple[int, int], count: int, rng: random.Random
) -> PageQuestions:
    """Questions whose answers stand on the canvas: of people, automatic ones, and words to look for."""
    human = _on_canvas(page.questions, place, size)
    auto = [one.phrase(rng) for one in rng.sample(page.auto_questions, min(count, len(page.auto_questions)))]
    auto = _on_canvas(auto, place, size)
    picked = rng.sample(human, min(_round_randomly(count * HUMAN, rng), len(human)))
    picked += auto[: min(_round_randomly(count * AUTO, rng), count - len(picked))]
    for word, boxes in rng.sample(page.searches, min(2 * count, len(page.searches))):
        boxes = place.boxes(boxes)
        if len(picked) < count and _inside(boxes, size):
            picked.append(BoxQuestion(rng.choice(SEARCHES).format(word), boxes))
    return PageQuestions.of(picked, count, [box for question in human for box in question.boxes], QUERY_FREE)


def _on_canvas(questions: Sequence[BoxQuestion], place: PagePlacement, size: tuple[int, int]) -> list[BoxQuestion]:
    """The questions whose answers stand on the canvas; without those for a place on the page where it was shuffled."""
    located = [question for question in questions if len(question.boxes)]
    valid = [question for question in located if not (place.shuffled and PLACES.search(question.text))]
    moved = [BoxQuestion(question.text, place.boxes(question.boxes)) for question in valid]
    return [question for question in moved if _inside(question.boxes, size)]


def _inside(boxes: Array, size: tuple[int, int]) -> bool:
    """Whether boxes lie wholly on a canvas."""
    return bool(((boxes[:, :2] >= 0) & (boxes[:, 2:] <= size[::-1])).all())


def _round_randomly(value: float, rng: random.Random) -> int:
    """A number rounded up or down, so that its mean stays the same."""
    return int(value + rng.random())
