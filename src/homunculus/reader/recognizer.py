"""The recogniser: strips of text lines in, text with a confidence out. Convolutions, attention along the line, CTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from homunculus.reader.blocks import Block, rope_along, steady
from homunculus.reader.convs import ConvStage
from homunculus.reader.letters import BLANK, CLASSES, even_case
from homunculus.reader.letters import decode as text_of
from homunculus.reader.strips import STEP, STRIP_HEIGHT, columns_of

STRIDE = 4  # strip pixels a time step covers
SPACING = 0.25  # rotary units a time step counts as
BATCH_PIXELS = 32 * 512 * 16  # strip pixels read at a time on a CPU


class Recognizer(nn.Module):
    """Reads strips: call it with uint8 [n, 1, 32, W] and widths [n] to get (text, confidence) for each.

    Args:
        stages: widths of the four convolution stages.
        width, depth, heads: of the transformer along the line.
    """

    height = STRIP_HEIGHT

    def __init__(
        self, stages: Sequence[int] = (32, 64, 160, 256), width: int = 288, depth: int = 5, heads: int = 6
    ) -> None:
        super().__init__()
        self.sizes = {"stages": list(stages), "width": width, "depth": depth, "heads": heads}
        strides: tuple[int | tuple[int, int], ...] = (2, 2, (2, 1), (2, 1))
        sources = (1, *stages[:-1])
        self.stages = nn.ModuleList(
            ConvStage(source, out, stride) for source, out, stride in zip(sources, stages, strides, strict=True)
        )
        self.project = nn.Linear(2 * stages[-1], width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.classify = nn.LayerNorm(width), nn.Linear(width, CLASSES)
        self.head = width // heads

    def logits(self, strips: Tensor, widths: Tensor) -> Tensor:
        """Strips [n, 1, 32, W] from -1 to 1, widths [n] in pixels -> logits [n, W / 4, 96].

        Behind its end a strip is zero, for at least TAIL pixels: convolutions reach no further, so a reading never
        depends on batch mates.
        """
        x = strips * inside(widths, strips.shape[3], 1)[:, None, None].to(strips.dtype)
        x = x.contiguous(memory_format=torch.channels_last)
        for stage in self.stages:
            x = stage(x)
        steps = inside(widths, x.shape[3], STRIDE)  # [n, T]
        x = self.project(x.permute(0, 3, 1, 2).flatten(2))  # [n, T, width]
        rope = rope_along(x.shape[1], self.head, x.device, SPACING)
        for block in self.blocks:
            x = block(x, rope, steps[:, None, None])
        return cast(Tensor, self.classify(self.norm(x)))

    @torch.no_grad()
    def __call__(self, strips: Tensor, widths: Tensor) -> list[tuple[str, float]]:
        """Texts and confidences of strips, read in batches of about one width."""
        order = widths.argsort().tolist()
        found: list[tuple[str, float]] = [("", 0.0)] * len(order)
        for rows in _batches(order, widths.tolist(), strips.shape[2], strips.is_cuda):
            wide = columns_of(int(widths[rows].max()))
            part, ends = strips[rows, :, :, :wide], widths[rows]
            with steady():
                logits = self.logits(part.to(self.classify.weight.dtype) / 127.5 - 1, ends)
            for row, text in zip(rows, decode(logits, ends), strict=True):
                found[row] = text
        return found


def inside(widths: Tensor, count: int, scale: int) -> Tensor:
    """Which of `count` columns, `scale` pixels each, belong to strips of these widths. bool [n, count]"""
    return torch.arange(count, device=widths.device) * scale < widths[:, None]


def decode(logits: Tensor, widths: Tensor) -> list[tuple[str, float]]:
    """The likeliest path of each strip, repeats and blanks removed, and the mean probability of its characters.

    Words of mixed case are evened out.
    """
    probs, codes = logits.float().softmax(2).max(2)  # [n, T]
    codes = torch.where(inside(widths, codes.shape[1], STRIDE), codes, BLANK)
    new = codes != torch.cat((torch.full_like(codes[:, :1], BLANK), codes[:, :-1]), 1)
    kept = (codes != BLANK) & new
    found = []
    for row, keep, sure in zip(codes.cpu(), kept.cpu(), probs.cpu(), strict=True):
        text = even_case(" ".join(text_of(row[keep].tolist()).split()))
        found.append((text, float(sure[keep].mean()) if text else 0.0))
    return found


def _batches(order: list[int], widths: list[int], height: int, cuda: bool) -> list[list[int]]:
    """Rows in order of width, as many at a time as fit."""
    max_pixels = BATCH_PIXELS * (16 if cuda else 1)
    batches: list[list[int]] = []
    for row in order:
        if not batches or (len(batches[-1]) + 1) * height * (widths[row] + STEP) > max_pixels:
            batches.append([])
        batches[-1].append(row)
    return batches
