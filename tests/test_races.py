"""The races of examples/benchmarks: who is measured when, what is made of it, and the flags."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import race as command
from races import report
from races.image_models import ModelCase
from races.rounds import Rival, race
from races.train import SIZES, list_rivals
from rivals import Broken, Filling, Scripted

from resmlp_mt.errors import UserError

ROOT = Path(__file__).parents[1]
RACES = ROOT / "examples" / "benchmarks"


def test_rivals_take_turns_and_the_first_round_does_not_count(tmp_path):
    diary = tmp_path / "diary"
    rates = {"a": [99, 10, 20, 40] * 2, "b": [1, 30, 20, 120] * 2}
    rivals = [Rival(n, Scripted, dict(name=n, rates=r, diary=str(diary))) for n, r in rates.items()]
    results = race(rivals, ["x", "y"], rounds=3, threads=3)
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
    "how, error",
    [
        ("refuses", UserError),
        ("dies", UserError),
        ("raises", RuntimeError),
    ],
)
def test_a_rival_that_fails_is_named_and_nobody_is_left_behind(how, error):
    with pytest.raises(error, match="^it"):
        race([Rival("it", Broken, {"how": how})], ["x"], rounds=1, threads=1)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [c for c in children if "spawn_main" in Path(f"/proc/{c}/cmdline").read_text()]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone forgets it")
def test_memory_is_that_of_a_case_and_not_of_a_larger_one_before():
    large, small = race([Rival("it", Filling)], [400, 1], rounds=1, threads=1)
    grown = large.figures["memory_mib"] - small.figures["memory_mib"]
    assert grown == pytest.approx(399, abs=20)


# A rival says that it is ready when it is at work, with a folder that it has to take along.
INTERRUPTED = """
import signal, sys, time
from pathlib import Path
from races.rounds import Rival, race
from resmlp_mt.files.output import scratch_folder

class Busy:
    def __init__(self, name):
        self.name = name

    def __call__(self, case):
        with scratch_folder():
            Path(sys.argv[1], self.name).touch()
            while True:
                time.sleep(1)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    try:
        race([Rival(name, Busy, {"name": name}) for name in "ab"], [1], rounds=1, threads=1)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_race_and_all_rivals_and_leaves_nothing(number, tmp_path):
    (script := tmp_path / "script.py").write_text(INTERRUPTED)
    folders = [tmp_path / name for name in ("ready", "scratch")]
    for folder in folders:
        folder.mkdir()
    paths = {"PYTHONPATH": f"{ROOT}:{RACES}", "TMPDIR": str(folders[1])}
    words = [sys.executable, script, folders[0]]
    racing = subprocess.Popen(words, env=os.environ | paths, start_new_session=True)
    while not list(folders[0].iterdir()):
        assert racing.poll() is None
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(racing.pid, number)  # as Ctrl-C does
    else:
        racing.send_signal(number)
    assert racing.wait(1800) == 128 + number
    assert not list(folders[1].iterdir())
    with pytest.raises(ProcessLookupError):
        while True:  # what multiprocessing started beside them ends by itself
            os.killpg(racing.pid, 0)
            time.sleep(0.05)


def test_rows_are_appended_in_the_columns_of_the_file_all_or_none(tmp_path):
    path, new = tmp_path / "rows.csv", tmp_path / "new" / "rows.csv"
    path.write_bytes(b"a,b\r\n1,2")  # without the last line's end
    assert report.append_rows(path, [{"b": 4, "a": 3}, {"b": 6, "a": 5}]) == ["a", "b"]
    assert path.read_bytes() == b"a,b\r\n1,2\n3,4\n5,6\n"
    for row in ({"a": 1, "b": 2, "c": 3}, {"a": 1}):
        with pytest.raises(UserError, match="rows.csv"):
            report.append_rows(path, [{"a": 7, "b": 8}, row])
    assert path.read_bytes().endswith(b"\n5,6\n")
    report.append_rows(new, [{"b": 4, "a": 3}], ["a", "b"])
    assert new.read_bytes() == b"a,b\n3,4\n"


APPENDER = """
import sys
from pathlib import Path
from races.report import append_rows
for _ in range(50):
    append_rows(Path(sys.argv[1]), 30 * [{"a": 99 * sys.argv[2]}])
"""


def test_rows_of_several_processes_keep_apart(tmp_path):
    words = [sys.executable, "-c", APPENDER, tmp_path / "rows.csv"]
    paths = os.environ | {"PYTHONPATH": f"{ROOT}:{RACES}"}
    processes = [subprocess.Popen([*words, letter], env=paths) for letter in "xy"]
    assert [process.wait(1800) for process in processes] == [0, 0]
    header, *rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert header == "a" and sorted(rows) == ["x" * 99] * 1500 + ["y" * 99] * 1500


