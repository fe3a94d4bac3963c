import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cli.commands import ENVIRONMENT, run, words

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")


@contextmanager
def serving(model, *options, own=False) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of `resmlp-mt serve`, and its process, which SIGTERM ends well afterwards.

    It is a fork that says no more than its address, or a process of its `own`, which may.
    """
    command = words(["resmlp-mt", "serve", model, "--port", 0, *options], own)
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    try:
        said = process.stderr.readline()
        address = re.fullmatch(r"translating at (http://127\.0\.0\.1:\d+)\n", said)
        assert address, said + process.stderr.read()
        yield address[1], process
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
        assert process.returncode == 0 and (own or rest == "")
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server of the shipped model."""
    with serving("multi30k-en-de") as (address, _):
        yield address


@pytest.fixture(scope="session")
def fast(tmp_path_factory):
    """The shipped model exported, with which servers start in a fraction of the time."""
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    folder = tmp_path_factory.mktemp("export") / "multi30k-en-de"
    run("resmlp-mt", "export", "multi30k-en-de", "--out", folder)
    return folder
