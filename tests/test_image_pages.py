"""Loading: pages are counted from 0, and PDF files are rendered as a person sees them."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from homunculus.errors import ImageError
from homunculus.image import load
from pictures import NOISE, WHITE, at, encoded, pdf

pytestmark = pytest.mark.usefixtures("quiet")


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


def test_an_image_whose_notes_speak_of_pdf_is_an_image(tmp_path: Path) -> None:
    from PIL.PngImagePlugin import PngInfo

    notes = PngInfo()
    notes.add_text("Source", "%PDF-1.4 page 3")
    Image.new("RGB", (7, 5), "red").save(tmp_path / "noted.png", pnginfo=notes)
    assert load(tmp_path / "noted.png").shape == (3, 5, 7)
