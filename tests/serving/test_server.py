"""resmlp-mt serve, as a process, asked over loopback."""

import json
import re
import socket
import time
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from serving.conftest import ask, serving

from resmlp_mt.cli.parser import build_parser
from resmlp_mt.errors import UserError
from resmlp_mt.serving.settings import Limits

CAPTIONS = [
    "A man rides a bike.",
    "",
    "Two dogs play in the snow.",
    "A woman in a red dress is standing in front of a large building.",
    "Three children are sitting on a bench and eating ice cream.",
]


def answer(server, **body):
    response = ask(server, **body)
    assert response.status_code == 200, response.text
    return response.json()["results"]


LINES, LOUD = "A man rides a bike. A dog sleeps.\n\nTwo dogs play. \n", CAPTIONS[2].upper()


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (LINES, {}),
        (LINES, {"split_sentences": False}),
        (LOUD, {}),
        (LOUD, {"prefix": "ZWEI"}),
        (LOUD, {"recase": False}),
    ],
)
def test_answers_are_those_of_python(server, translator, text, asked):
    (found,) = answer(server, text=text, **asked)
    assert found["translations"][0]["text"] == translator.translate(text, **asked)


def test_alternatives_of_what_is_in_capitals_are_too(server):
    asked = {"alternatives": True, "beam": 3, "nbest": 3}
    loud, plain = (answer(server, text=t, **asked)[0] for t in (LOUD, CAPTIONS[2]))
    texts = [[t["text"] for t in found["translations"]] for found in (loud, plain)]
    assert texts[0] == [text.upper() for text in texts[1]]


def test_the_best_and_their_attention_are_those_of_python(server, translator):
    texts = [*CAPTIONS, " ".join(CAPTIONS * 20)]  # the last is translated in parts
    asked = {"beam": 4, "nbest": 3, "lenpen": 1.5, "attention": True}
    found = answer(server, text=texts, **asked)
    assert [result["source"] for result in found] == texts
    for result, best in zip(found, translator.translate_nbest(texts, **asked), strict=True):
        for ours, theirs in zip(result["translations"], best, strict=True):
            assert ours["text"] == theirs.text
            assert ours["score"] == pytest.approx(theirs.score, abs=2e-4)
            for shown, known in zip(ours.get("attention", []), theirs.attention, strict=True):
                for name in ("source", "target", "source_words", "target_words"):
                    assert shown[name] == getattr(known, name)
                np.testing.assert_allclose(shown["weights"], known.weights, atol=1e-3)
    assert len(best[0].attention) == 80


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ("{'text': 'A dog.'}", 400, "char 1"),
        ("[" * 100_000, 400, "JSON"),
        ('{"text": "Grün"}'.encode("latin-1"), 400, "0xfc in position 12"),
        ('{"text": "a", "beam": 1%s}' % ("0" * 5000), 400, "digits"),
        (json.dumps(dict.fromkeys(map(str, range(9000)))), 400, "50 fields"),
        ('{"text": "a", "beam": 1000}', 422, "beam 1000 "),
        ('{"text": "a", "beam": 2, "nbest": 3}', 422, "nbest 3 "),
        ('{"text": "a", "lenpen": NaN}', 422, "lenpen: "),
        ('{"text": "a", "%s": 1}' % ("x" * 900_000), 422, "xxx: "),
        ('{"text": "a", "prefix": "%s"}' % ("ab " * 300_000), 422, "prefix: "),
        ('{"text": "a", "prefix": "%s"}' % ("ab " * 3000), 422, "subwords"),
        ('{"text": "a", "prefix": "%s", "alternatives": true}' % ("ab " * 3000), 422, "subwords"),
        (r'{"text": "a", "prefix": "ab \u2603"}', 422, "cannot say"),
        (r'{"text": "a", "prefix": "ab \u2603", "alternatives": true}', 422, "cannot say"),
        (json.dumps({"text": ["a", 1] * 1000}), 422, "text.1: "),
        (rb'{"text": "a", "source": "\ud800"}', 422, "\ufffd"),
        (json.dumps({"text": ["A dog. " * 2001]}), 413, "2,000"),
        (json.dumps({"text": "\u2028" * 4_001}), 413, "4,001 lines"),
        ('{"text": "a", "no_repeat_ngram_size": 1}', 422, "no_repeat_ngram_size 1"),
        ('{"text": "a", "glossary": {"x": "\\u2603"}}', 422, "glossary: 'x' -> '\u2603'"),
        ('{"text": "a", "glossary": {"red  car": "x", "red car": "y"}}', 422, "'red car'"),
        ('{"text": "a", "glossary": {"%s": "Rad"}}' % ("x" * 101), 422, "glossary.xxxx"),
        ('{"text": "a", "glossary": {"x y": ["Rad"]}}', 422, "glossary.x y: "),
        ('{"text": "a", "glossary": {"a": "b"}, "prefix": "Ein"}', 422, "glossary"),
        ('{"text": "A dog.", "glossary": {"dog": "%s"}, "beam": 32}' % ("Rad " * 9), 422, "'A dog"),
        (json.dumps({"text": "a", "glossary": {str(i): "x" for i in range(1001)}}), 413, "1,001"),
        (json.dumps({"text": "a" * 100_001, "glossary": {"a": "b"}}), 413, "100,001"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(server, body, status, named):
    headers = {"Content-Type": "application/json"}
    response = httpx.post(f"{server}/translate", content=body, headers=headers)
    assert response.status_code == status and named in response.json()["error"], response.text
    assert len(response.content) < 500


def test_other_mistakes_are_answered_in_json_too(server):
    for response, status, said in (
        (httpx.post(f"{server}/translate", content='{"text": "a"}'), 400, "Content-Type"),
        (httpx.get(f"{server}/translate"), 405, "Method Not Allowed"),
        (httpx.get(f"{server}/nowhere"), 404, "Not Found"),
    ):
        assert response.status_code == status and said in response.json()["error"]


# From every plane, surrogates and unassigned ones too.
anything = st.text(st.integers(0, 0x10FFFF).map(chr), max_size=200)
scripts = "a-z äöüß жук שלום नमस्ते 你好世界 こんにちは 👩‍👩‍👧🇩🇪 ȩ́ȩ́ {{x}} <!-- <b>".split()
mixed = st.lists(st.sampled_from(scripts), min_size=1, max_size=8).map("".join)
controls = st.text("\0\x01\x08\t\x0b\x0c\r\x1b\x7f\x85\xad\u200b\u202e\u2028\ufeff\uffff")
pieces = st.sampled_from(["x", "ab", "ſ", "漢", "👍🏽", "\u0301", "-", "&amp;"])
long_word = st.builds(lambda piece, count: piece * count, pieces, st.integers(100, 600))
line = st.one_of(anything, mixed, controls, long_word)
document = st.lists(st.lists(line, max_size=4).map(" ".join), max_size=4)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=HealthCheck)
@given(lines=document)
def test_hostile_documents_are_translated_line_by_line(server, translator, lines):
    body = json.dumps({"text": [*lines, CAPTIONS[2]], "beam": 1})  # surrogates leave escaped
    headers = {"Content-Type": "application/json"}
    response = httpx.post(f"{server}/translate", content=body, headers=headers)
    *found, last = [result["translations"][0] for result in response.json()["results"]]
    # Whatever its neighbours are.
    assert last["text"] == translator.translate(CAPTIONS[2], beam=1)
    for text, translation in zip(lines, found, strict=True):
        translation["text"].encode()  # no half of a surrogate pair
        assert translation["text"].count("\n") in (0, text.count("\n"))
        assert translation["score"] <= 0
        assert text.strip() or translation["text"] == ""


