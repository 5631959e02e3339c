"""What texture units would do to answers: three ways to sample, the same questions, a file that tells."""

import json

import numpy as np
import torch

import texture
from homunculus import Eye, tokens
from readers import pages, tiny_reader


def test_answers_are_told_for_each_way_to_sample(tmp_path, monkeypatch, capsys):
    from homunculus.reader import load_reader

    weights, language = tiny_reader(tmp_path)
    monkeypatch.setattr(texture, "load_reader", lambda device: load_reader(weights, language, device))
    monkeypatch.setattr(texture, "BUDGET", 20)
    out = tmp_path / "found.json"
    texture.main(["--data", str(pages(tmp_path / "data", count=2)), "--limit", "5", "--out", str(out)])
    found = json.loads(out.read_text())
    assert found["questions"] == 5 and [row["way"] for row in found["rows"]] == list(texture.WAYS)
    ours, *others = found["rows"]
    assert ours["difference"] is None and ours["other answers"] == 0
    assert all(row["difference"]["low"] <= row["difference"]["value"] <= row["difference"]["high"] for row in others)
    assert not out.with_suffix(".jsonl").exists()
    assert "texture units" in capsys.readouterr().out


def test_cells_between_levels_are_blends_and_those_of_the_tree_are_the_same(page):
    pixels = torch.from_numpy(np.array(page)).permute(2, 0, 1)
    for rule, same in (("foveated", True), ("uniform", False)):
        eye = Eye(rule, "information", 60)
        look = eye.look_at(eye.scene(pixels), "")
        ours, units = texture.cells(look, None), texture.cells(look, 8)
        assert torch.equal(ours, tokens.patches(look.scene.levels, look.selection)[0])
        assert torch.equal(ours, units) == same
        if not same:
            lack = (ours.double() - units.double()).abs()
            assert 0 < lack.mean() < 20 and lack.max() > 3
