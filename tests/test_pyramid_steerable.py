"""A steerable pyramid is a tight frame, turns as its bands say, and is that of pyrtools."""

import math
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from homunculus.pyramid import SteerablePyramid, gaussian, steerable, steerable_inverse
from pyramids import QUICK, devices, noise, parts, pixels, relative, shapes


def most_levels(x: Tensor) -> int:
    return max(0, int(math.log2(min(x.shape[-2:]))) - 2)


@given(shapes, st.integers(0, 4), st.integers(1, 7), st.sampled_from([torch.float32, torch.float64]))
@QUICK
def test_steerable_reconstructs_and_keeps_energy(
    shape: tuple[int, ...], levels: int, orientations: int, dtype: torch.dtype
) -> None:
    x = noise(*shape, dtype=dtype)
    pyramid = steerable(x, min(levels, most_levels(x)), orientations)
    tight = 1e-5 if dtype == torch.float32 else 1e-12
    assert {part.dtype for part in parts(pyramid)} == {dtype}
    assert relative(steerable_inverse(pyramid), x) < tight
    # The tight frame: a coefficient counts for the share of the image's pixels that its level has.
    whole = x.shape[-2] * x.shape[-1]
    energy = sum(part.square().sum() * part.shape[-2] * part.shape[-1] / whole for part in parts(pyramid))
    torch.testing.assert_close(energy, x.square().sum(), rtol=10 * tight, atol=0)


@given(st.integers(8, 70), st.integers(8, 70), st.integers(1, 5))
@QUICK
def test_steerable_shapes_and_mean(h: int, w: int, orientations: int) -> None:
    x = noise(2, h, w, dtype=torch.float64) + 3
    levels = most_levels(x)
    pyramid = steerable(x, levels, orientations)
    sizes = [g.shape[-2:] for g in gaussian(x, levels + 1)]
    assert pyramid.high.shape == x.shape
    assert [b.shape for b in pyramid.bands] == [(2, orientations, *s) for s in sizes[:-1]]
    assert pyramid.low.shape == (2, *sizes[-1])
    torch.testing.assert_close(pyramid.low.sum(dim=(-2, -1)), x.sum(dim=(-2, -1)))


@pytest.mark.parametrize("shape", [(64, 64), (33, 57)])
def test_steerable_of_a_constant_is_low_only(shape: tuple[int, int]) -> None:
    pyramid = steerable(torch.full(shape, 5.0), 3)
    share = math.prod(shape) / math.prod(pyramid.low.shape)
    for part in parts(pyramid)[:-1]:
        assert part.abs().max() < 1e-5
    torch.testing.assert_close(pyramid.low, torch.full_like(pyramid.low, 5 * share))


@pytest.mark.parametrize("orientations", [2, 3, 4, 6])
@devices
def test_convention_band_b_passes_frequencies_at_angle_pi_b_over_o(orientations: int, device: str) -> None:
    """Angles from x (right) towards y (down), so that band 1 of 4 answers to lines like /."""
    y, x = torch.meshgrid(torch.arange(64.0, device=device), torch.arange(64.0, device=device), indexing="ij")
    for b in range(orientations):
        angle = math.pi * b / orientations
        wave = torch.cos(2 * math.pi * 0.15 * (x * math.cos(angle) + y * math.sin(angle)))
        energies = sum(band.square().sum(dim=(-2, -1)) for band in steerable(wave, 2, orientations).bands)
        assert int(energies.argmax()) == b


def test_convention_vertical_lines_in_band_0_horizontal_in_band_half() -> None:
    vertical = torch.zeros(64, 64)
    vertical[:, 32] = 1
    for image, band in ((vertical, 0), (vertical.T, 2)):
        for level in steerable(image, 3, 4).bands:
            assert int(level.square().sum(dim=(-2, -1)).argmax()) == band
    # O even: the filters are odd-symmetric and vanish on the line itself; O odd: they peak on it.
    assert steerable(vertical, 2, 4).bands[0][0, :, 32].abs().max() < 1e-6
    assert int(steerable(vertical, 2, 3).bands[0][0, 10].abs().argmax()) == 32


