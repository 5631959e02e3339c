"""What texture units make of levels and patches, emulated on any machine and held against the units on a GPU."""

import gc
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from homunculus import CellTree, Selection, pyramid, tokens
from homunculus.errors import InputError
from homunculus.kernels import texture
from homunculus.kernels.texture import Colours, Mipmap
from pyramids import pixels

SIZES = [(1, 1), (1, 270), (70, 1), (31, 33), (64, 64), (63, 259), (517, 773)]
FRACTIONS = [0.25, 0.5, 0.75, 1.3, 1.58496, 2.7]
WARM = Colours(torch.float32, (0.48, 0.45, 0.4), (0.27, 0.26, 0.28))


def off(found: Tensor, expected: Tensor) -> Tensor:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    return (found.cpu().double() - expected.cpu().double()).abs()


def assert_same(found: Tensor, expected: Tensor) -> None:
    lack = off(found, expected)
    assert not lack.any(), f"{float((lack > 0).double().mean()):.3%} differ, by at most {float(lack.max())}"


def of_tree(sizes: list[tuple[int, int]], cell: int, levels: int) -> Selection:
    """Cells of every level of a bucket in a random order, more of them in some rows than in others."""
    tree = CellTree.bucket(sizes, cell, levels)
    order = torch.rand(tree.valid.shape, generator=torch.manual_seed(3)).argsort(1)
    indices = torch.where(tree.valid.gather(1, order), order, -1)
    return Selection.of(tree, indices.gather(1, (indices < 0).int().argsort(dim=1, stable=True)))


def tiled(images: Tensor, level: float, cell: int = 16, shift: float = 0.0) -> Selection:
    """Off the tree: cells of one scale that tile the images, moved by `shift` pixels."""
    (B, _, height, width), span = images.shape, cell * 2.0**level
    y, x = (torch.arange(0, n, span, dtype=torch.float64) + shift for n in (height, width))
    corner = torch.cartesian_prod(y[y < height], x[x < width]).flip(1)
    boxes = torch.cat((corner, corner + span), 1).expand(B, -1, -1)
    levels, there = torch.full(boxes.shape[:2], level), torch.ones(boxes.shape[:2], dtype=torch.bool)
    return Selection(boxes, levels.double(), None, there, torch.tensor([[height, width]]).expand(B, -1), cell)


def emulated(levels: list[Tensor], selection: Selection, colours: Colours = texture.BYTES, bits: int = 8) -> Tensor:
    boxes, sizes = selection.boxes, selection.sizes
    return texture.emulate_sample(
        levels, boxes, selection.levels, selection.cell, sizes, selection.mask, colours, bits=bits
    )


def sampled(mipmap: Mipmap, selection: Selection, colours: Colours = texture.BYTES) -> Tensor:
    boxes, levels, sizes, mask = (
        x.to(mipmap.device) for x in (selection.boxes, selection.levels, selection.sizes, selection.mask)
    )
    return texture.sample(mipmap, boxes, levels, selection.cell, sizes, mask, colours)


@pytest.fixture(scope="module")
def paper(page) -> Tensor:
    return torch.from_numpy(np.array(page)).permute(2, 0, 1)[None].contiguous()


# ---- the arithmetic, on any machine --------------------------------------------------------------------------------


@given(st.integers(1, 3), st.integers(1, 70), st.integers(1, 70), st.sampled_from([None, 65535, 4095]))
@settings(deadline=None, max_examples=60)
def test_bilinear_fetches_halve_exactly(batch, height, width, steps):
    """8-bit weights hold quarters, and 12 bits of a result are enough to round it to its 16th."""
    x = pixels(batch, 3, height, width)
    for found, expected in zip(texture.emulate(x, 5, steps), pyramid.gaussian(x, 5), strict=True):
        assert_same(found, expected)


def test_a_page_is_halved_exactly(paper):
    for found, expected in zip(texture.emulate(paper, 7), pyramid.gaussian(paper, 7), strict=True):
        assert_same(found, expected)


def test_results_of_eleven_bits_would_not_do():
    """How a worse filter would show: 1.7 % of the first level are off, and none by more than 1."""
    x = pixels(1, 3, 517, 773)
    lack = off(texture.emulate(x, 2, 2047)[1], pyramid.halve(x))
    assert 0.01 < (lack > 0).double().mean() < 0.03 and lack.max() == 1


