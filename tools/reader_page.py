"""Writes docs/reader.md and its plot from results/reader*.json: python tools/reader_page.py"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from published import DOCS, RESULTS, describe_machine, read_results, write_page, write_plot

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from ask import describe
from reader import CONFIDENT, DOCUMENTS, table, trust

PAGE = """# The reader: ask a page a question

This page is written by `python tools/reader_page.py` from the files in `results/`. What the reader is made of and
where it fails: [model_card.md](model_card.md); how it is trained: [training.md](training.md).

```
homunculus ask page.png "What is the total?" --png look.png       # the answer, how sure it is, what it looked at
homunculus ask scan.pdf "Who signed it?" "When?" --page 2 --json -
```

```python
import homunculus as hm

reader = hm.load_reader()
page = reader.open("examples/invoice.png")  # taken in once, for any number of questions
answer = page.ask("What is the total?", budget=273)
answer.text, answer.confidence  # and how sure it is, from 0 to 1
answer.lines  # the text lines that it read, with boxes
answer.glance.selection.boxes  # the 273 cells that it looked at
answer.save("answer.png")
```

A question goes this way: the *line finder* finds the text lines of the page and turns it upright; the *scout* says
where the answer may lie; the *allocator* spends the budget of cells there; the *recogniser* reads the lines that these
cells show legibly; the *language model* gets their text in page layout, the most relevant lines if there are too many,
and the question. It gets no visual tokens: what the budget does not show, it does not know. Allocator, relevance and
budget are words in the call, and the weights are the same for all of them.

## How well it answers

`{command}`, {machines}, {dtype}, {date}. ANLS (docvqa, sroie, funsd), relaxed accuracy (chartqa), exact match (daquar,
icdar2015), VQA accuracy (coco_vqa), from 0 to 1; in brackets the 95 % interval over resampled pages; in per cent the
share of questions whose answer stands among the lines that were read. A way is allocator / relevance / tokens. Every
way answers the same questions with the same weights.

![Score against tokens](images/reader.png)

{table}
## How far its confidence can be trusted

Confidence is the probability that the answer is right, learned on pages held back from training (`homunculus train
calibrate`). At 273 tokens: the expected calibration error in ten bins, how often it gives an answer with a confidence
above {confident}, on the question's own page and on the next page of the set, and how often it says that the answer is
not on the page there{wrong}.

{trust}
Receipts are alike: another one has a company, a date and a total as well, so that most questions about the wrong
receipt do have an answer there.

## How fast it is

{speed}
"""


def plot(rows: Sequence[dict[str, Any]]) -> Figure:
    """Score against tokens on the sets of documents, a line for each allocator."""
    scores = {(row["dataset"], *row["way"].rsplit("/", 1)): row["score"] for row in rows}
    sets = [name for name in DOCUMENTS if any(key[0] == name for key in scores)]
    budgets = sorted({int(budget) for _, _, budget in scores})
    figure = Figure(figsize=(3 * max(len(sets), 1), 3), layout="constrained")
    for i, name in enumerate(sets):
        axes = figure.add_subplot(1, len(sets), i + 1)
        for method in dict.fromkeys(method for _, method, _ in scores):
            points = [(b, scores[name, method, str(b)]) for b in budgets if (name, method, str(b)) in scores]
            if points:
                score = [found["value"] for _, found in points]
                below, above = ([abs(f[end] - f["value"]) for _, f in points] for end in ("low", "high"))
                axes.errorbar([b for b, _ in points], score, [below, above], marker="o", capsize=2, label=method)
        axes.set(title=name, xlabel="tokens", xscale="log", ylim=(0, None))
        axes.set_xticks(budgets, [str(b) for b in budgets], minor=False)
        axes.minorticks_off()
    if sets:
        figure.axes[0].legend(fontsize=7)
    return figure


def speed(found: dict[str, Any]) -> str:
    """What `benchmarks/ask.py` measured, in a sentence."""
    if not found:
        return "Not measured yet: `python benchmarks/ask.py --data DATA`."
    return f"`python benchmarks/ask.py --data DATA` ({describe_machine(found['machine'])}): {describe(found)}."


def main(results: Path = RESULTS, docs: Path = DOCS) -> None:
    """Write the page and its plot."""
    own, wrong = read_results("reader", results), read_results("reader_wrong_page", results, missing_ok=True)
    write_plot("reader", plot(own["rows"]), docs)
    text = PAGE.format(
        command=own["command"],
        machines="; ".join(map(describe_machine, own["machines"])),
        dtype=own["dtype"],
        date=own["date"],
        table=table(own["rows"]),
        confident=CONFIDENT,
        wrong=f" (`{wrong['command']}`, {wrong['date']})" if wrong else "",
        trust=trust(own["rows"], wrong["rows"] if wrong else []),
        speed=speed(read_results("ask_cpu", results, missing_ok=True)),
    )
    write_page("reader", text, docs)


if __name__ == "__main__":
    main()
