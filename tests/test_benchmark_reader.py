"""The benchmark of the reader: what it asks, that it continues, that its figures are those of the answers."""

import json
from pathlib import Path

import numpy as np
import pytest

import reader
import reader_page
from homunculus.eval.runner import read
from readers import pages, tiny_reader

TWO = "foveated/query/24,dag/information/150"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    pages(folder, "funsd", 3)
    return pages(folder, "sroie", 2)


@pytest.fixture(scope="module")
def usual(data, tmp_path_factory) -> list[str]:
    """Words that most commands here have."""
    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return ["--data", str(data), "--weights", str(weights), "--language", str(language), "--sets", "funsd,sroie"]


@pytest.fixture(scope="module")
def done(usual, tmp_path_factory) -> Path:
    """The summary of a finished run; it ran twice, the first time with a part of the settings."""
    out = tmp_path_factory.mktemp("results") / "reader.json"
    reader.main([*usual, "--out", str(out), "--ways", TWO.split(",")[0]])
    reader.main([*usual, "--out", str(out), "--ways", TWO])
    return out


def answered(out: Path) -> list[dict]:
    return read(out.with_suffix("") / "results.jsonl")


def test_figures_are_those_of_the_answers(done):
    found, rows = json.loads(done.read_text()), answered(done)
    assert len(rows) == 20 * 2 and [(r["dataset"], r["way"]) for r in found["rows"]] == [
        (name, way) for name in ("funsd", "sroie") for way in TWO.split(",")
    ]
    for row in found["rows"]:
        way = tuple(row["way"].split("/"))
        mine = [
            r
            for r in rows
            if r["dataset"] == row["dataset"] and (r["allocator"], r["relevance"], str(r["budget"])) == way
        ]
        assert row["n"] == len(mine) == (12 if row["dataset"] == "funsd" else 8) and row["pages"] == row["n"] / 4
        for name in ("score", "found"):
            figure = row[name]
            assert figure["value"] == pytest.approx(np.mean([r[name] for r in mine]))
            assert figure["low"] <= figure["value"] <= figure["high"]
    assert any(row["found"]["value"] > 0 for row in found["rows"])  # 150 tokens show a page


def test_the_summary_says_where_its_figures_come_from(done, usual):
    found = json.loads(done.read_text())
    shown = "--data DATA --weights WEIGHTS --language LANGUAGE --sets funsd,sroie --out OUT --ways " + TWO
    assert found["command"] == f"python benchmarks/reader.py {shown}"
    assert found["machines"][0]["commit"] and found["date"].count("-") == 2 and found["dtype"].startswith(("bf", "fl"))
    hashes = json.loads((Path(usual[3]) / "hashes.json").read_text())
    assert found["weights"]["lora"] == hashes["lora.safetensors"]
    assert "/tmp" not in json.dumps(found)


def test_a_run_continues_and_sums_up_what_it_was_asked_for(done, usual, capsys):
    before = answered(done)
    reader.main([*usual, "--out", str(done), "--ways", TWO, "--limit", "1"])
    few = json.loads(done.read_text())
    assert answered(done) == before and [row["n"] for row in few["rows"]] == [4] * 4 and few["limit"] == 1
    assert "| way | funsd, n 4 | sroie, n 4 |" in capsys.readouterr().out
    reader.main([*usual, "--out", str(done), "--ways", TWO])
    assert answered(done) == before and json.loads(done.read_text())["rows"][0]["n"] == 12


