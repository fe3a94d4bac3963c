import os
import subprocess
import sys
import threading
import time
from itertools import chain

import pytest
from cli.commands import ENVIRONMENT

from resmlp_mt.translating.arrivals import Lines, take_arrived
from resmlp_mt.translating.places import Places

READ = """
from pathlib import Path
from resmlp_mt.translating.arrivals import Lines
from resmlp_mt.translating.places import Places
for lines in Lines([Path("-")], Places()).texts():
    for line in lines:
        print(line, flush=True)
"""


def test_standard_input_that_does_not_block_is_waited_for():
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    command = [sys.executable, "-c", READ]
    reader = subprocess.Popen(command, stdin=ours, stdout=subprocess.PIPE, env=ENVIRONMENT)
    os.close(ours)
    for line in (b"first\n", b"second\n"):
        os.write(theirs, line)
        assert reader.stdout.readline() == line
        time.sleep(0.1)  # in which there is nothing to read
    os.close(theirs)
    assert reader.communicate(timeout=60)[0] == b"" and reader.returncode == 0


@pytest.mark.parametrize("first", ["stored", "pipe"])
def test_the_end_of_a_file_does_not_wait_for_the_next(first, tmp_path):
    stored, pipe, late = (tmp_path / name for name in ("stored", "pipe", "late"))
    stored.write_text("One.\nTwo\n")
    for path, seconds, data in ((pipe, 0, b"One.\nTwo\n"), (late, 1, b"Late.\n")):
        os.mkfifo(path)
        writer = threading.Timer(seconds, path.write_bytes, [data])
        writer.daemon = True  # where nobody reads
        writer.start()
    files = Lines([stored if first == "stored" else pipe, late], Places())
    groups = take_arrived(chain.from_iterable(files.texts()), 10, files.ready)
    assert next(groups) == ["One.", "Two"]
    assert next(groups) == ["Late."]
