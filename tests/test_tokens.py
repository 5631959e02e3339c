"""Patches are the pixels of their cells; the reconstruction is what they still know."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from homunculus import CellTree, InputError, Selection, allocate, list_allocators
from homunculus.pyramid import gaussian
from homunculus.tokens import at_once, at_scale, patches, reconstruct


def noise(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@given(st.integers(1, 400), st.integers(1, 400), st.sampled_from([8, 14, 32]), st.integers(1, 90), st.integers(1, 3))
def test_patches_are_the_pixels_of_the_padded_level(height, width, cell, budget, rows):
    tree = CellTree(height, width, cell)
    levels = gaussian(noise(rows, 3, height, width), tree.levels)
    selection = allocate("pyramid", tree, torch.rand(rows, tree.size), budget, depth=8, weights=(1,) * 8)
    out = patches(levels, selection)
    assert out.shape == (rows, min(budget, tree.size), 3, cell, cell) and out.dtype == torch.uint8
    for b in range(rows):
        for k, index in enumerate(selection.indices[b].tolist()):
            level = levels[int(tree.level[index])][b].float()
            right, bottom = (-side % cell for side in (level.shape[2], level.shape[1]))
            padded = torch.nn.functional.pad(level[None], (0, right, 0, bottom), mode="replicate")[0].byte()
            y, x = int(tree.row[index]) * cell, int(tree.column[index]) * cell
            assert torch.equal(out[b, k], padded[:, y : y + cell, x : x + cell])


def test_patches_of_a_row_with_fewer_cells_end_in_zeros():
    bucket = CellTree.bucket([(64, 64), (320, 320)])
    selection = allocate("grid", bucket, torch.rand(2, bucket.size), 50)
    levels = gaussian(noise(2, 3, 320, 320), bucket.levels)
    out = patches(levels, selection)
    assert (out[0, 4:] == 0).all() and (out[1] > 0).any(dim=(1, 2, 3)).all()


@pytest.mark.parametrize("name", [name for name in list_allocators() if name != "uniform"])
def test_patches_at_once_are_those_level_by_level(name):
    images = torch.randint(0, 256, (3, 3, 203, 331), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    tree = CellTree(203, 331)
    selection = allocate(name, tree, torch.rand(3, tree.size, generator=torch.Generator().manual_seed(3)), 40)
    levels = gaussian(images, tree.levels)
    if selection.indices is not None:
        assert torch.equal(at_once(levels, selection), patches(levels, selection))
    with pytest.raises(InputError, match="levels"):
        at_once(levels[:1], allocate("dag", tree, torch.rand(3, tree.size), 16))


def test_patches_at_once_of_a_padded_batch_repeat_each_image_s_own_edge():
    sizes = ((70, 100), (96, 64))
    tree = CellTree.bucket(sizes)
    images = torch.randint(0, 256, (2, 3, tree.height, tree.width), dtype=torch.uint8)
    selection = allocate("dag", tree, torch.rand(2, tree.size), 12)
    levels = gaussian(images, tree.levels)
    assert torch.equal(at_once(levels, selection), patches(levels, selection))


def test_patches_refuse_what_does_not_belong_together():
    tree = CellTree(320, 320)
    selection = allocate("pyramid", tree, torch.rand(2, tree.size), 10)
    with pytest.raises(InputError, match="hold 1 images, the selection 2"):
        patches(gaussian(noise(1, 3, 320, 320), 4), selection)
    coarse = allocate("dag", tree, torch.rand(1, tree.size), tree.root_counts[0])
    with pytest.raises(InputError, match="level"):
        patches(gaussian(noise(1, 3, 320, 320), 1), coarse)


def test_uniform_at_full_scale_is_the_image_itself():
    tree = CellTree(96, 128)
    pixels = noise(1, 3, 96, 128)
    selection = allocate("uniform", tree, torch.ones(1, tree.size), 99)
    out = patches(gaussian(pixels, tree.levels), selection)[0]  # [12, 3, 32, 32]
    again = out.view(3, 4, 3, 32, 32).permute(2, 0, 3, 1, 4).reshape(3, 96, 128)
    assert torch.equal(again, pixels[0])


@pytest.mark.parametrize("size", [(640, 480), (500, 901)])
def test_uniform_is_honest_antialiased_downsampling(page, size):
    image = page.resize(size)
    pixels = torch.tensor(list(image.tobytes()), dtype=torch.uint8).view(size[1], size[0], 3).permute(2, 0, 1)[None]
    tree = CellTree(size[1], size[0])
    selection = allocate("uniform", tree, torch.ones(1, tree.size), 64)
    scale = 2 ** -float(selection.levels[0, 0])
    columns = int((selection.boxes[0, :, 1] == 0).sum())
    rows = len(selection.boxes[0]) // columns
    out = patches(gaussian(pixels, tree.levels), selection)[0]
    ours = out.view(rows, columns, 3, 32, 32).permute(2, 0, 3, 1, 4).reshape(3, rows * 32, columns * 32)
    h, w = int(size[1] * scale), int(size[0] * scale)
    theirs = image.resize((w, h), Image.Resampling.BILINEAR)
    theirs = torch.tensor(list(theirs.tobytes()), dtype=torch.uint8).view(h, w, 3).permute(2, 0, 1)
    difference = (ours[:, 8 : h - 8, 8 : w - 8].float() - theirs[:, 8:-8, 8:-8].float()).abs()
    assert float(difference.mean()) < 4, "grey levels off Pillow's own antialiased resize"


def test_a_scale_between_levels_has_its_size():
    levels = gaussian(noise(1, 3, 256, 256), 4)
    assert at_scale(levels, 1.0).shape == (1, 3, 128, 128)
    assert 90 <= at_scale(levels, 1.5).shape[2] <= 93


def test_offgrid_patches_are_bilinear_between_pixels():
    ramp = torch.arange(256).float()[None, None, None].expand(1, 3, 256, 256).to(torch.uint8)
    tree = CellTree(256, 256)
    gaze = torch.tensor([[100.0, 131.0]], dtype=torch.float64)
    selection = allocate("logpolar", tree, torch.ones(1, tree.size), 40, gaze, offgrid=True)
    out = patches(gaussian(ramp.contiguous(), tree.levels), selection)[0]
    fine = [k for k in range(40) if selection.levels[0, k] == 0 and float(selection.boxes[0, k, 2]) <= 240]
    assert fine
    for k in fine:
        x0 = float(selection.boxes[0, k, 0])
        torch.testing.assert_close(out[k, 0, 5].float(), x0 + torch.arange(32.0), rtol=0, atol=0.51)


# ---- reconstruction -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["laplacian", "gaussian"])
@pytest.mark.parametrize("size", [(200, 333), (64, 64), (31, 7)])
def test_all_fine_cells_give_the_image_back(how, size):
    pixels = noise(2, 3, *size)
    tree = CellTree(*size)
    selection = allocate("grid", tree, torch.rand(2, tree.size), tree.fine_counts[0])
    levels = gaussian(pixels, tree.levels)
    assert torch.equal(reconstruct(levels, selection, how=how), pixels.float())


def test_coarse_cells_alone_are_the_coarse_level():
    tree = CellTree(256, 256, levels=3)
    levels = gaussian(noise(1, 3, 256, 256), 3)
    selection = allocate("dag", tree, torch.rand(1, tree.size), tree.root_counts[0])
    blocks = reconstruct(levels, selection, how="gaussian")
    assert torch.equal(blocks[..., ::4, ::4], levels[2].float()) and torch.equal(
        blocks[..., 3::4, 1::4], levels[2].float()
    )
    assert torch.equal(reconstruct(levels, selection, at=2), levels[2].float())
    smooth = reconstruct(levels, selection)
    assert float((smooth.diff(dim=3)).abs().mean()) < float(blocks.diff(dim=3).abs().mean()) * 1.01


def test_the_foveated_image_is_sharp_at_the_gaze_and_blurred_away_from_it():
    pixels = noise(1, 3, 1024, 1024)
    tree = CellTree(1024, 1024)
    levels = gaussian(pixels, tree.levels)
    selection = allocate("foveated", tree, torch.ones(1, tree.size), 150, torch.tensor([[256.0, 256.0]]))
    off = (reconstruct(levels, selection) - pixels.float()).abs().mean(1)[0]
    assert float(off[220:290, 220:290].mean()) == 0 and float(off[800:, 800:].mean()) > 50
    half = reconstruct(levels, selection, at=1)
    assert half.shape == (1, 3, 512, 512) and float((half - levels[1].float()).abs()[..., 110:145, 110:145].max()) == 0


@pytest.mark.parametrize("name", list_allocators())
@pytest.mark.parametrize("size", [(300, 470), (33, 900), (1, 1)])
@pytest.mark.parametrize("at", [0, 1])
def test_every_selection_can_be_reconstructed_at_any_level(name, size, at):
    tree = CellTree(*size, levels=3)
    levels = gaussian(noise(1, 3, *size), tree.levels)
    image = reconstruct(levels, allocate(name, tree, torch.rand(1, tree.size), 40), at)
    assert image.shape == levels[at].shape and float(image.min()) >= 0 and float(image.max()) <= 255


def test_what_is_not_known_is_grey():
    tree = CellTree(320, 320, levels=1)
    relevance = torch.zeros(1, tree.size)
    relevance[0, 0] = 1
    image = reconstruct(gaussian(noise(1, 3, 320, 320), 1), allocate("grid", tree, relevance, 1))
    assert (image[..., 32:, 32:] == 127).all()
    with pytest.raises(InputError, match="how must be"):
        reconstruct([torch.zeros(1, 3, 32, 32)], allocate("grid", tree, relevance, 1), how="steerable")
    with pytest.raises(InputError, match="at must be"):
        reconstruct([torch.zeros(1, 3, 32, 32)], allocate("grid", tree, relevance, 1), at=5)


def test_float_images_stay_float_off_the_tree():
    image = torch.rand(1, 3, 300, 400)
    tree = CellTree(300, 400)
    levels = gaussian(image, tree.levels)
    out = patches(levels, allocate("uniform", tree, torch.ones(1, tree.size), 50))
    assert out.dtype == torch.float32 and 0.01 < float(out.std()) < 0.5
    assert float((out == out.round()).float().mean()) < 0.01


def test_whole_levels_are_not_copied():
    levels = gaussian(noise(1, 3, 200, 200), 3)
    assert at_scale(levels, 0.0) is levels[0] and at_scale(levels, 2) is levels[2]


def test_patches_of_a_padded_batch_repeat_each_image_s_own_edge():
    sizes = [(50, 70), (96, 100)]
    bucket = CellTree.bucket(sizes)
    batch = noise(2, 3, 96, 100)
    selection = allocate("grid", bucket, torch.rand(2, bucket.size), bucket.fine_counts[0])
    out = patches([batch], selection)
    alone_tree = CellTree(50, 70)
    alone = allocate("grid", alone_tree, torch.rand(1, alone_tree.size), alone_tree.fine_counts[0])
    expected = patches([batch[:1, :, :50, :70]], alone)
    assert torch.equal(out[0, : expected.shape[1]], expected[0])


@pytest.mark.parametrize(("cell", "levels", "size"), [(14, 4, (15, 15)), (32, 8, (128, 128)), (28, 5, (100, 333))])
def test_deep_trees_and_odd_cells_can_be_reconstructed_at_every_level(cell, levels, size):
    tree = CellTree(*size, cell, levels)
    pyramid = gaussian(noise(1, 3, *size), levels)
    for name in ("grid", "dag", "pyramid"):
        selection = allocate(name, tree, torch.rand(1, tree.size), 20)
        for at in range(levels):
            assert reconstruct(pyramid, selection, at).shape == pyramid[at].shape


@pytest.mark.parametrize("how", ["gaussian", "laplacian"])
def test_fine_cells_do_not_bleed_into_coarse_neighbours(how):
    tree = CellTree(1024, 1024, levels=6)
    pixels = torch.zeros(1, 3, 1024, 1024, dtype=torch.uint8)
    pixels[..., 480:512, 480:512] = 255
    levels = gaussian(pixels, 6)
    fine = int(tree.locate(torch.tensor([[[490.0, 490.0]]]))[0, 0])
    image = reconstruct(levels, Selection.of(tree, torch.tensor([[0, fine]])), how=how)
    root = levels[5].float().repeat_interleave(32, 2).repeat_interleave(32, 3)
    known = torch.zeros(1024, 1024, dtype=torch.bool)
    if how == "gaussian":
        known[480:512, 480:512] = True
        assert torch.equal(image[0, 0][~known], root[0, 0][~known])
    else:  # the expand step mixes neighbours at every level, within half a coarse pixel of the border
        known[464:528, 464:528] = True
        alone = reconstruct(levels, Selection.of(tree, torch.tensor([[0]])))
        assert torch.equal(image[0, 0][~known], alone[0, 0][~known])


@pytest.mark.parametrize("how", ["gaussian"])
def test_every_pixel_of_a_cut_shows_its_own_cell(how):
    tree = CellTree(512, 512)
    levels = gaussian(noise(1, 3, 512, 512), tree.levels)
    selection = allocate("dag", tree, torch.rand(1, tree.size, generator=torch.Generator().manual_seed(3)) ** 9, 100)
    image = reconstruct(levels, selection, how=how)
    for (x0, y0, x1, y1), level in zip(selection.boxes[0].tolist(), selection.levels[0].tolist(), strict=True):
        if level > 0:
            own = levels[level][0, :, y0 >> level : y1 >> level, x0 >> level : x1 >> level].float()
            shown = image[0, :, y0:y1, x0:x1]
            finer = [b for b, l in zip(selection.boxes[0].tolist(), selection.levels[0].tolist(), strict=True)
                     if l < level and b[0] >= x0 and b[1] >= y0 and b[2] <= x1 and b[3] <= y1]  # fmt: skip
            if not finer:
                assert torch.equal(shown, own.repeat_interleave(2**level, 1).repeat_interleave(2**level, 2))


@pytest.mark.parametrize(
    ("size", "levels", "budget"), [((1024, 900), None, 1), ((5, 3000), None, 7), ((700, 500), 1, 60)]
)
def test_uniform_cells_coarser_than_the_tree_have_pixels_too(size, levels, budget):
    tree = CellTree(*size, levels=levels)
    pixels = noise(2, 3, *size)
    selection = allocate("uniform", tree, torch.ones(2, tree.size), budget)
    assert float(selection.levels.max()) > tree.levels - 1
    out = patches(gaussian(pixels, tree.levels), selection)
    deep = gaussian(pixels, int(selection.levels.max()) + 2)
    assert torch.equal(out, patches(deep, selection)) and abs(float(out.float().mean()) - 127.5) < 8


def test_painting_one_cell_over_a_long_strip_makes_no_square_of_its_length():
    tree = CellTree(4, 100_000)
    levels = gaussian(noise(1, 3, 4, 100_000), tree.levels)  # a square would take 120 GB
    image = reconstruct(levels, allocate("uniform", tree, torch.ones(1, tree.size), 1))
    assert image.shape == (1, 3, 4, 100_000) and abs(float(image.mean()) - 127.5) < 8
