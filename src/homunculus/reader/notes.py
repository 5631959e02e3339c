"""Notes: lines that the eye reads where the scout points, for the language model as text, laid out as on the page.

All of them are read from the cells of the look, so what a look does not show cannot be noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.reader.encoder import Encoder, Read
from homunculus.reader.letters import END, decode

POINTS = 56  # places that are read
BESIDE, FIRST, ABOVE = 16, 8, 8  # of them so many beside, first in the row of, and above the scout's best
APART = 11  # slots without a letter that part what stands side by side
LETTERS = 56  # at most, of a line
ROW, COLUMN = 0, 7  # places of the scout's map on either side of a chosen one that are not chosen again
TALL = 26.0  # pixels of a place's height from which two lines fit in
SURE = -0.45  # mean log probability of its letters from which a line is worth noting
CLEAR = -0.15  # the same from which it is most likely right; a question mark stands behind others
MARKS = ("***", "**", "*", "*")  # before the lines at the scout's best places
UNSURE = "?"  # behind those that were hard to read
COST = 240.0  # tokens that the lines of a page may have, as `cost` counts them


class Note(NamedTuple):
    """A line, where its first and its last letter stand, in fine cells, and the rank of its place with the scout.

    What stands beside a place, and is no such place itself, ranks half a place behind it.
    """

    text: str
    begin: tuple[float, float]
    end: tuple[float, float]
    rank: float
    clear: bool = True

    @property
    def cost(self) -> float:
        """About how many tokens it has: a figure or sign is one, a capital half of one, another letter a third."""
        small, large = sum(map(str.islower, self.text)), sum(map(str.isupper, self.text))
        return 2 + small / 3 + large / 2 + len(self.text.replace(" ", "")) - small - large


def spots(logits: Tensor, letters: Tensor, size: tuple[int, int]) -> Tensor:
    """Points to read at on pages of one size: the scout's maps [n, h, w] -> x, y in pixels [n, POINTS, 2].

    First its best places, then what stands beside some of them, first in their row, and above: a value says little
    without its name. Where nothing stands there the next best places follow. `letters` [n, 4 h, 8 w] tells in which
    slots letters are.
    """
    best = _best(logits, size, POINTS)
    around = [_beside(best[:, :BESIDE], letters, size), _first(best[:, :FIRST], letters, size)]
    context = torch.cat((*around, _above(best[:, :ABOVE], letters, size)), 1)  # [n, m, 2], -1 for none
    rest = best[:, POINTS - context.shape[1] :]
    return torch.cat((best[:, : -context.shape[1]], torch.where(context >= 0, context, rest)), 1)


def rank_of(point: Tensor) -> Tensor:
    """How early the reading at one of the points counts."""
    behind = point - (POINTS - BESIDE - FIRST - ABOVE)
    of = torch.where(behind < BESIDE, behind, (behind - BESIDE) % FIRST)
    return torch.where(behind < 0, point, of + 0.5)


def _best(logits: Tensor, size: tuple[int, int], count: int) -> Tensor:
    """The scout's best places [n, count, 2]. Where a place is high enough for two lines, both are taken."""
    h, w = logits.shape[1:]
    high, wide = size[0] / h, size[1] / w
    shifts = (-0.25, 0.25) if high >= TALL else (0.0,)
    rows, columns = torch.arange(h, device=logits.device)[:, None], torch.arange(w, device=logits.device)
    left = logits.flatten(1)
    points: list[Tensor] = []
    while len(points) < count:
        best = left.argmax(1)
        y, x = best // w, best % w
        points += [torch.stack(((x + 0.5) * wide, (y + 0.5 + shift) * high), 1) for shift in shifts]
        near = ((rows - y[:, None, None]).abs() <= ROW) & ((columns - x[:, None, None]).abs() <= COLUMN)
        left = left.masked_fill(near.flatten(1), -torch.inf)
    return torch.stack(points[:count], 1)