def test_cells_of_the_tree_are_fetched_exactly():
    sizes = [(70, 139), (33, 97), (70, 20)]
    levels = pyramid.gaussian(pixels(3, 3, 70, 139), 4)
    selection = of_tree(sizes, 16, 4)
    assert not selection.mask.all()
    assert_same(emulated(levels, selection), tokens.patches(levels, selection))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_cells_between_pixels_are_exact_at_dyadic_places_and_within_1_elsewhere(level):
    levels = pyramid.gaussian(pixels(2, 3, 150, 133), 3)
    for shift, most in ((3.0, 0), (0.5, 0), (1.37, 1)):
        selection = tiled(levels[0], level, shift=shift)
        assert off(emulated(levels, selection), tokens.patches(levels, selection)).max() <= most


@pytest.mark.parametrize("level", FRACTIONS)
def test_8_bit_weights_move_a_blend_by_at_most_1(level, paper):
    """On noise, the worst there is, under a tenth of the pixels; on a page under a hundredth."""
    for x, share in ((pixels(1, 3, 300, 401), 0.1), (paper, 0.01)):
        levels = pyramid.gaussian(x, 4)
        lack = off(emulated(levels, tiled(x, level)), emulated(levels, tiled(x, level), bits=40))
        assert lack.max() <= 1 and (lack > 0).double().mean() < share


@pytest.mark.parametrize("level", FRACTIONS)
def test_trilinear_is_another_filter_than_antialiasing(level, paper):
    """On a page they differ by about one grey level on average, at edges by tens: neither can stand for the other."""
    levels, selection = pyramid.gaussian(paper, 4), tiled(paper, level)
    lack = off(emulated(levels, selection), tokens.patches(levels, selection))
    assert 0.2 < lack.mean() < 2 and 10 < lack.max() < 100
    flat = [torch.full_like(level, 201) for level in levels]
    assert_same(emulated(flat, selection), tokens.patches(flat, selection))


def test_a_blend_keeps_a_smooth_image_and_its_edges():
    y, x = torch.meshgrid(torch.arange(203.0), torch.arange(301.0), indexing="ij")
    image = (128 + 60 * (x / 40).sin() + 50 * (y / 50).cos()).to(torch.uint8).expand(1, 3, -1, -1)
    levels = pyramid.gaussian(image, 4)
    for level in FRACTIONS[:5]:
        selection = tiled(image, level)
        assert off(emulated(levels, selection), tokens.patches(levels, selection)).max() <= 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_colours_are_those_that_a_model_knows(dtype):
    levels, colours = pyramid.gaussian(pixels(2, 3, 70, 90), 3), Colours(dtype, WARM.mean, WARM.std)
    selection = of_tree([(70, 90), (40, 33)], 16, 3)
    mean, std = (torch.tensor(three).view(3, 1, 1) for three in (WARM.mean, WARM.std))
    expected = ((tokens.patches(levels, selection) / 255 - mean) / std).to(dtype)
    assert_same(emulated(levels, selection, colours), expected * selection.mask[..., None, None, None])


def test_levels_beyond_the_last_are_read_from_the_last():
    levels = pyramid.gaussian(pixels(1, 3, 64, 64), 3)
    box = torch.tensor([[[0, 0, 64, 64]]])
    found = texture.emulate_sample(levels, box, torch.tensor([[3]]), 8)
    assert_same(
        found, (levels[2].double().unflatten(2, (8, 2)).unflatten(4, (8, 2)).mean((3, 5)) + 0.5).byte()[:, None]
    )


# ---- the border, on any machine ------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOMUNCULUS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_source_compiles_once_and_loads(cache):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    library = texture.build("sm_90")
    assert list(cache.iterdir()) == [library]
    made = library.stat().st_mtime_ns
    assert texture.build("sm_90") == library and library.stat().st_mtime_ns == made
    loaded, handle = texture.load(library), texture.ctypes.c_void_p()
    with pytest.raises(RuntimeError, match="CUDA said"):  # without a GPU, and with fewer than a hundred of them
        texture._check(loaded.texture_create(99, 1, 8, 8, 2, texture.ctypes.byref(handle)))
    assert handle.value is None


