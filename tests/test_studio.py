"""The service: looks and answers over HTTP, one sentence for whatever is wrong, and a line that does not grow."""

import threading
import time
from dataclasses import replace

import pytest

from homunculus.allocators import list_allocators
from homunculus.studio.app import create_app
from homunculus.studio.service import Settings
from homunculus.studio.uploads import Limits
from homunculus.studio.work import GLANCES, BusyError, Job, Wish, Work
from studio import data_url, noise, small_reader

testclient = pytest.importorskip("starlette.testclient")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def png() -> bytes:
    return noise()


@pytest.fixture(scope="module")
def client(reader):
    with testclient.TestClient(create_app(Work(lambda: reader))) as client:
        yield client


def test_a_look_comes_from_a_form_and_from_json_alike(client, png):
    words = {"question": "What is the total?", "budget": 24, "allocator": "dag"}
    form = client.post("/v1/look", files={"image": ("../../etc/passwd", png, "image/png")}, data=words)
    assert form.status_code == 200, form.text
    said = form.json()
    assert len(said["tokens"]) == 24 and said["image"] == {"width": 320, "height": 256} and said["allocator"] == "dag"
    assert client.post("/v1/look", json=words | {"image": data_url(png)}).json() == said
    assert form.headers["x-request-id"]


def test_an_answer_is_the_reader_s_own(client, reader, png):
    words = {"question": "What is the total?", "budget": 24, "most": 5}
    said = client.post("/v1/ask", files={"image": png}, data=words).json()
    own = reader.ask(png, "What is the total?", budget=24, most=5)
    assert said["answer"] == own.text and said["confidence"] == pytest.approx(own.confidence, abs=1e-4)
    assert len(said["tokens"]) == 24 and said["seconds"]


def test_questions_of_one_budget_are_answered_together(reader, png):
    held, seen = threading.Event(), []
    work = Work(lambda: held.wait() and reader, together=4, watch=lambda name, value: seen.append((name, value)))
    work.start()
    answers: dict[int, str] = {}
    for n in range(6):
        wish = Wish("ask", png, "p", f"What is field {n}?", budget=16 if n != 2 else 20, most=4)
        work.submit(Job(wish, lambda what, last, n=n: answers.__setitem__(n, what.text) if last else None))
    held.set()
    work.stop()
    assert [value for name, value in seen if name == "together"] == [4, 1, 1]
    alone = [reader.ask(png, f"What is field {n}?", budget=16 if n != 2 else 20, most=4).text for n in range(6)]
    assert [answers[n] for n in range(6)] == alone


def test_more_than_the_line_holds_is_refused_and_what_was_taken_is_finished(reader, png):
    held, told = threading.Event(), []
    work = Work(lambda: held.wait() and reader, waiting=3)
    work.start()
    for n in range(3):
        work.submit(Job(Wish("look", png, "p", f"{n}?", budget=8), lambda what, last: told.append(what)))
    with pytest.raises(BusyError) as refused:
        work.submit(Job(Wish("look", png, "p", "?", budget=8), lambda what, last: told.append(what)))
    assert refused.value.seconds >= 1
    ending = threading.Thread(target=work.stop)
    ending.start()
    while work.state != "ending":
        time.sleep(0.01)
    work.waiting = 9  # there is room, but it ends
    with pytest.raises(BusyError):
        work.submit(Job(Wish("look", png, "p", "?", budget=8), lambda what, last: None))
    held.set()
    ending.join()
    assert len(told) == 3 and all(len(glance.selection.boxes[0]) == 8 for glance in told)


def done(work: Work, wishes: list[Wish]) -> list:
    """What comes of wishes, one after the other."""
    told: list = [None] * len(wishes)
    for n, wish in enumerate(wishes):
        ready = threading.Event()
        work.submit(Job(wish, lambda what, last, n=n, ready=ready: (told.__setitem__(n, what), last and ready.set())))
        assert ready.wait(60)
    return told


def test_a_look_its_picture_and_its_answer_choose_cells_once(reader, png):
    work = Work(lambda: reader)
    work.start()
    wish = Wish("look", png, "p", "What is the total?", budget=24, most=4)
    first, again, said = done(work, [wish, wish, replace(wish, kind="ask")])
    assert again is first and said.glance is first
    ways: list[dict] = [
        {"question": "Who?"}, {"budget": 25}, {"allocator": "dag"}, {"relevance": "saliency"}, {"mark": "q"},
        {"fixation": (9.0, 9.0)}, {"options": (("fovea", 0.5),)},
    ]  # fmt: skip
    looks = done(work, [replace(wish, **way) for way in ways])
    assert len({id(look) for look in [first, *looks]}) == 8
    assert done(work, [wish])[0] is first
    work.stop()


@pytest.mark.parametrize("allocator", list_allocators())
def test_what_is_remembered_is_what_would_be_chosen_anew(reader, png, allocator):
    """Whatever was asked before, and whoever looked in between."""
    wish = Wish("look", png, "p", "What is the total?", allocator, budget=24, most=4)
    work, fresh = Work(lambda: reader), Work(lambda: reader)
    for each in (work, fresh):
        each.start()
    first, *_, last, said = done(work, [wish, replace(wish, kind="ask"), replace(wish, budget=9), wish,
                                        replace(wish, kind="ask")])  # fmt: skip
    (anew,) = done(fresh, [replace(wish, kind="ask")])
    assert last is first and last.to_json() == anew.glance.to_json()
    assert last.reconstruct().equal(anew.glance.reconstruct())
    assert (said.text, said.confidence) == (anew.text, anew.confidence)
    for each in (work, fresh):
        each.stop()


def test_no_more_looks_are_remembered_than_there_is_room_for(reader, png, monkeypatch):
    work = Work(lambda: reader)
    work.start()
    done(work, [Wish("look", png, "p", f"{n}?", budget=8) for n in range(GLANCES + 5)])
    assert len(work.glances) == GLANCES and len(work.scenes) == 1
    monkeypatch.setattr("homunculus.studio.work.PIXELS", 320 * 256 + 1)
    done(work, [Wish("look", png, "q", "?", budget=8)])
    assert [key[0] for key in work.glances] == ["q"] and [key[0] for key in work.scenes] == ["q"]
    work.stop()


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
    settings = Settings(token="secret", limits=Limits(upload=1000))
    with testclient.TestClient(create_app(Work(lambda: reader), settings)) as client:
        refused = client.post("/v1/look", files={"image": png})
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        mine = {"authorization": "Bearer secret"}
        assert client.post("/v1/look", files={"image": png}, headers=mine).status_code == 413
        assert client.get("/healthz").status_code == 200 and client.get("/v1/models", headers=mine).status_code == 200
        assert b"homunculus_requests_total" in client.get("/metrics").content


def test_a_reader_that_cannot_be_loaded_is_told(png, caplog):
    def broken():
        raise RuntimeError("no weights")

    with testclient.TestClient(create_app(Work(broken))) as client:
        while client.get("/healthz").json()["state"] == "loading":
            time.sleep(0.01)
        assert client.get("/healthz").status_code == 503
        said = client.post("/v1/look", files={"image": png})
        assert said.status_code == 503 and "no weights" in said.json()["error"]["message"]
    assert '{"failure": "no weights"}' in caplog.text


def test_a_fault_of_the_service_is_one_sentence_and_its_log_says_more(reader, png, caplog, monkeypatch):
    monkeypatch.setattr(Work, "_scene", lambda *_: 1 / 0)
    with testclient.TestClient(create_app(Work(lambda: reader))) as client:
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
