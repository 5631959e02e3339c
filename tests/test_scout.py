"""The scout, weights on disk, and the eye that uses both."""

import shutil
import socket
import time
import weakref
from pathlib import Path

import pytest
import torch

import homunculus as hm
from homunculus import eye as eyes
from homunculus import reader
from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.fixation import peak
from homunculus.reader import Encoder, Scout, load_encoder, load_scout, weights
from homunculus.reader.scout import MAPS, MOST, STRIDE, grid_of, over_tree, small_copy
from homunculus.relevance import Scene, query, relevance_of
from small import scene_of, small_encoder

INVOICE = Path(__file__).parents[1] / "examples" / "invoice.png"


def small_scout(seed: int = 0) -> Scout:
    torch.manual_seed(seed)
    return Scout(width=96, depth=4, heads=3, joint=48, joint_depth=1, question_depth=1).eval()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return small_encoder()


@pytest.fixture(scope="module")
def scout() -> Scout:
    return small_scout()


@pytest.fixture(scope="module")
def shipped() -> Scout:
    return load_scout()


@pytest.fixture(scope="module")
def invoice() -> Scene:
    pixels = hm.load_image(INVOICE)
    return Scene(pixels[None], CellTree(*pixels.shape[1:]))


# -- scout -----------------------------------------------------------------------------------------------------


def test_the_scout_has_at_most_10_million_parameters():
    with torch.device("meta"):
        assert sum(p.numel() for p in Scout().parameters()) <= 10e6


def test_relevance_is_one_number_per_cell_and_a_parents_is_its_childrens_largest(scout):
    scene = scene_of(300, 420, pages=2)
    relevance = scout(scene, ["What is the total?", "Who signed?"])
    assert relevance.shape == (2, scene.tree.size) and (relevance >= 0).all() and torch.isfinite(relevance).all()
    below = scene.tree.children
    largest = torch.where(below >= 0, relevance[:, below.clamp(min=0)], -1.0).amax(2)
    inner = slice(0, scene.tree.inner)
    assert torch.equal(largest[:, inner], relevance[:, inner])


def test_many_questions_at_once_are_answered_as_one_by_one(scout):
    scene = scene_of(300, 420)
    questions = ["What is the total?", "", "Who signed the letter of the 14th of March, and where?", "x"]
    together = scout.ask(scout.page(scene), scene, questions)
    assert together.shape == (4, scene.tree.size)
    for row, question in enumerate(questions):
        torch.testing.assert_close(together[row : row + 1], scout(scene, [question]), rtol=0, atol=1e-5)
    assert (together[0] - together[2]).abs().max() > 1e-6, "the question has no say"


def test_several_pages_are_each_asked_their_own_question(scout):
    scene = scene_of(200, 300, pages=2)
    together = scout(scene, ["first?", "second?"])
    for row, question in enumerate(["first?", "second?"]):
        alone = Scene(scene.pixels[row : row + 1], scene.tree)
        torch.testing.assert_close(together[row : row + 1], scout(alone, [question]), rtol=0, atol=1e-5)


def test_a_scene_is_looked_at_once_whatever_is_asked():
    scout, calls = small_scout(), []
    scout.stem.register_forward_hook(lambda *given: calls.append(1))
    scene = scene_of(200, 300)
    for name in ("query", "learned", "opponent"):
        for question in ("Who?", "When?"):
            relevance_of(name, scene, [question], scout)
    assert len(calls) == 1
    relevance_of("query", scene_of(200, 300), ["Who?"], scout)
    assert len(calls) == 2
    features = weakref.ref(scout.page(scene))
    del scene
    assert features() is None, "pages are kept longer than their scenes"


def test_an_empty_and_a_very_long_question_are_answered(scout):
    scene = scene_of(200, 300)
    empty, foreign = scout(scene, [""]), scout(scene, ["左上"])
    assert torch.isfinite(empty).all() and torch.equal(empty, foreign)
    assert torch.isfinite(scout(scene, ["why " * 500])).all()


@pytest.mark.parametrize("cell", [32, 28])
@pytest.mark.parametrize(
    "size", [(1, 1), (1, 3), (33, 31), (40, 3000), (3000, 40), (1500, 2000), (8, 80_000), (80_000, 8)]
)
def test_pages_of_any_size_and_cells_of_any_side_have_a_relevance(scout, size, cell):
    scene = scene_of(*size, cell=cell)
    small = small_copy(scene.levels)
    height, width = small.shape[2:]
    assert small.dtype == torch.uint8 and height % STRIDE == 0 and width % STRIDE == 0
    assert 1 <= height * width // STRIDE**2 <= MOST
    for relevance in (scout(scene, ["Who?"]), scout.learned(scene)):
        assert relevance.shape == (1, scene.tree.size) and torch.isfinite(relevance).all() and (relevance >= 0).all()


