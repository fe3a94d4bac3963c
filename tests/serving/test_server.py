"""resmlp-mt serve, as a process, asked over loopback."""

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from cli.commands import assert_refused, run
from prometheus_client.parser import text_string_to_metric_families
from serving.conftest import serving

from resmlp_mt import Translator
from resmlp_mt.cli import build_parser
from resmlp_mt.errors import UserError
from resmlp_mt.serving.server import listen

CAPTIONS = [
    "A man rides a bike.",
    "",
    "Two dogs play in the snow.",
    "A woman in a red dress is standing in front of a large building.",
    "Three children are sitting on a bench and eating ice cream.",
]


def ask(server, **body):
    return httpx.post(f"{server}/translate", json=body, timeout=60)


def answer(server, **body):
    response = ask(server, **body)
    assert response.status_code == 200, response.text
    return response.json()["results"]


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de")


def test_a_text_keeps_its_lines_and_its_sentences_are_translated_apart(server, translator):
    text = "A man rides a bike. A dog sleeps.\n\nTwo dogs play. \n"
    for asked in ({}, {"split_sentences": False}):
        (found,) = answer(server, text=text, **asked)
        assert found["translations"][0]["text"] == translator.translate(text, **asked)


def test_answers_are_those_of_the_command(server):
    command = ["resmlp-mt", "translate", "--model", "multi30k-en-de", "--json"]
    command += ["--beam", 4, "--nbest", 3, "--lenpen", 1.5]
    lines = run(*command, stdin="\n".join(CAPTIONS) + "\n").stdout.splitlines()
    found = answer(server, text=CAPTIONS, beam=4, nbest=3, lenpen=1.5)
    expected = list(map(json.loads, lines))
    assert [r["source"] for r in found] == CAPTIONS
    for ours, theirs in zip(found, expected, strict=True):
        assert [t["text"] for t in ours["translations"]] == [
            t["text"] for t in theirs["translations"]
        ]
        scores = [[t["score"] for t in side["translations"]] for side in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=2e-4)


def test_one_text_is_a_list_of_one_and_none_is_none(server):
    assert answer(server, text=CAPTIONS[0]) == answer(server, text=CAPTIONS[:1])
    assert answer(server, text=[]) == []


def test_attention_is_that_of_the_translator(server, translator):
    long = " ".join(CAPTIONS * 20)  # in several parts
    for text in (CAPTIONS[0], long, ""):
        (result,) = answer(server, text=text, nbest=2, attention=True)
        (expected,) = translator.translate_nbest([text], nbest=2, attention=True)
        for found, hypothesis in zip(result["translations"], expected, strict=True):
            assert found["text"] == hypothesis.text
            assert len(found.get("attention", [])) == len(hypothesis.attention)
            for theirs, ours in zip(found.get("attention", []), hypothesis.attention, strict=True):
                assert (theirs["source"], theirs["target"]) == (ours.source, ours.target)
                np.testing.assert_allclose(theirs["weights"], ours.weights, atol=1e-3)
        assert len(expected[0].attention) == {CAPTIONS[0]: 1, "": 0}.get(text, 80)


