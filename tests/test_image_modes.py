"""Loading: every mode gives the right pixels."""

import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms

from homunculus.errors import ImageError
from homunculus.image import load
from pictures import BLACK, WHITE, at, encoded, gray, png

pytestmark = pytest.mark.usefixtures("quiet")


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


def palette(transparency: int | bytes | None = None) -> bytes:
    image = Image.new("P", (3, 1))
    image.putpalette([200, 10, 20, 30, 40, 50, 0, 0, 255])
    for column in range(3):
        image.putpixel((column, 0), column)
    return encoded(image, "PNG", **({} if transparency is None else {"transparency": transparency}))


def lab(rgb: tuple[int, int, int]) -> Image.Image:
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    return ImageCms.applyTransform(Image.new("RGB", (1, 1), rgb), ImageCms.buildTransform(*profiles, "RGB", "LAB"))


def row(mode: str, *colours: object) -> Image.Image:
    image = Image.new(mode, (len(colours), 1))
    for column, colour in enumerate(colours):
        image.putpixel((column, 0), colour)
    return image


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
