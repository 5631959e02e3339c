"""An image and a question in, a glance out: what users call, on real files."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import homunculus as hm
from homunculus.allocators import ALLOCATORS
from homunculus.cells import CellTree
from homunculus.errors import BatchError, ImageError, InputError
from homunculus.fixation import peak
from homunculus.relevance import Scene, query

INVOICE = Path(__file__).parents[1] / "examples" / "invoice.png"


def test_the_public_names_are_there():
    for name in (
        "CellTree",
        "Selection",
        "allocate",
        "list_allocators",
        "list_relevances",
        "Eye",
        "Glance",
        "load_image",
    ):
        assert name in hm.__all__ and hasattr(hm, name)
    assert {"foveated", "dag", "uniform", "adaptive-stratified", "pseudo-logpolar"} <= set(hm.list_allocators())
    assert {"information", "saliency", "query", "learned", "opponent"} <= set(hm.list_relevances())


@pytest.mark.parametrize("allocator", hm.list_allocators())
def test_every_allocator_looks_and_its_json_says_what_the_design_says(allocator, page, tmp_path):
    glance = hm.Eye(allocator, budget=120).look(page, "What is the total at the bottom right?")
    glance.save(tmp_path / "look.json")
    data = json.loads((tmp_path / "look.json").read_text())
    assert set(data) == {"image", "question", "allocator", "budget", "fixations", "coverage", "tokens"}
    assert data["image"] == {"width": 700, "height": 960} and data["allocator"] == allocator and data["budget"] == 120
    assert 0 < data["coverage"] <= 1 and len(data["fixations"][0]) == 2
    assert len(data["tokens"]) == 120 if allocator != "uniform" else 100 < len(data["tokens"]) <= 120
    for token in data["tokens"]:
        x0, y0, x1, y1 = token["box"]
        assert 0 <= x0 < x1 <= 700 and 0 <= y0 < y1 <= 960 and token["relevance"] >= 0 and token["level"] >= 0
    assert glance.patches().shape == (len(data["tokens"]), 3, 32, 32)
    assert glance.reconstruct().shape == (3, 960, 700)


def test_the_words_of_the_question_move_the_gaze(page):
    eye = hm.Eye()
    places = {
        "What is in the top left corner?": (0.25, 0.2),
        "Who stamped it at the bottom right?": (0.85, 0.9),
        "What does the header say?": (0.5, 0.1),
    }
    for question, (x, y) in places.items():
        at = eye.look(page, question).fixations[0] / torch.tensor([700, 960])
        assert abs(float(at[0]) - x) < 0.45 and abs(float(at[1]) - y) < 0.2


def test_the_places_that_a_question_names_count_once(page):
    """They are in the relevance `query` already: its peak is where the eye looks, also among several images."""

    def scout(scene, questions):  # a hundred times surer of a place that is not named: elsewhere is a twentieth
        found = torch.ones(len(questions), scene.tree.size)
        found[:, scene.tree.locate(torch.tensor([[[100.0, 100.0]]]), 0)[0]] = 100
        return found

    eye, pixels = hm.Eye(relevance="query", budget=40, scout=scout), hm.load_image(page)
    for question in ("What is at the bottom right?", "What does the footer say?"):
        glance = eye.look(page, question)
        at = peak(glance.tree, glance.relevance[None])[0]
        assert torch.equal(glance.fixations, at) and glance.fixations.tolist() == [[112.0, 112.0]]
        both = eye.choose(Scene(pixels.expand(2, -1, -1, -1), glance.tree), [question] * 2)
        assert torch.equal(both.indices[0], glance.selection.indices[0])
        flat = eye.look_for(eye.scene(pixels), [question], relevance=torch.ones(1, glance.tree.size))[0]
        named = query(glance.scene, [question])  # a relevance of one's own knows no words
        assert torch.equal(flat.fixations, peak(glance.tree, named)[0])


def test_fixations_can_be_told_counted_or_centred(page):
    eye = hm.Eye(budget=64)
    assert eye.look(page, fixation="centre").fixations.tolist() == [[350.0, 480.0]]
    assert eye.look(page, fixation=(10, 20)).fixations.tolist() == [[10.0, 20.0]]
    assert eye.look(page, fixation=[(10, 20), (600, 900)]).fixations.tolist() == [[10.0, 20.0], [600.0, 900.0]]
    assert eye.look(page, "the header", fixation="words").fixations[0].tolist() == pytest.approx([350, 72])
    assert torch.equal(eye.look(page, "any", fixation="words").fixations, eye.look(page, "any").fixations)
    assert eye.look(page, fixations=3).fixations.unique(dim=0).shape == (3, 2)
    for wrong in ("middle", (1, 2, 3), 7):
        with pytest.raises(InputError, match="fixation must be"):
            eye.look(page, fixation=wrong)
    with pytest.raises(InputError, match="lies outside its 700 x 960"):
        eye.look(page, fixation=(9999, 5))


def test_files_pdf_arrays_and_tensors_give_the_same_look(page, tmp_path):
    eye = hm.Eye(budget=64)
    expected = eye.look(page, "the footer").selection.boxes
    page.save(tmp_path / "page.png")
    array = np.asarray(page)
    for source in (tmp_path / "page.png", str(tmp_path / "page.png"), array, torch.tensor(array).permute(2, 0, 1)):
        assert torch.equal(eye.look(source, "the footer").selection.boxes, expected)
    page.save(tmp_path / "page.pdf", resolution=72)
    glance = eye.look(tmp_path / "page.pdf", "the footer", dpi=72)
    assert (glance.tree.width, glance.tree.height) == (700, 960)


def test_a_list_gives_each_what_it_gives_alone_and_mixed_sizes_are_fine(page):
    eye = hm.Eye("dag", budget=80)
    images = [page, page.resize((300, 200)), page.rotate(90, expand=True)]
    together = eye.look(images, ["top left", "", "footer"])
    for image, question, glance in zip(images, ["top left", "", "footer"], together, strict=True):
        alone = eye.look(image, question)
        assert torch.equal(glance.selection.indices, alone.selection.indices)
        assert torch.equal(glance.fixations, alone.fixations)


def test_a_corrupt_file_among_others_is_named_and_loses_none_of_them(page, tmp_path):
    page.save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "a.png").read_bytes()[:2000])
    page.save(tmp_path / "c.png")
    files = [tmp_path / "a.png", tmp_path / "broken.png", tmp_path / "c.png"]
    with pytest.raises(BatchError, match=r"1 of 3 images failed.*broken\.png") as caught:
        hm.Eye(budget=50).look(files, "What is it?")
    results = caught.value.results
    assert isinstance(results[1], ImageError)
    assert results[0].selection.boxes.shape == results[2].selection.boxes.shape == (1, 50, 4)
    with pytest.raises(BatchError, match="image 2 of 2"):
        hm.Eye().look([page, np.full((4, 4), np.nan)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"allocator": "gaze"}, "no allocator 'gaze'"),
        ({"relevance": "magic"}, "no relevance 'magic'"),
        ({"budget": 0}, "budget must be a whole number of at least 1, got 0"),
        ({"budget": 1.5}, "budget must be"),
        ({"cell": 0}, "cell must be"),
        ({"levels": -1}, "levels must be"),
        ({"fovae": 0.3}, "no option 'fovae'"),
        ({"allocator": "atlas", "segmenter": "scissors"}, "scissors"),
    ],
)
def test_a_wrong_eye_says_so_in_one_sentence(arguments, message, page):
    with pytest.raises(InputError, match=message):
        hm.Eye(**arguments).look(page)


def test_wrong_looks_are_named(page):
    eye = hm.Eye(budget=9)
    for arguments in ({"fixations": 2.5}, {"fixations": 0}, {"fixation": [[1, 2], [3]]}, {"fixation": {"x": 1}}):
        with pytest.raises(InputError):
            eye.look(page, **arguments)
    with pytest.raises(BatchError, match=r"1 of 2 images failed.*image 2 of 2: fixation .* lies outside") as caught:
        eye.look([page, np.zeros((20, 20), np.uint8)], fixation=(50, 50))
    assert caught.value.results[0].selection.boxes.shape == (1, 9, 4)


def test_questions_must_be_text_and_as_many_as_images(page):
    with pytest.raises(InputError, match="text"):
        hm.Eye().look(page, 5)
    with pytest.raises(InputError, match="text"):
        hm.Eye().look([page], None)
    with pytest.raises(InputError, match="question must be one text or a text for each of the 2 images"):
        hm.Eye().look([page, page], ["one", "two", "three"])


@pytest.mark.parametrize("size", [(1, 1), (30_000, 3), (2, 5_000), (33, 31)])
@pytest.mark.parametrize("allocator", ["foveated", "uniform", "frequency", "atlas"])
def test_extreme_shapes_can_be_looked_at_and_drawn(size, allocator, tmp_path):
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 255, (size[1], size[0], 3), dtype=np.uint8))
    glance = hm.Eye(allocator).look(image, "the first row")
    assert glance.selection.boxes.shape[1] <= min(273, glance.tree.size)
    glance.save(tmp_path / "look.png")
    assert Image.open(tmp_path / "look.png").width >= 720


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "CMYK", "I;16"])
def test_every_kind_of_pixel_can_be_looked_at(mode, page, tmp_path):
    small = page.resize((200, 300))
    image = (
        small.convert("L").convert("I").point(lambda v: v * 256).convert("I;16")
        if mode == "I;16"
        else small.convert(mode)
    )
    path = tmp_path / ("page.tif" if mode == "CMYK" else "page.png")
    image.save(path)
    assert hm.Eye(budget=20).look(path).selection.boxes.shape == (1, 20, 4)


def test_a_segmenter_may_be_any_function_and_return_an_array(page):
    halves = np.repeat([[0, 7]], 4, axis=0)
    eye = hm.Eye("atlas", budget=40, segmenter=lambda pixels: halves)
    assert eye.look(page).selection.boxes.shape == (1, 40, 4)


def test_trees_deeper_than_the_image_are_fine(page):
    glance = hm.Eye(levels=12, budget=60).look(page.resize((100, 90)), "the footer")
    assert glance.tree.levels == 12 and glance.selection.boxes.shape == (1, min(60, glance.tree.size), 4)
    assert torch.isfinite(glance.relevance).all()


def test_the_picture_shows_page_and_reconstruction_side_by_side(page, tmp_path):
    glance = hm.Eye(budget=64).look(page, "What is the heading?")
    glance.save(tmp_path / "look.png")
    picture = np.asarray(Image.open(tmp_path / "look.png").convert("RGB")).astype(int)
    assert picture.shape[1] > 1.4 * picture.shape[0] * 700 / 960
    gaze = (np.abs(picture - np.array([0xE4, 0x00, 0x7C])).sum(2) < 30).sum()
    assert gaze > 50, "the fixation is not marked"
    with pytest.raises(InputError, match="its ending must be"):
        glance.save(tmp_path / "look.doc")
    with pytest.raises(InputError, match="no folder"):
        glance.save(tmp_path / "nowhere" / "look.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["look.png"], "unfinished files are left behind"


def test_a_free_look_asks_no_scout(page):
    asked = []

    def scout(scene, questions):
        asked.extend(questions)
        return torch.rand(1, scene.tree.size)

    eye = hm.Eye(relevance="query", budget=30, scout=scout)
    free = eye.look(page)
    assert not asked and (free.relevance == 1).all() and free.fixations.tolist() == [[336.0, 464.0]]  # near the middle
    eye.look(page, "Who signed it?")
    assert asked == ["Who signed it?"]


class Written(TorchDispatchMode):
    """Counts the numbers that operations give while this lasts."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.count += sum(part.numel() for part in tree_leaves(out) if isinstance(part, torch.Tensor))
        return out


