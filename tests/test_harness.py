"""The harness: plans, results that survive kills, workers that agree, a report whose figures are those of the rows."""

import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from homunculus import InputError
from homunculus.eval.backends import EvalSample, Prediction, look_at, row_of
from homunculus.eval.cluster import _each
from homunculus.eval.data import collect, from_hub, items
from homunculus.eval.regions import region_samples
from homunculus.eval.runner import Batch, ModelSpec, Results, _lines, key_in, plan, read, run
from homunculus.eval.settings import Setting, settings_of
from readers import count_work, pages, tiny_reader
from vlms import tiny

SETTINGS = ["foveated/query/24", "grid/query/24", "uniform/query/24", "foveated/oracle/24", "foveated:off=2/query/24"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return pages(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> ModelSpec:
    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return ModelSpec(weights=str(weights), language=str(language), max_new_tokens=4)


@pytest.fixture(scope="module")
def backend(spec):
    return spec.load()


def batches(data: Path, names=SETTINGS, regions=("foveated/query/24",), batch_size: int = 5):
    return plan(
        collect([str(data)]),
        [Setting.parse(name) for name in names],
        [Setting.parse(name) for name in regions],
        batch_size,
    )


@pytest.fixture(scope="module")
def done(data, spec, backend, tmp_path_factory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("done")
    run(batches(data), spec, folder, config={"data": [str(data)], "split": "val"}, load=lambda: backend)
    return folder


def timeless(rows: list[dict]) -> list[str]:
    """Rows without what a clock said, in one order."""
    return sorted(json.dumps({key: value for key, value in row.items() if key != "ms"}) for row in rows)


# ---- settings and sets --------------------------------------------------------------------------------------------


def test_settings_are_read_and_checked():
    parse = Setting.parse
    setting = parse("stratified:strata=8/query/64")
    assert (setting.rule, setting.options, setting.budget) == ("stratified", {"strata": 8}, 64)
    assert str(setting) == "stratified:strata=8/query/64"
    assert parse("visionzip/64") == Setting("visionzip", "", 64) == parse("visionzip/query/64")
    assert parse("foveated/64").relevance == "query" and parse("foveated:off=2/query/9").degrees_off == 2
    found = settings_of(["grid", "fastv"], ["query", "saliency"], [64, 273])
    assert list(map(str, found[:3])) == ["grid/query/64", "fastv/64", "grid/saliency/64"] and len(found) == 6
    wrong = ["grid", "grid/query", "nothing/query/3", "grid/nothing/3", "grid/query/0", "foveated:nothing=1/query/3"]
    for text in [*wrong, "fastv:layer=2/3", "foveated:off=far/query/3", "grid/query/²"]:
        with pytest.raises(InputError):
            parse(text)


def test_sets_are_collected(data, tmp_path):
    assert len(collect([str(data)])) == len(collect([str(data / "funsd")])) == 12
    assert len(collect([str(data)], limit=2)) == 2 and collect([str(data)])[0].boxes == ((20.0, 30.0, 200.0, 45.0),)
    with pytest.raises(InputError, match="neither a folder of sets"):
        collect([str(tmp_path)])
    with pytest.raises(InputError, match="no questions"):
        collect([str(data)], only=["docvqa"])
    with pytest.raises(InputError, match="same qid"):
        collect([str(data), str(data / "funsd")])


def test_a_split_and_a_folder_of_questions_are_sets_too(data, tmp_path, monkeypatch):
    expected = collect([str(data)])
    assert collect([str(data / "funsd" / "val")]) == expected  # of the same name, by which it is scored
    plain = tmp_path / "receipts"
    shutil.copytree(data / "funsd" / "val", plain)
    found = collect([str(plain)], "test")  # it has no splits
    assert [(item.qid, item.answers) for item in found] == [(item.qid, item.answers) for item in expected]
    assert {item.dataset for item in found} == {"receipts"} and all(item.image.is_file() for item in found)
    monkeypatch.chdir(data / "funsd")
    assert {item.dataset for item in collect(["."])} == {"funsd"}
    with pytest.raises(InputError, match="is the split val of a set, not test; add --split val"):
        collect([str(data / "funsd" / "val")], "test")


def test_sets_of_the_hub_are_read_as_they_are_there(data, tmp_path, monkeypatch):
    """From a folder in the hub's own format: a dataset with images, as `datasets` saves it."""
    datasets = pytest.importorskip("datasets")
    from homunculus.eval import data as module

    pictures = sorted((data / "funsd" / "val" / "images").iterdir())
    rows = {
        "questionId": [7, 8, 9],
        "question": ["a?", "b?", "c?"],
        "answers": [["1"], ["2", "two"], ["3"]],
        "image": [str(pictures[0]), str(pictures[0]), str(pictures[1])],
    }
    made = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    (tmp_path / "hub").mkdir()
    made.to_parquet(str(tmp_path / "hub" / "validation.parquet"))
    monkeypatch.setitem(
        module.HUB, "docvqa", module.HubSet(str(tmp_path / "hub"), None, {"val": "validation"}, module._plain)
    )
    found = from_hub("docvqa", "val", 3, tmp_path / "cache")
    assert [(item.qid, item.question, item.answers) for item in sorted(found, key=lambda item: item.qid)] == [
        ("7", "a?", ("1",)), ("8", "b?", ("2", "two")), ("9", "c?", ("3",))
    ]  # fmt: skip
    assert len({item.image for item in found}) == 2 and all(item.image.is_file() for item in found)
    monkeypatch.setitem(module.HUB, "docvqa", module.HubSet(str(tmp_path / "none"), None, {}, module._plain))
    with pytest.raises(InputError, match="cannot be had"):
        from_hub("docvqa", "val", 3, tmp_path / "cache")


def test_other_places_of_a_page_are_asked_about_with_the_same_look(data):
    samples = region_samples(items(data, "funsd"))
    first = [(sample.target.qid, sample.item.qid, sample.region) for sample in samples if sample.target.qid == "0-0"]
    assert first == [("0-0", "0-1", "secondary"), ("0-0", "0-3", "peripheral")]
    assert len({(sample.item.qid, sample.region) for sample in samples}) == len(samples)


# ---- results ------------------------------------------------------------------------------------------------------


def test_every_question_is_answered_in_every_setting(data, done):
    rows = read(done / "results.jsonl")
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


def test_an_answer_is_found_where_it_was_read_and_nowhere_else(data, backend):
    """All cells show every line of a page, one cell shows none of them legibly."""
    samples = [EvalSample(item, item) for item in collect([str(data)], limit=4)]
    rows = {
        setting.budget: rows
        for setting, rows in backend.answers(samples, [Setting.parse("dag/query/400"), Setting.parse("dag/query/1")])
    }
    page = backend.pages[samples[0].item.image]
    text = " ".join(line.text for line in page.read(400)).lower()
    assert [row["found"] for row in rows[400]] == [row["answers"][0] in text for row in rows[400]]
    assert any(row["found"] for row in rows[400]) and not any(row["found"] for row in rows[1])
    wrong = [EvalSample(replace(sample.item, answers=("nowhere", " ")), sample.item) for sample in samples]
    ((_, refused),) = backend.answers(wrong, [Setting.parse("dag/query/400")])
    assert not any(row["found"] for row in refused)


def test_a_page_is_taken_in_once_and_every_setting_reads_it_itself(data, backend, monkeypatch):
    counts = count_work(backend.reader, monkeypatch)
    backend.pages.clear()
    samples = [
        EvalSample(item, item) for item in collect([str(data)], limit=6)
    ]  # four about a page, two about the next
    settings = [Setting.parse(name) for name in ("dag/information/200", "grid/query/24", "dag/information/200")]
    read_, rows = [], []
    for _, some in backend.answers(samples, settings):
        read_.append(counts["read"])
        rows.append(some)
    assert [*backend.pages] == [samples[0].item.image, samples[4].item.image]
    assert counts["found"] > 0 and counts["encoded"] == 2
    assert read_[0] == read_[2] - read_[1] > 0 and timeless(rows[0]) == timeless(rows[2])
    assert read_[0] <= sum(len(page.lines) for page in backend.pages.values())  # questions share what was read
    once = dict(counts)
    ((_, more),) = backend.answers([samples[5], samples[1]], settings[:1])  # a later batch about the same pages
    assert (counts["found"], counts["encoded"]) == (once["found"], 2)
    assert timeless(more) == timeless([rows[0][5], rows[0][1]])


def test_answers_are_those_of_the_reader(data, backend):
    """One question at a time, without the harness."""
    samples = [EvalSample(item, item) for item in collect([str(data)], limit=2)]
    ((_, rows),) = backend.answers(samples, [Setting.parse("foveated/query/24")])
    for sample, row in zip(samples, rows, strict=True):
        answer = backend.reader.ask(sample.item.image, sample.item.question, budget=24, max_new_tokens=4)
        assert row["prediction"] == answer.text and row["confidence"] == pytest.approx(answer.confidence, abs=2e-3)
        assert row["fixation"] == pytest.approx(answer.to_dict()["fixations"][0], abs=0.1)


@pytest.mark.parametrize("turns", range(4))
def test_a_page_on_its_side_is_looked_at_where_its_answer_stands(data, backend, monkeypatch, turns):
    """Boxes are those of the image as it was given, the look is at the upright page."""
    item = collect([str(data)])[1]
    image = Image.open(item.image).rotate(-90 * turns, expand=True)  # turned back counter-clockwise
    page = backend.reader.open(image)
    assert page.turns == turns and (page.scene.tree.width, page.scene.tree.height) == (300, 400)
    assert page.box_upright(page.box_as_given((20, 120, 200, 135))) == (20, 120, 200, 135)
    given = replace(item, boxes=(page.box_as_given((20, 120, 200, 135)),))
    (upright,), (glance,) = (
        look_at(one, [asked], Setting.parse("foveated/oracle/24"))
        for one, asked in ((backend.reader.open(item.image), item), (page, given))
    )
    assert torch.equal(glance.selection.indices, upright.selection.indices)
    assert torch.equal(glance.fixations, upright.fixations)


def test_a_line_that_was_cut_off_is_made_again(data, spec, backend, done, tmp_path):
    whole = (done / "results.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "run.json").write_text((done / "run.json").read_text())
    (tmp_path / "results.jsonl").write_text("".join(lines[:30]) + lines[30][:50])
    run(batches(data), spec, tmp_path, load=lambda: backend)
    assert timeless(read(tmp_path / "results.jsonl")) == timeless(read(done / "results.jsonl"))
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == len(lines)


def test_a_kill_while_a_cut_line_is_cleared_away_loses_nothing(done, tmp_path):
    lines = (done / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "results.jsonl").write_text("".join(lines[:9]) + lines[9][:50])
    child = os.fork()
    if child == 0:
        Results._settle = lambda self: os._exit(0)
        Results(tmp_path, {"fingerprint": "me"})
        os._exit(0)
    os.waitpid(child, 0)
    assert len(read(tmp_path / "results.jsonl")) == 9


def test_texts_may_hold_any_end_of_line(tmp_path):
    odd = "one\u2028two\x85three\x0cfour"
    place = tmp_path / "odd" / "val"
    place.mkdir(parents=True)
    line = json.dumps({"image": "0.png", "question": odd, "answers": [odd], "qid": "0"}, ensure_ascii=False)
    (place / "questions.jsonl").write_text(line + "\n", encoding="utf-8")
    (item,) = collect([str(tmp_path)])
    assert item.question == odd
    work = plan([item], [Setting.parse("grid/query/4")])
    run(work, Toy(), tmp_path / "out")
    assert [row["question"] for row in run(work, Toy(), tmp_path / "out")] == [odd]


def test_other_questions_and_other_splits_are_not_taken_for_those_that_were_asked(data, tmp_path):
    work = batches(data, ["grid/query/4"], ())
    run(work, Toy(), tmp_path / "out", config={"split": "val"})
    with pytest.raises(InputError, match="split"):
        run(work, Toy(), tmp_path / "out", config={"split": "train"})
    others = [
        Batch(tuple(EvalSample(replace(sample.item, question="?"), sample.item) for sample in b.samples), b.settings)
        for b in work
    ]
    with pytest.raises(InputError, match="another question"):
        run(others, Toy(), tmp_path / "out")
    run(work, Toy(), tmp_path / "out")


def test_progress_counts_what_is_there(data, tmp_path):
    bars = []
    for names in (["grid/query/4"], ["grid/query/4", "grid/query/5"]):
        (tmp_path / "out").mkdir(exist_ok=True)
        lines = _lines(tmp_path / "out" / "results.jsonl")[:7]  # some of a batch
        (tmp_path / "out" / "results.jsonl").write_text("".join(lines))
        console = Console(file=io.StringIO(), width=100)
        run(batches(data, names, ()), Toy(), tmp_path / "out", console=console)
        bars.append(console.file.getvalue())
    assert "12/12" in bars[0] and "24/24" in bars[1]


def test_results_of_others_are_not_mixed(data, done, tmp_path):
    with pytest.raises(InputError, match="holds answers of"):
        run([], ModelSpec(model="somebody/else"), done)
    with pytest.raises(InputError, match="holds answers of"):
        run([], ModelSpec(), done)  # the shipped reader
    first = Results(tmp_path, {"fingerprint": "me"})
    with pytest.raises(InputError, match="another run is writing"):
        Results(tmp_path, {"fingerprint": "me"})
    first.close()
    Results(tmp_path, {"fingerprint": "me"}).close()


@dataclass(frozen=True)
class Toy(ModelSpec):
    """Answers at once with something that depends on the question alone."""

    def load(self, share: float = 1.0):
        return self

    def fingerprint(self):
        return {"toy": True}

    def answers(self, samples, settings):
        for setting in settings:
            time.sleep(0.002)
            said = [Prediction(f"{sample.item.qid} {setting}", 0.5, setting.budget, 1.0, None) for sample in samples]
            yield setting, [row_of(sample, setting, one, 1.0) for sample, one in zip(samples, said, strict=True)]


def test_twenty_kills_lose_nothing_and_double_nothing(data, tmp_path):
    work = batches(data, [f"grid/query/{n}" for n in range(1, 40)], (), batch_size=2)
    run(work, Toy(), tmp_path / "whole")
    lots, kills = random.Random(0), 0
    while kills < 20:
        child = os.fork()
        if child == 0:
            try:
                run(work, Toy(), tmp_path / "killed")
            finally:
                os._exit(0)
        time.sleep(lots.uniform(0.0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    run(work, Toy(), tmp_path / "killed")
    lines = (tmp_path / "killed" / "results.jsonl").read_text().splitlines()
    assert len(lines) == 12 * 39
    assert sorted(lines) == sorted((tmp_path / "whole" / "results.jsonl").read_text().splitlines())


@pytest.mark.slow
def test_twenty_kills_of_the_command_line(data, spec, done, tmp_path):
    words = ["eval", str(data), "--settings", ",".join(SETTINGS), "--regions", "foveated/query/24"]
    words += ["--batch-size", "5", "--weights", spec.weights, "--language", spec.language]
    words += ["--out", str(tmp_path / "out")]
    call, lots = [sys.executable, "-m", "homunculus", *words], random.Random(1)
    whole = [sys.executable, "-m", "homunculus", *words[:-1], str(tmp_path / "whole")]
    subprocess.run(whole, check=True, capture_output=True)
    for _ in range(20):
        child = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(lots.uniform(4, 12))
        child.kill()
        child.wait()
    subprocess.run(call, check=True, capture_output=True)
    assert timeless(read(tmp_path / "out" / "results.jsonl")) == timeless(read(tmp_path / "whole" / "results.jsonl"))


@dataclass(frozen=True)
class Sleepy(Toy):
    """Leaves its number behind and takes its time."""

    def answers(self, samples, settings):
        (Path(self.where) / str(os.getpid())).touch()
        time.sleep(100)
        yield from super().answers(samples, settings)


def test_workers_end_with_the_one_who_called_them(data, tmp_path):
    here, noted = tmp_path / "out", tmp_path / "noted"
    noted.mkdir()
    call = f"run(batches(Path({str(data)!r}), ['grid/4'], ()), Sleepy(where={str(noted)!r}), Path({str(here)!r}), 2)"
    code = f"from pathlib import Path\nfrom test_harness import *\nif __name__ == '__main__':\n    {call}\n"
    (tmp_path / "caller.py").write_text(code)
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    told = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    caller = subprocess.Popen([sys.executable, str(tmp_path / "caller.py")], env=told, stderr=subprocess.DEVNULL)

    def until(done) -> bool:
        deadline = time.monotonic() + 60
        while not done() and time.monotonic() < deadline:
            time.sleep(0.1)
        return done()

    def alive() -> bool:
        return any(Path(f"/proc/{path.name}/cmdline").is_file() for path in noted.iterdir())

    assert until(lambda: len(list(noted.iterdir())) == 2) and alive()
    caller.kill()
    caller.wait()
    assert until(lambda: not alive())


@pytest.mark.parametrize(
    ("has", "workers", "each"), [(2, 1, 1.0), (4, 4, 1.0), (4, 5, 0.5), (1, 12, 0.0833), (0, 3, 0)]
)
def test_all_workers_find_room_on_a_cluster(has, workers, each):
    assert _each(has, workers) == each and (not has or int(1 / each) * has >= workers)


@pytest.mark.timeout(900)  # a cluster takes minutes to start where other work is going on
@pytest.mark.parametrize("ray", [False, True])
def test_several_workers_answer_as_one_does(data, spec, done, ray, tmp_path):
    if ray:
        pytest.importorskip("ray")
    work = batches(data, ["foveated/query/24", "grid/query/24"], ())
    run(work, spec, tmp_path, workers=3 if ray else 2, ray=ray)  # on Ray more than there are cores
    mine = {key_in(row): row for row in read(done / "results.jsonl")}
    theirs = read(tmp_path / "results.jsonl")
    assert len(theirs) == 24
    assert timeless(theirs) == timeless([mine[key_in(row)] for row in theirs])


def test_a_wrapped_model_answers_under_all_kinds_of_methods(data, tmp_path):
    tiny("llava", tmp_path / "model")
    work = batches(data, ["foveated/query/12", "visionzip/12", "fastv/12"], ())[:1]
    run(work, ModelSpec(model=str(tmp_path / "model"), where="after", max_new_tokens=3), tmp_path / "out")
    rows = read(tmp_path / "out" / "results.jsonl")
    assert len(rows) == 15 and all(isinstance(row["prediction"], str) and "found" not in row for row in rows)
    assert {row["tokens"] for row in rows if row["allocator"] != "fastv"} == {12.0}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["fingerprint"]["where"] == "after"


@pytest.mark.parametrize(
    ("name", "regions"), [("foveated:off=2/query/9", ()), ("foveated/oracle/9", ()), ("grid/9", ["grid/9"])]
)
def test_a_wrapped_model_is_not_asked_what_only_the_reader_can_do(data, name, regions, tmp_path):
    with pytest.raises(InputError, match="for the reader"):
        run(batches(data, [name], regions), ModelSpec(model="somebody/else"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("peer", ["visionzip", "fastv"])
def test_the_reader_has_no_visual_tokens_that_a_peer_could_prune(data, spec, homunculus, peer, tmp_path):
    with pytest.raises(InputError, match=f"{peer} prunes visual tokens.*--model"):
        run(batches(data, ["grid/query/24", f"{peer}/24"], ()), spec, tmp_path / "out")
    code, _, said = homunculus("eval", data, "--allocators", peer, "--out", tmp_path / "out")
    assert code == 2 and len(said.strip().splitlines()) == 1 and "--model" in said
    assert not (tmp_path / "out").exists()


# ---- the command line ---------------------------------------------------------------------------------------------


def test_the_command_writes_a_report_with_the_figures_of_the_rows(data, spec, homunculus, tmp_path):
    words = ["eval", data, "--allocators", "foveated,grid,uniform", "--budgets", "16,24", "--out", tmp_path]
    code, said, _ = homunculus(*words, "--weights", spec.weights, "--language", spec.language, "--limit", 4)
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
    for wrong in (["eval", data, "--allocators", "nothing", "--out", tmp_path], ["report", data],
                  ["eval", data, "--budgets", "many", "--out", tmp_path]):  # fmt: skip
        code, _, said = homunculus(*wrong)
        assert code == 2 and len(said.strip().splitlines()) == 1
