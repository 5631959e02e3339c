"""Loading: every mode gives the right pixels, every failure one sentence that names its file."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import threading
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms, ImageFile

import homunculus.image
from homunculus.errors import ImageError, InputError
from homunculus.image import load, load_many, pad_to_cells

NOISE = np.random.default_rng(0).integers(0, 256, (24, 17, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """No warning may reach a user, Pillow's about large images least of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def at(pixels: torch.Tensor, row: int, column: int) -> tuple[int, ...]:
    return tuple(pixels[:, row, column].tolist())


def channels_first(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.transpose(2, 0, 1).copy())


def png(width: int, height: int, depth: int, colour: int, rows: bytes | None, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG written by hand; without rows, only its header."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks]
    if rows is not None:
        parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = (struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def tiff(width: int, data: bytes, bits: int, samples: int, photometric: int) -> bytes:
    """A one-row, little-endian, uncompressed TIFF: Pillow reads depths that it cannot write."""
    bits_at = 8 + 2 + 9 * 12 + 4
    tags = [
        (256, 4, 1, width),
        (257, 4, 1, 1),
        (258, 3, samples, bits if samples == 1 else bits_at),
        (259, 3, 1, 1),
        (262, 3, 1, photometric),
        (273, 4, 1, bits_at + 2 * samples),
        (277, 3, 1, samples),
        (278, 4, 1, 1),
        (279, 4, 1, len(data)),
    ]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", 9) + entries + bytes(4) + struct.pack("<H", bits) * samples + data


def pdf(trailer: bytes = b"", end: bytes = b"%%EOF") -> bytes:
    """A page of 72 x 36 points: its left half red, and at its right edge a form field shown in blue."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]>>>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 36]/Contents 4 0 R/Annots[5 0 R]>>",
        b"<</Length 26>>stream\n1 0 0 rg 0 0 36 36 re f   \nendstream",
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/F 4/Rect[60 0 72 36]/AP<</N 6 0 R>>>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 12 36]/Length 26>>stream\n0 0 1 rg 0 0 12 36 re f   \nendstream",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj%bendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 7\n0000000000 65535 f \n" + table
    return out + b"trailer<</Size 7/Root 1 0 R%b>>\nstartxref\n%d\n%b" % (trailer, start, end)


# --- modes -----------------------------------------------------------------------------------------


def palette(transparency: int | bytes | None = None) -> bytes:
    image = Image.new("P", (3, 1))
    image.putpalette([200, 10, 20, 30, 40, 50, 0, 0, 255])
    for column in range(3):
        image.putpixel((column, 0), column)
    return encoded(image, "PNG", **({} if transparency is None else {"transparency": transparency}))


def lab(rgb: tuple[int, int, int]) -> Image.Image:
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    return ImageCms.applyTransform(Image.new("RGB", (1, 1), rgb), ImageCms.buildTransform(*profiles, "RGB", "LAB"))


def gray(values: list[float], dtype: str) -> Image.Image:
    return Image.fromarray(np.array([values], dtype))


def row(mode: str, *colours: object) -> Image.Image:
    image = Image.new(mode, (len(colours), 1))
    for column, colour in enumerate(colours):
        image.putpixel((column, 0), colour)
    return image


WHITE, BLACK = (255, 255, 255), (0, 0, 0)
MODES: dict[str, tuple[Callable[[], bytes | Image.Image], list[tuple[int, int, int]]]] = {
    "RGB png": (lambda: encoded(row("RGB", (1, 2, 3), (250, 128, 7)), "PNG"), [(1, 2, 3), (250, 128, 7)]),
    "L png": (lambda: encoded(row("L", 0, 77), "PNG"), [BLACK, (77, 77, 77)]),
    "1 png": (lambda: encoded(row("1", 0, 255), "PNG"), [BLACK, WHITE]),
    "1 tiff group4": (lambda: encoded(row("1", 0, 255), "TIFF", compression="group4"), [BLACK, WHITE]),
    "P png": (lambda: palette(), [(200, 10, 20), (30, 40, 50), (0, 0, 255)]),
    "P one clear colour": (lambda: palette(1), [(200, 10, 20), WHITE, (0, 0, 255)]),
    "P alpha table": (lambda: palette(bytes([255, 0, 51])), [(200, 10, 20), WHITE, (204, 204, 255)]),
    "P gif": (lambda: encoded(row("P", 0, 1), "GIF", transparency=1), [BLACK, WHITE]),
    "PA": (
        lambda: Image.open(io.BytesIO(palette(bytes([255, 0, 51])))).convert("PA"),
        [(200, 10, 20), WHITE, (204, 204, 255)],
    ),
    "RGBA png": (
        lambda: encoded(row("RGBA", (100, 0, 200, 0), (100, 0, 200, 255), (100, 0, 200, 51)), "PNG"),
        [WHITE, (100, 0, 200), (224, 204, 244)],
    ),
    "RGBA webp": (
        lambda: encoded(row("RGBA", (9, 9, 9, 0), (100, 0, 200, 255)), "WEBP", lossless=True),
        [WHITE, (100, 0, 200)],
    ),
    "LA png": (lambda: encoded(row("LA", (0, 51), (90, 255)), "PNG"), [(204, 204, 204), (90, 90, 90)]),
    "RGBa": (lambda: row("RGBa", (0, 0, 0, 51), (5, 6, 7, 255)), [(204, 204, 204), (5, 6, 7)]),
    "RGB clear colour": (
        lambda: png(2, 1, 8, 2, bytes([0, 9, 8, 7, 1, 2, 3]), (b"tRNS", struct.pack(">3H", 9, 8, 7))),
        [WHITE, (1, 2, 3)],
    ),
    "L clear value": (lambda: png(2, 1, 8, 0, bytes([0, 9, 8]), (b"tRNS", b"\0\x09")), [WHITE, (8, 8, 8)]),
    "CMYK tiff": (
        lambda: encoded(row("CMYK", (0, 255, 255, 0), (0, 0, 0, 255)), "TIFF"),
        [(255, 0, 0), BLACK],
    ),
    "YCbCr": (lambda: row("YCbCr", (128, 128, 128), (76, 85, 255)), [(128, 128, 128), (254, 0, 0)]),
    "HSV": (lambda: row("HSV", (0, 255, 255)), [(255, 0, 0)]),
    "I;16 png": (lambda: encoded(gray([0, 255, 256, 65535], "<u2"), "PNG"), [BLACK, BLACK, (1, 1, 1), WHITE]),
    "I;16 tiff": (lambda: encoded(gray([0, 32768, 65535], "<u2"), "TIFF"), [BLACK, (128,) * 3, WHITE]),
    "I;16B tiff": (lambda: encoded(row("I;16B", 0, 32768, 65535), "TIFF"), [BLACK, (128,) * 3, WHITE]),
    "I;16L": (lambda: row("I;16L", 0, 32768, 65535), [BLACK, (128,) * 3, WHITE]),
    "I;16 clear value": (
        lambda: png(2, 1, 16, 0, b"\0" + struct.pack(">2H", 1000, 1001), (b"tRNS", struct.pack(">H", 1000))),
        [WHITE, (3, 3, 3)],
    ),
    "16-bit white is zero": (lambda: tiff(2, struct.pack("<2H", 0, 65535), 16, 1, 0), [WHITE, BLACK]),
    "12-bit tiff": (lambda: tiff(2, bytes([0xFF, 0xF8, 0x00]), 12, 1, 1), [WHITE, (128,) * 3]),
    "16-bit RGB tiff": (lambda: tiff(1, struct.pack("<3H", 65535, 32768, 300), 16, 3, 2), [(255, 128, 1)]),
    "16-bit RGB png": (
        lambda: png(1, 1, 16, 2, b"\0" + struct.pack(">3H", 65535, 32768, 300)),
        [(255, 128, 1)],
    ),
    "I of 8 bits": (lambda: gray([0, 77, 255], "<i4"), [BLACK, (77,) * 3, WHITE]),
    "I of 16 bits, tiff": (
        lambda: encoded(gray([0, 32768, 65535], "<i4"), "TIFF"),
        [BLACK, (128,) * 3, WHITE],
    ),
    "I of 31 bits": (lambda: gray([0, 2**30, 2**31 - 1], "<i4"), [BLACK, (128,) * 3, WHITE]),
    "F of 0..1, tiff": (lambda: encoded(gray([0, 0.5, 1], "<f4"), "TIFF"), [BLACK, (128,) * 3, WHITE]),
    "F of 0..255": (lambda: gray([0, 77.4, 255], "<f4"), [BLACK, (77,) * 3, WHITE]),
    "F of 0..65535": (lambda: gray([0, 25700, 65535], "<f4"), [BLACK, (100,) * 3, WHITE]),
}


@pytest.mark.parametrize("mode", MODES)
def test_mode_gives_the_right_pixels(mode: str) -> None:
    make, expected = MODES[mode]
    pixels = load(make())
    assert pixels.shape == (3, 1, len(expected))
    assert pixels.dtype == torch.uint8
    assert pixels.is_contiguous()
    assert [at(pixels, 0, column) for column in range(len(expected))] == expected


def test_cmyk_jpeg_as_adobe_writes_it() -> None:
    data = encoded(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=100)
    assert b"Adobe" in data  # the marker that says: stored inverted
    red, green, blue = at(load(data), 8, 8)
    assert red > 250
    assert max(green, blue) < 5


@pytest.mark.parametrize("kind", ["TIFF", None])
def test_lab_within_rounding(kind: str | None) -> None:
    image = lab((200, 30, 60))
    pixels = load(encoded(image, kind) if kind else image)
    assert np.abs(np.subtract(at(pixels, 0, 0), (200, 30, 60))).max() <= 2


@pytest.mark.parametrize(
    ("values", "words"),
    [([0, np.nan, 1], "NaN"), ([-30, 4000], "from -30 to 4000"), ([0, 1e6], "from 0 to 1e\\+06")],
)
def test_float_file_without_a_usable_range(tmp_path: Path, values: list[float], words: str) -> None:
    path = tmp_path / "height.tif"
    gray(values, "<f4").save(path)
    with pytest.raises(ImageError, match=rf"height\.tif .*{words}"):
        load(path)


# --- sources ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["png", "webp", "tiff", "bmp", "ppm"])
def test_path_string_bytes_stream_and_image_agree(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"noise.{kind}"
    Image.fromarray(NOISE).save(path, **({"lossless": True} if kind == "webp" else {}))
    expected = channels_first(NOISE)
    assert torch.equal(load(path), expected)
    assert torch.equal(load(str(path)), expected)
    assert torch.equal(load(path.read_bytes()), expected)
    with path.open("rb") as stream:
        stream.seek(5)  # left in the middle by an earlier reader
        assert torch.equal(load(stream), expected)
        assert not stream.closed
    with Image.open(path) as image:
        assert torch.equal(load(image), expected)
        assert image.getpixel((0, 0)) == tuple(NOISE[0, 0])  # the caller's image stays usable


def test_stream_that_cannot_seek() -> None:
    class Pipe:
        def __init__(self, data: bytes) -> None:
            self.read = io.BytesIO(data).read

    assert torch.equal(load(Pipe(encoded(Image.fromarray(NOISE), "PNG"))), channels_first(NOISE))


def test_jpeg_is_close(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30), (10, 200, 90)).save(tmp_path / "x.jpg", quality=95)
    pixels = load(tmp_path / "x.jpg")
    assert pixels.shape == (3, 30, 40)
    assert np.abs(np.subtract(at(pixels, 15, 20), (10, 200, 90))).max() <= 2


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([[0, 255]], np.uint8), [BLACK, WHITE]),
        (np.array([[[7], [8]]], np.uint8), [(7,) * 3, (8,) * 3]),
        (np.array([[[1, 2, 3]]], np.uint8), [(1, 2, 3)]),
        (np.array([[[100, 0, 200, 51]]], np.uint8), [(224, 204, 244)]),
        (np.array([[False, True]]), [BLACK, WHITE]),
        (np.array([[255, 256, 65535]], np.uint16), [BLACK, (1, 1, 1), WHITE]),
        (np.array([[255, 256, 65535]], ">u2"), [BLACK, (1, 1, 1), WHITE]),
        (np.array([[0, 0.5, 1]], np.float64), [BLACK, (128,) * 3, WHITE]),
        (np.array([[-0.0005, 1.0005]], np.float32), [BLACK, WHITE]),
        (np.array([[[0, 0, 0, 0.2]]], np.float16), [(204,) * 3]),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else "",
)
def test_arrays_and_tensors_give_the_same_pixels(array: np.ndarray, expected: list[tuple[int, ...]]) -> None:
    pixels = load(array)
    assert [at(pixels, 0, column) for column in range(array.shape[1])] == expected
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    tensor = torch.from_numpy(native if native.ndim == 2 else native.transpose(2, 0, 1))
    assert torch.equal(load(tensor), pixels)


def test_array_view_with_negative_strides() -> None:
    assert torch.equal(load(NOISE[::-1, :, ::-1]), channels_first(NOISE[::-1, :, ::-1]))


def test_bfloat16_tensor_with_gradient() -> None:
    tensor = torch.full((3, 2, 2), 0.5, dtype=torch.bfloat16, requires_grad=True)
    assert torch.equal(load(tensor), torch.full((3, 2, 2), 128, dtype=torch.uint8))


def test_byte_tensor_is_returned_as_it_is() -> None:
    tensor = channels_first(NOISE)
    assert load(tensor) is tensor
    turned = tensor.transpose(1, 2)
    assert torch.equal(load(turned), turned)
    assert load(turned).is_contiguous()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (np.full((2, 2), np.nan), "NaN or infinite"),
        (torch.tensor([[0, torch.inf]]), "NaN or infinite"),
        (np.array([[0.0, 255.0]]), "from 0 to 255.*0\\.\\.1"),
        (torch.tensor([[-0.5, 1.0]]), "from -0.5 to 1"),
        (np.zeros((0, 4), np.uint8), "no pixels"),
        (torch.zeros((3, 0, 4), dtype=torch.uint8), "no pixels"),
        (np.zeros(4, np.uint8), r"not \[4\]"),
        (np.zeros((2, 2, 5), np.uint8), r"not \[2, 2, 5\]"),
        (torch.zeros(1, 3, 2, 2), r"not \[1, 3, 2, 2\]"),
        (torch.zeros(2, 2, 3), r"not \[2, 2, 3\]"),
        (np.zeros((2, 2), np.int64), "int64"),
        (torch.zeros(3, 2, 2, dtype=torch.int32), "int32"),
        (None, "NoneType"),
        (7, "int"),
        (io.StringIO("text"), "mode 'rb'"),
    ],
)
def test_unusable_value(source: object, words: str) -> None:
    with pytest.raises(InputError, match=f"^image .*{words}"):
        load(source)


@pytest.mark.parametrize(
    "options",
    [{"page": -1}, {"page": 0.5}, {"dpi": 0}, {"dpi": float("nan")}, {"max_pixels": 0}, {"max_pixels": None}],
)
def test_wrong_option(options: dict[str, object]) -> None:
    name = next(iter(options))
    with pytest.raises(InputError, match=f"^{name} must be"):
        load(NOISE, **options)
    with pytest.raises(InputError, match=f"^{name} must be"):
        load_many([NOISE], **options)


# --- orientation, shape, strips --------------------------------------------------------------------

UPRIGHT: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a.swapaxes(0, 1), 2),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_exif_orientation(kind: str, orientation: int) -> None:
    blocks = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[0, 0, 0], [255, 255, 255], [128, 128, 128]]])
    stored = blocks.astype(np.uint8).repeat(16, 0).repeat(16, 1)  # [32, 48, 3]
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(kind, {})
    pixels = load(encoded(Image.fromarray(stored), kind, exif=exif, **options))
    expected = channels_first(UPRIGHT[orientation](stored))
    assert pixels.shape == expected.shape
    assert (pixels.int() - expected.int()).abs().max() <= (4 if kind == "JPEG" else 0)


def test_damaged_exif_does_not_cost_the_picture() -> None:
    data = encoded(Image.fromarray(NOISE), "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff junk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's own remark about the metadata
        assert torch.equal(load(data), channels_first(NOISE))


@pytest.mark.parametrize("size", [(1, 1), (30000, 3), (3, 30000)])
def test_extreme_shapes(tmp_path: Path, size: tuple[int, int]) -> None:
    array = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(array).save(tmp_path / "x.png")
    assert torch.equal(load(tmp_path / "x.png"), channels_first(array))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "I;16", "F"])
def test_strips_equal_the_whole(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    deep = {"I;16": "<u2", "F": "<f4"}.get(mode)
    image = Image.fromarray(NOISE[..., 0].astype(deep) * 200) if deep else Image.fromarray(NOISE).convert(mode)
    if mode == "RGBA":
        image.putalpha(Image.fromarray(NOISE[..., 1]))
    image.getexif()[0x0112] = 7
    whole = load(image)
    monkeypatch.setattr(homunculus.image, "STRIP_PIXELS", 17 * 5 + 3)  # 5 rows of 17, the last strip 4
    assert torch.equal(load(image), whole)
    assert whole.shape == (3, 17, 24)


def test_alpha_equals_pillow_compositing() -> None:
    ramp = np.stack(np.meshgrid(np.arange(256), np.arange(256)), -1).astype(np.uint8)  # every value, every alpha
    rgba = Image.fromarray(np.concatenate([ramp[..., :1]] * 3 + [ramp[..., 1:]], -1))
    white = Image.new("RGB", rgba.size, "white")
    white.paste(rgba, mask=rgba)
    assert torch.equal(load(rgba), channels_first(np.asarray(white)))
    assert torch.equal(load(np.asarray(rgba)), channels_first(np.asarray(white)))


# --- pages and PDF ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tiff", "gif", "webp"])
def test_pages(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"pages.{kind}"
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "lime", "blue")]
    options = {"lossless": True} if kind == "webp" else {}
    frames[0].save(path, save_all=True, append_images=frames[1:], **options)
    assert [at(load(path, page=page), 3, 4) for page in range(3)] == [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    with pytest.raises(ImageError, match=rf"pages\.{kind} has 3 pages, counted from 0: there is no page 3"):
        load(path, page=3)


@pytest.mark.parametrize("source", [encoded(Image.new("L", (2, 2)), "PNG"), NOISE, torch.zeros(3, 2, 2), pdf()])
def test_one_page_has_no_second(source: object) -> None:
    with pytest.raises(ImageError, match=r"image has 1 page, .* no page 1"):
        load(source, page=1)


def test_tiff_pages_have_their_own_size_and_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    Image.new("L", (4, 4)).save(path, save_all=True, append_images=[Image.new("L", (90, 50), 9)])
    assert load(path, page=1).shape == (3, 50, 90)
    with pytest.raises(ImageError, match="90 x 50"):
        load(path, page=1, max_pixels=100)


def test_pdf_is_rendered_at_dpi_over_white(tmp_path: Path) -> None:
    path = tmp_path / "page.dat"  # known by its content, not its name
    path.write_bytes(b"junk before the header\n" + pdf())
    pixels = load(path, dpi=72)
    assert pixels.shape == (3, 36, 72)
    assert pixels.is_contiguous()
    assert at(pixels, 18, 10) == (255, 0, 0)
    assert at(pixels, 18, 50) == WHITE
    assert at(pixels, 18, 66) == (0, 0, 255)
    assert load(path).shape == (3, 72, 144)
    with path.open("rb") as stream:
        assert torch.equal(load(stream, dpi=72), pixels)


def test_pdf_pages_and_limit(tmp_path: Path) -> None:
    path = tmp_path / "two.pdf"
    pages = [Image.new("RGB", (50, 40), colour) for colour in ("red", "blue")]
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=72)
    assert load(path, page=1, dpi=72).shape == (3, 40, 50)
    red, _, blue = at(load(path, page=1), 20, 20)
    assert red < 5
    assert blue > 250
    with pytest.raises(ImageError, match=r"two\.pdf has 2 pages"):
        load(path, page=2)
    with pytest.raises(ImageError, match="100 x 80 = 8000 pixels, above the limit of 7999"):
        load(path, max_pixels=7999)
    assert load(path, max_pixels=8000).shape == (3, 80, 100)
    with pytest.raises(ImageError, match="--max-pixels"):
        load(path, dpi=1e6)


LOCK = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<" + b"41" * 32 + b">/U<" + b"42" * 32 + b">>>"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pdf(LOCK + b"/ID[<01><01>]"), "password"),
        (pdf(end=b""), "%%EOF"),
        (b"%PDF-1.7\n\x00\x01 garbage %%EOF", "damaged"),
        (b"%PDF", "%%EOF"),
    ],
    ids=["locked", "cut", "garbage", "header only"],
)
def test_bad_pdf(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(data)
    with pytest.raises(ImageError, match=rf"x\.pdf is .*{words}") as caught:
        load(path)
    assert "\n" not in str(caught.value)


# --- damaged files ---------------------------------------------------------------------------------

CUT = {
    "jpg": {"quality": 90},
    "progressive.jpg": {"progressive": True},
    "png": {},
    "webp": {},
    "tiff": {},
    "lzw.tiff": {"compression": "tiff_lzw"},
    "gif": {},
    "bmp": {},
}


@pytest.mark.parametrize("lenient", [False, True], ids=["", "Pillow told to accept it"])
@pytest.mark.parametrize("kind", CUT)
def test_cut_short_is_never_silent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    lenient: bool,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    path = tmp_path / f"cut.{kind}"
    Image.fromarray(NOISE).resize((170, 240)).save(path, **CUT[kind])
    data = path.read_bytes()
    for part in (0.3, 0.6, 0.9, 0.98):
        path.write_bytes(data[: int(len(data) * part)])
        with pytest.raises(ImageError, match=rf"cut\.{kind} is .*cut short") as caught:
            load(path)
        assert caught.value.__cause__ is not None
    assert ImageFile.LOAD_TRUNCATED_IMAGES is lenient


def test_text_named_png(tmp_path: Path) -> None:
    path = tmp_path / "notes.png"
    path.write_text("not an image at all\n" * 20)
    with pytest.raises(ImageError, match=r"notes\.png is no image of a known format.*PNG"):
        load(path)
    with pytest.raises(ImageError, match=r"^image is no image"):
        load(b"not an image")


def test_empty_file_directory_and_missing(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(ImageError, match=r"empty\.jpg is empty"):
        load(tmp_path / "empty.jpg")
    with pytest.raises(ImageError, match=r"^image is empty"):
        load(io.BytesIO())
    with pytest.raises(ImageError, match=f"^{tmp_path} is a directory"):
        load(tmp_path)
    with pytest.raises(ImageError, match=r"missing\.png does not exist"):
        load(tmp_path / "missing.png")
    with pytest.raises(ImageError, match="empty path"):
        load("")
    with pytest.raises(ImageError, match="cannot be opened"):
        load("a\0b.png")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.png"
    path.write_bytes(b"x")
    path.chmod(0)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)  # root may read everything
    try:
        with pytest.raises(ImageError, match=r"secret\.png may not be read"):
            load(path)
    finally:
        os.seteuid(was)


def test_closed_stream_and_empty_image() -> None:
    stream = io.BytesIO(b"x")
    stream.close()
    with pytest.raises(ImageError, match="closed"):
        load(stream)
    with pytest.raises(ImageError, match="no pixels: it is 0 x 5"):
        load(Image.new("RGB", (0, 5)))


# --- limit -----------------------------------------------------------------------------------------


def test_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png(60000, 60000, 8, 2, None, (b"IDAT", b"")))
    start = time.perf_counter()
    with pytest.raises(ImageError, match=r"bomb\.png is 60000 x 60000 = 3600000000 .*268435456.*max_pixels=.*--max-p"):
        load(path)
    assert time.perf_counter() - start < 1


def test_limit_is_exact_and_can_be_raised() -> None:
    data = encoded(Image.fromarray(NOISE), "PNG")
    with pytest.raises(ImageError, match="17 x 24 = 408 pixels, above the limit of 407"):
        load(data, max_pixels=407)
    assert torch.equal(load(data, max_pixels=408), channels_first(NOISE))


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "GIF", "WEBP"])
def test_pillow_limit_neither_warns_nor_refuses(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # Pillow checks a turned TIFF once more, while decoding
    data = encoded(Image.fromarray(NOISE), kind, **({} if kind == "GIF" else {"exif": exif}))
    for limit in (300, 10):  # Pillow would warn at 300, refuse at 10
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        assert load(data).numel() == 3 * 408
        assert limit == Image.MAX_IMAGE_PIXELS
        with pytest.raises(ImageError):
            load(data[:100])
        assert limit == Image.MAX_IMAGE_PIXELS


# --- many ------------------------------------------------------------------------------------------


def test_load_many_keeps_order_and_names_what_failed(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.png", tmp_path / "bad.png"
    Image.fromarray(NOISE).save(good)
    bad.write_bytes(good.read_bytes()[:500])
    results = load_many([good, bad, b"junk", np.full((2, 2), np.nan), None, NOISE])
    expected = channels_first(NOISE)
    assert torch.equal(results[0], expected)
    assert torch.equal(results[5], expected)
    assert [type(result) for result in results[1:5]] == [ImageError, ImageError, InputError, InputError]
    assert "bad.png is damaged or cut short" in str(results[1])
    assert str(results[2]).startswith("image 3 of 6 ")
    assert str(results[3]).startswith("image 4 of 6 holds NaN")
    assert str(results[4]).startswith("image 5 of 6 ")


def test_a_kept_error_keeps_no_image_alive() -> None:
    image = gray([0, np.nan], "<f4")
    alive = weakref.ref(image)
    results = load_many([image])
    del image
    assert isinstance(results[0], ImageError)
    assert alive() is None


def test_load_many_passes_options_and_refuses_a_single_path(tmp_path: Path) -> None:
    assert "above the limit of 10" in str(load_many([Image.fromarray(NOISE)], max_pixels=10)[0])
    assert load_many([pdf()], dpi=36)[0].shape == (3, 18, 36)
    assert load_many([]) == []
    with pytest.raises(InputError, match="takes a list"):
        load_many(tmp_path / "x.png")


def test_threads_agree_and_leave_pillow_as_it_was(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(6)]
    for number, path in enumerate(paths):
        Image.fromarray(np.roll(NOISE, number, 0)).resize((300, 200)).save(path)
    (tmp_path / "page.pdf").write_bytes(pdf())
    paths = [*paths, tmp_path / "page.pdf", tmp_path / "missing.png"] * 4
    alone = load_many(paths)
    before = Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(4) as pool:
        together = [result for part in pool.map(load_many, [[path] for path in paths]) for result in part]
    assert before is not None
    assert before == Image.MAX_IMAGE_PIXELS
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else str(one) == str(other)


# --- padding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lead", [(3,), (2, 3)])
def test_pad_repeats_the_edge(dtype: torch.dtype, lead: tuple[int, ...]) -> None:
    pixels = torch.arange(5 * 7).reshape(5, 7).expand(*lead, 5, 7).to(dtype)
    padded = pad_to_cells(pixels, 4)
    assert padded.shape == (*lead, 8, 8)
    assert padded.dtype == dtype
    rows, columns = torch.arange(8).clamp(max=4), torch.arange(8).clamp(max=6)
    assert torch.equal(padded.double(), pixels.double()[..., rows, :][..., columns])


def test_pad_equals_torch_and_carries_gradients() -> None:
    pixels = torch.rand(1, 3, 5, 9, requires_grad=True)
    padded = pad_to_cells(pixels, 16)
    assert torch.equal(padded, torch.nn.functional.pad(pixels, (0, 7, 0, 11), mode="replicate"))
    padded.sum().backward()
    assert pixels.grad is not None
    assert pixels.grad.sum() == 3 * 16 * 16


def test_pad_leaves_whole_cells_alone_and_refuses_nonsense() -> None:
    pixels = torch.zeros(3, 8, 12)
    assert pad_to_cells(pixels, 4) is pixels
    assert pad_to_cells(torch.ones(3, 1, 1), 14).shape == (3, 14, 14)
    for wrong, cell in [(pixels, 0), (torch.zeros(3, 0, 4), 4), (torch.zeros(3), 4)]:
        with pytest.raises(InputError):
            pad_to_cells(wrong, cell)


# --- memory ----------------------------------------------------------------------------------------

MEASURE = """
import pathlib, sys
from homunculus.image import load
pixels = load(sys.argv[1])
assert pixels.shape == (3, 10000, 10000), pixels.shape
status = pathlib.Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("kind", "mode"), [("jpg", "RGB"), ("png", "I;16"), pytest.param("png", "RGBA", marks=pytest.mark.slow)]
)
def test_hundred_megapixels_stay_under_1200_megabytes(tmp_path: Path, kind: str, mode: str) -> None:
    path = tmp_path / f"large.{kind}"
    options = {"compress_level": 1} if kind == "png" else {}
    Image.new(mode, (10000, 10000), 40 if mode == "I;16" else (40, 80, 120, 160)[: len(mode)]).save(path, **options)
    done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    peak = int(done.stdout) / 1024
    print(f"{mode} {kind}: {peak:.0f} MiB")
    assert peak * 1024**2 < 1.2e9


def test_an_image_whose_notes_speak_of_pdf_is_an_image(tmp_path: Path) -> None:
    from PIL.PngImagePlugin import PngInfo

    notes = PngInfo()
    notes.add_text("Source", "%PDF-1.4 page 3")
    Image.new("RGB", (7, 5), "red").save(tmp_path / "noted.png", pnginfo=notes)
    assert load(tmp_path / "noted.png").shape == (3, 5, 7)


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    Image.new("RGB", (7, 5), "red").save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    writer.start()
    assert load(tmp_path / "pipe").shape == (3, 5, 7)
    writer.join(10)
