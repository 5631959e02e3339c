"""The verdict on results that were made to deserve it, and figures recomputed the plain way."""

import json
import lzma
import re
import time
from pathlib import Path

import numpy as np
import pytest

from homunculus import InputError
from homunculus.eval.data import Item
from homunculus.eval.packed import pack, unpack
from homunculus.eval.report import write
from homunculus.eval.report.hypotheses import status, weighed
from homunculus.eval.report.table import Table, kind_of, summary
from homunculus.eval.report.verdict import decided
from homunculus.eval.runner import ModelSpec, dumped, key_in, read
from readers import tiny_reader

SETS = {"docvqa": 40, "coco_vqa": 40, "icdar2015": 40}


def rows_of(chances: dict[str, float], sets=SETS, budget: int = 273, ms: float = 10.0, seed: int = 0, each: int = 3):
    """Rows in which a method is right as often as told, the same questions being hard for all."""
    lots, rows = np.random.default_rng(seed), []
    for dataset, pages in sets.items():
        hard = lots.random((pages, each))
        for method, chance in chances.items():
            allocator, _, relevance = method.partition("/")
            for page in range(pages):
                for q in range(each):
                    row = {"dataset": dataset, "qid": f"{page}-{q}", "image": f"{page}.png", "question": "What is it?"}
                    row |= {"answers": ["x"], "allocator": allocator, "relevance": relevance, "budget": budget}
                    row |= {"region": "", "looked": f"{page}-{q}", "prediction": "x", "confidence": 0.5}
                    row |= {"score": float(hard[page, q] < chance), "tokens": budget, "coverage": 1.0, "ms": ms}
                    row |= {"fixation": [1.0, 2.5]}
                    rows.append(row)
    return rows


def verdicts(rows) -> dict[str, str]:
    return {finding.rule: finding.verdict for finding in decided(Table(rows))}


def found(verdicts: dict[str, str], begin: str) -> str:
    return next(verdict for rule, verdict in verdicts.items() if rule.startswith(begin))


BASE = {"uniform/query": 0.2, "random/query": 0.1, "grid/query": 0.4}


def test_a_method_that_is_better_passes_and_one_that_is_not_does_not():
    said = verdicts(rows_of(BASE | {"foveated/query": 0.6, "pyramid/query": 0.5, "dag/query": 0.41}))
    assert found(said, "Tier 1") == "passed" and found(said, "Tier 2") == "passed"
    assert found(said, "Tier 3") == "failed"  # not twice as fast
    assert found(said, "`dag`") == "not worth its complexity" and found(said, "`pyramid`") == "worth it"
    assert found(said, "All within") == "go deep on `foveated/query`"
    fast = [
        row | {"ms": 4.0 if row["allocator"] == "foveated" else 10.0} for row in rows_of(BASE | {"foveated/query": 0.6})
    ]
    assert found(verdicts(fast), "Tier 3") == "passed"


def test_a_method_that_is_worse_is_told_so():
    said = verdicts(rows_of(BASE | {"foveated/query": 0.35, "logpolar/query": 0.3, "atlas/query": 0.43}))
    assert found(said, "Tier 1") == "failed" and found(said, "Tier 2") == "failed"
    assert found(said, "`atlas`") == "not worth its complexity; the segmenter goes"
    assert found(said, "`foveated` over `grid`") == "not worth its complexity"


def exactly(gains: dict[str, int], sets=SETS, ms: float = 10.0) -> list[dict]:
    """Rows of a hundred questions a set, 40 of which `grid` has right, and others so many more."""
    rows = rows_of({"grid/query": 0.0} | dict.fromkeys(gains, 0.0), dict.fromkeys(sets, 100), each=1)
    for row in rows:
        way = f"{row['allocator']}/{row['relevance']}" if row["relevance"] else row["allocator"]
        right = int(row["qid"].split("-")[0]) < 40 + gains.get(way, 0)
        row |= {"score": float(right), "ms": ms if way == "foveated/query" or way == "pyramid/query" else 10.0}
    return rows


LEADS = "`dag/query` leads by no more than 5 points: no reason to go deep on it"


