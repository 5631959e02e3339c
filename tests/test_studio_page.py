"""The page of the studio in a real browser, against the real service with a tiny reader."""

import io
import json
import re
import shutil
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from homunculus import load_reader, viz
from readers import tiny_reader

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright, which is missing")
uvicorn = pytest.importorskip("uvicorn", reason="the service needs uvicorn: pip install 'homunculus[serve]'")

from homunculus.studio.app import PAGE, Settings, create_app  # noqa: E402
from homunculus.studio.work import Work  # noqa: E402

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
expect = sync_api.expect
expect.set_options(timeout=15_000)
pytestmark = [
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"there is no Chromium at {CHROMIUM}"),
    pytest.mark.slow,  # a browser beside other tests on two cores is slow; run with -m slow
]


@contextmanager
def served(load, settings=None):
    """The address of the service while it runs, on a free port."""
    door = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(Work(load), settings), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{door.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    door.close()


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(*tiny_reader(tmp_path_factory.mktemp("reader")))


@pytest.fixture(scope="module")
def address(reader):
    with served(lambda: reader) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address):
    """Opens the page; at the end nothing may have gone wrong in it, and no other host may have been asked."""
    contexts, wrong, requests, own, excuses = [], [], [], set(), []

    def open_page(path="/", at=address, excuse=None, **how):
        context = browser.new_context(**how)
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


def noise(size=(320, 256)) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(file, "PNG")
    return file.getvalue()


def pdf(count=3) -> bytes:
    file = io.BytesIO()
    sheets = [Image.new("RGB", (200 + 40 * n, 260), (255, 250 - 60 * n, 200)) for n in range(count)]
    sheets[0].save(file, "PDF", save_all=True, append_images=sheets[1:], resolution=72)
    return file.getvalue()


PNG = {"name": "page.png", "mimeType": "image/png", "buffer": noise()}
PDF = {"name": "pages.pdf", "mimeType": "application/pdf", "buffer": pdf()}


def until(page, truth):
    """Waits for a truth of the page. `expect` looks but once a second, and a wait inside is against the policy."""
    end = time.monotonic() + 15
    while not page.evaluate(truth):
        assert time.monotonic() < end, f"never came true: {truth}"
        page.wait_for_timeout(20)


def settled(page, cells=1):
    """Until the look, so many cells at least, and the answer are there."""
    quiet = 'document.querySelector("#answers[aria-busy=false]") && document.querySelector("#status").textContent'
    drawn = 'document.querySelectorAll(".cells.first rect").length'
    until(page, f'{quiet} === "Ready." && {drawn} >= {cells}')


def send(page, file=PNG):
    page.locator("#file").set_input_files(file)
    settled(page)


def ask(page, question="What is the total?"):
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    until(page, '[...document.querySelectorAll("#answers .sure")].every(sure => sure.textContent.includes("% sure"))')
    settled(page)


def set_budget(page, budget):
    page.locator("#budget").fill(str(budget))
    until(page, f'document.querySelectorAll(".cells.first rect").length === {budget}')
    settled(page)


def test_a_file_is_chosen_a_question_asked_and_the_cells_are_as_many_as_the_budget(opened):
    page = opened()
    send(page)
    set_budget(page, 24)
    ask(page)
    assert page.locator("#answers .text").inner_text().strip() not in ("", "...")
    expect(page.locator("#answers .sure")).to_have_text(re.compile(r"^\d+% sure, foveated, 24 tokens$"))
    assert page.locator(".cells.first rect").count() == 24
    assert page.locator("#known img.first").evaluate("img => img.naturalWidth") == 320
    assert page.locator("#history li").count() == 1 and page.locator(".fixation").count() == 1
    colours = page.locator(".cells.first rect").evaluate_all(
        "all => [...new Set(all.map(r => r.getAttribute('fill')))]"
    )
    assert set(colours) <= set(viz.LEVELS)


def test_a_question_that_comes_before_the_page_is_shown_waits_for_it(opened):
    page = opened()
    page.route("**/v1/images/*/pages/*", lambda route: (time.sleep(0.3), route.continue_()))
    page.locator("#file").set_input_files(PNG)
    expect(page.locator("#file-name")).to_have_text("page.png")
    ask(page)
    expect(page.locator("#looked .page")).to_be_visible()
    assert page.locator(".cells.first rect").count() > 16


