"""The race: who is measured when, and what is made of it. Rivals live in processes of their own."""

import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from resmlp_mt.benchmark.report import append_rows, print_table
from resmlp_mt.benchmark.rounds import Rival, peak_memory, race
from resmlp_mt.errors import UserError


class Scripted:
    """Returns the rates that it was given, one after the other, and writes down that it ran."""

    def __init__(self, name: str, rates: list[float], diary: str):
        self.name, self.rates, self.diary = name, iter(rates), Path(diary)

    def __call__(self, case: str) -> dict[str, float]:
        with open(self.diary, "a") as stream:
            stream.write(f"{case}{self.name} ")
        threads = int(os.environ["OMP_NUM_THREADS"])
        return {"rate": next(self.rates), "threads": threads, "process": os.getpid()}


class Broken:
    def __init__(self, how: str):
        if how == "refuses":
            raise UserError("no such model")
        self.how = how

    def __call__(self, case):
        if self.how == "dies":
            os._exit(3)
        raise ValueError("a bug")


def test_rivals_take_turns_and_the_first_round_does_not_count(tmp_path):
    diary = tmp_path / "diary"
    rates = {"a": [99, 10, 20, 40] * 2, "b": [1, 30, 20, 120] * 2}
    rivals = [Rival(n, Scripted, dict(name=n, rates=r, diary=str(diary))) for n, r in rates.items()]
    before = os.environ.get("OMP_NUM_THREADS")
    results = race(rivals, ["x", "y"], rounds=3, threads=3)
    assert os.environ.get("OMP_NUM_THREADS") == before
    assert diary.read_text().split() == [
        *"xa xb xb xa xa xb xb xa".split(),
        *"ya yb yb ya ya yb yb ya".split(),
    ]
    found = [(r.rival, r.case, r.figures["rate"], r.ratio, r.spread) for r in results]
    assert found == [
        ("a", "x", 20, 1, (1, 1)),
        ("b", "x", 30, 3, (1, 3)),  # the median of 30/10, 20/20 and 120/40
        ("a", "y", 20, 1, (1, 1)),
        ("b", "y", 30, 3, (1, 3)),
    ]
    assert {r.figures["threads"] for r in results} == {3}
    processes = {r.figures["process"] for r in results}
    assert len(processes) == 2 and os.getpid() not in processes


@pytest.mark.parametrize(
    "how, error, said",
    [
        ("refuses", UserError, "it: no such model"),
        ("dies", UserError, "it: its process ended with status 3"),
        ("raises", RuntimeError, "it failed:(.|\n)*a bug"),
    ],
)
def test_a_rival_that_fails_is_named_and_nobody_is_left_behind(how, error, said):
    with pytest.raises(error, match=said):
        race([Rival("it", Broken, {"how": how})], ["x"], rounds=1, threads=1)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [c for c in children if "spawn_main" in Path(f"/proc/{c}/cmdline").read_text()]


def test_memory_is_that_of_the_process_and_not_of_what_made_it():
    large = b"1" * (400 * 2**20)  # zeros would take no memory before they are written
    code = "from resmlp_mt.benchmark.rounds import peak_memory; print(peak_memory())"
    # A fork, which has the memory of its parent until it runs something else.
    options = dict(capture_output=True, text=True, check=True, preexec_fn=lambda: None)
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert 5 < float(done.stdout) < 300 and len(large) < peak_memory() * 2**20


class Filling:
    """Fills so many MiB while it does a case."""

    def __call__(self, case):
        with mmap.mmap(-1, case * 2**20) as memory:  # which goes back at once, unlike malloc's
            for _ in range(case):
                memory.write(b"1" * 2**20)
        return {"rate": 1 / case, "memory_mib": peak_memory()}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone forgets it")
def test_memory_is_that_of_a_case_and_not_of_a_larger_one_before():
    large, small = race([Rival("it", Filling)], [400, 1], rounds=1, threads=1)
    grown = large.figures["memory_mib"] - small.figures["memory_mib"]
    assert grown == pytest.approx(399, abs=20)


INTERRUPTED = """
import signal, sys
from resmlp_mt.benchmark.rounds import Rival, race
from resmlp_mt.files.output import scratch_folder

class Busy:
    def __call__(self, case):
        while True:
            with scratch_folder() as folder:
                (folder / "file").touch()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    rivals = [Rival(name, Busy) for name in "ab"]
    try:
        race(rivals, [1], rounds=1, threads=1)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_race_and_all_rivals_and_leaves_nothing(number, tmp_path):
    (script := tmp_path / "script.py").write_text(INTERRUPTED)
    (begun := tmp_path / "begun").mkdir()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(begun)}
    command = [sys.executable, script]
    race = subprocess.Popen(command, env=environment, start_new_session=True)
    while not list(begun.iterdir()):  # some folder of a rival, at any moment of its life
        assert race.poll() is None
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(race.pid, number)  # as Ctrl-C does
    else:
        race.send_signal(number)
    assert race.wait(1800) == 128 + number
    assert not list(begun.iterdir())
    until = (
        time.monotonic() + 1800
    )  # those that multiprocessing started beside them end by themselves
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(race.pid, 0)
            time.sleep(0.05)


class Greedy:
    def __call__(self, case):
        return {"rate": torch.zeros(case).sum()}


def test_too_little_memory_is_said_without_a_traceback():
    with pytest.raises(UserError, match="it: too little memory on this machine"):
        race([Rival("it", Greedy)], [2**55], rounds=1, threads=1)


def test_what_is_measured_is_in_the_table_even_if_it_is_the_same(capsys):
    rows = [dict(rival=n, beam=5, bleu="3.1", p95_ms="", ratio="1.00", threads=2) for n in "ab"]
    print_table(rows, ["bleu", "p95_ms"])
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table == [["rival", "bleu", "ratio"], ["a", "3.1", "1.00"], ["b", "3.1", "1.00"]]


def test_rows_are_appended_in_the_columns_of_the_file_all_or_none(tmp_path):
    path, new = tmp_path / "rows.csv", tmp_path / "new" / "rows.csv"
    path.write_bytes(b"a,b\r\n1,2")  # without the last line's end
    assert append_rows(path, [{"b": 4, "a": 3}, {"b": 6, "a": 5}]) == ["a", "b"]
    assert path.read_bytes() == b"a,b\r\n1,2\n3,4\n5,6\n"
    for row, said in (({"a": 1, "b": 2, "c": 3}, "has no column c"), ({"a": 1}, "a value of b")):
        with pytest.raises(UserError, match=f"rows.csv: .*{said}; nothing was added"):
            append_rows(path, [{"a": 7, "b": 8}, row])
    assert path.read_bytes().endswith(b"\n5,6\n")
    append_rows(new, [{"b": 4, "a": 3}], ["a", "b"])
    assert new.read_bytes() == b"a,b\n3,4\n"


APPENDER = """
import sys
from pathlib import Path
from resmlp_mt.benchmark.report import append_rows
for _ in range(50):
    append_rows(Path(sys.argv[1]), 30 * [{"a": 99 * sys.argv[2]}])
"""


def test_rows_of_several_processes_keep_apart(tmp_path):
    command = [sys.executable, "-c", APPENDER, tmp_path / "rows.csv"]
    processes = [subprocess.Popen([*command, letter]) for letter in "xy"]
    assert [process.wait(1800) for process in processes] == [0, 0]
    header, *rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert header == "a" and sorted(rows) == ["x" * 99] * 1500 + ["y" * 99] * 1500
