"""A tiled image file: any window of any level as pixels, of which only the tiles that it touches are decoded.

Axis legend: n windows, s their side in pixels, T tiles.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.errors import ImageError, InputError, whole_number
from homunculus.giga.files import FileLevel, can_open, read_levels
from homunculus.runtime.cache import LRUCache

CACHED = 64 << 20  # bytes of decoded tiles that are kept
AT_ONCE = 96 << 20  # bytes of tiles that one gather may hold beside them
INSTALL = "pip install 'homunculus[giga]'"


def have_pyvips() -> bool:
    """Whether pyvips is there, and with it a libvips that it can load."""
    try:
        import pyvips  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


def open_tiled(path: str | os.PathLike[str], page: int = 0) -> TiledImage:
    """A TIFF (pyramidal, SVS), JPEG or PNG file of any size, of which only what is looked at is decoded.

    Tiles are read at random from tiled TIFF. Where the file has no coarse levels, or no random access at all, the first
    look needs one pass over the whole file, which writes what is missing to the folder for temporary files.
    """
    if not have_pyvips():
        raise ImageError(f"{os.fsdecode(path)} can only be looked at tile by tile with pyvips: {INSTALL}")
    return TiledImage(os.fsdecode(path), whole_number("page", page, 0))


def tiled_instead(source: object, error: ImageError, page: int, streamed: bool) -> TiledImage:
    """The file that was too large to decode, tile by tile; if that cannot be, the error and what would help.

    Without random access it is opened only if it may be `streamed`, which takes a pass over all of it.
    """
    if not isinstance(source, str | os.PathLike):
        raise error
    if not have_pyvips():
        raise ImageError(f"{error}; or look at it tile by tile: {INSTALL}") from error
    if not can_open(os.fsdecode(source)):
        raise error
    image = open_tiled(source, page)
    if not (image.random_access or streamed):
        raise ImageError(f"{error}; or choose by fractal, which passes over such a file once") from error
    return image


@dataclass(frozen=True)
class TileCounts:
    """How many tiles were decoded (again counts again), how many the file holds, and if it was passed over whole."""

    decoded: int
    all: int
    streamed: bool


class TiledImage:
    """Width, height and windows of a file; `open_tiled` makes it. It keeps a bounded number of decoded tiles."""

    def __init__(self, path: str, page: int = 0) -> None:
        self.path, self.page = path, page
        file = read_levels(path, page)
        self.width, self.height, self._turn = file.width, file.height, file.turn
        self._levels, self._file = list(file.levels), file
        self._size_on_disk, self._decoded, self._streamed = Path(path).stat().st_size, 0, False
        self._all = sum(level.rows * level.columns for level in self._levels)
        self._tiles: LRUCache[tuple[int, int], Tensor] = LRUCache(CACHED, lambda tile: tile.numel())
        self.kept: dict[Any, Any] = {}  # what a look has made of the image, for the next one

    def __repr__(self) -> str:
        octaves = ", ".join(str(level.octave) for level in self._levels)
        return f"TiledImage({self.path!r}, {self.width}x{self.height}, levels {octaves or 'none yet'})"

    @property
    def tiles(self) -> TileCounts:
        """What the looks so far have cost."""
        return TileCounts(self._decoded, self._all, self._streamed)

    @property
    def random_access(self) -> bool:
        """Whether the file itself gives single tiles of its finest level."""
        return self._file.random_access

    def prepare(self, level: int, most_pixels: int) -> None:
        """Make sure that `level` comes from no more than about `most_pixels` of the file's own pixels.

        Where the file has no such level, one pass over it writes coarser copies to a temporary file.
        """
        own = self._of_level(level)
        if own is not None and own.height * own.width <= most_pixels:
            return
        made, tiles = self._file.stream()
        self._streamed, self._decoded, self._all = True, self._decoded + tiles, max(self._all, tiles)
        self._levels = sorted([*self._levels, *made], key=lambda each: each.octave)
        self._tiles.clear()  # they are numbered by level

    def region(self, level: int, corners: Tensor, size: int) -> Tensor:
        """Windows of the image scaled by 2^-level, upright: corners x, y [n, 2] in its pixels -> uint8 [n, 3, s, s].

        What lies beyond the border of the scaled image repeats it.
        """
        own = self._of_level(level)
        if own is None:
            raise InputError(f"{self.path} has no level {level} that can be read at random: call prepare first")
        gap = level - own.octave
        upright = (own.width, own.height) if self._turn >= 4 else (own.height, own.width)
        sides = [min(size << gap, side) for side in upright]  # of a thin image, no more than there is
        parts = [self._windows(own, part << gap, sides, gap) for part in self._portions(own, corners, sides)]
        return _padded(torch.cat(parts), size)

    def _of_level(self, level: int) -> FileLevel | None:
        """The coarsest level of the file that is at least as fine."""
        return next((own for own in reversed(self._levels) if own.octave <= level), None)

    def _portions(self, own: FileLevel, corners: Tensor, sides: list[int]) -> Iterator[Tensor]:
        """So many windows at a time that their tiles fit in memory; at least one."""
        height, width = sides
        tiles = (height // own.tile_height + 2) * (width // own.tile_width + 2)
        bytes_each = tiles * own.tile_height * own.tile_width * 3 + 24 * height * width
        return iter(corners.split(max(1, AT_ONCE // bytes_each)))

    def _windows(self, own: FileLevel, corners: Tensor, sides: list[int], gap: int) -> Tensor:
        """Windows of one of the file's levels, the mean of 2^gap pixels a side: [n, 2] -> uint8 [n, 3, h, w]."""
        row, column = self._in_file(own, corners, sides)
        (high, down), (wide, across) = (
            _tiles_along(at, t) for at, t in ((row, own.tile_height), (column, own.tile_width))
        )
        ids = high[:, :, None] * own.columns + wide[:, None]  # [n, a, b]
        needed = ids.unique()
        tiles = torch.stack([self._tile(own, number) for number in needed.tolist()])  # [T, th, tw, 3]
        slot = torch.searchsorted(needed, ids)
        swapped = self._turn >= 4
        down, across, row, column = (
            each[:, None, :] if swapped == first else each[:, :, None]
            for each, first in ((down, True), (across, False), (row, True), (column, False))
        )
        n = torch.arange(len(corners))[:, None, None]
        place = (slot[n, down, across] * own.tile_height + row % own.tile_height) * own.tile_width
        pixels = tiles.view(-1, 3)[place + column % own.tile_width].permute(0, 3, 1, 2)  # [n, 3, h, w]
        return (F.avg_pool2d(pixels.float(), 1 << gap, ceil_mode=True) + 0.5).to(torch.uint8) if gap else pixels

    def _in_file(self, own: FileLevel, corners: Tensor, sides: list[int]) -> tuple[Tensor, Tensor]:
        """Rows and columns of the file under windows of the upright image, as its EXIF orientation says. [n, s] each"""
        x, y = corners[:, :1] + torch.arange(sides[1]), corners[:, 1:] + torch.arange(sides[0])
        row, column = (x, y) if self._turn >= 4 else (y, x)
        flip_rows, flip_columns = ((False, False), (False, True), (True, True), (True, False))[self._turn % 4]
        if self._turn >= 4:
            flip_rows, flip_columns = flip_columns, flip_rows
        row, column = row.clamp(0, own.height - 1), column.clamp(0, own.width - 1)
        return own.height - 1 - row if flip_rows else row, own.width - 1 - column if flip_columns else column

    def _tile(self, own: FileLevel, number: int) -> Tensor:
        """One tile, decoded unless it is kept: uint8 [th, tw, 3], zero beyond the border of the file."""
        key = own.octave, number
        if key in self._tiles:
            return self._tiles[key]
        row, column = divmod(number, own.columns)
        top, left = row * own.tile_height, column * own.tile_width
        height, width = min(own.tile_height, own.height - top), min(own.tile_width, own.width - left)
        try:
            raw = own.fetch(left, top, width, height)
        except Exception as error:  # pyvips.Error, or what its binding makes of a damaged file
            raise ImageError(self._undecoded(own, row, column, error)) from error
        tile = torch.zeros(own.tile_height, own.tile_width, 3, dtype=torch.uint8)
        tile[:height, :width] = torch.from_numpy(np.frombuffer(raw, np.uint8).reshape(height, width, 3).copy())
        self._tiles[key] = tile
        self._decoded += not own.temporary
        return tile

    def _undecoded(self, own: FileLevel, row: int, column: int, error: Exception) -> str:
        shrunk = not Path(self.path).exists() or Path(self.path).stat().st_size < self._size_on_disk
        why = "the file became shorter while it was read" if shrunk else "the file is damaged or cut short"
        detail = " ".join(str(error).split())[-80:]
        return (
            f"{self.path}: the tile in row {row}, column {column} of level {own.octave} cannot be decoded, {why} "
            f"({detail}): copy or download it again"
        )


def _padded(windows: Tensor, size: int) -> Tensor:
    """Windows [n, 3, h, w] with their last row and column repeated: [n, 3, s, s]."""
    height, width = windows.shape[2:]
    y, x = (torch.arange(size).clamp(max=side - 1) for side in (height, width))
    return windows.contiguous() if height == width == size else windows[:, :, y][..., x]


def _tiles_along(at: Tensor, tile: int) -> tuple[Tensor, Tensor]:
    """The tiles that windows touch along one axis, and which of them each pixel lies in: [n, s] -> [n, a], [n, s]."""
    of_pixel = at // tile
    first, last = of_pixel.amin(1, keepdim=True), of_pixel.amax(1, keepdim=True)
    step = torch.arange(int((last - first).max()) + 1)
    return torch.minimum(first + step, last), of_pixel - first