def test_the_wrong_page_is_the_next_one_of_the_set(usual, data, tmp_path):
    out = tmp_path / "reader_wrong_page.json"
    reader.main([*usual, "--out", str(out), "--wrong-page", "--ways", "foveated/query/24"])
    found, rows = json.loads(out.read_text()), answered(out)
    assert len(rows) == 20 and found["wrong_page"]
    for row in rows:
        count = 3 if row["dataset"] == "funsd" else 2
        assert row["image"] == f"{(int(row['qid'][0]) + 1) % count}.webp"
    for row in found["rows"]:
        sure = [r["confidence"] > reader.CONFIDENT for r in rows if r["dataset"] == row["dataset"]]
        assert row["confident"]["value"] == pytest.approx(np.mean(sure)) and "score" not in row
    assert reader.trust([], found["rows"], "foveated/query/24").count("\n") == 4
    with pytest.raises(SystemExit, match="holds answers to the split val, next page, not val"):
        reader.main([*usual, "--out", str(out), "--ways", "foveated/query/24"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--ways", "gird/query/9"], "no method 'gird'"),
        (["--ways", "visionzip/9"], "visionzip prunes visual tokens"),
        (["--sets", "docvqa"], "no set of questions"),
        (["--wrong-page", "--limit", "1"], "at least two pages"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_sentence(usual, more, message, tmp_path):
    with pytest.raises(SystemExit, match=message) as stopped:
        reader.main([*usual, *more, "--out", str(tmp_path / "reader.json")])
    assert "\n" not in str(stopped.value) and not (tmp_path / "reader.json").exists()


def rows_of(name: str, way: str, entries: list[tuple[float, float, str]]) -> list[dict]:
    """Rows of questions about pages of their own: score, confidence, answer."""
    allocator, relevance, budget = way.split("/")
    row = {"dataset": name, "allocator": allocator, "relevance": relevance, "budget": int(budget), "ms": 1.0}
    return [
        row | {"qid": str(i), "image": f"{i}.png", "score": score, "confidence": sure, "prediction": text, "found": i}
        for i, (score, sure, text) in enumerate(entries)
    ]


def test_confident_is_above_a_half_and_an_answer():
    entries = [(1.0, 0.9, "x"), (0.0, 0.9, "Not on the page"), (0.4, 0.5, "y"), (0.6, 0.7, "z")]
    (row,) = reader.figures(rows_of("docvqa", reader.MAIN, entries))
    assert row["confident"]["value"] == 0.5 and row["refused"]["value"] == 0.25
    # bins 0.9 (half right), 0.5 (wrong), 0.7 (right)
    assert row["calibration_error"] == pytest.approx(0.5 * abs(0.9 - 0.5) + 0.25 * 0.5 + 0.25 * 0.3)


def test_the_page_has_the_tables(tmp_path):
    entries = [(1.0, 0.9, "x"), (0.0, 0.2, "y")]
    machine = {"device": "a GPU", "torch": "2", "commit": "abc"}
    named = {"machines": [machine], "date": "2026-01-02", "dtype": "bfloat16"}
    own = [row for name in ("docvqa", "funsd") for way in reader.SETTINGS for row in rows_of(name, way, entries)]
    figures = reader.figures(own)
    wrong = reader.figures(own[:2], wrong_page=True)
    results, docs = tmp_path / "results", tmp_path / "docs"
    results.mkdir()
    (results / "reader.json").write_text(json.dumps(named | {"command": "one command", "rows": figures}))
    reader_page.main(results, docs)
    assert "confident, wrong page" in (docs / "reader.md").read_text()
    (results / "reader_wrong_page.json").write_text(json.dumps(named | {"command": "another one", "rows": wrong}))
    reader_page.main(results, docs)
    page = (docs / "reader.md").read_text()
    assert reader.table(figures) in page and reader.trust(figures, wrong) in page
    assert "`one command`, a GPU, torch 2, commit abc, bfloat16, 2026-01-02" in page
    assert "`another one`, 2026-01-02" in page
    assert "| foveated/query/273 | 0.500 (0.000 to 1.000), 50 % | 0.500 (0.000 to 1.000), 50 % |" in page
    assert "| docvqa | 2 | 0.150 | 50 % | 50 % | 0 % |" in page and "| funsd | 2 | 0.150 | 50 % |  |  |" in page
    assert (docs / "images" / "reader.png").stat().st_size > 5000
