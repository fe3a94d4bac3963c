"""A corpus translated by real actors of Ray on this machine; a Ray takes seconds to start."""

import fcntl
import gzip
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.commands import ENVIRONMENT, ROOT, run

from resmlp_mt.errors import UserError
from resmlp_mt.export.writer import export_model

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
pytest.importorskip("ray.data", reason="the extra [ray] is not installed")

ROWS = 8
LINES, OBJECTS, BLANK, TABLE = 60, 30, 180, 30
PARTS = 8 + 27 + 5  # a group of rows of the table has 19 rows
SEARCH = ["--beam", 2]


def start_run(folder, *options):
    script = ROOT / "examples" / "corpus" / "run.py"
    command = [sys.executable, script, "--model", "fast", "--out", "out", "--rows", ROWS, *SEARCH]
    return subprocess.Popen(
        list(map(str, [*command, *options])),
        cwd=folder, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def start_patiently(folder, *options):
    """Start it until Ray has come up, for which a busy machine may need more than Ray's 30 s."""
    for _ in range(3):
        process, said = start_run(folder, *options), ""
        for line in process.stdout:
            if line.startswith("Ray has "):
                return process
            said += line
        process.wait()
        assert "did not start within its 30 s" in said, said
    pytest.skip("Ray, which has a limit of 30 s for it, did not start on this machine")


def workers_of(process) -> list[int]:
    """The processes that hold a model: descendants of the one that was started."""
    parents, names = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            names[int(path.name)] = (path / "cmdline").read_text()
            stat = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(path.name)] = int(stat[1])

    def descends(pid):
        return pid == process.pid or (pid in parents and descends(parents[pid]))

    return [p for p in names if names[p].startswith("ray::MapWorker") and descends(p)]


def wait_for(process, found):
    while not (value := found()):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.02)
    return value


@pytest.fixture(scope="module")
def corpus(raw, tmp_path_factory):
    """A folder with a model, a text, JSON lines, and Parquet of two groups of rows."""
    import pyarrow
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("corpus")
    export_model("multi30k-en-de", folder / "fast", int8=False)
    lines = (raw / "train.en").read_text().splitlines()[:LINES]
    (folder / "a.txt.gz").write_bytes(gzip.compress("\n".join(["", *lines]).encode()))
    entries = [{"id": i, "text": text, "x": [1.5, None]} for i, text in enumerate(lines[:OBJECTS])]
    entries[-1]["x"] = "x" * 2**20
    (folder / "b.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    with open(folder / "b.jsonl", "a") as stream:  # more than a worker may hold
        for i in range(OBJECTS, OBJECTS + BLANK):
            stream.write(json.dumps({"id": i, "text": "", "x": "x" * 2**20}) + "\n")
    table = pyarrow.table({"n": range(TABLE), "text": lines[:TABLE]})
    parquet.write_table(table, folder / "c.parquet", row_group_size=19)
    return folder


def test_a_corpus_is_that_of_one_process_whatever_is_killed(corpus):
    from pyarrow import parquet

    files, out = ["--into", "de", "a.txt.gz", "b.jsonl", "c.parquet"], corpus / "out"
    process = start_patiently(corpus, *files)
    wait_for(process, lambda: len(list(out.glob("[0-9]*"))) >= 3)
    process.terminate()
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == 128 + signal.SIGTERM and "Traceback" not in said
    before = {path: path.stat().st_mtime_ns for path in out.glob("[0-9]*")}
    assert 3 <= len(before) < PARTS
    process = start_patiently(corpus, *files)
    victim = wait_for(process, lambda: workers_of(process))[0]
    wait_for(process, lambda: len(list(out.glob("[0-9]*"))) > len(before))
    os.kill(victim, signal.SIGKILL)
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, said
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())

    same = ["resmlp-mt", "translate", "--model", "fast", *SEARCH, "--buffer-size", ROWS, "--quiet"]
    text = run(*same, "--input", "a.txt.gz", cwd=corpus).stdout
    entries = run(*same, "--input", "b.jsonl", "--field", "text", "--into", "de", cwd=corpus).stdout
    parts = sorted(out.glob("[0-9]*"))
    assert len(parts) == PARTS
    assert "".join(p.read_text() for p in parts if p.suffix == ".txt") == text
    assert "".join(p.read_text() for p in parts if p.suffix == ".jsonl") == entries
    rows = [
        row for p in parts if p.suffix == ".parquet" for row in parquet.read_table(p).to_pylist()
    ]
    wanted = [json.loads(line) for line in entries.splitlines()[:TABLE]]
    assert rows == [{"n": i, "text": e["text"], "de": e["de"]} for i, e in enumerate(wanted)]

    report = json.loads((out / "report.json").read_text())
    assert report["rows"] + report["rows_before"] == 1 + LINES + OBJECTS + BLANK + TABLE
    assert report["rows"] == sum(worker["rows"] for worker in report["workers"].values())
    assert report["rows_per_second"] > 0 and len(report["workers"]) >= 2
    for worker in report["workers"].values():  # the corpus has 181 MB
        assert worker["most_mb"] - worker["loaded_mb"] < 120

    process = start_run(corpus, *files, "--beam", 3)
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == 2 and "--beam" in said


