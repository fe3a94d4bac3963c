"""Several processes at one port."""

import fcntl
import os
import re
import signal
import subprocess
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from cli.commands import ENVIRONMENT, start, words
from serving.conftest import serving

TEXT = "A man rides a bike."


def children(process) -> list[int]:
    """Its worker processes."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(n) for n in found if b"spawn_main" in Path(f"/proc/{n}/cmdline").read_bytes()]


def asks(server, key):
    body = {"q": TEXT, "source": "en", "target": "de", "api_key": key}
    return httpx.post(f"{server}/translate", data=body, timeout=60)


def test_an_interrupt_while_workers_start_leaves_no_traceback():
    command = words(["resmlp-mt", "serve", "multi30k-en-de", "--port", 0, "--workers", 2], own=True)
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while len(children(process)) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0 and said == ""


def test_workers_share_port_limits_counts_and_log(fast, tmp_path):
    (tmp_path / "keys").write_text("free\nfew 3\n")
    flags = ["--workers", 2, "--metrics-port", 0, "--threads", 1, "--allow-host", "mt.example.org"]
    flags += ["--api-keys", tmp_path / "keys", "--access-log", tmp_path / "log"]
    with serving(fast, *flags, own=True) as (server, process):
        metrics = re.fullmatch(r"metrics at (\S+)\n", process.stderr.readline())[1]

        def read(name):
            found = re.findall(rf"^{name}(?:{{.*}})? ([\d.]+)$", httpx.get(metrics).text, re.M)
            return sum(map(float, found))

        assert httpx.get(f"{server}/metrics").status_code == 404
        assert httpx.get(f"{server}/frontend/settings").json()["keyRequired"] is True
        # The buckets of keys are shared, whichever worker answers.
        answers = [asks(server, "few").status_code for _ in range(6)]
        assert answers == [200] * 3 + [429] * 3
        own = {"Authorization": "Bearer free"}
        for headers, status in (({}, 403), (own, 200), (own | {"Host": "x.example.org"}, 400)):
            response = httpx.post(f"{server}/translate", json={"text": TEXT}, headers=headers)
            assert response.status_code == status
        before = read("resmlp_requests_total")
        assert before == 11 and read("resmlp_batch_texts_sum") == 4
        assert read("resmlp_queue_texts") == 0
        killed, left = children(process)
        os.kill(killed, signal.SIGKILL)
        said = process.stderr.readline()
        assert said == f"worker {killed} ended with status -9; another is started\n"
        assert asks(server, "free").status_code == 200
        while len(now := children(process)) < 2:
            time.sleep(0.05)
        assert left in now and killed not in now
        assert read("resmlp_requests_total") == before + 1  # what it counted is kept
    log = (tmp_path / "log").read_text().splitlines()
    assert len(log) == before + 1 and "free" not in "".join(log) and TEXT not in "".join(log)
    pattern = r'127\.0\.0\.1 - - \[\S+ [+-]\d{4}\] "POST /translate HTTP/1\.1" 200 \d+ \d+\.\d{3}'
    assert sum(bool(re.fullmatch(pattern, line)) for line in log) == 5


def test_workers_follow_the_files_of_keys_and_terms(fast, tmp_path):
    path, terms = tmp_path / "keys", tmp_path / "terms.tsv"
    path.write_text("old\n")
    terms.write_text("bike\tDrahtesel\n")
    flags = ["--workers", 2, "--threads", 1, "--api-keys", path, "--requests-per-minute", 1000]
    flags += ["--glossary", terms]
    with serving(fast, *flags, own=True) as (server, process):

        def statuses():
            return [[asks(server, key).status_code for _ in range(4)] for key in ("old", "newer")]

        assert statuses() == [[200] * 4, [403] * 4]
        path.write_text("newer\n")
        assert statuses() == [[403] * 4, [200] * 4]
        path.write_text("newer and newest\n")
        assert statuses() == [[403] * 4, [200] * 4]
        said = f"--api-keys {path}, line 1: not a key, or a key and a number"
        assert process.stderr.readline() == f"{said}; the keys stay as they were\n"
        assert all("Drahtesel" in asks(server, "newer").text for _ in range(4))
        terms.write_text("bike\tVelo\n")
        assert all("Velo" in asks(server, "newer").text for _ in range(4))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hangup_loses_no_request_and_the_server_ends_as_ever(fast, workers):
    flags = ["--workers", workers, "--threads", 1, "--batch-size", 1]
    with (
        serving(fast, *flags, own=True) as (server, process),
        ThreadPoolExecutor() as pool,
    ):
        body = {"text": [TEXT] * 100}
        asked = [
            pool.submit(httpx.post, f"{server}/translate", json=body, timeout=60) for _ in "12"
        ]
        while not all(one.done() for one in asked):
            if "resmlp_queue_texts 0.0" not in httpx.get(f"{server}/metrics").text:
                break
        process.send_signal(signal.SIGHUP)
        for worker in children(process):
            os.kill(worker, signal.SIGHUP)
        assert [one.result().status_code for one in asked] == [200] * 2
        assert httpx.post(f"{server}/translate", json=body, timeout=60).status_code == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_ends_well_with_its_terminal(fast, workers):
    def take_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which is ignored where tests run under nohup
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    here, there = os.openpty()
    process = start(
        *("resmlp-mt", "serve", fast, "--port", 0, "--workers", workers),
        own=True,
        stdin=there,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    try:
        os.close(there)
        server = re.search(r"http://\S+", process.stdout.readline())[0]
        process.send_signal(signal.SIGHUP)  # while it has its terminal
        for _ in range(20):
            assert httpx.get(f"{server}/healthz").status_code == 200
            time.sleep(0.02)
        os.close(here)
        said, _ = process.communicate(timeout=120)
        assert (process.returncode, said) == (0, "")
    finally:
        process.kill()
        process.communicate()