def _beside(points: Tensor, letters: Tensor, size: tuple[int, int]) -> Tensor:
    """Where the text left of what stands at points [n, m, 2] ends, -1 where there is none."""
    x, row = _slots(points, letters, size)
    whole = F.max_pool1d(row.float(), APART, 1, APART // 2) > 0  # the spaces between words filled
    column = torch.arange(row.shape[2], device=row.device)
    gap = torch.where(~whole & (column < x[..., None]), column, -1).amax(2)
    last = torch.where(row & (column < gap[..., None]), column, -1).amax(2)
    return _at(last, points, letters, size)


def _first(points: Tensor, letters: Tensor, size: tuple[int, int]) -> Tensor:
    """Where the first text in the row of points begins."""
    x, row = _slots(points, letters, size)
    column = torch.arange(row.shape[2], device=row.device)
    first = torch.where(row & (column < x[..., None] - APART), column, len(column)).amin(2)
    return _at(torch.where(first < len(column), first + 1, -1), points, letters, size)


def _above(points: Tensor, letters: Tensor, size: tuple[int, int]) -> Tensor:
    """The nearest text above points, in their column."""
    turned = points.flip(2), letters.transpose(1, 2), (size[1], size[0])
    y, column = _slots(*turned, reach=4)
    row = torch.arange(column.shape[2], device=column.device)
    last = torch.where(column & (row < y[..., None] - 2), row, -1).amax(2)
    return _at(last, *turned).flip(2)


def _slots(points: Tensor, letters: Tensor, size: tuple[int, int], reach: int = 1) -> tuple[Tensor, Tensor]:
    """The column of slots of points [n, m], and where in their row, and `reach` beyond, letters are [n, m, columns]."""
    near = F.max_pool2d(letters[:, None].float(), (2 * reach + 1, 1), 1, (reach, 0))[:, 0] > 0
    scale = torch.tensor([letters.shape[2] / size[1], letters.shape[1] / size[0]], device=points.device)
    x, y = (points * scale).long().unbind(2)
    y = y.clamp(0, letters.shape[1] - 1)
    return x, near.gather(1, y[..., None].expand(-1, -1, near.shape[2]))


def _at(column: Tensor, points: Tensor, letters: Tensor, size: tuple[int, int]) -> Tensor:
    """Points in the rows of others, in columns of slots [n, m]; -1 for columns below 0."""
    x = (column + 0.5) * size[1] / letters.shape[2]
    return torch.where((column >= 0)[..., None], torch.stack((x, points[..., 1]), 2), -1.0)


def take(
    encoder: Encoder, memory: Tensor, places: Tensor, points: Tensor, mask: Tensor | None = None
) -> list[list[Note]]:
    """Lines at points [B, n, 2] in fine cells, from the encoder's vectors of a look, in the order of the points."""
    read = encoder.reading.greedy(memory, places, points, "line", mask, LETTERS)
    worth, rank, ends = chosen(read)
    pages: list[list[Note]] = []
    clear, rank = read.sure >= CLEAR, rank_of(rank)
    parts = (part.tolist() for part in (read.codes, worth, rank, ends, clear))
    for codes, good, place, path, sure in zip(*parts, strict=True):
        found = [
            Note(decode(code).strip(), tuple(at[:2]), tuple(at[2:]), order, plainly)
            for code, keep, order, at, plainly in zip(codes, good, place, path, sure, strict=True)
            if keep
        ]
        pages.append(sorted((note for note in found if any(map(str.isalnum, note.text))), key=lambda note: note.rank))
    return pages


def chosen(read: Read) -> tuple[Tensor, Tensor, Tensor]:
    """Which readings are worth noting [B, Q]: those sure enough, and of one line that was read twice the surest.

    Also their rank, that of the first point of their line, and where they begin and end, [B, Q, 4].
    """
    length = (read.codes != END).long().cumprod(2).sum(2)  # letters before the end
    last = read.path.gather(2, (length - 1).clamp(min=0)[..., None, None].expand(-1, -1, 1, 2))[:, :, 0]
    first = read.path[:, :, 0]
    ends = torch.cat((first, last), 2)
    good = (length > 0) & (read.sure >= SURE)
    step = ((last - first)[..., 0] / (length - 1).clamp(min=1)).clamp(
        0.08, 1.0
    )  # of a letter; its line is twice as high
    left, right = first[..., 0] - step / 2, torch.maximum(first[..., 0], last[..., 0]) + step / 2
    shared = torch.minimum(right[:, :, None], right[:, None]) - torch.maximum(left[:, :, None], left[:, None])
    width = torch.minimum((right - left)[:, :, None], (right - left)[:, None])
    away = (first[:, :, None, 1] - first[:, None, :, 1]).abs() / torch.minimum(step[:, :, None], step[:, None])
    alike = (read.codes[:, :, None] == read.codes[:, None]).all(3)
    near = away < torch.where(alike, 2.0, 1.0)
    same = near & (shared > width / 2) & good[:, :, None] & good[:, None]  # [B, Q, Q]
    order = torch.arange(good.shape[1], device=good.device)
    surer = (read.sure[:, None] > read.sure[:, :, None]) | (
        (read.sure[:, None] == read.sure[:, :, None]) & (order < order[:, None])
    )
    rank = torch.where(same, order, len(order)).amin(2)
    return good & ~(same & surer).any(2), rank, ends


def laid_out(notes: Sequence[Note]) -> str:
    """Notes as a page has them, those of one row side by side; the first of them that fit.

    The likeliest are marked in front, those that were hard to read behind.
    """
    kept: list[Note] = []
    room = COST
    for note in notes:
        if note.cost <= room:
            kept.append(note)
            room -= note.cost
    marks = dict(zip([note for note in kept if note.rank == int(note.rank)], MARKS, strict=False))
    rows: list[list[Note]] = []
    for note in sorted(kept, key=lambda note: note.begin[1]):
        if rows and note.begin[1] - rows[-1][0].begin[1] < _letter(note, rows[-1][0]):
            rows[-1].append(note)
        else:
            rows.append([note])
    return "\n".join(
        " | ".join(
            f"{marks.get(note, '')} {note.text}{'' if note.clear else UNSURE}".strip()
            for note in sorted(row, key=_left)
        )
        for row in rows
    )


def _left(note: Note) -> float:
    return note.begin[0]


def _letter(*notes: Note) -> float:
    """How wide a letter of the smallest of some notes is, in fine cells."""
    return min(max(0.12, (note.end[0] - note.begin[0]) / max(1, len(note.text) - 1)) for note in notes)
