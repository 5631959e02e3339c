"""What the page of the studio shows, in a real browser against the real service: pages, cells, fixations, answers."""

import re
import threading

import httpx2 as httpx
import pytest

from homunculus import viz
from studio import (
    ask,
    file,
    letter,
    noise,
    send,
    served,
    set_budget,
    settled,
    sheets,
    until,
    where,
)

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright, which is missing")
pytest_plugins = "studio_page"  # reader, address, browser, opened
expect = sync_api.expect
PNG, PDF = file("page.png", noise()), file("pages.pdf", sheets("PDF"))
WIDE = "Math.round(260 * (img => img.naturalWidth / img.naturalHeight)(document.querySelector('#looked .page')))"


def drop(page, dropped):
    """Drop a file on the page."""
    data = page.evaluate_handle(
        """([name, bytes]) => { const box = new DataTransfer();
        box.items.add(new File([new Uint8Array(bytes)], name)); return box; }""",
        [dropped["name"], list(dropped["buffer"])],
    )
    page.dispatch_event("body", "drop", {"dataTransfer": data})


def test_a_file_is_chosen_a_question_asked_and_the_cells_are_as_many_as_the_budget(opened):
    page = opened()
    send(page, PNG)
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
    page, held = opened(), []
    page.route("**/v1/images/*/pages/*", lambda route: held.append(route))
    page.locator("#file").set_input_files(PNG)
    expect(page.locator("#file-name")).to_have_text("page.png")
    page.locator("#question").fill("What is the total?")
    page.locator("#question").press("Enter")
    expect(page.locator("#status")).to_have_text("Opening the page ...")
    assert page.locator("#looked .page").is_hidden() and page.locator("#answers .sure").count() == 0
    for route in held:
        route.continue_()
    expect(page.locator("#answers .sure")).to_contain_text(["% sure"])
    settled(page)
    expect(page.locator("#looked .page")).to_be_visible()
    assert page.locator(".cells.first rect").count() > 16


def test_a_question_asked_while_the_file_is_on_its_way_is_about_it(opened):
    page = opened()
    page.evaluate(
        """() => {
            document.querySelector("#example").click();
            document.querySelector("#question").value = "Who signed it?";
            document.querySelector("#ask").requestSubmit();
        }"""
    )
    expect(page.locator("#answers .sure")).to_have_text(re.compile("% sure"))
    expect(page.locator("#question")).to_have_value("Who signed it?")
    assert page.locator("#error").is_hidden()
    page.context.close()


def test_a_file_can_be_dropped(opened):
    page = opened()
    drop(page, file("<b>page</b>.png", noise()))
    expect(page.locator("#file-name")).to_have_text("<b>page</b>.png")  # as text: what a user names is never markup
    assert page.locator("#file-name b").count() == 0
    settled(page)


def test_budget_and_allocator_draw_anew(opened):
    page = opened()
    send(page, PNG)
    for budget in (16, 40):
        set_budget(page, budget)
    boxes = "all => all.map(r => ['x', 'y', 'width'].map(name => r.getAttribute(name)).join()).sort().join(' ')"
    before = page.locator(".cells.first rect").evaluate_all(boxes)
    page.locator("#allocator").select_option("uniform")
    expect(page.locator("#facts")).to_contain_text("uniform")
    settled(page)
    assert page.locator(".cells.first rect").evaluate_all(boxes) != before
    expect(page.locator("#fovea")).to_be_disabled()
    assert "allocator=uniform" in where(page) and "budget=40" in where(page)


def test_two_allocators_are_compared_with_a_divider(opened):
    page = opened()
    send(page, PNG)
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


