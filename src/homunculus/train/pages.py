"""Training pages: documents laid out on the CPU, drawn on the GPU at thousands a second, with everything on them known.

`lay_out` writes a document (letters, forms, receipts, tables, charts, signs ...), `Draft.of` packs a batch of them into
plain tensors in a worker process, `draw` turns the draft into worn pixels and labels on the device. Real scans give the
same `Sheets` (see scans.py), so what learns from them cannot tell which it is given.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.pyramid import gaussian
from homunculus.reader.letters import encode
from homunculus.reader.scout import QUESTION
from homunculus.train.asks import Asks, about_layout
from homunculus.train.synth import degrade as worn
from homunculus.train.synth import rasterize as drawing
from homunculus.train.synth.layouts import DrawnPage
from homunculus.train.synth.rasterize import Glyphs

SCENIC = {"sign", "label", "card", "collage"}  # kinds that may stand on a photograph
T = TypeVar("T")
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of a batch of pages, in pixels of the page as it is shown.

    Shape:
        letters [G, 5]: page, code, centre x, centre y, pixels per em, page by page; dense [B] whether they name all
        text there is; questions [B, Q, QUESTION] codes; answers [B, Q, PARTS, 4] boxes, empty ones for parts that are
        not there; usual [B, U, 4] boxes that people tend to ask about, empty for none; where wanted lines [B, M, 5] of
        all text lines as in `reader.strips`, zero behind the last.
    """

    letters: Tensor
    dense: Tensor
    questions: Tensor
    answers: Tensor
    usual: Tensor
    lines: Tensor | None = None

    @classmethod
    def of(cls, letters: list[Array], dense: list[bool], asks: list[Asks], lines: Tensor | None = None) -> Labels:
        """From one entry a page: letters [n, 5]; whether those are all; what is asked."""
        questions = torch.stack([encode(page.questions, QUESTION) for page in asks]).to(torch.uint8)
        answers, usual = (
            torch.from_numpy(np.stack(part)) for part in zip(*((a.answers, a.usual) for a in asks), strict=True)
        )
        known = torch.from_numpy(np.concatenate(letters))
        return cls(known, torch.tensor(dense), questions, answers, usual, lines)

    def first(self, count: int) -> Labels:
        """The labels of the first pages alone."""
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "letters"}
        cut = {name: value[:count] for name, value in known.items() if value is not None}
        return replace(self, letters=self.letters[self.letters[:, 0] < count], **cut)

    def moved(self, matrix: Tensor) -> Labels:
        """The labels after affine maps [B, 2, 3] of pixels."""
        page = self.letters[:, 0].long()
        spot = _map(matrix[page], self.letters[:, None, 2:4])[:, 0]
        growth = (matrix[:, 0, 0] * matrix[:, 1, 1] - matrix[:, 0, 1] * matrix[:, 1, 0]).abs().sqrt()
        letters = torch.cat((self.letters[:, :2], spot, self.letters[:, 4:] * growth[page, None]), 1)
        return replace(
            self,
            letters=letters,
            answers=_map_boxes(matrix, self.answers.flatten(1, 2)).view_as(self.answers),
            usual=_map_boxes(matrix, self.usual),
            lines=None if self.lines is None else _map_lines(matrix, self.lines, growth),
        )


@dataclass(frozen=True, eq=False)
class Sheets:
    """A batch of pages and what is known of them: pixels uint8 [B, 3, H, W]."""

    pixels: Tensor
    labels: Labels

    @cached_property
    def levels(self) -> list[Tensor]:
        """The pyramid of the pages, as many levels as their tree has."""
        return gaussian(self.pixels, CellTree(*self.pixels.shape[2:]).levels)


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
        asks: int = 8,
        usual: int = 24,
        ocr: bool = False,
    ) -> Draft:
        """Pack layouts of one size, with so many questions to answer of each; with `ocr` also all their text lines."""
        pages = [_prepare(layout, advance) for layout in layouts]
        glyphs = [_numbered(b, layout.glyphs[:, :6]) for b, layout in enumerate(layouts)]
        straight = [_as_fills(layout.strokes) for layout in layouts]
        fills = [_numbered(b, np.concatenate((x.fills, straight[b][0]))) for b, x in enumerate(layouts)]
        strokes = [_numbered(b, straight[b][1]) for b in range(len(layouts))]
        letters = [_numbered(b, page) for b, page in enumerate(pages)]
        asked = [about_layout(layout, rng, asks, usual) for layout in layouts]
        every = _lines_of(layouts) if ocr else None
        labels = Labels.of(letters, [True] * len(layouts), asked, every)
        parts = {"glyphs": glyphs, "fills": fills, "strokes": strokes}
        flat = {name: torch.from_numpy(np.concatenate(part)) for name, part in parts.items()}
        scenic = torch.tensor([layout.kind in SCENIC for layout in layouts])
        texts = [layout.lines if ocr else [] for layout in layouts]
        size = (len(layouts), layouts[0].height, layouts[0].width)
        return cls(size, scenic=scenic, labels=labels, texts=texts, **flat)