def test_without_nvcc_one_sentence_says_so(cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with pytest.raises(InputError, match="need nvcc"):
        texture.build("sm_90")
    assert not list(cache.iterdir())


def test_what_nvcc_finds_wrong_is_passed_on(cache, tmp_path, monkeypatch):
    fake = tmp_path / "bin" / "nvcc"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho hello\necho 'nvcc fatal error: no such architecture' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    with pytest.raises(RuntimeError, match="sm_1: nvcc fatal error: no such architecture"):
        texture.build("sm_1")
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 64, 64, 3, "cpu"), "need a CUDA device"),
        ((0, 64, 64, 3), "batch must be"),
        ((1, 64, 64, 17), "levels must be"),
        ((1, 32768, 32769, 3), "width must be"),
    ],
)
def test_a_mipmap_that_cannot_be(arguments, message):
    with pytest.raises(InputError, match=message):
        Mipmap(*arguments)


def test_colours_that_cannot_be():
    for wrong in ({"dtype": torch.int32}, {"mean": (0.5,)}, {"std": (1, 0, 1)}):
        with pytest.raises(InputError, match=r"std|patches"):
            Colours(**wrong)


def test_places_that_cannot_be():
    levels, box, depth = [pixels(1, 3, 8, 8)], torch.zeros(1, 2, 4), torch.zeros(1, 2)
    for wrong in ((box[..., :3], depth), (box, depth[0]), (box, depth, 4, torch.zeros(2, 2)), (box[0], depth)):
        with pytest.raises(InputError, match="must be"):
            texture.emulate_sample(levels, *wrong[:2], 4, *wrong[3:])
    with pytest.raises(InputError, match="bool"):
        texture.emulate_sample(levels, box, depth, 4, mask=depth)


# ---- the units themselves ------------------------------------------------------------------------------------------


def room_for(images: Tensor, levels: int) -> Mipmap:
    return Mipmap(len(images), *images.shape[2:], levels)


@pytest.mark.gpu
@pytest.mark.parametrize("size", SIZES)
def test_units_build_the_levels_that_torch_does(size):
    x = pixels(2, 3, *size)
    with room_for(x, 6) as mipmap:
        mipmap.fill(x.cuda())
        for level, expected in enumerate(texture.emulate(x, 6)):
            assert_same(mipmap.level(level), expected)


@pytest.mark.gpu
def test_units_build_every_side_up_to_70():
    @given(st.integers(1, 3), st.integers(1, 70), st.integers(1, 70), st.integers(1, 8))
    @settings(deadline=None, max_examples=100)
    def same(batch, height, width, levels):
        x = pixels(batch, 3, height, width)
        with room_for(x, levels) as mipmap:
            mipmap.fill(x.cuda())
            for level, expected in enumerate(pyramid.gaussian(x, levels)):
                assert_same(mipmap.level(level), expected)

    same()


@pytest.mark.gpu
def test_units_take_any_memory_order_and_are_used_again():
    x = pixels(2, 3, 101, 67)
    with room_for(x, 4) as mipmap:
        flipped = x.flip(3).mT.contiguous().mT
        for image in (x, x.contiguous(memory_format=torch.channels_last), flipped, x[:1].expand_as(x)):
            mipmap.fill(image[:1].cuda().expand_as(x) if image.stride(0) == 0 else image.cuda())
            for level, expected in enumerate(pyramid.gaussian(image, 4)):
                assert_same(mipmap.level(level), expected)
        wide = torch.cat((x, x), 3).cuda()
        assert_same(mipmap.fill(wide[..., 5 : 5 + 67]).level(2), pyramid.gaussian(wide[..., 5 : 5 + 67].cpu(), 3)[2])


@pytest.mark.gpu
@pytest.mark.parametrize("cell", [14, 32, 300])
def test_units_cut_cells_of_the_tree_exactly(cell):
    sizes, x = [(500, 611), (333, 97), (70, 20)], pixels(3, 3, 500, 611)
    levels, selection = pyramid.gaussian(x, 4), of_tree(sizes, cell, 4)
    with room_for(x, 4) as mipmap:
        mipmap.fill(x.cuda())
        assert_same(sampled(mipmap, selection), tokens.patches(levels, selection))
        for dtype, most in ((torch.float32, 1e-5), (torch.float16, 0.002), (torch.bfloat16, 0.02)):
            colours = Colours(dtype, WARM.mean, WARM.std)
            assert off(sampled(mipmap, selection, colours), emulated(levels, selection, colours)).max() <= most


