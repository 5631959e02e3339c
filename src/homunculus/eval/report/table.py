"""Results in order: scores of every method on every set and budget, and methods against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from homunculus.eval.backends import Row
from homunculus.eval.metrics import Figure, across, interval, metric_of

KINDS = {
    "documents": ("docvqa", "sroie", "funsd", "chartqa", "infovqa", "docvqa_gaze"),
    "photos": ("coco_vqa", "daquar", "vqav2"),
    "text in the wild": ("icdar2015", "textvqa"),
}


def kind_of(dataset: str) -> str:
    """What is in the images of a set; a set that is not known counts as documents."""
    return next((kind for kind, names in KINDS.items() if dataset in names), "documents")


def method_of(row: Row) -> str:
    """Method and relevance, as `Setting.name` has them."""
    return f"{row['allocator']}/{row['relevance']}" if row["relevance"] else str(row["allocator"])


@dataclass(eq=False)
class Table:
    """Rows of results of one model, told apart by set, method and budget; `region` is that of all its rows.

    `costs` are milliseconds a question of sets, methods and budgets that were measured alone.
    """

    rows: Sequence[Row]
    region: str = ""
    costs: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    cells: dict[tuple[str, str, int], dict[str, Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = defaultdict(dict)
        for row in self.rows:
            if row.get("region", "") == self.region:
                self.cells[row["dataset"], method_of(row), row["budget"]][row["qid"]] = row

    @cached_property
    def sets(self) -> list[str]:
        """The sets, documents first."""
        order = [name for names in KINDS.values() for name in names]
        found = {dataset for dataset, _, _ in self.cells}
        return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))

    @cached_property
    def methods(self) -> list[str]:
        """The methods, in the order in which they came, but for `uniform`: what all have to beat leads every table."""
        found = dict.fromkeys(method for _, method, _ in self.cells)
        return sorted(found, key=lambda method: not method.startswith("uniform/"))

    @cached_property
    def plain_methods(self) -> list[str]:
        """Methods without options, so without ablations."""
        return [method for method in self.methods if ":" not in method and not method.endswith("/oracle")]

    @cached_property
    def budgets(self) -> list[int]:
        """The budgets, smallest first."""
        return sorted({budget for _, _, budget in self.cells})

    def of(self, dataset: str, method: str, budget: int) -> dict[str, Row]:
        """Rows by question; none if this was not asked."""
        return self.cells.get((dataset, method, budget), {})

    def score(self, dataset: str, method: str, budget: int) -> Figure | None:
        """Mean score with its interval over pages."""
        rows = sorted(self.of(dataset, method, budget).values(), key=lambda row: str(row["qid"]))  # whenever they came
        if not rows:
            return None
        return interval([row["score"] for row in rows], [row["image"] for row in rows]) | {"n": len(rows)}

    def against(self, sets: Iterable[str], one: tuple[str, int], other: tuple[str, int]) -> Figure | None:
        """How much better one method is than another on the questions that both were asked, each set counting alike.

        Pages are resampled within sets; p is by flips of whole pages.
        """
        found: list[tuple[list[float], list[float], list[str]]] = []
        for dataset in sets:
            a, b = self.of(dataset, *one), self.of(dataset, *other)
            shared = sorted(a.keys() & b.keys())
            if shared:
                scores, others = ([rows[q]["score"] for q in shared] for rows in (a, b))
                found.append((scores, others, [a[q]["image"] for q in shared]))
        return across(found) if found else None

    def mean(self, sets: Iterable[str], method: str, budget: int) -> float | None:
        """Mean over sets; none if one of them was not asked."""
        found = [self.score(dataset, method, budget) for dataset in sets]
        return float(np.mean([each["value"] for each in found if each])) if found and all(found) else None

    def means(self, sets: Iterable[str], settings: Iterable[tuple[str, int]]) -> dict[tuple[str, int], float]:
        """Means over sets of those methods and budgets that were asked in all of them, on questions that all were."""
        sets = list(sets)
        asked = [setting for setting in settings if all(self.of(dataset, *setting) for dataset in sets)]
        if not asked:
            return {}
        shared = {name: sorted(set[str].intersection(*(set(self.of(name, *s)) for s in asked))) for name in sets}
        if not shared or not all(shared.values()):
            return {}
        rows = {
            setting: [[self.of(name, *setting)[q]["score"] for q in shared[name]] for name in sets] for setting in asked
        }
        return {setting: float(np.mean([np.mean(scores) for scores in each])) for setting, each in rows.items()}

    def middle(self, name: str, method: str, budget: int, sets: Iterable[str] | None = None) -> float | None:
        """Median of a number of the rows, such as `ms`."""
        selected = self.sets if sets is None else list(sets)
        found = [row[name] for dataset in selected for row in self.of(dataset, method, budget).values() if name in row]
        return float(median(found)) if found else None

    def ms(self, method: str, budget: int, sets: Iterable[str] | None = None) -> float | None:
        """Milliseconds a question: as measured alone, if anything was, else the median of the rows."""
        if not self.costs:
            return self.middle("ms", method, budget, sets)
        selected = self.sets if sets is None else list(sets)
        found = [self.costs[key] for dataset in selected if (key := (dataset, method, budget)) in self.costs]
        return float(np.mean(found)) if found else None

    def of_kind(self, kind: str) -> list[str]:
        """The sets of a kind."""
        return [dataset for dataset in self.sets if kind_of(dataset) == kind]

    def where(self, keep: Callable[[Row], bool]) -> Table:
        """The table of some of its rows."""
        return Table([row for row in self.rows if keep(row)], self.region, self.costs)


def summary(table: Table) -> list[dict[str, Any]]:
    """What summary.json holds: a row for each set, method and budget."""
    found = []
    for (dataset, method, budget), rows in table.cells.items():
        first = next(iter(rows.values()))
        score = table.score(dataset, method, budget)
        assert score is not None  # there are rows
        means = {name: float(np.mean([row[name] for row in rows.values()])) for name in ("tokens", "coverage")}
        entry = {"dataset": dataset, "allocator": first["allocator"], "relevance": first["relevance"]}
        entry |= {"budget": budget, "metric": metric_of(dataset), "score": score["value"]}
        entry |= {"low": score["low"], "high": score["high"], "n": int(score["n"])} | means
        if all("found" in row for row in rows.values()):
            entry["found"] = float(np.mean([row["found"] for row in rows.values()]))
        found.append(entry | {"ms": table.middle("ms", method, budget, [dataset])})
    return found
