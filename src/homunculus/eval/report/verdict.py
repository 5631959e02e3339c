"""Which variants earn their complexity, by rules that were written down before anything was measured.

Points are hundredths of a score. Differences are taken on the same questions, each set of a kind counting alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from homunculus.eval.metrics import Figure
from homunculus.eval.report.table import KINDS, Table

MAIN = 273
SIMPLE = "grid/query"
OURS = "foveated/query"
BASELINES = ("uniform/query", "random/query", "grid/query")
RIVALS = ("foveated/saliency", "pyramid-pruning")  # driven by what stands out rather than by the question
DIGITS = 9  # of what is held against a bound: 2 points are not less than 2 because of rounding


class Finding(NamedTuple):
    """What a rule says, and the figures that it says it by."""

    rule: str
    verdict: str
    figures: str


def decided(table: Table, budget: int = MAIN) -> list[Finding]:
    """All rules that the results have the rows for."""
    found = [_first(table, budget), _second(table, budget), _third(table, budget), _rival(table, budget)]
    return [*(each for each in found if each), *_worth(table, budget), *_closing(table, budget)]


def points(figure: Figure | None) -> str:
    """A difference in points, with its interval."""
    if figure is None:
        return "not measured"
    value, low, high = (100 * figure[name] for name in ("value", "low", "high"))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f}, p {figure['p']:.3f})"


def _gain(table: Table, sets: Sequence[str], method: str, other: str, budget: int) -> Figure | None:
    figure = table.against(sets, (method, budget), (other, budget))
    return figure and figure | {"value": round(figure["value"], DIGITS)}


def _faster(table: Table, method: str, other: str, budget: int) -> float:
    """How many times as fast, on the sets that both were asked."""
    sets = [dataset for dataset in table.sets if all(table.ms(each, budget, [dataset]) for each in (method, other))]
    mine, theirs = table.ms(method, budget, sets), table.ms(other, budget, sets)
    return round(theirs / mine, DIGITS) if mine and theirs else 0.0


def _by_kind(table: Table, method: str, other: str, budget: int) -> dict[str, Figure]:
    found = {kind: _gain(table, table.of_kind(kind), method, other, budget) for kind in KINDS}
    return {kind: figure for kind, figure in found.items() if figure}


def _shown(gains: dict[str, Figure]) -> str:
    return "; ".join(f"{kind} {points(figure)}" for kind, figure in gains.items())


def _first(table: Table, budget: int) -> Finding | None:
    """`pyramid` or `logpolar` over `grid` by 3 points on one set, or twice as fast at a loss below 2."""
    best: tuple[float, str] | None = None
    quick, details = False, []
    for method in ("pyramid/query", "logpolar/query"):
        for dataset in table.sets:
            gain = _gain(table, [dataset], method, SIMPLE, budget)
            if gain and (best is None or gain["value"] > best[0]):
                best = gain["value"], f"{method} on {dataset}: {points(gain)}"
        overall, times = _gain(table, table.sets, method, SIMPLE, budget), _faster(table, method, SIMPLE, budget)
        if overall:
            quick |= times >= 2 and overall["value"] > -0.02
            details.append(f"{method} on all sets: {points(overall)}, {times:.2f}x as fast")
    if best is None:
        return None
    passed = best[0] >= 0.03 or quick
    return Finding("Tier 1: `pyramid` or `logpolar` over `grid` by 3 points on a set, or 2x at < 2 points loss",
                   "passed" if passed else "failed", "; ".join([best[1], *details]))  # fmt: skip


def _second(table: Table, budget: int) -> Finding | None:
    """`foveated` over `grid` by 5 on documents and 3 on photos, or 3x at a loss below 1."""
    gains = _by_kind(table, OURS, SIMPLE, budget)
    if not gains:
        return None
    bounds = {"documents": 0.05, "photos": 0.03}
    enough = [gains[kind]["value"] >= least for kind, least in bounds.items() if kind in gains]
    overall, times = _gain(table, table.sets, OURS, SIMPLE, budget), _faster(table, OURS, SIMPLE, budget)
    quick = bool(overall and overall["value"] > -0.01 and times >= 3)
    verdict = "failed" if not all(enough) else "passed" if len(enough) == len(bounds) else "open"
    return Finding("Tier 2: `foveated` over `grid` by 5 points on documents and 3 on photos, or 3x at < 1 point loss",
                   "passed" if quick else verdict, f"{_shown(gains)}; {times:.2f}x as fast")  # fmt: skip


def _third(table: Table, budget: int) -> Finding | None:
    """`foveated` over all baselines by 7, 5 and 5 points, and twice as fast."""
    details, passed, whole = [], True, True
    for kind, least in zip(KINDS, (0.07, 0.05, 0.05), strict=True):
        sets = table.of_kind(kind)
        gains = [(other, gain) for other in BASELINES if (gain := _gain(table, sets, OURS, other, budget))]
        whole &= len(gains) == len(BASELINES)
        if gains:
            other, gain = min(gains, key=lambda pair: pair[1]["value"])
            details.append(f"{kind}: over {other} {points(gain)}")
            passed &= gain["value"] >= least
    quick = min(filter(None, (_faster(table, OURS, other, budget) for other in BASELINES)), default=0.0)
    details.append(f"{quick:.2f}x as fast as the fastest of them")
    verdict = "failed" if not passed or quick < 2 else "passed" if whole else "open"
    rule = (
        "Tier 3: `foveated` over all baselines by 7, 5 and 5 points on documents, photos and text in the wild, and 2x"
    )
    return Finding(rule, verdict, "; ".join(details)) if details[:-1] else None


def _rival(table: Table, budget: int) -> Finding | None:
    """`foveated` by the question over the best rival that goes by what stands out."""
    gains = [(rival, gain) for rival in RIVALS if (gain := _gain(table, table.sets, OURS, rival, budget))]
    if not gains:
        return None
    rival, gain = min(gains, key=lambda pair: pair[1]["value"])
    value = gain["value"]
    verdict = "over-engineered" if value < 0.02 else "research" if value <= 0.05 else "justified"
    rule = "`foveated` over the saliency-driven rival: < 2 points over-engineered, 2 to 5 research, > 5 justified"
    return Finding(rule, verdict, f"over {rival}, all sets: {points(gain)}")


def _worth(table: Table, budget: int) -> Iterator[Finding]:
    """Every other variant: 3 points over `grid` on a kind of set, or twice as fast."""
    for method in table.methods:
        plain = ":" not in method and method.endswith("/query")
        if not plain or method in (SIMPLE, *BASELINES):
            continue
        gains, name = _by_kind(table, method, SIMPLE, budget), method.removesuffix("/query")
        counted = [figure["value"] for kind, figure in gains.items() if name != "atlas" or kind == "documents"]
        if not counted:
            continue
        times, least = _faster(table, method, SIMPLE, budget), 0.05 if name == "atlas" else 0.03
        worth = max(counted) >= least or (times >= 2 and name != "atlas")
        verdict_text = (
            "worth it" if worth else "not worth its complexity" + ("; the segmenter goes" if name == "atlas" else "")
        )
        rule = f"`{name}` over `grid`: {100 * least:.0f} points on " + (
            "documents" if name == "atlas" else "a kind of set or 2x"
        )
        yield Finding(rule, verdict_text, f"{_shown(gains)}; {times:.2f}x as fast")


def _closing(table: Table, budget: int) -> Iterator[Finding]:
    """All within 2 points: the simplest; more than 5 points or 3x at a loss below 2: go deep there."""
    ours = [method for method in table.methods if ":" not in method and method.endswith("/query")]
    asked = table.means(table.sets, [(method, budget) for method in ours])
    scores = {method: mean for (method, _), mean in asked.items()}
    if len(scores) < 2 or SIMPLE not in scores:
        return
    best = max(scores, key=lambda method: scores[method])
    spread = max(scores.values()) - min(
        value for method, value in scores.items() if method not in BASELINES or method == SIMPLE
    )
    ahead = round(scores[best] - scores[SIMPLE], DIGITS)
    times = {method: _faster(table, method, SIMPLE, budget) for method in scores}
    fair = [method for method in scores if round(scores[SIMPLE] - scores[method], DIGITS) < 0.02]
    fastest = max(fair, key=lambda method: times[method])
    if ahead > 0.05:
        verdict = f"go deep on `{best}`"
    elif times[fastest] > 3:
        verdict = f"go deep on `{fastest}`"
    elif round(spread, DIGITS) <= 0.02:
        verdict = f"ship the simplest, `{SIMPLE}`"
    else:
        verdict = f"`{best}` leads by no more than 5 points: no reason to go deep on it"
    shown = f"{best} {100 * scores[best]:.1f}, {SIMPLE} {100 * scores[SIMPLE]:.1f} over all sets"
    yield Finding("All within 2 points: ship the simplest; > 5 points or > 3x: go deep there", verdict,
                  f"{shown}; {fastest} {times[fastest]:.2f}x as fast as {SIMPLE}")  # fmt: skip