@pytest.mark.parametrize(
    ("gains", "ms", "rule", "verdict"),
    [
        ({"pyramid/query": 3}, 10.0, "Tier 1", "passed"),
        ({"pyramid/query": -1}, 5.0, "Tier 1", "passed"),
        ({"pyramid/query": -2}, 5.0, "Tier 1", "failed"),  # a loss of 2 is not below 2
        ({"foveated/query": 5}, 10.0, "Tier 2", "passed"),
        ({"foveated/query": 0}, 10 / 3, "Tier 2", "passed"),
        ({"foveated/query": -1}, 10 / 3, "Tier 2", "failed"),
        ({"foveated/query": 7, "pyramid-pruning": 6}, 10.0, "`foveated` over the saliency", "over-engineered"),
        ({"foveated/query": 7, "pyramid-pruning": 5}, 10.0, "`foveated` over the saliency", "research"),
        ({"foveated/query": 7, "pyramid-pruning": 2}, 10.0, "`foveated` over the saliency", "research"),
        ({"foveated/query": 7, "pyramid-pruning": 1}, 10.0, "`foveated` over the saliency", "justified"),
        ({"atlas/query": 5}, 10.0, "`atlas`", "worth it"),
        ({"dag/query": 2}, 10.0, "All within", "ship the simplest, `grid/query`"),
        ({"dag/query": 5}, 10.0, "All within", LEADS),
        ({"dag/query": 6}, 10.0, "All within", "go deep on `dag/query`"),
        ({"dag/query": 4, "foveated/query": -1}, 3.0, "All within", "go deep on `foveated/query`"),
        ({"foveated/query": -2}, 3.0, "All within", "ship the simplest, `grid/query`"),
    ],
)
def test_bounds_are_those_of_the_rules(gains, ms, rule, verdict):
    assert found(verdicts(exactly(gains, ms=ms)), rule) == verdict


def test_what_was_not_measured_decides_nothing():
    assert not any("atlas" in rule for rule in verdicts(exactly({"atlas/query": 9}, ["coco_vqa"])) if "over" in rule)
    assert found(verdicts(exactly({"foveated/query": 9}, ["docvqa"])), "Tier 2") == "open"
    assert found(verdicts(exactly({"foveated/query": 4}, ["docvqa"])), "Tier 2") == "failed"
    assert found(verdicts(exactly({"foveated/query": 9}, ms=4.0)), "Tier 3") == "open"  # uniform and random are missing


def test_speed_is_compared_on_the_sets_that_both_were_asked():
    slow = [row | {"ms": 100.0} for row in exactly({}, ["funsd", "sroie"])]
    rows = exactly({"pyramid/query": 0}, ["docvqa"]) + slow
    tier = next(each for each in decided(Table(rows)) if "Tier 1" in each.rule)
    assert tier.verdict == "failed" and tier.figures.endswith("1.00x as fast")


@pytest.mark.parametrize(("rival", "verdict"), [(0.49, "over-engineered"), (0.465, "research"), (0.4, "justified")])
def test_the_rival_decides(rival, verdict):
    said = verdicts(
        rows_of(BASE | {"foveated/query": 0.5, "foveated/saliency": 0.2, "pyramid-pruning": rival}, each=20)
    )
    assert found(said, "`foveated` over the saliency") == verdict


def test_all_alike_ship_the_simplest():
    said = verdicts(rows_of({"grid/query": 0.4, "dag/query": 0.405, "foveated/query": 0.41}, each=10))
    assert found(said, "All within") == "ship the simplest, `grid/query`"


def test_expectations_are_confirmed_refuted_or_open():
    def told(chances, begin, **more):
        rows = rows_of(chances, **more) + rows_of({"uniform/query": 0.6}, budget=1536)
        return next(each.verdict for each in weighed(Table(rows)) if begin in each.rule)

    up = {"logpolar/query": 0.6, "grid/query": 0.4, "random/query": 0.2, "foveated/query": 0.6}
    assert told(up, "critical") == "confirmed"
    assert told(up | {"logpolar/query": 0.2}, "critical") == "refuted"
    assert told(up | {"logpolar/query": 0.4}, "critical") == "open"
    assert told(up, "docvqa: 273 tokens") == "confirmed"  # the same questions right as with all tokens
    assert told(up | {"foveated/query": 0.3}, "docvqa: 273 tokens") == "refuted"
    off = up | {"foveated:off=2/query": 0.59}
    assert told(off, "documents: a fixation", each=40) == "confirmed"
    assert told(off | {"foveated:off=2/query": 0.3}, "documents: a fixation") == "refuted"
    assert status(None) == "open"
    few = {"value": 0.02, "low": 0.01, "high": 0.03, "p": 0.12}  # an interval over few pages that differ
    assert status(few) == "open" and status(few | {"p": 0.01}) == "confirmed" and status(few, -0.02) == "confirmed"
    assert status({"value": -0.02, "low": -0.03, "high": -0.01, "p": 0.01}) == "refuted"


