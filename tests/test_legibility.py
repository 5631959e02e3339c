"""Legibility as the error of the cut: what it is, what it does to a choice, and which lines a choice shows."""

import pytest
import torch

from homunculus import CellTree, Eye, InputError, allocate
from homunculus.allocators import ALLOCATORS, legibility
from homunculus.allocators.legibility import legibility_error, legible
from homunculus.relevance import Scene
from trees import PAGE, flat

RULES = [name for name, entry in ALLOCATORS.items() if entry.cuts_by_legibility]
NO_LINES = torch.zeros(0, 5)


def page_of_lines(tree: CellTree, count: int, seed: int = 0, smallest: float = 14) -> torch.Tensor:
    """Lines of random heights in rows that do not touch. float64 [count, 5]"""
    generator = torch.Generator().manual_seed(seed)
    height = smallest * 4 ** torch.rand(count, generator=generator, dtype=torch.float64)
    row = tree.height / max(count, 1)
    height = height.clamp(max=0.9 * row)
    x0 = torch.rand(count, generator=generator, dtype=torch.float64) * tree.width / 2
    wide = (0.1 + 0.4 * torch.rand(count, generator=generator, dtype=torch.float64)) * tree.width
    y0 = torch.arange(count) * row
    return torch.stack((x0, y0, x0 + wide, y0 + height, height), 1)


def paragraph(count: int = 30) -> torch.Tensor:
    """Lines of 24 pixels, one below the other, in a part of PAGE. [count, 5]"""
    y0 = 200.0 + 32 * torch.arange(count)
    return torch.stack([torch.full_like(y0, 100), y0, torch.full_like(y0, 1100), y0 + 24, torch.full_like(y0, 24)], 1)


def share_legible(name: str, shown: torch.Tensor, budget: int, **options) -> float:
    chosen = allocate(name, PAGE, flat(PAGE), budget, **options)
    return float(legible(chosen, [shown])[0].double().mean())


# ---- the error ----------------------------------------------------------------------------------------------------


def test_the_error_is_the_illegible_area_in_pixels_of_the_level():
    tree = CellTree(128, 128, levels=3)  # cells of 128, 64 and 32 pixels
    small, middle, large = (0, 0, 40, 16, 16), (60, 100, 70, 122, 22), (60, 70, 100, 114, 44)
    error = legibility_error(tree, [torch.tensor([small, middle, large])])
    assert tree.grid(error, 2).flatten().tolist() == [(640 + 220) / 16]  # 44 pixels are 11 there
    assert tree.grid(error, 1).tolist() == [[[160, 0], [0, 0]]]  # 22 pixels are 11 there
    assert not tree.grid(error, 0).any()
    weighted = legibility_error(tree, [torch.tensor([small, middle, large])], weights=[torch.tensor([0.5, 2.0, 1.0])])
    assert tree.grid(weighted, 2).flatten().tolist() == [(320 + 440) / 16]


def test_print_that_is_legible_but_not_clear_counts_a_sixteenth():
    tree = CellTree(128, 128, levels=3)
    large = torch.tensor([[60.0, 70, 100, 114, 44]])  # 22 pixels high at level 1, 11 at level 2
    error = legibility_error(tree, [large], min_print=11, clear_print=30)
    assert tree.grid(error, 2).flatten().tolist() == [40 * 44 / 16 / 16]
    assert tree.grid(error, 1).sum() == 40 * 44 / 4 / 16 and not tree.grid(error, 0).any()
    below = legibility_error(tree, [large], min_print=22.5, clear_print=10)  # not above min_print: no difference
    assert torch.equal(below, legibility_error(tree, [large], min_print=22.5))


@pytest.mark.parametrize("name", RULES)
def test_clear_print_shows_more_lines_of_a_short_budget_and_clearer_ones_of_a_long_budget(name):
    lines = page_of_lines(PAGE, 80, 1)

    def shown(budget, at, **options):
        chosen = allocate(name, PAGE, flat(PAGE), budget, error="legibility", lines=[lines], **options)
        return float(legible(chosen, [lines], at)[0].double().mean())

    both = {"min_print": 6, "clear_print": 11}
    assert shown(100, 6, **both) > shown(100, 6, min_print=11)
    assert shown(600, 11, **both) > shown(600, 11, min_print=6)


