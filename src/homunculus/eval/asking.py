"""Many questions about many pages, answered in batches: each page is loaded once, each batch has one budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

import torch

from homunculus.eval.data import Item
from homunculus.eye import Eye, Glance
from homunculus.image import load
from homunculus.reader.model import Answer, Reader

WAY = "foveated/query/273"  # allocator, relevance and budget, as the reader looks unless told
TOGETHER = 32  # answered at a time unless told


def answered(
    reader: Reader, todo: Sequence[tuple[Item, str]], size: int = TOGETHER, most: int = 48
) -> Iterator[list[tuple[Item, str, Answer]]]:
    """Answers to questions, each looked at in a way ALLOCATOR/RELEVANCE/BUDGET, batch by batch.

    Questions about one page stand together in `todo`.
    """
    for batch in _batches(reader, todo, size):
        *_, said = reader.reply([glance for *_, glance in batch], most=most)
        yield [(item, way, answer) for (item, way, _), answer in zip(batch, said, strict=True)]


def _batches(reader: Reader, todo: Sequence[tuple[Item, str]], size: int) -> Iterator[list[tuple[Item, str, Glance]]]:
    waiting: dict[str, list[tuple[Item, str, Glance]]] = defaultdict(list)
    for image, group in groupby(todo, key=lambda pair: pair[0].image):
        scene, asked = None, defaultdict(list)
        for item, way in group:
            asked[way].append(item)
        for way, listed in asked.items():
            allocator, relevance, budget = way.split("/")
            eye = Eye(allocator, relevance, int(budget), scout=reader.scout)
            scene = scene or eye.scene(load(image).to(reader.device))
            with torch.no_grad():
                glances = eye.look_for(scene, [item.question for item in listed])
            waiting[budget] += [(item, way, glance) for item, glance in zip(listed, glances, strict=True)]
            while len(waiting[budget]) >= size:
                yield waiting[budget][:size]
                waiting[budget] = waiting[budget][size:]
    yield from filter(None, waiting.values())
