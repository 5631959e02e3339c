"""Settings and sets of the harness: read, checked, collected."""

import shutil

import pytest

from homunculus import InputError
from homunculus.eval.data import collect, from_hub, items
from homunculus.eval.regions import region_samples
from homunculus.eval.settings import Setting, settings_of


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


def test_sets_are_collected(eval_data, tmp_path):
    assert len(collect([str(eval_data)])) == len(collect([str(eval_data / "funsd")])) == 12
    assert len(collect([str(eval_data)], limit=2)) == 2
    assert collect([str(eval_data)])[0].boxes == ((20.0, 30.0, 200.0, 45.0),)
    with pytest.raises(InputError, match="neither a folder of sets"):
        collect([str(tmp_path)])
    with pytest.raises(InputError, match="no questions"):
        collect([str(eval_data)], only=["docvqa"])
    with pytest.raises(InputError, match="same qid"):
        collect([str(eval_data), str(eval_data / "funsd")])


def test_a_split_and_a_folder_of_questions_are_sets_too(eval_data, tmp_path, monkeypatch):
    expected = collect([str(eval_data)])
    assert collect([str(eval_data / "funsd" / "val")]) == expected  # of the same name, by which it is scored
    plain = tmp_path / "receipts"
    shutil.copytree(eval_data / "funsd" / "val", plain)
    found = collect([str(plain)], "test")  # it has no splits
    assert [(item.qid, item.answers) for item in found] == [(item.qid, item.answers) for item in expected]
    assert {item.dataset for item in found} == {"receipts"} and all(item.image.is_file() for item in found)
    monkeypatch.chdir(eval_data / "funsd")
    assert {item.dataset for item in collect(["."])} == {"funsd"}
    with pytest.raises(InputError, match="is the split val of a set, not test; add --split val"):
        collect([str(eval_data / "funsd" / "val")], "test")


def test_sets_of_the_hub_are_read_as_they_are_there(eval_data, tmp_path, monkeypatch):
    """From a folder in the hub's own format: a dataset with images, as `datasets` saves it."""
    datasets = pytest.importorskip("datasets")
    from homunculus.eval import data as module

    pictures = sorted((eval_data / "funsd" / "val" / "images").iterdir())
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


def test_other_places_of_a_page_are_asked_about_with_the_same_look(eval_data):
    samples = region_samples(items(eval_data, "funsd"))
    first = [(sample.target.qid, sample.item.qid, sample.region) for sample in samples if sample.target.qid == "0-0"]
    assert first == [("0-0", "0-1", "secondary"), ("0-0", "0-3", "peripheral")]
    assert len({(sample.item.qid, sample.region) for sample in samples}) == len(samples)