def test_how_far_pruning_goes_is_told_for_each_set():
    """273 of 1,536 tokens are less than a fifth; of 832 tokens 150 are the most that is."""
    rows = rows_of({"uniform/query": 0.5}, budget=1536, each=40)
    rows = [row | {"tokens": 832 if row["dataset"] == "coco_vqa" else 1536} for row in rows]
    for budget, chance in ((64, 0.1), (150, 0.2), (273, 0.5)):
        rows += rows_of({"foveated/query": chance}, budget=budget, each=40)
    told = {each.rule.split(":")[0]: each for each in weighed(Table(rows)) if "of all tokens can go" in each.rule}
    assert told["docvqa"].verdict == "confirmed" and told["docvqa"].figures.startswith("273 of 1536 tokens")
    assert told["coco_vqa"].verdict == "refuted" and told["coco_vqa"].figures.startswith("150 of 832 tokens")


def test_speed_is_that_of_costs_where_they_were_measured():
    rows = exactly({"pyramid/query": -1}, ["docvqa", "sroie"], ms=5.0)  # twice as fast, when others ran beside
    costs = {("docvqa", "pyramid/query", 273): 8.0, ("docvqa", "grid/query", 273): 8.0}
    tier = next(each for each in decided(Table(rows, costs=costs)) if "Tier 1" in each.rule)
    assert tier.verdict == "failed" and tier.figures.endswith("1.00x as fast")
    assert found(verdicts(rows), "Tier 1") == "passed"
    table = Table(rows, costs=costs)
    assert table.ms("pyramid/query", 273) == 8.0 and table.ms("pyramid/query", 273, ["sroie"]) is None
    assert table.where(lambda row: row["dataset"] == "docvqa").ms("grid/query", 273) == 8.0


def test_a_report_says_how_costs_were_measured(tmp_path):
    (tmp_path / "results.jsonl").write_text("".join(map(dumped, rows_of(BASE | {"foveated/query": 0.5}))))
    assert "as this run was answered" in write(tmp_path).read_text()
    line = {"dataset": "docvqa", "method": "grid/query", "budget": 273, "n": 4, "device": "a machine", "commit": "abc"}
    lines = [line | {"ms": ms} for ms in (12.0, 99.0, 12.5)]
    (tmp_path / "costs.jsonl").write_text("".join(map(dumped, lines)))
    text = write(tmp_path).read_text()
    assert (
        "4 questions of docvqa at once, on a machine, commit abc" in text
        and "| grid/query | 273 | 273 | 12.5 |" in text
    )
    assert "| foveated/query | 273 | 273 |" not in text  # it was not timed
    assert "weights included" not in text
    (tmp_path / "costs.jsonl").write_text("".join(dumped(line | {"MB": 1234}) for line in lines))
    assert re.search(r"\| grid/query \| 273 \| 273 \| 12.5 \| [\d.]+ \| 1,234 \|", write(tmp_path).read_text())


def test_figures_are_those_of_the_rows():
    rows = rows_of(BASE | {"foveated/query": 0.6}, {"docvqa": 7, "daquar": 5})
    table = Table(rows)
    for entry in summary(table):
        mine = [r for r in rows if r["dataset"] == entry["dataset"] and r["allocator"] == entry["allocator"]]
        assert entry["score"] == pytest.approx(np.mean([r["score"] for r in mine]))
        assert entry["low"] <= entry["score"] <= entry["high"] and entry["n"] == len(mine)
    key = {"dataset", "allocator"}
    turned = {tuple(entry[name] for name in key): entry for entry in summary(Table(rows[::-1]))}
    for entry in summary(table):  # whatever the order in which answers came
        assert entry == pytest.approx(turned[tuple(entry[name] for name in key)])
    gain = table.against(["docvqa", "daquar"], ("foveated/query", 273), ("grid/query", 273))
    by_set = []
    for name in ("docvqa", "daquar"):
        one, other = (
            {r["qid"]: r["score"] for r in rows if r["dataset"] == name and r["allocator"] == a}
            for a in ("foveated", "grid")
        )
        by_set.append(np.mean([one[q] - other[q] for q in one]))
    assert gain["value"] == pytest.approx(np.mean(by_set)) and gain["low"] <= gain["value"] <= gain["high"]
    assert table.against(["docvqa"], ("foveated/query", 273), ("nothing", 273)) is None
    assert [kind_of(name) for name in ("docvqa", "daquar", "textvqa", "mine")] == [
        "documents", "photos", "text in the wild", "documents"
    ]  # fmt: skip


