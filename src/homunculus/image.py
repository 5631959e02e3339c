"""Any image as one RGB tensor, uint8 [3, H, W]: files, PDF pages, PIL images, arrays, tensors.

Axis legend: C channels, H rows, W columns, h the rows of one strip. What cannot be read is an
`ImageError`, what cannot be used an `InputError`; both are one sentence that names its source.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError

from homunculus.errors import ImageError, InputError, TooLargeError, shown, whole_number

MAX_PIXELS = 256 * 1024 * 1024
STRIP_PIXELS = 1024 * 1024  # converted at once: the working memory beside image and tensor
FLOAT_SLACK = 1e-3  # how far resampling may push a value beyond its range before it is a mistake

Pixels: TypeAlias = NDArray[Any]
Source: TypeAlias = "str | os.PathLike[str] | bytes | BinaryIO | Image.Image | Pixels | torch.Tensor"

_ROW_COLUMN_STEPS = ((1, 1), (1, -1), (-1, -1), (-1, 1))  # EXIF orientations 1-4; 5-8 also swap the axes
_UNOPENED: dict[type[Exception], str] = {
    FileNotFoundError: "does not exist",
    IsADirectoryError: "is a directory, not an image file",
    PermissionError: "may not be read by this user: change its permissions",
}
_PDFIUM_LOCK = threading.Lock()  # PDFium is not thread-safe


_SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"BM")


class _PillowRules:
    """Pillow's process-wide settings at our values while any thread decodes, then as they were.

    Our own limit replaces Pillow's, which would warn or refuse below it; and an application that
    told Pillow to accept truncated files must still not get half-grey images from us.
    """

    def __init__(self) -> None:
        self._lock, self._holders = threading.Lock(), 0
        self._before: tuple[int | None, bool] = (None, False)

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
                Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = None, False
            self._holders += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = self._before


_PILLOW_RULES = _PillowRules()


@dataclass(frozen=True)
class _Request:
    """What a caller asked for, and the name by which errors call the source."""

    name: str
    page: int
    dpi: float
    max_pixels: int

    def __post_init__(self) -> None:
        whole_number("page", self.page, 0)
        if not (isinstance(self.dpi, Real) and 0 < self.dpi < math.inf):
            raise InputError(f"dpi must be a positive number, not {shown(self.dpi)}")
        whole_number("max_pixels", self.max_pixels)

    def check_size(self, width: int, height: int) -> None:
        pixels = width * height
        if pixels < 1:
            raise ImageError(f"{self.name} has no pixels: it is {width} x {height}")
        if pixels > self.max_pixels:
            raise TooLargeError(
                f"{self.name} is {width} x {height} = {pixels} pixels, above the limit of {self.max_pixels}: "
                f"pass max_pixels={pixels} (or --max-pixels {pixels}) to load it on purpose"
            )

    def check_page(self, count: int) -> None:
        if self.page >= count:
            pages = "1 page" if count == 1 else f"{count} pages"
            raise ImageError(f"{self.name} has {pages}, counted from 0: there is no page {self.page}")


def load(source: Source, *, page: int = 0, dpi: float = 144, max_pixels: int = MAX_PIXELS) -> torch.Tensor:
    """An image as a contiguous RGB tensor, uint8 [3, H, W], upright, with transparency over white.

    `page` is the page of a PDF, or the frame of a TIFF or GIF (0 leaves a PIL image at its own);
    `dpi` is for PDF only. A uint8 tensor [3, H, W] is returned as it is, on its device; everything
    else is copied to the CPU.
    """
    return _load(source, _Request(describe_source(source), page, dpi, max_pixels))


def load_each(
    sources: Iterable[Source], *, page: int = 0, dpi: float = 144, max_pixels: int = MAX_PIXELS
) -> Iterator[torch.Tensor | ImageError | InputError]:
    """Every image, in order and one at a time; where one cannot be loaded, the error itself stands in its place."""
    if isinstance(sources, str | bytes | os.PathLike):
        raise InputError("load_each takes a list of images, not one: put it in a list, or call load")
    listed = list(sources)
    for number, source in enumerate(listed, start=1):
        name = describe_source(source, f"image {number} of {len(listed)}")
        request = _Request(name, page, dpi, max_pixels)  # raises: wrong options are no image's fault
        try:
            yield _load(source, request)
        except (ImageError, InputError) as error:
            yield _without_frames(error)


def describe_source(source: object, unnamed: str = "image") -> str:
    """The name by which a message calls this source: its path where it has one."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source) or "'' (an empty path)"
    name = getattr(source, "filename" if isinstance(source, Image.Image) else "name", None)
    return name if isinstance(name, str) and name else unnamed


