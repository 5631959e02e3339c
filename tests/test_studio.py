"""The service: looks and answers over HTTP, one sentence for every error, and a queue that does not grow."""

import io
import json
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from homunculus.allocators import list_allocators
from homunculus.reader.model import Reader
from homunculus.reader.session import MAX_GLANCES
from homunculus.studio.app import create_app
from homunculus.studio.service import ApiConfig
from homunculus.studio.uploads import Limits
from homunculus.studio.work import BusyError, Job, ReaderRequest, Worker
from lined import TEXTS, likeness
from readers import count_work
from studio import data_url, encoded, letter, small_reader

testclient = pytest.importorskip("starlette.testclient")
QUESTION = "What is the total amount?"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def png() -> bytes:
    return letter()


@pytest.fixture(scope="module")
def client(reader):
    with testclient.TestClient(create_app(Worker(lambda: reader))) as client:
        yield client


@pytest.fixture
def counted(reader: Reader, monkeypatch) -> dict[str, int]:
    return count_work(reader, monkeypatch)


def run(work: Worker, requests: list[ReaderRequest]) -> list:
    """The last results of requests, one after the other."""
    results: list = [None] * len(requests)
    for n, request in enumerate(requests):
        ready = threading.Event()

        def notify(result, last, n=n, ready=ready):
            results[n] = result
            if last:
                ready.set()

        work.submit(Job(request, notify))
        assert ready.wait(60)
    return results


# -- looks and answers -----------------------------------------------------------------------------------------


def test_a_look_comes_from_a_form_and_from_json_alike(client, png):
    fields = {"question": QUESTION, "budget": 24, "allocator": "dag"}
    form = client.post("/v1/look", files={"image": ("../../etc/passwd", png, "image/png")}, data=fields)
    assert form.status_code == 200, form.text
    look = form.json()
    assert len(look["tokens"]) == 24 and look["image"] == {"width": 416, "height": 384} and look["allocator"] == "dag"
    assert client.post("/v1/look", json=fields | {"image": data_url(png)}).json() == look
    assert form.headers["x-request-id"]


def test_an_answer_is_the_reader_s_own(client, reader, png):
    fields = {"question": QUESTION, "budget": 60, "max_new_tokens": 5}
    said = client.post("/v1/ask", files={"image": png}, data=fields).json()
    own = reader.ask(png, QUESTION, budget=60, max_new_tokens=5).to_dict()
    assert likeness([line["text"] for line in said["lines"]], TEXTS[:4]) > 0.8
    assert said.keys() == own.keys() and said["confidence"] == pytest.approx(own["confidence"], abs=1e-4)
    for name in own.keys() - {"confidence", "seconds"}:
        assert said[name] == own[name], name
    assert {"open", "look", "read", "prefill"} <= said["seconds"].keys()
    longer = client.post("/v1/ask", files={"image": png}, data=fields | {"max_new_tokens": 9}).json()
    assert len(longer["answer"]) > len(said["answer"])


def test_a_look_shows_the_cells_that_an_answer_is_read_from(client, png):
    fields = {"question": QUESTION, "budget": 30, "x": 90, "y": 230, "fovea": 0.4}
    look = client.post("/v1/look", files={"image": png}, data=fields).json()
    said = client.post("/v1/ask", files={"image": png}, data=fields | {"max_new_tokens": 2}).json()
    assert look["fixations"] == [[90, 230]] and {name: said[name] for name in look} == look


def test_a_further_question_about_an_image_repeats_no_work(reader, png, counted):
    work = Worker(lambda: reader)
    with testclient.TestClient(create_app(work)) as client:

        def ask(question: str, path: str = "ask", **fields: object) -> dict:
            fields = {"question": question, "budget": 60} | fields
            return client.post(f"/v1/{path}", files={"image": png}, data=fields).json()

        look = ask(QUESTION, "look")
        opened = dict(counted)
        assert opened["found"] > 0 and opened["encoded"] == 1
        first = ask(QUESTION, max_new_tokens=4)
        read = counted["read"]
        assert read - opened["read"] >= len(first["lines"]) > 2 and first["tokens"] == look["tokens"]
        again = ask(QUESTION, max_new_tokens=6)
        assert again["lines"] == first["lines"] and counted["read"] == read
        kept = client.post("/v1/images", files={"image": png}).json()["id"]
        talk = [{"role": "user", "content": QUESTION}]
        fields = {"messages": talk, "image_id": kept, "budget": 60, "max_tokens": 4}
        chat = client.post("/v1/chat/completions", json=fields).json()
        assert chat["homunculus"]["lines"] == first["lines"] and counted["read"] == read
        other = ask("Who pays?", max_new_tokens=4, x=60, y=320)
        assert other["lines"] and counted["found"] == opened["found"] and counted["encoded"] == 1
        [page] = work.pages.values()
        assert counted["read"] - opened["read"] == len(page.texts)  # none twice from the same cells


