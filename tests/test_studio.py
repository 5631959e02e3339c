"""The service: looks and answers over HTTP, one sentence for whatever is wrong, and a line that does not grow."""

import base64
import io
import threading
import time

import pytest
from PIL import Image

from homunculus import load_reader
from homunculus.studio.app import Settings, create_app
from homunculus.studio.uploads import Limits
from homunculus.studio.work import BusyError, Job, Wish, Work
from readers import tiny_reader

testclient = pytest.importorskip("starlette.testclient")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(*tiny_reader(tmp_path_factory.mktemp("reader")))


@pytest.fixture(scope="module")
def png() -> bytes:
    file = io.BytesIO()
    Image.effect_noise((320, 256), 60).convert("RGB").save(file, "PNG")
    return file.getvalue()


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
    url = "data:image/png;base64," + base64.b64encode(png).decode()
    assert client.post("/v1/look", json=words | {"image": url}).json() == said
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
    time.sleep(0.05)
    with pytest.raises(BusyError):
        work.submit(Job(Wish("look", png, "p", "?", budget=8), lambda what, last: None))
    held.set()
    ending.join()
    assert len(told) == 3 and all(len(glance.selection.boxes[0]) == 8 for glance in told)


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
        assert client.post("/v1/look", files={"image": png}).status_code == 401
        mine = {"authorization": "Bearer secret"}
        assert client.post("/v1/look", files={"image": png}, headers=mine).status_code == 413
        assert client.get("/healthz").status_code == 200 and client.get("/v1/models", headers=mine).status_code == 200
        assert b"homunculus_requests_total" in client.get("/metrics").content


def test_a_reader_that_cannot_be_loaded_is_told(png):
    def broken():
        raise RuntimeError("no weights")

    with testclient.TestClient(create_app(Work(broken))) as client:
        time.sleep(0.1)
        assert client.get("/healthz").status_code == 503
        assert "no weights" in client.post("/v1/look", files={"image": png}).json()["error"]["message"]