@pytest.mark.gpu
@pytest.mark.parametrize("level", [*FRACTIONS, 0, 1, 2])
def test_units_blend_as_emulated(level):
    """A coordinate is off by up to 1e-3 texels, so that each of three weights may round the other way: 3 at most."""
    x = pixels(2, 3, 517, 773)
    with room_for(x, 4) as mipmap:
        mipmap.fill(x.cuda())
        for shift in (0.0, 1.37):
            selection = tiled(x, level, shift=shift)
            lack = off(sampled(mipmap, selection), emulated(pyramid.gaussian(x, 4), selection))
            assert lack.max() <= 3 and lack.mean() < 0.25, (lack.max(), lack.mean())


@pytest.mark.gpu
@pytest.mark.parametrize("size", [(64, 64), (61, 97), (33, 32)])
def test_units_repeat_the_edge_between_levels_too(size):
    x = pixels(1, 3, *size)
    with room_for(x, 5) as mipmap:
        mipmap.fill(x.cuda())
        for level in FRACTIONS:
            selection = tiled(x, level, cell=32)  # most of them hang over
            assert off(sampled(mipmap, selection), emulated(pyramid.gaussian(x, 5), selection)).max() <= 3


@pytest.mark.gpu
def test_units_work_on_the_current_stream():
    x = pixels(2, 3, 1030, 999)
    selection, stream = of_tree([(1030, 999)] * 2, 32, 4), torch.cuda.Stream()
    expected = tokens.patches(pyramid.gaussian(x, 4), selection)
    with room_for(x, 4) as mipmap, torch.cuda.stream(stream):
        there = x.cuda()
        for _ in range(3):
            torch.cuda._sleep(10_000_000)  # whoever does not wait for this stream finds nothing yet
            found = sampled(mipmap.fill(there.flip(3).flip(3)), selection)
        stream.synchronize()
        assert_same(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("warm", [True, False])
def test_units_work_in_a_graph(warm):
    first, second = pixels(2, 3, 301, 222), pixels(2, 3, 301, 222).flip(2)
    selection, images = of_tree([(301, 222)] * 2, 32, 4), first.cuda()
    places = [y.cuda() for y in (selection.boxes, selection.levels, selection.sizes, selection.mask)]
    boxes, levels, sizes, mask = places
    with room_for(first, 4) as mipmap:
        if warm:
            texture.sample(mipmap.fill(images), boxes, levels, 32, sizes, mask)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = texture.sample(mipmap.fill(images), boxes, levels, 32, sizes, mask)
        for x in (second, first):
            images.copy_(x)
            graph.replay()
            assert_same(found, tokens.patches(pyramid.gaussian(x, 4), selection))
        del graph


@pytest.mark.gpu
def test_a_mipmap_is_freed_by_close_and_when_dropped():
    """The driver keeps up to a gigabyte of what was freed for the next one; five that were not would be six."""
    texture.sample(Mipmap(1, 8, 8, 2), torch.zeros(1, 1, 4, device="cuda"), torch.zeros(1, 1, device="cuda"), 8)
    Mipmap(1, 16384, 16384, 2).close()
    gc.collect()
    free = torch.cuda.mem_get_info()[0]
    for turn in range(5):
        mipmap = Mipmap(1, 16384, 16384, 2)
        assert torch.cuda.mem_get_info()[0] < free - (1 << 30)
        if turn % 2:
            del mipmap
        else:
            mipmap.close()
            mipmap.close()
            with pytest.raises(InputError, match="closed"):
                mipmap.level(0)
    assert torch.cuda.mem_get_info()[0] > free - (1 << 30)


@pytest.mark.gpu
def test_what_a_mipmap_does_not_take():
    with Mipmap(2, 30, 40, 2) as mipmap:
        for wrong in (pixels(2, 3, 30, 40), pixels(2, 3, 30, 41).cuda(), pixels(2, 3, 30, 40).cuda().float()):
            with pytest.raises(InputError, match="takes uint8"):
                mipmap.fill(wrong)
        with pytest.raises(InputError, match="boxes must be"):
            texture.sample(mipmap, torch.zeros(2, 1, 4), torch.zeros(2, 1), 8)
    with pytest.raises(RuntimeError, match="CUDA said"):
        Mipmap(2048, 32768, 32768, 2)
    assert not Mipmap(1, 1, 1, 1).fill(torch.zeros(1, 3, 1, 1, dtype=torch.uint8, device="cuda")).level(0).any()
