"""Answers of the harness: every question in every setting, as the reader gives them, and the report of a run."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from harness import SETTINGS, batches, timeless
from homunculus import InputError
from homunculus.eval.backends import EvalSample, look_at
from homunculus.eval.data import collect
from homunculus.eval.runner import ModelSpec, key_in, read, run
from homunculus.eval.settings import Setting
from readers import count_work
from vlms import tiny


def test_every_question_is_answered_in_every_setting(eval_data, eval_run):
    rows = read(eval_run / "results.jsonl")
    own = [row for row in rows if not row["region"]]
    assert len(own) == 12 * len(SETTINGS) and len({key_in(row) for row in rows}) == len(rows)
    assert {row["region"] for row in rows} == {"", "secondary", "peripheral"}
    names = {"dataset", "qid", "image", "question", "answers", "allocator", "relevance", "budget", "prediction"}
    for row in own:
        assert names | {"score", "tokens", "coverage", "found", "ms"} <= row.keys()
        assert 0 <= row["score"] <= 1 and row["ms"] > 0 and 0 <= row["coverage"] <= 1
        assert row["tokens"] == 24 or (row["allocator"] == "uniform" and row["tokens"] < 24)
    oracle = [row for row in own if row["relevance"] == "oracle"]
    for row in oracle:  # it looks where the answer stands
        line = int(row["qid"].split("-")[1])
        assert abs(row["fixation"][1] - (37 + 90 * line)) < 32
    for row in own:
        if row["allocator"] == "foveated:off=2":
            straight = next(
                r for r in own if r["qid"] == row["qid"] and (r["allocator"], r["relevance"]) == ("foveated", "query")
            )
            gap = np.hypot(*(np.array(row["fixation"]) - straight["fixation"]))
            assert 0 < gap <= 2 * 400 / 20 + 1  # 2 of the page's 20 degrees, less where the border is near


def test_an_answer_is_found_where_it_was_read_and_nowhere_else(eval_data, eval_backend):
    """All cells show every line of a page, one cell shows none of them legibly."""
    samples = [EvalSample(item, item) for item in collect([str(eval_data)], limit=4)]
    settings = [Setting.parse("dag/query/400"), Setting.parse("dag/query/1")]
    rows = {setting.budget: rows for setting, rows in eval_backend.answers(samples, settings)}
    page = eval_backend.pages[samples[0].item.image]
    text = " ".join(line.text for line in page.read(400)).lower()
    assert [row["found"] for row in rows[400]] == [row["answers"][0] in text for row in rows[400]]
    assert any(row["found"] for row in rows[400]) and not any(row["found"] for row in rows[1])
    wrong = [EvalSample(replace(sample.item, answers=("nowhere", " ")), sample.item) for sample in samples]
    ((_, refused),) = eval_backend.answers(wrong, [Setting.parse("dag/query/400")])
    assert not any(row["found"] for row in refused)


def test_a_page_is_taken_in_once_and_every_setting_reads_it_itself(eval_data, eval_backend, monkeypatch):
    counts = count_work(eval_backend.reader, monkeypatch)
    eval_backend.pages.clear()
    samples = [
        EvalSample(item, item) for item in collect([str(eval_data)], limit=6)
    ]  # four about a page, two about the next
    settings = [Setting.parse(name) for name in ("dag/information/200", "grid/query/24", "dag/information/200")]
    read_, rows = [], []
    for _, some in eval_backend.answers(samples, settings):
        read_.append(counts["read"])
        rows.append(some)
    assert [*eval_backend.pages] == [samples[0].item.image, samples[4].item.image]
    assert counts["found"] > 0 and counts["encoded"] == 2
    assert read_[0] == read_[2] - read_[1] > 0 and timeless(rows[0]) == timeless(rows[2])
    assert read_[0] <= sum(len(page.lines) for page in eval_backend.pages.values())  # questions share what was read
    once = dict(counts)
    ((_, more),) = eval_backend.answers([samples[5], samples[1]], settings[:1])  # a later batch about the same pages
    assert (counts["found"], counts["encoded"]) == (once["found"], 2)
    assert timeless(more) == timeless([rows[0][5], rows[0][1]])


def test_answers_are_those_of_the_reader(eval_data, eval_backend):
    """One question at a time, without the harness."""
    samples = [EvalSample(item, item) for item in collect([str(eval_data)], limit=2)]
    ((_, rows),) = eval_backend.answers(samples, [Setting.parse("foveated/query/24")])
    for sample, row in zip(samples, rows, strict=True):
        answer = eval_backend.reader.ask(sample.item.image, sample.item.question, budget=24, max_new_tokens=4)
        assert row["prediction"] == answer.text and row["confidence"] == pytest.approx(answer.confidence, abs=2e-3)
        assert row["fixation"] == pytest.approx(answer.to_dict()["fixations"][0], abs=0.1)


@pytest.mark.parametrize("turns", range(4))
def test_a_page_on_its_side_is_looked_at_where_its_answer_stands(eval_data, eval_backend, monkeypatch, turns):
    """Boxes are those of the image as it was given, the look is at the upright page."""
    item = collect([str(eval_data)])[1]
    image = Image.open(item.image).rotate(-90 * turns, expand=True)  # turned back counter-clockwise
    page = eval_backend.reader.open(image)
    assert page.turns == turns and (page.scene.tree.width, page.scene.tree.height) == (300, 400)
    assert page.box_upright(page.box_as_given((20, 120, 200, 135))) == (20, 120, 200, 135)
    given = replace(item, boxes=(page.box_as_given((20, 120, 200, 135)),))
    (upright,), (glance,) = (
        look_at(one, [asked], Setting.parse("foveated/oracle/24"))
        for one, asked in ((eval_backend.reader.open(item.image), item), (page, given))
    )
    assert torch.equal(glance.selection.boxes, upright.selection.boxes)
    assert torch.equal(glance.selection.levels, upright.selection.levels)
    assert torch.equal(glance.fixations, upright.fixations)


def test_a_wrapped_model_answers_under_all_kinds_of_methods(eval_data, tmp_path):
    tiny("llava", tmp_path / "model")
    work = batches(eval_data, ["foveated/query/12", "visionzip/12", "fastv/12"], ())[:1]
    run(work, ModelSpec(model=str(tmp_path / "model"), where="after", max_new_tokens=3), tmp_path / "out")
    rows = read(tmp_path / "out" / "results.jsonl")
    assert len(rows) == 15 and all(isinstance(row["prediction"], str) and "found" not in row for row in rows)
    assert {row["tokens"] for row in rows if row["allocator"] != "fastv"} == {12.0}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["fingerprint"]["where"] == "after"


@pytest.mark.parametrize(
    ("name", "regions"), [("foveated:off=2/query/9", ()), ("foveated/oracle/9", ()), ("grid/9", ["grid/9"])]
)
def test_a_wrapped_model_is_not_asked_what_only_the_reader_can_do(eval_data, name, regions, tmp_path):
    with pytest.raises(InputError, match="for the reader"):
        run(batches(eval_data, [name], regions), ModelSpec(model="somebody/else"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("peer", ["visionzip", "fastv"])
def test_the_reader_has_no_visual_tokens_that_a_peer_could_prune(eval_data, eval_spec, homunculus, peer, tmp_path):
    with pytest.raises(InputError, match=f"{peer} prunes visual tokens.*--model"):
        run(batches(eval_data, ["grid/query/24", f"{peer}/24"], ()), eval_spec, tmp_path / "out")
    code, _, said = homunculus("eval", eval_data, "--allocators", peer, "--out", tmp_path / "out")
    assert code == 2 and len(said.strip().splitlines()) == 1 and "--model" in said
    assert not (tmp_path / "out").exists()


def test_the_command_writes_a_report_with_the_figures_of_the_rows(eval_data, eval_spec, homunculus, tmp_path):
    words = ["eval", eval_data, "--allocators", "foveated,grid,uniform", "--budgets", "16,24", "--out", tmp_path]
    code, said, _ = homunculus(*words, "--weights", eval_spec.weights, "--language", eval_spec.language, "--limit", 4)
    assert code == 0 and "report.md" in said
    rows = read(tmp_path / "results.jsonl")
    assert len(rows) == 4 * 3 * 2
    summary = json.loads((tmp_path / "summary.json").read_text())["rows"]
    report = (tmp_path / "report.md").read_text()
    assert len(summary) == 6 and (tmp_path / "pareto.png").stat().st_size > 5000
    for entry in summary:
        mine = [r for r in rows if (r["allocator"], r["budget"]) == (entry["allocator"], entry["budget"])]
        assert entry["n"] == len(mine) == 4 and entry["metric"] == "anls"
        assert entry["score"] == pytest.approx(sum(r["score"] for r in mine) / 4)
        assert entry["tokens"] == pytest.approx(sum(r["tokens"] for r in mine) / 4)
        assert entry["found"] == pytest.approx(sum(r["found"] for r in mine) / 4)
        name = f"{entry['allocator']}/query"
        line = next(line for line in report.splitlines() if line.startswith(f"| {name} | ") and "(" in line)
        assert f"{entry['score']:.3f} (" in re.sub(r"\*", "", line)
    before = (tmp_path / "report.md").read_text()
    code, said, _ = homunculus("report", tmp_path)
    assert code == 0 and (tmp_path / "report.md").read_text() == before
    for wrong in (["eval", eval_data, "--allocators", "nothing", "--out", tmp_path], ["report", eval_data],
                  ["eval", eval_data, "--budgets", "many", "--out", tmp_path]):  # fmt: skip
        code, _, said = homunculus(*wrong)
        assert code == 2 and len(said.strip().splitlines()) == 1