def test_health_and_metrics(server):
    assert httpx.get(f"{server}/healthz").json()["status"] == "ok"

    def read():
        text = httpx.get(f"{server}/metrics").text
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        return {" ".join([s.name, *sorted(s.labels.values())]): s.value for s in samples}

    before = read()
    answer(server, text=CAPTIONS)
    ask(server, text=1)
    httpx.get(f"{server}/nowhere/{time.time()}")
    after = read()
    for key, more in {
        "resmlp_requests_total /translate 200": 1,
        "resmlp_requests_total /translate 422": 1,
        "resmlp_requests_total 404 other": 1,
        "resmlp_batch_texts_sum": len(CAPTIONS) - 1,  # one is blank
        "resmlp_batch_texts_count": 1,
    }.items():
        assert after[key] - before.get(key, 0) == more, key
    assert after["resmlp_queue_texts"] == 0 and after["process_resident_memory_bytes"] > 1e8


@pytest.mark.parametrize("path", ["/", "/page/index.html", "/healthz", "/metrics", "/languages"])
def test_head_is_get_without_the_body(server, path):
    head, get = httpx.head(server + path), httpx.get(server + path)
    assert (head.status_code, head.content) == (get.status_code, b"") == (200, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


def test_browsers_ask_whether_the_page_has_changed(server):
    page = httpx.get(f"{server}/")
    parts = re.findall(r'(?:src|href)="(page/[^"]+)"', page.text)
    assert len(parts) == 2  # its script and its style
    for path in ("", "page/index.html", *parts):
        found = httpx.get(f"{server}/{path}")
        for name in ("Cache-Control", "Content-Security-Policy"):
            assert found.headers[name] == page.headers[name], path
        assert found.headers["Cache-Control"] == "no-cache"


def test_the_interface_is_documented_without_a_network(server):
    described = httpx.get(f"{server}/openapi.json").json()
    others = {"/detect", "/languages", "/health", "/frontend/settings"}
    assert set(described["paths"]) == {"/translate", "/healthz", "/metrics"} | others
    assert {"200", "400", "413", "422", "429", "503"} <= set(
        described["paths"]["/translate"]["post"]["responses"]
    )
    for path in ("/docs", "/"):
        text = httpx.get(server + path).text
        for link in re.findall(r'(?:src|href)="([^"]+)"', text):
            assert not link.startswith(("http:", "https:", "//")), link
            if not link.startswith("data:"):
                assert httpx.get(f"{server}/{link.lstrip('/')}").status_code == 200, link


def test_settings_are_those_of_the_flags(monkeypatch, tmp_path):
    (tmp_path / "keys").write_text("a\n")
    limits = {"queue_size": 600, "max_request_bytes": 50_000, "max_beam": 20, "batch_size": 1}
    limits |= {"max_answer_bytes": 200_000, "timeout": 1700.0}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
    flags += ["--threads=3", "--allow-host=x.example.org", "--allow-host=mt.example.org"]
    flags += ["--allow-origin=*", f"--api-keys={tmp_path / 'keys'}", "--requests-per-minute=7"]
    supervise = lambda settings, *others: (settings, others[1:])  # noqa: E731
    monkeypatch.setattr("resmlp_mt.serving.worker.supervise", supervise)
    arguments = build_parser().parse_args(["serve", "en-de", "--port=0", "--access-log", *flags])
    found, others = arguments.run(arguments)
    assert found.limits == Limits(**{k.removeprefix("max_"): v for k, v in limits.items()})
    assert (found.models, found.threads, found.origins) == (("en-de",), 3, ("*",))
    assert {"localhost", "x.example.org", "mt.example.org"} <= {*found.hosts}
    assert (found.keys, found.a_minute, others) == (tmp_path / "keys", 7, (1, True))


@pytest.fixture
def own_server():
    """The address of a server that nobody else has left."""
    with serving("multi30k-en-de") as (address, _):
        yield address


def test_who_left_waits_for_nothing(own_server):
    server = own_server

    def read(name):
        metrics = httpx.get(f"{server}/metrics").text
        return sum(map(float, re.findall(rf"^{name} ([\d.]+)$", metrics, re.M)))

    before = read("resmlp_batch_texts_sum")
    body = json.dumps({"text": CAPTIONS[-1:] * 400, "beam": 20})
    with closing(HTTPConnection(urlsplit(server).netloc)) as client:
        client.request("POST", "/translate", body, {"Content-Type": "application/json"})
        while not read("resmlp_queue_texts"):
            time.sleep(0.01)
    assert answer(server, text="A dog.")[0]["translations"][0]["text"]
    assert read("resmlp_batch_texts_sum") - before < 400
    assert read('resmlp_requests_total{path="/translate",status="499"}') == 1


@pytest.mark.parametrize(
    "flags",
    [
        "--port 70000",
        "--metrics-port 70000",
        *(f"--{name} 0" for name in ("queue-size", "batch-size", "max-beam", "workers", "timeout")),
        "--timeout inf",
        "--host nowhere.invalid --port 0",
        # They would be taken, and match nothing that a browser sends.
        "--allow-host mt.example.org:8080",
        "--allow-host *.example.org",
        "--allow-origin https://www.example.org/",
        "--allow-origin https://*.example.org",
        "--requests-per-minute -1",
        # These are well, and the first flag is refused, since it needs keys.
        "--requests-per-minute 1 --allow-origin null --allow-origin * --allow-origin "
        "http://localhost:3000 --allow-host ::1 --allow-host Käse_1",
        "--api-keys nowhere",
    ],
)
def test_impossible_flags_are_refused(flags, capsys):
    with pytest.raises((UserError, SystemExit)) as refused:
        arguments = build_parser().parse_args(["serve", "multi30k-en-de", *flags.split()])
        arguments.run(arguments)
    said = f"{refused.value}{capsys.readouterr().err}"
    assert flags.split()[0].removeprefix("--api-keys") in said


def test_a_port_that_is_taken_and_a_model_that_is_not_there_are_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for model, said in ("multi30k-en-de", f"--port {port}"), ("nothing", "nothing"):
            arguments = build_parser().parse_args(["serve", model, "--port", port])
            with pytest.raises(UserError, match=said):
                arguments.run(arguments)
