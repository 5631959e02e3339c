"""What a way costs, measured alone: lines for each round, nothing known of a page beforehand, one device a file."""

import pytest

from homunculus import InputError
from homunculus.eval.asker import Ask
from homunculus.eval.costs import ROUNDS, WARM, measure, medians, told
from homunculus.eval.data import collect
from homunculus.eval.runner import Who, parsed, read
from homunculus.eval.ways import Way
from readers import pages, tiny_reader
from vlms import tiny

WAYS = [Way.of(name) for name in ("grid/query/24", "visionzip/24", "foveated/oracle/24", "foveated:off=2/query/24")]
CPU = {"device": "cpu", "processor": "somebody", "cores": 2, "commit": "abc"}
GPU = CPU | {"device": "a GPU"}


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    return collect([str(pages(tmp_path_factory.mktemp("data")))])[:5]  # about two pages


@pytest.fixture(scope="module")
def who(tmp_path_factory) -> Who:
    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return Who(weights=str(weights), language=str(language), most=4)


@pytest.fixture(scope="module")
def asker(who):
    return who.asker()


def test_every_way_is_timed_in_rounds_and_a_cut_off_file_goes_on(asker, items, tmp_path):
    path = measure(asker, items, WAYS, tmp_path / "costs.jsonl", CPU)
    rows = parsed(path)
    assert [row["method"] for row in rows] == ["grid/query"] * ROUNDS + ["visionzip"] * ROUNDS
    assert all(row["ms"] > 0 and row["n"] == 5 and row["dataset"] == "funsd" for row in rows)
    whole = path.read_text()
    path.write_text(whole[:-20])  # as a kill may leave it
    assert len(parsed(path)) == 2 * ROUNDS - 1
    before = path.read_text().splitlines()[: 2 * ROUNDS - 1]
    measure(asker, items, WAYS, path, CPU)
    assert path.read_text().splitlines()[:-1] == before and len(parsed(path)) == 2 * ROUNDS
    measure(asker, items, WAYS, path, CPU)
    assert len(parsed(path)) == 2 * ROUNDS
    found = medians(path)
    assert found["funsd", "grid/query", 24] == sorted(row["ms"] for row in rows[:ROUNDS])[ROUNDS // 2]
    assert told(path) == "5 questions of funsd at once, on 2 cores of somebody, commit abc"
    with pytest.raises(InputError, match="times of 2 cores of somebody, not of a GPU"):
        measure(asker, items, WAYS, path, GPU)
    with pytest.raises(InputError, match="5 questions of funsd, not of 3"):
        measure(asker, items[:3], WAYS, path, CPU)
    assert len(parsed(path)) == 2 * ROUNDS and medians(tmp_path / "nothing.jsonl") == {}


def test_a_gpu_meets_every_shape_before_it_is_timed(asker, items, tmp_path, monkeypatch):
    """The second time a shape comes it is captured: neither that nor what went before counts."""
    asked, first = [], asker.first_token
    monkeypatch.setattr(asker, "first_token", lambda asks, way: asked.append(str(way)) or first(asks, way))
    measure(asker, items, WAYS[:1], tmp_path / "costs.jsonl", GPU)
    assert len(asked) == WARM + ROUNDS and len(parsed(tmp_path / "costs.jsonl")) == ROUNDS


def test_nothing_is_known_of_a_page_before_the_clock_runs(asker, items, monkeypatch):
    """A published method pays for its look at the whole page every time, though an evaluation takes it in once."""
    asks, taken = [Ask(item, item) for item in items], []
    first = asker.bases._taken_in
    monkeypatch.setattr(asker.bases, "_taken_in", lambda scene: taken.append(scene) or first(scene))
    for _ in range(2):
        asker.first_token(asks, WAYS[1])
    assert len(taken) == 4 and len(set(taken)) == 4
    taken.clear()
    list(asker.answers(asks, [WAYS[1], Way.of("hired/24")]))
    assert len(taken) <= 2


def test_answers_end_at_their_first_token(asker, items, monkeypatch):
    lengths, reply = [], asker.reader.reply

    def noted(*args, **how):
        lengths.append(how["most"])
        return reply(*args, **how)

    monkeypatch.setattr(asker.reader, "reply", noted)
    for way in WAYS[:2]:
        asker.first_token([Ask(item, item) for item in items], way)
    assert lengths == [1, 1]


def test_a_wrapped_model_is_timed_too(items, tmp_path):
    tiny("llava", tmp_path / "model")
    asker = Who(model=str(tmp_path / "model"), where="after").asker()
    path = measure(asker, items[:1], [Way.of("grid/query/12"), Way.of("fastv/12")], tmp_path / "costs.jsonl", CPU)
    assert {row["method"] for row in parsed(path)} == {"grid/query", "fastv"}


def test_the_command_times_what_it_asked(items, who, homunculus, tmp_path, monkeypatch):
    loaded, load = [], Who.asker
    monkeypatch.setattr(Who, "asker", lambda self, *share: loaded.append(self) or load(self, *share))
    words = ["eval", items[0].image.parents[3], "--allocators", "grid", "--budgets", "16", "--limit", 2, "--time", 1]
    code, _, _ = homunculus(*words, "--out", tmp_path, "--weights", who.weights, "--language", who.language)
    assert code == 0 and len(read(tmp_path / "results.jsonl")) == 2
    assert len(loaded) == 1, "the model is loaded again to be timed"
    assert [row["n"] for row in parsed(tmp_path / "costs.jsonl")] == [1] * ROUNDS
    assert "1 question of funsd at once" in (tmp_path / "report.md").read_text()