def _load(source: Source, request: _Request) -> torch.Tensor:  # uint8 [3, H, W]
    if isinstance(source, torch.Tensor | np.ndarray):
        request.check_page(1)
    if isinstance(source, torch.Tensor):
        return _from_tensor(source, request.name)
    if isinstance(source, np.ndarray):
        return _from_array(source, request.name)
    if isinstance(source, Image.Image):
        with _explained(request.name), _PILLOW_RULES:
            return _from_pil(source, request)
    with _byte_stream(source, request.name) as stream, _explained(request.name):
        head = stream.read(1024)  # where PDF readers look for the header
        if not head:
            raise ImageError(f"{request.name} is empty (0 bytes): copy or download it again")
        stream.seek(0)
        if b"%PDF" in head and not head.startswith(_SIGNATURES):  # an image may speak of PDF in its notes
            return _from_pdf(stream.read(), request)
        with _PILLOW_RULES, Image.open(stream) as image:
            return _from_pil(image, request)


def _byte_stream(source: object, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """The bytes of a path, a bytes object or a file, from their start; only our own file gets closed."""
    if isinstance(source, str | os.PathLike):
        try:
            path = Path(os.fsdecode(source))
            if path.exists() and not path.is_file() and not path.is_dir():
                return io.BytesIO(path.read_bytes())  # a pipe: decoders need to seek
            return path.open("rb")
        except (OSError, ValueError) as error:
            reason = _UNOPENED.get(type(error), f"cannot be opened ({error})")
            raise ImageError(f"{name} {reason}") from error
    if isinstance(source, bytes | bytearray | memoryview):
        return io.BytesIO(source)
    if isinstance(source, io.TextIOBase):
        raise InputError(f"{name} is open as text: open it with mode 'rb'")
    if hasattr(source, "read"):
        with _explained(name):
            return contextlib.nullcontext(_rewound(source))
    kinds = "a path, bytes, a binary file, a PIL image, a numpy array or a torch tensor"
    raise InputError(f"{name} is of type {type(source).__name__}: pass {kinds}")


def _rewound(stream: Any) -> BinaryIO:
    try:
        stream.seek(0)
    except (AttributeError, OSError):  # a pipe: decoders need to seek, so it is kept in memory
        return io.BytesIO(stream.read())
    return stream


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Any failure inside becomes an ImageError that says what is wrong with `name`."""
    try:
        yield
    except ImageError:
        raise
    except InputError as error:
        raise ImageError(str(error)) from error
    except Exception as error:  # on damaged bytes, decoders raise anything from KeyError to MemoryError
        raise ImageError(f"{name} {_reason(error)}") from error


def _reason(error: Exception) -> str:
    detail = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if isinstance(error, UnidentifiedImageError):
        return "is no image of a known format, or is cut short: save it as PNG, JPEG, WebP, TIFF or PDF"
    if isinstance(error, MemoryError):
        return "does not fit in memory: make it smaller first"
    if type(error).__name__ == "PdfiumError" and "password" in detail.lower():
        return "is protected by a password: save a copy without one"
    return f"is damaged or cut short ({detail}): copy, download or export it again"


def _without_frames(error: ImageError | InputError) -> ImageError | InputError:
    """The error without tracebacks, whose frames would keep images alive as long as it is kept."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def _from_pdf(data: bytes, request: _Request) -> torch.Tensor:  # uint8 [3, H, W]
    if b"%%EOF" not in data:  # PDFium repairs what it can, and would show half a page without a word
        raise ImageError(f"{request.name} is a PDF without its end mark %%EOF: copy or download it again")
    import pypdfium2 as pdfium  # only who opens a PDF waits for it

    with _PDFIUM_LOCK, contextlib.closing(pdfium.PdfDocument(data)) as document:
        document.init_forms()  # without it, filled-in fields stay empty
        request.check_page(len(document))
        page = document[request.page]
        scale = request.dpi / 72  # a PDF point is 1/72 inch
        request.check_size(*(math.ceil(side * scale) for side in page.get_size()))
        bitmap = page.render(scale=scale, rev_byteorder=True)  # RGB over white
        pixels = torch.empty((3, bitmap.height, bitmap.width), dtype=torch.uint8)
        _paint(pixels.numpy(), 0, bitmap.to_numpy())
        bitmap.close()  # here, under the lock, rather than whenever it is collected
        return pixels


def _from_pil(image: Image.Image, request: _Request) -> torch.Tensor:  # uint8 [3, H, W]
    """Decode, then convert strip by strip straight into the tensor: never a second whole image."""
    request.check_size(*image.size)
    if request.page:
        request.check_page(getattr(image, "n_frames", 1))
        image.seek(request.page)
        request.check_size(*image.size)  # pages of one file differ in size
    image.load()
    white = _gray_white(image, request.name)
    pixels, canvas = _blank(image)
    for top, strip in _strips(image):
        _paint(canvas, top, _strip_bytes(strip, white))
    photometric = getattr(image, "tag_v2", {}).get(ExifTags.Base.PhotometricInterpretation)
    if image.mode.startswith("I;16") and photometric == 0:
        pixels.bitwise_not_()  # white is zero: Pillow inverts such TIFF at 1 and 8 bits, not at 16
    return pixels


def _blank(image: Image.Image) -> tuple[torch.Tensor, Pixels]:
    """The tensor of the upright picture, and a view of it in the file's own axes to paint on."""
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # damaged metadata is no reason to refuse whole pixels
        orientation = 1
    turn = int(orientation) - 1 if orientation in range(1, 9) else 0
    width, height = image.size
    pixels = torch.empty((3, width, height) if turn >= 4 else (3, height, width), dtype=torch.uint8)
    row_step, column_step = _ROW_COLUMN_STEPS[turn % 4]
    view = pixels.numpy()[:, ::row_step, ::column_step]
    return pixels, view.swapaxes(1, 2) if turn >= 4 else view  # view [3, height, width]


def _gray_white(image: Image.Image, name: str) -> int | None:
    """The value that is white in a gray image of more than 8 bits; None for every other mode."""
    if image.mode.startswith("I;16"):
        bits = getattr(image, "tag_v2", {}).get(ExifTags.Base.BitsPerSample, (16,))[0]
        return 2 ** int(bits) - 1  # TIFF has 12 bits too
    if image.mode not in ("I", "F"):
        return None
    # Nothing in such a file says what white is: the smallest usual range that holds the values
    bounds = [(values.min(), values.max()) for values in (np.asarray(strip) for _, strip in _strips(image))]
    choices = (1, 255, 65535) if image.mode == "F" else (255, 65535, 2**31 - 1)
    return _white(float(np.min(bounds)), float(np.max(bounds)), choices, name)


def _white(low: float, high: float, choices: tuple[int, ...], name: str) -> int:
    """The first of the choices whose range 0..white holds all values."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{name} holds NaN or infinite values: replace them first")
    for white in choices:
        if low >= -FLOAT_SLACK and high <= white + FLOAT_SLACK:
            return white
    raise InputError(f"{name} has values from {low:g} to {high:g}: scale floats to 0..1, integers to 0..255")


def _strips(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    for top, bottom in _row_ranges(image.height, image.width):
        yield top, image.crop((0, top, image.width, bottom))


def _row_ranges(height: int, width: int) -> Iterator[tuple[int, int]]:
    rows = max(1, STRIP_PIXELS // width)
    return ((top, min(top + rows, height)) for top in range(0, height, rows))


def _strip_bytes(strip: Image.Image, white: int | None) -> Pixels:  # uint8 [h, W, 1 | 3 | 4]
    if white is not None:
        values, clear = np.asarray(strip), strip.info.get("transparency")
        gray = _to_bytes(values, white)
        return (gray if clear is None else np.where(values == clear, np.uint8(255), gray))[..., None]
    if strip.has_transparency_data:
        return np.asarray(strip.convert("RGBA"))
    if strip.mode in ("1", "L"):
        return np.asarray(strip.convert("L"))[..., None]
    return np.asarray(strip.convert("RGB"))


def _to_bytes(values: Pixels, white: int) -> Pixels:
    """0..white to 0..255: integers keep their high bits, floats are rounded."""
    if values.dtype.kind in "bf":
        return np.rint(np.clip(values.astype(np.float32) / white, 0, 1) * 255).astype(np.uint8)
    return (values >> (white.bit_length() - 8)).astype(np.uint8)


def _paint(canvas: Pixels, top: int, strip: Pixels) -> None:
    """Write uint8 rows [h, W, 1 | 3 | 4] into [3, H, W] at `top`: gray repeated, alpha over white."""
    rows = strip[..., :3]
    if strip.shape[2] == 4 and strip[..., 3].min() < 255:
        alpha = strip[..., 3:].astype(np.uint16)
        rows = (rows * alpha + 255 * (255 - alpha) + 127) // 255  # at most 65152: uint16 holds it
    canvas[:, top : top + len(rows)] = rows.transpose(2, 0, 1)  # [1 | 3, h, W]


def _from_tensor(tensor: torch.Tensor, name: str) -> torch.Tensor:  # uint8 [3, H, W]
    if tensor.ndim == 2:
        tensor = tensor[None]  # [1, H, W]
    if tensor.ndim != 3 or tensor.shape[0] not in (1, 3, 4):
        raise InputError(f"{name} must be a tensor [H, W] or [1 | 3 | 4, H, W], not {list(tensor.shape)}")
    if tensor.dtype == torch.uint8 and tensor.shape[0] == 3 and tensor.numel():
        return tensor.contiguous()
    values = tensor.detach().cpu()
    values = values.float() if values.is_floating_point() else values  # numpy knows no bfloat16
    return _from_array(values.permute(1, 2, 0).numpy(), name)


def _from_array(array: Pixels, name: str) -> torch.Tensor:  # uint8 [3, H, W]
    if array.ndim == 2:
        array = array[..., None]  # [H, W, 1]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise InputError(f"{name} must be an array [H, W] or [H, W, 1 | 3 | 4], not {list(array.shape)}")
    if array.size == 0:
        raise InputError(f"{name} has no pixels: its shape is {list(array.shape)}")
    if array.dtype.kind == "f":
        white = _white(float(array.min()), float(array.max()), (1,), name)
    elif array.dtype.kind in "bu" and array.itemsize <= 2:
        white = 1 if array.dtype.kind == "b" else 2 ** (8 * array.itemsize) - 1
    else:
        raise InputError(f"{name} is {array.dtype}: use uint8, uint16, bool, or floats in 0..1")
    pixels = torch.empty((3, *array.shape[:2]), dtype=torch.uint8)
    for top, bottom in _row_ranges(*array.shape[:2]):
        _paint(pixels.numpy(), top, _to_bytes(array[top:bottom], white))
    return pixels
