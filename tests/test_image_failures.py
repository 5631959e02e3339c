"""Loading: what is damaged, missing or too large is one sentence that names its file, and memory is bounded."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile

from homunculus.errors import ImageError, InputError
from homunculus.image import load
from pictures import NOISE, channels_first, encoded, png

pytestmark = pytest.mark.usefixtures("quiet")


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


@pytest.mark.parametrize(
    "wrong", [{"dpi": "144"}, {"dpi": None}, {"dpi": float("nan")}, {"page": True}, {"max_pixels": 0.5}]
)
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        load(NOISE, **wrong)


def test_options_may_be_numpy_s_numbers() -> None:
    found = load(NOISE, page=np.int64(0), dpi=np.float32(72), max_pixels=np.int64(10**6))
    assert torch.equal(found, load(NOISE))