def test_many_clients_each_get_their_own_answers(server):
    expected = {text: answer(server, text=text) for text in CAPTIONS}
    with ThreadPoolExecutor(16) as pool:
        texts = CAPTIONS * 16
        for text, found in zip(
            texts, pool.map(lambda text: answer(server, text=text), texts), strict=True
        ):
            assert (
                found[0]["translations"][0]["text"] == expected[text][0]["translations"][0]["text"]
            )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "JSON decode error"),
        ("[]", "send JSON"),
        ("{}", "text: Field required"),
        ('{"text": 1}', "text: Input should be a valid string"),
        ('{"text": ["a", null]}', "text.1: Input should be a valid string"),
        ('{"text": "a", "beam": 0}', "beam: "),
        ('{"text": "a", "beam": 1000}', "beam: Input should be less than or equal to 32"),
        ('{"text": "a", "beam": 2, "nbest": 3}', "nbest 3 is more than beam 2"),
        ('{"text": "a", "lenpen": NaN}', "lenpen: "),
        ('{"text": "a", "lenpen": 1e999}', "lenpen: "),
        ('{"text": "a", "beam": "5"}', "beam: Input should be a valid integer"),
        ('{"text": "a", "attention": 1}', "attention: Input should be a valid boolean"),
        ('{"text": "a", "baem": 2}', "baem: Extra inputs are not permitted"),
        ("[" * 100_000, "body"),
        (b"\xff{", "body"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(server, body, said):
    headers = {"Content-Type": "application/json"}
    response = httpx.post(f"{server}/translate", content=body, headers=headers)
    assert response.status_code in (400, 422) and said in response.json()["error"]


def test_other_mistakes_are_answered_in_json_too(server):
    responses = [
        (httpx.post(f"{server}/translate", content='{"text": "a"}'), 422, "Content-Type"),
        (httpx.get(f"{server}/translate"), 405, "Method Not Allowed"),
        (httpx.get(f"{server}/nowhere"), 404, "Not Found"),
        (ask(server, text=["a"] * 2001), 413, "2,001 sentences; send 2,000 at most"),
        (ask(server, text="a" * 1_000_001), 413, "1,000,000 bytes"),
    ]
    for response, status, said in responses:
        assert response.status_code == status and said in response.json()["error"]


def connect(server) -> socket.socket:
    address = urlsplit(server)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def test_bodies_of_unknown_size_are_limited_too(server):
    chunks = (b"x" * 10_000 for _ in range(1000))
    headers = {"Content-Type": "application/json"}
    try:
        response = httpx.post(f"{server}/translate", content=chunks, headers=headers)
    except httpx.WriteError:  # it does not wait for the rest
        return
    assert response.status_code == 413


def test_halves_of_surrogate_pairs_count_as_replacement_characters(server):
    body = rb'{"text": ["A dog \ud83d\ude00.", "A \ud800 dog.", "\udfff"]}'
    headers = {"Content-Type": "application/json"}
    response = httpx.post(f"{server}/translate", content=body, headers=headers)
    sources = [result["source"] for result in response.json()["results"]]
    assert sources == ["A dog 😀.", "A \ufffd dog.", "\ufffd"]


def test_health_and_metrics(server):
    assert httpx.get(f"{server}/healthz").json()["status"] == "ok"

    def read():
        text = httpx.get(f"{server}/metrics").text
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        return {(s.name, s.labels.get("status"), s.labels.get("path")): s.value for s in samples}

    before = read()
    answer(server, text=CAPTIONS)
    ask(server, text=1)
    httpx.get(f"{server}/nowhere/{time.time()}")
    after = read()
    for key, more in [
        (("resmlp_requests_total", "200", "/translate"), 1),
        (("resmlp_requests_total", "422", "/translate"), 1),
        (("resmlp_requests_total", "404", "other"), 1),
        (("resmlp_batch_texts_sum", None, None), len(CAPTIONS) - 1),  # one is blank
        (("resmlp_batch_texts_count", None, None), 1),
    ]:
        assert after[key] - before.get(key, 0) == more, key
    assert after["resmlp_queue_texts", None, None] == 0
    assert after["process_resident_memory_bytes", None, None] > 1e8


def test_the_interface_is_documented_without_a_network(server):
    described = httpx.get(f"{server}/openapi.json").json()
    assert set(described["paths"]) == {"/translate", "/healthz", "/metrics"}
    assert {"200", "400", "408", "413", "422", "429", "503"} <= set(
        described["paths"]["/translate"]["post"]["responses"]
    )
    for path in ("/docs", "/"):
        text = httpx.get(server + path).text
        for link in re.findall(r'(?:src|href)="([^"]+)"', text):
            assert not link.startswith(("http:", "https:", "//")), link
            if not link.startswith("data:"):
                assert httpx.get(f"{server}/{link.lstrip('/')}").status_code == 200, link


def test_limits_are_those_of_the_flags():
    flags = ["--queue-size", 4, "--timeout", 1.5, "--max-request-bytes", 3000]
    with serving("multi30k-en-de", *flags) as (server, _):
        assert "send 4 at most" in ask(server, text=["a"] * 5).json()["error"]
        assert ask(server, text="a" * 3000).status_code == 413
        slow = connect(server)
        slow.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        answered = b"".join(iter(lambda: slow.recv(10_000), b""))
        assert answered.startswith(b"HTTP/1.1 408") and b"did not arrive" in answered


def test_what_a_client_that_left_was_waiting_for_is_not_translated():
    with serving("multi30k-en-de", "--batch-size", 1, "--threads", 1) as (server, _):
        body = json.dumps({"text": CAPTIONS[-1:] * 1900, "beam": 32}).encode()
        with connect(server) as client:
            head = "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.5)
        assert answer(server, text="A dog.")[0]["translations"][0]["text"]
        metrics = httpx.get(f"{server}/metrics").text
        assert float(re.search(r"resmlp_batch_texts_sum ([\d.]+)", metrics)[1]) < 1000
        assert 'path="/translate",status="499"' in metrics


def test_sigterm_loses_no_request():
    answered, failed, gone = [], [], threading.Event()

    def keep_asking(server):
        address = urlsplit(server)
        connection = HTTPConnection(address.hostname, address.port, timeout=60)
        body = json.dumps({"text": CAPTIONS})
        while not gone.is_set():
            try:
                connection.connect()
            except ConnectionRefusedError:  # it listens no more: nothing was lost
                return
            try:
                while True:
                    connection.request(
                        "POST", "/translate", body, {"Content-Type": "application/json"}
                    )
                    response = connection.getresponse()
                    assert response.status == 200
                    answered.append(len(json.loads(response.read())["results"]))
                    if response.headers["Connection"] == "close":
                        break
            except Exception as error:
                failed.append(error)
                return

    with serving("multi30k-en-de") as (server, process):
        clients = [threading.Thread(target=keep_asking, args=[server]) for _ in range(12)]
        for client in clients:
            client.start()
        time.sleep(2)
        process.terminate()
        process.wait(60)
    gone.set()
    for client in clients:
        client.join(60)
    assert not failed and len(answered) > 24 and set(answered) == {len(CAPTIONS)}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_answers_do_not_wait_for_acknowledgements(host):
    try:
        listener = listen(host, 0)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listener, socket.create_connection(listener.getsockname()[:2]):
        connection, _ = listener.accept()
        with connection:  # what asyncio looks at before it sets TCP_NODELAY
            assert connection.proto == socket.IPPROTO_TCP


def test_a_server_that_cannot_start_says_why():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("resmlp-mt", "serve", "multi30k-en-de", "--port", port, check=False)
        assert_refused(result, f"--port {port}: Address already in use")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--port", "70000"], "--port 70000 must be between"),
        (["--queue-size", "0"], "--queue-size must be at least 1"),
        (["--timeout", "0"], "--timeout must be"),
        (["--port", "0", "--host", "nowhere.invalid"], "--host nowhere.invalid"),
    ],
)
def test_impossible_flags_are_refused(flags, said):
    arguments = build_parser().parse_args(["serve", "nix", *flags])
    with pytest.raises(UserError, match=said):
        arguments.run(arguments)
