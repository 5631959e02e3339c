"""Legibility as the error of the cut: a cell is split only while the print in it is too small to read.

A line of print h pixels high is legible in cells of level <= log2(h / min_print): there its print is still `min_print`
pixels high. Lines are tensors [n, 5], one for each image: x0, y0, x1, y1 and the height of the print, all in pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homunculus.allocators.frame import Request, relative
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError, shown
from homunculus.kernels.dispatch import capturing

MIN_PRINT = 11.0  # pixels: print of this height can still be read
LESS_CLEAR = 1 / 16  # what print that is legible but not clear counts against print that is illegible
STEPS = 16  # to which a pixel is rounded: areas are then whole numbers, and sums the same on every device
GRADES = 2**10  # to which the largest weight is rounded, for the same reason
AT_ONCE = 2**24  # float64 numbers worked on at once: 128 MB
FIRST = 2.0**48  # how far the densest illegible print ranks above all else


def _need(heights: Tensor, min_print: float) -> Tensor:
    """The coarsest level, fractional, in which print of these heights [n] is legible, at least 0. float64 [n]

    A millionth is added so that whole numbers stay whole.
    """
    return (heights.double() / min_print).clamp(min=1).log2() + 1e-6


def legibility_error(
    tree: CellTree,
    lines: Sequence[Tensor],
    min_print: float = MIN_PRINT,
    weights: Sequence[Tensor] | None = None,
    clear_print: float = 0.0,
    finest: float = 0.0,
) -> Tensor:
    """The area of the lines in each cell that are illegible at its level, in pixels of that level. float64 [B, N]

    A token gains the same area at each level, so cells of different levels compare. `weights` [n] for each image say
    how much a line counts. Print that is legible but less than `clear_print` high counts a sixteenth. Line boxes are
    rounded to 1/16 of a pixel and what lies outside the page does not count. `finest` is the level at which the tree's
    finest cells show the page; print that is illegible at level 0 of the page does not count anywhere.
    """
    if tree.rows not in (1, len(lines)):
        raise InputError(f"the tree was made for {tree.rows} images, there are lines of {len(lines)}")
    checked = check_lines(lines, min_print, tree.device)
    if not 0 <= clear_print < torch.inf:
        raise InputError(f"clear_print must be a height in pixels of at least 0, got {clear_print!r}")
    factors = _check_weights(checked, weights)
    error = torch.zeros(len(lines), tree.size, dtype=torch.float64, device=tree.device)
    for b, (own, factor) in enumerate(zip(checked, factors, strict=True)):
        row = b if tree.rows > 1 else 0
        need = _need(own[:, 4], min_print)
        clear = _need(own[:, 4], clear_print) if clear_print > min_print else need
        for level in range(0 if finest > 0 else 1, tree.depths[row]):
            shown_at = level + finest
            counts = torch.where(need < shown_at, 1.0, LESS_CLEAR * (clear < shown_at))
            area = _area_in_cells(tree.image_sizes[row], tree.cell << level, own, factor * counts)
            tree.grid(error, level)[b, : area.shape[0], : area.shape[1]] = area / 4.0**level
    return error


def _area_in_cells(size: tuple[int, int], span: int, lines: Tensor, factor: Tensor) -> Tensor:
    """Sum of factor [n] times the overlap of each line with each cell of one level. [rows, columns]

    The overlap of two boxes is a product of two lengths, so the sum over lines is a matrix product.
    """
    down, across = (_edges(length, span, lines.device) for length in size)
    total = lines.new_zeros(len(down) - 1, len(across) - 1)
    count = max(1, AT_ONCE // (len(down) + len(across)))
    for part, each in zip(lines.split(count), factor.split(count), strict=True):
        rows = _overlap(part[:, 1], part[:, 3], down) * each[:, None]  # [n, rows]
        total += rows.T @ _overlap(part[:, 0], part[:, 2], across)
    return total


def _edges(length: int, span: int, device: torch.device) -> Tensor:
    """Borders of cells along one side of an image, cut off at its end. float64 [cells + 1]"""
    return torch.arange(-(-length // span) + 1, device=device).mul(span).clamp(max=length).double()


def _overlap(low: Tensor, high: Tensor, edges: Tensor) -> Tensor:
    """Length of each interval [n] inside each of the pieces between edges [m + 1]: [n, m]."""
    ends = torch.minimum(high[:, None], edges[1:]) - torch.maximum(low[:, None], edges[:-1])
    return ends.clamp(min=0)


# ---- in a rule ----------------------------------------------------------------------------------------------------


def illegible_print(
    request: Request, error: Tensor | str | None, lines: Sequence[Tensor] | None, min_print: float, clear_print: float
) -> Tensor | None:
    """`legibility_error` by the options of a rule: [B, N], or [1, N] where all rows share lines; None without lines."""
    named = isinstance(error, str)
    if named and error != "legibility":
        raise InputError(f"error must be a tensor [B, N] or 'legibility', got {error!r}")
    if lines is None:
        if named:
            raise InputError("error='legibility' needs the option lines: a tensor [n, 5] for each image")
        return None
    images = request.images
    if len(lines) not in (1, images):
        raise InputError(f"lines must be a tensor [n, 5] for each of {images} images, got {len(lines)} tensors")

    def measure(tree: CellTree, images: range) -> Tensor:
        own = lines if len(lines) == 1 else lines[images.start : images.stop]
        return legibility_error(tree, own, min_print, clear_print=clear_print, finest=request.finest)

    return request.by_tree(measure)


def print_first(request: Request, gain: Tensor, illegible: Tensor) -> Tensor:
    """`gain` [B, N], with every cell that holds illegible print above all cells that do not, in order of `illegible`.

    Cells without such print keep their gain, so that tokens left over when all print is legible go by it; so do the
    finest ones, which no split makes clearer.
    """
    illegible = illegible * (request.tree.level > 0)
    largest = gain.amax(1, keepdim=True)
    above = (relative(illegible) * FIRST).clamp(min=2) * torch.where(largest > 0, largest, 1.0)
    return torch.where(illegible > 0, above, gain)


# ---- what a selection shows ---------------------------------------------------------------------------------------


def legible(
    selection: Selection, lines: Sequence[Tensor], min_print: float = MIN_PRINT, share: float = 0.8
) -> list[Tensor]:
    """Which lines a selection shows legibly, bool [n] for each image.

    A line is legible when cells in which its print is at least `min_print` high cover `share` of its area on the page;
    a line that is not on the page never is.
    """
    if len(lines) != len(selection):
        raise InputError(f"lines must be a tensor [n, 5] for each of {len(selection)} images, got {len(lines)} tensors")
    checked = check_lines(lines, min_print, selection.boxes.device)
    found = []
    for b, own in enumerate(checked):
        row = selection.row(b)
        parts = own.split(AT_ONCE // (4 * row.boxes.shape[1] + 4) + 1)
        found.append(torch.cat([_share_covered(row, part, min_print) >= share - 1e-9 for part in parts]))
    return found


def _share_covered(row: Selection, lines: Tensor, min_print: float) -> Tensor:
    """Share of each line's area that lies in cells in which it is legible; -1 off the page. float64 [n]"""
    boxes, levels = row.boxes[0].double(), row.levels[0].double()
    xs, ys = boxes[:, 0::2].unique(), boxes[:, 1::2].unique()
    across, down = (_pieces(boxes[:, i::2], edges) for i, edges in enumerate((xs, ys)))  # [K, X], [K, Y]
    low, high = lines[:, :2].clamp(min=0), torch.minimum(lines[:, 2:4], row.sizes[0].flip(0))
    x, y = (_overlap(low[:, i], high[:, i], edges) for i, edges in enumerate((xs, ys)))  # [n, X], [n, Y]
    known = levels.unique()
    finer = torch.searchsorted(known, _need(lines[:, 4], min_print), right=True)  # levels in which a line is legible
    covered = lines.new_zeros(len(lines))
    for count in finer.unique().tolist():
        fine, these = levels < (known[count] if count < len(known) else torch.inf), finer == count
        painted = (down[fine].T @ across[fine] > 0.5).double()  # [Y, X], each place once however many cells lie on it
        covered[these] = ((y[these] @ painted) * x[these]).sum(1)
    area = (high - low).clamp(min=0).prod(1)
    return torch.where(area > 0, covered / area, -1.0)


