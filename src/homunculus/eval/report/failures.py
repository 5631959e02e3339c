"""The section on the worst failures, with pictures of where the looks went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from homunculus.errors import ImageError, InputError
from homunculus.eval.backends import look_at
from homunculus.eval.data import Item, collect
from homunculus.eval.report import plots
from homunculus.eval.report.markdown import markdown_table
from homunculus.eval.report.table import Table
from homunculus.eval.report.verdict import OURS
from homunculus.eval.runner import ModelSpec
from homunculus.eval.settings import Setting
from homunculus.reader import load_page_reader
from homunculus.reader.session import PageReader

WORST = 8  # looks of the gallery


def gallery(folder: Path, table: Table, config: dict[str, Any], budget: int) -> Iterator[str]:
    """The worst failures: questions that another method answered and `foveated` did not."""
    folders = [source for source in config.get("data", []) if Path(source).exists()]  # nothing is fetched from the hub
    reader = _reader_of(config) if folders else None
    if reader is None:
        return
    try:
        items = collect(folders, config.get("split", "val"), only=table.sets)
    except InputError:
        return  # the data are elsewhere: all else comes from the results alone
    setting = Setting("foveated", "query", budget)
    looks, lines = [], []
    for confidence, item in _worst(table, items, budget):
        try:
            page = reader.open(item.image)
        except ImageError:
            continue  # it is elsewhere too
        boxes = [page.box_upright(box) for box in item.boxes]
        looks.append(plots.look(look_at(page, [item], setting)[0], boxes))
        others = ", ".join(_answered(table, item.dataset, item.qid)[:4])
        lines.append([str(len(looks)), item.dataset, item.qid, f"{confidence:.0%}", others])
    if not looks:
        return
    plots.gallery(looks, folder / "gallery.png")
    text = (
        "Where it looked when it was surest and wrong, and others were right, in rows from the left. Colours are "
        "levels (red is the finest), the cross is the fixation, the black frame the answer's place where it is known."
    )
    listed = markdown_table(["", "set", "question", "sure", "right were, among others"], lines)
    yield f"## Worst failures\n\n{text}\n\n![Cells of the worst failures](gallery.png)\n\n{listed}"


def _worst(table: Table, items: Sequence[Item], budget: int) -> list[tuple[float, Item]]:
    """Confidence and item of wrong answers that other settings have right, the surest first."""
    by_name = {(item.dataset, item.qid): item for item in items}
    failed = [
        (float(row["confidence"]), by_name[dataset, qid])
        for dataset in table.sets
        for qid, row in table.of(dataset, OURS, budget).items()
        if row["score"] == 0 and (dataset, qid) in by_name and _answered(table, dataset, qid)
    ]
    return sorted(failed, key=lambda entry: -entry[0])[:WORST]


def _reader_of(config: dict[str, Any]) -> PageReader | None:
    """The reader whose looks these are, without its language model; none if its weights are gone or a VLM answered."""
    weights = config.get("spec", {}).get("weights", "")
    try:
        if config.get("fingerprint", {}).get("reader") == ModelSpec(weights=weights).fingerprint()["reader"]:
            return load_page_reader(weights or None)
    except InputError:
        pass
    return None


def _answered(table: Table, dataset: str, qid: str) -> list[str]:
    """Settings that answered a question fully."""
    return [
        f"{method}/{budget}"
        for (name, method, budget), rows in table.cells.items()
        if name == dataset and method != OURS and qid in rows and rows[qid]["score"] == 1
    ]
