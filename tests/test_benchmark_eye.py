"""The evaluation of the eye: what counts as found, the same looks as `Eye` gives, the command from end to end."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import eye
import eye_data as data
from homunculus import CellTree, Eye, Selection
from homunculus.eval.metrics import ratio, resamples
from homunculus.train.tasks.selections import nearest

LINES = [(60, 130 + 30 * line, 230, 152 + 30 * line) for line in range(22)]
AMOUNTS = [(400, 130 + 30 * line, 500, 152 + 30 * line) for line in range(22)]


class FakeScout:
    """Finds the cell whose number is the length of the question."""

    def page(self, scene):
        return scene.tree

    def ask(self, page, scene, questions):
        fine = torch.full((len(questions), *page.shapes[0]), 0.01)
        for q, text in enumerate(questions):
            fine[q].view(-1)[7 * len(text) % fine[q].numel()] = 1
        return page.lift(fine, "max")

    def learned(self, scene, page=None):
        return self.ask(scene.tree, scene, [""])

    def __call__(self, scene, questions):
        return self.ask(scene.tree, scene, questions)


def question(*boxes, text="What?", together=False, sort="total"):
    return data.Question(f"q{len(text)}_{sort}", text, np.array(boxes, dtype=float), together, sort)


def painted(boxes, size=40):
    canvas = np.zeros((size, size), dtype=bool)
    for x0, y0, x1, y1 in boxes:
        canvas[y0:y1, x0:x1] = True
    return canvas


@st.composite
def boxes(draw):
    (x0, x1), (y0, y1) = (sorted(draw(st.lists(st.integers(0, 40), min_size=2, max_size=2, unique=True))) for _ in "xy")
    return x0, y0, x1, y1


@given(st.lists(boxes(), max_size=12), boxes())
def test_coverage_is_what_counting_pixels_gives(cells, box):
    inside = painted([box])
    expected = (painted(cells) & inside).sum() / inside.sum()
    chosen = np.array(cells, dtype=float).reshape(-1, 4)
    assert data.covered(chosen, np.array(box, dtype=float)) == pytest.approx(expected)


@pytest.mark.parametrize(("height", "level"), [(5, 0), (12, 0), (23.9, 0), (24, 1), (47, 1), (48, 2), (100, 3)])
def test_taller_text_may_be_read_from_coarser_cells(height, level):
    assert data.readable_level(np.array([0, 0, 10, height])) == level


def test_one_of_several_boxes_is_enough_unless_they_are_one_answer():
    left, right = (0, 0, 32, 20), (64, 0, 96, 20)
    cells, levels = np.array([[0.0, 0, 32, 32]]), np.zeros(1)
    assert data.found(cells, levels, question(left, right))
    assert not data.found(cells, levels, question(left, right, together=True))
    assert data.found(cells, levels, question(left, (28, 0, 40, 20), together=True))  # 36 of 44
    assert not data.found(cells, levels + 1, question(left, right))  # too coarse for 20 pixels


@pytest.mark.parametrize("allocator", ["dag", "foveated"])
def test_the_oracle_finds_nearly_everything(page, allocator):
    scene = data.scene_of(page)
    questions = [question(box, text="x" * i) for i, box in enumerate(LINES + AMOUNTS)]
    way = data.oracle_way(scene.tree, questions)
    for budget in eye.BUDGETS:
        selection = data.choose(scene, allocator, "oracle", way, budget)
        assert data.hits(selection, questions).mean() >= 0.95


@pytest.mark.parametrize("allocator", ["dag", "foveated"])
@pytest.mark.parametrize("method", ["query", "opponent", "saliency", "information"])
def test_each_method_looks_as_the_eye_does(page, allocator, method):
    scene, scout = data.scene_of(page), FakeScout()
    questions = [question(LINES[0], text=text) for text in ("How much?", "What stands at the bottom left?")]
    way = data.ways(scene, questions, scout)[method]
    chosen = data.choose(scene, allocator, method, way, 64).indices
    for q, asked in enumerate(questions):
        known = asked.text if method in ("query", "opponent") else ""
        expected = Eye(allocator, method, 64, scout=scout).look(page, known).selection.indices[0]
        assert torch.equal(chosen[min(q, len(chosen) - 1)], expected)


def test_the_methods_that_know_no_question_look_alike_at_all(page):
    ways = data.ways(
        data.scene_of(page), [question(LINES[0], text=text) for text in ("a?", "At the top?")], FakeScout()
    )
    assert set(ways) == set(eye.METHODS)
    rows = {method: len(way.relevance) for method, way in ways.items()}
    assert all(rows[method] == 1 for method in data.QUERY_FREE if method != "random")
    assert torch.equal(ways["centre"].fixation, torch.tensor([[[350.0, 480.0]]], dtype=torch.float64))


def test_identical_looks_overlap_wholly_and_disjoint_ones_not_at_all():
    tree = CellTree(256, 256)
    first = tree.at(0).start
    rows = [[0, first, first + 1], [0, first, first + 1], [0, first + 2, -1], [0, first, first + 2], [0, 1, -1]]
    selection = Selection.of(tree, torch.tensor(rows))
    shared = data.overlaps(selection, tree, [(0, 1), (0, 2), (0, 3), (4, 4)])
    assert shared.tolist() == [1, 0, pytest.approx(1 / 3)]  # the last two chose no finest cell


def test_distant_places_lie_apart_in_at_least_one_direction():
    here = np.array([100.0, 100, 200, 120])
    for there, apart in (((100, 300, 200, 320), True), ((100, 240, 200, 260), False), ((90, 119, 990, 140), False)):
        assert data.far_apart(here, np.array(there, dtype=float), 1000, 1000) == apart


def test_nearest_cells_are_around_the_point_in_tree_order():
    tree = CellTree(640, 640)
    selection = nearest(tree, torch.tensor([[320.0, 320.0], [0.0, 0.0]]), 0, 4)
    assert selection.boxes[0].tolist() == [[x, y, x + 32, y + 32] for y in (288, 320) for x in (288, 320)]
    assert selection.boxes[1, 0].tolist() == [0, 0, 32, 32]
    assert nearest(tree, torch.zeros(1, 2), 1, 273).indices.shape == (1, 100)


def test_intervals_hold_the_figure_and_pairs_that_never_differ_have_none():
    draws, hits, asked = resamples(30), np.arange(30) % 5, np.full(30, 5)
    figure = ratio(hits, asked, draws)
    assert figure["low"] < figure["value"] == 0.4 < figure["high"]
    assert figure == ratio(hits, asked, resamples(30))
    assert ratio(hits - hits, asked, draws) == {"value": 0, "low": 0, "high": 0}


def test_a_folder_without_data_is_said_in_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        eye.main(["--data", str(tmp_path), "--out", str(tmp_path / "eye.json")])
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and said.count("\n") == 1
    assert str(tmp_path) in said and "sroie/val" in said
    assert not (tmp_path / "eye.json").exists()


@pytest.fixture
def folder(tmp_path, page):
    """Two pages in the form of sroie, a company and a total on each."""
    home = tmp_path / "sroie" / "val"
    (home / "images").mkdir(parents=True)
    questions = []
    for name in ("a", "b"):
        page.save(home / "images" / f"{name}.webp", lossless=True)
        common = {"image": f"images/{name}.webp", "width": 700, "height": 960, "answers": ["x"]}
        asked = {
            "company": ("Who?", [LINES[0]]),
            "total": ("How much?", [LINES[10], AMOUNTS[20]]),
            "date": ("When?", None),
        }
        for sort, (text, where) in asked.items():
            row = common | {"qid": f"{name}_{sort}", "question": text}
            questions.append(row | ({"answer_boxes": where} if where else {}))
    (home / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    return tmp_path


def figures_of(folder, *more):
    out = folder / "eye.json"
    eye.main(["--data", str(folder), "--out", str(out), *more])
    return json.loads(out.read_text())


def without_times(results):
    return {key: value for key, value in results.items() if key not in ("seconds", "loading_ms")}


def test_the_command_from_end_to_end(folder, monkeypatch, capsys):
    fakes = {"scout": FakeScout()}
    monkeypatch.setattr(eye, "load", lambda what, args, results: fakes[what])
    results = figures_of(folder, "--parts", "found,overlap")
    assert without_times(results) == without_times(figures_of(folder, "--parts", "found,overlap"))
    rows = {(r["allocator"], r["method"], r["budget"]): r for r in results["found"]["rows"]}
    assert len(rows) == len(eye.LOOKS) * len(eye.BUDGETS) and all(row["n"] == 4 for row in rows.values())
    assert rows["dag", "oracle", 273]["value"] == rows["foveated", "oracle", 64]["value"] == 1
    assert {row["sort"] for row in results["found"]["sorts"]} == {"company", "total"}
    shared = {(row["allocator"], row["budget"]): row for row in results["overlap"]["rows"]}
    assert len(shared) == 9 and shared["foveated", 273]["n"] == 2 and 0 <= shared["foveated", 64]["value"] < 1
    assert "commit" in results["machine"] and "oracle" in capsys.readouterr().out


def test_the_speed_part_times_every_stage(monkeypatch, tmp_path):
    fakes = {"scout": FakeScout(), "encoder": lambda cells, places: cells.float().mean()}
    monkeypatch.setattr(eye, "load", lambda what, args, results: fakes[what])
    monkeypatch.setattr(data, "speed_pages", lambda folder, split: {"small": data.text_page(320, 240)})
    eye.main(["--parts", "speed", "--out", str(tmp_path / "eye.json")])
    rows = json.loads((tmp_path / "eye.json").read_text())["speed"]["rows"]
    assert [row["what"] for row in rows] == ["scout, page", "scout, question", "encoder, 273 cells"]
    assert all(row["ms"] > 0 for row in rows)


@pytest.mark.gpu
def test_the_way_through_is_timed_by_stage():
    class OnDevice(FakeScout):
        def ask(self, page, scene, questions):
            return super().ask(page.to("cpu"), scene, questions).to(page.device)

    pixels = torch.stack([data.text_page(512, 512, seed) for seed in range(2)]).cuda()
    times = {row["what"]: row["ms"] for row in eye.way_through(OnDevice(), pixels, repeat=3)}
    assert list(times) == [*eye.STAGES, "all"] and times["all"] > 0