def _pieces(interval: Tensor, edges: Tensor) -> Tensor:
    """Which pieces between edges [m + 1] each interval [K, 2] holds: 1 or 0. float32 [K, m]"""
    return ((interval[:, :1] <= edges[:-1]) & (edges[1:] <= interval[:, 1:])).float()


# ---- checks -------------------------------------------------------------------------------------------------------


def check_lines(lines: Sequence[Tensor], min_print: float, device: torch.device) -> list[Tensor]:
    """Lines of each image, checked, as float64 [n, 5] on the device; boxes rounded to 1/16 of a pixel."""
    if not 0 < min_print < torch.inf:
        raise InputError(f"min_print must be a height in pixels above 0, got {min_print!r}")
    checked = []
    for i, given in enumerate(lines):
        if not isinstance(given, Tensor) or given.ndim != 2 or given.shape[1] != 5 or given.is_complex():
            what = list(given.shape) if isinstance(given, Tensor) else shown(given)
            raise InputError(f"lines must be tensors [n, 5] of x0, y0, x1, y1, print height; image {i} has {what}")
        values = given.detach().to(device, torch.float64)
        right = torch.isfinite(values).all(1) & (values[:, :2] <= values[:, 2:4]).all(1) & (values[:, 4] > 0)
        if not capturing(values) and not bool(right.all()):
            n = int((~right).nonzero()[0])
            raise InputError(
                f"a line needs x0 <= x1, y0 <= y1 and a print height above 0, all finite; line {n} of image {i} is "
                f"{values[n].tolist()}"
            )
        boxes = (values[:, :4] * STEPS).round() / STEPS
        checked.append(torch.cat((boxes, values[:, 4:]), 1))
    return checked


def _check_weights(lines: list[Tensor], weights: Sequence[Tensor] | None) -> list[Tensor]:
    """A factor for each line, [n] for each image: whole steps of a power of two, so that sums of them are exact."""
    if weights is None:
        return [each.new_ones(len(each)) for each in lines]
    if [[len(each)] for each in lines] != [list(each.shape) for each in weights]:
        raise InputError(f"weights must be [n] for the lines of each image, got {[list(w.shape) for w in weights]}")
    factors = []
    for given, own in zip(weights, lines, strict=True):
        weight = given.detach().to(own)
        if not capturing(weight) and not bool(((weight >= 0) & (weight < torch.inf)).all()):
            raise InputError(f"weights must hold finite numbers of at least 0, got {shown(given.tolist())}")
        if len(weight):
            step = torch.exp2(torch.frexp(weight.amax()).exponent.double()) / GRADES
            weight = (weight / step).round() * step
        factors.append(weight)
    return factors