def test_a_folder_that_another_run_fills_is_left_alone(corpus):
    (corpus / "taken").mkdir()
    (corpus / "taken" / ".000000.txt").touch()  # what a worker of the other one writes
    other = os.open(corpus / "taken", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    process = start_run(corpus, "--out", "taken", "a.txt.gz")
    said, _ = process.communicate(timeout=1800)
    os.close(other)
    assert process.returncode == 2 and "taken" in said
    assert [path.name for path in (corpus / "taken").iterdir()] == [".000000.txt"]


@pytest.fixture(scope="module")
def parts():
    return runpy.run_path(str(ROOT / "examples" / "corpus" / "parts.py"))


def make_parquet(**columns) -> bytes:
    import pyarrow
    from pyarrow import parquet

    stream = pyarrow.BufferOutputStream()
    names = [name.rstrip("_") for name in columns]
    table = pyarrow.Table.from_arrays([pyarrow.array(c) for c in columns.values()], names=names)
    parquet.write_table(table, stream, compression="none")
    return stream.getvalue().to_pybytes()


def damage(data: bytes) -> bytes:
    return data.replace(b"a text", bytes(6)).replace(data[4:20], bytes(16))


PACKED = gzip.compress(os.urandom(5000) + b"\n")
TABLE_OF_TEXT = make_parquet(n=[1, 2], text=["a text", "another"])


def test_faults_of_a_corpus_are_named_by_file_and_line(parts, tmp_path):
    for name, data in (
        ("a.jsonl", b'{"text": null}\n\n{"txt": ""}\n'),
        ("b.txt", b"x\ny\n\xff\n"),
        ("c.txt", None),
        ("f.txt.gz", PACKED[:3000]),
        ("i.parquet", b"no table at all"),
        ("k.parquet", damage(TABLE_OF_TEXT)),
        ("l.parquet", make_parquet(text=["a"], text_=["b"])),
        ("m.parquet", make_parquet(n=[1])),
    ):
        if data:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=f"{name}{', line 3' * (name[0] in 'ab')}: "):
            for part in list(parts["find_parts"]([tmp_path / name], 2)):
                parts["translate_part"](part, tmp_path, "text", None, lambda texts: texts)
        # What was right is there, and nothing half written.
        there = [p.name for p in tmp_path.iterdir() if p.name[0] in "0."]
        assert there == [f"000000{Path(name).suffix}"] * (name in ("a.jsonl", "b.txt"))
        (tmp_path / f"000000{Path(name).suffix}").unlink(missing_ok=True)
