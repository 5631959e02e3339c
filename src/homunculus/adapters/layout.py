"""Where the visual tokens stand in what a language model reads, once there are fewer of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from homunculus.errors import InputError

Row = tuple[list[int], Tensor]  # ids of a text, and their positions


@dataclass(frozen=True, eq=False)
class Unit:
    """What stands in the place of one image (or tile): its tokens.

    Shape:
        places [n] or [3, n]: where each kept token stood, counted from the first of the image; in one direction, or as
        time, row and column.
    """

    written: int  # placeholders that it has in the ids
    whole: int  # positions that it took before anything was left out
    places: Tensor


def laid_out(
    rows: Sequence[Sequence[int]], image_token: int, units: Sequence[Unit], pad: int, guard: bool = False
) -> dict[str, Tensor]:
    """Ids with as many placeholders as there are tokens left, padded in front, with the positions that all tokens had.

    Args:
        rows: ids of each text, without padding.
        units: of all images, in the order of the texts.
        guard: keep one empty slot in front, so that the mask has something to say: models of one direction take gaps
            in the positions for borders between packed texts where there is no mask.
    """
    queue, axes = iter(units), units[0].places.shape[:-1]
    built = [row_of(ids, image_token, queue, axes) for ids in rows]
    if next(queue, None) is not None:
        raise InputError(f"there are {len(units)} images but fewer placeholders for them in the texts")
    gaps = any(unit.places.shape[-1] != unit.whole for unit in units)
    return stacked(built, pad, int(guard and gaps and len({len(ids) for ids, _ in built}) == 1))


def stacked(
    built: Sequence[tuple[list[int], Tensor]], pad: int, more: int = 0, front: bool = True
) -> dict[str, Tensor]:
    """Ids with their positions in one tensor each, filled up in front or behind to the longest and so many `more`."""
    length = max(len(ids) for ids, _ in built) + more
    whole = all(not bool((places % 1).any()) for _, places in built)
    ids = torch.full((len(built), length), pad)
    mask = torch.zeros(len(built), length, dtype=torch.long)
    kind = torch.long if whole else torch.float32
    positions = torch.zeros(*built[0][1].shape[:-1], len(built), length, dtype=kind)
    for i, (row, places) in enumerate(built):
        here = slice(length - len(row), length) if front else slice(len(row))
        ids[i, here], mask[i, here] = torch.tensor(row, dtype=torch.long), 1
        positions[..., i, here] = places.to(kind)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": positions}


def row_of(ids: Sequence[int], image_token: int, units: Iterator[Unit], axes: torch.Size) -> Row:
    """One text: ids and positions, [n] or [3, n] as `axes` says."""
    found: list[int] = []
    places: list[Tensor] = []
    at = position = 0
    while at < len(ids):
        if ids[at] != image_token:
            end = next((i for i in range(at, len(ids)) if ids[i] == image_token), len(ids))
            found += ids[at:end]
            places.append(torch.arange(position, position + end - at, dtype=torch.float64).expand(*axes, end - at))
            at, position = end, position + end - at
            continue
        unit = next(units, None)
        if unit is None or list(ids[at : at + unit.written]) != [image_token] * unit.written:
            raise InputError("the texts have more placeholders than there are images")
        found += [image_token] * unit.places.shape[-1]
        places.append(unit.places.double() + position)
        at, position = at + unit.written, position + unit.whole
    return found, torch.cat(places, -1)