def test_a_line_counts_where_it_lies_and_not_outside_the_page():
    tree = CellTree(128, 100, levels=3)
    error = legibility_error(tree, [torch.tensor([[-50.0, 56, 300, 72, 16]])])  # over two rows, beyond both sides
    assert tree.grid(error, 1).tolist() == [[[128, 36 * 2], [128, 36 * 2]]]
    assert not legibility_error(tree, [torch.tensor([[0.0, 200, 90, 216, 16]])]).any()
    assert not legibility_error(tree, [NO_LINES]).any()


def test_the_order_of_lines_where_they_are_cut_and_how_many_at_once_do_not_matter(monkeypatch):
    lines = page_of_lines(PAGE, 300)
    error = legibility_error(PAGE, [lines])
    assert torch.equal(error, legibility_error(PAGE, [lines.flip(0)]))
    middle = lines[:, 0].round() + 3
    left, right = lines.clone(), lines.clone()
    left[:, 2] = right[:, 0] = middle
    assert torch.equal(error, legibility_error(PAGE, [torch.cat((right, left))]))
    monkeypatch.setattr(legibility, "AT_ONCE", 1000)
    assert torch.equal(error, legibility_error(PAGE, [lines]))


def test_a_page_twice_as_large_has_the_same_error_one_level_up():
    tree, twice = CellTree(640, 480, levels=4), CellTree(1280, 960, levels=5)
    lines = page_of_lines(tree, 12)
    error, larger = legibility_error(tree, [lines.round()]), legibility_error(twice, [lines.round() * 2])
    for level in (1, 2, 3):
        assert torch.equal(tree.grid(error, level), twice.grid(larger, level + 1))


# ---- the rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_more_lines_are_legible_than_at_one_size_for_all(name):
    lines = paragraph()
    by_print = share_legible(name, lines, 273, error="legibility", lines=[lines])
    assert by_print > 0.8
    assert share_legible("uniform", lines, 273) == 0
    assert by_print > share_legible(name, lines, 273) + 0.5


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("budget", [20, 64, 150, 273, 576])
def test_only_illegible_print_is_split_while_there_is_any(name, budget):
    for seed in range(3):
        lines = page_of_lines(PAGE, 50, seed)
        error = legibility_error(PAGE, [lines])[0]
        chosen = allocate(name, PAGE, flat(PAGE), budget, error="legibility", lines=[lines]).indices[0]
        whole, split = cut_of(PAGE, chosen)
        assert (PAGE.split_price[0][split] > 0).any()
        if error[whole].any():
            assert (error[split] > 0).all()
        else:
            assert legible(allocate(name, PAGE, flat(PAGE), budget, lines=[lines]), [lines])[0].all()


