"""Hundreds of uploads that are broken, lie or attack: each is refused in one sentence and soon, and it goes on."""

import json
import random
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import httpx2 as httpx
import pytest
from PIL import Image

from pictures import png
from studio import data_url, encoded, memory, noise, pdf, served, sheets, small_reader

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")
WAYS = ("look", "ask", "images", "chat")
SOON = 2.0  # seconds of work that a wrong upload may cost, however busy the machine is
GROWTH = 200  # megabytes that hundreds of wrong uploads may leave behind
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Case:
    """A request that is wrong: where it goes and what it brings; `certain` ones must be refused."""

    name: str
    path: str
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)
    certain: bool = True


def form(content: bytes, name: str = "x.png", **words: str) -> bytes:
    """A file and words as a form of the boundary b."""
    head = f'--b\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\n\r\n'
    rest = "".join(f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in words.items())
    return head.encode("utf-8", "surrogateescape") + content + f"\r\n{rest}--b--\r\n".encode()


def talk(url: str, text: str = "What?") -> bytes:
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
    return json.dumps({"messages": [{"role": "user", "content": parts}], "max_tokens": 2, "budget": 8}).encode()


def sent(name: str, content: bytes, way: str, certain: bool = True, **words: str) -> Case:
    """A file on one of the four ways into the service."""
    if way == "chat":
        return Case(f"{name} by {way}", "/v1/chat/completions", talk(data_url(content)), JSON, certain)
    if way == "ask":
        said = {"image": data_url(content), "question": "What?", "budget": 8, "max_new_tokens": 2} | words
        return Case(f"{name} by {way}", "/v1/ask", json.dumps(said).encode(), JSON, certain)
    said = words | ({"budget": "8"} if way == "look" else {})
    return Case(f"{name} by {way}", f"/v1/{way}", form(content, **said), FORM, certain)


def by_turns(files: dict[str, bytes], certain: bool = True) -> Iterator[Case]:
    """Each file on one way, all ways alike."""
    for n, (name, content) in enumerate(files.items()):
        yield sent(name, content, WAYS[n % len(WAYS)], certain)


def by_all(files: dict[str, bytes]) -> Iterator[Case]:
    """Each file on every way."""
    for name, content in files.items():
        for way in WAYS:
            yield sent(name, content, way)


# ---- files that are cut short or damaged ----------------------------------------------------------------------------


def good_files() -> dict[str, bytes]:
    kinds: dict[str, tuple[str, dict[str, object]]] = {
        "png": ("PNG", {}),
        "jpg": ("JPEG", {"quality": 90}),
        "progressive.jpg": ("JPEG", {"progressive": True}),
        "webp": ("WEBP", {}),
        "lossless.webp": ("WEBP", {"lossless": True}),
        "tiff": ("TIFF", {}),
        "lzw.tiff": ("TIFF", {"compression": "tiff_lzw"}),
        "gif": ("GIF", {}),
        "bmp": ("BMP", {}),
    }
    files = {name: noise((90, 70), kind, **options) for name, (kind, options) in kinds.items()}
    return files | {"pdf": sheets("PDF"), "pages.tiff": sheets("TIFF")}