@pytest.mark.parametrize(
    "head, columns",
    [
        ("rival,rate", []),  # no commit
        ("rival,size,rate,commit", ["rival", "size", "text"]),
    ],
)
def test_a_table_of_another_race_is_refused_before_it_begins(head, columns, tmp_path):
    (table := tmp_path / "races.csv").touch()
    report.check_table(table, columns)  # empty
    table.write_text(f"{head}\n")
    with pytest.raises(UserError, match="races.csv"):
        report.check_table(table, columns)
    if len(head.split(",")) == 4:
        report.check_table(table, head.split(","))


def test_rows_name_the_commit_of_the_code_and_no_other(tmp_path, monkeypatch):
    monkeypatch.delenv("COMMIT", raising=False)
    (code := tmp_path / "report.py").touch()
    monkeypatch.setattr(report, "__file__", str(code))

    def git(*words):
        options = dict(cwd=tmp_path, check=True, capture_output=True, text=True)
        return subprocess.run(["git", *words], **options).stdout.strip()

    git("init", "--quiet")
    assert report.describe_commit() == ""  # it lies in a repository that does not know it
    git("add", ".")
    git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "Work")
    assert report.describe_commit() == git("rev-parse", "--short", "HEAD")
    code.write_text("changed = True\n")
    assert report.describe_commit().endswith("-dirty")
    monkeypatch.setenv("COMMIT", "abc")  # of a mere copy
    assert report.describe_origin("a machine")["commit"] == "abc"


def count_products(name: str, length: int, vocabulary: int) -> int:
    """Multiplications with additions of a sentence forward, by hand."""
    dim, hidden, layers, *_ = SIZES["tiny"]
    linear, positions = length * dim * dim, length * length * dim  # projections; L x L matrices
    attention = 4 * linear + 2 * positions
    mixing = {
        "transformer": attention,
        "resmlp_tiny": positions,
        "resmlp_plus_tiny": 2 * linear + positions,  # values and gate
    }[name]
    channels = 2 * length * dim * hidden
    return layers * (2 * (mixing + channels) + attention) + length * dim * vocabulary


def build(name: str, *flags: str):
    (rival,) = (r for r in list_rivals("tiny", list(flags)) if r.name == name)
    return rival.build(**rival.arguments | {"vocabulary": 60})


@pytest.mark.parametrize("name", ["transformer", "resmlp_tiny", "resmlp_plus_tiny"])
def test_operations_of_an_update_are_those_counted_by_hand(name):
    training = build(name, "--cpu")
    for length in (4, 9):
        # Two operations a multiplication with its addition; backward there are two products more.
        assert training.count(length) * length == 2 * 3 * count_products(name, length, 60)


# Of the papers' tables, in billions; that of gMLP is counted otherwise there.
MULTIPLY_ADDS = {
    "resmlp_s12": 3.0,
    "resmlp_s12_8": 14.0,
    "resmlp_b24_8": 100.2,
    "resmlp_s12 --token-mixer separable3x3": 3.2,
    "s2mlp_deep": 10.5,
    "poolformer_m36": 8.8,
    "bit_r50x1": 4.1,
    "cyclemlp_b2": 3.9,
}


@pytest.mark.parametrize("arch", MULTIPLY_ADDS)
def test_what_an_image_costs_is_what_the_papers_say(arch):
    assert round(ModelCase(arch).count()["multiply_adds"] / 1e9, 1) == MULTIPLY_ADDS[arch]


def test_a_model_is_raced_with_its_export_and_its_scores_stand_beside_its_speed(tmp_path, capsys):
    (tmp_path / "en").write_text("A man rides a bike.\nA dog.\n")
    (tmp_path / "de").write_text("Ein Mann fährt Rad.\nEin Hund.\n")
    flags = ["--input", tmp_path / "en", "--reference", tmp_path / "de", "--rounds", 1]
    flags += ["--models", "searched=multi30k-en-de", "again=multi30k-en-de", "--threads", 1]
    flags += ["--batch-tokens", 0, 100, "--beam", 1, "--csv", tmp_path / "t.csv"]
    assert command.main(["translate", *map(str, flags)]) == 0
    assert capsys.readouterr().out.startswith("rival")
    with open(tmp_path / "t.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = [(row["rival"], row["batch_tokens"]) for row in rows]
    assert found == [(name, tokens) for tokens in ("0", "100") for name in ("searched", "again")]
    for row in rows:
        assert float(row["rate"]) > 0 and float(row["memory_mib"]) > 50 and float(row["bleu"]) > 0
        assert bool(row["median_ms"]) == bool(row["p95_ms"]) == (row["batch_tokens"] == "0")


@pytest.mark.parametrize(
    "line, said",
    [
        ("translate --models ab --input x --reference y", "--models"),
        ("translate --models a=b --input x --reference y --rounds 0", "--rounds"),
        ("train --length 16 0", "--length"),
        ("train --size tiny --length 8 1025", "--max-source-positions"),
        ("train --flags=--update-freq=2", "--update-freq"),
        ("images --timm --arch resmlp_cifar s2mlp_deep --image-size 32", "--timm"),
    ],
)
def test_impossible_races_are_refused(line, said, capsys):
    try:
        status = command.main(line.split())
    except SystemExit as end:
        status = end.code
    assert status == 2 and said in capsys.readouterr().err
