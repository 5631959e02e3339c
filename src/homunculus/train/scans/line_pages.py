"""Real pages with their text lines, for the line finder and the recogniser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from homunculus.errors import InputError
from homunculus.reader.letters import plain
from homunculus.train.scans.scans import held_back

MAX_CHARS = 96  # of a line that the recogniser learns from
SURE = 0.8  # score of a machine-read line from which its text is believed
GAP = 1.0  # print heights between words of one segment, at most
SINGLE = re.compile(r"[\d.,:/$%()-]+|\S{1,6}")  # texts that need no spaces
Array = np.ndarray[Any, Any]
Item = tuple[str, Array]  # text and box


@dataclass(eq=False)
class OcrPage:
    """A grey page uint8 [h, w], boxes [n, 4] of its segments, and texts to read with their boxes [m, 4]."""

    source: str
    pixels: Array
    segments: Array
    texts: list[str]
    boxes: Array
    sheet: bool = False  # words pasted side by side: nothing to find there


def read_pages(folders: Sequence[Path], held: bool = False) -> list[OcrPage]:
    """All pages of data folders that are trained on, or those held back; decoding takes a core each."""
    jobs = [job for folder in folders for job in _jobs(Path(folder), held)]
    if not jobs:
        raise InputError(f"there are no pages with words.jsonl in {', '.join(map(str, folders))}")
    if len(jobs) < 64:
        return [_page(job) for job in jobs]
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        return list(pool.map(_page, jobs, chunksize=8))


def _jobs(folder: Path, held: bool) -> Iterable[tuple[Path, dict[str, Any]]]:
    try:
        with (folder / "words.jsonl").open(encoding="utf-8") as rows:
            known = [json.loads(row) for row in rows if row.strip()]
    except OSError as error:
        raise InputError(f"{folder} is no data folder: {error.strerror} for {error.filename}") from error
    return [(folder, row) for row in known if held_back(row["image"]) == held]


def _page(job: tuple[Path, dict[str, Any]]) -> OcrPage:
    folder, row = job
    pixels = np.array(Image.open(folder / row["image"]).convert("L"))
    words = [w for w in row["words"] if _usable(w["box"])]
    items = [(plain(w["text"]), np.asarray(w["box"], np.float32)) for w in words]
    single = not any(" " in text for text, _ in items) and row.get("spaces", True) and not row.get("sheet")
    segments = segments_of(items) if single else items
    spaced = row.get("spaces", True)
    believed = [
        item
        for item, word in zip(items, words, strict=True)
        if word.get("score", 1.0) >= SURE and (spaced or SINGLE.fullmatch(item[0]))
    ]
    reads = believed + (segments if single else [])
    reads = [(text, box) for text, box in reads if 0 < len(text) <= MAX_CHARS and _level(text, box)]
    sheet = bool(row.get("sheet"))
    found = [box for text, box in segments if _level(text, box)]
    return OcrPage(
        folder.parent.name, pixels, _stacked([] if sheet else found), [t for t, _ in reads],
        _stacked([b for _, b in reads]), sheet,
    )  # fmt: skip


def segments_of(items: Sequence[Item]) -> list[Item]:
    """Words put together to segments: neighbours of one row with no wide gap between them."""
    order = sorted(items, key=lambda item: item[1][0])
    segments: list[list[Item]] = []
    for text, box in order:
        best = None
        for segment in segments:
            last = segment[-1][1]
            high = max(last[3] - last[1], box[3] - box[1])
            level = abs((last[1] + last[3]) - (box[1] + box[3])) / 2 < 0.4 * high
            if level and -0.5 * high < box[0] - last[2] < GAP * high:
                best = segment
        if best is None:
            segments.append([(text, box)])
        else:
            best.append((text, box))
    return [(" ".join(t for t, _ in segment), _around([b for _, b in segment])) for segment in segments]


def _around(boxes: Sequence[Array]) -> Array:
    every = np.stack(boxes)
    return np.concatenate((every[:, :2].min(0), every[:, 2:].max(0)))


def _stacked(boxes: Sequence[Array]) -> Array:
    return np.stack(boxes).astype(np.float32) if len(boxes) else np.zeros((0, 4), np.float32)


def _usable(box: Sequence[float]) -> bool:
    return box[2] - box[0] >= 3 and box[3] - box[1] >= 5


def _level(text: str, box: Array) -> bool:
    """Whether a text runs from left to right, as far as its box tells."""
    return len(text) < 3 or bool((box[2] - box[0]) * 1.5 > box[3] - box[1])