def test_answers_of_one_batch_name_their_own_pages(reader):
    pages = [Image.open(io.BytesIO(letter(turns))).convert("RGB") for turns in (0, 2)]
    tiff, held, batches, answers = encoded(pages, "TIFF"), threading.Event(), [], {}
    work = Worker(lambda: held.wait() and reader, observe=lambda name, value: batches.append((name, value)))
    work.start()
    for page in (1, 0):
        request = ReaderRequest("ask", tiff, "t", QUESTION, budget=60, max_new_tokens=3, page=page)
        work.submit(Job(request, lambda result, last, page=page: answers.__setitem__(page, result)))
    held.set()
    work.stop()
    assert ("batch_size", 2) in batches and {page: answers[page].page for page in (0, 1)} == {0: 0, 1: 1}
    alone = reader.ask(tiff, QUESTION, budget=60, max_new_tokens=3, page=0)
    assert answers[0].lines == alone.lines and answers[0].text == alone.text
    assert answers[1].lines != alone.lines


# -- pages that lie on their side ------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[1, 2, 3])
def turned(request, reader) -> tuple[bytes, np.ndarray]:
    """A page that lies on its side or upside down, as a file and as it looks."""
    content = letter(request.param)
    assert reader.open(content).turns == request.param
    return content, np.asarray(Image.open(io.BytesIO(content)).convert("L"))


def test_lines_of_a_turned_page_lie_on_the_image_as_given(client, turned):
    content, pixels = turned
    said = client.post(
        "/v1/ask", files={"image": content}, data={"question": QUESTION, "budget": 80, "max_new_tokens": 2}
    ).json()
    assert likeness([line["text"] for line in said["lines"]], TEXTS[:4]) > 0.8  # so it was read upright
    ink, framed = pixels < 128, np.zeros(pixels.shape, bool)
    for line in said["lines"]:
        x0, y0, x1, y1 = (round(edge) for edge in line["box"])
        assert ink[y0:y1, x0:x1].mean() > 0.05, line
        framed[y0:y1, x0:x1] = True
    assert (ink & framed).sum() > 0.8 * ink.sum()


def test_cells_and_fixation_of_a_turned_page_lie_on_the_image_as_given(client, turned):
    content, pixels = turned
    height, width = pixels.shape
    fields = {"question": QUESTION, "budget": 40, "fovea": 0.5, "x": 40, "y": 350 if height > width else 300}
    look = client.post("/v1/look", files={"image": content}, data=fields).json()
    assert look["image"] == {"width": width, "height": height}
    assert look["fixations"] == [[fields["x"], fields["y"]]]
    covered, (x, y), here = np.zeros(pixels.shape, int), look["fixations"][0], []
    for token in look["tokens"]:
        x0, y0, x1, y1 = token["box"]
        assert 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height
        covered[int(y0) : int(y1), int(x0) : int(x1)] += 1
        here += [token["level"]] * (x0 <= x < x1 and y0 <= y < y1)
    assert (covered > 0).mean() == pytest.approx(look["coverage"], abs=0.02)
    levels = {token["level"] for token in look["tokens"]}
    assert min(here) == min(levels) < max(levels)
    talk = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 2}
    talk |= {"image_id": client.post("/v1/images", files={"image": content}).json()["id"]}
    own = {name: value for name, value in fields.items() if name != "question"}
    chat = client.post("/v1/chat/completions", json=talk | own).json()["homunculus"]
    ask = client.post("/v1/ask", files={"image": content}, data=fields | {"max_new_tokens": 2}).json()
    assert ask["tokens"] == look["tokens"] and chat["lines"] == ask["lines"]
    assert chat["fixations"] == ask["fixations"] == look["fixations"]


