"""Several processes at one port."""

import gc
import json
import os
import re
import signal
import socket
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
from cli.commands import assert_refused, run
from serving.conftest import next_worker, serving
from serving.held import Held, held_models

from resmlp_mt.serving import models
from resmlp_mt.serving.settings import Settings
from resmlp_mt.serving.worker import create_app, listen

MODEL, TEXT = "multi30k-en-de", "A man rides a bike."


def children(process) -> list[int]:
    """Its worker processes."""
    found = []
    for number in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        with suppress(OSError):  # it has just ended
            if b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                found.append(int(number))
    return found


def asks(server, key="", **headers):
    body = {"q": TEXT, "source": "en", "target": "de"} | ({"api_key": key} if key else {})
    return httpx.post(f"{server}/translate", data=body, headers=headers, timeout=1800)


def test_workers_share_port_limits_and_counts_and_follow_files_at_a_hangup(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("free\nfew 3\n")
    flags = ["--host", "0.0.0.0", "--metrics-port", 0, "--threads", 1, "--api-keys", keys]
    with serving(MODEL, *flags, workers=2) as (server, process):
        (metrics,) = re.findall(r"metrics at (http://127\.0\.0\.1:\d+/metrics)\n", process.said)

        def read(name):
            found = re.findall(rf"^{name}(?:{{.*}})? ([\d.]+)$", httpx.get(metrics).text, re.M)
            return sum(map(float, found))

        assert httpx.get(f"{server}/metrics").status_code == 404
        for path, headers, status in (
            ("/healthz", {}, 404),
            ("/metrics", {"Host": "x.example.org"}, 400),
        ):
            found = httpx.get(metrics.removesuffix("/metrics") + path, headers=headers)
            assert found.status_code == status
        # The counts of keys are common, whichever worker answers.
        assert [asks(server, "few").status_code for _ in range(6)] == [200] * 3 + [429] * 3
        assert asks(server).status_code == 403
        assert "Mann" in asks(server, Authorization="Bearer free").text
        before = read("resmlp_requests_total")
        assert read("resmlp_batch_texts_sum") == 4 and read("resmlp_queue_texts") == 0
        killed, left = children(process)
        os.kill(killed, signal.SIGKILL)
        while killed in children(process):  # until then it may take a connection
            time.sleep(0.01)
        assert asks(server, "free").status_code == 200
        next_worker(process)
        now = children(process)
        assert left in now and killed not in now and len(now) == 2
        # What it counted is kept; three requests were for metrics.
        assert read("resmlp_requests_total") == before + 1 + 3
        keys.write_text("newer\n")
        process.send_signal(signal.SIGHUP)
        for _ in range(2):
            next_worker(process)
        while len(set(children(process)) & set(now)):
            time.sleep(0.05)
        assert [asks(server, key).status_code for key in ("newer", "free")] == [200, 403]
        now = children(process)
        keys.write_text("newer and newest\n")
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            if "keeping worker" in line:
                break
        assert children(process) == now and asks(server, "newer").status_code == 200
        os.killpg(process.pid, signal.SIGINT)  # to all processes, as a terminal does
        process.communicate(timeout=1800)
        assert process.returncode == 0


def test_answers_do_not_wait_for_acknowledgements():
    listener = listen("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()[:2]):
        connection, _ = listener.accept()
        with connection:  # what asyncio looks at before it sets TCP_NODELAY
            assert connection.proto == socket.IPPROTO_TCP


def test_workers_write_whole_lines(monkeypatch):
    written = []
    monkeypatch.setattr(models, "load_models", lambda settings: held_models(Held()))
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=written.append))
    create_app(Settings(address="http://x"))
    gc.unfreeze()
    assert written == [f"worker {os.getpid()} is translating at http://x\n"]


def test_what_is_asked_before_sigterm_is_answered():
    body = json.dumps({"text": [TEXT] * 60, "beam": 20})
    with serving(MODEL, "--threads", 1, workers=2) as (server, process):
        connections = [HTTPConnection(urlsplit(server).netloc, timeout=1800) for _ in range(6)]
        for connection in connections:
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        while "resmlp_queue_texts 0.0" in httpx.get(f"{server}/metrics", timeout=1800).text:
            time.sleep(0.01)
        process.terminate()
        for connection in connections:
            response = connection.getresponse()
            assert response.status == 200 and len(json.load(response)["results"]) == 60


def test_what_keeps_a_worker_from_starting_is_said_once():
    command = f"resmlp-mt serve {MODEL} en-de --port 0 --workers 2".split()
    result = run(*command, check=False, own=True)
    assert_refused(result, f"resmlp-mt serve: {MODEL} and en-de both translate en-de")
