"""Documents or photographs: the classifier by which a reader tells them apart, fitted to training images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from homunculus.errors import InputError
from homunculus.reader import load_page_reader
from homunculus.reader.kind import FEATURES, KindClassifier
from homunculus.reader.weights import about, checked, relabel, write_hashes
from homunculus.train.trainer.calibration import logistic


def fit_kind(
    weights: Path, data: Path, documents: Sequence[str], photos: Sequence[str], limit: int, device: str = "cpu"
) -> tuple[KindClassifier, float]:
    """Fit the classifier to images of the train splits of sets and store it with the photographs' adapter.

    Returns it with the share of these images that it tells rightly.
    """
    path = checked(weights, "photo")
    reader = load_page_reader(weights, device)
    files = [(file, name in documents) for name in (*documents, *photos) for file in _images(data / name, limit)]
    features, is_document = [], []
    for file, known in track(files, "telling documents from photographs", console=Console(stderr=True)):
        features.append(reader.open(file).kind)
        is_document.append(known)
    fitted, bias = logistic(features, is_document, np.zeros(len(FEATURES) + 1), ridge=0.1)
    found = KindClassifier(fitted, bias)
    relabel(path, about(path) | {"document": {"weights": list(found.weights), "bias": found.bias}})
    write_hashes(weights)
    right = [(found(row) >= 0.5) == known for row, known in zip(features, is_document, strict=True)]
    return found, float(np.mean(right))


def _images(folder: Path, limit: int) -> list[Path]:
    """Images of a set's train split, spread evenly over their names."""
    files = sorted(file for file in (folder / "train" / "images").glob("*") if file.is_file())
    if not files:
        raise InputError(f"there are no images in {folder / 'train' / 'images'}")
    return files[:: max(1, len(files) // limit)][:limit]