def test_work_grows_with_the_pixels_and_not_faster():
    counts = []
    for side in (512, 1024, 2048):
        pixels = torch.randint(0, 256, (3, side, side), dtype=torch.uint8)
        with Written() as written:
            hm.Eye().look(pixels)
        counts.append(written.count)
    assert counts[1] < 5 * counts[0] and counts[2] < 5 * counts[1], counts


MEMORY = """
import re, sys
import homunculus as hm
from homunculus.allocators import ALLOCATORS
from homunculus.cells import CellTree
glance = hm.Eye().look(sys.argv[1], "What is at the top left?", max_pixels=200_000_000)
assert glance.selection.boxes.shape == (1, 273, 4) and glance.tree.width * glance.tree.height == 100_000_000
glance.save(sys.argv[2])
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def test_a_100_megapixel_image_stays_under_2_gb(tmp_path):
    rng = np.random.default_rng(0)
    tile = rng.integers(0, 255, (500, 500, 3), dtype=np.uint8)
    Image.fromarray(np.tile(tile, (20, 20, 1))).save(tmp_path / "large.jpg", quality=60)
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path / "large.jpg", tmp_path / "look.png"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) * 1024 < 2e9
    assert (tmp_path / "look.png").exists()


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", hm.list_allocators())
def test_a_tensor_on_the_gpu_is_looked_at_there(allocator, page):
    pixels = hm.load_image(page)
    here, there = (hm.Eye(allocator, budget=120).look(p, "the footer") for p in (pixels, pixels.cuda()))
    assert there.selection.boxes.is_cuda and there.patches().is_cuda
    torch.testing.assert_close(there.relevance.cpu(), here.relevance, rtol=1e-3, atol=1e-4)
    assert there.selection.boxes.shape == here.selection.boxes.shape
    assert there.reconstruct().shape == (3, 960, 700) and there.picture().width > 720


@pytest.mark.parametrize("allocator", hm.list_allocators())
def test_several_questions_about_one_image_get_the_looks_that_each_would_get_alone(allocator, page):
    eye = hm.Eye(allocator, "query", 50, scout=False)
    scene = eye.scene(hm.load_image(page))
    questions = ["top left?", "What is it?", "bottom right?"]
    together = eye.look_for(scene, questions)
    for question, glance in zip(questions, together, strict=True):
        alone = eye.look_at(eye.scene(hm.load_image(page)), question)
        assert glance.question == question and torch.equal(glance.selection.boxes, alone.selection.boxes)
        assert torch.equal(glance.fixations, alone.fixations) and torch.equal(glance.relevance, alone.relevance)


@pytest.mark.parametrize("allocator", hm.list_allocators())
def test_several_images_get_the_cells_that_each_would_get_alone_where_the_rule_can(allocator, page):
    eye, pixels = hm.Eye(allocator, "query", 50, scout=False), hm.load_image(page)
    questions = ["What is at the top left?", "What is at the bottom right?"]
    scene = Scene(torch.stack((pixels, 255 - pixels)), CellTree(*pixels.shape[1:]))
    if not ALLOCATORS[allocator].batched:
        with pytest.raises(InputError, match="one image at a time"):
            eye.choose(scene, questions)
        return
    together = eye.choose(scene, questions)
    for row, question in enumerate(questions):
        alone = eye.look_at(eye.scene(scene.pixels[row]), question).selection
        assert torch.equal(together.boxes[row], alone.boxes[0])


SHIPPED = """
from homunculus.eye import Eye
import sys
eye = Eye("dag", "query", 60, error="legibility")
glance = eye.look(sys.argv[1], "What is the total?")
(lines,) = glance.scene.lines.values()
assert len(lines[0]) > 5 and glance.relevance.std() > 0
"""


def test_the_shipped_networks_are_found_out_of_the_box():
    run = subprocess.run([sys.executable, "-c", SHIPPED, INVOICE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_fixation_may_be_a_reversed_array():
    pixels = torch.zeros(3, 90, 90, dtype=torch.uint8)
    glance = hm.Eye("grid", "information", 4).look(pixels, fixation=np.array([20.0, 10.0])[::-1])
    assert glance.fixations.tolist() == [[10.0, 20.0]]


@pytest.mark.parametrize(("budget", "levels"), [(3, None), (40, 1)])
def test_uniform_can_be_shown_whatever_the_tree(budget, levels):
    pixels = torch.randint(0, 256, (3, 700, 900), dtype=torch.uint8)
    glance = hm.Eye("uniform", "information", budget, levels=levels).look(pixels)
    assert glance.patches().shape[0] == glance.selection.boxes.shape[1] <= budget and glance.picture().width > 700


def test_a_batch_error_keeps_its_message_on_the_way_to_another_process():
    error = BatchError([1, InputError("no such page")])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.results[0] == 1


# ---- several images under one budget ------------------------------------------------------------------------------


def test_a_full_page_borrows_from_empty_ones_and_the_total_is_exact(page):
    empty = Image.new("RGB", (900, 400), "white")
    for name in (name for name, entry in ALLOCATORS.items() if entry.is_cut):
        eye = hm.Eye(name, "information", budget=80)
        glances = eye.look_all([empty, page, empty], ["What is the total?", "What is the total?", ""])
        counts = [glance.selection.boxes.shape[1] for glance in glances]
        assert sum(counts) == 240 and counts[1] > 180 and [glance.budget for glance in glances] == counts
        assert all(float(glance.selection.coverage()[0]) == 1 for glance in glances)
        assert glances[1].patches().shape[0] == counts[1] and glances[0].question == "What is the total?"


@pytest.mark.parametrize("options", [{}, {"error": "legibility", "finder": lambda scene: [LINES]}])
def test_one_image_alone_gets_what_look_gives_it(page, options):
    for allocator in ("dag", "foveated"):
        eye = hm.Eye(allocator, "opponent", budget=90, scout=False, **options)
        alone, (shared,) = eye.look(page, "the total"), eye.look_all([page], "the total")
        assert torch.equal(alone.selection.indices, shared.selection.indices)
        assert torch.equal(alone.fixations, shared.fixations) and torch.equal(alone.relevance, shared.relevance)


LINES = torch.tensor([[60.0, 130, 300, 148, 18], [400, 400, 480, 418, 18]])


def test_a_likely_image_gets_more(page):
    eye = hm.Eye("dag", "information")
    glances = eye.look_all([page, page], total=200, weights=[1, 50])
    assert glances[1].budget > 150 and glances[0].budget + glances[1].budget == 200


def test_an_image_without_any_token_can_still_be_shown(page, tmp_path):
    empty = Image.new("RGB", (900, 400), "white")
    glances = hm.Eye("dag", "information").look_all([empty, page], total=2)
    assert [glance.budget for glance in glances] == [0, 2]
    glances[0].in_rows().save(tmp_path / "nothing.png")
    assert glances[0].to_dict()["tokens"] == [] and glances[0].to_dict()["coverage"] == 0


def test_images_that_fail_leave_the_total_to_the_others(page, tmp_path):
    eye = hm.Eye("dag", "information", budget=70)
    small = page.resize((350, 480))
    with pytest.raises(BatchError, match="2 of 4 images failed") as caught:
        eye.look_all([page, tmp_path / "none.png", small, page], fixation=(340, 950), total=150, weights=[1, 2, 3, 4])
    first, missing, outside, last = caught.value.results
    assert isinstance(missing, ImageError) and "lies outside its 350 x 480 pixels" in str(outside)
    assert first.budget + last.budget == 150 and last.budget > first.budget
    assert eye.look_all([]) == []


def test_wrong_shares_are_named(page):
    with pytest.raises(InputError, match=r"grid is no cut.*choose one of foveated, dag, frequency"):
        hm.Eye("grid").look_all([page])
    eye = hm.Eye("dag", "information")
    for wrong in ({"total": 0}, {"total": 2.5}, {"weights": [1, 2]}, {"weights": [-1]}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            eye.look_all([page], **wrong)
    with pytest.raises(InputError, match="question must be one text or a text for each of the 1 images"):
        eye.look_all([page], ["one", "two"])
    with pytest.raises(InputError, match="scales must be 1"):
        hm.Eye("dag", "information", error="legibility", finder=lambda scene: [LINES], scales=4).look_all([page])