def test_the_reconstruction_of_a_turned_page_is_the_image_as_given(client, turned):
    content, pixels = turned
    shown = client.post("/v1/reconstruction", files={"image": content}, data={"question": QUESTION, "budget": 100})
    shown = np.asarray(Image.open(io.BytesIO(shown.content)).convert("L")).astype(float)
    assert shown.shape == pixels.shape
    off = [np.abs(shown - np.rot90(pixels, turns)).mean() for turns in (0, 2)]
    assert off[0] < 6 and off[0] < 0.6 * off[1]


# -- the queue -------------------------------------------------------------------------------------------------


def test_questions_of_one_budget_share_a_batch(reader, png):
    held, seen = threading.Event(), []
    work = Worker(lambda: held.wait() and reader, batch_size=4, observe=lambda name, value: seen.append((name, value)))
    work.start()
    answers: dict[int, str] = {}
    for n in range(6):
        request = ReaderRequest("ask", png, "p", f"What is field {n}?", budget=16 if n != 2 else 20, max_new_tokens=4)
        work.submit(Job(request, lambda result, last, n=n: answers.__setitem__(n, result.text) if last else None))
    held.set()
    work.stop()
    assert [value for name, value in seen if name == "batch_size"] == [4, 1, 1]
    how = {"max_new_tokens": 4}
    alone = [reader.ask(png, f"What is field {n}?", budget=16 if n != 2 else 20, **how).text for n in range(6)]
    assert [answers[n] for n in range(6)] == alone


def test_more_than_the_queue_holds_is_refused_and_what_was_taken_is_finished(reader, png):
    held, looks = threading.Event(), []
    work = Worker(lambda: held.wait() and reader, max_queue=3)
    work.start()
    for n in range(3):
        work.submit(Job(ReaderRequest("look", png, "p", f"{n}?", budget=8), lambda look, last: looks.append(look)))
    with pytest.raises(BusyError) as refused:
        work.submit(Job(ReaderRequest("look", png, "p", "?", budget=8), lambda look, last: looks.append(look)))
    assert refused.value.seconds >= 1
    ending = threading.Thread(target=work.stop)
    ending.start()
    while work.state != "ending":
        time.sleep(0.01)
    work.max_queue = 9  # there is room, but it ends
    with pytest.raises(BusyError):
        work.submit(Job(ReaderRequest("look", png, "p", "?", budget=8), lambda look, last: None))
    held.set()
    ending.join()
    assert [look.glance.question for look in looks] == ["0?", "1?", "2?"]
    assert all(len(json.loads(look.to_json())["tokens"]) == 8 for look in looks)


# -- what is kept ----------------------------------------------------------------------------------------------


def test_a_look_its_picture_and_its_answer_choose_cells_once(reader, png):
    work = Worker(lambda: reader)
    work.start()
    request = ReaderRequest("look", png, "p", QUESTION, budget=24, max_new_tokens=4)
    first, again, said = run(work, [request, request, replace(request, kind="ask")])
    assert again.glance is first.glance is said.glance
    others: list[dict] = [
        {"question": "Who?"}, {"budget": 25}, {"allocator": "dag"}, {"relevance": "saliency"}, {"image_id": "q"},
        {"fixation": (9.0, 9.0)}, {"options": (("fovea", 0.5),)},
    ]  # fmt: skip
    looks = run(work, [replace(request, **other) for other in others])
    assert len({id(look.glance) for look in [first, *looks]}) == 8
    assert run(work, [request])[0].glance is first.glance
    work.stop()


@pytest.mark.parametrize("allocator", list_allocators())
def test_what_is_kept_is_what_would_be_chosen_anew(reader, png, allocator):
    """Whatever was asked before, and whoever looked in between."""
    request = ReaderRequest("look", png, "p", QUESTION, allocator, budget=24, max_new_tokens=4)
    work, fresh = Worker(lambda: reader), Worker(lambda: reader)
    for each in (work, fresh):
        each.start()
    first, *_, last, said = run(work, [request, replace(request, kind="ask"), replace(request, budget=9), request,
                                       replace(request, kind="ask")])  # fmt: skip
    anew, asked = run(fresh, [request, replace(request, kind="ask")])
    assert last.glance is first.glance and last.to_json() == anew.to_json()
    assert last.reconstruct().equal(anew.reconstruct())
    assert (said.text, said.confidence, said.lines) == (asked.text, asked.confidence, asked.lines)
    for each in (work, fresh):
        each.stop()


