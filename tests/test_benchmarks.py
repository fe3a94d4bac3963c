"""The scripts of examples/benchmarks: their flags, and a few of them on little work."""

import csv
import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import assert_refused, run
from cli.zygote import find_commands
from matplotlib import pyplot
from PIL import Image

SCRIPTS = Path(__file__).parents[1] / "examples" / "benchmarks"
PROGRAMS = [path.name for path in SCRIPTS.glob("*.py") if path.name != "marian_side.py"]


def read_rows(path: Path) -> list[dict]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("script", PROGRAMS)
def test_a_script_says_what_flags_it_takes(script):
    assert run("python", SCRIPTS / script, "--help").stdout.startswith("usage: ")


@pytest.mark.parametrize("script", SCRIPTS.glob("*.sh"), ids=lambda path: path.name)
def test_scripts_of_races_are_shell(script):
    subprocess.run(["bash", "-n", script], check=True)


def test_texts_that_were_made_to_take_long_are_measured(tmp_path):
    command = ["python", SCRIPTS / "hostile_text.py", "--bytes", 3000, "--only", "tags"]
    run(*command, "--csv", tmp_path / "h.csv")
    (row,) = read_rows(tmp_path / "h.csv")
    assert (row["text"], row["count"]) == ("tags", "1000") and float(row["s_per_mb"]) > 0


def run_for_a_gpu(**variables: str) -> subprocess.CompletedProcess:
    path = f"{find_commands()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"} | variables
    command = ["bash", SCRIPTS / "gpu.sh"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


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
    said = "numpy is missing: pip install numpy", "gpu.sh: torch, fairseq, "
    assert_refused(run_for_a_gpu(**bare), *said)
    if not torch.cuda.is_available():
        assert_refused(run_for_a_gpu(OUT=str(tmp_path / "out")), "torch finds no GPU")
        assert not (tmp_path / "out").exists()


def test_half_a_bleu_looks_the_same_in_all_races_and_layers_are_named_where_they_differ(tmp_path):
    script = runpy.run_path(str(SCRIPTS / "quality_speed.py"))
    races = [read_rows(SCRIPTS / f"{name}.csv") for name in ("everyday", "pareto", "depths")]
    legends = []
    for number, drawn in enumerate((races[:2], races[2:])):
        script["draw"](drawn, tmp_path / f"{number}.png")
        figure = pyplot.gcf()
        legends.append([text.get_text() for text in figure.legends[0].get_texts()])
        spans = {round(top - low, 6) for low, top in (panel.get_ylim() for panel in figure.axes)}
        assert len(spans) == 1
        pyplot.close()
    theirs = "Transformer (pre-norm) in CTranslate2"
    assert legends[0] == ["ours, 8 bits", f"{theirs}, 8 bits"]
    ours = [f"ours, {layers} layers, 8 bits" for layers in ("4+4", "6+2", "8+1")]
    assert legends[1] == [*ours, f"{theirs}, 6+2 layers, 8 bits"]


def test_a_subword_costs_an_update_or_a_step_of_one_sentence(tmp_path):
    train = {"rival": "transformer", "length": "16", "rate": "500", "ratio": "1.00"}
    step = {"rival": "exported", "batch": "8", "length": "16", "step_ms": "12", "ratio": "1.00"}
    races = {
        "training": [train, train | {"length": "64", "rate": "250"}],
        "decoding": [step, step | {"batch": "1", "step_ms": "3"}],
    }
    runpy.run_path(str(SCRIPTS / "plot.py"))["draw"](races, tmp_path / "p.png")
    panels = pyplot.gcf().axes
    pyplot.close()
    assert [panel.get_title() for panel in panels] == list(races)
    lines = [[line.get_xydata().tolist() for line in panel.lines] for panel in panels]
    assert lines == [[[[16, 2], [64, 4]]], [[[16, 1.5]], [[16, 3]]]]
    nothing = ["--sizes", "huge", "--out", tmp_path / "no.png"]
    refused = run("python", SCRIPTS / "plot.py", SCRIPTS / "train.csv", *nothing, check=False)
    assert_refused(refused, "no row has these sizes")


def test_a_model_of_no_known_kind_is_refused_before_the_race(tmp_path):
    command = ["bash", SCRIPTS / "pareto.sh", "test", "ours=checkpoint.pt"]
    environment = os.environ | {"CSV": str(tmp_path / "rows.csv")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "'exported ...=FILE' or 'CTranslate2 ...=FILE'" in done.stderr
    assert not (tmp_path / "rows.csv").exists()


def test_what_starts_is_measured_against_an_import_of_torch(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    run("python", SCRIPTS / "startup.py", "--rounds", 1, "--csv", tmp_path / "s.csv")
    rows = {row["rival"]: row for row in read_rows(tmp_path / "s.csv")}
    assert rows["import torch"]["ratio"] == "1.00"
    # What imports torch takes its memory, whatever the machine does beside.
    heavy = float(rows["import torch"]["memory_mib"])
    assert float(rows["translate, checkpoint"]["memory_mib"]) > heavy
    for name in ("resmlp-mt --help", "translate --help", "translate, exported"):
        assert float(rows[name]["memory_mib"]) < heavy


def test_splitters_are_scored_on_sentences_of_which_the_ends_are_known(tmp_path):
    data = {
        "multi30k/val": ["A dog sleeps.", "We see Dr. Wu.", "Two men sit.", "He left. She stayed."],
        "ende-mix/train": ["Dr. Wu met Dr. Lee.", "Dr. Wu is Dr. Lee.", "A dog."] * 3,
    }
    for name in ("multi30k/test_2016_flickr", "tatoeba/valid", "tatoeba/test"):
        data[name] = []
    data |= dict.fromkeys(("wmt/newstest2013", "wmt/newstest2014"), [])
    for name, lines in data.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        for language in ("en", "de"):
            (tmp_path / f"{name}.{language}").write_text("\n".join(lines))
    command = ["python", SCRIPTS / "sentences.py", "--data", tmp_path, "--worst", 100]
    run(*command, "--splitters", "resmlp_mt", "sentencex", "--csv", tmp_path / "s.csv")
    rows = read_rows(tmp_path / "s.csv")
    assert [(row["splitter"], row["language"]) for row in rows] == [
        (name, language) for language in ("en", "de") for name in ("resmlp_mt", "sentencex")
    ]
    # "A dog sleeps. Two men sit." and what has "Dr." within.
    assert {(row["pairs"], row["abbreviations"]) for row in rows} == {("1", "7")}
    assert {row["misses"] for row in rows} == {row["false_pairs"] for row in rows} == {"0.00"}
