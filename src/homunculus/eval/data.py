"""Sets of questions: folders with questions.jsonl and the images that it names, and sets of the hub by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from homunculus.errors import InputError
from homunculus.runtime.files import replacing

Box = tuple[float, float, float, float]
SPLITS = ("train", "val", "test")  # names of folders that are splits of a set, not sets


@dataclass(frozen=True)
class Item:
    """One question of a set, with all answers that count, and where these stand in pixels if that is known."""

    dataset: str
    qid: str
    image: Path
    question: str
    answers: tuple[str, ...]
    boxes: tuple[Box, ...] = ()


def items(folder: Path, dataset: str, split: str = "val", limit: int | None = None) -> list[Item]:
    """The questions of folder/dataset/split, page by page; the first `limit` of them."""
    return items_of(folder / dataset / split, dataset, limit)


def items_of(place: Path, dataset: str, limit: int | None = None) -> list[Item]:
    """The questions of the folder that holds questions.jsonl, page by page; the first `limit` of them."""
    try:
        lines = (place / "questions.jsonl").read_text(encoding="utf-8").split("\n")  # texts may hold others
        rows = [json.loads(line) for line in lines if line.strip()]
        found = [
            Item(
                dataset,
                str(row["qid"]),
                place / row["image"],
                row["question"],
                tuple(map(str, row["answers"])),
                tuple(map(_box, row.get("answer_boxes") or row.get("answer_boxes_ocr") or ())),
            )
            for row in rows
        ]
    except OSError as error:
        raise InputError(f"{place} is no set of questions: {error.strerror} for {error.filename}") from error
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{place}: a line of questions.jsonl cannot be used: {error}") from error
    return sorted(found, key=lambda item: item.image)[:limit]


def _box(numbers: Sequence[float]) -> Box:
    left, top, right, bottom = map(float, numbers)
    return left, top, right, bottom


def sets_in(source: str, split: str = "val") -> list[tuple[Path, str]]:
    """The sets that a folder holds, each as (folder of its questions.jsonl, name).

    The folder is one set or several side by side that have such a split, that split of a set, or it holds
    questions.jsonl itself and has no splits.
    """
    folder = Path(source)
    own = folder.absolute()  # "." has a name too
    if (folder / split / "questions.jsonl").is_file():
        return [(folder / split, own.name)]
    if (folder / "questions.jsonl").is_file():
        if own.name in SPLITS and own.name != split:
            raise InputError(f"{source} is the split {own.name} of a set, not {split}; add --split {own.name}")
        return [(folder, own.parent.name if own.name == split else own.name)]
    found = sorted(path.parent for path in folder.glob(f"*/{split}/questions.jsonl") if path.stat().st_size)
    if not found:
        raise InputError(
            f"{source} is neither a folder of sets (questions.jsonl in it, in {split} or one folder below) nor one of "
            f"the hub's sets known here: {', '.join(HUB)}"
        )
    return [(place, place.parent.name) for place in found]


def collect(
    sources: Sequence[str],
    split: str = "val",
    limit: int | None = None,
    only: Sequence[str] = (),
    cache: Path | None = None,
) -> list[Item]:
    """All questions of folders and of hub sets by name; `limit` questions a set; `only` sets of these names."""
    found: list[Item] = []
    for source in sources:
        if source in HUB and not Path(source).exists():
            found += from_hub(source, split, limit, cache)
            continue
        for place, name in sets_in(source, split):
            if not only or name in only:
                found += items_of(place, name, limit)
    names = {(item.dataset, item.qid) for item in found}
    if len(names) < len(found):
        raise InputError("two questions of a set have the same qid; every question needs its own")
    if not found:
        raise InputError(
            f"there are no questions in {', '.join(sources)}" + (f" for {', '.join(only)}" if only else "")
        )
    return found


# ---- the hub ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HubSet:
    """Where a set lies on the hub, and how one of its rows is read: qid, question, answers."""

    path: str
    config: str | None
    splits: dict[str, str]
    read: Callable[[dict[str, Any]], tuple[str, str, Sequence[str]]]


def _plain(row: dict[str, Any]) -> tuple[str, str, Sequence[str]]:
    key = next(name for name in ("questionId", "question_id", "qid") if name in row)
    return str(row[key]), row["question"], row["answers"] or []


def _spoken(row: dict[str, Any]) -> tuple[str, str, Sequence[str]]:
    qid, question, answers = _plain(row)
    return qid, question, [answer["answer"] if isinstance(answer, dict) else answer for answer in answers]


def _chart(row: dict[str, Any]) -> tuple[str, str, Sequence[str]]:
    answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    return sha256(repr((row["question"], answers)).encode()).hexdigest()[:16], row["question"], answers


VALIDATION = {"val": "validation", "test": "test"}
HUB = {
    "docvqa": HubSet("lmms-lab/DocVQA", "DocVQA", VALIDATION, _plain),
    "infovqa": HubSet("lmms-lab/DocVQA", "InfographicVQA", VALIDATION, _plain),
    "textvqa": HubSet("lmms-lab/textvqa", None, VALIDATION, _plain),
    "vqav2": HubSet("lmms-lab/VQAv2", None, VALIDATION, _spoken),
    "chartqa": HubSet("lmms-lab/ChartQA", None, {"val": "test", "test": "test"}, _chart),
}


def from_hub(name: str, split: str, limit: int | None, cache: Path | None = None) -> list[Item]:
    """The first questions of a set of the hub; its images are kept in `cache`."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise InputError(
            f"the set {name} comes from the hub, for which `datasets` is needed: pip install it"
        ) from error
    known = HUB[name]
    try:
        rows = load_dataset(known.path, known.config, split=known.splits.get(split, split), streaming=True)
        return list(_stored(name, rows, known, limit, cache or Path.home() / ".cache" / "homunculus" / "sets"))
    except InputError:
        raise
    except Exception as error:  # whatever the network does
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"the set {name} cannot be had from the hub ({known.path}): {reason}") from error


def _stored(name: str, rows: Iterable[dict[str, Any]], known: HubSet, limit: int | None, cache: Path) -> Iterator[Item]:
    folder = cache / name
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for i, row in enumerate(rows):
        if limit is not None and i >= limit:
            break
        qid, question, answers = known.read(row)
        picture = row["image"].convert("RGB")
        mark = sha256(picture.tobytes() + repr(picture.size).encode()).hexdigest()[:16]  # questions share images
        path = folder / f"{mark}.png"
        if not path.is_file():
            with replacing(path) as unfinished:
                picture.save(unfinished, format="PNG")
        found.append(Item(name, qid, path, question, tuple(map(str, answers))))
    yield from sorted(found, key=lambda item: item.image)
