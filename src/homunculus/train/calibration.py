"""How often an answer of a given probability is right, learned from pages that training held back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

from homunculus.errors import InputError
from homunculus.eval.asking import TOGETHER, WAY, answered
from homunculus.eval.data import Item, items
from homunculus.eval.metrics import score_of
from homunculus.reader import load_reader
from homunculus.reader.model import Reader
from homunculus.reader.prompt import NOT_FOUND
from homunculus.reader.weights import about, relabel, write_hashes
from homunculus.train.scans import held_back

ENOUGH = 0.5  # of a score, from which an answer counts as right
RIDGE = 1e-2  # pulls a fit to few answers towards leaving them as they are


def calibrate(
    weights: Path, data: Path, sets: Sequence[str], limit: int, device: str = "cpu", language: str | None = None
) -> tuple[float, float, int]:
    """Fit slope and offset on held-back `train` pages, note them in the weights, and tell them and from how many."""
    reader = load_reader(weights, language, device)
    reader.calibration = 1.0, 0.0
    listed = [item for name in sets for item in _held(data, name)[:limit]]
    chances, right = _answered(reader, listed)
    if not chances:
        raise InputError(f"there is nothing to calibrate with: {data} has no held-back pages that were answered")
    slope, offset = fitted(chances, right)
    path = weights / "bridge.safetensors"
    relabel(path, about(path) | {"calibration": [slope, offset]})
    write_hashes(weights)
    return slope, offset, len(chances)


def fitted(chances: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Slope and offset on the log odds of chances by logistic regression: Newton's method."""
    chance = np.clip(np.asarray(chances, float), 1e-6, 1 - 1e-6)
    x = np.stack((np.log(chance / (1 - chance)), np.ones(len(chance))), 1)
    y, usual = np.asarray(right, float), np.array([1.0, 0.0])
    found = usual.copy()
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (p - y) + RIDGE * (found - usual)
        bend = x.T @ (x * (p * (1 - p))[:, None]) + RIDGE * np.eye(2)
        step = np.linalg.solve(bend, slope)
        found -= np.clip(step, -1, 1)
        if float(np.abs(step).max()) < 1e-9:
            break
    assert math.isfinite(found.sum())
    return float(found[0]), float(found[1])


def _held(data: Path, name: str) -> list[Item]:
    place = data / name / "train"
    return [item for item in items(data, name, "train") if held_back(item.image.relative_to(place).as_posix())]


def _answered(reader: Reader, listed: list[Item]) -> tuple[list[float], list[bool]]:
    """Mean token probability of each answer, and whether it was right; what was not found is left out."""
    chances, right = [], []
    todo = [(item, WAY) for item in listed]
    for batch in track(answered(reader, todo), "answering held-back pages", total=-(-len(todo) // TOGETHER)):
        for item, _, answer in batch:
            if answer.text != NOT_FOUND:
                chances.append(answer.confidence)
                right.append(score_of(item.dataset)(answer.text, item.answers) >= ENOUGH)
    return chances, right
