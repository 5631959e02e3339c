"""Token by token: greedy decoding and sampling from a seed, for any function that gives the next logits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

MIN_TEMPERATURE = 1e-4  # up to here sampling is taking the likeliest token
SEEDS = -(1 << 63), (1 << 63) - 1  # the least and the greatest


class DecodedStep(NamedTuple):
    """One token of each row of a batch, its probability, and whether the row had not ended before it."""

    ids: list[int]
    probs: list[float]
    active: list[bool]


def decode(
    next_logits: Callable[[Tensor | None], Tensor],
    stop_ids: Collection[int],
    max_new_tokens: int,
    temperature: float = 0.0,
    seed: int = 0,
    process: Callable[[Tensor | None, Tensor], Tensor] | None = None,
) -> Iterator[DecodedStep]:
    """Tokens one after the other, until every row has had a stop token or `max_new_tokens` are there.

    Args:
        next_logits: logits [B, V] after the prompt (called with None), then after the tokens [B, 1] that were chosen.
        stop_ids: tokens that end a row; rows that have ended run on beside the others.
        temperature, seed: sample at a temperature above MIN_TEMPERATURE, else take the likeliest.
        process: logits to choose from, of the tokens [B, n] chosen so far (None at first) and the model's logits.
            Probabilities are those of the model.
    """
    chosen: Tensor | None = None
    ids: Tensor | None = None
    active: list[bool] = []
    generator: torch.Generator | None = None
    for _ in range(max_new_tokens):
        logits = next_logits(ids).float()
        generator = generator or torch.Generator(logits.device).manual_seed(seed)
        scores = process(chosen, logits) if process is not None else logits
        if temperature > MIN_TEMPERATURE:
            ids = (scores / temperature).softmax(1).multinomial(1, generator=generator)
        else:
            ids = scores.argmax(1, keepdim=True)
        chosen = ids if chosen is None else torch.cat((chosen, ids), 1)
        active = active or [True] * len(ids)
        step = DecodedStep(ids[:, 0].tolist(), logits.softmax(1).gather(1, ids)[:, 0].tolist(), active)
        yield step
        active = [going and token not in stop_ids for going, token in zip(active, step.ids, strict=True)]
        if not any(active):
            return
