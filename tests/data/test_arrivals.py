import os
import subprocess
import sys
import time

from cli.commands import ENVIRONMENT

READ = """
from pathlib import Path
from resmlp_mt.data.arrivals import Lines
from resmlp_mt.data.places import Places
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
