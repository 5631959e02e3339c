"""From a selection to what a model reads: patches, and back to the image that the patches still know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.cells import Selection
from homunculus.errors import InputError
from homunculus.kernels.dispatch import capturing, use_triton
from homunculus.pyramid import double, gaussian, halve

if TYPE_CHECKING:
    from homunculus.kernels.gather import PatchLayout

UNKNOWN = 127.0  # grey of what a selection knows nothing about


def patches(levels: Sequence[Tensor], selection: Selection) -> Tensor:
    """The pixels of every chosen cell at its own level: levels of [B, C, h, w] -> [B, K, C, cell, cell].

    One gather per level (on a GPU one in all), which touches only the chosen pixels. A cell that its image only partly
    fills repeats the image's edge. Cells off the tree (`uniform`, off-grid points) are sampled from the image at their
    fractional scale, however coarse. Places that a row does not have (`mask` False) are zero.
    """
    if len(levels[0]) != len(selection):
        raise InputError(f"the levels hold {len(levels[0])} images, the selection {len(selection)}")
    levels, cell, channels = _deep_enough(levels, selection), selection.cell, levels[0].shape[1]
    if use_triton(levels[0]) and levels[0].dtype == torch.uint8 and channels == 3:
        found = by_kernel(levels, selection)
        if found is not None:
            return found
    if levels[0].is_cuda and selection.indices is not None:
        return at_once(levels, selection)
    out = levels[0].new_zeros(*selection.mask.shape, channels, cell, cell)  # [B, K, C, p, p]
    for level in selection.levels[selection.mask].unique().tolist():
        if level >= len(levels):
            raise InputError(f"the selection has cells of level {level}, the pyramid {len(levels)} levels")
        b, k = ((selection.levels == level) & selection.mask).nonzero(as_tuple=True)
        origin = selection.boxes[b, k, :2]  # [n, 2] x, y in pixels of the image
        image, sizes = at_scale(levels, level), scaled(selection.sizes, level)[b]
        if selection.indices is not None:
            out[b, k] = _gather(image, b, origin >> level, sizes, cell)
        else:
            found = _sample(image, b, origin / 2.0**level, sizes, cell)
            out[b, k] = found if out.is_floating_point() else (found + 0.5).to(out.dtype)
    return out


def _deep_enough(levels: Sequence[Tensor], selection: Selection) -> Sequence[Tensor]:
    """The levels, and more where cells off the tree are coarser than it: few tokens for a large image."""
    if selection.indices is not None or capturing(selection.levels):
        return levels
    missing = int(selection.levels.max()) + 1 - len(levels)
    return levels if missing < 1 else [*levels[:-1], *gaussian(levels[-1], missing + 1)]


def by_kernel(levels: Sequence[Tensor], selection: Selection, layout: PatchLayout | None = None) -> Tensor | None:
    """`patches` in one launch, of levels that lie as the kernels lay them; None of others. In a layout of one's own."""
    from homunculus.kernels import gather, mip

    if not mip.is_built(levels):
        return None
    _check_levels(levels, selection)
    cells = gather.Cells(selection.boxes, selection.levels, selection.mask, selection.sizes)
    return gather.gather(levels, cells, selection.cell, layout)


def _check_levels(levels: Sequence[Tensor], selection: Selection) -> None:
    if not capturing(selection.levels) and int(selection.levels.max()) >= len(levels):
        most = float(selection.levels.max())
        raise InputError(f"the selection has cells of level {most:g}, the pyramid {len(levels)} levels")