def test_a_file_can_be_dropped(opened):
    page = opened()
    data = page.evaluate_handle(
        """bytes => { const box = new DataTransfer();
        box.items.add(new File([new Uint8Array(bytes)], "<b>page</b>.png", { type: "image/png" })); return box; }""",
        list(PNG["buffer"]),
    )
    page.dispatch_event("body", "drop", {"dataTransfer": data})
    expect(page.locator("#file-name")).to_have_text("<b>page</b>.png")  # as text: what a user names is never markup
    expect(page.locator(".cells.first rect").first).to_be_attached()
    assert page.locator("#file-name b").count() == 0
    settled(page)


def test_budget_and_allocator_draw_anew(opened):
    page = opened()
    send(page)
    for budget in (16, 40):
        set_budget(page, budget)
    boxes = "all => all.map(r => ['x', 'y', 'width'].map(name => r.getAttribute(name)).join()).sort().join(' ')"
    before = page.locator(".cells.first rect").evaluate_all(boxes)
    page.locator("#allocator").select_option("uniform")
    expect(page.locator("#facts")).to_contain_text("uniform")
    settled(page)
    assert page.locator(".cells.first rect").evaluate_all(boxes) != before
    expect(page.locator("#fovea")).to_be_disabled()
    assert "allocator=uniform" in page.url and "budget=40" in page.url


