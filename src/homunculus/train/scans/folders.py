"""Data folders: rows of words.jsonl and questions.jsonl, and which of their pages are kept for validation."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from homunculus.errors import InputError
from homunculus.train.pages import Array

VAL_ONE_IN = 12  # one page in so many is never trained on
UPRIGHT = 1.5  # boxes of three characters or more that are higher than this many widths hold turned text
FEW = 64  # pages that one process decodes faster than several

Row = dict[str, Any]
T = TypeVar("T")


def is_val(name: str) -> bool:
    """Whether the page of an image, by its name in its folder, is kept for validation."""
    return zlib.crc32(name.encode()) % VAL_ONE_IN == 0


def read_rows(folder: Path, name: str) -> list[Row]:
    """Rows of a file of a data folder, such as words.jsonl."""
    try:
        return read_jsonl(folder / name)
    except OSError as error:
        raise InputError(f"{folder} is no data folder: {error.strerror} for {error.filename}") from error


def read_jsonl(path: Path) -> list[Row]:
    """Rows of a JSON Lines file, gzipped or not."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]
    except (EOFError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def in_parallel(function: Callable[..., T], jobs: Sequence[tuple[Any, ...]]) -> list[T]:
    """`function(*job)` for every job; decoding and text work take a core each where there are many."""
    if len(jobs) < FEW:
        return [function(*job) for job in jobs]
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        return list(pool.map(function, *zip(*jobs, strict=True), chunksize=8))


def runs_across(text: str, box: Sequence[float] | Array) -> bool:
    """Whether a text runs from left to right, as far as its box shows."""
    return len(text) < 3 or bool((box[2] - box[0]) * UPRIGHT > box[3] - box[1])


def answer_boxes(question: Row) -> list[tuple[float, ...]]:
    """Boxes of the answer; of several machine-read ones those inside the region that is known to hold it."""
    boxes = [tuple(box) for box in question.get("answer_boxes") or question.get("answer_boxes_ocr") or ()]
    region = question.get("answer_region")
    if region and len(boxes) > 1:
        return [box for box in boxes if _centred_in(box, region)] or boxes
    return boxes


def _centred_in(box: Sequence[float], region: Sequence[float]) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return region[0] <= x <= region[2] and region[1] <= y <= region[3]
