"""A pyramid is tested by what it is: nesting cells, reconstruction, parity with other libraries."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from homunculus import pyramid as module
from homunculus.errors import InputError
from homunculus.pyramid import (
    SteerablePyramid,
    double,
    gaussian,
    halve,
    laplacian,
    laplacian_inverse,
    steerable,
    steerable_inverse,
)
from pyramids import QUICK, devices, noise, parts, pixels, relative, shapes

BINOMIAL = (1, 5, 10, 10, 5, 1)  # Burt & Adelson's (1,4,6,4,1), then the mean of two
KERNELS = [(1, 3, 3, 1), BINOMIAL, (1, 1), (1, 2, 2, 1), (-1, 9, 9, -1)]


def sums_by_definition(image: np.ndarray, kernel: tuple[int, ...]) -> np.ndarray:
    """Integer weighted sums of an [H, W] image, straight from the convention. Divide by sum(kernel)^2."""
    m = len(kernel) // 2
    out = image.astype(np.int64)
    for axis, n in enumerate(image.shape):
        taps = 2 * np.arange(-(-n // 2))[:, None] + np.arange(1 - m, m + 1)  # [ceil(n/2), 2m]
        out = np.take(out, taps.clip(0, n - 1), axis=axis)
        out = np.tensordot(np.moveaxis(out, axis + 1, -1), np.array(kernel), axes=1)
    return out


# ---- halve and double -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (5, 3), (8, 12), (13, 10), (31, 47)])
@devices
def test_halve_is_its_definition_and_uint8_rounds_half_up(
    shape: tuple[int, int], kernel: tuple[int, ...], device: str
) -> None:
    x = pixels(*shape)
    sums, total = sums_by_definition(x.numpy(), kernel), sum(kernel) ** 2
    rounded = ((sums + total // 2) // total).clip(0, 255)
    assert halve(x.to(device), kernel).cpu().numpy().tolist() == rounded.tolist()
    exact = torch.from_numpy(sums / total)
    torch.testing.assert_close(halve(x.to(device).double(), kernel).cpu(), exact, rtol=1e-14, atol=0)
    torch.testing.assert_close(halve(x.to(device).float(), kernel).cpu(), exact.float(), rtol=2e-7, atol=0)


def test_default_kernel_is_exact_in_float32_on_pixels() -> None:
    x = pixels(2, 3, 37, 50)
    assert torch.equal(halve(x.float()).double(), halve(x.double()))


def test_convention_ceil_on_odd_size_and_edge_replicated() -> None:
    row = torch.tensor([[8.0, 16.0, 24.0]])
    # (8+3*8+3*16+24)/8 and (16+3*24+3*24+24)/8
    assert halve(row).tolist() == [[13.0, 23.0]]
    assert [tuple(g.shape) for g in gaussian(torch.zeros(9, 6), 6)] == [
        (9, 6),
        (5, 3),
        (3, 2),
        (2, 1),
        (1, 1),
        (1, 1),
    ]


@pytest.mark.parametrize("n", [16, 17])
def test_convention_centre_of_pixel_i_is_2i_plus_half(n: int) -> None:
    ramp = torch.arange(n, dtype=torch.float64).expand(n, n)
    half = halve(ramp)
    inner = slice(1, (n - 1) // 2)
    assert half[0, inner].tolist() == [2 * i + 0.5 for i in range(len(half))][inner]
    assert torch.equal(halve(ramp.T), half.T)
    assert torch.equal(double(half, (n, n))[2:-4, 4:-4], ramp[2:-4, 4:-4])


@given(shapes, st.integers(1, 6000), st.sampled_from(KERNELS), st.sampled_from([torch.uint8, torch.float32]))
@QUICK
def test_strips_equal_the_whole(
    shape: tuple[int, ...], strip: int, kernel: tuple[int, ...], dtype: torch.dtype
) -> None:
    x = pixels(*shape).to(dtype) if dtype == torch.uint8 else noise(*shape)
    whole = halve(x, kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_STRIP", strip)
        assert torch.equal(halve(x, kernel), whole)


def test_uint8_never_has_a_float_copy_of_the_image() -> None:
    class LargestFloat(TorchDispatchMode):
        pixels = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor) and out.is_floating_point():
                self.pixels = max(self.pixels, out.numel())
            return out

    image = torch.zeros(3, 1500, 3000, dtype=torch.uint8)
    with LargestFloat() as seen:
        halve(image)
    assert 0 < seen.pixels < 1.1 * module._STRIP < image.numel() / 10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@devices
def test_dtype_and_device_stay(dtype: torch.dtype, device: str) -> None:
    x = noise(2, 9, 6, dtype=dtype, device=device)
    for y in [halve(x), double(x, (18, 11)), *laplacian(x, 3)]:
        assert (y.dtype, y.device.type) == (dtype, device)
    close = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6)
    torch.testing.assert_close(halve(x).double(), halve(x.double()), rtol=close, atol=close)


@pytest.mark.parametrize("size", [(10, 6), (9, 6), (10, 5), (9, 5)])
@devices
def test_double_is_cropped_bilinear_interpolation(size: tuple[int, int], device: str) -> None:
    x = noise(2, 4, 5, 3, device=device)
    full = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    assert torch.equal(double(x, size), full[..., : size[0], : size[1]])
    assert torch.equal(double(x[0, 0], size), full[0, 0, : size[0], : size[1]])


def test_convention_double_weighs_three_quarters_and_one() -> None:
    assert double(torch.tensor([[0.0, 4.0]]), (1, 4)).tolist() == [[0.0, 1.0, 3.0, 4.0]]


# ---- Gaussian -------------------------------------------------------------------------------------


@given(st.integers(4, 40), st.integers(4, 40))
@QUICK
def test_gaussian_is_antialiased_interpolation_inside(h: int, w: int) -> None:
    x = noise(1, 2, 2 * h, 2 * w)
    theirs = F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True, align_corners=False)
    torch.testing.assert_close(gaussian(x, 2)[1][..., 1:-1, 1:-1], theirs[..., 1:-1, 1:-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (2, 3, 20, 34), (1, 2, 64, 6)])
def test_binomial_kernel_is_kornia_pyrdown(shape: tuple[int, ...]) -> None:
    x = noise(*shape)
    theirs = pytest.importorskip("kornia.geometry.transform").pyrdown(x, border_type="replicate")
    torch.testing.assert_close(gaussian(x, 2, BINOMIAL)[1], theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(16, 16), (24, 40)])
@pytest.mark.parametrize(("smoother", "tolerance"), [(0, 0.1), (1, 0.04), (2, 0.005)])
def test_default_kernel_is_near_skimage_pyramid_reduce(shape: tuple[int, int], smoother: int, tolerance: float) -> None:
    """A Gaussian of variance 1/2, then the mean of two, has the variance of our kernel: 3/4.

    White noise is the hardest image. Inside and on even sizes only: skimage has no mode that repeats the
    edge in both of its steps, and aligns the outer borders on odd sizes.
    """
    x = noise(*shape, dtype=torch.float64)
    for _ in range(smoother):
        x = double(x, (2 * x.shape[0], 2 * x.shape[1]))
    theirs = pytest.importorskip("skimage.transform").pyramid_reduce(x.numpy(), sigma=1 / math.sqrt(2), mode="reflect")
    assert relative(halve(x)[2:-2, 2:-2], torch.from_numpy(theirs)[2:-2, 2:-2]) < tolerance


@devices
def test_gaussian_starts_with_the_image_and_repeats_at_one_pixel(device: str) -> None:
    for x in (pixels(1, 3, 5, 2, device=device), noise(1, 3, 5, 2, device=device)):
        levels = gaussian(x, 6)
        assert levels[0] is x
        assert {level.dtype for level in levels} == {x.dtype}
        assert levels[3].shape == (1, 3, 1, 1)
        assert levels[5] is levels[3]


@pytest.mark.parametrize("kernel", KERNELS)
def test_constant_stays_constant(kernel: tuple[int, ...]) -> None:
    for level in gaussian(torch.full((2, 33, 18), 201, dtype=torch.uint8), 7, kernel):
        assert (level == 201).all()
    for level in gaussian(torch.full((2, 33, 18), 0.7), 7, kernel):
        torch.testing.assert_close(level, torch.full_like(level, 0.7), rtol=1e-6, atol=0)


def test_mean_is_kept_where_the_border_is_far() -> None:
    x = F.pad(noise(1, 1, 24, 24, dtype=torch.float64), (40, 40, 40, 40))
    for l, level in enumerate(gaussian(x, 4)):
        torch.testing.assert_close(level.sum() * 4**l, x.sum(), rtol=1e-12, atol=0)


@devices
def test_batch_row_equals_alone(device: str) -> None:
    image, x = pixels(3, 2, 45, 38, device=device), noise(3, 2, 45, 38, device=device)
    for together, alone in zip(gaussian(image, 5), gaussian(image[1:2, 1:2], 5), strict=True):
        assert torch.equal(together[1:2, 1:2], alone)
    for together, alone in zip(laplacian(x, 5), laplacian(x[1, 1], 5), strict=True):
        torch.testing.assert_close(together[1, 1], alone)
    many, one = steerable(x, 3), steerable(x[1, 1], 3)
    for together, alone in zip(parts(many), parts(one), strict=True):
        torch.testing.assert_close(together[1, 1], alone)


@devices
def test_cpu_is_the_reference(device: str) -> None:
    image = pixels(1, 3, 333, 250)
    for here, there in zip(gaussian(image, 7), gaussian(image.to(device), 7), strict=True):
        assert torch.equal(here, there.cpu())
    x = noise(1, 3, 333, 250)
    for here, there in zip(parts(steerable(x, 4)), parts(steerable(x.to(device), 4)), strict=True):
        assert relative(there.cpu(), here) < 1e-5


# ---- Laplacian ------------------------------------------------------------------------------------


@given(shapes, st.integers(1, 8), st.sampled_from([torch.float32, torch.float64]))
@QUICK
def test_laplacian_reconstructs(shape: tuple[int, ...], levels: int, dtype: torch.dtype) -> None:
    x = noise(*shape, dtype=dtype)
    bands = laplacian(x, levels)
    assert [b.shape for b in bands] == [g.shape for g in gaussian(x, levels)]
    torch.testing.assert_close(laplacian_inverse(bands), x, rtol=0, atol=50 * torch.finfo(dtype).eps)


@devices
def test_laplacian_of_uint8_is_float_and_of_a_constant_zero(device: str) -> None:
    *bands, low = laplacian(torch.full((3, 29, 40), 77, dtype=torch.uint8, device=device), 5)
    assert low.dtype == torch.float32
    assert (low == 77).all()
    assert all((band == 0).all() for band in bands)
    image = pixels(3, 29, 40, device=device)
    back = laplacian_inverse(laplacian(image, 5))
    torch.testing.assert_close(back, image.float(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1, 5, 4), (2, 3, 6)])
def test_gradients_flow(shape: tuple[int, ...]) -> None:
    x = noise(*shape, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(gaussian(x, 3)[1:]), (x,))
    assert torch.autograd.gradcheck(lambda x: tuple(laplacian(x, 3)), (x,))


# ---- wrong values ---------------------------------------------------------------------------------


IMAGE = torch.zeros(1, 3, 40, 33)
WRONG = {
    "odd kernel": (lambda: halve(IMAGE, (1, 2, 1)), r"\(1, 2, 1\).*even length"),
    "unsymmetric kernel": (lambda: gaussian(IMAGE, 1, (1, 2)), r"\(1, 2\).*symmetric"),
    "empty kernel": (lambda: halve(IMAGE, ()), "even length"),
    "zero kernel": (lambda: halve(IMAGE, (1, -1, -1, 1)), "not sum to 0"),
    "a row": (lambda: halve(IMAGE[0, 0, 0]), r"\[\.\.\., H, W\].*\[33\]"),
    "no pixels": (lambda: gaussian(IMAGE[..., :0], 2), "at least one pixel"),
    "int64": (lambda: laplacian(IMAGE.long(), 2), "torch.int64"),
    "no levels": (lambda: gaussian(IMAGE, 0), "levels must.*at least 1, got 0"),
    "half a level": (lambda: gaussian(IMAGE, 2.5), "levels must be a whole number.*got 2.5"),
    "size": (lambda: double(IMAGE, (81, 66)), "40x33 cannot be doubled to 81x66.*79 or 80.*65 or 66"),
    "no bands": (lambda: laplacian_inverse([]), "0 bands"),
    "mixed bands": (lambda: laplacian_inverse([IMAGE, IMAGE]), "cannot be doubled"),
    "too many levels": (lambda: steerable(IMAGE, 4), "4 steerable levels.*40x33; at most 3"),
    "tiny image": (lambda: steerable(IMAGE[..., :3], 1), "at most 0"),
    "negative levels": (lambda: steerable(IMAGE, -1), "levels must.*at least 0, got -1"),
    "no orientations": (lambda: steerable(IMAGE, 1, 0), "orientations must.*at least 1, got 0"),
    "mixed pyramid": (
        lambda: steerable_inverse(SteerablePyramid(IMAGE, (IMAGE[..., None, :, :],), IMAGE)),
        r"must be \[\(40, 33\), \(40, 33\), \(20, 17\)\]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_named(case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        call()