def at_once(levels: Sequence[Tensor], selection: Selection) -> Tensor:
    """`patches` of cells of the tree without a step per level: a GPU would wait for each of its launches."""
    device, channels = levels[0].device, levels[0].shape[1]
    level = selection.levels.long()
    height, width = (-(-side // 2**level) for side in levels[0].shape[2:])  # [B, K] each, of the image at its level
    start = torch.zeros_like(level)  # where that begins
    for l, finer in enumerate(levels):
        start = start + (level > l) * finer[0].numel()
    _check_levels(levels, selection)
    last = -(-selection.sizes[:, None] // 2 ** level[..., None]) - 1  # [B, K, 2] last row and column of each image
    step = torch.arange(selection.cell, device=device)
    x = torch.minimum((selection.boxes[..., 0] >> level)[..., None] + step, last[..., 1:])  # [B, K, p]
    y = torch.minimum((selection.boxes[..., 1] >> level)[..., None] + step, last[..., :1])
    plane = start[..., None] + torch.arange(channels, device=device) * (height * width)[..., None]  # [B, K, C]
    row = plane[..., None] + (y * width[..., None])[:, :, None]  # [B, K, C, p]
    index = row[..., None] + x[:, :, None, None]
    pixels = torch.cat([level.flatten(1) for level in levels], 1)
    return pixels.gather(1, index.flatten(1)).view(index.shape) * selection.mask[..., None, None, None]


def scaled(sizes: Tensor, level: float) -> Tensor:
    """Height and width of images [B, 2] scaled by 2^-level, in whole pixels. [B, 2]"""
    return (sizes / 2.0**level - 1e-6).ceil().long()


def at_scale(levels: Sequence[Tensor], level: float) -> Tensor:
    """The image scaled by 2^-level: a level of the pyramid, or antialiased from the next finer one. [B, C, h, w]"""
    finer = int(level)
    if finer == level:
        return levels[finer]
    scale = 2.0 ** (finer - level)
    more = int(1 / scale) + 2  # repeat the edge a little: the scaled size is cut off, not rounded up
    image = F.pad(levels[finer].float(), (0, more, 0, more), mode="replicate")
    return F.interpolate(
        image,
        scale_factor=scale,
        mode="bilinear",
        antialias=True,
        align_corners=False,
        recompute_scale_factor=False,
    )


def _gather(image: Tensor, b: Tensor, origin: Tensor, sizes: Tensor, cell: int) -> Tensor:
    """Whole-pixel patches of one level: origin [n, 2] -> [n, C, p, p]; the edge of each image [n, 2] is repeated."""
    step = torch.arange(cell, device=image.device)
    x = torch.minimum(origin[:, :1] + step, sizes[:, 1:] - 1)  # [n, p]
    y = torch.minimum(origin[:, 1:] + step, sizes[:, :1] - 1)
    return image[b[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)


def _sample(image: Tensor, b: Tensor, origin: Tensor, sizes: Tensor, cell: int) -> Tensor:
    """Patches whose corner lies between pixels, bilinear: origin [n, 2] -> float [n, C, p, p]."""
    whole = (origin + 1e-6).floor()
    right, down = (origin - whole).clamp(0, 1).float().unbind(1)  # [n]
    right, down = right[:, None, None, None], down[:, None, None, None]
    block = _gather(image, b, whole.long(), sizes, cell + 1).float()  # [n, C, p + 1, p + 1]
    rows = block[:, :, :-1] * (1 - down) + block[:, :, 1:] * down
    return rows[..., :-1] * (1 - right) + rows[..., 1:] * right


def reconstruct(levels: Sequence[Tensor], selection: Selection, at: int = 0, how: str = "laplacian") -> Tensor:
    """The image as the selection still knows it, at level `at`: uint8-valued float [B, C, h, w].

    "laplacian" collapses a Laplacian pyramid whose bands are zero wherever no chosen cell holds them, so coarse places
    are smooth; "gaussian" repeats the pixels of coarse cells, so they show as blocks. Grey where nothing is known.
    """
    if how not in ("laplacian", "gaussian"):
        raise InputError(f"how must be 'laplacian' or 'gaussian', got {how!r}")
    if not 0 <= at < len(levels):
        raise InputError(f"at must be a level from 0 to {len(levels) - 1}, got {at!r}")
    if selection.indices is None:
        return _paint(levels, selection, at)
    known = [known_pixels(selection, l, at, levels[max(l, at)].shape[2:]) for l in range(len(levels))]
    finest = torch.stack(known[: at + 1]).amax(0)  # all that is at least as fine as the picture
    return _push(*_pull(levels[at:], [finest, *known[at + 1 :]]), how)


def known_pixels(selection: Selection, level: int, at: int, size: Sequence[int]) -> Tensor:
    """1 at the pixels of level max(level, at) that lie in chosen cells of `level`, else 0. float [B, 1, h, w]"""
    span, scale = selection.cell << level, 1 << max(level, at)
    b, k = ((selection.levels == level) & selection.mask).nonzero(as_tuple=True)
    column, row = (selection.boxes[b, k, :2] // span).unbind(1)
    height, width = selection.sizes.amax(0).tolist()
    cells = torch.zeros(len(selection), -(-height // span), -(-width // span), device=row.device)
    cells[b, row, column] = 1
    y, x = (
        (((torch.arange(n, device=row.device) + 0.5) * scale / span).long()).clamp(max=most - 1)
        for n, most in zip(size, cells.shape[1:], strict=True)
    )
    return cells[:, y][:, :, x][:, None]


def _pull(levels: Sequence[Tensor], known: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Carry what fine levels know up to coarse pixels that lie wholly in it, so that nothing bleeds either way."""
    images, weights = [levels[0].float()], [known[0]]
    for level, weight in zip(levels[1:], known[1:], strict=True):
        inside = -F.max_pool2d(-weights[-1], 2, ceil_mode=True)  # 1 where all four pixels below are known
        image = halve(images[-1] * weights[-1]) / halve(weights[-1]).clamp(min=1e-6)
        images.append(torch.where(weight > 0, level.float(), image))
        weights.append(torch.maximum(weight, inside))
    return images, weights


def _push(images: list[Tensor], weights: list[Tensor], how: str) -> Tensor:
    """Carry what coarse levels know down to where fine ones know nothing."""
    canvas = torch.where(weights[-1] > 0, images[-1], UNKNOWN)
    for image, weight in zip(reversed(images[:-1]), reversed(weights[:-1]), strict=True):
        h, w = image.shape[2:]
        if how == "laplacian":
            below = double(canvas, (h, w))
        else:
            below = canvas.repeat_interleave(2, 2).repeat_interleave(2, 3)[..., :h, :w]
        canvas = torch.where(weight > 0, image, below)
    return (canvas + 0.5).floor().clamp(0, 255)


def _paint(levels: Sequence[Tensor], selection: Selection, at: int) -> Tensor:
    """Patches off the tree, painted one by one from coarse to fine."""
    h, w = levels[at].shape[2:]
    canvas = torch.full((len(selection), levels[0].shape[1], h, w), UNKNOWN, device=levels[0].device)
    cells = patches(levels, selection).float()
    for b in range(len(selection)):
        for k in selection.mask[b].nonzero()[:, 0].tolist():
            x0, y0, x1, y1 = (selection.boxes[b, k] / 2**at).round().long().tolist()
            x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)
            side = max(1, round(float(selection.span[b, k]) / 2**at))
            part = canvas[b : b + 1, :, y0:y1, x0:x1]
            # one axis after the other: of a cell that the border cuts off, only what is shown is made
            whole = F.interpolate(cells[b, k][None], (side, selection.cell), mode="bilinear", antialias=True)
            whole = whole[:, :, : part.shape[2]]
            whole = F.interpolate(whole, (whole.shape[2], side), mode="bilinear", antialias=True)[..., : part.shape[3]]
            part.copy_(whole if whole.shape == part.shape else F.interpolate(whole, part.shape[2:], mode="bilinear"))
    return canvas.clamp(0, 255)
