"""Confidence that is learned from held-back pages, and stored where the reader finds it."""

import json
import math
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from homunculus import InputError
from homunculus.reader import load_reader
from homunculus.reader.calibration import FEATURES, Calibration
from homunculus.reader.model import Answer
from homunculus.reader.prompt import NOT_FOUND
from homunculus.train.scans.folders import is_val
from homunculus.train.trainer import calibration
from homunculus.train.trainer.calibration import calibrate, fitted, log_loss
from readers import pages, tiny_reader

TRUE = Calibration((0.6, 0.3, 0.8, -0.4, -0.2), -0.7)


def simulated(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of answers that are right as often as TRUE says."""
    generator = np.random.default_rng(seed)
    features = generator.normal(1, 2, (n, len(FEATURES)))
    features[:, 2] = np.sign(features[:, 2])
    return features, generator.random(n) < [TRUE(row) for row in features]


def test_a_fit_finds_what_made_the_answers_right():
    found = fitted(*simulated(20_000))
    assert found.weights == pytest.approx(TRUE.weights, abs=0.06) and found.bias == pytest.approx(TRUE.bias, abs=0.06)
    features, right = simulated(2_000, seed=1)  # others
    assert log_loss(found, features, right) == pytest.approx(log_loss(TRUE, features, right), abs=0.005)
    assert log_loss(found, features, right) < log_loss(Calibration(), features, right) - 0.05


def test_a_fit_is_the_optimum_even_where_right_and_wrong_do_not_overlap():
    features = [[8.0, 7.0, 1.0, 1.0, -8.0]] * 50 + [[-8.0, -7.0, -1.0, 0.0, 2.0]] * 50
    right = [True] * 50 + [False] * 50

    def cost(weights: np.ndarray) -> float:
        usual = np.array([*Calibration().weights, Calibration().bias])
        loss = log_loss(Calibration(tuple(weights[:-1]), weights[-1]), features, right)
        return loss * len(right) + calibration.RIDGE / 2 * float(((weights - usual) ** 2).sum())

    found = fitted(features, right)
    best = np.array([*found.weights, found.bias])
    assert np.isfinite(best).all()
    assert all(cost(best + step * axis) > cost(best) for axis in np.eye(len(best)) for step in (0.01, -0.01))


def test_few_answers_change_little():
    found = fitted([[2.0, 1.0, 1.0, 1.0, 0.0]], [True])
    assert [*found.weights, found.bias] == pytest.approx([1, 0, 0, 0, 0, 0], abs=0.3)


@pytest.fixture
def data(tmp_path) -> Path:
    """Five pages to train on, three of which are held back."""
    folder = pages(tmp_path / "data", count=5)
    place = (folder / "funsd" / "val").rename(folder / "funsd" / "train")
    fresh = (f"images/p{n}.webp" for n in count())
    names = {True: [], False: []}
    while len(names[True]) < 3 or len(names[False]) < 2:
        names[is_val(name)].append(name) if (name := next(fresh)) else None
    new = dict(zip([f"images/{n}.webp" for n in range(5)], names[True][:3] + names[False][:2], strict=True))
    rows = [json.loads(line) for line in (place / "questions.jsonl").read_text().splitlines()]
    (place / "questions.jsonl").write_text("".join(json.dumps(r | {"image": new[r["image"]]}) + "\n" for r in rows))
    for old, name in new.items():
        (place / old).rename(place / name)
    return folder


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    return tiny_reader(tmp_path)


def test_the_fit_is_stored_with_the_weights(data, folders, monkeypatch):
    """Field 0 is answered surely, field 1 wrong and unsurely; field 2 is said not to be on the page."""
    weights, language = folders
    reader, opened = load_reader(weights, language), []
    sure, unsure = (4.0, 3.0, 1.0, 0.9, -5.0), (-1.0, -2.0, -1.0, 0.0, 1.0)
    texts = [("right", sure), ("wrong", unsure), (NOT_FOUND.capitalize(), (5.0,) * 5)]

    rows = [json.loads(line) for line in (data / "funsd" / "train" / "questions.jsonl").read_text().splitlines()]
    known = {(Path(row["image"]).name, row["question"]): row["answers"][0] for row in rows}

    def answer(page, questions):
        said = []
        for question in questions:
            text, features = texts[min(int(question[-2]), 2)]
            text = known[opened[-1].name, question] if text == "right" else text
            said.append(Answer(text, 0.5, None, features=features))
        return said

    first = reader.open
    monkeypatch.setattr(reader, "open", lambda image: opened.append(image) or first(image))
    monkeypatch.setattr(reader, "answer", answer)
    monkeypatch.setattr(calibration, "load_reader", lambda *_: reader)
    fit = calibrate(weights, data, ["funsd"], limit=100)
    assert len(opened) == len(set(opened)) == 3 and all(is_val(f"images/{image.name}") for image in opened)
    assert (fit.answers, fit.right, fit.not_found) == (9, pytest.approx(1 / 3), 6)  # fields 2 and 3 were not found
    assert fit.after < fit.before  # field 0 was asked once about its own page and once about the next one
    assert fit.calibration(sure) == pytest.approx(0.5, abs=0.15) and fit.calibration(unsure) < 0.2
    again = load_reader(weights, language)  # its hashes are right
    assert again.calibration == fit.calibration and len(again.calibration.weights) == len(FEATURES)
    assert "9 answers, 33% right" in str(fit) and all(f"{name} " in str(fit) for name in (*FEATURES, "bias"))


def test_the_command_says_what_it_learned(data, folders, homunculus):
    weights, language = folders
    words = ["train", "calibrate", weights, "--data", data, "--sets", "funsd", "--language", language, "--limit", 5]
    code, said, _ = homunculus(*words)
    fit = load_reader(weights, language).calibration
    assert code == 0 and said.startswith(f"mean {fit.weights[0]:.3f}, least {fit.weights[1]:.3f}, ")
    assert f"bias {fit.bias:.3f}; 7 answers, 0% right" in said  # its language model knows nothing
    assert fit != Calibration() and math.isfinite(fit.bias)


def test_without_validation_pages_there_is_nothing_to_learn(data, folders):
    weights, language = folders
    place = data / "funsd" / "train"
    rows = [json.loads(line) for line in (place / "questions.jsonl").read_text().splitlines()]
    left = [row for row in rows if not is_val(row["image"])]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in left))
    with pytest.raises(InputError, match="no validation pages"):
        calibrate(weights, data, ["funsd"], 100, language=str(language))
    assert load_reader(weights, language).calibration == Calibration()
