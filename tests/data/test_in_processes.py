"""Blocks worked on in several processes."""

import os
import signal
import subprocess
import sys
import time
from itertools import count

import pytest

from resmlp_mt.data.processes import map_blocks
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder


def square(number):
    if number < 0:
        raise UserError(f"{number} is below 0")
    if number == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number, os.getpid()


def test_results_come_in_order_from_several_processes_that_run_little_ahead():
    taken = []
    blocks = (taken.append(i) or i for i in count())
    found = map_blocks(square, blocks, 2)
    first = [next(found) for _ in range(50)]
    assert [(i, result) for i, (result, _) in first] == [(i, i * i) for i in range(50)]
    assert os.getpid() not in {pid for _, (_, pid) in first}
    assert len(taken) < 60
    found.close()
    assert [result for _, (result, _) in map_blocks(square, [2, 3], 1)] == [4, 9]


@pytest.mark.parametrize(("bad", "said"), [(-1, "-1 is below 0"), (99, "was killed")])
def test_a_process_that_fails_or_is_killed_ends_the_work(tmp_path, bad, said):
    blocks = [*range(9), bad, *range(9)]
    with pytest.raises(UserError, match=said), whole_folder(tmp_path / "out", "mark") as folder:
        for block, _ in map_blocks(square, blocks, 2):
            (folder / str(block)).touch()
    assert not list(tmp_path.iterdir())


SCRIPT = r"""
import os, time
from resmlp_mt.data.processes import map_blocks
def work(number):
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(3600)
if __name__ == "__main__":
    list(map_blocks(work, range(9), 2))
"""


def test_processes_do_not_outlive_the_first(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True
    )
    pids = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 1800  # what hangs
    while (alive := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert not alive


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
