"""What a file says of itself before anything of it is decoded: its kind, how large it is, how many pages it has.

Files come from anywhere. Whatever could make a decoder work for minutes is refused here, by counts rather than by time.
"""

from __future__ import annotations

import contextlib
import io
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from homunculus.errors import ImageError
from homunculus.image import _PILLOW_RULES, _SIGNATURES, load
from homunculus.studio.uploads import Limits, RequestError

TAKEN = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "AVIF", "JPEG2000")  # others run programs, or are rare and old
NAMES = "PNG, JPEG, WebP, TIFF, GIF, BMP, AVIF, JPEG 2000 or PDF"
DPI = 144  # at which homunculus.image draws PDF pages
DRAW = Path(__file__).with_name("draw.py")
MEMORY = 1 << 30  # bytes that reading a PDF may take beside its pixels
TAGS = 200_000  # of all pages of a TIFF: to turn to a page, all tags before it are read


def pages_of(content: bytes, page: int, limits: Limits) -> int:
    """How many pages a file has, if it can be taken and has this one."""
    if not content:
        raise ImageError("the image is empty (0 bytes); send it again")
    count = _pdf(content, page, limits) if is_pdf(content) else _picture(content, limits)
    check_page(page, count)
    return count


def check_page(page: int, count: int) -> None:
    """Whether there is such a page among so many."""
    if page >= count:
        pages = "1 page" if count == 1 else f"{count} pages"
        raise ImageError(f"the file has {pages}, counted from 0: there is no page {page}")


def read(content: bytes, page: int, limits: Limits) -> Tensor:  # uint8 [3, H, W]
    """A page as homunculus.image loads it; a PDF may take only so much time and memory."""
    if not is_pdf(content):
        return load(content, page=page, max_pixels=limits.pixels)
    about, rows = _read_pdf(content, page, limits, draw=True)
    check_page(page, about["pages"])
    _check_size(about["width"], about["height"], limits)
    width, height, channels = about["width"], about["height"], about["channels"]
    pixels = np.frombuffer(rows, np.uint8).reshape(height, about["stride"])[:, : width * channels]
    return load(pixels.reshape(height, width, channels)[..., :3], max_pixels=limits.pixels)


def is_pdf(content: bytes) -> bool:
    """Whether homunculus.image will read it as PDF: there may be something before the header."""
    head = content[:1024]
    return b"%PDF" in head and not head.startswith(_SIGNATURES)


def _check_size(width: float, height: float, limits: Limits) -> None:
    if width * height > limits.pixels:
        size = f"{width:.0f} x {height:.0f}"
        raise RequestError(f"the page has {size} pixels, more than {limits.pixels}; send a smaller one", 413)


def _check_count(count: int, limits: Limits) -> int:
    if count > limits.pages:
        raise RequestError(f"the file has more than {limits.pages} pages; send fewer", 413)
    return count


def _pdf(content: bytes, page: int, limits: Limits) -> int:
    about, _ = _read_pdf(content, page, limits, draw=False)
    _check_size(about.get("width", 1), about.get("height", 1), limits)
    return _check_count(about["pages"], limits)


def _read_pdf(content: bytes, page: int, limits: Limits, draw: bool) -> tuple[dict[str, Any], memoryview]:
    """What a PDF is, and one of its pages drawn if that is wanted, by a process that ends if it takes too much."""
    if b"%%EOF" not in content:  # what is cut short would be repaired without a word
        raise ImageError("the PDF has no end mark %%EOF: copy or download it again")
    order = {"page": page, "dpi": DPI, "draw": draw, "pages": limits.pages, "pixels": limits.pixels}
    order |= {"seconds": limits.seconds, "memory": MEMORY + 8 * limits.pixels}
    call = [sys.executable, "-P", str(DRAW), json.dumps(order)]
    wait = 10 * limits.seconds  # on a busy machine
    try:  # in a session of its own: Ctrl-C is for us, and what was accepted is finished
        process = subprocess.run(call, input=content, capture_output=True, timeout=wait, start_new_session=True)
    except subprocess.TimeoutExpired:
        process = None
    if process is None or process.returncode:
        raise ImageError("the PDF takes too long or too much memory to be read; send its pages as images")
    end = process.stdout.index(b"\n")
    about = json.loads(process.stdout[:end])
    if "error" in about:
        raise ImageError("the PDF cannot be read: it is damaged or has a password; export it again")
    return about, memoryview(process.stdout)[end + 1 :]