def test_a_report_of_many_rows_is_written_in_seconds(tmp_path):
    methods = BASE | {
        "foveated/query": 0.6,
        "foveated/saliency": 0.3,
        "pyramid/query": 0.42,
        "visionzip": 0.5,
        "fastv": 0.1,
    }
    rows = [row for budget in (64, 273) for row in rows_of(methods, budget=budget, seed=budget, each=4)]
    further = [
        row | {"region": region}
        for row in rows
        if row["allocator"] == "foveated"
        for region in ("secondary", "peripheral")
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows + further))
    begun = time.perf_counter()
    text = write(tmp_path).read_text()
    assert time.perf_counter() - begun < 40
    for part in ("## Verdict", "## Expectations", "### docvqa", "## Regions", "## Broad", "## Costs", "not worth"):
        assert part in text
    with pytest.raises(InputError, match="no results"):
        write(tmp_path / "nowhere")
    (tmp_path / "results.jsonl").write_text("".join(map(dumped, further)))
    with pytest.raises(InputError, match="no results"):
        write(tmp_path)


def test_the_report_of_this_repository_has_the_figures_of_the_scores_that_are_kept():
    """Every score of docs/report, from results/report.jsonl.xz by plain means."""
    root = Path(__file__).parents[1]
    with lzma.open(root / "results" / "report.jsonl.xz", "rt", encoding="utf-8") as file:
        _, *groups = map(json.loads, file)
    scores = {
        (each["dataset"], each["allocator"], each["relevance"], each["budget"]): each["score"]
        for each in groups
        if not each["region"]
    }
    told = json.loads((root / "docs" / "report" / "summary.json").read_text())["rows"]
    report = (root / "docs" / "report" / "report.md").read_text()
    assert len(told) == len(scores) > 700 and f"{sum(len(each['score']) for each in groups):,} answers" in report
    tables = {part.split("\n")[0]: part.replace("*", "") for part in report.split("### ")[1:]}
    for entry in told:
        mine = scores[entry["dataset"], entry["allocator"], entry["relevance"], entry["budget"]]
        assert entry["n"] == len(mine) and entry["score"] == pytest.approx(np.mean(mine), abs=1e-6)
        if ":" not in entry["allocator"] and entry["relevance"] != "oracle":
            name = f"{entry['allocator']}/{entry['relevance']}".removesuffix("/")
            line = next(line for line in tables[entry["dataset"]].splitlines() if line.startswith(f"| {name} | "))
            assert f" {entry['score']:.3f} (" in line


def test_uniform_leads_every_table():
    assert Table(rows_of({"foveated/query": 0.5, "fastv": 0.1, "uniform/query": 0.2})).methods[0] == "uniform/query"


def test_methods_that_were_asked_other_questions_are_compared_on_those_of_both():
    """A method that was only asked the easy ones does not win by that."""
    rows = rows_of({"grid/query": 0.6, "foveated/query": 0.6, "atlas/query": 0.55}, {"docvqa": 40})
    easy = {(row["dataset"], row["qid"]) for row in rows if row["allocator"] == "grid" and row["score"]}
    rows = [row for row in rows if row["allocator"] != "atlas" or (row["dataset"], row["qid"]) in easy]
    table, ways = Table(rows), [(name, 273) for name in ("grid/query", "foveated/query", "atlas/query", "dag/query")]
    assert table.mean(["docvqa"], "atlas/query", 273) > table.mean(["docvqa"], "grid/query", 273)
    means = table.means(["docvqa"], ways)
    assert list(means) == ways[:3] and means[ways[0]] == means[ways[1]] == 1 > means[ways[2]]
    assert table.means(["docvqa"], ways[:2])[ways[0]] == pytest.approx(table.mean(["docvqa"], "grid/query", 273))
    assert table.means(["docvqa", "sroie"], ways) == {} == table.means([], ways)


