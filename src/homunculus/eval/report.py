"""report.md, summary.json and plots from results.jsonl alone: the verdict first, failures as plain as successes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from homunculus.allocators.wording import Wording
from homunculus.errors import ImageError, InputError
from homunculus.eval import costs, plots
from homunculus.eval.backends import Row, look_at
from homunculus.eval.data import collect
from homunculus.eval.hypotheses import weighed
from homunculus.eval.metrics import metric_of
from homunculus.eval.regions import PERIPHERAL, SECONDARY
from homunculus.eval.runner import ModelSpec, read, run_config
from homunculus.eval.settings import Setting
from homunculus.eval.table import KINDS, Table, summary
from homunculus.eval.verdict import MAIN, OURS, SIMPLE, Finding, decided, points
from homunculus.reader import load_page_reader
from homunculus.reader.session import PageReader
from homunculus.runtime.files import replacing

WORST = 8  # looks of the gallery
LIKE_PEOPLE = 0.85  # share of the variance of people's gaze that was hoped for


def write(
    folder: Path, title: str = "Results", pictures: bool = True, data: Path | None = None, note: str = ""
) -> Path:
    """Write the report of a folder of results; report.md, with summary.json and plots beside it.

    `data` is where the sets are now, if not where they were; `note` stands below the title.
    """
    table = Table(read(folder / "results.jsonl"), costs=costs.medians(folder / costs.COSTS))
    if not table.cells:
        raise InputError(f"{folder} has no results yet: there is nothing to report")
    config = run_config(folder) | ({"data": [str(data)]} if data else {})
    with replacing(folder / "summary.json") as unfinished:
        unfinished.write_text(json.dumps({"rows": summary(table)}, indent=1) + "\n")
    parts = [f"# {title}\n", *([f"{note}\n"] if note else ()), *_parts(folder, table, config, pictures)]
    with replacing(folder / "report.md") as unfinished:
        unfinished.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return folder / "report.md"


def _parts(folder: Path, table: Table, config: dict[str, Any], pictures: bool) -> Iterator[str]:
    budget = MAIN if MAIN in table.budgets else table.budgets[len(table.budgets) // 2]
    yield _head(table, config)
    rules = "By rules that were fixed beforehand; how fast, by the costs below"
    yield _findings("Verdict", rules, decided(table, budget))
    yield _findings("Expectations", "What was expected, and what came", weighed(table, budget), "expected")
    yield from _scores(folder, table)
    yield _against(table, budget)
    yield from _found(table, budget)
    yield from _variants(table, budget)
    yield from _regions(table, budget)
    yield from _wording(table, budget)
    yield from _gaze(folder)
    yield _costs(folder, table)
    if pictures:
        yield from _gallery(folder, table, config, budget)


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)) + "\n"


def _head(table: Table, config: dict[str, Any]) -> str:
    questions = {
        dataset: len({row["qid"] for row in table.rows if row["dataset"] == dataset}) for dataset in table.sets
    }
    listed = ", ".join(f"{name} {n} ({metric_of(name)})" for name, n in questions.items())
    fingerprint = config.get("fingerprint", {})
    reader = "the shipped reader" if _is_shipped(config) else "a reader with other weights than those shipped now"
    model = reader if "reader" in fingerprint else str(fingerprint.get("model", "an unknown model"))
    place = config.get("machine", {})
    on = f" on {place.get('device')}, torch {place.get('torch')}, commit {place.get('commit')}" if place else ""
    on = on.removesuffix(", commit unknown")
    return (
        f"{len(table.rows):,} answers by {model}{on}. Questions: {listed}. Scores are means from 0 to 1, in brackets "
        "their 95 % interval over resampled pages; differences are in points (hundredths), on the same questions. A "
        "method is an allocator with the relevance that it goes by, or a published method by its name. `tokens` of "
        "methods that drop tokens between layers is the mean over layers.\n"
    )


def _is_shipped(config: dict[str, Any]) -> bool:
    """Whether the reader that the package carries gave the answers."""
    return config.get("fingerprint", {}).get("reader") == ModelSpec().fingerprint()["reader"]


def _findings(title: str, text: str, found: Sequence[Finding], head: str = "rule") -> str:
    lines = [[each.rule, f"**{each.verdict}**", each.figures] for each in found]
    body = grid([head, "verdict", "figures"], lines) if lines else "The results have no rows for any of these.\n"
    return f"## {title}\n\n{text}.\n\n{body}"


def _shown(figure: dict[str, float] | None, best: bool = False) -> str:
    """A score with its interval; the best in bold."""
    if not figure:
        return ""
    text = f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"
    return f"**{text}**" if best else text


def _plain(table: Table) -> list[str]:
    """Methods without options, so without ablations."""
    return [method for method in table.methods if ":" not in method and not method.endswith("/oracle")]


def _scores(folder: Path, table: Table) -> Iterator[str]:
    plots.pareto(table, _plain(table), folder / "pareto.png")
    yield "## Accuracy against tokens\n\n![Score against tokens, a panel a set](pareto.png)\n"
    for dataset in table.sets:
        budgets = [b for b in table.budgets if any(table.of(dataset, method, b) for method in _plain(table))]
        found = {method: [table.score(dataset, method, b) for b in budgets] for method in _plain(table)}
        found = {method: scores for method, scores in found.items() if any(scores)}
        best = [max(each["value"] for each in column if each) for column in zip(*found.values(), strict=True)]
        lines = []
        for method, scores in found.items():
            tops = [each is not None and each["value"] == top for each, top in zip(scores, best, strict=True)]
            lines.append([method, *map(_shown, scores, tops)])
        counts = {len(rows) for (name, _, _), rows in table.cells.items() if name == dataset}
        count = f"{max(counts)}" if len(counts) == 1 else f"from {min(counts)} to {max(counts)}"
        head = ["method", *(f"{budget} tokens" for budget in budgets)]
        yield f"### {dataset}\n\n{metric_of(dataset)}, n {count}.\n\n{grid(head, lines)}"


def _against(table: Table, budget: int) -> str:
    lines = []
    for method in _plain(table):
        if method == OURS:
            continue
        gains = [table.against(table.of_kind(kind), (OURS, budget), (method, budget)) for kind in KINDS]
        if any(gains):
            lines.append([method, *(points(gain) if gain else "" for gain in gains)])
    text = f"`{OURS}` less each of the others at {budget} tokens, in points; below 0 the other one is better."
    return f"## Against each other\n\n{text}\n\n" + grid(["other", *KINDS], lines)


def _found(table: Table, budget: int) -> Iterator[str]:
    """How often the answer could be read at all."""
    lines = []
    for method in _plain(table):
        rows = [list(table.of(name, method, budget).values()) for name in table.sets]
        shares = [f"{np.mean([row['found'] for row in some]):.1%}" if _read(some) else "" for some in rows]
        if any(shares):
            lines.append([method, *shares])
    if lines:
        text = f"Share of questions whose answer stands in the lines that were read, at {budget} tokens."
        yield f"## Answers among the lines\n\n{text}\n\n" + grid(["method", *table.sets], lines)


def _read(rows: Sequence[Row]) -> bool:
    return bool(rows) and all("found" in row for row in rows)


def _variants(table: Table, budget: int) -> Iterator[str]:
    """Ablations: methods with options, and other relevances of `foveated`."""
    names = [method for method in table.methods if ":" in method or method.endswith("/oracle")]
    names += [m for m in table.methods if m.startswith("foveated/") and m != OURS and m not in names]
    if not names:
        return
    lines = []
    for method in [OURS, *names, "pyramid/query", "stratified/query"]:
        shown = [table.mean(table.of_kind(kind), method, budget) for kind in KINDS]
        base = "stratified/query" if method.startswith("stratified:") else OURS
        gains = [table.against(table.of_kind(kind), (method, budget), (base, budget)) for kind in KINDS]
        cells = [
            f"{100 * value:.1f}" + (f", {points(gain)}" if gain and method not in (OURS, base) else "")
            if value is not None
            else (points(gain) + " on those that have it" if gain else "")
            for value, gain in zip(shown, gains, strict=True)
        ]
        lines.append([method, *cells])
    text = (
        f"At {budget} tokens: mean score in points, and the difference to `{OURS}` (to `stratified/query` for strata)."
    )
    yield f"## Ablations\n\n{text}\n\n" + grid(["variant", *KINDS], lines)


def _regions(table: Table, budget: int) -> Iterator[str]:
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
                values = [_mean(own.values()), _mean(second.values()), _mean(third.values())]
                again = f"{sum(both) / len(both):.3f}" if both else ""
                cells.append(" / ".join(values) + f" / {again}")
            lines.append([f"{method}, {at}", *cells])
    text = (
        "Score on the place that the look was for (target), on the nearest other question of the page (secondary) and "
        "on the farthest (peripheral), both with the same look; and on these when the page is looked at again for "
        "them, as the second question of a conversation can."
    )
    yield f"## Regions and second questions\n\n{text}\n\n" + grid(
        ["method, tokens", *(f"{name}: target / secondary / peripheral / looked again" for name in near.sets)], lines
    )


def _mean(rows: Any) -> str:
    scores = [row["score"] for row in rows]
    return f"{sum(scores) / len(scores):.3f}" if scores else ""


def _wording(table: Table, budget: int) -> Iterator[str]:
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
        yield f"## Broad and specific questions\n\n{text}\n\n" + grid(
            ["questions", *(f"over {r}" for r in rivals)], lines
        )


def _gaze(folder: Path) -> Iterator[str]:
    path = folder / "gaze.json"
    if not path.is_file():
        return
    rows = json.loads(path.read_text())["rows"]
    names = ("nss", "auc", "sauc", "cc", "kl")
    lines = [[row["set"], row["relevance"], str(row["n"]), *(_number(row.get(name)) for name in names)] for row in rows]
    text = (
        "Relevance as a map against where people looked: NSS, AUC (Judd), shuffled AUC, correlation, KL divergence "
        "(lower is better). Published for free viewing on OSIE: centre prior NSS 0.80, AUC 0.72; FastGaze NSS 1.79, "
        "AUC 0.84."
    )
    shares = {row["set"]: row["cc"] ** 2 for row in rows if row["relevance"] == "learned"}
    if shares:
        told = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        verdict = "confirmed" if min(shares.values()) > LIKE_PEOPLE else "refuted"
        text += (
            f" Supervised importance against human labels (r² of `learned` above {LIKE_PEOPLE}): **{verdict}**, {told}."
        )
    yield f"## Agreement with human gaze\n\n{text}\n\n" + grid(
        ["set", "relevance", "n", "NSS", "AUC", "sAUC", "CC", "KL"], lines
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _costs(folder: Path, table: Table) -> str:
    plots.costs(table, _plain(table), folder / "costs.png")
    path, lines = folder / costs.COSTS, []
    taken = costs.medians(path, "MB")
    for method in _plain(table):
        for budget in table.budgets:
            ms = table.ms(method, budget)
            if ms is not None:
                tokens, scores = table.middle("tokens", method, budget), table.mean(table.sets, method, budget)
                each = f"{1000 * scores / tokens:.2f}" if scores is not None and tokens else ""
                most = max(taken.get((name, method, budget), 0) for name in table.sets)
                memory = [f"{most:,.0f}"] if taken else []
                lines.append([method, str(budget), f"{tokens:.0f}", f"{ms:.1f}", each, *memory])
    what = (
        "Median milliseconds a question until its answer begins, measured in one process with the machine to itself, "
        f"{costs.conditions(path)}: looking, reading lines or encoding, and the first pass of the language model"
        if table.costs
        else "Median milliseconds a question, as this run was answered, in batches and perhaps by several processes: "
        "looking, reading lines or encoding, and the language model"
    )
    text = (
        f"{what}. Finding lines, pyramid and scout, the same for all, are not in it. Score per token is the mean over "
        "all sets, per thousand." + " Memory is the most that was taken, weights included." * bool(taken)
    )
    head = ["method", "budget", "tokens", "ms", "score per 1,000 tokens", *(["MB"] if taken else ())]
    return f"## Costs\n\n{text}\n\n![Score against time, a panel a set](costs.png)\n\n" + grid(head, lines)


def _gallery(folder: Path, table: Table, config: dict[str, Any], budget: int) -> Iterator[str]:
    """The worst failures: questions that another method answered and `foveated` did not."""
    folders = [source for source in config.get("data", []) if Path(source).exists()]  # nothing is fetched from the hub
    reader = _reader_of(config) if folders else None
    if reader is None:
        return
    try:
        found = collect(folders, config.get("split", "val"), only=table.sets)
    except InputError:
        return  # the data are elsewhere: all else comes from the results alone
    by_name = {(item.dataset, item.qid): item for item in found}
    failed = [
        (row["confidence"], by_name[dataset, qid])
        for dataset in table.sets
        for qid, row in table.of(dataset, OURS, budget).items()
        if row["score"] == 0 and (dataset, qid) in by_name and _answered(table, dataset, qid)
    ]
    setting = Setting("foveated", "query", budget)
    looks, lines = [], []
    for sure, item in sorted(failed, key=lambda entry: -entry[0])[:WORST]:
        try:
            page = reader.open(item.image)
        except ImageError:
            continue  # it is elsewhere too
        boxes = [page.box_upright(box) for box in item.boxes]
        looks.append(plots.look(look_at(page, [item], setting)[0], boxes))
        others = ", ".join(_answered(table, item.dataset, item.qid)[:4])
        lines.append([str(len(looks)), item.dataset, item.qid, f"{sure:.0%}", others])
    if not looks:
        return
    plots.gallery(looks, folder / "gallery.png")
    text = (
        "Where it looked when it was surest and wrong, and others were right, in rows from the left. Colours are "
        "levels (red is the finest), the cross is the fixation, the black frame the answer's place where it is known."
    )
    table_ = grid(["", "set", "question", "sure", "right were, among others"], lines)
    yield f"## Worst failures\n\n{text}\n\n![Cells of the worst failures](gallery.png)\n\n{table_}"


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
