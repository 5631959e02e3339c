"""Where the visual tokens stand in what a language model reads, once there are fewer of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from homunculus.errors import InputError

TokenRow = tuple[list[int], Tensor]  # ids of a text, and their positions


@dataclass(frozen=True, eq=False)
class ImageSpan:
    """The tokens in the place of one image (or tile).

    Shape:
        position_ids [n] or [3, n]: where each kept token stood, counted from the first of the image; in one direction,
        or as time, row and column.
    """

    placeholders: int  # that it has in the ids
    position_count: int  # positions that it took before anything was left out
    position_ids: Tensor


def build_inputs(
    input_ids: Sequence[Sequence[int]], image_token: int, spans: Sequence[ImageSpan], pad: int, pad_guard: bool = False
) -> dict[str, Tensor]:
    """Ids with as many placeholders as there are tokens left, padded in front, with the positions that all tokens had.

    Args:
        input_ids: of each text, without padding.
        spans: of all images, in the order of the texts.
        pad_guard: keep one empty slot in front, so that the mask has something to say: models of one direction take
            gaps in the positions for borders between packed texts where there is no mask.
    """
    queue, axes = iter(spans), spans[0].position_ids.shape[:-1]
    rows = [build_row(ids, image_token, queue, axes) for ids in input_ids]
    if next(queue, None) is not None:
        raise InputError(f"there are {len(spans)} images but fewer placeholders for them in the texts")
    gaps = any(span.position_ids.shape[-1] != span.position_count for span in spans)
    return stack_rows(rows, pad, int(pad_guard and gaps and len({len(ids) for ids, _ in rows}) == 1))


def stack_rows(rows: Sequence[TokenRow], pad: int, more: int = 0, in_front: bool = True) -> dict[str, Tensor]:
    """Ids, mask and positions, padded in front or behind to the longest row and so many `more`."""
    length = max(len(ids) for ids, _ in rows) + more
    integers = all(not bool((position_ids % 1).any()) for _, position_ids in rows)
    input_ids = torch.full((len(rows), length), pad)
    mask = torch.zeros(len(rows), length, dtype=torch.long)
    dtype = torch.long if integers else torch.float32
    positions = torch.zeros(*rows[0][1].shape[:-1], len(rows), length, dtype=dtype)
    for i, (ids, position_ids) in enumerate(rows):
        here = slice(length - len(ids), length) if in_front else slice(len(ids))
        input_ids[i, here], mask[i, here] = torch.tensor(ids, dtype=torch.long), 1
        positions[..., i, here] = position_ids.to(dtype)
    return {"input_ids": input_ids, "attention_mask": mask, "position_ids": positions}


def build_row(ids: Sequence[int], image_token: int, spans: Iterator[ImageSpan], axes: torch.Size) -> TokenRow:
    """One text: ids and positions, [n] or [3, n] as `axes` says."""
    found: list[int] = []
    position_ids: list[Tensor] = []
    at = position = 0
    while at < len(ids):
        if ids[at] != image_token:
            end = next((i for i in range(at, len(ids)) if ids[i] == image_token), len(ids))
            found += ids[at:end]
            text = torch.arange(position, position + end - at, dtype=torch.float64)
            position_ids.append(text.expand(*axes, end - at))
            at, position = end, position + end - at
            continue
        span = next(spans, None)
        if span is None or list(ids[at : at + span.placeholders]) != [image_token] * span.placeholders:
            raise InputError("the texts have more placeholders than there are images")
        found += [image_token] * span.position_ids.shape[-1]
        position_ids.append(span.position_ids.double() + position)
        at, position = at + span.placeholders, position + span.position_count
    return found, torch.cat(position_ids, -1)