@pytest.mark.parametrize("turns", [0, 1])
def test_the_lines_that_were_read_are_listed_and_framed(opened, address, turns):
    page, fields = opened(), {"question": "What is the total?", "budget": 80}
    said = httpx.post(f"{address}/v1/ask", files={"image": letter(turns)}, data=fields, timeout=60).json()
    texts, boxes = [line["text"] for line in said["lines"]], [line["box"] for line in said["lines"]]
    send(page, file("letter.png", letter(turns)))
    set_budget(page, 80)
    expect(page.locator("#lines")).to_be_hidden()  # a free look reads nothing
    ask(page, fields["question"])
    assert len(texts) > 2
    expect(page.locator("#lines summary")).to_have_text(f"{len(texts)} lines read")
    page.locator("#lines summary").click()
    assert page.locator("#lines li button").all_inner_texts() == texts
    frames = page.locator(".lines.first rect").evaluate_all(
        "all => all.map(r => ['x', 'y', 'width', 'height'].map(name => Number(r.getAttribute(name))))"
    )
    for (x, y, width, height), box in zip(frames, boxes, strict=True):
        assert [x, y, x + width, y + height] == pytest.approx(box, abs=0.01)
    width, height = (384, 416) if turns else (416, 384)
    assert page.locator(".lines.first").get_attribute("viewBox") == f"0 0 {width} {height}"
    assert page.locator(".lines.first").bounding_box() == page.locator(".known.first").bounding_box()
    opacity = "getComputedStyle(document.querySelector('.lines.first rect')).strokeOpacity"
    assert page.evaluate(opacity) == "1"
    page.locator("#show-lines").uncheck()
    assert page.evaluate(opacity) == "0"
    page.locator("#lines button").nth(1).hover()
    assert page.locator(".lines.first rect.here").count() == 1
    page.locator("#lines button").nth(1).click()  # looks there
    expect(page.locator("#free")).to_be_visible()
    settled(page)
    x0, y0, x1, y1 = boxes[1]
    x, y = (int(re.search(rf"[#&]{axis}=(\d+)", where(page))[1]) for axis in "xy")
    assert x0 < x < x1 and y0 < y < y1
    assert page.locator("#lines").evaluate("list => list.open")  # it stays as it was
    page.locator("#question").fill("")
    page.locator("#question").press("Enter")
    expect(page.locator("#lines")).to_be_hidden()
    assert page.locator(".lines rect").count() == 0


def test_two_allocators_have_a_list_of_lines_each(opened):
    page = opened()
    send(page, file("letter.png", letter()))
    set_budget(page, 60)
    page.locator("#compare").check()
    page.locator("#second").select_option("uniform")
    ask(page)
    expect(page.locator("#lines summary")).to_have_text(
        re.compile(r"^foveated: (\d+) lines? read; uniform: \d+ lines? read$")
    )
    counts = [int(n) for n in re.findall(r": (\d+) line", page.locator("#lines summary").inner_text())]
    for which, count in zip(("first", "second"), counts, strict=True):
        assert page.locator(f".lines.{which} rect").count() == count
    assert counts[0] > 0 and page.locator("#lines li").count() == sum(counts)
    page.locator("#compare").uncheck()
    expect(page.locator("#lines summary")).to_have_text(re.compile(r"^\d+ lines? read$"))
    assert page.locator(".lines.second rect").count() == 0


def test_pointing_tells_level_and_relevance_and_a_click_looks_there(opened):
    page = opened()
    send(page, PNG)
    stage = page.locator("#looked .stage").bounding_box()
    page.mouse.move(stage["x"] + stage["width"] / 4, stage["y"] + stage["height"] / 2)
    expect(page.locator("#cell")).to_have_text(
        re.compile(r"foveated, cell \d+ of \d+: level [\d.]+, relevance [\d.e-]+, ")
    )
    page.mouse.click(stage["x"] + stage["width"] / 4, stage["y"] + stage["height"] / 2)
    expect(page.locator("#free")).to_be_visible()
    settled(page)
    x, y = (int(re.search(rf"[#&]{axis}=(\d+)", where(page))[1]) for axis in "xy")
    assert abs(x - 80) <= 1 and abs(y - 128) <= 1
    mark = "(mark => [mark.style.left, mark.style.top].join())(document.querySelector('.fixation'))"
    until(page, f"{mark} === '{100 * x / 320:g}%,{100 * y / 256:g}%'")
    page.locator("#free").click()
    expect(page.locator("#free")).to_be_hidden()
    assert "x=" not in where(page)


