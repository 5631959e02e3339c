"""Sections on the questions: other places of the page, and broad against specific words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from homunculus.allocators.wording import Wording
from homunculus.eval.backends import Row
from homunculus.eval.regions import PERIPHERAL, SECONDARY
from homunculus.eval.report.markdown import markdown_table
from homunculus.eval.report.table import KINDS, Table
from homunculus.eval.report.verdict import OURS, SIMPLE, points


def regions(table: Table) -> Iterator[str]:
    """What a look for one question knows of other places, and what looking again brings."""
    near, far = Table(table.rows, SECONDARY), Table(table.rows, PERIPHERAL)
    if not near.cells:
        return
    lines = []
    for method in near.methods:
        for at in near.budgets:
            cells = []
            for name in near.sets:
                second, third, own = near.of(name, method, at), far.of(name, method, at), table.of(name, method, at)
                both = [own[q]["score"] for q in (second.keys() | third.keys()) & own.keys()]
                values = [_mean_score(own.values()), _mean_score(second.values()), _mean_score(third.values())]
                again = f"{sum(both) / len(both):.3f}" if both else ""
                cells.append(" / ".join(values) + f" / {again}")
            lines.append([f"{method}, {at}", *cells])
    text = (
        "Score on the place that the look was for (target), on the nearest other question of the page (secondary) and "
        "on the farthest (peripheral), both with the same look; and on these when the page is looked at again for "
        "them, as the second question of a conversation can."
    )
    yield f"## Regions and second questions\n\n{text}\n\n" + markdown_table(
        ["method, tokens", *(f"{name}: target / secondary / peripheral / looked again" for name in near.sets)], lines
    )


def _mean_score(rows: Iterable[Row]) -> str:
    scores = [row["score"] for row in rows]
    return f"{sum(scores) / len(scores):.3f}" if scores else ""


def by_wording(table: Table, budget: int) -> Iterator[str]:
    """Broad questions against specific ones."""
    asked = {question: Wording.of(question).broad for question in {row["question"] for row in table.rows}}
    kinds: dict[str, Callable[[Row], bool]] = {
        "broad": lambda row: asked[row["question"]],
        "specific": lambda row: not asked[row["question"]],
    }
    rivals = [
        method
        for method in ("foveated/saliency", "pyramid-pruning", "uniform/query", SIMPLE)
        if method in table.methods
    ]
    lines = []
    for name, keep in kinds.items():
        part = table.where(keep)
        for kind in KINDS:
            gains = [part.against(part.of_kind(kind), (OURS, budget), (rival, budget)) for rival in rivals]
            if any(gains):
                lines.append([f"{name}, {kind}", *(f"{points(g)}, n {g['n']:.0f}" if g else "" for g in gains)])
    if lines:
        text = f"`{OURS}` less others at {budget} tokens, by the question's words (describe, count, compare: broad)."
        yield f"## Broad and specific questions\n\n{text}\n\n" + markdown_table(
            ["questions", *(f"over {r}" for r in rivals)], lines
        )
