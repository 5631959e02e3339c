"""A batch of training pages, drawn or scanned: pixels, and all that is known of what stands on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.pyramid import gaussian
from homunculus.reader.letters import encode
from homunculus.reader.scout import QUESTION

PARTS = 4  # boxes that an answer may consist of
T = TypeVar("T")
Array = np.ndarray[Any, Any]


class BoxQuestion(NamedTuple):
    """A question and the boxes of its answer [n, 4]."""

    text: str
    boxes: Array


class PageQuestions(NamedTuple):
    """Questions about one page, boxes of their answers [n, PARTS, 4], boxes that people tend to ask about [m, 4]."""

    texts: list[str]
    answers: Array
    query_free: Array

    @classmethod
    def of(
        cls, questions: Sequence[BoxQuestion], count: int, common: Sequence[Array], common_count: int
    ) -> PageQuestions:
        """Padded with empty questions to `count`, and with empty boxes to `common_count`."""
        answers, query_free = np.zeros((count, PARTS, 4), np.float32), np.zeros((common_count, 4), np.float32)
        for n, question in enumerate(questions):
            answers[n, : min(PARTS, len(question.boxes))] = question.boxes[:PARTS]
        for n, box in enumerate(common[:common_count]):
            query_free[n] = box
        return cls([question.text for question in questions] + [""] * (count - len(questions)), answers, query_free)


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of a batch of pages, in pixels of the page as it is shown.

    Shape:
        letters [G, 5]: page, code, centre x, centre y, pixels per em, page by page; dense [B] whether they name all
        text there is; questions [B, Q, QUESTION] codes; answers [B, Q, PARTS, 4] boxes, empty ones for parts that are
        not there; query_free [B, U, 4] boxes that people tend to ask about, empty for none; where wanted lines
        [B, M, 5] of all text lines as in `reader.strips`, zero behind the last.
    """

    letters: Tensor
    dense: Tensor
    questions: Tensor
    answers: Tensor
    query_free: Tensor
    lines: Tensor | None = None

    @classmethod
    def of(
        cls, letters: list[Array], dense: list[bool], page_questions: list[PageQuestions], lines: Tensor | None = None
    ) -> Labels:
        """From one entry a page: letters [n, 5]; whether those are all; what is asked."""
        questions = torch.stack([encode(page.texts, QUESTION) for page in page_questions]).to(torch.uint8)
        answers = torch.from_numpy(np.stack([page.answers for page in page_questions]))
        query_free = torch.from_numpy(np.stack([page.query_free for page in page_questions]))
        known = torch.from_numpy(np.concatenate(letters))
        return cls(known, torch.tensor(dense), questions, answers, query_free, lines)

    def first(self, count: int) -> Labels:
        """The labels of the first pages alone."""
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "letters"}
        cut = {name: value[:count] for name, value in known.items() if value is not None}
        return replace(self, letters=self.letters[self.letters[:, 0] < count], **cut)

    def moved(self, matrix: Tensor) -> Labels:
        """The labels after affine maps [B, 2, 3] of pixels."""
        page = self.letters[:, 0].long()
        position = _map(matrix[page], self.letters[:, None, 2:4])[:, 0]
        growth = (matrix[:, 0, 0] * matrix[:, 1, 1] - matrix[:, 0, 1] * matrix[:, 1, 0]).abs().sqrt()
        letters = torch.cat((self.letters[:, :2], position, self.letters[:, 4:] * growth[page, None]), 1)
        return replace(
            self,
            letters=letters,
            answers=_map_boxes(matrix, self.answers.flatten(1, 2)).view_as(self.answers),
            query_free=_map_boxes(matrix, self.query_free),
            lines=None if self.lines is None else _map_lines(matrix, self.lines, growth),
        )


@dataclass(frozen=True, eq=False)
class PageBatch:
    """A batch of pages and their labels: pixels uint8 [B, 3, H, W]."""

    pixels: Tensor
    labels: Labels

    @cached_property
    def levels(self) -> list[Tensor]:
        """The pyramid of the pages, as many levels as their tree has."""
        return gaussian(self.pixels, CellTree(*self.pixels.shape[2:]).levels)


def to(batch: T, device: torch.device | str) -> T:
    """A dataclass of tensors on another device."""

    def carry(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(device, non_blocking=True)
        return to(value, device) if hasattr(value, "__dataclass_fields__") else value

    return type(batch)(**{f.name: carry(getattr(batch, f.name)) for f in fields(batch)})  # type: ignore[arg-type]


def affine_theta(matrix: Tensor, source: Tensor, target: tuple[int, int]) -> Tensor:
    """The `theta` of `affine_grid` for maps [B, 2, 3] of pixels of a source, height and width [B, 2], to the target."""
    a, b, c, d = (matrix[:, i, j] for i in (0, 1) for j in (0, 1))
    back = torch.stack((d, -b, -c, a), 1).view(-1, 2, 2) / (a * d - b * c)[:, None, None]
    half = torch.tensor([target[1] / 2, target[0] / 2], device=matrix.device)
    middle = back @ (half - matrix[:, :, 2])[..., None]  # the middle of the target, in pixels of the source
    size = source.flip(1)[..., None].to(matrix.dtype)
    return torch.cat((back * half * 2 / size, middle * 2 / size - 1), 2)


def _map(matrix: Tensor, points: Tensor) -> Tensor:
    """Points [B, n, 2] through maps [B, 2, 3]."""
    return points @ matrix[:, :, :2].transpose(1, 2) + matrix[:, None, :, 2]


def _map_lines(matrix: Tensor, lines: Tensor, growth: Tensor) -> Tensor:
    """Lines [B, M, 5] through maps [B, 2, 3] that enlarge by `growth` [B]."""
    ends = [_map(matrix, lines[..., i : i + 2]) for i in (0, 2)]
    return torch.cat((*ends, lines[..., 4:] * growth[:, None, None]), 2)


def _map_boxes(matrix: Tensor, boxes: Tensor) -> Tensor:
    """Boxes [B, n, 4] through maps with little rotation: centre and size are mapped; empty ones stay empty."""
    centre, size = (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]
    centre = _map(matrix, centre)
    growth = torch.stack((matrix[:, :, 0].norm(dim=1), matrix[:, :, 1].norm(dim=1)), 1)
    size = size * growth[:, None]
    moved = torch.cat((centre - size / 2, centre + size / 2), 2)
    return torch.where((size > 0).all(2, keepdim=True), moved, torch.zeros_like(moved))