def test_two_allocators_are_compared_with_a_divider(opened):
    page = opened()
    send(page)
    set_budget(page, 24)
    page.locator("#compare").check()
    page.locator("#second").select_option("dag")
    expect(page.locator(".cells.second")).to_have_attribute("aria-label", "dag: 24 cells")
    ask(page)
    expect(page.locator("#answers .sure")).to_have_text([re.compile("foveated"), re.compile("dag")])
    assert page.locator(".cells.second rect").count() == page.locator(".cells.first rect").count() == 24
    box = page.locator("#looked .divider").bounding_box()
    stage = page.locator("#looked .stage").bounding_box()
    page.mouse.move(box["x"] + 12, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(stage["x"] + stage["width"] * 0.25, box["y"] + 60, steps=3)
    page.mouse.up()
    assert page.locator("#swipe").input_value() == "25"
    page.mouse.move(stage["x"] + stage["width"] * 0.6, stage["y"] + 50)
    expect(page.locator("#cell")).to_contain_text("dag, cell")
    page.mouse.move(stage["x"] + stage["width"] * 0.1, stage["y"] + 50)
    expect(page.locator("#cell")).to_contain_text("foveated, cell")
    page.locator("#swipe").press("ArrowRight")
    assert page.evaluate("document.documentElement.style.getPropertyValue('--swipe')") == "26%"
    page.locator("#compare").uncheck()
    expect(page.locator(".cells.second")).to_be_hidden()


def test_pointing_tells_level_and_relevance_and_a_click_looks_there(opened):
    page = opened()
    send(page)
    stage = page.locator("#looked .stage").bounding_box()
    page.mouse.move(stage["x"] + stage["width"] / 4, stage["y"] + stage["height"] / 2)
    expect(page.locator("#cell")).to_have_text(
        re.compile(r"foveated, cell \d+ of \d+: level [\d.]+, relevance [\d.e-]+, ")
    )
    page.mouse.click(stage["x"] + stage["width"] / 4, stage["y"] + stage["height"] / 2)
    expect(page.locator("#free")).to_be_visible()
    settled(page)
    x, y = (int(re.search(rf"[#&]{axis}=(\d+)", page.url)[1]) for axis in "xy")
    assert abs(x - 80) <= 1 and abs(y - 128) <= 1
    assert page.locator(".fixation").evaluate("mark => [mark.style.left, mark.style.top]") == [
        f"{100 * x / 320:g}%", f"{100 * y / 256:g}%",
    ]  # fmt: skip
    page.locator("#free").click()
    expect(page.locator("#free")).to_be_hidden()
    assert "x=" not in page.url


def test_pages_of_a_pdf(opened):
    page = opened()
    send(page, PDF)
    thumbs = page.locator("#pages button")
    expect(thumbs).to_have_count(3)
    widths = "all => all.map(img => img.naturalWidth)"
    until(page, "[...document.querySelectorAll('#pages img')].every(img => img.naturalWidth > 0)")
    assert len(set(page.locator("#pages img").evaluate_all(widths))) == 3
    thumbs.nth(2).click()
    expect(thumbs.nth(2)).to_have_attribute("aria-current", "page")
    settled(page)
    ratio = page.locator("#looked .page").evaluate("img => img.naturalWidth / img.naturalHeight")
    assert ratio == pytest.approx(280 / 260, abs=0.02) and "page=2" in page.url
    thumbs.nth(2).press("ArrowLeft")
    expect(thumbs.nth(1)).to_be_focused()


def test_a_link_restores_the_view_elsewhere(opened):
    page = opened()
    send(page, PDF)
    page.locator("#pages button").nth(1).click()
    settled(page)
    page.locator("#allocator").select_option("dag")
    page.locator("#relevance").select_option("saliency")
    set_budget(page, 20)
    ask(page, "What is <i>it</i>?")
    said = page.locator("#answers .text").inner_text()
    other = opened("/" + page.url[page.url.index("#") :])
    expect(other.locator("#answers .sure")).to_contain_text(["% sure, dag, 20 tokens"])
    assert other.locator("#answers .text").inner_text() == said
    assert other.locator("#question").input_value() == "What is <i>it</i>?"
    assert other.locator("#relevance").input_value() == "saliency"
    assert other.locator(".cells.first rect").count() == 20
    expect(other.locator("#pages button").nth(1)).to_have_attribute("aria-current", "page")


def test_a_link_to_a_forgotten_image_says_what_to_do_and_the_file_brings_it_back(opened):
    page = opened("/#image=0123&question=Who%3F&allocator=dag&budget=18", excuse=404)
    expect(page.locator("#error")).to_contain_text("Choose the same file again")
    page.locator("#file").set_input_files(PNG)
    expect(page.locator("#answers .sure")).to_contain_text(["% sure, dag, 18 tokens"])
    expect(page.locator("#error")).to_be_hidden()


def test_the_look_is_saved_as_json_and_png(opened):
    page = opened()
    send(page)
    set_budget(page, 30)
    ask(page, "Where?")
    with page.expect_download() as saved:
        page.locator("#save-json").click()
    look = json.loads(Path(saved.value.path()).read_text())
    assert saved.value.suggested_filename == "look.json" and len(look["tokens"]) == 30
    assert look["question"] == "Where?" and 0 <= look["confidence"] <= 1 and look["answer"] is not None
    with page.expect_download() as saved:
        page.locator("#save-png").click()
    picture = Image.open(saved.value.path()).convert("RGB")
    assert picture.width == 2 * 320 + 3 * 24
    fixation = tuple(bytes.fromhex(viz.FIXATION[1:]))
    assert any(colour == fixation for _, colour in picture.getcolors(1 << 24))


def test_asking_again_moves_the_fixation_and_is_remembered(opened):
    page = opened(reduced_motion="reduce")
    send(page)
    ask(page, "What is at the top left?")
    mark = "marks => marks.filter(m => !m.classList.contains('past')).map(m => [m.style.left, m.style.top].join())"
    first = page.locator(".fixation").evaluate_all(mark)
    ask(page, "What is at the bottom right?")
    until(page, "document.querySelectorAll('.fixation').length === 2")
    page.wait_for_timeout(50)
    assert page.locator(".fixation").evaluate_all(mark) != first
    assert page.locator(".fixation span").all_inner_texts() == ["1", "2"]
    assert page.locator(".fixation").first.evaluate("mark => getComputedStyle(mark).transitionProperty") == "none"
    page.locator("#history button").first.click()
    expect(page.locator("#question")).to_have_value("What is at the top left?")
    settled(page)


def test_keys_alone_suffice(opened):
    page = opened()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#file")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the example
    expect(page.locator("#question")).to_be_focused()
    settled(page)
    expect(page.locator("#question")).to_have_value("What is the total?")
    page.keyboard.press("Enter")
    expect(page.locator("#answers .sure")).to_contain_text(["% sure"])
    settled(page)
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.locator(".cells.first")).to_be_focused()
    told = [page.locator("#cell").inner_text()]
    for key in ("ArrowLeft", "ArrowDown", "Home", "End"):
        page.keyboard.press(key)
        told.append(page.locator("#cell").inner_text())
    assert len(set(told)) == 5 and all(", relevance " in each for each in told)
    page.keyboard.press("Enter")
    expect(page.locator("#free")).to_be_visible()
    settled(page)
    assert "x=" in page.url


def test_everything_has_a_name(opened):
    page = opened()
    send(page, PDF)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, svg[tabindex], img, nav, dialog")].filter(e =>
        !(e.labels?.length || e.ariaLabel || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.alt
          || (e.tagName === "IMG" && e.closest("button")))).map(e => e.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("#answers").get_attribute("aria-live") == "polite"
    assert page.locator("#error").get_attribute("role") == "alert"


def test_a_phone_shows_one_column_without_scrolling_sideways(opened):
    page = opened(viewport={"width": 360, "height": 740})
    send(page, PDF)
    ask(page)
    page.locator("#settings summary").click()
    page.locator("#compare").check()
    expect(page.locator("#answers .sure")).to_have_count(2)
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    left = page.locator("#looked").bounding_box()
    right = page.locator("#known").bounding_box()
    assert right["y"] >= left["y"] + left["height"]


@pytest.mark.parametrize(("scheme", "dark"), [("dark", True), ("light", False)])
def test_the_scheme_of_the_user(opened, scheme, dark):
    page = opened(color_scheme=scheme)
    paper, ink = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (paper, ink)]
    assert (light[0] < light[1]) == dark and abs(light[0] - light[1]) > 450