def _picture(content: bytes, limits: Limits) -> int:
    Image.init()
    known = [kind for kind in TAKEN if kind in Image.OPEN]  # older Pillows know no AVIF
    try:
        with _PILLOW_RULES, Image.open(io.BytesIO(content), formats=known) as image:
            _check_size(image.width, image.height, limits)
            return COUNTS.get(image.format or "", _one)(content, image, limits)
    except RequestError:
        raise
    except UnidentifiedImageError as error:
        raise ImageError(f"the image is of no known format, or cut short; send {NAMES}") from error
    except Exception as error:  # on damaged bytes, decoders raise anything
        raise ImageError(f"the image is damaged or cut short; send {NAMES}") from error


def _one(content: bytes, image: Any, limits: Limits) -> int:
    return 1


def _film(content: bytes, image: Any, limits: Limits) -> int:
    """Pages that are painted one over the other: to see one, all before it are decoded."""
    return _check_film(getattr(image, "n_frames", 1), image.size, limits)


def _check_film(count: int, size: tuple[int, int], limits: Limits) -> int:
    width, height = size
    _check_size(width, height, limits)
    if _check_count(count, limits) * width * height > limits.film and count > 1:
        raise RequestError(f"the pages have more than {limits.film} pixels altogether; send fewer", 413)
    return count


def _gif(content: bytes, image: Any, limits: Limits) -> int:
    """Pages of a GIF, and its size, which its pages may stretch."""
    at, count, (width, height) = 13 + _colours(content[10]), 0, image.size
    while content[at : at + 1] in (b"!", b","):
        if content[at] == ord(","):
            left, top, wide, high, flags = struct.unpack_from("<4HB", content, at + 1)
            width, height, count = max(width, left + wide), max(height, top + high), _check_count(count + 1, limits)
            at += 11 + _colours(flags)  # after its own colours a byte that says how it is packed
        else:
            at += 2
        while at < len(content) and content[at]:  # blocks, each after its length
            at += 1 + content[at]
        at += 1
    return _check_film(max(1, count), (width, height), limits)


def _colours(flags: int) -> int:
    """Bytes of a table of colours, if there is one."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _tiff(content: bytes, image: Any, limits: Limits) -> int:
    """Pages of a TIFF, by the chain of its directories, in the plain form or the one for large files."""
    order = "<" if content.startswith(b"II") else ">"
    large = struct.unpack_from(order + "H", content, 2)[0] == 43
    number, tag, place = (8, 20, "Q") if large else (2, 12, "I")
    seen, tags = set[int](), 0
    with contextlib.suppress(struct.error):  # what lies beyond the end of the file is no page
        (at,) = struct.unpack_from(order + place, content, 8 if large else 4)
        while at and at not in seen:
            (entries,) = struct.unpack_from(order + ("Q" if large else "H"), content, at)
            seen.add(at)
            tags += entries
            if tags > TAGS:
                raise RequestError(f"the TIFF has more than {TAGS} tags; save it anew", 413)
            _check_count(len(seen), limits)
            (at,) = struct.unpack_from(order + place, content, at + number + tag * entries)
    return max(1, len(seen))


COUNTS: dict[str, Callable[[bytes, Any, Limits], int]] = {
    "TIFF": _tiff, "GIF": _gif, "PNG": _film, "WEBP": _film, "AVIF": _film,
}  # fmt: skip
