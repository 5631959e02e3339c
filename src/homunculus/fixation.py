"""Where to look: the centre, the peaks of a relevance, the place that the question names.

Fixations are [B, F, 2] in pixels, x before y. Degrees of visual angle come from the page: its height is 20 of them
unless told otherwise, as for a sheet of paper at reading distance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.cells import CellTree
from homunculus.errors import InputError, whole_number
from homunculus.relevance.spatial import regions

PAGE_DEGREES = 20.0
MAX_FIXATIONS = 1000  # fixations of a look


def pixels_per_degree(tree: CellTree, degrees: float = PAGE_DEGREES) -> Tensor:
    """Pixels in one degree when the page is `degrees` high. float64 [B, 1]"""
    if not degrees > 0:
        raise InputError(f"degrees, the height of the page in degrees, must be above 0, got {degrees!r}")
    return tree.sizes[:, :1].double() / degrees


def eccentricity(tree: CellTree, fixation: Tensor, degrees: float = PAGE_DEGREES) -> Tensor:
    """Distance of each cell's centre from the nearest fixation, in degrees. [B, F, 2] -> float64 [B, N]"""
    nearest: Tensor | None = None
    for at in fixation.double().unbind(1):  # a handful; keeps the memory at [B, N]
        dx, dy = tree.centre[:, 0] - at[:, :1], tree.centre[:, 1] - at[:, 1:]
        squared = dx * dx + dy * dy
        nearest = squared if nearest is None else torch.minimum(nearest, squared)
    if nearest is None:
        raise InputError("a fixation is needed, got none")
    return nearest.sqrt() / pixels_per_degree(tree, degrees)


def centre(tree: CellTree) -> Tensor:
    """The middle of each image. [B, 1, 2]"""
    return tree.sizes.flip(1)[:, None].double() / 2


def peak(
    tree: CellTree, relevance: Tensor, count: int = 1, inhibition: float = 2.0, degrees: float = PAGE_DEGREES
) -> Tensor:
    """The `count` most relevant places, best first: [B, N] -> [B, count, 2].

    Each place that was looked at inhibits its surround (`inhibition` degrees wide) so that the next one lies
    elsewhere. Among equals the place nearest to the middle wins: a flat relevance looks at the centre. Equal cells that
    adjoin it share the place, which lies in the middle of them.
    """
    if not inhibition > 0:
        raise InputError(f"inhibition must be above 0, got {inhibition!r}")
    finest = tree.at(0)
    value = torch.where(tree.valid[:, finest], relevance[:, finest].double(), -torch.inf)  # [B, n0]
    low = torch.where(tree.valid[:, finest], value, torch.inf).amin(1, keepdim=True)
    boxes = tree.box_of_each[:, finest]
    places = (boxes[..., :2] + boxes[..., 2:]).double() / 2  # [B or 1, n0, 2]
    off_centre = (places - centre(tree)).square().sum(2).expand_as(value)
    found = []
    for _ in range(whole_number("count of fixations", count, 1, MAX_FIXATIONS)):
        ties = value == value.amax(1, keepdim=True)
        chosen = torch.where(ties, off_centre, torch.inf).argmin(1)
        at = places.expand(len(value), -1, 2)[torch.arange(len(value), device=value.device), chosen]
        equal = ties & ((places - at[:, None]).abs() <= tree.cell).all(2)  # [B, n0]
        found.append((equal[..., None] * places).sum(1) / equal.sum(1, keepdim=True))
        if len(found) < count:
            away = (places - at[:, None]).square().sum(2) / pixels_per_degree(tree, degrees).square()
            value = low + (value - low) * (1 - torch.exp(-away / (2 * inhibition**2)))
            value = torch.where(tree.valid[:, finest], value, -torch.inf)
    return torch.stack(found, 1)


def words(tree: CellTree, question: str) -> Tensor | None:
    """Where the spatial words of a question point ("top left", "footer"): [B, F, 2], or None if it has none."""
    named = regions(question)
    if not named:
        return None
    centres = torch.tensor([((r.left + r.right) / 2, (r.top + r.bottom) / 2) for r in named], dtype=torch.float64)
    return centres.to(tree.device) * tree.sizes.flip(1)[:, None].double()
