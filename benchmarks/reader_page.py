"""Writes docs/reader.md and its plot from results/reader*.json: python benchmarks/reader_page.py"""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.figure import Figure

from ask import told
from homunculus.eval.asking import WAY
from homunculus.files import replacing
from performance_page import where
from reader import BUDGETS, CONFIDENT, DOCUMENTS, SETS, table

ROOT = Path(__file__).parents[1]
SHOWN = ("foveated/query", "dag/query", "foveated/saliency", "uniform/query")
PAGE = """# The reader: ask a page a question

This page is written by `python benchmarks/reader_page.py` from the files in `results/`, which `python
benchmarks/reader.py --data DATA` makes ({machine}). What it is made of and where it fails:
[model_card.md](model_card.md); how it is trained: [training.md](training.md).

```
homunculus ask page.png "What is the total?" --png look.png       # the answer, how sure it is, what it looked at
homunculus ask scan.pdf "Who signed it?" "When?" --page 2 --json -
```

```python
import homunculus as hm

reader = hm.load_reader()
answer = reader.ask("examples/invoice.png", "What is the total?")
answer.text, answer.confidence  # and how sure it is, from 0 to 1
answer.notes  # the lines that it read, those first that it thought most likely to hold the answer
answer.glance.selection.boxes  # the 273 cells that it looked at
answer.save("answer.png")
```

A question goes this way: the *scout* finds where its answer may lie; the *allocator* spends the budget there; the
*encoder* makes one vector of each cell, and its reading head notes the lines at the fifty-six likeliest places, from
those cells and nothing else; the *language model* gets the cells as tokens, always as many as the budget says, the
notes as at most 256 tokens of text, laid out as on the page with the likeliest marked, then the question. The page is
taken in once for any number of questions. Another allocator, relevance or budget is a word in the call, and the weights
are the same for all of them.

## How well it answers

ANLS (docvqa, sroie, funsd), relaxed accuracy (chartqa), exact match (daquar, icdar2015), VQA accuracy (coco_vqa); 95
% intervals over pages (bootstrap). A way is allocator / relevance / tokens. Every way answers the same questions with
the same weights. ANLS counts an answer that is half wrong as wrong here; since then it counts half, as DocVQA's own
script has it, and [the report](report/report.md) says what comes of it.

![Score against tokens, for four ways of looking](images/reader.png)

{table}
{plain}
## How far its confidence can be trusted

Confidence is the mean probability of the answer's tokens, brought to how often such answers are right on pages held
back from training (`homunculus train calibrate`). Expected calibration error, ten bins, and how often it is more than
{confident:.0%} sure of an answer, on the question's own page and on another page of the set, which does not answer it
(`--pages other`):

| set | n | calibration error | sure, own page | sure, other page |
|---|---|---|---|---|
{trust}

Receipts are alike: another one has a company, a date and a total as well, so that most questions about the wrong
receipt do have an answer there.

## What was aimed at

| aim | measured | |
|---|---|---|
{aims}

## How fast it is

{speed}
"""


def trust(own: list[dict], other: list[dict], way: str = WAY) -> str:
    """Lines about confidence, one a set."""
    elsewhere = {row["dataset"]: row for row in other if row["way"] == way}
    lines = []
    for row in sorted((row for row in own if row["way"] == way), key=lambda row: SETS.index(row["dataset"])):
        wrong = elsewhere.get(row["dataset"])
        cells = [row["dataset"], str(row["n"]), f"{row['calibration_error']:.3f}", f"{row['confident']:.0%}"]
        lines.append("| " + " | ".join([*cells, f"{wrong['confident']:.0%}" if wrong else ""]) + " |")
    return "\n".join(lines)


