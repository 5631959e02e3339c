"""Image pyramids whose cells nest: Gaussian, Laplacian and steerable, with their inverses.

Convention (pinned by tests/test_pyramid*.py):
    - Images are [..., H, W]; every leading dimension is a batch.
    - Area-aligned: pixel i of level l+1 covers pixels 2i and 2i+1 of level l, so its centre lies at
      2i + 0.5 of level l and cell borders coincide across levels.
    - A level of n pixels is followed by one of ceil(n / 2).
    - Borders replicate the edge (Gaussian, Laplacian) or wrap around (steerable, which is a Fourier
      transform).
    - float16, bfloat16, float32 and float64 come out as they went in; the 16-bit types are computed in
      float32. uint8 stays uint8 in `halve` and `gaussian` and becomes float32 elsewhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.errors import InputError, whole_number
from homunculus.kernels.dispatch import use_triton

KERNEL = (1, 3, 3, 1)  # / 8: bilinear halving with antialiasing; dyadic, so exact on 8-bit pixels
_STRIP = 1 << 20  # input pixels per strip: its floats stay in cache, and bound the memory of any image
_NARROW = (torch.uint8, torch.float16, torch.bfloat16)

Size = tuple[int, int]


# ---- one step down, one step up -------------------------------------------------------------------


def halve(x: Tensor, kernel: Sequence[float] = KERNEL) -> Tensor:
    """The next level, [..., ceil(H/2), ceil(W/2)]: a separable low-pass at stride 2.

    kernel: weights of even length 2m, symmetric; divided by their sum here. Output pixel i weighs the
        input pixels 2i+1-m .. 2i+m, around its own centre at 2i + 0.5.

    uint8 comes back as uint8, the exact value rounded half up (exact for integer weights as long as
    255 * sum(kernel)^2 < 2^24). It is worked on in strips of rows, so that the largest image never has a
    float copy; the strips do not change a bit of the result.
    """
    _check_image(x)
    weights = _check_kernel(kernel)
    if x.dtype == torch.uint8 and weights == KERNEL and use_triton(x):
        from homunculus.kernels import mip

        return mip.halve(x)
    H, W = _half(_size(x))
    if x.requires_grad:  # the graph keeps every strip anyway
        return _halve_rows(x, weights, 0, H)
    strip = _STRIP if x.device.type == "cpu" else 64 * _STRIP  # a GPU waits for launches, not for cache
    rows = max(1, strip * x.shape[-2] // max(1, 2 * x.numel()))  # output rows per strip
    out = x.new_empty(*x.shape[:-2], H, W)  # filled in place: strips kept aside would scatter the heap
    for top in range(0, H, rows):
        out[..., top : top + rows, :] = _halve_rows(x, weights, top, min(top + rows, H))
    return out


def double(x: Tensor, size: Size) -> Tensor:
    """One level up: bilinear with weights 3/4 and 1/4, cropped to size.

    size: (h, w) of the level above, each 2n or 2n - 1 for n pixels here.

    Convention: `F.interpolate(scale_factor=2, mode="bilinear", align_corners=False)`, then the crop.
    """
    _check_image(x)
    H, W = x.shape[-2:]
    h, w = size
    if h not in (2 * H - 1, 2 * H) or w not in (2 * W - 1, 2 * W):
        raise InputError(
            f"A level of {H}x{W} cannot be doubled to {h}x{w}; "
            f"the height must be {2 * H - 1} or {2 * H} and the width {2 * W - 1} or {2 * W}."
        )
    planes = _widened(x).reshape(math.prod(x.shape[:-2]), 1, H, W)  # [B*C, 1, H, W]
    up = F.interpolate(planes, scale_factor=2, mode="bilinear", align_corners=False)  # [B*C, 1, 2H, 2W]
    up = up[..., :h, :w].reshape(*x.shape[:-2], h, w)
    return up.to(x.dtype) if x.is_floating_point() else up


def _halve_rows(x: Tensor, weights: tuple[float, ...], top: int, bottom: int) -> Tensor:
    """Rows top..bottom of the halved image, in the dtype of x."""
    strip = _widened(_window(x, -2, top, bottom, len(weights)))
    strip = _reduce(strip, weights, -2, bottom - top)  # [..., bottom - top, W]
    width = _half(_size(x))[1]
    strip = _window(strip, -1, 0, width, len(weights))
    # Integer weights are summed exactly; dividing once, at the end, leaves a single rounding.
    strip = _reduce(strip, weights, -1, width) / sum(weights) ** 2  # [..., bottom - top, ceil(W/2)]
    if x.dtype == torch.uint8:
        strip = strip.add_(0.5).clamp_(0, 255)  # the cast below cuts off: together, round half up
    return strip.to(x.dtype)


def _window(x: Tensor, dim: int, start: int, stop: int, taps: int) -> Tensor:
    """The pixels along dim that outputs start..stop weigh, the edge repeated where they lie outside."""
    n = x.shape[dim]
    first, last = 2 * start + 1 - taps // 2, 2 * stop - 2 + taps // 2  # both included
    inner = x.narrow(dim, max(first, 0), min(last, n - 1) - max(first, 0) + 1)
    before, after = [x.narrow(dim, 0, 1)] * -first, [x.narrow(dim, n - 1, 1)] * (last - n + 1)
    return torch.cat([*before, inner, *after], dim=dim) if before or after else inner


def _reduce(x: Tensor, weights: tuple[float, ...], dim: int, count: int) -> Tensor:
    """The weighted sum of the taps at stride 2. Slices: several times faster here than conv2d on CPU."""

    def tap(offset: int) -> Tensor:
        chosen = slice(offset, offset + 2 * count - 1, 2)
        return x[..., chosen, :] if dim == -2 else x[..., chosen]

    taps = len(weights)
    # From the outermost pair inwards; a symmetric kernel needs one product per pair.
    total = (tap(0) + tap(taps - 1)) * weights[0]
    for t in range(1, taps // 2):
        total = torch.add(total, tap(t) + tap(taps - 1 - t), alpha=weights[t])
    return total


# ---- Gaussian and Laplacian -----------------------------------------------------------------------


def gaussian(x: Tensor, levels: int, kernel: Sequence[float] = KERNEL) -> list[Tensor]:
    """`levels` images, each half the one before; the first is x itself.

    uint8 stays uint8: each level is rounded and the next is made from it. A level of 1x1 repeats.
    """
    _check_image(x)
    _check_kernel(kernel)
    whole_number("levels", levels)
    if x.dtype == torch.uint8 and tuple(kernel) == KERNEL and use_triton(x):
        from homunculus.kernels import mip

        return [x, *mip.build(x, levels - 1)]
    pyramid = [x]
    while len(pyramid) < levels:
        last = pyramid[-1]
        pyramid.append(last if last.shape[-2:] == (1, 1) else halve(last, kernel))
    return pyramid


def laplacian(x: Tensor, levels: int) -> list[Tensor]:
    """`levels` images: what each Gaussian level has and the doubled next one lacks, low residual last."""
    _check_image(x)
    pyramid = gaussian(x.float() if x.dtype == torch.uint8 else x, levels)
    bands = [fine - double(coarse, _size(fine)) for fine, coarse in pairwise(pyramid)]
    return [*bands, pyramid[-1]]


def laplacian_inverse(bands: Sequence[Tensor]) -> Tensor:
    """The image whose `laplacian` these are."""
    if not bands:
        raise InputError("A Laplacian pyramid of 0 bands has no image; give at least the low residual.")
    x = bands[-1]
    for band in reversed(bands[:-1]):
        x = band + double(x, _size(band))
    return x


# ---- steerable ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SteerablePyramid:
    """The bands of `steerable`: level l is ceil(H / 2^l) x ceil(W / 2^l), low is one level further."""

    high: Tensor  # [..., H, W]
    bands: tuple[Tensor, ...]  # L of [..., O, h_l, w_l]
    low: Tensor  # [..., h_L, w_L]


def steerable(x: Tensor, levels: int, orientations: int = 4) -> SteerablePyramid:
    """`levels` octaves of `orientations` oriented bands each, a high and a low residual.

    The Fourier-domain pyramid of Simoncelli & Freeman (1995) and Portilla & Simoncelli (2000).
    levels: at least 0, and at most floor(log2(min(H, W))) - 2.

    Convention:
        - Band b passes frequencies around the angle pi * b / O, from the x axis (right) towards the y
          axis (down). Band 0 answers to vertical lines, band O/2 (O even) to horizontal ones.
        - O odd: even-symmetric filters, which peak on lines; O even: odd-symmetric, peaking on edges.
        - The spectrum is cropped, not rescaled: with N_l pixels at level l of N, the mean of low is
          N / N_L times that of x, and sum x^2 = sum high^2 + sum_l N_l/N sum bands_l^2
          + N_L/N sum low^2 (a tight frame).
    float64 in gives float64; anything else float32, since low can outgrow 16 bits.
    """
    _check_image(x)
    whole_number("orientations", orientations)
    x = _widened(x)
    sizes = _level_sizes(_size(x), levels)
    spectrum = torch.fft.rfft2(x)  # [..., H, W//2+1]
    high_mask, low_mask = _split(_radius(sizes[0], sizes[0], x), 0)
    high = torch.fft.irfft2(spectrum * high_mask, s=sizes[0])
    spectrum = spectrum * low_mask
    bands = []
    for l in range(levels):
        masks = _band_masks(sizes[l], sizes[0], l, orientations, x) * _phase(orientations)
        oriented = spectrum.unsqueeze(-3) * masks  # [..., O, h, w//2+1]
        bands.append(torch.fft.irfft2(oriented, s=sizes[l]))  # [..., O, h, w]
        spectrum = _crop(spectrum, sizes[l + 1])
        spectrum = spectrum * _split(_radius(sizes[l + 1], sizes[0], x), l + 1)[1]
    return SteerablePyramid(high, tuple(bands), torch.fft.irfft2(spectrum, s=sizes[-1]))


def steerable_inverse(pyramid: SteerablePyramid) -> Tensor:
    """The image whose `steerable` this is: the same masks again, with the phase turned back."""
    high, bands, low = pyramid.high, pyramid.bands, pyramid.low
    sizes = _level_sizes(_size(high), len(bands))
    found = [_size(high), *(_size(band) for band in bands), _size(low)]
    if found != [sizes[0], *sizes]:
        raise InputError(f"The pyramid's parts have sizes {found}; they must be {[sizes[0], *sizes]}.")
    spectrum = torch.fft.rfft2(low)  # [..., h, w//2+1]
    for l in reversed(range(len(bands))):
        spectrum = spectrum * _split(_radius(sizes[l + 1], sizes[0], high), l + 1)[1]
        spectrum = _uncrop(spectrum, sizes[l])
        orientations = bands[l].shape[-3]
        masks = _band_masks(sizes[l], sizes[0], l, orientations, high) / _phase(orientations)
        spectrum = spectrum + (torch.fft.rfft2(bands[l]) * masks).sum(dim=-3)
    high_mask, low_mask = _split(_radius(sizes[0], sizes[0], high), 0)
    spectrum = spectrum * low_mask + torch.fft.rfft2(high) * high_mask
    return torch.fft.irfft2(spectrum, s=sizes[0])


def _frequencies(size: Size, image: Size, like: Tensor) -> tuple[Tensor, Tensor]:
    """x [w//2+1] and y [h, 1] of a level's half spectrum; 1 is the Nyquist frequency of the image."""
    (h, w), (H, W) = size, image
    x = torch.arange(w // 2 + 1, dtype=like.dtype, device=like.device)
    y = torch.arange(h, dtype=like.dtype, device=like.device)
    y = torch.where(y < (h + 1) // 2, y, y - h)
    return 2 * x / W, (2 * y / H).unsqueeze(-1)


def _radius(size: Size, image: Size, like: Tensor) -> Tensor:
    x, y = _frequencies(size, image, like)
    return torch.hypot(x, y)  # [h, w//2+1]


def _split(radius: Tensor, octave: int) -> tuple[Tensor, Tensor]:
    """(high, low) amplitudes with high^2 + low^2 = 1; they cross over between 2^-(octave+1) and 2^-octave.

    From 2^-octave on low is exactly 0. That is the Nyquist frequency of level `octave`, so cropping to
    that level loses nothing, and the row that has no negative twin never meets an odd mask.
    """
    t = (radius.log2() + (octave + 1)).clamp(0, 1)  # log2(0) = -inf: the mean is always low
    return torch.sin(t * (math.pi / 2)), torch.sin((1 - t) * (math.pi / 2))


def _band_masks(size: Size, image: Size, level: int, orientations: int, like: Tensor) -> Tensor:
    """The real masks [O, h, w//2+1] of a level's bands: high-pass times cos(theta - pi b/O)^(O-1)."""
    x, y = _frequencies(size, image, like)
    radius = _radius(size, image, like)
    order = orientations - 1
    # Over equally spaced angles the mean of cos^(2n) is C(2n, n) / 4^n: their squares add up to one.
    gain = math.sqrt(4**order / (orientations * math.comb(2 * order, order)))
    radial = _split(radius, level + 1)[0] * gain
    radius = radius.clamp_min(torch.finfo(radius.dtype).tiny)  # at 0 the radial mask is 0 already
    angles = [math.pi * b / orientations for b in range(orientations)]
    cosines = [(x * math.cos(angle) + y * math.sin(angle)) / radius for angle in angles]
    return torch.stack([radial * cosine**order for cosine in cosines])


def _phase(orientations: int) -> complex:
    """(-i)^(O-1): odd masks need a factor i for their bands to be real."""
    return (1, -1j, -1, 1j)[(orientations - 1) % 4]


def _crop(spectrum: Tensor, size: Size) -> Tensor:
    """The half spectrum of the lowest frequencies, those of an image of the given size."""
    h, w = size
    rows = [spectrum[..., : (h + 1) // 2, :], spectrum[..., spectrum.shape[-2] - h // 2 :, :]]
    return torch.cat(rows, dim=-2)[..., : w // 2 + 1]  # [..., h, w//2+1]


def _uncrop(spectrum: Tensor, size: Size) -> Tensor:
    """The half spectrum of a larger image, zero where `_crop` cut."""
    h, (H, W) = spectrum.shape[-2], size
    full = F.pad(spectrum, (0, W // 2 + 1 - spectrum.shape[-1]))  # [..., h, W//2+1]
    middle = full.new_zeros(*full.shape[:-2], H - h, full.shape[-1])
    return torch.cat([full[..., : (h + 1) // 2, :], middle, full[..., (h + 1) // 2 :, :]], dim=-2)


def _level_sizes(size: Size, levels: int) -> list[Size]:
    """Sizes of levels 0..levels, or InputError when the image is too small for so many."""
    whole_number("levels", levels, 0)
    most = max(0, min(size).bit_length() - 3)  # floor(log2(n)) - 2
    if levels > most:
        raise InputError(f"{levels} steerable levels are too many for {size[0]}x{size[1]}; at most {most}.")
    sizes = [size]
    for _ in range(levels):
        sizes.append(_half(sizes[-1]))
    return sizes


# ---- checks ---------------------------------------------------------------------------------------


def _size(x: Tensor) -> Size:
    return x.shape[-2], x.shape[-1]


def _half(size: Size) -> Size:
    return (size[0] + 1) // 2, (size[1] + 1) // 2


def _widened(x: Tensor) -> Tensor:
    """x in a dtype wide enough to compute in."""
    return x.float() if x.dtype in _NARROW else x


def _check_image(x: Tensor) -> None:
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise InputError(f"An image has shape [..., H, W] with at least one pixel; got {list(x.shape)}.")
    if not (x.dtype == torch.uint8 or x.is_floating_point()):
        raise InputError(f"An image is uint8 or floating point; got {x.dtype}.")


def _check_kernel(kernel: Sequence[float]) -> tuple[float, ...]:
    weights = tuple(kernel)
    if not weights or len(weights) % 2 or weights != weights[::-1] or sum(weights) == 0:
        raise InputError(
            f"The kernel {weights} does not fit; it must have even length, be symmetric and "
            f"not sum to 0, like {KERNEL}."
        )
    return weights
