"""The Triton kernels say what their torch twins say."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from homunculus import CellTree, pyramid
from homunculus.relevance import Scene, scene
from pyramids import devices, pixels, shapes

SIZES = [(1, 1), (1, 270), (70, 1), (31, 33), (64, 64), (63, 259)]


def examples(device: str) -> settings:
    return settings(deadline=None, max_examples=300 if device == "cuda" else 8)  # the interpreter is slow


@pytest.fixture
def kernels(device: str) -> None:
    pytest.importorskip("triton")
    if device == "cpu" and "TRITON_INTERPRET" not in os.environ:
        pytest.skip("needs TRITON_INTERPRET on a CPU")


@devices
def test_mip_halves_every_pixel_as_torch_does(device, kernels):
    from homunculus.kernels import mip

    @given(shapes)
    @examples(device)
    def same(shape):
        x = pixels(*shape)
        assert torch.equal(mip.halve(x.to(device)).cpu(), pyramid.halve(x))

    same()


@devices
@pytest.mark.parametrize("size", SIZES)
def test_mip_takes_any_size_batch_and_memory_order(device, kernels, size):
    from homunculus.kernels import mip

    x = pixels(2, 3, *size)
    for image in [x, x.mT[0, 0], x[:, 1, ::2, ::3], x[:0], x[:1, :1].expand(2, 2, -1, -1)]:
        found = mip.halve(image.to(device))
        assert found.dtype == torch.uint8 and torch.equal(found.cpu(), pyramid.halve(image))


@pytest.mark.gpu
def test_mip_counts_beyond_32_bits():
    x = torch.zeros(3, 30_000, 30_001, dtype=torch.uint8, device="cuda")
    x[2] = torch.randint(256, x.shape[1:], dtype=torch.uint8, device="cuda")
    assert torch.equal(pyramid.halve(x)[2, -999:].cpu(), pyramid.halve(x[2, -2000:].cpu())[-999:])


@devices
@pytest.mark.parametrize("cell", [2, 32, 64])
@pytest.mark.parametrize("size", SIZES)
def test_detail_holds_the_energy_that_torch_finds(device, kernels, size, cell):
    from homunculus.kernels import detail

    fine, coarse = pyramid.gaussian(pixels(2, 3, *size), 2)
    found = detail.energy(fine.to(device), coarse.to(device), cell, scene.LUMINANCE)
    torch.testing.assert_close(found.cpu(), scene.energy(fine, coarse, cell), rtol=1e-5, atol=1e-5)


@devices
def test_detail_on_every_side_up_to_70(device, kernels):
    from homunculus.kernels import detail

    @given(st.integers(1, 3), st.integers(1, 70), st.integers(1, 70), st.sampled_from(detail.CELLS))
    @examples(device)
    def same(batch, height, width, cell):
        fine, coarse = pixels(batch, 3, height, width), pixels(batch, 3, (height + 1) // 2, (width + 1) // 2)
        found = detail.energy(fine.to(device), coarse.to(device), cell, scene.LUMINANCE)
        torch.testing.assert_close(found.cpu(), scene.energy(fine, coarse, cell), rtol=1e-5, atol=1e-5)

    same()


@devices
def test_a_blank_page_has_no_detail(device, kernels):
    from homunculus.kernels import detail

    fine, coarse = (torch.full((1, 3, side, side), 201, dtype=torch.uint8, device=device) for side in (97, 49))
    assert (detail.energy(fine, coarse, 32, scene.LUMINANCE) == 0).all()


@devices
@pytest.mark.parametrize("cell", [14, 32])
def test_a_scene_takes_the_kernels_by_itself(device, kernels, cell, monkeypatch):
    from homunculus.kernels import detail, mip

    x, tree = pixels(1, 3, 70, 139), CellTree(70, 139, cell, levels=3)
    expected = Scene(x, tree)
    expected.levels, expected.lost  # noqa: B018  # made before the kernels are let in
    called = []
    for module, name in ((mip, "halve"), (detail, "energy")):
        usual = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, usual=usual, name=name: called.append(name) or usual(*a))
    if device == "cpu":
        for module in (pyramid, scene):
            monkeypatch.setattr(module, "kernels_for", lambda x: True)
    found = Scene(x.to(device), tree)
    torch.testing.assert_close(found.lost.cpu(), expected.lost, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(mine.cpu(), theirs) for mine, theirs in zip(found.levels, expected.levels, strict=True))
    assert called == ["halve"] * 2 + ["energy"] * (2 if cell == 32 else 0)
    pyramid.halve(x.to(device), (1, 2, 2, 1)), pyramid.halve(x.to(device).float())
    assert called.count("halve") == 2, "other weights and other types are torch's"
