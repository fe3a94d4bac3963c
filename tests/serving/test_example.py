"""The scripts of examples/serve, on little work."""

import csv
import json
from pathlib import Path

import pytest
from cli.commands import run

SCRIPTS = Path(__file__).parents[2] / "examples" / "serve"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.en"
    path.write_text("".join(f"A man has {i} dogs.\n" for i in range(30)))
    return path


def rows(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def test_load_counts_what_clients_were_answered(text, tmp_path):
    command = ["python", SCRIPTS / "load.py", "multi30k-en-de", "--input", text]
    command += ["--clients", 1, 3, "--texts", 2, "--seconds", 1, "--csv", tmp_path / "load.csv"]
    run(*command)
    found = rows(tmp_path / "load.csv")
    assert [row["clients"] for row in found] == ["1", "3"]
    for row in found:
        assert int(row["requests"]) > 0 and row["errors"] == "0"
        assert float(row["rate"]) == 2 * int(row["requests"])
        assert 0 < float(row["median_ms"]) <= float(row["p95_ms"])
    assert list(found[0]) == list(rows(SCRIPTS / "load.csv")[0])


def test_stream_kills_and_compares(text, tmp_path):
    command = ["python", SCRIPTS / "stream.py", "multi30k-en-de", "--input", text]
    run(*command, "--beam", 1, "--kills", 1, "--csv", tmp_path / "stream.csv")
    (row,) = rows(tmp_path / "stream.csv")
    assert (row["lines"], row["kills"], row["same"]) == ("30", "1", "True")
    assert set(row) == set(rows(SCRIPTS / "stream.csv")[0])


def test_siege_kills_a_worker_and_finds_nothing_wrong(text, tmp_path):
    command = ["python", SCRIPTS / "siege.py", "multi30k-en-de", "--input", text, "--name", "int8"]
    command += ["--clients", 4, "--attackers", 1, "--seconds", 4, "--csv", tmp_path / "siege.csv"]
    # Its status says too whether answers came in time, which is for a machine that does this alone.
    result = run(*command, check=False)
    (row,) = rows(tmp_path / "siege.csv")
    assert json.loads(result.stdout).keys() == row.keys()
    assert (row["model"], row["clients"], row["attackers"]) == ("int8", "4", "4")
    assert int(row["light"]) > 0 and row["wrong"] == "0"
    assert float(row["replaced_s"]) > 0  # it waits for another worker, and asks that for its memory
    assert float(row["memory_mib"]) > 0
    statuses = {pair.partition(":")[0] for pair in row["other_answers"].split()}
    assert statuses and statuses <= {"200", "413", "422", "429", "503", "broken"}
