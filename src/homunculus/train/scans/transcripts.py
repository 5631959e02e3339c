"""Transcripts: what line finder and recogniser read on training pages, as the language model will get it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.progress import track
from torch import Tensor

from homunculus.reader import LineFinder, Recognizer, load_finder, load_recognizer
from homunculus.reader.session import READ_PRINT
from homunculus.reader.strips import boxes_of, grey_pyramid, sample_strips
from homunculus.runtime.files import replacing
from homunculus.train.scans.folders import read_rows
from homunculus.train.scans.page_store import LEVELS


def transcribe(weights: Path, folders: Sequence[Path], out: Path, device: str) -> int:
    """Read all pages of data folders, each line at its finest and at its coarsest legible level.

    Writes one JSON line for each of both. Returns how many pages there were.
    """
    finder, recognizer = load_finder(weights, device), load_recognizer(weights, device)
    names = [
        (folder, row["image"]) for folder in folders for row in read_rows(folder, "words.jsonl") if not row.get("sheet")
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as unfinished, gzip.open(unfinished, "wt", encoding="utf-8") as file:
        for folder, name in track(names, "reading pages"):
            pixels = torch.from_numpy(np.asarray(Image.open(folder / name).convert("L")).copy()).to(device)
            for row in _rows(pixels, finder, recognizer):
                image = f"{folder.parent.name}/{folder.name}/{name}"
                file.write(json.dumps({"image": image} | row) + "\n")
    return len(names)


def _rows(pixels: Tensor, finder: LineFinder, recognizer: Recognizer) -> list[dict[str, Any]]:
    """What is read on one page at the finest and at the coarsest legible level of each line."""
    found = finder.find(pixels)
    lines = found.lines[found.lines[:, 4] >= READ_PRINT].to(pixels.device)
    boxes, levels = boxes_of(lines).round().tolist(), grey_pyramid(pixels, LEVELS)
    coarsest = (lines[:, 4] / READ_PRINT).log2().floor().long()
    rows = []
    for shown in ("finest", "coarsest"):
        texts = []
        if len(lines):
            texts = recognizer(*sample_strips(levels, lines, shown=coarsest if shown == "coarsest" else None))
        known = [
            {"text": text, "box": box, "confidence": round(sure, 3)}
            for (text, sure), box in zip(texts, boxes, strict=True)
            if text
        ]
        rows.append({"shown": shown, "lines": known})
    return rows
