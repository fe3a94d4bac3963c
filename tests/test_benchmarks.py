"""The scripts of examples/benchmarks, on little work."""

import csv
import subprocess
from pathlib import Path

import pytest
from cli.commands import run

SCRIPTS = Path(__file__).parents[1] / "examples" / "benchmarks"


def test_options_of_a_training_are_raced_with_its_plain_form(tmp_path):
    command = ["python", SCRIPTS / "options.py", "--size", "tiny", "--max-tokens", 8]
    command += ["--length", 4, "--rounds", 1, "--threads", 1, "--csv", tmp_path / "o.csv"]
    run(*command, "--options", "", "--optimizer adamw")
    with open(tmp_path / "o.csv", newline="") as stream:
        found = [(row["rival"], row["size"]) for row in csv.DictReader(stream)]
    names = ("resmlp_tiny", "resmlp_plus_tiny")
    expected = [(name + flags, "tiny") for name in names for flags in ("", " --optimizer adamw")]
    assert found == expected


def test_the_plot_shows_the_committed_rows(tmp_path):
    pictures = [tmp_path / "a.png", tmp_path / "b.png"]
    run("python", SCRIPTS / "plot.py", SCRIPTS / "train.csv", "--out", pictures[0])
    text = (SCRIPTS / "train.csv").read_text()
    (tmp_path / "less.csv").write_text("".join(text.splitlines(keepends=True)[:7]))
    run("python", SCRIPTS / "plot.py", tmp_path / "less.csv", "--out", pictures[1])
    assert pictures[0].read_bytes() != pictures[1].read_bytes()


@pytest.mark.parametrize("script", ["translate.sh", "train.sh"])
def test_scripts_of_races_are_shell(script):
    subprocess.run(["bash", "-n", SCRIPTS / script], check=True)
