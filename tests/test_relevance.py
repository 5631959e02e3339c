"""Each way of knowing finds what it should on images made for it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from homunculus import CellTree, InputError, list_relevances
from homunculus.eye import shipped_scout
from homunculus.pyramid import gaussian, laplacian, steerable
from homunculus.relevance import RELEVANCES, Balance, HiZ, Scene, mix_relevances, relevance_of
from homunculus.relevance.opponent import sureness
from homunculus.relevance.query import blocks
from homunculus.relevance.scene import Bands
from homunculus.relevance.spatial import Region, regions


def scene_of(pixels: torch.Tensor, cell: int = 32) -> Scene:
    return Scene(pixels[None], CellTree(pixels.shape[1], pixels.shape[2], cell))


def blank(height: int = 512, width: int = 512) -> torch.Tensor:
    return torch.full((3, height, width), 255, dtype=torch.uint8)


def noise(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def argmax_point(scene: Scene, relevance: torch.Tensor) -> list[float]:
    return scene.tree.centre[scene.tree.at(0)][relevance[0, scene.tree.at(0)].argmax()].tolist()


@pytest.mark.parametrize("name", list_relevances())
@pytest.mark.parametrize("size", [(1, 1), (33, 700), (300, 200), (5, 3000)])
def test_every_relevance_is_finite_and_not_negative_on_any_size(name, size):
    scene = scene_of(noise(3, *size))
    relevance = relevance_of(name, scene, ["What is at the top left?"], shipped_scout())
    assert relevance.shape == (1, scene.tree.size)
    assert torch.isfinite(relevance).all() and (relevance >= 0).all()


@pytest.mark.parametrize("name", list_relevances())
def test_its_entry_says_what_a_relevance_goes_by(name):
    class Counting:
        calls = 0

        def __call__(self, scene: Scene, questions: list[str]) -> torch.Tensor:
            self.calls += 1
            fine = torch.full((len(questions), *scene.tree.shapes[0]), 0.1)
            fine[:, :, len(questions[0])] = 1
            return scene.tree.lift(fine, how="max")

        def learned(self, scene: Scene) -> torch.Tensor:
            return self(scene, [""])

    entry, scene, scout = RELEVANCES[name], scene_of(noise(3, 640, 640)), Counting()
    who, when = (relevance_of(name, scene, [question], scout) for question in ("Who?", "When?"))
    assert bool(scout.calls) == entry.uses_scout and entry.needs_scout("Who?") == entry.uses_scout
    assert torch.equal(who, when) != entry.uses_question
    assert entry.needs_scout("") == (entry.uses_scout and not entry.uses_question)
    if entry.has_spatial_prior:
        x, y = argmax_point(scene, relevance_of(name, scene, ["What is at the bottom right?"]))
        assert x > 320 and y > 320


@pytest.mark.parametrize("name", ["information", "saliency", "opponent"])
def test_ink_matters_more_than_blank_paper(name):
    pixels = blank()
    pixels[:, 320:352, 96:128] = noise(3, 32, 32)
    scene = scene_of(pixels)
    assert argmax_point(scene, relevance_of(name, scene, [""])) == [112.0, 336.0]


def test_information_is_zero_on_paper_and_near_one_on_noise():
    assert float(relevance_of("information", scene_of(blank()), [""]).max()) < 1e-6
    fine = relevance_of("information", scene_of(noise(3, 256, 256)), [""])[0, scene_of(blank(256, 256)).tree.at(0)]
    assert float(fine.min()) > 0.8 and float(fine.max()) <= 1


def test_what_differs_from_its_surround_stands_out_by_orientation_and_by_colour():
    rows = torch.where(torch.arange(512) % 8 < 4, 60, 200).to(torch.uint8)
    pixels = rows[None, :, None].expand(3, 512, 512).clone()
    pixels[:, 256:288, 128:160] = rows[:32][None, None].expand(3, 32, 32)  # the same stripes, turned
    scene = scene_of(pixels)
    x, y = argmax_point(scene, relevance_of("saliency", scene, [""]))
    assert abs(x - 144) <= 32 and abs(y - 272) <= 32
    colours = torch.full((3, 512, 512), 128, dtype=torch.uint8)
    colours[0, 64:96, 320:352], colours[1, 64:96, 320:352] = 200, 92  # equally bright, red
    scene = scene_of(colours)
    x, y = argmax_point(scene, relevance_of("saliency", scene, [""]))
    assert abs(x - 336) <= 32 and abs(y - 80) <= 32


# ---- bands --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(1, 200), st.sampled_from([14, 32]), st.sampled_from([1 << 9, 1 << 12, 1 << 20]))
def test_bands_in_strips_agree_with_the_laplacian_pyramid(height, width, cell, strip):
    from homunculus.relevance import scene as module

    pixels = noise(3, height, width)
    scene = scene_of(pixels, cell)
    usual, module.STRIP = module.STRIP, strip
    try:
        energy = scene.bands.energy[0]
    finally:
        module.STRIP = usual
    weights = torch.tensor(module.LUMINANCE)[:, None, None]
    levels = gaussian(pixels[None], scene.tree.levels + 1)
    for level in range(scene.tree.levels):
        grey = (levels[level][0].float() * weights).sum(0)
        coarse = (levels[level + 1][0].float() * weights).sum(0)
        from homunculus.pyramid import double

        band = grey - double(coarse[None], tuple(grey.shape))[0]
        for i in range(*scene.tree.at(level).indices(scene.tree.size))[:5]:
            y, x = int(scene.tree.row[i]) * cell, int(scene.tree.column[i]) * cell
            torch.testing.assert_close(
                energy[i], band[y : y + cell, x : x + cell].square().mean(), rtol=1e-3, atol=1e-2
            )


@given(
    st.integers(1, 300),
    st.integers(1, 200),
    st.sampled_from([1, 7, 14, 32]),
    st.sampled_from([1 << 9, 1 << 12, 1 << 20]),
)
def test_lost_energy_is_the_same_with_bands_and_without(height, width, cell, strip):
    from homunculus.relevance import scene as module

    tree = CellTree(height, width, cell, levels=4)
    light, full = (Scene(noise(2, 3, height, width), tree) for _ in range(2))
    usual, module.STRIP = module.STRIP, strip
    try:
        full.bands.energy, light.lost  # noqa: B018
    finally:
        module.STRIP = usual
    assert "bands" not in light.__dict__ and "bands" in full.__dict__
    torch.testing.assert_close(light.lost, full.lost, rtol=1e-5, atol=1e-5)


def test_lost_energy_never_rises_from_parent_to_child_and_is_none_at_level_zero():
    scene = scene_of(noise(3, 500, 700))
    lost, tree = scene.lost[0], scene.tree
    assert (lost[tree.at(0)] == 0).all()
    has_parent = tree.parent >= 0
    assert (lost[tree.parent[has_parent]] >= lost[has_parent] - 1e-3).all()


def test_lost_energy_is_that_of_the_laplacian_bands():
    grey = noise(1, 256, 256).expand(3, 256, 256).contiguous()
    scene = scene_of(grey)
    bands = laplacian(grey[:1].float(), scene.tree.levels)
    expected = sum(float(band.square().sum()) * 4**l for l, band in enumerate(bands[:-1]))
    roots = scene.lost[0][scene.tree.roots[0]].sum() * 32**2
    assert float(roots) == pytest.approx(expected, rel=0.02)  # the pyramid of pixels is rounded to 8 bits


@pytest.mark.parametrize("angle", [0, 45, 90, 135])
def test_orientation_energy_agrees_with_the_steerable_pyramid(angle):
    y, x = torch.meshgrid(torch.arange(256.0), torch.arange(256.0), indexing="ij")
    turn = torch.tensor(angle * torch.pi / 180)
    across = x * turn.sin() + y * turn.cos()  # lines run at `angle`, counter-clockwise on the page
    grey = (127 + 100 * (across * 2 * torch.pi / 10).sin()).to(torch.uint8)
    energy = scene_of(grey.expand(3, 256, 256).contiguous()).bands.along(4)[0]
    tree = CellTree(256, 256)
    ours = energy[tree.at(0)].mean(0)
    assert int(ours.argmax()) == angle // 45
    bands = steerable(grey[None, None].float() - 127, 3, 4).bands
    theirs = sum(band.square().mean((0, 1, 3, 4)) for band in bands)
    # band b of the steerable pyramid answers to lines across direction b; ours are named by how the lines run
    assert int(theirs.argmax()) == int((2 - ours.argmax()) % 4) or int(theirs.argmax()) == int((ours.argmax() + 2) % 4)


def test_a_scene_checks_what_it_is_made_of():
    tree = CellTree(64, 64)
    with pytest.raises(InputError, match="uint8"):
        Scene(torch.zeros(1, 3, 64, 64), tree)
    with pytest.raises(InputError, match="tree must be that of one 32 x 64 image"):
        Scene(torch.zeros(1, 3, 32, 64, dtype=torch.uint8), tree)


def test_a_batch_of_scenes_equals_each_alone():
    pixels = noise(2, 3, 200, 260)
    tree = CellTree(200, 260)
    together, alone = Scene(pixels, tree).bands, Scene(pixels[1:], tree).bands
    assert isinstance(together, Bands)
    torch.testing.assert_close(together.energy[1:], alone.energy)
    torch.testing.assert_close(together.greys[1:], alone.greys)


# ---- the question's words -----------------------------------------------------------------------------------------

PLACES = [
    ("What is at the top left?", (0.1, 0.1)),
    ("Who signed in the bottom right-hand corner?", (0.9, 0.9)),
    ("Read the footer", (0.5, 0.95)),
    ("What does the header say", (0.5, 0.05)),
    ("the upper right", (0.85, 0.1)),
    ("what is on the left side of the page?", (0.1, 0.5)),
    ("in the middle of the picture", (0.5, 0.5)),
    ("the number at the bottom of the left column", (0.1, 0.9)),
    ("the third column of four", (0.625, 0.5)),
    ("the last column", (0.9, 0.5)),
    ("the first row", (0.5, 0.02)),
]


@pytest.mark.parametrize(("question", "place"), PLACES)
def test_spatial_words_name_a_place(question, place):
    (region,) = regions(question)
    assert region.left <= place[0] <= region.right and region.top <= place[1] <= region.bottom
    assert (region.right - region.left) * (region.bottom - region.top) < 0.55
    scene = scene_of(blank(640, 640))
    relevance = relevance_of("query", scene, [question])
    there = scene.tree.locate(torch.tensor([[[640 * place[0], 640 * place[1]]]]))[0, 0]
    opposite = scene.tree.locate(torch.tensor([[[640 * ((place[0] + 0.5) % 1), 640 * ((place[1] + 0.5) % 1)]]]))[0, 0]
    assert relevance[0, there] > 0.3 and relevance[0, there] > 2 * relevance[0, opposite]


@pytest.mark.parametrize(
    "question",
    ["", "What is the total?", "How many are left?", "Is that right?", "the top 10 customers", "middle name"],
)
def test_other_questions_name_no_place(question):
    assert regions(question) == []
    assert (relevance_of("query", scene_of(blank(96, 96)), [question]) == 1).all()


def test_two_places_are_two_regions():
    assert regions("the bottom left and the top right") == [Region(0, 2 / 3, 0.4, 1), Region(0.6, 0, 1, 1 / 3)]


def test_columns_that_the_page_has_are_used():
    pixels = blank(640, 640)
    pixels[:, :, 32:160] = noise(3, 640, 128)
    pixels[:, :, 384:512] = noise(3, 640, 128)
    scene = scene_of(pixels)
    relevance = relevance_of("query", scene, ["the second column"])
    at = scene.tree.locate(torch.tensor([[[448.0, 320.0], [240.0, 320.0]]]))[0]
    assert relevance[0, at[0]] > 0.9 and relevance[0, at[1]] < 0.1
    assert blocks(torch.tensor([0.0, 1, 1, 0, 0, 2, 0])) == [(1 / 7, 3 / 7), (5 / 7, 6 / 7)]
    assert blocks(torch.ones(5)) == []


def test_a_scout_joins_the_words():
    scene = scene_of(blank(320, 320))
    seen = []

    def scout(scene: Scene, questions: list[str]) -> torch.Tensor:
        seen.append(questions)
        return torch.linspace(0, 1, scene.tree.size)[None]

    relevance = relevance_of("query", scene, ["What is the total?"], scout)
    assert seen == [["What is the total?"]] and int(relevance.argmax()) == scene.tree.size - 1


# ---- balance and Hi-Z ---------------------------------------------------------------------------------------------


def test_a_signal_that_says_the_same_everywhere_has_no_say():
    tree = CellTree(640, 640)
    flat, sharp = torch.ones(1, tree.size), torch.zeros(1, tree.size)
    sharp[0, -1] = 1
    assert float(sureness(tree, flat)) == pytest.approx(0, abs=1e-9) and float(sureness(tree, sharp)) > 0.99
    mixed = mix_relevances(tree, {"query": flat, "saliency": sharp, "information": flat})
    assert int(mixed.argmax()) == tree.size - 1 and float(mixed.min()) == pytest.approx(0.05)
    nothing = mix_relevances(tree, {"query": flat, "saliency": flat, "information": flat})
    assert float(nothing.std()) < 1e-6


def test_the_pairs_of_opposites_shape_the_mixture():
    tree = CellTree(640, 640)
    signal = torch.rand(1, tree.size, generator=torch.Generator().manual_seed(0))

    def mean(**balance: float) -> float:
        return float(mix_relevances(tree, {"query": signal}, balance=Balance(**balance)).mean())

    assert mean(particularise=1) < mean() < mean(particularise=-1)
    assert mean(explore=0) < mean(explore=0.5) < mean(explore=1) == pytest.approx(1)
    dense = torch.zeros(1, tree.size)
    fine = tree.grid(dense, 0).clone()
    fine[0, :8, :8], fine[0, 15, 15] = 1.0, 0.9
    dense[:, tree.at(0)] = fine.flatten(1)
    focused, spread = (mix_relevances(tree, {"query": dense}, balance=Balance(diversify=d)) for d in (0.0, 1.0))
    lonely, crowd = tree.at(0).start + 15 * 20 + 15, tree.at(0).start + 4 * 20 + 4
    assert focused[0, lonely] < focused[0, crowd] and spread[0, lonely] > spread[0, crowd]
    with pytest.raises(InputError, match="explore"):
        Balance(explore=2)
    with pytest.raises(InputError, match="weight for each signal"):
        mix_relevances(tree, {"hearsay": signal})


def test_unknown_relevance_lists_the_known():
    with pytest.raises(InputError, match=r"no relevance 'attention'.*information, saliency, query, learned, opponent"):
        relevance_of("attention", scene_of(blank(32, 32)), [""])


@given(st.integers(1, 1500), st.integers(1, 1500), st.one_of(st.none(), st.integers(1, 6)), st.data())
def test_the_bound_of_a_region_is_never_too_low_and_tight_on_whole_cells(height, width, levels, data):
    tree = CellTree(height, width, levels=levels)
    relevance = torch.rand(1, tree.size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hiz = HiZ(tree, relevance)
    x = sorted(data.draw(st.floats(0, width)) for _ in range(2))
    y = sorted(data.draw(st.floats(0, height)) for _ in range(2))
    box = torch.tensor([x[0], y[0], x[1], y[1]])
    bound = float(hiz.bound(box[None, None])[0, 0])
    fine = tree.box[tree.at(0)]
    touched = (fine[:, 0] < box[2]) & (fine[:, 2] > box[0]) & (fine[:, 1] < box[3]) & (fine[:, 3] > box[1])
    if touched.any():
        assert bound >= float(relevance[0, tree.at(0)][touched].max())
    cell = data.draw(st.integers(0, tree.size - 1))
    whole = hiz.bound(tree.box[cell].double()[None, None])[0, 0]
    assert float(whole) <= float(hiz.peak[0, int(tree.parent[cell])] if tree.parent[cell] >= 0 else hiz.peak.max())


def test_pruning_keeps_every_cell_that_reaches_the_threshold():
    tree = CellTree(1000, 1300)
    relevance = torch.rand(2, tree.size) ** 6
    hiz = HiZ(tree, relevance)
    pruned = hiz.prune(0.9)
    assert pruned.any() and not (pruned & (relevance >= 0.9)).any()
    below = tree.parent >= 0
    assert (pruned[:, below] >= pruned[:, tree.parent[below]]).all(), "a cell below a pruned one is not pruned"
    with pytest.raises(InputError, match="boxes must be"):
        hiz.bound(torch.zeros(3, 4))


def test_a_bucket_of_one_image_makes_a_scene_too():
    pixels = torch.randint(0, 256, (1, 3, 200, 300), dtype=torch.uint8)
    scenes = Scene(pixels, CellTree.bucket([(200, 300)])), Scene(pixels, CellTree(200, 300))
    assert torch.equal(*(relevance_of("query", scene, ["what is in the top left corner?"]) for scene in scenes))
