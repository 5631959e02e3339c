"""The Triton kernels say what their torch twins say."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from homunculus import CellTree, pyramid
from homunculus.relevance import Scene, scene
from pyramids import devices, pixels, shapes

FEW = [(1, 1), (2, 1, 9, 14), (20, 41), (24, 40), (4, 1472), (3, 1501)]  # the interpreter takes a second for a piece


@devices
def test_levels_are_those_of_torch(device, kernels):
    from homunculus.kernels import mip

    for shape in FEW:
        x = pixels(*shape)
        found, expected = mip.build(x.to(device), 2), pyramid.gaussian(x, 3)[1:]
        assert all(torch.equal(a.cpu(), b) for a, b in zip(found, expected, strict=True)), shape


@devices
def test_more_levels_than_one_launch_makes(device, kernels):
    from homunculus.kernels import mip

    x = pixels(33, 70)
    few = (torch.uint8, torch.float16, torch.float32)  # 16-bit floats are written alike
    for dtype in few if device == "cpu" else (*few, torch.bfloat16):
        found = mip.build(x.to(device), 5, dtype)
        assert [level.dtype for level in found] == [dtype] * 5
        assert all(torch.equal(a.cpu().byte(), b) for a, b in zip(found, pyramid.gaussian(x, 6)[1:], strict=True))


@pytest.mark.gpu
def test_levels_of_any_shape_are_those_of_torch():
    from homunculus.kernels import mip

    @given(shapes)
    @settings(deadline=None, max_examples=300)
    def same(shape):
        x = pixels(*shape)
        found = mip.build(x.cuda(), 7)
        assert all(torch.equal(a.cpu(), b) for a, b in zip(found, pyramid.gaussian(x, 8)[1:], strict=True))

    same()
    for size in ((2048, 2048), (1753, 1241), (999, 4001)):
        x = pixels(2, 3, *size)
        found = mip.build(x.cuda(), 6)
        assert all(torch.equal(a.cpu(), b) for a, b in zip(found, pyramid.gaussian(x, 7)[1:], strict=True))


@devices
def test_mip_takes_any_memory_order(device, kernels):
    from homunculus.kernels import mip

    x = pixels(2, 3, 31, 33)
    for image in [x.mT[0, 0], x[:1, 1, ::2, ::3], x[:0], x[:1, :1].expand(2, 1, -1, -1), x[0, 0, 0, 1:][None]]:
        found = mip.halve(image.to(device))
        assert found.dtype == torch.uint8 and torch.equal(found.cpu(), pyramid.halve(image))


@devices
def test_images_of_different_sizes_share_launches(device, kernels):
    from homunculus.kernels import mip

    images = [pixels(1, *size) for size in ((40, 61), (17, 130), (9, 8))]
    found = mip.build_each([image.to(device) for image in images], [3, 2, 1])
    for image, levels, count in zip(images, found, (3, 2, 1), strict=True):
        expected = pyramid.gaussian(image, count + 1)[1:]
        assert all(torch.equal(a.cpu(), b) for a, b in zip(levels, expected, strict=True))


@devices
def test_levels_are_known_by_the_memory_that_they_share(device, kernels):
    from homunculus.kernels import mip

    image = pixels(1, 1, 16, 32).to(device)
    level = mip.build(image, 1)[0]
    assert mip.is_built([image, level]) and mip.levels_memory([image, level]).shape == (1, 16 * (8 + 4 + 2))
    assert not mip.is_built([image, level.clone()]), "the levels below it are missing"


@pytest.mark.gpu
def test_mip_counts_beyond_32_bits():
    x = torch.zeros(3, 30_000, 30_001, dtype=torch.uint8, device="cuda")
    x[2] = torch.randint(256, x.shape[1:], dtype=torch.uint8, device="cuda")
    assert torch.equal(pyramid.halve(x)[2, -999:].cpu(), pyramid.halve(x[2, -2000:].cpu())[-999:])


# The band is a difference of luminances, which torch rounds to about 1e-5 grey levels: roots of energies agree to that.
ROUNDING = {"rtol": 1e-5, "atol": 1e-4}


@devices
@pytest.mark.parametrize(("batch", "size", "cell"), [(1, (1, 30), 2), (1, (20, 33), 32), (2, (264, 35), 2)])
def test_detail_holds_the_energy_that_torch_finds(device, kernels, batch, size, cell):
    found, expected = energies(batch, *size, cell, device)
    torch.testing.assert_close(found.sqrt(), expected.sqrt(), **ROUNDING)
    assert found.shape == expected.shape


@pytest.mark.gpu
def test_detail_of_any_size():
    from homunculus.kernels import band_energy

    @given(st.integers(1, 3), st.integers(1, 270), st.integers(1, 270), st.sampled_from(band_energy.CELLS))
    @settings(deadline=None, max_examples=300)
    def same(batch, height, width, cell):
        found, expected = energies(batch, height, width, cell, "cuda")
        torch.testing.assert_close(found.sqrt(), expected.sqrt(), **ROUNDING)

    same()


def energies(batch: int, height: int, width: int, cell: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """By the kernel and by torch."""
    from homunculus.kernels import band_energy

    fine, coarse = pixels(batch, 3, height, width), pixels(batch, 3, (height + 1) // 2, (width + 1) // 2)
    found = band_energy.energy(fine.to(device), coarse.to(device), cell, scene.LUMINANCE)
    return found.cpu(), scene.energy(fine, coarse, cell)


@devices
def test_a_blank_page_has_no_detail(device, kernels):
    from homunculus.kernels import band_energy

    fine, coarse = (torch.full((1, 3, side, side), 201, dtype=torch.uint8, device=device) for side in (37, 19))
    assert (band_energy.energy(fine, coarse, 32, scene.LUMINANCE) == 0).all()


@devices
@pytest.mark.parametrize("cell", [32, pytest.param(14, marks=pytest.mark.gpu)])
def test_a_scene_takes_the_kernels_by_itself(device, kernels, cell, monkeypatch):
    from homunculus.kernels import band_energy, mip

    x, tree = pixels(1, 3, 34, 40), CellTree(34, 40, cell, levels=3)
    expected = Scene(x, tree)
    expected.levels, expected.lost  # noqa: B018  # made before the kernels are let in
    called = []
    for module, name in ((mip, "build"), (band_energy, "energy")):
        usual = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, usual=usual, name=name: called.append(name) or usual(*a))
    if device == "cpu":
        for module in (pyramid, scene):
            monkeypatch.setattr(module, "use_triton", lambda x: True)
    found = Scene(x.to(device), tree)
    torch.testing.assert_close(found.lost.cpu(), expected.lost, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(mine.cpu(), theirs) for mine, theirs in zip(found.levels, expected.levels, strict=True))
    assert called == ["build"] * called.count("build") + ["energy"] * (2 if cell == 32 else 0)
    made = called.count("build")
    assert made
    pyramid.halve(x.to(device), (1, 2, 2, 1)), pyramid.halve(x.to(device).float())
    assert called.count("build") == made, "other weights and other types are torch's"