def test_no_more_looks_and_pages_are_kept_than_there_is_room_for(reader, png, counted):
    work = Worker(lambda: reader)
    work.start()
    run(work, [ReaderRequest("look", png, "p", f"{n}?", budget=8) for n in range(MAX_GLANCES + 5)])
    [page] = work.pages.values()
    assert len(page.glances) == MAX_GLANCES
    once = counted["found"]  # searches for one page
    work.pages.max_size = 2 * 416 * 384
    run(work, [ReaderRequest("look", png, name, "?", budget=8) for name in ("q", "p", "r")])
    assert list(work.pages) == [("p", 0), ("r", 0)] and work.pages["p", 0] is page
    work.pages.max_size = 1
    run(work, [ReaderRequest("look", png, "q", "?", budget=8)])
    assert list(work.pages) == [("q", 0)]
    assert counted["found"] == 4 * once > 0
    work.stop()


# -- errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ({"files": {"image": b""}}, 422, ""),
        ({"files": {"image": b"not an image"}}, 422, ""),
        ({"data": {"question": "x"}}, 415, "multipart"),
        ({"files": {"picture": b"x"}}, 422, "name image"),
        ({"json": {"image": "http://example.com/a.png"}}, 422, "not fetched"),
        ({"json": {"image": "data:image/png;base64,@@@"}}, 422, "base64"),
        ({"json": [1]}, 422, "data URL"),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 400, "no JSON"),
        ({"content": b"x", "headers": {"content-type": "text/plain"}}, 415, "multipart"),
    ],
)
def test_wrong_requests_are_told_in_a_sentence(client, how, status, words):
    answer = client.post("/v1/look", **how)
    assert answer.status_code == status, answer.text
    message = answer.json()["error"]["message"]
    assert words in message and "\n" not in message and "Traceback" not in message
    assert client.get("/healthz").json()["state"] == "ready"


@pytest.mark.parametrize(
    "words",
    [{"budget": 0}, {"budget": "many"}, {"allocator": "none"}, {"relevance": "none"}, {"page": 7}, {"nothing": 1}],
)
def test_wrong_words_are_told_in_a_sentence(client, png, words):
    answer = client.post("/v1/look", files={"image": png}, data=words)
    assert answer.status_code == 422 and len(answer.json()["error"]["message"]) > 10


def test_limits_and_token(reader, png):
    config = ApiConfig(token="secret", limits=Limits(upload=1000))
    with testclient.TestClient(create_app(Worker(lambda: reader), config)) as client:
        refused = client.post("/v1/look", files={"image": png})
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        mine = {"authorization": "Bearer secret"}
        assert client.post("/v1/look", files={"image": png}, headers=mine).status_code == 413
        assert client.get("/healthz").status_code == 200 and client.get("/v1/models", headers=mine).status_code == 200
        assert b"homunculus_requests_total" in client.get("/metrics").content


def test_a_reader_that_cannot_be_loaded_is_told(png, caplog):
    def broken():
        raise RuntimeError("no weights")

    with testclient.TestClient(create_app(Worker(broken))) as client:
        while client.get("/healthz").json()["state"] == "loading":
            time.sleep(0.01)
        assert client.get("/healthz").status_code == 503
        said = client.post("/v1/look", files={"image": png})
        assert said.status_code == 503 and "no weights" in said.json()["error"]["message"]
    assert '{"failure": "no weights"}' in caplog.text


def test_a_fault_of_the_service_is_one_sentence_and_its_log_says_more(reader, png, caplog, monkeypatch):
    monkeypatch.setattr(Worker, "_page", lambda *_: 1 / 0)
    with testclient.TestClient(create_app(Worker(lambda: reader))) as client:
        said = client.post("/v1/look", files={"image": png}, headers={"x-request-id": "mine"})
    assert said.status_code == 500 and said.headers["x-request-id"] == "mine"
    assert said.json()["error"]["message"].endswith("its log says more under mine")
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("path", ["/nothing", "/v1/nothing", "/static/../app.py", "/static/%2e%2e/app.py"])
def test_what_is_not_there_is_told_like_everything_else(client, path):
    said = client.get(path)
    assert said.status_code == 404 and said.json()["error"]["message"] == "there is nothing at this address"
    assert client.put("/v1/look").status_code == 405 and client.put("/v1/look").headers["allow"] == "POST"


def test_an_id_that_is_cut_in_a_blank_is_still_an_id(client):
    said = client.get("/healthz", headers={"x-request-id": "a" * 63 + " b"})
    assert said.headers["x-request-id"] == "a" * 63
