"""How the page of the studio is used, in a real browser: by keys, on a phone, from a link, with what goes wrong."""

import io
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from homunculus import load_reader, viz
from homunculus.studio.routes import PAGE
from homunculus.studio.service import ApiConfig
from studio import ask, file, letter, noise, send, served, set_budget, settled, sheets, where

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright, which is missing")
pytest_plugins = "studio_page"  # reader, address, browser, opened
expect = sync_api.expect
ROOT = Path(__file__).parents[1]
PNG, PDF = file("page.png", noise()), file("pages.pdf", sheets("PDF"))


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
    other = opened("/" + where(page).rpartition("/")[2])
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
    send(page, file("letter.png", letter()))
    set_budget(page, 60)
    ask(page, "Where?")
    with page.expect_download() as saved:
        page.locator("#save-json").click()
    look = json.loads(Path(saved.value.path()).read_text())
    assert saved.value.suggested_filename == "look.json" and len(look["tokens"]) == 60 == look["visual_tokens"]
    assert look["question"] == "Where?" and 0 <= look["confidence"] <= 1 and look["answer"] is not None
    assert [line["text"] for line in look["lines"]] == page.locator("#lines button").all_text_contents() != []
    fixation, read = (tuple(bytes.fromhex(colour[1:])) for colour in (viz.FIXATION, viz.READ))
    for framed in (True, False):
        page.locator("#show-lines").set_checked(framed)
        with page.expect_download() as saved:
            page.locator("#save-png").click()
        picture = Image.open(saved.value.path()).convert("RGB")
        assert picture.width == 2 * 416 + 3 * 24
        colours = {colour for _, colour in picture.getcolors(1 << 24)}
        assert fixation in colours and (read in colours) == framed


def test_half_of_a_look_is_not_saved(opened):
    page = opened()
    send(page, PNG)
    expect(page.locator("#save-json")).to_be_enabled()
    page.route("**/v1/reconstruction*", lambda route: None)  # which never comes
    page.locator("#question").fill("Where?")
    page.locator("#question").press("Enter")
    for name in ("#save-png", "#save-json"):
        expect(page.locator(name)).to_be_disabled()
    page.unroute("**/v1/reconstruction*")
    ask(page, "What?")
    for name in ("#save-png", "#save-json"):
        expect(page.locator(name)).to_be_enabled()


def test_half_a_place_in_a_link_is_none(opened):
    page = opened()
    send(page, PNG)
    other = opened("/" + where(page).rpartition("/")[2] + "&x=5")
    settled(other)
    expect(other.locator("#error")).to_be_hidden()
    assert "x=" not in where(other)


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
    for key in ("ArrowLeft", "ArrowUp", "Home", "End"):
        page.keyboard.press(key)
        told.append(page.locator("#cell").inner_text())
    assert all(one != other for one, other in pairwise(told)) and all(", relevance " in each for each in told)
    assert "cell 1 of 273" in told[3] and "cell 273 of 273" in told[4]
    page.keyboard.press("Enter")
    expect(page.locator("#free")).to_be_visible()
    settled(page)
    assert "x=" in where(page)


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
    send(page, PNG)
    expect(page.locator("#error")).to_be_hidden()


def test_a_token_is_asked_for_once(opened, reader):
    with served(lambda: reader, ApiConfig(token="secret")) as address:
        page = opened(at=address, excuse=401)
        page.locator("#token").fill("secret")
        page.locator("#token").press("Enter")
        expect(page.locator("#allocator option").first).to_be_attached()
        send(page, PNG)
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
    assert all(f'"{colour}"' in scripts for colour in (*viz.LEVELS, viz.READ))


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
