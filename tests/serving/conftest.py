import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import httpx
import pytest
from cli.commands import ENVIRONMENT, words

from resmlp_mt import Translator

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

# A busy machine may take longer than the five seconds that httpx waits.
for name in ("get", "head", "post"):
    setattr(httpx, name, partial(getattr(httpx, name), timeout=1800))


@contextmanager
def serving(model, *options, workers=1) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of `resmlp-mt serve` once all workers are there, and its process.

    SIGTERM ends it well afterwards.
    """
    command = words(["resmlp-mt", "serve", model, "--port", 0, "--workers", workers, *options])
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        address = [next_worker(process) for _ in range(workers)][0]
        yield address, process
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=1800)
        assert process.returncode == 0
    finally:
        if process.poll() is None:  # its workers do not end with it
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def next_worker(process) -> str:
    """Wait until a worker is there; returns the address of the service."""
    process.said = getattr(process, "said", "")
    for line in process.stderr:
        process.said += line
        if found := re.fullmatch(r"worker \d+ is translating at (http://\S+)\n", line):
            return found[1]
    raise AssertionError(process.said)


def ask(server, path="/translate", **body):
    return httpx.post(server + path, json=body)


@pytest.fixture(scope="session")
def translator():
    return Translator.from_pretrained("multi30k-en-de")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server of the shipped model."""
    with serving("multi30k-en-de") as (address, _):
        yield address
