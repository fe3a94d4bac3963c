"""Commands that are interrupted while they start, or whose standard streams are closed."""

import os
import signal
import time
from pathlib import Path

import pytest
from cli.commands import assert_refused, run, start

TRANSLATE = ["resmlp-mt", "translate", "--model", "multi30k-en-de"]


def test_ctrl_c_ends_a_command_that_is_still_importing():
    ours, theirs = os.pipe()[::-1]  # what it reads does not end, and so neither does it
    # A test run in the background passes on that interrupts are ignored.
    hear = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = start(*TRANSLATE, stdin=theirs, preexec_fn=hear)
    while "libtorch_cpu" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 130 and "Traceback" not in said


@pytest.mark.parametrize(("descriptor", "text"), [(0, []), (1, ["A man."])], ids=["stdin", "out"])
def test_a_closed_stream_is_named(descriptor, text):
    result = run(*TRANSLATE, *text, check=False, preexec_fn=lambda: os.close(descriptor))
    assert_refused(result, "standard input or output is closed")
    assert len(result.stderr.splitlines()) == 1
