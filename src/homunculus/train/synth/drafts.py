"""Drawn pages: laid out on the CPU, drawn and degraded on the GPU at thousands a second, with everything on them known.

`lay_out` writes a document (letters, forms, receipts, tables, charts, signs ...), `Draft.of` packs a batch of them into
plain tensors in a worker process, `render` turns the draft into degraded pixels and labels on the device.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.train.pages import PARTS, Array, BoxQuestion, Labels, PageBatch, PageQuestions, affine_theta
from homunculus.train.synth import rasterize
from homunculus.train.synth.degradations import affine, degrade, random_apply, random_mask, smooth_noise, uniform
from homunculus.train.synth.documents.page import DrawnPage, DrawnQuestion
from homunculus.train.synth.rasterize import Glyphs

SCENIC = {"sign", "label", "card", "collage"}  # kinds that may stand on a photograph
UNTYPICAL = {"search"}  # sorts of question that say nothing about what people tend to ask
WORKED = {"count", "yesno", "absent"}  # sorts of question whose answer stands nowhere


@dataclass(frozen=True, eq=False)
class Draft:
    """Pages laid out but not yet drawn: primitives with the number of their page in front, and labels."""

    size: tuple[int, int, int]
    glyphs: Tensor  # [G, 7]
    fills: Tensor  # [M, 7]
    strokes: Tensor  # [S, 7]
    scenic: Tensor  # [B]
    labels: Labels
    texts: list[list[str]]  # of the lines in `labels.lines`

    @classmethod
    def of(
        cls,
        layouts: Sequence[DrawnPage],
        advance: Array,
        rng: random.Random,
        questions: int = 8,
        query_free: int = 24,
        ocr: bool = False,
    ) -> Draft:
        """Pack layouts of one size, with so many questions about each; with `ocr` also all their text lines."""
        glyphs = [_numbered(b, layout.glyphs[:, :6]) for b, layout in enumerate(layouts)]
        straight = [_as_fills(layout.strokes) for layout in layouts]
        fills = [_numbered(b, np.concatenate((x.fills, straight[b][0]))) for b, x in enumerate(layouts)]
        strokes = [_numbered(b, straight[b][1]) for b in range(len(layouts))]
        letters = [_numbered(b, _letters(layout, advance)) for b, layout in enumerate(layouts)]
        asked_questions = [page_questions(layout, rng, questions, query_free) for layout in layouts]
        labels = Labels.of(letters, [True] * len(layouts), asked_questions, _lines_of(layouts) if ocr else None)
        parts = {"glyphs": glyphs, "fills": fills, "strokes": strokes}
        flat = {name: torch.from_numpy(np.concatenate(part)) for name, part in parts.items()}
        scenic = torch.tensor([layout.kind in SCENIC for layout in layouts])
        texts = [layout.lines if ocr else [] for layout in layouts]
        size = (len(layouts), layouts[0].height, layouts[0].width)
        return cls(size, scenic=scenic, labels=labels, texts=texts, **flat)


@torch.no_grad()
def render(draft: Draft, font: Glyphs, photos: Tensor | None = None, strength: float = 1.0) -> PageBatch:
    """Pixels of a draft that lies on the device: drawn, coloured, tilted, degraded.

    Photos uint8 [P, 3, h, w] may stand behind; `strength` scales how often pages are degraded.
    """
    B, H, W = draft.size
    channels = 3 if float(torch.rand(())) < 0.35 else 1
    text = rasterize.ink(draft.glyphs, font, draft.size)[:, None]
    weight = uniform(text, 0.6, 1.3)  # thin or fat ink
    text = text.sign() * text.abs().clamp(min=1e-6) ** weight
    paint = rasterize.fills(draft.fills, draft.size, channels)
    scribble = rasterize.strokes(draft.strokes, draft.size)[:, None]
    text = torch.where(text < 0, text, torch.maximum(text, scribble))
    matrix, size = random_affine(B, H, W, text.device), torch.tensor([[H, W]], device=text.device)
    layers = affine(torch.cat((text, paint), 1), affine_theta(matrix, size.expand(B, 2), (H, W)), "zeros")
    page = _coloured(layers[:, :1], layers[:, 1:], draft.scenic, photos)
    page = random_apply(degrade(page, strength), 0.05, lambda x: 1 - x)
    pixels = (page * 255).round().to(torch.uint8).expand(-1, 3, -1, -1)
    return PageBatch(pixels, draft.labels.moved(matrix))


def random_affine(B: int, H: int, W: int, device: torch.device | str, tilt: float = 0.025, zoom: float = 0.1) -> Tensor:
    """Small random rotations, zooms and shifts of pages about their centre, as affine maps of pixels. [B, 2, 3]"""
    turn = tilt * torch.randn(B, device=device).clamp(-2, 2) * 0.5 * (torch.rand(B, device=device) < 0.6)
    size = 1 - zoom * torch.rand(B, device=device)
    wide = size * (1 + 0.05 * torch.randn(B, device=device).clamp(-1.5, 1.5))
    linear = torch.stack((wide * turn.cos(), -size * turn.sin(), wide * turn.sin(), size * turn.cos()), 1).view(B, 2, 2)
    middle = torch.tensor([W / 2, H / 2], device=device)
    shift = (torch.rand(B, 2, device=device) - 0.5) * 0.04 * middle
    return torch.cat((linear, (middle + shift - linear @ middle)[..., None]), 2)


def _coloured(text: Tensor, paint: Tensor, scenic: Tensor, photos: Tensor | None) -> Tensor:
    """Paper, shading and ink in their colours: text [B, 1, H, W], paint [B, C, H, W] -> [B, C, H, W]."""
    B, C, H, W = paint.shape
    device = paint.device
    paper = 1 - 0.45 * torch.rand(B, C, 1, 1, device=device) * torch.rand(B, 1, 1, 1, device=device)
    paper = paper.expand(B, C, H, W).contiguous()
    random_apply(paper, 0.25, lambda x: x + smooth_noise(x) * uniform(x, 0, 0.06))
    scene = scenic.view(-1, 1, 1, 1) & random_mask(paint, 0.75)
    dark = 0.4 * torch.rand(B, C, 1, 1, device=device) * torch.rand(B, 1, 1, 1, device=device)
    light = 1 - 0.15 * torch.rand(B, C, 1, 1, device=device)
    if bool(scene.any()):
        behind = _scenery(paint, photos)
        pale = random_mask(paint, 0.5)  # light letters on a darkened scene, or dark on a lightened one
        strength = uniform(paint, 0.25, 0.8)
        behind = torch.where(pale, behind * strength, 1 - (1 - behind) * strength)
        paper = torch.where(scene, behind, paper)
        dark = torch.where(scene & pale, light, dark)
    page = paper * (1 - 0.9 * paint)
    page = page + (dark - page) * text.clamp(min=0)
    return page + (light - page) * (-text).clamp(min=0)


def _scenery(paint: Tensor, photos: Tensor | None) -> Tensor:
    """Photographs stretched over the page, or clouds of colour where there are none: [B, C, H, W]."""
    B, C, H, W = paint.shape
    clouds = torch.cat([smooth_noise(paint) for _ in range(C)], 1).mul(0.25).add(0.5).clamp(0, 1)
    if photos is None or not len(photos):
        return clouds
    picked = photos[torch.randint(len(photos), (B,), device=photos.device)].float() / 255
    picked = picked.mean(1, keepdim=True) if C == 1 else picked
    picked = F.interpolate(picked, (H, W), mode="bilinear")
    return torch.where(random_mask(paint, 0.75), picked, clouds)


def page_questions(layout: DrawnPage, rng: random.Random, count: int, common_count: int) -> PageQuestions:
    """At most `count` questions about a drawn page whose answers have boxes, for the scout."""
    extractive = [question for question in layout.questions if _is_extractive(layout, question)]
    picked = rng.sample(extractive, min(count, len(extractive)))
    questions = [BoxQuestion(question.text, _answer_boxes(layout, question)) for question in picked]
    typical = [question for question in extractive if question.sort not in UNTYPICAL]
    common = [box for question in typical for box in line_boxes(layout, question.words)]
    return PageQuestions.of(questions, count, rng.sample(common, min(common_count, len(common))), common_count)


def line_boxes(layout: DrawnPage, words: list[int]) -> list[Array]:
    """One box for each line that the words of an answer stand in."""
    lines: dict[int, list[int]] = {}
    for word in words:
        lines.setdefault(int(layout.word_lines[word]), []).append(word)
    found = (layout.word_boxes[members] for members in lines.values())
    return [np.concatenate((boxes[:, :2].min(0), boxes[:, 2:].max(0))) for boxes in found]


def _answer_boxes(layout: DrawnPage, question: DrawnQuestion) -> Array:
    """Where the answer stands: [n, 4]; none for what stands all over the page."""
    boxes = line_boxes(layout, question.words)
    return np.stack(boxes) if 0 < len(boxes) <= PARTS else np.zeros((0, 4), np.float32)


def _is_extractive(layout: DrawnPage, question: DrawnQuestion) -> bool:
    """Whether the answer of a question is what its words say, so that it has a place."""
    stated = bool(question.words) and question.sort not in WORKED
    return stated and question.answer == layout.text_of(question.words)


def _lines_of(layouts: Sequence[DrawnPage]) -> Tensor:
    """All text lines of layouts: [B, M, 5]."""
    lines = torch.zeros(len(layouts), max(len(layout.lines) for layout in layouts), 5)
    for row, layout in zip(lines, layouts, strict=True):
        x0, y0, x1, y1 = torch.from_numpy(layout.line_boxes).float().reshape(-1, 4).unbind(1)
        row[: len(x0)] = torch.stack((x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, y1 - y0), 1)
    return lines


def _numbered(page: int, rows: Array) -> Array:
    """Rows with the number of their page in front."""
    return np.concatenate((np.full((len(rows), 1), page, np.float32), rows.astype(np.float32)), 1)


def _as_fills(strokes: Array) -> tuple[Array, Array]:
    """Level and upright strokes as filled rectangles [n, 6], and the others as they are."""
    x0, y0, x1, y1, width, dark = strokes.T
    level, upright = y0 == y1, x0 == x1
    straight = level | upright
    half = np.maximum(width.round(), 1) / 2
    across, down = np.where(level, 0, half), np.where(level, half, 0)
    boxes = np.stack(
        (
            np.minimum(x0, x1) - across,
            np.minimum(y0, y1) - down,
            np.maximum(x0, x1) + across,
            np.maximum(y0, y1) + down,
            dark,
            0 * dark,
        ),
        1,
    )
    return boxes[straight], strokes[~straight]


def _letters(layout: DrawnPage, advance: Array) -> Array:
    """Code, centre and pixels per em of each glyph of a layout: float32 [G, 4]."""
    code, font, x, y, size = layout.glyphs[:, :5].T
    wide = advance[font.astype(int), code.astype(int) + 1] * size
    return np.stack((code + 2, x + wide / 2, y - 0.27 * size, size), 1).astype(np.float32)
