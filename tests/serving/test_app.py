"""The application under more than it can do, with an engine that answers when it is told to."""

import asyncio
import logging
import threading

import httpx
import pytest
from serving.held import Held, ask, held_models

from resmlp_mt.serving import app as app_module
from resmlp_mt.serving import batcher
from resmlp_mt.serving.app import build_app
from resmlp_mt.serving.batcher import Desk
from resmlp_mt.serving.front import Discreet
from resmlp_mt.serving.metrics import Metrics
from resmlp_mt.serving.settings import Limits, Settings


class Watched(Desk):
    """A desk that says when another request was queued, or waits to be read."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.queued, submit = 0, self.batcher.submit

        def count(job):
            self.queued += 1
            return submit(job)

        self.batcher.submit = count
        Watched.last = self

    def count_arrived(self):
        return self.queued + self.long


@pytest.fixture
def asked(monkeypatch):
    """asked(*texts, translator, **limits): the responses to requests sent one after the other.

    A text may be all of a request. They are a page's, of another origin.
    """
    monkeypatch.setattr(app_module, "Desk", Watched)

    async def ask_all(translator, texts, limits, then):
        held = build_app(held_models(translator), Settings(limits=limits, origins=("*",)))
        transport = httpx.ASGITransport(held, raise_app_exceptions=False)
        headers = {"Origin": "https://a.example"}
        base = {"transport": transport, "base_url": "http://localhost", "headers": headers}
        async with httpx.AsyncClient(**base) as client:
            requests = []
            for text in texts:
                body = text if isinstance(text, dict) else {"text": text}
                before = Watched.last.count_arrived()
                requests.append(asyncio.create_task(client.post("/translate", json=body)))
                if len(requests) == 1:  # the worker is busy with the first
                    assert await asyncio.to_thread(translator.at_work.acquire, timeout=1800)
                while not (requests[-1].done() or Watched.last.count_arrived() > before):
                    await asyncio.sleep(0.001)
            then(translator)
            return await asyncio.gather(*requests)

    def let_go(translator):
        translator.let_go.set()

    def ask_held(*texts, translator=None, then=let_go, **limits):
        translator = translator or Held()
        try:
            return asyncio.run(ask_all(translator, texts, Limits(**limits), then))
        finally:
            translator.let_go.set()

    return ask_held


def test_a_full_queue_is_answered_with_429_and_the_others_as_ever(asked):
    responses = asked("busy", ["a", "b|c"], "late", queue_size=3)
    assert [r.status_code for r in responses] == [200, 200, 429]
    assert (
        responses[2].headers["Retry-After"] == "1" and "try again" in responses[2].json()["error"]
    )


def test_long_requests_wait_for_one_another_and_not_for_ever(asked, monkeypatch):
    class Slow(Held):
        def split(self, text, **reading):
            assert len(text) <= 10 or self.let_go.wait(60)
            return super().split(text)

    monkeypatch.setattr(batcher, "_LONG", 30)
    monkeypatch.setattr(batcher, "_LONG_WAITING", 2)
    held = {"text": "aaaa", "glossary": {"a": "b"}}  # terms are looked for: it counts ten times
    texts = ["busy", *(letter * 40 for letter in "abc"), held, "\n\na", "short"]
    responses = asked(*texts, translator=Slow())
    assert [r.status_code for r in responses] == [200, 200, 200, 429, 429, 429, 200]


def test_what_takes_longer_than_a_full_queue_is_refused_before_it_begins(asked):
    costly = {"beam": 20, "nbest": 20, "text": "x" * 25, "alternatives": True}
    long = {"beam": 20, "text": "|".join(["x" * 99] * 2)}
    responses = asked("busy", costly, long, "a" * 100, queue_size=10)
    assert [r.status_code for r in responses] == [200, 422, 422, 200]
    assert all("2,000 is the most" in r.json()["error"] for r in responses[1:3])


def test_keys_are_looked_at_before_a_body_is_read(tmp_path):
    (tmp_path / "keys").write_text("ours\n")
    read, brackets = [], b"[" * 900_000

    async def body():
        read.append(True)
        yield brackets

    def status(content, **key):
        sent = {"content": content, "headers": key | {"Content-Type": "text/json"}}
        return ask(Settings(keys=tmp_path / "keys"), ("/translate", sent))[0].status_code

    assert status(body(), Authorization="Bearer other") == 403 and not read
    assert status(brackets) == 403  # it is read, and not parsed
    assert status(brackets, Authorization="Bearer ours") == 413


@pytest.mark.parametrize("blanks", [0, 5000])
def test_a_key_in_a_body_is_counted_wherever_that_is_read(tmp_path, blanks):
    (tmp_path / "keys").write_text("ours 1\n")
    body = {"q": "a" + " " * blanks, "source": "de", "target": "en", "api_key": "ours"}
    responses = ask(Settings(keys=tmp_path / "keys"), *[("/translate", {"json": body})] * 2)
    assert [response.status_code for response in responses] == [200, 429]


def test_large_bodies_are_parsed_beside_the_event_loop(asked, monkeypatch):
    readers, read = [], app_module.read_fields

    def watch(*arguments):
        readers.append(threading.current_thread() is threading.main_thread())
        return read(*arguments)

    monkeypatch.setattr(app_module, "read_fields", watch)
    assert [r.status_code for r in asked("busy", "a" * 5000, ["b"] * 3000)] == [200, 200, 413]
    assert readers == [True, False, False]


def test_an_answer_in_a_hundred_ends_its_connection():
    responses = ask(Settings(), *["/healthz"] * 300)
    assert [response.headers.get("Connection") for response in responses].count("close") == 3


@pytest.mark.parametrize(
    "large",
    [
        {"text": "a|" + " " * 900 + "b", "beam": 4, "nbest": 4},  # blanks that are not translated
        {"text": "é" * 1000},  # of two bytes each, in the source and the translation
        {"q": "a" + "<br>" * 300, "source": "de", "target": "en", "format": "html"}
        | {"alternatives": 3},
    ],
)
def test_no_answer_is_larger_than_the_limit(asked, large):
    _, small, refused = asked("busy", "e" * 1000, large, answer_bytes=3000)
    assert small.status_code == 200 and refused.status_code == 413, refused.text
    assert "larger than 3,000 bytes" in refused.json()["error"]


def test_what_takes_too_long_is_answered_with_503(asked):
    def let_a_minute_pass(_):
        loop = asyncio.get_running_loop()
        now = loop.time
        loop.time = lambda: now() + 60

    responses = asked("busy", "late", then=let_a_minute_pass, timeout=60)
    assert [r.status_code for r in responses] == [503, 503]
    assert "60 seconds" in responses[0].json()["error"] and responses[0].headers["Retry-After"]


def test_what_fails_is_answered_with_500_counted_so_and_the_others_as_ever(
    asked, caplog, monkeypatch
):
    counted = []
    monkeypatch.setattr(Metrics, "count", lambda self, path, status, _: counted.append(status))
    responses = asked("busy", "poison", "good")
    assert [r.status_code for r in responses] == [200, 500, 200]
    assert "poison" not in responses[1].text and "log" in responses[1].json()["error"]
    assert "a batch of 2 texts failed" in caplog.text
    assert sorted(counted) == ["200", "200", "500"]
    # A page that may read the others may read this one too.
    assert {r.headers.get("Access-Control-Expose-Headers") for r in responses} == {"Retry-After"}
    assert {r.headers.get("Access-Control-Allow-Origin") for r in responses} == {"*"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("[::1]:8080", 200),
        ("192.0.2.7", 200),  # an address is no name that somebody could point here
        ("evil.example.com", 400),
        ("127.0.0.1.evil.example.com:8080", 400),
        ("[::1", 400),
    ],
)
def test_requests_for_other_hosts_are_refused(host, status):
    settings = Settings(hosts=("localhost", "Translate.example.org"))
    assert ask(settings, "/healthz", Host=host)[0].status_code == status


@pytest.mark.parametrize("allowed", [(), ("https://a.example",), ("*",)])
def test_browsers_let_pages_read_answers_only_from_where_it_is_asked_for(allowed):
    for origin in ("https://a.example", "https://b.example"):
        (response,) = ask(Settings(origins=allowed), "/healthz", Origin=origin)
        may_read = "Access-Control-Allow-Origin" in response.headers
        assert may_read == bool({origin, "*"} & {*allowed})


@pytest.mark.parametrize(
    ("client", "shown"),
    [
        ("192.0.2.7:80", "192.0.2.7:80"),
        ("2001:db8::7:0", "2001:db8::7:0"),
        ('fe80::1%"\n GET /secret:0', "-"),
        ("", "-"),
    ],
)
def test_the_access_log_has_no_words_of_strangers(client, shown):
    asked = client, "POST", "/translate?q=secret&api_key=key", "1.1", 200
    record = logging.LogRecord("a", 20, "", 0, '%s - "%s %s HTTP/%s" %d', asked, None)
    assert Discreet().filter(record)
    assert record.getMessage() == f'{shown} - "POST /translate HTTP/1.1" 200'
