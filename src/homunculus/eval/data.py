"""Sets of questions: folders with questions.jsonl and the images that it names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from homunculus.errors import InputError


@dataclass(frozen=True)
class Item:
    """One question of a set, with all answers that count."""

    dataset: str
    qid: str
    image: Path
    question: str
    answers: tuple[str, ...]


def items(folder: Path, dataset: str, split: str = "val", limit: int | None = None) -> list[Item]:
    """The questions of folder/dataset/split, page by page; the first `limit` of them."""
    place = folder / dataset / split
    try:
        lines = (place / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
        found = [
            Item(dataset, str(row["qid"]), place / row["image"], row["question"], tuple(map(str, row["answers"])))
            for row in rows
        ]
    except OSError as error:
        raise InputError(f"{place} is no set of questions: {error.strerror} for {error.filename}") from error
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{place}: a line of questions.jsonl cannot be used: {error}") from error
    return sorted(found, key=lambda item: item.image)[:limit]