def aims(rows: list[dict]) -> str:
    """What was aimed at and what came of it, one a line; what was not measured is left out."""
    value = {(row["dataset"], row["way"]): row["value"] for row in rows}
    lines: list[str] = []

    def note(aim: str, *found: tuple[str, float | None, float]) -> None:
        told = [(name, score, least) for name, score, least in found if score is not None]
        if told:
            met = all(score >= least for _, score, least in told)
            measured = ", ".join(f"{name} {score:.3f}" for name, score, _ in told)
            lines.append(f"| {aim} | {measured} | {'met' if met else 'missed'} |")

    def less(name: str, one: str, other: str, share: bool = False) -> float | None:
        if (name, one) not in value or (name, other) not in value:
            return None
        one_, other_ = value[name, one], value[name, other]
        return one_ / other_ if share else one_ - other_

    for name, least in (("docvqa", 0.45), ("sroie", 0.75), ("funsd", 0.55), ("chartqa", 0.25)):
        note(f"{name} at 273 tokens: {least}", (name, value.get((name, WAY)), least))
    for other in ("uniform/query", "foveated/saliency"):
        note(f"docvqa at 273 tokens: 0.1 over {other}", ("docvqa", less("docvqa", WAY, f"{other}/273"), 0.1))
        found = [(name, less(name, "foveated/query/64", f"{other}/64"), 0.2) for name in DOCUMENTS[:3]]
        note(f"at 64 tokens: 0.2 over {other}", *found)
    for budget, least in ((273, 0.95), (64, 0.85)):
        way, all_ = f"foveated/query/{budget}", "foveated/query/1536"
        note(f"{least:.0%} of 1,536 tokens at {budget}", *((s, less(s, way, all_, True), least) for s in DOCUMENTS))
    note(
        "docvqa: 64 tokens as good as 273 of uniform",
        ("docvqa", less("docvqa", "foveated/query/64", "uniform/query/273"), 0.0),
    )
    note(
        "150 tokens as good as 273 of grid",
        *((name, less(name, "foveated/query/150", "grid/query/273"), 0.0) for name in DOCUMENTS),
    )
    return "\n".join(lines)


def plot(rows: list[dict], path: Path) -> None:
    """Score against tokens on the sets of documents."""
    values = {(row["dataset"], row["way"]): row for row in rows}
    sets = [name for name in DOCUMENTS if any(key[0] == name for key in values)]
    figure = Figure(figsize=(3 * len(sets), 3), layout="constrained")
    for i, name in enumerate(sets):
        axes = figure.add_subplot(1, len(sets), i + 1)
        for way in SHOWN:
            points = [
                (b, values[name, f"{way}/{b}"]) for b in sorted((*BUDGETS, 1536)) if (name, f"{way}/{b}") in values
            ]
            if points:
                score = [row["value"] for _, row in points]
                gaps = [
                    [row["value"] - row["low"] for _, row in points],
                    [row["high"] - row["value"] for _, row in points],
                ]
                axes.errorbar([b for b, _ in points], score, gaps, marker="o", capsize=2, label=way)
        axes.set(title=name, xlabel="tokens", xscale="log", ylim=(0, None))
        axes.set_xticks([*sorted(BUDGETS), 1536], [str(b) for b in (*sorted(BUDGETS), 1536)], minor=False)
    figure.axes[0].legend(fontsize=7)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=130, metadata={"Software": None})


def plain(path: Path) -> str:
    """The same in float32, if it was measured."""
    if not path.is_file():
        return ""
    found = json.loads(path.read_text())
    command = f"python benchmarks/reader.py --data DATA --sets docvqa --ways {WAY} --out results/reader_cpu.json"
    place = "; ".join(map(where, found["machines"]))
    return f"The GPU works in bfloat16. In float32, as on a CPU (`{command}`; {place}):\n\n{table(found['rows'])}"


def speed(path: Path) -> str:
    if not path.is_file():
        return "Not measured yet: `python benchmarks/ask.py --data DATA`."
    found = json.loads(path.read_text())
    return f"`python benchmarks/ask.py --data DATA` ({where(found['machine'])}): {told(found)}."


def main(results: Path = ROOT / "results", docs: Path = ROOT / "docs") -> None:
    own = json.loads((results / "reader.json").read_text())
    other = results / "reader_other.json"
    elsewhere = json.loads(other.read_text())["rows"] if other.is_file() else []
    plot(own["rows"], docs / "images" / "reader.png")
    text = PAGE.format(
        machine="; ".join(map(where, own["machines"])),
        table=table(own["rows"]),
        plain=plain(results / "reader_cpu.json"),
        confident=CONFIDENT,
        trust=trust(own["rows"], elsewhere),
        aims=aims(own["rows"]),
        speed=speed(results / "ask_cpu.json"),
    )
    with replacing(docs / "reader.md") as unfinished:
        unfinished.write_text(text)


if __name__ == "__main__":
    main()
