"""Where people looked, and how well a map agrees with it: NSS, two AUCs, CC and KL as the MIT benchmark defines them.

Maps are [h, w], fixations [n, 2] as x, y in pixels of the map; pixel 0 reaches from 0 to 1. As in the benchmark
(Bylinskii et al. 2019) a pixel is fixated or not, however often. Nothing is drawn at random: ties count half.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from homunculus.errors import InputError

Array = np.ndarray[Any, Any]
Word = tuple[tuple[float, float, float, float], float]  # a box x0, y0, x1, y1, and how much it was looked at
SETS = ("osie", "taskvis", "docvqa_gaze")
SIGMA = 24.0  # pixels: what OSIE is blurred with, about one degree there
SPREAD = 0.25  # of the image: sigma of the baseline that looks at the centre
EPSILON = float(np.finfo(np.float64).eps)  # keeps logarithms finite, as in the benchmark


@dataclass(frozen=True, eq=False)
class Gaze:
    """How people looked at one image, for one question if there was one: by fixations, or by words."""

    dataset: str
    image: Path
    question: str | None
    size: tuple[int, int]  # height, width
    fixations: tuple[Array, ...] = ()  # of each viewer, in order: [n, 2]
    words: tuple[Word, ...] = ()  # looked at before answering, mean over viewers

    @property
    def points(self) -> Array:
        """Fixations of all viewers. [n, 2]"""
        return np.concatenate((np.zeros((0, 2)), *self.fixations))


# ---- agreement ----------------------------------------------------------------------------------------------------


def nss(map: Array | Tensor, fixations: Array | Tensor) -> float:
    """Normalised scanpath saliency: mean at fixated pixels, in standard deviations from the map's mean; 0 if flat."""
    values = _map(map)
    return float(_standard(values)[_fixated(values, fixations)].mean())


def auc_judd(map: Array | Tensor, fixations: Array | Tensor) -> float:
    """Area under the curve of the share of fixated pixels above a threshold over the share of all others above it.

    Every value is a threshold and the curve is straight between them, so ties count half: exact, where the benchmark's
    code takes n fixated values for thresholds and jitters ties, which gives up to 1 / 2n more.
    """
    values = _map(map)
    fixated = _fixated(values, fixations)
    if fixated.all():
        raise InputError(f"every pixel of the map {values.shape} is fixated; there is nothing to tell them from")
    return _ranking_chance(values[fixated], values[~fixated])


def auc_shuffled(map: Array | Tensor, fixations: Array | Tensor, others: Array | Tensor) -> float:
    """The same curve over pixels that are fixated in other images (see `elsewhere`), all of them rather than a sample.

    A map that knows only that people look at the centre has about 0.5.
    """
    values = _map(map)
    return _ranking_chance(values[_fixated(values, fixations)], values[_fixated(values, others)])


def _ranking_chance(positives: Array, negatives: Array) -> float:
    """Chance that one value is above another; ties count half."""
    positives = np.sort(positives)
    not_above = np.searchsorted(positives, negatives, side="left") + np.searchsorted(positives, negatives, side="right")
    return float(1 - not_above.mean() / (2 * len(positives)))


def cc(map: Array | Tensor, density: Array | Tensor) -> float:
    """Linear correlation of two maps; 0 if one is flat."""
    one, other = _pair(map, density)
    return float((_standard(one) * _standard(other)).mean())


def _standard(values: Array) -> Array:
    """Mean 0 and standard deviation 1; all 0 if flat."""
    if values.max() == values.min():
        return np.zeros_like(values)
    away = values - values.mean()
    away = away / np.abs(away).max()  # squares of very small numbers would vanish
    standard: Array = away / away.std()
    return standard


def kl(map: Array | Tensor, density: Array | Tensor) -> float:
    """Kullback-Leibler divergence of the density of fixations from the map, both made to sum to 1; 0 is best."""
    one, other = _pair(map, density)
    for name, values in (("map", one), ("density", other)):
        if values.min() < 0 or not values.sum() > 0:
            raise InputError(
                f"the {name} must be no less than 0 and somewhere more, got {values.min()} to {values.max()}"
            )
    one, other = _one(one), _one(other)
    return float((other * np.log(EPSILON + other / (one + EPSILON))).sum())