def cut_short() -> Iterator[Case]:
    files = {}
    for name, content in good_files().items():
        for part in range(1, 28):
            files[f"{part / 30:.0%} of {name}"] = content[: len(content) * part // 30]
    yield from by_turns({name: content for name, content in files.items() if "pages.tiff" not in name})


def flipped() -> Iterator[Case]:
    """Such a file may still be a picture."""
    dice, files = random.Random(7), {}
    for name, content in good_files().items():
        for turn in range(14):
            broken = bytearray(content)
            for _ in range(1 + turn):
                broken[dice.randrange(min(len(broken), 400 if turn % 2 else 1 << 30))] ^= 1 << dice.randrange(8)
            files[f"{name} with {turn + 1} bits flipped"] = bytes(broken)
    yield from by_turns(files, certain=False)


def other_kinds() -> Iterator[Case]:
    yield from by_all(
        {
            "nothing": b"",
            "a byte": b"\0",
            "text": b"Not an image, but a letter.\n" * 50,
            "html": b"<!doctype html><html><body><img src=x onerror=alert(1)></body></html>",
            "svg": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
            "xml": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
            "zip": b"PK\x03\x04" + bytes(200),
            "gzip": zlib.compress(bytes(9000), wbits=31),
            "elf": b"\x7fELF\x02\x01\x01" + bytes(200),
            "exe": b"MZ" + bytes(200),
            "shell": b"#!/bin/sh\nexit 1\n",
            "mp4": b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(200),
            "avif without a picture": b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf" + bytes(64),
            "mp3": b"ID3\x04\0\0\0\0\0\0" + bytes(200),
            "riff that is no webp": b"RIFF\x24\0\0\0WAVEfmt " + bytes(40),
            "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n0 0 9 9 rectfill\nshowpage\n%%EOF\n",
            "photoshop": b"8BPS\0\x01" + bytes(6) + struct.pack(">HIIHH", 3, 9, 9, 8, 3) + bytes(99),
            "icon": b"\0\0\x01\0\x01\0" + bytes(40),
            "jpeg's first bytes": b"\xff\xd8\xff\xe0",
            "png's first bytes": b"\x89PNG\r\n\x1a\n",
            "pdf's first bytes": b"%PDF-1.7\n",
            "pdf of text": b"%PDF-1.7\nnothing of a PDF follows\n%%EOF",
            "pickle": b"\x80\x04\x95\x1f\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
            "zeros": bytes(5000),
        }
    )


# ---- files that would cost hours or gigabytes -----------------------------------------------------------------------


def tiff(*tags: tuple[int, int, int, int], after: int = 0) -> bytes:
    """A TIFF of one directory by hand: tag, type, count, value."""
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + body + struct.pack("<I", after) + bytes(64)


def gif(frames: int, size: tuple[int, int] = (8, 8), extent: tuple[int, int] = (8, 8)) -> bytes:
    frame = b"," + struct.pack("<4HB", 0, 0, *extent, 0) + b"\x02\x02\x44\x01\0"
    return b"GIF89a" + struct.pack("<2H3B", *size, 0x80, 0, 0) + bytes(6) + frame * frames + b";"


def many_tags(tags: int = 60_000, pages: int = 1999) -> bytes:
    """A good page, then directories that lie over each other: 0.7 MB that say their tags two thousand times."""
    content = bytearray(encoded([Image.new("L", (8, 8))], "TIFF"))
    (first,) = struct.unpack_from("<I", content, 4)
    (entries,) = struct.unpack_from("<H", content, first)
    start = len(content)
    struct.pack_into("<I", content, first + 2 + 12 * entries, start)
    content += bytes(12 * tags + 6 * pages + 6)
    for at in range(start, start + 6 * pages, 6):
        struct.pack_into("<H", content, at, tags)
        struct.pack_into("<I", content, at + 2 + 12 * tags, at + 6)
    return bytes(content)


def gigabyte() -> bytes:
    """Zeros, packed: a thousand times fewer bytes."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(1 << 10)) + packer.flush()


def film() -> bytes:
    """A moving PNG that says it has two billion pages."""
    return png(8, 8, 8, 0, (b"\0" + bytes(8)) * 8, (b"acTL", struct.pack(">II", 2**31 - 1, 0)))


def bombs() -> Iterator[Case]:
    wide = (256, 4, 1, 400_000), (257, 4, 1, 400_000)
    flat = (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (277, 3, 1, 1)
    rows = b"\0" + bytes(60_000)
    pages = [Image.new("1", (8, 8), n % 2) for n in range(2001)]
    yield from by_all(
        {
            "png that says 60000 x 60000": png(60_000, 60_000, 8, 2, b""),
            "png of 3.6 gigapixels, packed": png(60_000, 60_000, 1, 0, rows * 99),
            "png that says 2^31 x 2^31": png(2**31 - 1, 2**31 - 1, 8, 6, b""),
            "png of no pixels": png(0, 0, 8, 2, b""),
            "png with too few rows": png(3000, 3000, 8, 2, b"\0" * 2000),
            "png of two billion pages": film(),
            "png with a gigabyte of notes": png(8, 8, 8, 0, (b"\0" + bytes(8)) * 8, (b"zTXt", b"a\0\0" + gigabyte())),
            "jpeg of 65535 x 65535": b"\xff\xd8\xff\xc0\0\x0b\x08\xff\xff\xff\xff\x01\x01\x11\0",
            "tiff of 400,000 x 400,000": tiff(*wide, *flat, (273, 4, 1, 8), (279, 4, 1, 64)),
            "tiff whose strips lie": tiff((256, 4, 1, 900), (257, 4, 1, 900), *flat, (273, 4, 1 << 30, 8)),
            "tiff of 65535 samples": tiff((256, 4, 1, 9), (257, 4, 1, 9), *flat[:3], (277, 3, 1, 65535)),
            "tiff with a tag of 4 GB": tiff((256, 4, 1, 9), (257, 4, 1, 9), *flat, (700, 1, 2**32 - 1, 8)),
            "tiff of too many tags": many_tags(),
            "tiff of 2001 pages": encoded(pages, "TIFF"),
            "gif of 100,000 pages": gif(100_000),
            "gif of 65535 x 65535": gif(1, (65535, 65535)),
            "gif with a page of 65535 x 65535": gif(3, (8, 8), (65535, 65535)),
            "gif of 1500 pages of 36 megapixels": gif(1500, (6000, 6000)),
            "webp that says 16384 x 16384": b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x3f\0\xff\x3f\0",
            "bmp of 2^31 x 2^31": b"BM" + struct.pack("<IHHI", 54, 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 0, 0, 0, 0),
        }
    )  # fmt: skip


SHEET = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>"


def nodes(count: int, *kids: int) -> bytes:
    return b"<</Type/Pages%b/Kids[%b]>>" % (
        b"/Count %d" % count if count else b"", b" ".join(b"%d 0 R" % kid for kid in kids),
    )  # fmt: skip


def sized(box: bytes, more: bytes = b"") -> bytes:
    return pdf(nodes(1, 3), b"<</Type/Page/Parent 2 0 R/MediaBox[%b]%b>>" % (box, more))


def documents() -> Iterator[Case]:
    yield from by_all(
        {
            "pdf of 100,000 pages in 2 kB": pdf(nodes(100_000, *[3] * 100), nodes(1000, *[4] * 100),
                                               nodes(10, *[5] * 10), SHEET),
            "pdf that counts to 500,000": pdf(nodes(500_000, 3), SHEET),
            "pdf without counts, 10^12 pages": pdf(*(nodes(0, *[n + 3] * 10) for n in range(12)), SHEET),
            "pdf whose pages are their own parent": pdf(nodes(0, 2, 2)),
            "pdf whose pages go round": pdf(nodes(3, 3), nodes(3, 2)),
            "pdf without pages": pdf(nodes(0)),
            "pdf of 200,000 x 200,000 points": sized(b"0 0 200000 200000"),
            "pdf of large units": sized(b"0 0 14400 14400", b"/UserUnit 75000"),
            "pdf with a password": sealed(),
            "pdf without its table": pdf(nodes(1, 3), SHEET).split(b"xref")[0],
            "pdf of zeros": b"%PDF-1.7\n" + bytes(5000) + b"%%EOF",
        }
    )  # fmt: skip
    own = pdf(nodes(100_000, *range(3, 100_003)), *[SHEET] * 100_000)
    yield from by_turns({"pdf of 100,000 pages, each its own": own})
    for way in ("look", "ask"):
        yield sent("page 7 of a pdf that counts 1500 and has 1", pdf(nodes(1500, 3), SHEET), way, page="7")
        yield sent("page 1 of a pdf of one", pdf(nodes(1, 3), SHEET), way, page="1")
        yield sent("page 3 of a tiff of three", sheets("TIFF"), way, page="3")
        yield sent("page 2 of a gif of two", sheets("GIF", 2), way, page="2")
        yield sent("page 1 of a png", noise((40, 40)), way, page="1")
        yield sent("page 10^30", sheets("PDF"), way, page="1" + "0" * 30)


def sealed() -> bytes:
    """A PDF that is encrypted with a password nobody told."""
    lock = b"/Encrypt<</Filter/Standard/V 1/R 2/O(%b)/U(%b)/P -4>>/ID[(a)(a)]" % (b"x" * 32, b"y" * 32)
    return pdf(nodes(1, 3), SHEET).replace(b"/Root 1 0 R", b"/Root 1 0 R" + lock)


# ---- names, forms and JSON ------------------------------------------------------------------------------------------


def names() -> Iterator[Case]:
    """The name of a file means nothing to us, whatever it is."""
    hostile = [
        "../../etc/passwd", "/etc/passwd", "C:\\x", "..\\..\\boot.ini", "a\0.png", "x" * 5000, "con", ".", "..", "",
        "a;rm -rf b.png", "%2e%2e%2f", "\udcff\udcfe", "<b>.png", "$(id).png", "a'b.png", "file:///a", "目.png",
    ]  # fmt: skip
    for name in hostile:
        for path in ("/v1/look", "/v1/images"):
            yield Case(f"a file named {name[:30]!r}", path, form(b"no image", name), FORM)
    for name in ("a\r\nX-Other: b", 'a"; name="question'):
        yield Case(f"a file named {name!r}", "/v1/look", form(b"no image", name), FORM)


def forms() -> Iterator[Case]:
    good, file = form(noise((40, 40))), b'Content-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    part = b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    cases = {
        "no boundary": (good, {"Content-Type": "multipart/form-data"}),
        "an empty boundary": (good, {"Content-Type": "multipart/form-data; boundary="}),
        "another boundary": (good, {"Content-Type": "multipart/form-data; boundary=other"}),
        "a boundary of 5000 letters": (good, {"Content-Type": f"multipart/form-data; boundary={'b' * 5000}"}),
        "nothing": (b"", FORM),
        "its end alone": (b"--b--\r\n", FORM),
        "no end": (good[:-8], FORM),
        "only half of it": (good[: len(good) // 2], FORM),
        "text": (b"What is the total?", FORM),
        "a header without end": (b"--b\r\nContent-Disposition: form-data; " + b"x" * 200_000, FORM),
        "ten thousand headers": (b"--b\r\n" + b"X-A: b\r\n" * 10_000 + file + b"x\r\n--b--\r\n", FORM),
        "a header of no sense": (b"--b\r\n\xff\xfe\0\r\n\r\nx\r\n--b--\r\n", FORM),
        "no name": (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n", FORM),
        "two images": (b"--b\r\n" + file + b"x\r\n--b\r\n" + file + b"y\r\n--b--\r\n", FORM),
        "a hundred fields": (b"".join(part % (b"f%d" % n, b"x") for n in range(100)) + good, FORM),
        "ten thousand fields": (b"".join(part % (b"f", b"x") for _ in range(10_000)) + good, FORM),
        "a field of a megabyte": (part % (b"question", b"x" * (1 << 20)) + good, FORM),
        "a field that there is not": (part % (b"nothing", b"x") + good, FORM),
        "a field with a long name": (part % (b"n" * 4000, b"x") + good, FORM),
        "a field with a line in its name": (part % (b"a%0Ab", b"x") + good, FORM),
        "the image as a field": (part % (b"image", b"x") + b"--b--\r\n", FORM),
        "an image and an image_id": (part % (b"image_id", b"0") + good, FORM),
        "an image_id of nothing": (part % (b"image_id", b"../../etc/passwd") + b"--b--\r\n", FORM),
        "a file of another name": (good.replace(b'"image"', b'"file"'), FORM),
    }
    for name, (content, headers) in cases.items():
        for path in ("/v1/look", "/v1/images"):
            if not (path == "/v1/images" and "image_id" in name):
                yield Case(f"a form with {name}", path, content, headers)


def texts() -> Iterator[Case]:
    deep = b"[" * 100_000
    bodies = {
        "nothing": b"", "half": b'{"image": "data:', "a number": b"7", "a list": b"[1, 2]", "null": b"null",
        "text": b"What?", "deep": deep, "deep and whole": deep + b"]" * 100_000, "no unicode": b'{"image": "\xff\xfe"}',
        "a long number": b'{"budget": 1%b}' % (b"0" * 9000), "two": b"{}{}", "utf-16": '{"a": 1}'.encode("utf-16"),
    }  # fmt: skip
    for name, content in bodies.items():
        for path in ("/v1/look", "/v1/ask", "/v1/images", "/v1/chat/completions"):
            yield Case(f"JSON of {name}", path, content, JSON)
    for key in ("k" * (1 << 20), "a\nb", "\ud800", "", "__class__", "image.x", "budget "):
        asked = {"image": data_url(noise((40, 40))), "question": "What?", key: 1}
        yield Case(f"the key {key[:20]!r}", "/v1/ask", json.dumps(asked).encode(), JSON)
    urls = [
        "", "x", "data:", "data:,", "data:image/png;base64", "data:image/png;base64,", "data:image/png;base64,@@@@",
        "data:image/png;base64,AAA", "data:image/png;base64,AAAA=AAAA", "data:image/png;base64,é", "data:image/png,abc",
        "data:text/plain;base64,SGVsbG8=", "http://127.0.0.1/x.png", "https://example.com/x.png", "file:///etc/passwd",
        "ftp://x/y", "/etc/passwd", "javascript:alert(1)", "data:image/png;base64,iVBORw0KGgo=", "data:;base64,\n",
    ]  # fmt: skip
    for url in urls:
        asked = json.dumps({"image": url, "question": "What?"}).encode()
        yield Case(f"the address {url!r}", "/v1/ask", asked, JSON)
        yield Case(f"the address {url!r} in a talk", "/v1/chat/completions", talk(url), JSON)
    for image in (7, None, [], {}, True, [1, 2]):
        yield Case(f"the image {image!r}", "/v1/look", json.dumps({"image": image}).encode(), JSON)


def words() -> Iterator[Case]:
    """A good image with wrong words."""
    image = data_url(noise((40, 40)))
    wrong: list[dict[str, object]] = [
        {"budget": 0}, {"budget": -1}, {"budget": 5000}, {"budget": 1e300}, {"budget": "many"}, {"budget": 1.5},
        {"page": -1}, {"page": 2**70}, {"fovea": 2}, {"fovea": -0.1}, {"fovea": "x"}, {"x": 1}, {"x": "a", "y": 1},
        {"x": 1e300, "y": 1}, {"x": float("nan"), "y": float("nan")}, {"x": float("inf"), "y": 0},
        {"allocator": "x" * 100_000}, {"allocator": "a\nb"}, {"allocator": "\ud800"}, {"allocator": 7},
        {"relevance": "../x"}, {"relevance": None}, {"question": "x" * 2001}, {"question": 7}, {"question": "a\ud800"},
        {"max_new_tokens": 0}, {"max_new_tokens": 10_000}, {"question": " "}, {"question": ""},
    ]  # fmt: skip
    for said in wrong:
        asked = {"image": image, "question": "What?", "max_new_tokens": 2, "budget": 8} | said
        yield Case(f"the words {str(said)[:40]}", "/v1/ask", json.dumps(asked).encode(), JSON)
    chats: list[object] = [
        {"messages": []}, {"messages": "x"}, {"messages": [{}]}, {"messages": [{"role": "nobody", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x"}] * 300}, {"seed": 2**80}, {"temperature": -1},
        {"temperature": float("nan")}, {"max_tokens": 0}, {"budget": 0}, {"allocator": "none"}, {"x": 1}, {"page": 9},
        {"image_id": "nothing"}, {"image_id": 7}, {"stream": "perhaps"},
        {"messages": [{"role": "user", "content": [{"type": "audio"}]}]},
    ]  # fmt: skip
    for said in chats:
        asked = json.loads(talk(image)) | said
        yield Case(f"the talk {str(said)[:40]}", "/v1/chat/completions", json.dumps(asked).encode(), JSON)


def kinds() -> Iterator[Case]:
    """A good image, called what it is not."""
    others = [
        "", "text/plain", "image/png", "application/x-www-form-urlencoded", "application/octet-stream", "a" * 3000,
        "multipart/mixed; boundary=b", "application/xml", "application/json/x", ";;;",
    ]  # fmt: skip
    for kind in others:
        for path in ("/v1/look", "/v1/ask", "/v1/images", "/v1/chat/completions"):
            yield Case(f"a body of kind {kind[:40]!r}", path, form(noise((40, 40))), {"Content-Type": kind})


THEMES: dict[str, Callable[[], list[Case]]] = {
    each.__name__: cache(lambda each=each: list(each()))
    for each in (cut_short, flipped, other_kinds, bombs, documents, names, forms, texts, words, kinds)
}


# ---- the service ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def address(reader) -> Iterator[str]:
    with served(lambda: reader) as address:
        assert fine(address)
        yield address


def fine(address: str) -> bool:
    """Whether it is ready, and a good look works."""
    with httpx.Client(base_url=address, timeout=60) as http:
        if http.get("/healthz").json()["state"] != "ready":
            return False
        said = http.post("/v1/look", files={"image": noise()}, data={"budget": "24"})
        return said.status_code == 200 and len(said.json()["tokens"]) == 24


def sentence(said: httpx.Response) -> str:
    """The one sentence of an error."""
    assert list(said.json()) == ["error"] and set(said.json()["error"]) == {"message", "type"}
    message = said.json()["error"]["message"]
    assert 10 < len(message) <= 500 and message.isprintable() and "Traceback" not in message
    assert not re.search(r"[.!?]\s+[A-Z]", message), "more than one sentence"
    assert not re.search(r"/(usr|home|tmp|root|opt|etc|lib|work)/|\.py\b|0x[0-9a-f]{6}", message), "a path"
    return message


@pytest.mark.parametrize("theme", THEMES)
def test_a_wrong_upload_is_refused_in_a_sentence(address, theme):
    before, wrong = memory(), []
    with httpx.Client(base_url=address, timeout=60) as http:
        for case in THEMES[theme]():
            begun = time.process_time()
            said = http.post(case.path, content=case.content, headers=case.headers)
            spent = time.process_time() - begun
            try:
                assert 400 <= said.status_code < 500 or (said.status_code == 200 and not case.certain), said.status_code
                if said.status_code >= 400:
                    sentence(said)
                assert spent < SOON, spent
            except (AssertionError, ValueError) as error:
                wrong.append(f"{case.name}: {error}: {said.text[:200]}")
    assert wrong == []
    assert fine(address)
    assert memory() - before < GROWTH


def test_there_are_hundreds_of_them():
    assert sum(case.certain for theme in THEMES.values() for case in theme()) >= 700