def to(batch: T, device: torch.device | str) -> T:
    """A dataclass of tensors on another device."""

    def carry(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(device, non_blocking=True)
        return to(value, device) if hasattr(value, "__dataclass_fields__") else value

    return type(batch)(**{f.name: carry(getattr(batch, f.name)) for f in fields(batch)})  # type: ignore[arg-type]


@torch.no_grad()
def draw(draft: Draft, font: Glyphs, photos: Tensor | None = None, hard: float = 1.0) -> Sheets:
    """Draw, colour, tilt and wear a draft that lies on the device; photos uint8 [P, 3, h, w] may stand behind."""
    B, H, W = draft.size
    channels = 3 if float(torch.rand(())) < 0.35 else 1
    text = drawing.ink(draft.glyphs, font, draft.size)[:, None]
    weight = worn.between(text, 0.6, 1.3)  # thin or fat ink
    text = text.sign() * text.abs().clamp(min=1e-6) ** weight
    paint = drawing.fills(draft.fills, draft.size, channels)
    scribble = drawing.strokes(draft.strokes, draft.size)[:, None]
    text = torch.where(text < 0, text, torch.maximum(text, scribble))
    matrix, size = tilt(B, H, W, text.device), torch.tensor([[H, W]], device=text.device)
    layers = worn.warp(torch.cat((text, paint), 1), to_grid(matrix, size.expand(B, 2), (H, W)), "zeros")
    page = _coloured(layers[:, :1], layers[:, 1:], draft.scenic, photos)
    page = worn.some(worn.wear(page, hard), 0.05, lambda x: 1 - x)
    pixels = (page * 255).round().to(torch.uint8).expand(-1, 3, -1, -1)
    return Sheets(pixels, draft.labels.moved(matrix))


def tilt(B: int, H: int, W: int, device: torch.device | str, most: float = 0.025, zoom: float = 0.1) -> Tensor:
    """Small random rotations, zooms and shifts of pages about their centre, as affine maps of pixels. [B, 2, 3]"""
    turn = most * torch.randn(B, device=device).clamp(-2, 2) * 0.5 * (torch.rand(B, device=device) < 0.6)
    size = 1 - zoom * torch.rand(B, device=device)
    wide = size * (1 + 0.05 * torch.randn(B, device=device).clamp(-1.5, 1.5))
    linear = torch.stack((wide * turn.cos(), -size * turn.sin(), wide * turn.sin(), size * turn.cos()), 1).view(B, 2, 2)
    middle = torch.tensor([W / 2, H / 2], device=device)
    shift = (torch.rand(B, 2, device=device) - 0.5) * 0.04 * middle
    return torch.cat((linear, (middle + shift - linear @ middle)[..., None]), 2)


def to_grid(matrix: Tensor, source: Tensor, target: tuple[int, int]) -> Tensor:
    """What `affine_grid` wants for maps [B, 2, 3] of pixels of the source, height and width [B, 2], to the target's."""
    a, b, c, d = (matrix[:, i, j] for i in (0, 1) for j in (0, 1))
    back = torch.stack((d, -b, -c, a), 1).view(-1, 2, 2) / (a * d - b * c)[:, None, None]
    half = torch.tensor([target[1] / 2, target[0] / 2], device=matrix.device)
    middle = back @ (half - matrix[:, :, 2])[..., None]  # the middle of the target, in pixels of the source
    size = source.flip(1)[..., None].to(matrix.dtype)
    return torch.cat((back * half * 2 / size, middle * 2 / size - 1), 2)


def _coloured(text: Tensor, paint: Tensor, scenic: Tensor, photos: Tensor | None) -> Tensor:
    """Paper, shading and ink in their colours: text [B, 1, H, W], paint [B, C, H, W] -> [B, C, H, W]."""
    B, C, H, W = paint.shape
    device = paint.device
    paper = 1 - 0.45 * torch.rand(B, C, 1, 1, device=device) * torch.rand(B, 1, 1, 1, device=device)
    paper = paper.expand(B, C, H, W).contiguous()
    worn.some(paper, 0.25, lambda x: x + worn.texture(x) * worn.between(x, 0, 0.06))
    scene = scenic.view(-1, 1, 1, 1) & worn.chance(paint, 0.75)
    dark = 0.4 * torch.rand(B, C, 1, 1, device=device) * torch.rand(B, 1, 1, 1, device=device)
    light = 1 - 0.15 * torch.rand(B, C, 1, 1, device=device)
    if bool(scene.any()):
        behind = _scenery(paint, photos)
        pale = worn.chance(paint, 0.5)  # light letters on a darkened scene, or dark on a lightened one
        strength = worn.between(paint, 0.25, 0.8)
        behind = torch.where(pale, behind * strength, 1 - (1 - behind) * strength)
        paper = torch.where(scene, behind, paper)
        dark = torch.where(scene & pale, light, dark)
    page = paper * (1 - 0.9 * paint)
    page = page + (dark - page) * text.clamp(min=0)
    return page + (light - page) * (-text).clamp(min=0)


def _scenery(paint: Tensor, photos: Tensor | None) -> Tensor:
    """Photographs stretched over the page, or clouds of colour where there are none: [B, C, H, W]."""
    B, C, H, W = paint.shape
    clouds = torch.cat([worn.texture(paint) for _ in range(C)], 1).mul(0.25).add(0.5).clamp(0, 1)
    if photos is None or not len(photos):
        return clouds
    picked = photos[torch.randint(len(photos), (B,), device=photos.device)].float() / 255
    picked = picked.mean(1, keepdim=True) if C == 1 else picked
    picked = F.interpolate(picked, (H, W), mode="bilinear")
    return torch.where(worn.chance(paint, 0.75), picked, clouds)


def _map(matrix: Tensor, points: Tensor) -> Tensor:
    """Points [B, n, 2] through maps [B, 2, 3]."""
    return points @ matrix[:, :, :2].transpose(1, 2) + matrix[:, None, :, 2]


def _map_lines(matrix: Tensor, lines: Tensor, growth: Tensor) -> Tensor:
    """Lines [B, M, 5] through maps [B, 2, 3] that enlarge by `growth` [B]."""
    ends = [_map(matrix, lines[..., i : i + 2]) for i in (0, 2)]
    return torch.cat((*ends, lines[..., 4:] * growth[:, None, None]), 2)


def _lines_of(layouts: Sequence[DrawnPage]) -> Tensor:
    """All text lines of layouts: [B, M, 5]."""
    lines = torch.zeros(len(layouts), max(len(layout.lines) for layout in layouts), 5)
    for row, layout in zip(lines, layouts, strict=True):
        x0, y0, x1, y1 = torch.from_numpy(layout.line_boxes).float().reshape(-1, 4).unbind(1)
        row[: len(x0)] = torch.stack((x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, y1 - y0), 1)
    return lines


def _map_boxes(matrix: Tensor, boxes: Tensor) -> Tensor:
    """Boxes [B, n, 4] through maps with little rotation: centre and size are mapped; empty ones stay empty."""
    centre, size = (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]
    centre = _map(matrix, centre)
    growth = torch.stack((matrix[:, :, 0].norm(dim=1), matrix[:, :, 1].norm(dim=1)), 1)
    size = size * growth[:, None]
    moved = torch.cat((centre - size / 2, centre + size / 2), 2)
    return torch.where((size > 0).all(2, keepdim=True), moved, torch.zeros_like(moved))


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


def _prepare(layout: DrawnPage, advance: Array) -> Array:
    """Code, centre and pixels per em of each glyph of a layout: float32 [G, 4]."""
    code, font, x, y, size = layout.glyphs[:, :5].T
    wide = advance[font.astype(int), code.astype(int) + 1] * size
    return np.stack((code + 2, x + wide / 2, y - 0.27 * size, size), 1).astype(np.float32)
