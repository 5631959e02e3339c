"""How often an answer with given features is right, learned from validation pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from homunculus.errors import InputError
from homunculus.eval.data import Item, items
from homunculus.eval.metrics import score_of
from homunculus.reader import load_reader
from homunculus.reader.calibration import FEATURES, Calibration
from homunculus.reader.model import Answer, Reader
from homunculus.reader.prompt import NOT_FOUND
from homunculus.reader.weights import about, relabel, write_hashes
from homunculus.train.scans.folders import is_val

RIGHT = 0.5  # of a score, from which an answer counts as right
ELSEWHERE = 4  # every so many questions are also asked about the next page, where their answers are wrong
SAME_QUESTIONS = ("sroie",)  # sets that ask the same of every page, so that the next one has an answer too
RIDGE = 1.0  # pulls a fit to few answers towards the calibration of a reader that has none


@dataclass(frozen=True)
class Fit:
    """A calibration and what it was fitted to: answers, share of them that is right, log loss before and after.

    `not_found` answers said "not on the page". They are left out: most questions have their answer on their
    page, so these would teach that this is rarely right. Their confidence is the complement of what the features give.
    """

    calibration: Calibration
    answers: int
    right: float
    before: float
    after: float
    not_found: int

    def __str__(self) -> str:
        pairs = zip((*FEATURES, "bias"), (*self.calibration.weights, self.calibration.bias), strict=True)
        learned = ", ".join(f"{name} {value:.3f}" for name, value in pairs)
        loss = f"log loss {self.before:.3f} before and {self.after:.3f} after"
        return f"{learned}; {self.answers} answers, {self.right:.0%} right, {loss}; {self.not_found} {NOT_FOUND!r}"


def calibrate(
    weights: Path,
    data: Path,
    sets: Sequence[str],
    limit: int,
    device: str = "cpu",
    language: str | None = None,
    photos: bool = False,
) -> Fit:
    """Fit the reader's calibration on validation pages of `train` and store it in the header of its LoRA.

    With `photos` the calibration of answers about photographs, stored in the header of their adapter. Some questions
    are also asked about a page that does not answer them, so that confidence falls there.
    """
    listed = [item for name in sets for item in _val_items(data, name)[:limit]]
    answers = list(_answers(load_reader(weights, language, device), listed + _elsewhere(listed)))
    given = [(answer, right) for answer, right in answers if answer.text.lower() != NOT_FOUND]
    if not given:
        raise InputError(f"there is nothing to calibrate with: {data} has no validation pages that were answered")
    features, right = [answer.features for answer, _ in given], [right for _, right in given]
    calibration = fitted(features, right)
    path = weights / ("photo.safetensors" if photos else "lora.safetensors")
    stored = {"weights": list(calibration.weights), "bias": calibration.bias}
    relabel(path, about(path) | {"calibration": stored})
    write_hashes(weights)
    losses = log_loss(Calibration(), features, right), log_loss(calibration, features, right)
    return Fit(calibration, len(given), float(np.mean(right)), *losses, len(answers) - len(given))


def fitted(features: Sequence[Sequence[float]], right: Sequence[bool]) -> Calibration:
    """Logistic regression of right on features; few answers change the default weights little."""
    return Calibration(*logistic(features, right, np.array([*Calibration().weights, Calibration().bias]), RIDGE))


def logistic(
    features: Sequence[Sequence[float]], right: Sequence[bool], prior: np.ndarray, ridge: float
) -> tuple[tuple[float, ...], float]:
    """Weights and bias of a logistic regression that is pulled towards a prior."""
    from scipy.optimize import minimize

    x = np.column_stack((np.asarray(features, float), np.ones(len(features))))  # [n, features + 1]
    sign = np.where(np.asarray(right), 1.0, -1.0)

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin, pull = sign * (x @ weights), weights - prior
        value = np.logaddexp(0, -margin).sum() + ridge / 2 * pull @ pull
        return float(value), ridge * pull - x.T @ (sign / (1 + np.exp(np.clip(margin, -500, 500))))

    *weights, bias = minimize(cost, prior, jac=True, method="BFGS").x.tolist()
    return tuple(weights), bias


def log_loss(calibration: Calibration, features: Sequence[Sequence[float]], right: Sequence[bool]) -> float:
    """Mean negative log probability that a calibration gives to what was right and what was not."""
    p = np.array([calibration(row) for row in features])
    return float(-np.log(np.where(np.asarray(right), p, 1 - p)).mean())


def _val_items(data: Path, name: str) -> list[Item]:
    place = data / name / "train"
    return [item for item in items(data, name, "train") if is_val(item.image.relative_to(place).as_posix())]


def _elsewhere(listed: Sequence[Item]) -> list[Item]:
    """Some of the questions with the next page of their set, and no right answer."""
    pages: dict[str, list[Path]] = {}
    for item in listed:
        if item.image not in pages.setdefault(item.dataset, []):
            pages[item.dataset].append(item.image)
    return [
        replace(item, image=own[(own.index(item.image) + 1) % len(own)], answers=(), boxes=())
        for item in listed[::ELSEWHERE]
        if item.dataset not in SAME_QUESTIONS and len(own := pages[item.dataset]) > 1
    ]


def _answers(reader: Reader, listed: Sequence[Item]) -> Iterator[tuple[Answer, bool]]:
    """Answers, and whether they are right; each page is opened once."""
    ordered = sorted(listed, key=lambda item: str(item.image))
    pages = [list(group) for _, group in groupby(ordered, key=lambda item: item.image)]
    for about_page in track(pages, "answering validation pages", console=Console(stderr=True)):
        page = reader.open(about_page[0].image)
        answers = reader.answer(page, [item.question for item in about_page])
        for item, answer in zip(about_page, answers, strict=True):
            yield answer, bool(item.answers) and score_of(item.dataset)(answer.text, item.answers) >= RIGHT
