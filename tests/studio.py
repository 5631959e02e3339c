"""The service on a free port with a reader small enough for every file of tests, and what is sent to it."""

import base64
import io
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from homunculus import load_reader
from homunculus.reader.model import Reader
from lined import card
from readers import tiny_reader

uvicorn = pytest.importorskip("uvicorn", reason="the service needs uvicorn: pip install 'homunculus[serve]'")

from homunculus.studio.app import create_app  # noqa: E402
from homunculus.studio.service import ApiConfig  # noqa: E402
from homunculus.studio.serving import listening  # noqa: E402
from homunculus.studio.work import Worker  # noqa: E402

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 90.0  # seconds that a page may take on a busy machine


def small_reader(folders: pytest.TempPathFactory) -> Reader:
    """A reader that finds and reads lines as shipped, with an untrained scout and language model."""
    return load_reader(*tiny_reader(folders.mktemp("reader")))


@contextmanager
def served(load: Callable[[], Reader], config: ApiConfig | None = None) -> Iterator[str]:
    """The address of the service while it runs, on a free port of this machine."""
    listener = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_app(Worker(load), config), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
    assert not thread.is_alive(), "the service did not end"


def noise(size: tuple[int, int] = (320, 256), kind: str = "PNG", **options: object) -> bytes:
    """A picture of noise as a file, always the same."""
    grey = np.random.default_rng(0).normal(128, 60, size[::-1]).clip(0, 255).astype(np.uint8)
    return encoded([Image.fromarray(grey).convert("RGB")], kind, **options)


def letter(turns: int = 0) -> bytes:
    """A page of four lines of text as a file, 416 x 384; turned clockwise."""
    return encoded([Image.fromarray(np.rot90(card()[0].numpy(), -turns))], "PNG")


def sheets(kind: str = "PDF", count: int = 3, wider: int = 40, **options: object) -> bytes:
    """A file of several pages, each wider than the last."""
    pages = [Image.new("RGB", (200 + wider * n, 260), (255, 250 - 60 * n, 200)) for n in range(count)]
    return encoded(pages, kind, **({"resolution": 72} if kind == "PDF" else {}), **options)


def encoded(pages: list[Image.Image], kind: str, **options: object) -> bytes:
    """Pictures as the pages of one file."""
    more = {"save_all": True, "append_images": pages[1:]} if len(pages) > 1 else {}
    file = io.BytesIO()
    pages[0].save(file, kind, **more, **options)
    return file.getvalue()


def pdf(*objects: bytes) -> bytes:
    """A PDF by hand: after the catalogue its objects from the second on, which is the root of the pages."""
    parts, offsets, at = [b"%PDF-1.7\n"], [], 9
    for number, body in enumerate((b"<</Type/Catalog/Pages 2 0 R>>", *objects), start=1):
        offsets.append(at)
        parts.append(b"%d 0 obj%bendobj\n" % (number, body))
        at += len(parts[-1])
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(offsets) + 1, table))
    return b"".join(parts) + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(offsets) + 1, at)


def slow_pdf(fills: int = 100_000) -> bytes:
    """A page of few bytes that takes minutes to draw."""
    packed = zlib.compress(b"0 0 720 720 re f\n" * fills, 9)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 720 720]/Contents 4 0 R>>"
    stream = b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(packed), packed)
    return pdf(b"<</Type/Pages/Count 1/Kids[3 0 R]>>", page, stream)


def data_url(content: bytes, media: str = "image/png") -> str:
    """A file as JSON carries it."""
    return f"data:{media};base64,{base64.b64encode(content).decode()}"


def memory(pid: int | str = "self") -> float:
    """Megabytes that a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


# ---- the page in a browser ------------------------------------------------------------------------------------------


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; where there is none, the tests that want it are skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright, which is missing")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}")
    sync_api.expect.set_options(timeout=1000 * PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=1000 * PATIENCE)
        yield browser
        browser.close()


@contextmanager
def opener(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page; at the end nothing may have gone wrong in it, and no other host may have been asked."""
    contexts, wrong, requests, own, excuses = [], [], [], set(), []

    def open_page(path: str = "/", at: str = address, excuse: int | None = None, **how: Any) -> Any:
        context = browser.new_context(**how)
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        own.add(at)
        excuses.extend([excuse] if excuse else [])
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(at + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in wrong if not any(f"status of {excuse}" in text for excuse in excuses)] == []
    assert {url for url in requests if not url.startswith((*own, *(f"blob:{each}" for each in own)))} == set()


def file(name: str, content: bytes) -> dict[str, Any]:
    """A file as a user chooses it."""
    return {"name": name, "mimeType": "", "buffer": content}


def until(page: Any, truth: str) -> None:
    """Waits for a truth of the page. `expect` looks but once a second, and a wait inside is against the policy."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(truth):
        assert time.monotonic() < end, f"never came true: {truth}"
        page.wait_for_timeout(20)


def where(page: Any) -> str:
    """The address that the page has given itself; `page.url` hears of it later."""
    return page.evaluate("location.href")


def settled(page: Any) -> None:
    """Until look and answer are there, and nothing is under way."""
    quiet = 'document.querySelector("#answers[aria-busy=false]") && document.querySelector("#status").textContent'
    until(page, f'{quiet} === "Ready." && document.querySelectorAll(".cells.first rect").length')


def send(page: Any, chosen: dict[str, Any]) -> None:
    """Choose a file and wait for the first look at it."""
    page.locator("#file").set_input_files(chosen)
    until(page, f"document.querySelector('#file-name').textContent.startsWith({chosen['name']!r})")
    settled(page)


def ask(page: Any, question: str = "What is the total?") -> None:
    """Ask, and wait for the answer."""
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    until(page, '[...document.querySelectorAll("#answers .sure")].every(sure => sure.textContent.includes("% sure"))')
    settled(page)


def set_budget(page: Any, budget: int) -> None:
    """Move the slider, and wait for the look."""
    page.locator("#budget").fill(str(budget))
    until(page, f'document.querySelectorAll(".cells.first rect").length === {budget}')
    settled(page)
