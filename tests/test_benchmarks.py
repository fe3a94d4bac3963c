"""The scripts of examples/benchmarks: their flags, and a few of them on little work."""

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import assert_refused, run
from PIL import Image

SCRIPTS = Path(__file__).parents[1] / "examples" / "benchmarks"
PROGRAMS = [path.name for path in SCRIPTS.glob("*.py") if path.name != "marian_side.py"]


def read_rows(path: Path) -> list[dict]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("script", PROGRAMS)
def test_a_script_says_what_flags_it_takes(script):
    assert run("python", SCRIPTS / script, "--help").stdout.startswith("usage: ")


def run_for_a_gpu(**variables: str) -> subprocess.CompletedProcess:
    return run("bash", SCRIPTS / "gpu.sh", env=variables, check=False)


def test_what_a_gpu_shall_do_is_done_with_toys_on_the_processor(tmp_path):
    result = run_for_a_gpu(DEVICE="cpu", OUT=str(tmp_path / "out"), COMMIT="abc")
    assert result.returncode == 0, result.stderr[-4000:]
    tables = {}
    for name in ("train", "translate"):
        path = tmp_path / "out" / f"gpu_{name}.csv"
        tables[name] = read_rows(path)
        assert str(tmp_path) not in path.read_text()
        for row in tables[name]:
            assert float(row["rate"]) > 0 and row["date"]
            assert (row["device"], row["commit"], row["length"]) == ("cpu", "abc", "4")
            assert row["command"].startswith(f"python gpu_{name}.py --device cpu --size tiny ")
    models = ["transformer", "resmlp_tiny", "resmlp_plus_tiny"]
    found = [row["rival"] for row in tables["train"]]
    assert found == ["transformer", *(f"{model}, chunks" for model in models)]
    for row in tables["train"]:
        figures = ("rate", "gflop_token", "tflops", "peak_tflops", "peak_share", "memory_ratio")
        rate, cost, reached, peak, part, memory = (float(row[name]) for name in figures)
        assert reached == pytest.approx(rate * cost / 1000, rel=0.01)
        assert part == pytest.approx(reached / peak, rel=0.01) and memory > 0
    theirs = ["CTranslate2"] * (importlib.util.find_spec("ctranslate2") is not None)
    assert [row["rival"] for row in tables["translate"]] == models + theirs
    assert Image.open(tmp_path / "out" / "gpu_train.png").width > 300


def test_without_a_gpu_or_packages_its_races_are_refused(tmp_path):
    assert_refused(run_for_a_gpu(DEVICE="cpu", OUT=""), "OUT=FOLDER")
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (tmp_path / "python").chmod(0o755)
    bare = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}  # without what is installed
    assert_refused(run_for_a_gpu(**bare), "not installed: ", "gpu.sh: torch, fairseq, ")
    if not torch.cuda.is_available():
        assert_refused(run_for_a_gpu(OUT=str(tmp_path / "out")), "torch finds no GPU")
        assert not (tmp_path / "out").exists()


def test_a_model_of_no_known_kind_is_refused_before_the_race(tmp_path):
    command = ["bash", SCRIPTS / "pareto.sh", "test", "ours=checkpoint.pt"]
    environment = os.environ | {"CSV": str(tmp_path / "rows.csv")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "'exported ...=FILE' or 'CTranslate2 ...=FILE'" in done.stderr
    assert not (tmp_path / "rows.csv").exists()
