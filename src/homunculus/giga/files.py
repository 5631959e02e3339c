"""Files through libvips: their own levels, their tiles, and one pass over those that have no coarse levels."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homunculus.errors import ImageError

LOADERS = ("tiffload", "jpegload", "pngload", "webpload", "jp2kload")
TILE = 256  # of temporary files
LARGEST_TILE = 4096 * 4096  # pixels; a file with larger tiles is passed over like one without
LEAVES_OUT = 2  # octaves: a file with random access keeps its fine levels, only coarser ones are made
SPARE = 1 << 28  # bytes of disk that stay free


@dataclass(frozen=True)
class FileLevel:
    """One level of a file that gives single tiles.

    Args:
        octave: the level: the image scaled by 2^-octave.
        height, width, tile_height, tile_width: in pixels, in the file's own axes.
        fetch: `fetch(left, top, width, height)` gives RGB bytes.
        temporary: made by a pass over the file.
    """

    octave: int
    height: int
    width: int
    tile_height: int
    tile_width: int
    fetch: Callable[[int, int, int, int], Any] = field(repr=False)
    temporary: bool = False

    @property
    def rows(self) -> int:
        """Tiles from top to bottom."""
        return -(-self.height // self.tile_height)

    @property
    def columns(self) -> int:
        """Tiles from left to right."""
        return -(-self.width // self.tile_width)


@dataclass(frozen=True, eq=False)
class File:
    """What is known of a file once its header is read: upright size, EXIF turn 0..7, levels by octave."""

    path: str
    page: int
    loader: str
    width: int
    height: int
    turn: int
    levels: tuple[FileLevel, ...]

    @property
    def random_access(self) -> bool:
        """Whether the finest level gives single tiles."""
        return bool(self.levels) and self.levels[0].octave == 0

    def stream(self) -> tuple[list[FileLevel], int]:
        """Levels from one pass over the whole file, in strips; and how many tiles that decoded.

        They lie uncompressed in a temporary file, which goes with this object: the coarse ones alone, a twelfth of the
        image's pixels, where the file gives tiles of the fine ones; else all, four thirds of its pixels.
        """
        octave = LEAVES_OUT if self.random_access else 0
        folder = tempfile.mkdtemp(prefix="homunculus-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        needed, free = self.width * self.height * 4 >> (2 * octave), shutil.disk_usage(folder).free
        if needed + SPARE > free:
            raise ImageError(
                f"{self.path} needs {needed >> 20} MiB for its levels in {tempfile.gettempdir()}, which has "
                f"{free >> 20} MiB free: set TMPDIR to a folder with more, or save the image as a tiled pyramid"
            )
        target = str(Path(folder, "levels.tif"))
        try:
            image = _rgb(_open(self.path, _pages(self.loader, self.page), "sequential"), self.path)
            small = image.shrink(1 << octave, 1 << octave, ceil=True) if octave else image
            small.tiffsave(target, tile=True, tile_width=TILE, tile_height=TILE, pyramid=True, bigtiff=True)
        except _vips().Error as error:
            raise ImageError(f"{self.path} cannot be decoded ({_detail(error)}): copy or download it again") from error
        made = [
            FileLevel(**{**vars(level), "octave": level.octave + octave, "temporary": True})
            for level in read_levels(target, 0).levels
        ]
        tile = self.levels[0] if self.random_access else made[0]
        return [level for level in made if level.octave >= octave], tile.rows * tile.columns


def can_open(path: str) -> bool:
    """Whether libvips takes the file for an image of a kind that it can read in strips or tiles."""
    try:
        return _open(path, {}, "random").get("vips-loader").startswith(LOADERS)
    except _vips().Error:
        return False


def read_levels(path: str, page: int) -> File:
    """The header of a file, and the levels of it that can be read tile by tile."""
    try:
        image = _open(path, {}, "random")
        loader = image.get("vips-loader")
        if not loader.startswith(LOADERS):
            raise ImageError(f"{path} is read by {loader}, not one of {', '.join(LOADERS)}: save it as tiled TIFF")
        pages = image.get("n-pages") if image.get_typeof("n-pages") else 1
        if page >= pages:
            raise ImageError(f"{path} has {pages} pages, counted from 0: there is no page {page}")
        tiled = _pages(loader, page) if loader.startswith("tiffload") else {}
        image = _open(path, tiled, "random")
    except _vips().Error as error:
        raise ImageError(_unopened(path, error)) from error
    turn = image.get("orientation") - 1 if image.get_typeof("orientation") else 0
    size = (image.height, image.width) if turn >= 4 else (image.width, image.height)
    levels = tuple(_levels(path, image, page, pages)) if tiled and _is_tiled(image) else ()
    return File(path, page, loader, *size, turn, levels)


def _levels(path: str, image: Any, page: int, pages: int) -> list[FileLevel]:
    """The file's level 0 and its overviews: sub-images of the page, or later pages of just that size."""
    inside = image.get("n-subifds") if image.get_typeof("n-subifds") else 0
    others = [{"page": page, "subifd": i} for i in range(inside)]
    others = others or [{"page": number} for number in range(1, pages) if page == 0]
    levels = {0: _level(path, image, 0)}
    for options in others:
        try:
            other = _open(path, options, "random")
        except _vips().Error:
            continue  # a thumbnail that nobody can read is no reason to refuse the image
        octave = round(image.width / other.width).bit_length() - 1
        sides = ((image.width, other.width), (image.height, other.height))
        if octave > 0 and _is_tiled(other) and all(abs(full / 2**octave - side) <= 1 for full, side in sides):
            levels.setdefault(octave, _level(path, other, octave))
    return [levels[octave] for octave in sorted(levels)]


def _level(path: str, image: Any, octave: int) -> FileLevel:
    region = _vips().Region.new(_rgb(image, path))
    tile = min(image.get("tile-height"), image.height), min(image.get("tile-width"), image.width)
    return FileLevel(octave, image.height, image.width, *tile, region.fetch)


def _is_tiled(image: Any) -> bool:
    if not image.get_typeof("tile-width"):
        return False
    return image.get("tile-width") * image.get("tile-height") <= LARGEST_TILE


def _pages(loader: str, page: int) -> dict[str, int]:
    return {"page": page} if loader.startswith("tiffload") else {}


def _rgb(image: Any, path: str) -> Any:
    """The same image as 8-bit RGB over white, converted where it is read."""
    if image.format not in ("uchar", "ushort"):
        raise ImageError(f"{path} has {image.format} values: save it with 8 or 16 bits a colour")
    if image.interpretation != "srgb":
        image = image.colourspace("srgb")
    if image.hasalpha():
        image = image.flatten(background=255)
    if image.bands < 3:
        image = image[0].bandjoin([image[0], image[0]])
    return (image[:3] if image.bands > 3 else image).cast("uchar")


def _open(path: str, options: dict[str, int], access: str) -> Any:
    vips = _vips()
    source = vips.Source.new_from_file(path)  # not by name: libvips would read options from a name with brackets
    return vips.Image.new_from_source(source, "", access=access, fail_on="warning", **options)  # else tiles turn black


def _vips() -> Any:
    import pyvips

    return pyvips


def _unopened(path: str, error: Exception) -> str:
    if not Path(path).exists():
        return f"{path} does not exist"
    known = ", ".join(each for each in LOADERS if _vips().type_find("VipsForeign", each))
    return f"{path} cannot be opened tile by tile ({_detail(error)}): it is cut short, or nothing that {known} reads"


def _detail(error: Exception) -> str:
    return " ".join(str(error).split())[-120:]