def test_a_report_needs_no_images_and_asks_no_hub(tmp_path, monkeypatch):
    """The questions are there, their images are not; and a set of the hub is not fetched for a picture."""
    place = tmp_path / "mine" / "val"
    place.mkdir(parents=True)
    (place / "questions.jsonl").write_text('{"image": "0.png", "question": "a?", "answers": ["x"], "qid": "0-0"}\n')
    rows = rows_of({"foveated/query": 0.0, "grid/query": 1.0}, {"mine": 1}, each=1)
    (tmp_path / "results.jsonl").write_text("".join(map(dumped, rows)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("homunculus.eval.data.from_hub", lambda *_: pytest.fail("the hub was asked"))
    for source in (str(tmp_path / "mine"), "docvqa"):
        config = {"data": [source], "split": "val", "fingerprint": ModelSpec().fingerprint()}
        (tmp_path / "run.json").write_text(json.dumps(config))
        text = write(tmp_path).read_text()
        assert "## Costs" in text and "Worst failures" not in text


def test_the_gallery_shows_looks_of_the_reader_that_answered_and_of_no_other(tmp_path, page):
    place = tmp_path / "mine" / "val"
    place.mkdir(parents=True)
    page.save(place / "0.png")
    row = {"image": "0.png", "question": "What is entry 3?", "answers": ["x"], "qid": "0-0"}
    row |= {"answer_boxes": [[400, 220, 500, 240]]}
    (place / "questions.jsonl").write_text(json.dumps(row) + "\n")
    rows = rows_of({"foveated/query": 0.0, "grid/query": 1.0}, {"mine": 1}, each=1)
    (tmp_path / "results.jsonl").write_text("".join(map(dumped, rows)))
    weights, _ = tiny_reader(tmp_path)
    config = {"data": [str(tmp_path / "mine")], "split": "val", "spec": {"weights": str(weights)}}
    shipped, own = ModelSpec().fingerprint(), ModelSpec(weights=str(weights)).fingerprint()
    for fingerprint, there in ((shipped, False), ({"model": "a VLM"}, False), (own, True)):
        (tmp_path / "run.json").write_text(json.dumps(config | {"fingerprint": fingerprint}))
        text = write(tmp_path).read_text()
        assert ("Worst failures" in text) == there == (tmp_path / "gallery.png").is_file()
        assert ("the shipped reader" in text) == (fingerprint is shipped)
    assert "| 1 | mine | 0-0 | 50% | grid/query/273 |" in text


def test_how_often_the_answer_was_read_is_told_where_it_is_known(tmp_path):
    rows = rows_of({"foveated/query": 0.5, "grid/query": 0.4}, {"docvqa": 4})
    known = [row | {"found": int(row["qid"][0]) < 3} for row in rows if row["allocator"] == "foveated"]
    rest = [row for row in rows if row["allocator"] == "grid"]
    (tmp_path / "results.jsonl").write_text("".join(map(dumped, known + rest)))
    text = write(tmp_path).read_text()
    assert "| foveated/query | 75.0% |" in text and "| grid/query | 75" not in text
    entries = {entry["allocator"]: entry for entry in summary(Table(known + rest))}
    assert entries["foveated"]["found"] == 0.75 and "found" not in entries["grid"]
    (tmp_path / "results.jsonl").write_text("".join(map(dumped, rest)))
    assert "Answers among the lines" not in write(tmp_path).read_text()


def test_scores_go_through_a_file_without_the_data(tmp_path):
    rows = rows_of({"foveated/query": 0.5, "grid/query": 0.4, "visionzip": 0.3})
    rows = [row | ({"found": row["qid"][0] == "1"} if row["allocator"] == "grid" else {}) for row in rows]
    items = {
        (row["dataset"], row["qid"]): Item(
            row["dataset"], row["qid"], Path(row["image"]), row["question"], tuple(row["answers"])
        )
        for row in rows
    }
    folder, packed, back = tmp_path / "results", tmp_path / "scores.jsonl.xz", tmp_path / "back"
    folder.mkdir()
    (folder / "results.jsonl").write_text("".join(map(dumped, rows)))
    (folder / "run.json").write_text(json.dumps({"fingerprint": {"reader": {}}, "data": ["/somewhere/val"]}))
    pack(folder, packed)
    told = lzma.decompress(packed.read_bytes()).decode()
    assert "/somewhere" not in told and not any(row["question"] in told for row in rows)
    assert unpack(packed, list(items.values()), back) == len(rows)
    kept = {key_in(row): row for row in read(back / "results.jsonl")}
    assert kept == {key_in(row): row | {"prediction": "", "fixation": [1, 2]} for row in rows}
    with pytest.raises(InputError, match="has no question"):
        unpack(packed, list(items.values())[1:], back)