def test_a_broken_file_and_a_missing_page_are_told_in_a_sentence(opened):
    page = opened(excuse=422)
    page.locator("#question").fill("What?")
    page.locator("#question").press("Enter")
    expect(page.locator("#error")).to_contain_text("Choose a page first")
    page.locator("#file").set_input_files({"name": "bad.png", "mimeType": "image/png", "buffer": b"no image"})
    expect(page.locator("#error")).to_contain_text(re.compile("image", re.I))
    assert "\n" not in page.locator("#error").inner_text()
    send(page)
    expect(page.locator("#error")).to_be_hidden()


def test_while_the_reader_loads_one_can_ask_already(opened, reader):
    held = threading.Event()
    with served(lambda: held.wait() and reader) as address:
        page = opened(at=address)
        expect(page.locator("#status")).to_contain_text("loading")
        page.locator("#file").set_input_files(PNG)
        expect(page.locator("#looked .page")).to_be_visible()
        page.locator("#question").fill("What?")
        page.locator("#question").press("Enter")
        expect(page.locator("#status")).to_contain_text("loading")
        held.set()
        expect(page.locator("#answers .sure")).to_contain_text(["% sure"])
        settled(page)
        page.context.close()


def test_a_token_is_asked_for_once(opened, reader):
    with served(lambda: reader, Settings(token="secret")) as address:
        page = opened(at=address, excuse=401)
        page.locator("#token").fill("secret")
        page.locator("#token").press("Enter")
        expect(page.locator("#allocator option").first).to_be_attached()
        send(page)
        ask(page)
        expect(page.locator("#token-dialog")).to_be_hidden()
        assert page.evaluate("sessionStorage.getItem('token')") == "secret"
        page.context.close()


def test_a_busy_service_is_asked_again(opened):
    page = opened(excuse=429)
    refused = []

    def busy(route):
        if refused:
            route.continue_()
            return
        refused.append(1)
        body = json.dumps({"error": {"message": "too many requests are waiting; try again in 1 s"}})
        route.fulfill(status=429, headers={"Retry-After": "1"}, body=body, content_type="application/json")

    page.route("**/v1/look", busy)
    page.locator("#file").set_input_files(PNG)
    expect(page.locator("#status")).to_contain_text("trying again in 1 s")
    settled(page)
    assert page.locator(".cells.first rect").count() > 16


def test_the_policy_is_strict_and_nothing_is_written_as_markup():
    page = (PAGE / "index.html").read_text()
    assert "default-src 'self'; img-src 'self' blob: data:; style-src 'self'; script-src 'self'" in page
    assert not re.search(r"\son\w+=|\sstyle=|https?://", page)
    scripts = "".join(file.read_text() for file in PAGE.glob("*.js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", scripts)
    assert all(f'"{colour}"' in scripts for colour in viz.LEVELS)


def test_the_example_is_the_one_of_the_command_line():
    shown, own = (Image.open(path).convert("RGB") for path in (PAGE / "example.webp", ROOT / "examples/invoice.png"))
    assert shown.size == own.size and ImageChops.difference(shown, own).getbbox() is None


@pytest.mark.slow
def test_the_picture_in_the_docs_is_of_the_shipped_reader(opened):
    """Writes docs/images/studio.png anew."""
    with served(load_reader) as address:
        page = opened(at=address, viewport={"width": 1280, "height": 1100})
        expect(page.locator("#status")).to_have_text("Ready.", timeout=120_000)
        page.locator("#example").click()
        expect(page.locator("#question")).to_have_value("What is the total?")
        page.locator("#question").press("Enter")  # while the page is being opened
        expect(page.locator("#answers .sure")).to_contain_text(["% sure"], timeout=60_000)
        expect(page.locator("#looked .page")).to_be_visible()
        expect(page.locator("#status")).to_have_text("Ready.", timeout=60_000)
        page.wait_for_timeout(800)  # until the fixation has come to rest
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        page.context.close()
    target = ROOT / "docs" / "images" / "studio.png"
    picture.save(target, optimize=True)
    assert target.stat().st_size < 400_000
