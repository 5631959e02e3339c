"""The smoke plan, a font and pages that several tests of training use."""

import random
from functools import cache
from pathlib import Path

import torch

from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.drafts import Draft
from homunculus.train.synth.layouts import Typefaces, lay_out
from homunculus.train.synth.rasterize import Glyphs
from homunculus.train.synth.text import Texts

SMOKE = Path(__file__).parents[1] / "configs" / "smoke.toml"
CPU = torch.device("cpu")


@cache
def font() -> tuple[Atlas, Glyphs]:
    atlas = Atlas.builtin()
    return atlas, Glyphs.of(atlas, CPU)


def glyph(char: str, x: float, y: float, size: float, ink: float = 1.0, page: int = 0) -> list[float]:
    return [page, ord(char) - 33, 0, x, y, size, ink]


def middle_of(image: torch.Tensor) -> tuple[float, float]:
    """Centre of mass x, y of an image [h, w], a pixel's own being half-way through it."""
    y, x = (torch.arange(side) + 0.5 for side in image.shape)
    return float((image.sum(0) * x).sum() / image.sum()), float((image.sum(1) * y).sum() / image.sum())


def draft_of(kind: str, seed: int = 0, pages: int = 3) -> Draft:
    atlas, _ = font()
    typefaces, rng, texts = Typefaces.of(atlas), random.Random(seed), Texts.builtin(seed)
    return Draft.of([lay_out(kind, 320, 320, texts, typefaces, rng) for _ in range(pages)], typefaces.advance, rng)
