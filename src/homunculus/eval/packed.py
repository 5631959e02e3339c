"""Scores without the data that they are about: small enough to publish, and enough to go on from.

One line for each set, setting and region, with a list for each column; question, answers and image come back from the
data, what was answered does not.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from homunculus.errors import InputError
from homunculus.eval.backends import Row
from homunculus.eval.data import Item
from homunculus.eval.runner import RUN, dumped, read, run_config
from homunculus.runtime.files import replacing

SAME = ("dataset", "allocator", "relevance", "budget", "region")  # of all rows of a line
SOME = "found"  # of rows of the reader
EACH = {"qid": None, "looked": None, "score": 6, "confidence": 3, "tokens": 1, "coverage": 3, "fixation": 0, "ms": 1}


def pack(folder: Path, path: Path) -> None:
    """Keep the scores of a folder of results in a file of a few bytes an answer."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in read(folder / "results.jsonl"):
        groups.setdefault(tuple(row[name] for name in SAME), []).append(row)
    config = run_config(folder)
    config["data"] = [Path(source).name for source in config.get("data", [])]
    lines = [config]
    for key in sorted(groups):
        rows = sorted(groups[key], key=lambda row: (row["qid"], row["looked"]))
        columns = {name: [_rounded(row[name], digits) for row in rows] for name, digits in EACH.items()}
        if all(SOME in row for row in rows):
            columns[SOME] = [row[SOME] for row in rows]
        lines.append(dict(zip(SAME, key, strict=True)) | columns)
    with replacing(path) as unfinished, lzma.open(unfinished, "wt", encoding="utf-8") as file:
        file.writelines(map(dumped, lines))


def unpack(path: Path, items: Sequence[Item], folder: Path) -> int:
    """Write a folder of results from such a file and the data; how many answers it has."""
    known = {(item.dataset, item.qid): item for item in items}
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            config, *groups = map(json.loads, file)
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise InputError(f"{path} holds no scores that can be read") from error
    rows = [row for group in groups for row in _rows(group, known)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ((RUN, json.dumps(config, indent=1) + "\n"), ("results.jsonl", "".join(map(dumped, rows)))):
        with replacing(folder / name) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return len(rows)


def _rows(group: dict[str, Any], known: dict[tuple[str, str], Item]) -> Iterable[Row]:
    names = [*EACH, SOME] if SOME in group else [*EACH]
    for values in zip(*(group[name] for name in names), strict=True):
        own: Row = dict(zip(names, values, strict=True))
        item = known.get((group["dataset"], own["qid"]))
        if item is None:
            raise InputError(f"the data has no question {own['qid']} of {group['dataset']}, whose scores are kept")
        data = {"image": item.image.name, "question": item.question, "answers": list(item.answers), "prediction": ""}
        yield {name: group[name] for name in SAME} | data | own


def _rounded(value: Any, digits: int | None) -> Any:
    if isinstance(value, list):
        return [_rounded(part, digits) for part in value]
    short = round(value, digits) if isinstance(value, float) and digits is not None else value
    return int(short) if isinstance(short, float) and short.is_integer() else short
