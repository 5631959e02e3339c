"""What a setting costs, measured alone: lines for each round, nothing known of a page beforehand, one device a file."""

import pytest

from homunculus import InputError
from homunculus.eval.backends import EvalSample
from homunculus.eval.costs import ROUNDS, WARM, conditions, measure, medians
from homunculus.eval.data import collect
from homunculus.eval.runner import ModelSpec, parsed, read
from homunculus.eval.settings import Setting
from readers import pages, tiny_reader
from vlms import tiny

SETTINGS = [
    Setting.parse(name) for name in ("grid/query/24", "dag/query/24", "foveated/oracle/24", "foveated:off=2/query/24")
]
CPU = {"device": "cpu", "processor": "somebody", "cores": 2, "commit": "abc"}
GPU = CPU | {"device": "a GPU"}


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    return collect([str(pages(tmp_path_factory.mktemp("data")))])[:5]  # about two pages


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> ModelSpec:
    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return ModelSpec(weights=str(weights), language=str(language), max_new_tokens=4)


@pytest.fixture(scope="module")
def backend(spec):
    return spec.load()


def test_every_setting_is_timed_in_rounds_and_a_cut_off_file_goes_on(backend, items, tmp_path):
    path = measure(backend, items, SETTINGS, tmp_path / "costs.jsonl", CPU)
    rows = parsed(path)
    assert [row["method"] for row in rows] == ["grid/query"] * ROUNDS + ["dag/query"] * ROUNDS
    assert all(row["ms"] > 0 and row["n"] == 5 and row["dataset"] == "funsd" for row in rows)
    whole = path.read_text()
    path.write_text(whole[:-20])  # as a kill may leave it
    assert len(parsed(path)) == 2 * ROUNDS - 1
    before = path.read_text().splitlines()[: 2 * ROUNDS - 1]
    measure(backend, items, SETTINGS, path, CPU)
    assert path.read_text().splitlines()[:-1] == before and len(parsed(path)) == 2 * ROUNDS
    measure(backend, items, SETTINGS, path, CPU)
    assert len(parsed(path)) == 2 * ROUNDS
    found = medians(path)
    assert found["funsd", "grid/query", 24] == sorted(row["ms"] for row in rows[:ROUNDS])[ROUNDS // 2]
    assert conditions(path) == "5 questions of funsd at once, on 2 cores of somebody, commit abc"
    with pytest.raises(InputError, match="times of 2 cores of somebody, not of a GPU"):
        measure(backend, items, SETTINGS, path, GPU)
    with pytest.raises(InputError, match="5 questions of funsd, not of 3"):
        measure(backend, items[:3], SETTINGS, path, CPU)
    assert len(parsed(path)) == 2 * ROUNDS and medians(tmp_path / "nothing.jsonl") == {}


def test_a_gpu_meets_every_shape_before_it_is_timed(backend, items, tmp_path, monkeypatch):
    """The second time a shape comes it is captured: neither that nor what went before counts."""
    asked, first = [], backend.first_token
    monkeypatch.setattr(
        backend, "first_token", lambda samples, setting: asked.append(str(setting)) or first(samples, setting)
    )
    measure(backend, items, SETTINGS[:1], tmp_path / "costs.jsonl", GPU)
    assert len(asked) == WARM + ROUNDS and len(parsed(tmp_path / "costs.jsonl")) == ROUNDS


def test_nothing_is_known_of_a_page_before_the_clock_runs(backend, items, monkeypatch):
    """Every round reads the lines again, from pages that were opened anew; an evaluation opens them once."""
    samples, opened, read_, clocks = [EvalSample(item, item) for item in items], [], [], []
    first, recognizer, timed = backend.reader.open, backend.reader.recognizer, backend._timed

    class Counting:
        height = recognizer.height

        def __call__(self, strips, widths):
            read_.append((len(strips), bool(clocks)))
            return recognizer(strips, widths)

    def noted(*args):
        clocks.append(True)
        found = timed(*args)
        clocks.clear()
        return found

    monkeypatch.setattr(backend.reader, "open", lambda image: opened.append(image) or first(image))
    monkeypatch.setattr(backend.reader, "recognizer", Counting())
    monkeypatch.setattr(backend, "_timed", noted)
    setting, counts = Setting.parse("dag/information/200"), []
    for _ in range(2):
        backend.first_token(samples, setting)
        counts.append(sum(count for count, _ in read_))
        assert all(inside for _, inside in read_), "a line was read before the clock ran"
        read_.clear()
    assert len(opened) == 4 and len(set(opened)) == 2 and counts[0] == counts[1] > 0
    list(backend.answers(samples, [setting, Setting.parse("grid/query/24")]))
    assert len(opened) == 4


def test_answers_end_at_their_first_token(backend, items, monkeypatch):
    lengths, reply = [], backend.reader.reply

    def noted(pages, glances, config, **how):
        lengths.append(config.max_new_tokens)
        return reply(pages, glances, config, **how)

    monkeypatch.setattr(backend.reader, "reply", noted)
    for setting in SETTINGS[:2]:
        backend.first_token([EvalSample(item, item) for item in items], setting)
    assert lengths == [1, 1]


def test_a_wrapped_model_is_timed_too(items, tmp_path):
    tiny("llava", tmp_path / "model")
    backend = ModelSpec(model=str(tmp_path / "model"), where="after").load()
    path = measure(
        backend, items[:1], [Setting.parse("grid/query/12"), Setting.parse("fastv/12")], tmp_path / "costs.jsonl", CPU
    )
    assert {row["method"] for row in parsed(path)} == {"grid/query", "fastv"}


def test_the_command_times_what_it_asked(items, spec, homunculus, tmp_path, monkeypatch):
    loaded, load = [], ModelSpec.load
    monkeypatch.setattr(ModelSpec, "load", lambda self, *share: loaded.append(self) or load(self, *share))
    words = ["eval", items[0].image.parents[3], "--allocators", "grid", "--budgets", "16", "--limit", 2, "--time", 1]
    code, _, _ = homunculus(*words, "--out", tmp_path, "--weights", spec.weights, "--language", spec.language)
    assert code == 0 and len(read(tmp_path / "results.jsonl")) == 2
    assert len(loaded) == 1, "the model is loaded again to be timed"
    assert [row["n"] for row in parsed(tmp_path / "costs.jsonl")] == [1] * ROUNDS
    assert "1 question of funsd at once" in (tmp_path / "report.md").read_text()