class _CentredGrid:
    """numpy for pyrtools, with its frequency grid centred on 0 when the size is odd.

    Its analysis uses linspace(-1, 1, n + 1)[:-1], which for odd n misses 0 by half a bin: the bands come
    out complex and are cut to their real part (it warns of this). Its own synthesis uses this grid; so
    does ours, both ways, without which odd sizes could not be inverted.
    """

    def __getattr__(self, name: str) -> object:
        return getattr(np, name)

    def linspace(self, start: float, stop: float, count: int) -> np.ndarray:
        assert (start, stop) == (-1, 1)
        return (np.arange(count) - (count - 1) // 2) / ((count - 1) / 2)


def pyrtools_pyramid(x: Tensor, levels: int, orientations: int) -> Any:
    pyramids = pytest.importorskip("pyrtools.pyramids")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pyramids.SteerablePyramidFreq(x.numpy(), height=levels, order=orientations - 1)


def pyrtools_parts(theirs: Any, levels: int) -> list[Tensor]:
    bands = [np.stack([theirs.pyr_coeffs[l, b] for b in range(theirs.num_orientations)]) for l in range(levels)]
    residuals = theirs.pyr_coeffs["residual_highpass"], theirs.pyr_coeffs["residual_lowpass"]
    return [torch.from_numpy(part) for part in (residuals[0], *bands, residuals[1])]


@pytest.mark.parametrize("orientations", range(1, 7))
@pytest.mark.parametrize("shape", [(64, 64), (50, 66), (65, 65), (49, 72), (32, 131)])
def test_steerable_is_pyrtools_band_by_band(
    shape: tuple[int, int], orientations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyrtools.pyramids")
    x = noise(*shape, dtype=torch.float64)
    if shape[0] % 2 or shape[1] % 2:
        # By name: the attribute of the package is the class, which hides its module.
        monkeypatch.setattr(sys.modules["pyrtools.pyramids.SteerablePyramidFreq"], "np", _CentredGrid())
    theirs = pyrtools_parts(pyrtools_pyramid(x, 3, orientations), 3)
    for mine, other in zip(parts(steerable(x, 3, orientations)), theirs, strict=True):
        assert mine.shape == other.shape
        for a, b in zip(mine.reshape(-1, *_plane(mine)), other.reshape(-1, *_plane(other)), strict=True):
            assert relative(a, b) < 2e-5


def _plane(x: Tensor) -> torch.Size:
    return x.shape[-2:]


@pytest.mark.parametrize("orientations", [1, 4])
@pytest.mark.parametrize("shape", [(64, 64), (65, 51)])
def test_pyrtools_unaltered_inverts_our_pyramid(shape: tuple[int, int], orientations: int) -> None:
    """Also band by band: the image that one band alone makes."""
    x = noise(*shape, dtype=torch.float64)
    mine, theirs = steerable(x, 2, orientations), pyrtools_pyramid(x, 2, orientations)
    theirs.pyr_coeffs["residual_highpass"] = mine.high.numpy()
    theirs.pyr_coeffs["residual_lowpass"] = mine.low.numpy()
    for l, b in ((l, b) for l in range(2) for b in range(orientations)):
        theirs.pyr_coeffs[l, b] = mine.bands[l][b].numpy()
    assert relative(torch.from_numpy(theirs.recon_pyr()), x) < 5e-5
    for l, b in ((0, 0), (1, orientations - 1)):
        bands = [torch.zeros_like(band) for band in mine.bands]
        bands[l][b] = mine.bands[l][b]
        alone = SteerablePyramid(torch.zeros_like(mine.high), tuple(bands), torch.zeros_like(mine.low))
        other = torch.from_numpy(theirs.recon_pyr(levels=[l], bands=[b]))
        assert relative(steerable_inverse(alone), other) < 5e-5


@devices
def test_steerable_takes_narrow_types_as_float32(device: str) -> None:
    image = pixels(2, 40, 33, device=device)
    assert torch.equal(steerable(image, 2).low, steerable(image.float(), 2).low)
    assert steerable(noise(16, 16, device=device).half(), 1).high.dtype == torch.float32


def test_gradients_flow_through_steerable() -> None:
    x = noise(9, 8, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(parts(steerable(x, 1, 2))), (x,), fast_mode=True)
    assert torch.autograd.gradcheck(lambda x: steerable_inverse(steerable(x, 1, 3)), (x,), fast_mode=True)
