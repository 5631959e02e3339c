"""Levels of 8-bit images at memory speed: the Triton twin of `pyramid.gaussian` with its usual weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from homunculus.kernels.mip_kernel import kernel
from homunculus.kernels.needed_levels import LANE_COLUMNS, LEVELS_PER_LAUNCH, STRIP_COLUMNS
from homunculus.kernels.warp import WARP_SIZE

PREFETCH_ROWS, PREFETCH_ROWS_UNALIGNED = 8, 4  # rows that are on their way while others are weighed
ROWS_PER_PIECE = 16  # rows of the third level that one makes where there are many times more of them than run at once
MIN_ROWS_PER_PIECE = 2  # and where there are few: each reads 14 rows of an image beside the 8 of every one of these
WARPS_PER_PROGRAM = 8  # pieces of a program, if cells are given
USE_PDL = True  # whether kernels begin while those before them end: they wait before they read
WARPS_PER_SM = 16  # that a multiprocessor has registers for

# ---- where levels lie ---------------------------------------------------------------------------------------------


class LevelPlace(NamedTuple):
    """A level: its size, bytes from row to row, and where it begins among the levels of its image."""

    height: int
    width: int
    pitch: int
    start: int


def level_places(height: int, width: int, planes: int, count: int) -> tuple[list[LevelPlace], int]:
    """Levels 1 and up, filled up to whole launches, and how many bytes an image has of all of them."""
    found, start = [], 0
    for _ in range(-(-count // LEVELS_PER_LAUNCH.value) * LEVELS_PER_LAUNCH.value):
        height, width = -(-height // 2), -(-width // 2)
        pitch = -(-width // 16) * 16
        found.append(LevelPlace(height, width, pitch, start))
        start += planes * height * pitch
    return found, start


class ChosenCells(NamedTuple):
    """Cells whose levels alone are made: boxes [B, K, 4], levels [B, K] and mask [B, K] of a `Selection`."""

    boxes: Tensor
    levels: Tensor
    mask: Tensor


class Launch(NamedTuple):
    """Images, programs, warps of a program (a piece each), and rows of the third level of a piece.

    Equal images are told by height, width and pitch, where the first begins and how far the next is, and the same of
    their levels; others by a table. `partial_lanes` where rows of an image end within the sixteen pixels of a lane.
    """

    images: tuple[int, ...] | Tensor
    programs: int
    warps: int
    rows_per_piece: int
    partial_lanes: bool


def _num_strips(third: LevelPlace) -> int:
    """Side by side, of this level and the two before it."""
    return triton.cdiv(max(third.width - 2 * LANE_COLUMNS.value, 1), STRIP_COLUMNS.value)


def _programs_per_plane(third: LevelPlace, rows_per_piece: int, warps: int) -> int:
    """Programs that make a level of a plane and the two before it."""
    return _num_strips(third) * triton.cdiv(triton.cdiv(third.height, rows_per_piece), warps)


def _rows_per_piece(thirds: Sequence[LevelPlace], planes: int, warps: int, device: torch.device) -> int:
    """How many rows of these levels a piece has: so many that all run at once, unless there is far more to do."""
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 0
    slots, tallest = WARPS_PER_SM * multiprocessors or 8, max(third.height for third in thirds)
    pieces = slots // warps // (planes * sum(_num_strips(third) for third in thirds)) * warps
    return (
        max(triton.cdiv(tallest, min(tallest, pieces)), MIN_ROWS_PER_PIECE)
        if pieces > 3
        else min(tallest, ROWS_PER_PIECE)
    )


@cache
def _launches(images: int, planes: int, height: int, width: int, count: int, warps: int, device: Any) -> list[Launch]:
    """What it takes for equal images."""
    places, total = level_places(height, width, planes, count)
    launches = []
    for first in range(0, len(places), LEVELS_PER_LAUNCH.value):
        source = places[first - 1] if first else LevelPlace(height, width, width, 0)
        source_stride, third = total if first else planes * height * width, places[first + 2]
        rows_per_piece = _rows_per_piece([third] * images, planes, warps, device)
        programs = images * planes * _programs_per_plane(third, rows_per_piece, warps)
        arguments = *source, source_stride, places[first].start, total
        launches.append(Launch(arguments, programs, warps, rows_per_piece, source.width % 16 > 0))
        warps = 1  # cells are looked at in the first
    return launches


# ---- calls --------------------------------------------------------------------------------------------------------


def build(x: Tensor, count: int, dtype: torch.dtype = torch.uint8, chosen: ChosenCells | None = None) -> list[Tensor]:
    """`count` levels of uint8 [..., H, W] below the image itself: [..., h, w] each, in rows of whole sixteens.

    Floats have the values of the 8-bit levels. With `chosen`, for [B, C, H, W], only what those cells need is made: the
    rest of the levels is left as the memory was.
    """
    x = _aligned(x)
    *outer, height, width = x.shape
    planes = outer[-1] if outer else 1
    images = x.numel() // max(1, planes * height * width)
    places, total = level_places(height, width, planes, count)
    out = torch.empty(images, total, dtype=torch.uint8, device=x.device)
    floats = torch.empty_like(out, dtype=dtype) if dtype != torch.uint8 else out
    if x.numel() and count:
        launches = _launches(images, planes, height, width, count, WARPS_PER_PROGRAM if chosen else 1, x.device)
        _launch(x, out, floats, launches, images, planes, chosen)
    return [_view(floats, place, outer) for place in places[:count]]


def is_built(levels: Sequence[Tensor]) -> bool:
    """Whether these are an image [B, C, H, W] in one piece and the levels that `build` made of it."""
    images, planes, height, width = levels[0].shape
    places, total = level_places(height, width, planes, len(levels) - 1)
    first = levels[1] if total else levels[0]
    capacity = first.untyped_storage().nbytes() // first.element_size() - int(first.storage_offset())
    return (
        levels[0].is_contiguous()
        and capacity >= images * total
        and all(
            level.shape[2:] == (h, w)
            and level.stride()[images == 1 :] == (total, h * pitch, pitch, 1)[images == 1 :]
            and level.data_ptr() == first.data_ptr() + start
            for level, (h, w, pitch, start) in zip(levels[1:], places, strict=False)
        )
    )


def levels_memory(levels: Sequence[Tensor]) -> Tensor:
    """The memory [B, bytes] of levels that `build` made."""
    images, planes, height, width = levels[0].shape
    total = level_places(height, width, planes, len(levels) - 1)[1]
    return (levels[1] if total else levels[0]).as_strided((images, total), (total, 1))


def halve(x: Tensor) -> Tensor:
    """uint8 [..., H, W] -> [..., ceil(H/2), ceil(W/2)], weighed (1, 3, 3, 1) / 8 each way and rounded half up."""
    return build(x, 1)[0]


def build_each(images: Sequence[Tensor], counts: Sequence[int]) -> list[list[Tensor]]:
    """`build` for images [C, H, W] of different sizes in the same few launches."""
    images = [_aligned(image) for image in images]
    planes, device = len(images[0]), images[0].device
    layouts = [level_places(image.shape[1], image.shape[2], planes, max(counts)) for image in images]
    places = [each for each, _ in layouts]
    starts = [0]
    for _, total in layouts:
        starts.append(starts[-1] + total)
    out = torch.empty(starts[-1], dtype=torch.uint8, device=device)
    launches = [
        _table_launch(images, places, starts, first) for first in range(0, len(places[0]), LEVELS_PER_LAUNCH.value)
    ]
    if out.numel():
        _launch(images[0], out, out, launches, len(images), planes)
    return [
        [_view(out[None, start:], place, image.shape[:1]) for place in each[:count]]
        for image, each, start, count in zip(images, places, starts, counts, strict=False)
    ]


def _table_launch(
    images: Sequence[Tensor], places: Sequence[Sequence[LevelPlace]], starts: Sequence[int], first: int
) -> Launch:
    """The launch that makes levels `first` and the next two of images of different sizes."""
    planes, device, origin = len(images[0]), images[0].device, images[0].data_ptr()
    rows, programs = list[list[int]](), 0
    rows_per_piece = _rows_per_piece([each[first + 2] for each in places], planes, 1, device)
    for image, each, start in zip(images, places, starts, strict=False):
        height, width = image.shape[1:]
        itself = LevelPlace(height, width, width, image.data_ptr() - origin - start)
        source = each[first - 1] if first else itself
        rows.append([*source[:3], source.start + start, each[first].start + start, programs])
        programs += planes * _programs_per_plane(each[first + 2], rows_per_piece, 1)
    partial_lanes = any(width % 16 for _, width, *_ in rows)
    return Launch(torch.tensor(rows, device=device), programs, 1, rows_per_piece, partial_lanes)


def _launch(
    x: Tensor,
    out: Tensor,
    floats: Tensor,
    launches: Sequence[Launch],
    images: int,
    planes: int,
    chosen: ChosenCells | None = None,
) -> None:
    boxes, levels, mask = chosen or (out, out, out)
    if chosen:
        boxes = boxes.double() if boxes.is_floating_point() else boxes.long()
        boxes, levels, mask = _aligned(boxes), _aligned(levels), _aligned(mask)
    with torch.cuda.device_of(x):
        for n, (arguments, programs, warps, rows_per_piece, partial_lanes) in enumerate(launches):
            unaligned, from_table = partial_lanes and not n, isinstance(arguments, Tensor)
            table, *layout = (arguments, *(0,) * 7) if from_table else (out, *arguments)
            table_block = max(WARP_SIZE.value, triton.next_power_of_2(images)) if from_table else 0
            kernel[(programs,)](
                out if n else x, out, floats, table, *layout, boxes, levels, mask, images, planes, rows_per_piece,
                mask.shape[-1], from_table=from_table, table_block=table_block, partial_lanes=partial_lanes,
                unaligned=unaligned, to_float=floats is not out, only_needed=chosen is not None and not n,
                release_early=n > 0, warps=warps, prefetch=PREFETCH_ROWS_UNALIGNED if unaligned else PREFETCH_ROWS,
                num_warps=warps, **launch_options(x.device),
            )  # fmt: skip


def launch_options(device: torch.device) -> dict[str, bool]:
    """How to launch a kernel that may begin before the one before it has ended, where that is allowed and possible."""
    pdl = USE_PDL and device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
    return {"pdl": True, "launch_pdl": True} if pdl else {"pdl": False}


def _aligned(x: Tensor) -> Tensor:
    """In one piece that begins where a lane may read sixteen bytes."""
    x = x.contiguous()
    return x.clone() if x.data_ptr() % 16 else x


def _view(out: Tensor, place: LevelPlace, outer: Sequence[int]) -> Tensor:
    """A level among those of its images, [..., h, w]."""
    height, width, pitch, start = place
    shape = [len(out), outer[-1] if outer else 1, height, width]
    level = out.as_strided(shape, [out.stride(0), height * pitch, pitch, 1], out.storage_offset() + start)
    return level.unflatten(0, list(outer[:-1])) if len(outer) > 1 else level[0] if outer else level[0, 0]
