"""What was expected before anything was measured, and what the results make of it: confirmed, refuted or open.

An expectation is confirmed or refuted when the 95 % interval of the difference leaves no doubt, else it is open. Where
few pages differ, intervals are too narrow; so to be other than nothing a difference needs a p below 0.05 too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homunculus.eval.metrics import Figure
from homunculus.eval.report.table import Table
from homunculus.eval.report.verdict import MAIN, OURS, SIMPLE, Finding, points

KEPT = 0.975  # of what all tokens give
SMALL = 150
CUT, LOSS = 0.8, 0.02  # share of all tokens that can go, it was said, and what that may cost
CHANCE = 0.05


def weighed(table: Table, budget: int = MAIN) -> list[Finding]:
    """All expectations that the results have the rows for."""
    return [
        each for part in (_critical, _kept, _pruned, _small, _winners, _sources, _off) for each in part(table, budget)
    ]


def status(figure: Figure | None, least: float = 0.0) -> str:
    """Whether a difference is above `least`, by its interval."""
    if figure is None or (not least and figure["p"] >= CHANCE):
        return "open"
    return "confirmed" if figure["low"] > least else "refuted" if figure["high"] < least else "open"


def _critical(table: Table, budget: int) -> Iterator[Finding]:
    sets = table.of_kind("documents")
    steps = [("logpolar/query", SIMPLE), (SIMPLE, "random/query")]
    found = [table.against(sets, (a, budget), (b, budget)) for a, b in steps]
    if not all(found):
        return
    statuses = [status(figure) for figure in found]
    verdict = "confirmed" if set(statuses) == {"confirmed"} else "refuted" if "refuted" in statuses else "open"
    shown = "; ".join(f"{a} over {b} {points(figure)}" for (a, b), figure in zip(steps, found, strict=True))
    yield Finding(f"The critical experiment, documents, {budget} tokens: log-polar > top-K > random", verdict, shown)


def _full(table: Table) -> tuple[str, int] | None:
    """The setting with the most tokens: the upper bound."""
    most = max(table.budgets, default=0)
    names = [method for method in table.methods if any(table.of(dataset, method, most) for dataset in table.sets)]
    return (names[0] if "uniform/query" not in names else "uniform/query", most) if most > MAIN and names else None


def _kept(table: Table, budget: int) -> Iterator[Finding]:
    full = _full(table)
    if full is None:
        return
    for dataset in table.sets:
        means = table.means([dataset], ((OURS, budget), full))
        gap = table.against([dataset], (OURS, budget), full)
        if len(means) < 2 or gap is None:
            continue
        ours, bound = means[OURS, budget], means[full]
        least = -(1 - KEPT) * bound
        share = f", {ours / bound:.1%}" if bound else ""
        said = f"{100 * ours:.1f} of {100 * bound:.1f} points{share}; difference {points(gap)}"
        rule = f"{dataset}: {budget} tokens of `foveated` keep 97.5 % of what {full[1]} tokens of {full[0]} give"
        yield Finding(rule, status(gap, least), said)
        better = f"{dataset}: foveation as regularisation: fewer tokens answer better than {full[1]}"
        yield Finding(better, status(gap), points(gap))


def _pruned(table: Table, budget: int) -> Iterator[Finding]:
    """How far it goes: the largest budget of `foveated` that leaves a fifth of what the most tokens are."""
    full = _full(table)
    if full is None:
        return
    for dataset in table.sets:
        most = table.middle("tokens", *full, [dataset])
        few = [b for b in table.budgets if table.of(dataset, OURS, b) and most and b <= (1 - CUT) * most]
        gap = table.against([dataset], (OURS, max(few)), full) if few else None
        if gap and most:
            rule = f"{dataset}: {CUT:.0%} of all tokens can go at a loss below {100 * LOSS:.0f} points"
            yield Finding(rule, status(gap, -LOSS), f"{max(few)} of {most:.0f} tokens: {points(gap)}")


def _small(table: Table, budget: int) -> Iterator[Finding]:
    for one in ("logpolar/query", OURS):
        for kind in ("documents", "photos", "text in the wild"):
            figure = table.against(table.of_kind(kind), (one, SMALL), (SIMPLE, budget))
            if figure:
                rule = f"{kind}: {SMALL} tokens of {one} are less than 2 points behind {budget} of {SIMPLE}"
                yield Finding(rule, status(figure, -LOSS), points(figure))


def _winners(table: Table, budget: int) -> Iterator[Finding]:
    expected = {
        "documents": ("frequency/query", "atlas/query"),
        "photos": ("pyramid/query", "dag/query"),
        "text in the wild": ("frequency/query", "atlas/query"),
    }
    rules = [method for method in table.methods if ":" not in method and method.endswith("/query")]
    for kind, names in expected.items():
        sets = table.of_kind(kind)
        scores = {method: mean for (method, _), mean in table.means(sets, [(rule, budget) for rule in rules]).items()}
        if not sets or not (scores.keys() & set(names)) or len(scores) < 3:
            continue
        best = max(scores, key=lambda method: scores[method])
        here = max(scores.keys() & set(names), key=lambda method: scores[method])
        gap = table.against(sets, (here, budget), (_second(scores, names), budget))
        expected_names = " or ".join(f"`{name.removesuffix('/query')}`" for name in names)
        said = f"best is {best} with {100 * scores[best]:.1f}; {here} has {100 * scores[here]:.1f}, {points(gap)}"
        yield Finding(f"{kind}: {expected_names} win", status(gap), said)
    yield from _objects(table, budget)


def _second(scores: dict[str, float], names: Sequence[str]) -> str:
    """The best of those that were not expected to win."""
    return max(scores.keys() - set(names), key=lambda method: scores[method])


def _objects(table: Table, budget: int) -> Iterator[Finding]:
    figure = table.against(table.of_kind("photos"), ("atlas/query", budget), ("dag/query", budget))
    if figure:
        yield Finding(
            "photos: whole objects (`atlas`) are better than fragments (`dag`)", status(figure), points(figure)
        )


def _sources(table: Table, budget: int) -> Iterator[Finding]:
    pairs = {
        "the question against what stands out (`query` over `saliency`)": (OURS, "foveated/saliency"),
        "trained against training-free (`query` over `information`)": (OURS, "foveated/information"),
        "the balance of all against the question alone (`opponent` over `query`)": ("foveated/opponent", OURS),
        "to know the place against to look for it (`oracle` over `query`)": ("foveated/oracle", OURS),
    }
    for kind in ("documents", "photos", "text in the wild"):
        for name, (one, other) in pairs.items():
            figure = table.against(table.of_kind(kind), (one, budget), (other, budget))
            if figure:
                yield Finding(f"{kind}: {name}", status(figure), points(figure))


def _off(table: Table, budget: int) -> Iterator[Finding]:
    for kind in ("documents", "photos", "text in the wild"):
        figure = table.against(table.of_kind(kind), ("foveated:off=2/query", budget), (OURS, budget))
        if figure:
            rule = f"{kind}: a fixation that is off by 2 degrees costs less than 2 points"
            yield Finding(rule, status(figure, -LOSS), points(figure))