def _map(map: Array | Tensor) -> Array:
    values = np.asarray(map.detach().cpu() if isinstance(map, Tensor) else map, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise InputError(f"a map is finite numbers [h, w], got shape {values.shape}")
    return values


def _pair(map: Array | Tensor, density: Array | Tensor) -> tuple[Array, Array]:
    one, other = _map(map), _map(density)
    if one.shape != other.shape:
        raise InputError(f"both maps must have one size, got {one.shape} and {other.shape}")
    return one, other


def _points(fixations: Array | Tensor) -> Array:
    points = np.asarray(fixations.detach().cpu() if isinstance(fixations, Tensor) else fixations, dtype=np.float64)
    if points.size and (points.ndim != 2 or points.shape[1] != 2):
        raise InputError(f"fixations are x, y [n, 2], got shape {points.shape}")
    return points.reshape(-1, 2)


def _inside(points: Array, size: tuple[int, int]) -> Array:
    return np.asarray(((points >= 0) & (points < size[::-1])).all(1))


def _fixated(values: Array, fixations: Array | Tensor) -> Array:
    """Which pixels are fixated; fixations outside are left out. bool [h, w]"""
    points = _points(fixations)
    x, y = points[_inside(points, values.shape)].astype(int).T
    if not len(x):
        raise InputError(f"none of {len(points)} fixations lies in the map {values.shape}")
    fixated = np.zeros(values.shape, dtype=bool)
    fixated[y, x] = True
    return fixated


# ---- maps ---------------------------------------------------------------------------------------------------------


def density(fixations: Array | Tensor, size: tuple[int, int], sigma: float = SIGMA) -> Array:
    """Fixated pixels blurred with a Gaussian of sigma pixels, each fixation counted, made to sum to 1. [h, w]"""
    if not sigma > 0:
        raise InputError(f"sigma must be more than 0 pixels, got {sigma}")
    points = _points(fixations)
    inside = _inside(points, size)
    if not inside.any():
        raise InputError(f"none of {len(points)} fixations lies in the image {size}")
    x, y = np.floor(points[inside]).T
    across = np.exp(-(((np.arange(size[1]) - x[:, None]) / sigma) ** 2) / 2)  # [n, w]
    down = np.exp(-(((np.arange(size[0]) - y[:, None]) / sigma) ** 2) / 2)  # [n, h]
    return _one(down.T @ across)  # a Gaussian is a product: exact, without a window


def centre_prior(size: tuple[int, int], spread: float = SPREAD, isotropic: bool = False) -> Array:
    """The baseline that knows only that people look at the centre: a Gaussian that sums to 1. [h, w]

    `spread` is its sigma as a share of height and of width, as in the benchmark; if isotropic, of the shorter side.
    """
    if not spread > 0:
        raise InputError(f"spread must be more than 0, got {spread}")
    wide = [spread * (min(size) if isotropic else side) for side in size]
    down, across = (np.exp(-(((np.arange(n) - (n - 1) / 2) / s) ** 2) / 2) for n, s in zip(size, wide, strict=True))
    return _one(np.outer(down, across))


def painted(words: Sequence[Word], size: tuple[int, int]) -> Array:
    """Boxes filled with their scores; where they overlap, the highest. [h, w]"""
    found = np.zeros(size)
    for (x0, y0, x1, y1), score in words:
        part = found[max(math.floor(y0), 0) : math.ceil(y1), max(math.floor(x0), 0) : math.ceil(x1)]
        np.maximum(part, score, out=part)
    return found


def gaze_map(gaze: Gaze, sigma: float = SIGMA) -> Array:
    """Where people looked as a map that sums to 1: blurred fixations, or painted words. [h, w]"""
    if gaze.fixations:
        return density(gaze.points, gaze.size, sigma)
    found = painted(gaze.words, gaze.size)
    if not found.sum() > 0:
        raise InputError(f"nobody is known to have looked at {gaze.image}")
    return _one(found)


def _one(values: Array) -> Array:
    """The same in sum 1."""
    shares: Array = values / values.sum()
    return shares


def elsewhere(gazes: Sequence[Gaze], gaze: Gaze) -> Array:
    """Fixations on all other images of the same set, in pixels of this one, for `auc_shuffled`. [m, 2]"""
    alike = [other for other in gazes if other.dataset == gaze.dataset and other.image != gaze.image]
    scaled = [other.points * (np.array(gaze.size) / other.size)[::-1] for other in alike]
    return np.concatenate((np.zeros((0, 2)), *scaled))


# ---- sets ---------------------------------------------------------------------------------------------------------


def gaze_sets(folder: Path, sets: Sequence[str] | None = None, split: str = "val") -> list[Gaze]:
    """All that is known of how people looked: the given sets in a folder, or those of osie, taskvis, docvqa_gaze there.

    A set is NAME/SPLIT/gaze.jsonl and the images it names. Fixations outside of the image are dropped.
    """
    names = [name for name in SETS if (folder / name / split / "gaze.jsonl").is_file()] if sets is None else sets
    if not names:
        raise InputError(f"{folder} has none of the sets {', '.join(SETS)} with {split}/gaze.jsonl")
    return [gaze for name in names for gaze in _read(folder / name / split, name)]


def _read(place: Path, name: str) -> Iterator[Gaze]:
    try:
        with (place / "gaze.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield _gaze(place, name, json.loads(line))
    except OSError as error:
        raise InputError(f"{place} is no set of gaze: {error.strerror} for {error.filename}") from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{place}: a line of gaze.jsonl cannot be used: {error}") from error


def _gaze(place: Path, name: str, row: dict[str, Any]) -> Gaze:
    image, size = place / row["image"], (int(row["height"]), int(row["width"]))
    if "word_scores" in row:
        return Gaze(name, image, row["question"], size, words=_words(row["word_scores"]))
    viewers = [np.array(viewer, dtype=np.float64).reshape(-1, 3)[:, :2] for viewer in row["fixations"]]  # x, y, ms
    viewers = [viewer[_inside(viewer, size)] for viewer in viewers]
    return Gaze(name, image, row["question"], size, fixations=tuple(viewers))


def _words(trials: Sequence[dict[str, Any]]) -> tuple[Word, ...]:
    """Words looked at before typing, each box once: mean score over all trials, 0 where it is not listed."""
    sums: dict[tuple[float, float, float, float], float] = defaultdict(float)
    for trial in trials:
        for word in trial["pre_typing"]:
            x0, y0, x1, y1 = map(float, word["box"])
            sums[x0, y0, x1, y1] += float(word["score"])
    return tuple((box, score / len(trials)) for box, score in sums.items())
