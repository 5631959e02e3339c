"""Real pages with their text lines, for the line finder and the recogniser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from homunculus.errors import InputError
from homunculus.reader.letters import plain
from homunculus.train.pages import Array
from homunculus.train.scans.folders import Row, in_parallel, is_val, read_rows, runs_across

MAX_CHARS = 96  # of a line that the recogniser learns from
SURE = 0.8  # score of a machine-read line from which its text is trusted
GAP = 1.0  # print heights between words of one segment, at most
SINGLE = re.compile(r"[\d.,:/$%()-]+|\S{1,6}")  # texts that need no spaces
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


def read_pages(folders: Sequence[Path], val: bool = False) -> list[OcrPage]:
    """All pages of data folders to train on, or those kept for validation."""
    jobs = [
        (folder, row)
        for folder in map(Path, folders)
        for row in read_rows(folder, "words.jsonl")
        if is_val(row["image"]) == val
    ]
    if not jobs:
        raise InputError(f"there are no pages with words.jsonl in {', '.join(map(str, folders))}")
    return in_parallel(_page, jobs)


def _page(folder: Path, row: Row) -> OcrPage:
    pixels = np.array(Image.open(folder / row["image"]).convert("L"))
    words = [word for word in row["words"] if _usable(word["box"])]
    items = [(plain(word["text"]), np.asarray(word["box"], np.float32)) for word in words]
    spaced, sheet = row.get("spaces", True), bool(row.get("sheet"))
    single = not any(" " in text for text, _ in items) and spaced and not sheet
    segments = segments_of(items) if single else items
    reads = [
        item
        for item, word in zip(items, words, strict=True)
        if word.get("score", 1.0) >= SURE and (spaced or SINGLE.fullmatch(item[0]))
    ]
    reads += segments if single else []
    reads = [(text, box) for text, box in reads if 0 < len(text) <= MAX_CHARS and runs_across(text, box)]
    found = [] if sheet else [box for text, box in segments if runs_across(text, box)]
    texts, boxes = [text for text, _ in reads], _stacked([box for _, box in reads])
    return OcrPage(folder.parent.name, pixels, _stacked(found), texts, boxes, sheet)


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
