"""Images that are read tile by tile: what is decoded, what comes out, and what is said of files that are wrong."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import homunculus as hm
from draw_giant import draw
from homunculus.allocators.expansion import boxes_of, cell_at, children_of, place_of
from homunculus.cells import CellTree
from homunculus.cli import main
from homunculus.giga import open_tiled, overview_of, tiled
from homunculus.giga.glance import GiantGlance

pyvips = pytest.importorskip("pyvips")
SIDE = 4096
LIMIT = 1_000_000  # max_pixels of these tests: what is larger is read tile by tile


@pytest.fixture(scope="module")
def giant(tmp_path_factory):
    path = tmp_path_factory.mktemp("giga") / "giant.tif"
    return path, draw(path, SIDE)


@pytest.fixture
def picture():
    """Something in every corner, so that a turned or shifted window is not the same."""
    rng = np.random.default_rng(0)
    return np.kron(rng.integers(0, 255, (9, 13, 3), dtype=np.uint8), np.ones((61, 67, 1), np.uint8))[:531, :847]


def save_tiled(pixels, path, **options):
    options = {"tile": True, "tile_width": 128, "tile_height": 128} | options
    height, width, bands = pixels.shape
    kind = "ushort" if pixels.dtype == np.uint16 else "uchar"
    image = pyvips.Image.new_from_memory(np.ascontiguousarray(pixels).tobytes(), width, height, bands, kind)
    space = {1: "b-w", 3: "srgb", 4: "cmyk" if options.pop("cmyk", False) else "srgb"}[bands]
    space = {"b-w": "grey16", "srgb": "rgb16"}.get(space, space) if kind == "ushort" else space
    image.copy(interpretation=space).tiffsave(str(path), **options)
    return path


def partition(selection) -> torch.Tensor:
    """Which cells of a selection lie in no other one: the others are the one or two that were left over."""
    boxes = selection.boxes[0]
    low, high = boxes[:, None, :2] >= boxes[None, :, :2], boxes[:, None, 2:] <= boxes[None, :, 2:]
    inside = (low.all(2) & high.all(2)) & ~torch.eye(len(boxes), dtype=torch.bool)
    return ~inside.any(1)


# ---- cells by arithmetic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width", "levels"), [(700, 500, None), (33, 2000, 3), (1, 1, 4), (1024, 1024, 6)])
def test_places_children_and_boxes_by_arithmetic_are_those_of_the_tree(height, width, levels):
    tree = CellTree(height, width, levels=levels)
    cells = torch.arange(tree.size)[None]
    level, row, column = place_of(tree, cells)
    assert torch.equal(level[0], tree.level)
    assert torch.equal(row[0], tree.row) and torch.equal(column[0], tree.column)
    assert torch.equal(cell_at(tree, level, row, column), cells)
    assert torch.equal(children_of(tree, cells)[0], tree.children)
    assert torch.equal(boxes_of(tree, cells)[0], tree.box.double())


def test_twenty_levels_are_exact_and_take_no_memory():
    tree = CellTree(60_000_001, 59_999_999, levels=20)
    last = torch.tensor([[tree.size - 1]])
    assert tree.size > 4e12 and place_of(tree, last)[0].item() == 0
    assert boxes_of(tree, last)[0, 0].tolist() == [59_999_968.0, 60_000_000.0, 59_999_999.0, 60_000_001.0]


# ---- pixels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"pyramid": True}, {"pyramid": True, "subifd": True}, {"tile_width": 512}])
def test_windows_are_the_pixels_of_the_file_at_every_level(picture, tmp_path, options):
    image = open_tiled(save_tiled(picture, tmp_path / "a.tif", **options))
    assert (image.width, image.height) == (847, 531)
    whole = torch.from_numpy(picture).permute(2, 0, 1)
    corners = torch.tensor([[0, 0], [100, 130], [400, 250], [830, 520]])
    windows = image.region(0, corners, 40)
    for (x, y), window in zip(corners.tolist(), windows, strict=True):
        rows, columns = torch.arange(y, y + 40).clamp(max=530), torch.arange(x, x + 40).clamp(max=846)
        assert torch.equal(window, whole[:, rows][:, :, columns]), "the border is repeated beyond the image"
    coarse = image.region(2, torch.tensor([[10, 20]]), 32)[0].float()
    means = whole[:, 80:208, 40:168].float().unflatten(1, (32, 4)).unflatten(3, (32, 4)).mean((2, 4))
    assert (coarse - means).abs().max() <= 1.5  # rounded once an octave


@pytest.mark.parametrize("turn", range(1, 9))
def test_files_that_lie_on_their_side_come_upright(picture, tmp_path, turn):
    path = tmp_path / "a.tif"
    height, width, bands = picture.shape
    image = pyvips.Image.new_from_memory(picture.tobytes(), width, height, bands, "uchar").copy(interpretation="srgb")
    image.set_type(pyvips.GValue.gint_type, "orientation", turn)
    image.tiffsave(str(path), tile=True, pyramid=True)
    upright, tiles = hm.load_image(path), open_tiled(path)
    assert (tiles.height, tiles.width) == tuple(upright.shape[1:])
    assert torch.equal(tiles.region(0, torch.tensor([[300, 110]]), 96)[0], upright[:, 110:206, 300:396])


def test_gray_16_bit_alpha_and_cmyk_become_8_bit_rgb_over_white(picture, tmp_path):
    window, gray = torch.tensor([[64, 64]]), picture[..., :1]
    for name, pixels in {"8": gray, "16": gray.astype(np.uint16) * 257}.items():
        got = open_tiled(save_tiled(pixels, tmp_path / f"{name}.tif")).region(0, window, 64)[0]
        assert (got.int() - torch.from_numpy(gray[64:128, 64:128, 0]).int()).abs().max() <= 1
    alpha = np.concatenate((picture, np.zeros_like(gray)), 2)
    assert open_tiled(save_tiled(alpha, tmp_path / "alpha.tif")).region(0, window, 64).min() == 255
    ink = open_tiled(save_tiled(np.zeros((300, 300, 4), np.uint8), tmp_path / "cmyk.tif", cmyk=True))
    assert ink.region(0, window, 64).min() > 250  # no ink is white paper


def test_the_cache_is_bounded_and_tiles_in_it_are_not_decoded_again(giant, monkeypatch):
    image = open_tiled(giant[0])
    corners = torch.tensor([[0, 0], [600, 600]])
    first = image.region(0, corners, 64)
    assert image.tiles.decoded == 2
    assert torch.equal(image.region(0, corners, 64), first) and image.tiles.decoded == 2
    monkeypatch.setattr(tiled, "CACHED", 3 * 256 * 256)
    small = open_tiled(giant[0])
    for _ in range(2):
        small.region(0, corners[:1], 64), small.region(0, corners[1:], 64)
    assert small.tiles.decoded == 4 and len(small._tiles) == 1


# ---- the look -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 15, 16, 17, 64, 150, 273, 500])
def test_exactly_the_budget_of_distinct_cells_that_cover_every_pixel_once(giant, budget):
    glance = hm.Eye("fractal", "saliency", budget).look(open_tiled(giant[0]), "")
    chosen, tree = glance.selection, glance.tree
    assert chosen.boxes.dtype == torch.float64 and chosen.boxes.shape == (1, budget, 4)
    assert (chosen.indices[0].diff() > 0).all(), "not distinct, or not in tree order"
    assert glance.patches().shape == (budget, 3, 32, 32)
    if budget < tree.root_counts[0]:
        assert (chosen.levels == tree.levels - 1).all()
        return
    alone = partition(chosen)
    sides = chosen.boxes[0, :, 2:] - chosen.boxes[0, :, :2]
    assert int((~alone).sum()) <= 2 and float(chosen.coverage()[0]) == 1
    assert float(sides[alone].prod(1).sum()) == SIDE * SIDE, "a pixel is covered twice"


def test_the_same_look_twice_chooses_the_same_from_a_cold_and_from_a_warm_cache(giant):
    eye, image = hm.Eye("fractal", "saliency"), open_tiled(giant[0])
    first, warm, cold = eye.look(image, ""), eye.look(image, ""), eye.look(open_tiled(giant[0]), "")
    for other in (warm, cold):
        assert torch.equal(first.selection.indices, other.selection.indices)
        assert torch.equal(first.patches(), other.patches()) and torch.equal(first.each, other.each)


def test_only_some_tiles_are_decoded_and_those_at_the_fixation_show_the_text(giant):
    path, labels = giant
    image = open_tiled(path)
    for label in labels:
        glance = hm.Eye("fractal", "saliency").look(image, "", fixation=label.middle)
        x0, y0, x1, y1 = label.box
        boxes = glance.selection.boxes[0]
        over = (boxes[:, 0] < x1) & (boxes[:, 2] > x0) & (boxes[:, 1] < y1) & (boxes[:, 3] > y0)
        fine = glance.selection.levels[0, over] == 0
        assert fine.float().mean() > 0.9, label
        shown, there = glance.crop(label.box), image.region(0, torch.tensor([[x0, y0]]), 256)[0]
        there = there[:, : y1 - y0, : x1 - x0]
        assert (
            (shown.int() - there.int()).abs().float().mean() < 8 < (there.float() - there.float().mean()).abs().mean()
        )
    assert image.tiles.decoded < 0.25 * image.tiles.all and not image.tiles.streamed


def test_without_a_fixation_the_tokens_go_to_the_one_thing_that_stands_out(tmp_path):
    (label,) = draw(tmp_path / "one.tif", SIDE, labels=1)
    glance = hm.Eye("fractal", "saliency").look(open_tiled(tmp_path / "one.tif"), "")
    x, y = glance.fixations[0].tolist()
    x0, y0, x1, y1 = label.box
    assert x0 - 32 <= x <= x1 + 32 and y0 - 32 <= y <= y1 + 32
    at = (glance.selection.boxes[0, :, :2] <= glance.fixations).all(1) & (
        glance.selection.boxes[0, :, 2:] > glance.fixations
    ).all(1)
    assert glance.selection.levels[0, at].min() == 0


def test_a_file_without_coarse_levels_gives_much_the_same_look_after_one_pass(giant, tmp_path):
    path, label = tmp_path / "flat.tif", giant[1][0]
    draw(path, SIDE, pyramid=False)
    flat, eye = open_tiled(path), hm.Eye("fractal", "saliency")
    flat.prepare(5, 1 << 18)
    looks = [eye.look(image, "", fixation=label.middle) for image in (open_tiled(giant[0]), flat)]
    assert looks[1].tiles.streamed and looks[1].tiles.decoded >= 256 > looks[0].tiles.decoded
    same = np.intersect1d(*(look.selection.indices[0].numpy() for look in looks))
    assert len(same) > 273 / 2
    assert (looks[1].crop(label.box).int() - looks[0].crop(label.box).int()).abs().float().mean() < 4


@pytest.mark.parametrize("ending", ["png", "jpg"])
def test_png_and_jpeg_are_passed_over_once_if_fractal_is_asked_for(picture, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    Image.fromarray(picture).resize((1500, 1000)).save(path)
    with pytest.raises(hm.ImageError, match=r"above the limit.*choose by fractal, which passes over such a file once"):
        hm.Eye(budget=50).look(path, "", max_pixels=LIMIT)
    glance = hm.Eye("fractal", "saliency", 50).look(path, "", max_pixels=LIMIT)
    assert isinstance(glance, GiantGlance) and glance.tiles.streamed and float(glance.selection.coverage()[0]) == 1


def test_the_temporary_file_goes_with_the_image(picture, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Image.fromarray(picture).save(tmp_path / "a.png")
    image = open_tiled(tmp_path / "a.png")
    hm.Eye("fractal", "saliency", 50).look(image, "")
    assert list(tmp_path.glob("homunculus-*"))
    image.kept.clear()
    del image
    assert not list(tmp_path.glob("homunculus-*"))


def test_a_giant_one_pixel_high(tmp_path):
    line = np.zeros((1, 2_000_003, 3), np.uint8) + 200
    line[0, 1_234_567:1_234_600] = 0
    path = save_tiled(line, tmp_path / "line.tif", tile_width=2048)
    glance = hm.Eye("fractal", "saliency").look(path, "", max_pixels=LIMIT)
    assert len(glance.selection.boxes[0]) == 273 and float(glance.selection.coverage()[0]) == 1
    x = glance.fixations[0, 0]
    assert abs(float(x) - 1_234_583) < 64 and glance.picture().width > 0


@pytest.mark.parametrize("relevance", hm.list_relevances())
def test_every_relevance_works_on_the_overview(giant, relevance):
    glance = hm.Eye("fractal", relevance, 60).look(giant[0], "What is the batch?", max_pixels=LIMIT)
    assert glance.selection.boxes.shape[1] == 60 and torch.isfinite(glance.each).all() and (glance.each >= 0).all()


def test_places_that_the_question_or_the_caller_names(giant):
    eye = hm.Eye("fractal", "saliency", 100)
    image = open_tiled(giant[0])
    centre, several = eye.look(image, "", fixation="centre"), eye.look(image, "", fixations=3)
    assert centre.fixations.tolist() == [[SIDE / 2, SIDE / 2]] and several.fixations.shape == (3, 2)
    corner = eye.look(image, "bottom left corner", fixation="words").fixations[0]
    assert corner[0] < SIDE / 2 < corner[1]


# ---- the same through eye and command line -------------------------------------------------------------------------


def test_a_list_may_hold_giants_and_others(giant):
    eye = hm.Eye(relevance="saliency", budget=80)
    small = torch.zeros(3, 300, 400, dtype=torch.uint8)
    looks = eye.look([small, str(giant[0])], "", max_pixels=LIMIT)
    assert [look.allocator for look in looks] == ["foveated", "fractal"]
    with pytest.raises(hm.BatchError) as failed:
        eye.look([str(giant[0]), "missing.tif"], "", max_pixels=LIMIT)
    assert isinstance(failed.value.results[0], GiantGlance)


def test_the_command_line_says_in_a_line_that_it_reads_tiles(giant, tmp_path, monkeypatch, capsys):
    files = str(tmp_path / "look.json"), str(tmp_path / "look.png")
    words = ["look", str(giant[0]), "", "-r", "saliency", "--max-pixels", str(LIMIT), "--json", files[0], "--png"]
    monkeypatch.setattr("sys.argv", ["homunculus", *words, files[1]])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    data, said = json.loads(Path(files[0]).read_text()), capsys.readouterr().out
    assert len(data["tokens"]) == 273 and data["allocator"] == "fractal" and data["coverage"] == 1
    assert data["image"] == {"width": SIDE, "height": SIDE} and data["tiles"]["all"] == 341
    assert f"read tile by tile: {data['tiles']['decoded']} of 341 tiles" in said
    assert Image.open(files[1]).width > 1000


# ---- wrong files and wrong options ---------------------------------------------------------------------------------


def damaged(path, tmp_path, change):
    data = bytearray(path.read_bytes())
    change(data)
    (tmp_path / "damaged.tif").write_bytes(data)
    return tmp_path / "damaged.tif"


def test_a_tile_that_cannot_be_decoded_is_named(picture, tmp_path):
    path = save_tiled(picture, tmp_path / "a.tif", compression="deflate")
    entries = Image.open(path).tag_v2
    offset, size = entries[324][9], entries[325][9]  # offsets and sizes of tiles
    wrong = damaged(path, tmp_path, lambda data: data.__setitem__(slice(offset, offset + size), b"\0" * size))
    image = open_tiled(wrong)
    image.region(0, torch.tensor([[0, 0]]), 64)  # others are read all the same
    with pytest.raises(hm.ImageError, match=r"damaged.tif: the tile in row 1, column 2 of level 0 cannot be decoded"):
        image.region(0, torch.tensor([[280, 140]]), 64)


def test_a_truncated_file_is_an_error_of_one_sentence(giant, tmp_path):
    wrong = damaged(giant[0], tmp_path, lambda data: data.__delitem__(slice(len(data) // 2, None)))
    with pytest.raises(hm.ImageError, match=r"damaged.tif") as error:
        hm.Eye(relevance="saliency").look(wrong, "", max_pixels=LIMIT)
    assert "\n" not in str(error.value)
    with pytest.raises(hm.ImageError, match=r"cannot be opened tile by tile.*cut short"):
        open_tiled(wrong)


def test_a_file_that_shrinks_while_it_is_read_is_said_to(picture, tmp_path):
    path = save_tiled(picture, tmp_path / "a.tif")
    image = open_tiled(path)
    os.truncate(path, 1000)
    with pytest.raises(hm.ImageError, match="the file became shorter while it was read"):
        image.region(0, torch.tensor([[700, 400]]), 64)


def test_what_is_no_image_or_not_there_is_named(tmp_path):
    (tmp_path / "a.tif").write_bytes(b"II*\0 no image")
    for name, reason in {"a.tif": "cannot be opened tile by tile", "b.tif": "does not exist"}.items():
        with pytest.raises(hm.ImageError, match=rf"{name} {reason}"):
            open_tiled(tmp_path / name)
    with pytest.raises(hm.ImageError, match="there is no page 7"):
        save_tiled(np.zeros((99, 99, 3), np.uint8), tmp_path / "c.tif")
        open_tiled(tmp_path / "c.tif", page=7)


def test_without_pyvips_the_error_says_how_to_install_it(giant, monkeypatch):
    monkeypatch.setattr(tiled, "have_pyvips", lambda: False)
    for look in (lambda: open_tiled(giant[0]), lambda: hm.Eye().look(giant[0], "", max_pixels=LIMIT)):
        with pytest.raises(hm.ImageError, match=r"pip install 'homunculus\[giga\]'"):
            look()


@pytest.mark.parametrize(
    ("eye", "looking", "message"),
    [
        ({"allocator": "grid"}, {}, "grid needs a whole image"),
        ({"allocator": "dag", "detail": 2.0}, {}, "dag needs a whole image"),
        ({"fovea": 2.0, "detail": 2.0}, {}, "detail would have no effect"),
        ({"wave": 0}, {}, "wave must be a whole number of at least 1"),
        ({"budget": 20_000}, {}, "16384 finest cells"),
        ({"levels": 2}, {}, "leave levels out for"),
        ({}, {"fixation": (5000, 5)}, "outside its 4096 x 4096 pixels"),
        ({}, {"fixations": 0}, "count of fixations"),
        ({}, {"max_pixels": 5}, "max_pixels would have no effect"),
    ],
)
def test_what_cannot_be_honoured_is_an_error(giant, eye, looking, message):
    with pytest.raises(hm.InputError, match=message):
        hm.Eye(**{"allocator": "fractal", "relevance": "saliency"} | eye).look(open_tiled(giant[0]), "", **looking)


def test_an_image_that_needs_more_disk_than_there_is_is_refused(giant, tmp_path, monkeypatch):
    path = tmp_path / "flat.tif"
    draw(path, 1024, pyramid=False)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    with pytest.raises(hm.ImageError, match="set TMPDIR to a folder with more"):
        open_tiled(path).prepare(3, 1000)


def test_the_page_states_what_was_measured():
    root = Path(__file__).parents[1]
    page = (root / "docs" / "gigapixel.md").read_text()
    results = json.loads((root / "results" / "giga_cpu.json").read_text())
    for row in results["rows"]:
        cost = f"{row['seconds']:.2f} | {row['cpu_seconds']:.2f} | {row['memory_mb']}"
        assert f"| {row['megapixels']} | {row['file']} | {cost} | {row['tiles']} | {row['all_tiles']} |" in page
    assert results["machine"]["commit"] in page and "changes" not in results["machine"]["commit"]


@pytest.mark.slow
def test_a_gigapixel_gives_as_many_tokens_as_a_megapixel_and_reads_a_label(tmp_path):
    path = tmp_path / "giant.tif"
    labels, reader = draw(path, 32768), hm.reader.load_page_reader()
    for label in labels:
        image = open_tiled(path)
        glance = hm.Eye("fractal").look(image, "", fixation=label.middle)
        assert len(glance.selection.boxes[0]) == 273 and float(glance.selection.coverage()[0]) == 1
        assert image.tiles.decoded < 0.05 * image.tiles.all
        x0, y0, x1, y1 = label.box
        lines = reader.open(glance.crop((x0 - 40, y0 - 40, x1 + 40, y1 + 40))).read()
        assert label.text in " ".join(line.text for line in lines)
    assert overview_of(image, 32, None).level == round(math.log2(32768 / 1024))