def cut_of(tree: CellTree, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The cells of the cut without tokens left over, and those that were split for it. bool [N] each"""
    chosen = torch.zeros(tree.size, dtype=torch.bool)
    chosen[indices] = True
    below, split = torch.zeros_like(chosen), torch.zeros_like(chosen)
    for level in reversed(range(tree.levels - 1)):
        parent = tree.parent[tree.at(level)]
        below[tree.at(level)] = below[parent] | chosen[parent]
    whole = chosen & ~below
    for level in range(tree.levels - 1):
        here = tree.at(level)
        split[tree.parent[here][(whole | split)[here]]] = True
    return whole, split


def test_dag_leaves_print_without_relevance_and_foveated_reads_near_the_fixation_first():
    lines = paragraph()
    upper = (PAGE.centre[:, 1] < 680)[None].double()
    shown = legible(allocate("dag", PAGE, upper, 200, error="legibility", lines=[lines]), [lines])[0]
    assert shown[:14].all() and not shown[18:].any()
    at = torch.tensor([[600.0, 1160.0]])
    shown = legible(allocate("foveated", PAGE, flat(PAGE), 150, at, error="legibility", lines=[lines]), [lines])[0]
    assert shown[-6:].all() and not shown[:6].any()


@pytest.mark.parametrize("name", RULES)
def test_every_line_is_legible_when_the_budget_suffices(name):
    lines = page_of_lines(PAGE, 60)
    assert share_legible(name, lines, 1500, error="legibility", lines=[lines]) == 1


def test_the_fovea_keeps_its_share():
    lines, at = page_of_lines(PAGE, 60), torch.tensor([[1600.0, 2100.0]])
    options = {"fovea": 0.3, "error": "legibility", "lines": [lines]}
    chosen = allocate("foveated", PAGE, flat(PAGE), 100, at, **options)
    near = allocate("foveated", PAGE, flat(PAGE), 30, at, fovea=1.0).indices[0]
    near = set(near[near >= PAGE.inner].tolist())
    assert len(near & set(chosen.indices[0].tolist())) >= min(len(near), 25)


@pytest.mark.parametrize("name", RULES)
def test_a_photo_without_lines_is_looked_at_as_ever(name):
    relevance = torch.rand(2, PAGE.size, generator=torch.Generator().manual_seed(0))
    error = torch.rand(2, PAGE.size, generator=torch.Generator().manual_seed(1))
    large = torch.tensor([[100.0, 100, 1500, 900, 800]])  # legible as coarse as the tree goes
    for lines in ([NO_LINES, NO_LINES], [NO_LINES], [large]):
        plain, same = (allocate(name, PAGE, relevance, 273, **o) for o in ({}, {"error": "legibility", "lines": lines}))
        assert torch.equal(plain.indices, same.indices)
        plain, same = (allocate(name, PAGE, relevance, 273, error=error, **o) for o in ({}, {"lines": lines}))
        assert torch.equal(plain.indices, same.indices)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("budget", [1, 7, 64, 273, 900, 10_000])
def test_mixed_sizes_give_exact_budgets_and_come_out_as_alone(name, budget):
    sizes = [(1400, 640), (300, 200), (33, 31), (640, 900)]
    bucket, singles = CellTree.bucket(sizes), [CellTree(*size) for size in sizes]
    lines = [page_of_lines(tree, count, count, 9) for tree, count in zip(singles, (40, 6, 0, 20), strict=True)]
    options = {"error": "legibility", "min_print": 9}
    together = allocate(name, bucket, torch.ones(4, bucket.size), budget, lines=lines, **options)
    for b, tree in enumerate(singles):
        alone = allocate(name, tree, flat(tree), budget, lines=lines[b : b + 1], **options)
        row = together.row(b)
        assert alone.indices.shape == (1, min(budget, tree.size)) and (alone.indices.diff(dim=1) > 0).all()
        assert torch.equal(row.boxes, alone.boxes) and torch.equal(row.levels, alone.levels)


@pytest.mark.gpu
@pytest.mark.parametrize("name", RULES)
def test_the_gpu_chooses_what_the_cpu_chooses(name):
    lines = [page_of_lines(PAGE, 60, 0), page_of_lines(PAGE, 80, 1)]
    relevance = torch.rand(2, PAGE.size, generator=torch.Generator().manual_seed(0))
    here = allocate(name, PAGE, relevance, 273, error="legibility", lines=lines)
    there = allocate(name, PAGE, relevance.cuda(), 273, error="legibility", lines=lines)
    assert there.boxes.is_cuda and torch.equal(here.indices, there.indices.cpu())


LINE = torch.tensor([[0.0, 0, 40, 16, 16]])
MALFORMED = [
    ({"error": "legibility"}, "needs the option lines"),
    ({"error": "legible", "lines": [LINE]}, "'legibility', got 'legible'"),
    ({"lines": LINE}, "lines of dag must be"),
    ({"lines": [LINE] * 3}, "each of 2 images, got 3"),
    ({"lines": [LINE, torch.zeros(5)]}, "image 1 has"),
    ({"lines": [LINE, LINE[:, :4]]}, "image 1 has"),
    ({"lines": [torch.cat((LINE, LINE * torch.nan))]}, "line 1 of image 0"),
    ({"lines": [LINE[:, [2, 1, 0, 3, 4]]]}, "x0 <= x1"),
    ({"lines": [LINE * torch.tensor([1, 1, 1, 1, 0])]}, "print height above 0"),
    ({"lines": [LINE], "min_print": 0.0}, "min_print must be"),
    ({"lines": [LINE], "clear_print": -1.0}, "clear_print must be"),
]


@pytest.mark.parametrize(("options", "says"), MALFORMED, ids=lambda value: value if isinstance(value, str) else "")
def test_malformed_lines_are_named_in_one_sentence(options, says):
    with pytest.raises(InputError, match=says) as caught:
        allocate("dag", PAGE, flat(PAGE, 2), 64, **options)
    assert "\n" not in str(caught.value)


def test_weights_that_do_not_fit_are_named():
    for wrong in (torch.ones(2), torch.ones(1, 1), -torch.ones(1), torch.full((1,), torch.nan)):
        with pytest.raises(InputError, match="weights must"):
            legibility_error(PAGE, [LINE], weights=[wrong])


# ---- what a selection shows ---------------------------------------------------------------------------------------


def test_a_line_is_legible_when_fine_cells_cover_enough_of_it():
    tree = CellTree(128, 256, levels=2)  # cells of 64 and 32 pixels
    chosen = allocate("grid", tree, flat(tree), 1)  # the first fine cell
    assert chosen.boxes.tolist() == [[[0, 0, 32, 32]]]
    lines = torch.tensor([[0.0, 0, 40, 16, 16], [0, 0, 41, 16, 16], [-60, 0, 20, 16, 16], [300, 0, 310, 9, 9]])
    assert legible(chosen, [lines])[0].tolist() == [True, False, True, False]
    assert legible(chosen, [lines], share=0.7)[0].tolist() == [True, True, True, False]
    assert legible(chosen, [NO_LINES])[0].shape == (0,)


def test_cells_over_one_another_count_once_and_coarse_ones_for_large_print_only():
    tree = CellTree(128, 256, levels=2)
    everything = allocate("grid", tree, flat(tree), tree.size)
    half = everything.take(((everything.boxes[..., 0] < 64) & (everything.boxes[..., 1] < 64)).nonzero()[None, :, 1])
    small, large = [32.0, 0, 112, 16, 16], [32.0, 0, 112, 30, 30]
    assert legible(half, [torch.tensor([small, large])], share=0.5)[0].tolist() == [False, False]
    coarse = everything.take((everything.levels == 1).nonzero()[None, :, 1])
    assert legible(coarse, [torch.tensor([small, large])])[0].tolist() == [False, True]


def test_a_size_between_levels_counts_as_what_it_is():
    tree = CellTree(2048, 2048)
    chosen = allocate("uniform", tree, flat(tree), 1024)  # level 1
    half_way = allocate("uniform", tree, flat(tree), 529)  # level 1.48: a pixel of it is 2.78 of the image
    lines = torch.tensor([[0.0, 0, 500, 23, 23], [0, 0, 500, 32, 32]])
    assert legible(chosen, [lines])[0].tolist() == [True, True]
    assert legible(half_way, [lines])[0].tolist() == [False, True]


# ---- the eye ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_an_eye_finds_the_lines_once_and_splits_where_they_are(name):
    calls = []

    def finder(scene: Scene) -> list[torch.Tensor]:
        calls.append(scene)
        return [torch.tensor([[600.0, 708, 950, 724, 16]])] * len(scene.pixels)

    pixels = torch.randint(0, 256, (3, 1024, 1024), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    eye = Eye(name, "information", 80, error="legibility", finder=finder)
    scene = eye.scene(pixels)
    first, second = eye.look_for(scene, ["Where is it?", "What is it?"], fixation="centre")
    assert len(calls) == 1 and list(scene.lines) == [finder]
    for glance in (first, second, eye.look_at(scene, "And now?")):
        assert legible(glance.selection, scene.lines[finder])[0].all()
    assert len(calls) == 1
    several = Scene(torch.stack((pixels, pixels)), CellTree(1024, 1024))
    assert torch.equal(eye.choose(several, ["a", "b"]).indices[:1], eye.choose(scene, ["a"]).indices)


@pytest.mark.parametrize("name", RULES)
def test_an_eye_without_lines_looks_as_it_does_without_legibility(name):
    pixels = torch.randint(0, 256, (3, 700, 900), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    plain, same = (
        Eye(name, "information", 64, **options)
        for options in ({}, {"error": "legibility", "finder": lambda scene: [NO_LINES]})
    )
    assert torch.equal(plain.look(pixels).selection.indices, same.look(pixels).selection.indices)


def test_a_finder_that_nothing_would_use_is_an_error():
    for options in ({}, {"error": torch.ones(1, 1)}, {"error": "legibility", "lines": [LINE]}):
        with pytest.raises(InputError, match="a finder needs error='legibility'"):
            Eye("dag", finder=lambda scene: [LINE], **options)
    with pytest.raises(InputError, match="no option 'error'"):
        Eye("grid", error="legibility")
