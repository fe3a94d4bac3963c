import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cli.commands import ROOT

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")


@contextmanager
def serving(model, *options) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of `resmlp-mt serve`, and its process, which SIGTERM ends well afterwards."""
    command = [sys.executable, "-m", "resmlp_mt.cli", "serve", model, "--port", 0, *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        list(map(str, command)), env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.stderr.readline()
        address = re.fullmatch(r"translating at (http://127\.0\.0\.1:\d+)\n", said)
        assert address, said + process.stderr.read()
        yield address[1], process
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
        assert process.returncode == 0 and rest == ""
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server of the shipped model."""
    with serving("multi30k-en-de") as (address, _):
        yield address
