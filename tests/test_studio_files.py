"""Files of several pages: how many there are, each of them to be seen and asked about, and none that is not there."""

import io
import struct

import pytest
from PIL import Image, features

from homunculus.errors import ImageError
from homunculus.image import load
from homunculus.studio.app import create_app
from homunculus.studio.files import pages_of
from homunculus.studio.uploads import Limits, RequestError
from homunculus.studio.work import Worker
from studio import encoded, noise, sheets, small_reader

testclient = pytest.importorskip("starlette.testclient")
PAGED = {
    "PDF": {},
    "TIFF": {},
    "large TIFF": {"big_tiff": True},
    "packed TIFF": {"compression": "tiff_lzw"},
    "GIF": {"wider": 0},
    "WEBP": {"wider": 0, "lossless": True},
    "PNG": {"wider": 0},
} | ({"AVIF": {"wider": 0}} if features.check("avif") else {})


def paged(name: str, count: int = 3) -> bytes:
    return sheets(name.split()[-1], count, **PAGED[name])


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    reader = small_reader(tmp_path_factory)
    with testclient.TestClient(create_app(Worker(lambda: reader))) as client:
        yield client


@pytest.mark.parametrize("name", PAGED)
def test_pages_are_counted_without_decoding_them(name):
    for count in (1, 2, 5):
        content = paged(name, count)
        assert pages_of(content, count - 1, Limits()) == count
        with pytest.raises(ImageError, match=f"there is no page {count}$"):
            pages_of(content, count, Limits())
        with pytest.raises(RequestError, match="more than 4 pages") if count > 4 else pytest.raises(ImageError):
            pages_of(content, count, Limits(pages=4))


def test_pages_of_a_tiff_are_those_that_pillow_finds():
    """Also where numbers begin with their large end, and where the next page is the first again, or nowhere."""
    large_end = encoded([Image.new("I;16B", (8, 8))] * 3, "TIFF")
    assert large_end.startswith(b"MM") and pages_of(large_end, 2, Limits()) == 3
    one = bytearray(sheets("TIFF", 1))
    (first,) = struct.unpack_from("<I", one, 4)
    (tags,) = struct.unpack_from("<H", one, first)
    for after in (first, len(one), 1 << 30):
        struct.pack_into("<I", one, first + 2 + 12 * tags, after)
        assert pages_of(bytes(one), 0, Limits()) == 1
        assert load(bytes(one)).equal(load(sheets("TIFF", 1)))


def test_a_photo_with_a_preview_in_it_is_one_page():
    photo = encoded([Image.new("RGB", (80, 60)), Image.new("RGB", (20, 15))], "MPO")
    assert Image.open(io.BytesIO(photo)).n_frames == 2 and pages_of(photo, 0, Limits()) == 1


@pytest.mark.parametrize("name", PAGED)
def test_each_page_is_seen_and_looked_at(client, name):
    content = paged(name)
    told = client.post("/v1/images", files={"image": content}).json()
    assert told["pages"] == 3 and client.get(f"/v1/images/{told['id']}").json() == told
    for page in range(3):
        size = load(content, page=page).shape
        asked = {"page": str(page), "budget": "12", "question": "What?"}
        look = client.post("/v1/look", json=asked | {"image_id": told["id"]}).json()
        assert look == client.post("/v1/look", data=asked, files={"image": content}).json()
        assert look["image"] == {"width": size[2], "height": size[1]} and len(look["tokens"]) == 12
        shown = client.get(f"/v1/images/{told['id']}/pages/{page}", params={"side": 100})
        picture = Image.open(io.BytesIO(shown.content))
        assert max(picture.size) == 100 and picture.width / picture.height == pytest.approx(size[2] / size[1], abs=0.02)
    for answer in (
        client.get(f"/v1/images/{told['id']}/pages/3"),
        client.post("/v1/look", json={"image_id": told["id"], "page": 3}),
        client.post("/v1/ask", files={"image": content}, data={"page": "3", "question": "What?"}),
    ):
        assert answer.status_code == 422
        assert answer.json()["error"]["message"] == "the file has 3 pages, counted from 0: there is no page 3"


def test_pages_of_a_film_are_limited_by_all_that_must_be_decoded_before_them():
    content = paged("GIF", 4)
    assert pages_of(content, 3, Limits(film=4 * 200 * 260)) == 4
    with pytest.raises(RequestError, match="pixels altogether"):
        pages_of(content, 0, Limits(film=4 * 200 * 260 - 1))
    assert pages_of(noise((200, 260), "GIF"), 0, Limits(film=1)) == 1
