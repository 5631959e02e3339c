"""The command that makes the report: a small one, and the same again from the scores that it kept."""

import json

import pytest

import report
import report_page
from homunculus.eval.runner import read
from readers import pages, tiny_reader


def test_a_report_is_written_and_written_again_from_its_scores(tmp_path, capsys):
    data = pages(tmp_path / "data", "funsd", 2)
    pages(data, "coco_vqa", 2)
    weights, language = tiny_reader(tmp_path)
    own, kept = ["--weights", str(weights), "--language", str(language)], tmp_path / "kept.jsonl.xz"
    words = ["--data", str(data), "--limit", "2", "--no-gaze", "--kept", str(kept)]
    folders = ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "out")]
    report.main([*words, *own, *folders, "--part", "methods"])
    rows = read(tmp_path / "results" / "results.jsonl")
    assert len(rows) == 2 * 2 * len(report.SEVEN) and {row["budget"] for row in rows} == {report.MAIN}
    assert "28 answers, 0 of 28 are missing" in capsys.readouterr().out
    first = json.loads((tmp_path / "out" / "summary.json").read_text())["rows"]

    again = ["--results", str(tmp_path / "again"), "--out", str(tmp_path / "out_again"), "--scores", str(kept)]
    again += ["--costs", str(tmp_path / "none")]
    report_page.main(["--data", str(data), *again])
    second = json.loads((tmp_path / "out_again" / "summary.json").read_text())["rows"]
    by_key = [{(row["dataset"], row["allocator"]): row for row in each} for each in (first, second)]
    assert by_key[0].keys() == by_key[1].keys()
    for key, row in by_key[0].items():
        assert by_key[1][key]["score"] == row["score"] and by_key[1][key]["found"] == row["found"]
    text = (tmp_path / "out_again" / "report.md").read_text()
    assert text.startswith(f"# The first report\n\n{report_page.NOTE}")
    assert "28 answers by a reader with other weights than those shipped now" in text


def test_costs_are_those_of_all_settings(tmp_path, monkeypatch):
    data = pages(tmp_path / "data", "docvqa", 1)
    weights, language = tiny_reader(tmp_path)
    monkeypatch.setattr(report, "list_allocators", lambda: ["grid"])
    words = ["--data", str(data), "--part", "costs", "--limit", "1", "--out", str(tmp_path / "out")]
    words += ["--results", str(tmp_path / "results"), "--weights", str(weights), "--language", str(language)]
    report.main(words)
    rows = [json.loads(line) for line in (tmp_path / "results" / "costs.jsonl").read_text().splitlines()]
    known = {(row["method"], row["budget"]) for row in rows}
    assert known >= {("grid/query", 273), ("grid/query", 64), ("foveated/query", 1536), ("foveated/saliency", 273)}


def test_a_folder_without_sets_is_said_in_one_sentence(tmp_path):
    with pytest.raises(SystemExit, match="neither a folder of sets"):
        report.main(["--data", str(tmp_path), "--out", str(tmp_path / "out")])


def test_every_batch_of_the_whole_report_is_for_the_reader(tmp_path):
    data = pages(tmp_path, "funsd", 2)
    pages(data, "daquar", 1)
    args = report.arguments(["--data", str(data), "--out", str(tmp_path / "out")])
    settings = {setting for batch in report.batches(args) for setting in batch.settings}
    assert len(settings) > 50 and not any(setting.is_peer for setting in settings)
    assert any(setting.options == {"error": None} for setting in settings)
