"""Loading: one image or many, from whatever holds it, comes out as the same upright pixels, padded to cells."""

import io
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import homunculus.image
from homunculus.errors import ImageError, InputError
from homunculus.image import load, load_each
from pictures import BLACK, NOISE, WHITE, at, channels_first, encoded, gray, pdf

pytestmark = pytest.mark.usefixtures("quiet")


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
        [*load_each([NOISE], **options)]


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    Image.new("RGB", (7, 5), "red").save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    writer.start()
    assert load(tmp_path / "pipe").shape == (3, 5, 7)
    writer.join(10)


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


# --- many ------------------------------------------------------------------------------------------


def test_load_each_keeps_order_and_names_what_failed(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.png", tmp_path / "bad.png"
    Image.fromarray(NOISE).save(good)
    bad.write_bytes(good.read_bytes()[:500])
    results = [*load_each([good, bad, b"junk", np.full((2, 2), np.nan), None, NOISE])]
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
    results = [*load_each([image])]
    del image
    assert isinstance(results[0], ImageError)
    assert alive() is None


def test_load_each_passes_options_and_refuses_a_single_path(tmp_path: Path) -> None:
    large, small = load_each([Image.fromarray(NOISE), b"junk"], max_pixels=10)
    assert "above the limit of 10" in str(large) and "image 2 of 2" in str(small)
    [page] = load_each([pdf()], dpi=36)
    assert page.shape == (3, 18, 36)
    assert [*load_each([])] == []
    with pytest.raises(InputError, match="takes a list"):
        [*load_each(tmp_path / "x.png")]


def test_threads_agree_and_leave_pillow_as_it_was(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(6)]
    for number, path in enumerate(paths):
        Image.fromarray(np.roll(NOISE, number, 0)).resize((300, 200)).save(path)
    (tmp_path / "page.pdf").write_bytes(pdf())
    paths = [*paths, tmp_path / "page.pdf", tmp_path / "missing.png"] * 4
    alone = [*load_each(paths)]
    before = Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(4) as pool:
        together = [result for part in pool.map(lambda path: [*load_each([path])], paths) for result in part]
    assert before is not None
    assert before == Image.MAX_IMAGE_PIXELS
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else str(one) == str(other)