@pytest.mark.parametrize("cell", [32, 28, 14])
@pytest.mark.parametrize("size", [(1000, 1000), (500, 1400), (2300, 1700)])
def test_what_is_found_on_the_map_is_found_there_on_the_page(size, cell):
    scene = Scene(torch.zeros(1, 3, *size, dtype=torch.uint8), CellTree(*size, cell))
    rows, columns = (side // STRIDE for side in small_copy(scene.levels).shape[2:])
    for row, column in ((0, 0), (rows // 2, columns // 3), (rows - 2, columns - 2)):
        logits = torch.full((1, rows, columns), -9.0)
        logits[0, row, column] = 3.0
        at = peak(scene.tree, over_tree(scene, logits))[0, 0]
        x, y = (column + 0.5) * size[1] / columns, (row + 0.5) * size[0] / rows
        assert abs(float(at[0]) - x) <= 40 and abs(float(at[1]) - y) <= 40


@pytest.mark.parametrize("size", [(1000, 762), (1792, 1385), (97, 501), (20, 20)])
def test_every_cell_takes_the_most_likely_place_that_lies_in_it(size):
    height, width = size
    scene = Scene(torch.zeros(1, 3, height, width, dtype=torch.uint8), CellTree(height, width))
    rows, columns = grid_of(height, width)
    logits = torch.randn(1, rows, columns, generator=torch.Generator().manual_seed(1))
    found = scene.tree.grid(over_tree(scene, logits), 0)[0]
    chance = logits[0].sigmoid()
    for row in range(found.shape[0]):
        for column in range(found.shape[1]):
            top, left = row * 32, column * 32
            bottom, right = min(top + 32, height), min(left + 32, width)
            inside = chance[
                int((top + 0.5) * rows / height) : int((bottom - 0.5) * rows / height) + 1,
                int((left + 0.5) * columns / width) : int((right - 0.5) * columns / width) + 1,
            ]
            assert found[row, column] == pytest.approx(float(inside.max()))


def test_the_scout_says_the_same_twice(scout):
    first, second = (scout(scene_of(200, 300), ["Who?"]) for _ in range(2))
    assert torch.equal(first, second)


# -- weights ---------------------------------------------------------------------------------------------------


def test_int8_keeps_numbers_to_half_a_step_of_each_rows_largest():
    torch.manual_seed(0)
    value = torch.randn(50, 3, 40) * torch.logspace(-6, 3, 50)[:, None, None]
    value[7] = 0
    whole, scale = weights.quantised(value)
    most = value.abs().amax((1, 2), keepdim=True)
    assert whole.dtype == torch.int8 and scale.shape == (50, 1, 1)
    assert ((whole.float() * scale - value).abs() <= most * (1 / 254) * (1 + 1e-4)).all()


def test_a_flipped_byte_is_refused_in_one_sentence(tmp_path):
    for name in ("scout.safetensors", "hashes.json"):
        shutil.copy(weights.SHIPPED / name, tmp_path / name)
    assert isinstance(load_scout(tmp_path), Scout)
    with (tmp_path / "scout.safetensors").open("r+b") as file:
        file.seek(5_000_000)
        byte = file.read(1)[0]
        file.seek(5_000_000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(InputError, match=r"scout\.safetensors is damaged") as caught:
        load_scout(tmp_path)
    assert "\n" not in str(caught.value)


def test_missing_broken_and_foreign_weights_are_named(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"no weights scout\.safetensors in"):
            load_scout(folder)
    (tmp_path / "scout.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(InputError, match="cannot read weights from"):
        load_scout(tmp_path)
    weights.save(small_encoder(), tmp_path / "scout.safetensors", {})
    for model in (small_scout(), Scout(width=96, depth=4, heads=3, joint=96, joint_depth=1, question_depth=1)):
        with pytest.raises(InputError, match="weights of another network than Scout"):
            weights.load(model, tmp_path / "scout.safetensors")
    with pytest.raises(InputError, match="weights of another network than Scout") as caught:
        load_scout(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_shipped_weights_are_small_quick_to_load_and_need_no_network(monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("the network is used")

    files = [weights.SHIPPED / f"{name}.safetensors" for name in ("encoder", "scout")]
    assert sum(file.stat().st_size for file in files) <= 36e6
    monkeypatch.setattr(socket, "socket", refuse)
    start = time.process_time()
    encoder, scout = load_encoder(), load_scout()
    assert time.process_time() - start < 4
    for model in (encoder, scout):
        assert not model.training and not any(p.requires_grad for p in model.parameters())
        assert all(torch.isfinite(p).all() for p in model.parameters())


def test_what_is_not_in_the_weights_is_loaded_as_it_is_made():
    made = dict(small_encoder().named_buffers())
    loaded = dict(load_encoder().named_buffers())
    assert made.keys() == loaded.keys()
    for name, value in loaded.items():
        torch.testing.assert_close(value, made[name])


# -- the shipped scout, and the eye that uses it ---------------------------------------------------------------

FIELDS = {  # question: box of its answer on examples/invoice.png, see draw_invoice.py
    "What is the total amount?": (990, 1126, 1130, 1160),
    "What is the date of the invoice?": (960, 292, 1130, 320),
    "What is the name of the company?": (110, 90, 500, 145),
}


def away(point: torch.Tensor, box: tuple[int, int, int, int]) -> float:
    low, high = torch.tensor(box[:2]), torch.tensor(box[2:])
    return float((torch.maximum(low - point, point - high)).clamp(min=0).norm())


def test_the_shipped_scout_finds_fields_of_an_invoice(shipped, invoice):
    peaks = {q: peak(invoice.tree, query(invoice, [q], shipped))[0, 0] for q in FIELDS}
    found = [away(peaks[question], box) <= 100 for question, box in FIELDS.items()]
    assert sum(found) >= 2, peaks


def test_questions_about_distant_fields_look_at_different_cells(invoice):
    eye = hm.Eye("foveated", "query", 150)
    chosen = []
    for question in list(FIELDS)[:2]:
        selection = eye.look(invoice.pixels[0], question).selection
        chosen.append(set(selection.indices[0][selection.levels[0] == 0].tolist()))
    assert all(chosen)
    assert len(chosen[0] & chosen[1]) < 0.6 * min(map(len, chosen))


def test_query_without_a_scout_is_the_words_alone(page):
    for question in ("the footer", "Who signed?"):
        glance = hm.Eye(relevance="query", scout=False, budget=40).look(page, question)
        assert torch.equal(glance.relevance[None], query(glance.scene, [question]))
    scouted = hm.Eye(relevance="query", budget=40).look(page, "the footer")
    assert not torch.equal(scouted.relevance[None], query(scouted.scene, ["the footer"]))


def test_learned_ignores_the_question(page):
    eye = hm.Eye(relevance="learned", budget=40)
    looks = [eye.look(page, question) for question in ("", "the footer", "What is the heading?")]
    for glance in looks:
        assert torch.equal(glance.relevance, looks[0].relevance) and glance.relevance.std() > 0
        assert glance.selection.boxes.shape == (1, 40, 4)
    for scout in (False, lambda scene, questions: torch.ones(1, scene.tree.size)):
        with pytest.raises(InputError, match="'learned' needs a scout"):
            hm.Eye(relevance="learned", scout=scout).look(page, "Who?")


def test_a_scout_of_ones_own_is_used_where_there_is_a_question(page):
    asked = []

    def corner(scene: Scene, questions: list[str]) -> torch.Tensor:
        asked.append(questions)
        fine = torch.full((1, *scene.tree.shapes[0]), 1e-6)
        fine[:, -1, -1] = 1
        return scene.tree.lift(fine, how="max")

    for name in ("query", "opponent"):
        eye = hm.Eye(relevance=name, scout=corner, budget=40)
        glance = eye.look(page, "What is it?")
        last = glance.tree.size - 1
        assert last in glance.selection.indices[0].tolist() and glance.relevance.argmax() in (
            last,
            *glance.tree.parent.tolist(),
        )
        eye.look(page)
    assert asked == [["What is it?"]] * 2


def test_relevances_without_a_question_load_no_scout(page, monkeypatch):
    def refuse():
        raise AssertionError("the scout is loaded")

    monkeypatch.setattr(eyes, "shipped_scout", refuse)
    for name in ("information", "saliency"):
        hm.Eye(relevance=name, budget=9).look(page, "Who?")
    hm.Eye(budget=9).look(page)
    hm.Eye(budget=9, scout=False).look(page, "Who?")
    with pytest.raises(AssertionError):
        hm.Eye(budget=9).look(page, "Who?")


def test_the_reader_has_these_public_names():
    networks = {"Encoder", "LineFinder", "Recognizer", "Scout", "VisionEncoder"}
    loaders = {"encoder", "finder", "page_reader", "reader", "recognizer", "scout", "vision"}
    assert set(reader.__all__) == networks | {f"load_{name}" for name in loaders}
    assert all(callable(getattr(reader, name)) for name in reader.__all__)


def test_a_page_that_is_asked_about_without_end_remembers_the_last_questions(scout):
    seen = Scene(torch.zeros(1, 3, 64, 64, dtype=torch.uint8), CellTree(64, 64))
    page = scout.page(seen)
    questions = [f"What is number {n}?" for n in range(MAPS + 9)]
    found = scout.found(page, questions)
    assert len(found) == len(questions) and list(page.maps) == questions[-MAPS:]
    assert torch.allclose(scout.found(page, questions[:1]), found[:1], atol=1e-4)