def test_looks_that_are_overtaken_leave_no_trace(opened):
    page = opened()
    send(page, PNG)
    stage = page.locator("#looked .stage").bounding_box()
    for n in range(12):
        page.mouse.click(stage["x"] + stage["width"] * (n + 1) / 14, stage["y"] + stage["height"] / 2)
    settled(page)
    x = round(320 * 12 / 14)
    assert abs(int(re.search(r"[#&]x=(\d+)", where(page))[1]) - x) <= 1
    until(page, f"Math.abs(3.2 * parseFloat(document.querySelector('.fixation').style.left) - {x}) <= 2")
    assert page.locator(".fixation").count() == 1 and page.locator("#error").is_hidden()


@pytest.mark.parametrize("name", ["pages.pdf", "pages.tiff"])
def test_pages_of_a_file(opened, name):
    page = opened()
    send(page, file(name, sheets(name.split(".")[1])))
    expect(page.locator("#file-name")).to_have_text(f"{name}, 3 pages")
    thumbs = page.locator("#pages button")
    expect(thumbs).to_have_count(3)
    until(page, "[...document.querySelectorAll('#pages img')].every(img => img.naturalWidth > 0)")
    widths = page.locator("#pages img").evaluate_all("all => all.map(img => img.naturalWidth)")
    assert len(set(widths)) == 3
    for n in (2, 1):
        thumbs.nth(n).click()
        expect(thumbs.nth(n)).to_have_attribute("aria-current", "page")
        until(page, f"{WIDE} === {200 + 40 * n}")  # pages are so wide, and 260 high
        settled(page)
        assert f"page={n}" in where(page)
    thumbs.nth(1).press("ArrowRight")
    expect(thumbs.nth(2)).to_be_focused()


def test_asking_again_moves_the_fixation_and_is_remembered(opened):
    page = opened(reduced_motion="reduce")
    send(page, PNG)
    ask(page, "What is at the top left?")
    mark = "marks => marks.filter(m => !m.classList.contains('past')).map(m => [m.style.left, m.style.top].join())"
    first = page.locator(".fixation").evaluate_all(mark)
    ask(page, "What is at the bottom right?")
    until(page, "document.querySelectorAll('.fixation').length === 2")
    until(page, f"({mark})([...document.querySelectorAll('.fixation')]).join() !== {','.join(first)!r}")
    assert page.locator(".fixation span").all_inner_texts() == ["1", "2"]
    assert page.locator(".fixation").first.evaluate("mark => getComputedStyle(mark).transitionProperty") == "none"
    page.locator("#history button").first.click()
    expect(page.locator("#question")).to_have_value("What is at the top left?")
    settled(page)


def test_the_page_can_be_used_while_the_reader_loads(opened, reader):
    held = threading.Event()
    with served(lambda: held.wait() and reader) as address:
        page = opened(at=address)
        expect(page.locator("#status")).to_contain_text("loading")
        expect(page.locator("#allocator option[value=dag]")).to_be_attached()
        drop(page, PDF)
        expect(page.locator("#looked .page")).to_be_visible()
        expect(page.locator("#pages button")).to_have_count(3)
        until(page, "[...document.querySelectorAll('#pages img')].every(img => img.naturalWidth > 0)")
        page.locator("#question").press_sequentially("What is the ")
        page.locator("#allocator").select_option("dag")
        page.locator("#budget").fill("24")
        page.locator("#pages button").nth(1).click()
        until(page, f"{WIDE} === 240")
        page.locator("#question").press("End")
        page.locator("#question").press_sequentially("total?")
        expect(page.locator("#question")).to_have_value("What is the total?")
        page.locator("#question").press("Enter")
        expect(page.locator("#answers .sure")).to_have_text("What is the total?")
        expect(page.locator("#status")).to_contain_text("loading")
        assert page.locator(".cells.first rect").count() == 0 and page.locator("#error").is_hidden()
        held.set()
        expect(page.locator("#answers .sure")).to_have_text(re.compile(r"^\d+% sure, dag, 24 tokens$"))
        settled(page)
        assert page.locator(".cells.first rect").count() == 24
        page.context.close()
