"""Commands that are interrupted while they start, or whose streams are closed or full."""

import os
import signal
import time
from pathlib import Path

import pytest
from cli.commands import ROOT, assert_refused, run, start, wait_for

from resmlp_mt.files.finding import PRETRAINED

TRANSLATE = ["resmlp-mt", "translate", "--model", "multi30k-en-de"]


# A signal that comes right before a sleep is heard behind it, so none is long.
SLOW = """
import time
print("importing", flush=True)
while True:
    time.sleep(0.01)
"""


def test_ctrl_c_is_heard_before_the_first_slow_import(tmp_path):
    (tmp_path / "argparse.py").write_text(SLOW)
    hear = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    process = start("resmlp-mt", "doctor", env={"PYTHONPATH": path}, preexec_fn=hear)
    wait_for("importing", process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130 and said == "resmlp-mt doctor: interrupted\n"


def test_ctrl_c_ends_a_command_that_is_still_importing():
    ours, theirs = os.pipe()[::-1]  # what it reads does not end, and so neither does it
    # A test run in the background passes on that interrupts are ignored.
    hear = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    checkpoint = PRETRAINED / "multi30k-en-de" / "model.pt"  # which needs torch
    process = start("resmlp-mt", "translate", "--model", checkpoint, stdin=theirs, preexec_fn=hear)
    while "libtorch_cpu" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 130 and "Traceback" not in said
    assert said.endswith("resmlp-mt translate: interrupted\n")


WRITING = """
from pathlib import Path
from resmlp_mt.cli.starting import start
from resmlp_mt.files.output import whole_file, whole_folder
start()
with whole_file(Path("out/file")), whole_folder(Path("out/folder"), mark="x") as folder:
    (folder / "x").touch()
    import stubborn
"""
# As some packages do around what they could do without.
STUBBORN = """
import time
print("importing", flush=True)
while True:
    try:
        time.sleep(0.01)
    except BaseException:
        pass
"""


def test_ctrl_c_in_an_import_leaves_nothing_half_written(tmp_path):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "program.py").write_text(WRITING)
    hear = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = start("python", "program.py", cwd=tmp_path, preexec_fn=hear)
    wait_for("importing", process)
    assert len(list((tmp_path / "out").iterdir())) == 2
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=1800)
    assert process.returncode == 130 and list((tmp_path / "out").iterdir()) == []


def test_a_full_standard_output_is_named(tmp_path):
    (tmp_path / "x.de").write_text("Ein Hund schläft im Schnee.\n")
    command = ["resmlp-mt", "score", "--ref", "x.de", "x.de"]
    fill = lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1)  # noqa: E731
    result = run(*command, cwd=tmp_path, check=False, preexec_fn=fill)
    assert_refused(result)
    assert result.stderr == "resmlp-mt score: standard output: No space left on device\n"


@pytest.mark.parametrize(("descriptor", "text"), [(0, []), (1, ["A man."])], ids=["stdin", "out"])
def test_a_closed_stream_is_named(descriptor, text):
    result = run(*TRANSLATE, *text, check=False, preexec_fn=lambda: os.close(descriptor))
    assert_refused(result, "standard input or output is closed")
    assert len(result.stderr.splitlines()) == 1
