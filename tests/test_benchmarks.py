"""The scripts of examples/benchmarks, on little work."""

import csv
import importlib.util
import os
import runpy
import subprocess
import sys
from argparse import Namespace
from itertools import product
from pathlib import Path

import numpy
import pytest
import torch
from cli.commands import assert_refused, prepare, run
from cli.zygote import find_commands
from matplotlib import pyplot
from PIL import Image

from examples.lesson import write_lesson
from resmlp_mt.engines.kernels import library as kernels
from resmlp_mt.engines.kernels.library import find_library
from resmlp_mt.errors import UserError

SCRIPTS = Path(__file__).parents[1] / "examples" / "benchmarks"
SHORT = "--max-source-positions 9 --max-target-positions 9"  # of models to be raced


def test_options_of_a_training_are_raced_with_its_plain_form(tmp_path):
    command = ["python", SCRIPTS / "options.py", "--size", "tiny", "--max-tokens", 8]
    command += ["--length", 4, "--rounds", 1, "--threads", 1, "--csv", tmp_path / "o.csv"]
    options = ["with torch's dropout", "with a matrix at a time"]
    # Small matrices over positions: Muon takes seconds for the usual ones.
    flags = f"--optimizer muon --clip-norm 1 {SHORT}"
    run(*command, f"--flags={flags}", "--options", *options)
    with open(tmp_path / "o.csv", newline="") as stream:
        found = [(row["rival"], row["size"]) for row in csv.DictReader(stream)]
    names = ("resmlp_tiny", "resmlp_plus_tiny")
    expected = [(f"{name} {option}".strip(), "tiny") for name in names for option in options]
    assert found == expected


def test_texts_that_were_made_to_take_long_are_measured(tmp_path):
    command = ["python", SCRIPTS / "hostile_text.py", "--bytes", 3000, "--only", "tags"]
    run(*command, "--csv", tmp_path / "h.csv")
    with open(tmp_path / "h.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["text"], row["count"]) == ("tags", "1000") and float(row["s_per_mb"]) > 0


@pytest.mark.skipif(find_library() is None, reason="the compiled code was not built")
def test_builds_of_the_compiled_code_are_raced(tmp_path):
    run("resmlp-mt", "export", "multi30k-en-de", "--int8", "--out", tmp_path / "export")
    command = ["python", SCRIPTS / "compilers.py", tmp_path / "export", "--steps", 3]
    built = Path(kernels.__file__).parents[2] / "native"
    command += ["--compilers", built, "--kinds", "plain", "--rounds", 1, "--batches", 8, 1]
    run(*command, "--csv", tmp_path / "c.csv")
    with open(tmp_path / "c.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["batch"], row["beam"]) for row in rows] == [*product("81", "14")]
    assert all(float(row["ms"]) > 0 and row["isa"] == "plain" for row in rows)


def test_fewer_bits_are_sized_and_scored(tmp_path):
    sentences = {
        "en": ["A man rides a bike.", "A dog."],
        "de": ["Ein Mann fährt Rad.", "Ein Hund."],
    }
    for lang, lines in sentences.items():
        (tmp_path / f"test.{lang}").write_text("\n".join(lines) + "\n")
    command = ["python", SCRIPTS / "weight_bits.py", "multi30k-en-de", "--bits", 5, 4]
    test = ["--test", "two", tmp_path / "test.en", tmp_path / "test.de"]
    run(*command, *test, "--csv", tmp_path / "b.csv")
    run(*command, "--csv", tmp_path / "b.csv")  # sizes alone
    with open(tmp_path / "b.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["weight_bits"] for row in rows] == 2 * ["", "5", "4"]
    for scored, sized in zip(rows[:3], rows[3:], strict=True):
        assert scored["megabytes"] == sized["megabytes"] and scored["set"] == "two"
        assert 0 < float(scored["bleu"]) <= 100 and "nrefs:1" in scored["bleu_signature"]
        assert not sized["bleu"] + sized["set"]
    sizes = [float(row["megabytes"]) for row in rows[:3]]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[2]


def test_previews_and_shortlists_are_scored_beside_the_plain_export(tmp_path):
    for lang, line in (("en", "A man rides a bike."), ("de", "Ein Mann fährt Rad.")):
        (tmp_path / f"test.{lang}").write_text(f"{line}\n" * 3)
    text = [tmp_path / "test.en", tmp_path / "test.de"]
    command = ["python", SCRIPTS / "preview.py", "multi30k-en-de", "--text", *text]
    command += ["--name", "ours", "--shortlist-best", 7, "--test", "three", *text]
    run(*command, "--csv", tmp_path / "p.csv")
    with open(tmp_path / "p.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    kinds = [(row["type"], row["preview"], row["shortlist"]) for row in rows]
    plain = [(t, p, "no") for t in ("float32", "int8") for p in ("no", "yes")]
    assert kinds == [*plain, ("int8", "no", "7")]
    assert all(0 < float(row["bleu"]) <= 100 and row["set"] == "three" for row in rows)
    assert {row["model"] for row in rows} == {"ours"}


def test_what_fairseq_generate_says_of_its_speed_is_raced(tmp_path):
    write_lesson(tmp_path, train=60, valid=4, test=4)
    data = tmp_path / "data"
    prepare(tmp_path, data, "--vocab-size", 90, "--joined")
    small = [
        f"--{side}-{flag} {size}"
        for side in ("encoder", "decoder")
        for flag, size in (("embed-dim", 16), ("ffn-embed-dim", 16), ("layers", 1))
    ]
    heads = ["--decoder-attention-heads 2"]
    archs = [" ".join([arch, *small, *heads]) for arch in ("resmlp_plus_tiny", "transformer")]
    run("python", SCRIPTS / "untrained.py", data, tmp_path / "models", *archs)
    models = [tmp_path / "models" / f"{arch.split()[0]}.pt" for arch in reversed(archs)]
    flags = ["--size", "toy", "--rounds", 1, "--threads", 1, "--max-len-b", 6]
    command = ["python", SCRIPTS / "generate.py", data, *models, *flags]
    run(*command, "--csv", tmp_path / "g.csv", forks=True)
    rows = read_rows(tmp_path / "g.csv")
    names = ["transformer", "ours", "ours, in fairseq's search"]
    assert [row["rival"] for row in rows] == names
    assert {(row["size"], row["flags"], row["sentences"]) for row in rows} == {
        ("toy", "--max-len-b 6", "4")
    }
    assert rows[1]["tokens"] == rows[2]["tokens"]
    assert all(float(row["rate"]) > 0 and row["commit"] for row in rows)


def test_the_loss_in_chunks_is_raced_with_that_of_fairseq(tmp_path):
    command = ["python", SCRIPTS / "loss.py", "--size", "tiny", "--vocab-size", 60, "--models"]
    command += ["plus", "--max-tokens", 8, "--length", 4, "--rounds", 1, f"--flags={SHORT}"]
    run(*command, "--csv", tmp_path / "l.csv")
    with open(tmp_path / "l.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["rival"] for row in rows] == ["transformer", "resmlp_plus_tiny, chunks"]
    for row in rows:
        assert float(row["rate"]) > 0 and (row["vocabulary"], row["tokens"]) == ("60", "8")


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
        with open(path, newline="") as stream:
            tables[name] = list(csv.DictReader(stream))
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


def test_batches_of_new_shapes_are_raced_with_the_same_again(tmp_path, monkeypatch):
    write_lesson(tmp_path)
    prepare(tmp_path, data := tmp_path / "bin", "--vocab-size", 90, "--joined")
    script = runpy.run_path(str(SCRIPTS / "gpu_shapes.py"))
    small = "--share-all-embeddings --encoder-embed-dim 8 --decoder-embed-dim 8"
    monkeypatch.setitem(script["list_rivals"].__globals__, "SIZE", small)
    rivals = script["list_rivals"](
        Namespace(data=str(data), device="cpu", max_tokens=100, batches=2, rounds=1)
    )
    assert [rival.arguments["planned"] for rival in rivals] == [False, True] * 2
    allowed = []
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", allowed.append)
    training = rivals[3].build(**rivals[3].arguments)
    assert allowed[-1] is True
    step, seen = training.trainer.train_step, []
    monkeypatch.setattr(
        training.trainer, "train_step", lambda b, **how: (seen.extend(b), step(b, **how))
    )
    for shapes in ("new", "new", "old"):
        assert training(script["Case"](2, shapes))["rate"] > 0
    lines = [tuple(batch["id"].tolist()) for batch in seen]
    assert lines[2:4] == lines[4:] and len(set(lines)) == 4


def test_batches_at_once_are_raced_with_those_of_fairseq(tmp_path):
    write_lesson(tmp_path, train=200, valid=2, test=2)
    prepare(tmp_path, data := tmp_path / "bin", "--vocab-size", 90, "--joined")
    command = ["python", SCRIPTS / "batches.py", data, "--max-tokens", 200, "--rounds", 1]
    run(*command, "--batches", 2, "--csv", tmp_path / "b.csv")
    rows = read_rows(tmp_path / "b.csv")
    assert [row["rival"] for row in rows] == ["fairseq", "resmlp_mt"]
    assert all(float(row["rate"]) > 0 < float(row["batch_ms"]) for row in rows)
    script = runpy.run_path(str(SCRIPTS / "batches.py"))
    reading = script["Reading"](str(data), at_once=True)
    with pytest.raises(UserError, match="the text has no further 1000 batches"):
        reading(script["Case"](200, 1000))


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


# Each with the words before its tables, the tables, and the words after them.
PICTURES = {
    "train.png": (["plot.py"], ["train.csv"], []),
    "length.png": (["plot.py"], ["train.csv", "length.csv"], ["--sizes", "tiny", "tiny int8"]),
    "quality_speed.png": (["quality_speed.py", "--speed"], ["pareto.csv", "everyday.csv"], []),
    "depths.png": (["quality_speed.py", "--speed"], ["depths.csv"], []),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_committed_pictures_are_those_of_the_committed_rows(name, tmp_path):
    (script, *before), tables, after = PICTURES[name]
    rows = read_rows(SCRIPTS / tables[-1])
    measured = "step_ms" if "step_ms" in rows[0] else "rate"
    rows[0][measured] = str(float(rows[0][measured]) / 2)
    with open(tmp_path / "other.csv", "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    same = [SCRIPTS / table for table in tables]
    committed = read_gray(SCRIPTS / name)
    changed = []
    for paths in (same, [*same[:-1], tmp_path / "other.csv"]):
        command = ["python", SCRIPTS / script, *before, *paths, *after]
        run(*command, "--out", tmp_path / "drawn.png")
        changed.append((abs(read_gray(tmp_path / "drawn.png") - committed) > 64).sum())
    # A library of another version may smooth letters otherwise; a dot has some 80 pixels.
    assert changed[0] < 20 < 100 < changed[1]


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


def read_rows(path: Path) -> list[dict]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def read_gray(path: Path) -> numpy.ndarray:
    return numpy.asarray(Image.open(path).convert("L"), dtype=float)


def test_a_model_of_no_known_kind_is_refused_before_the_race(tmp_path):
    command = ["bash", SCRIPTS / "pareto.sh", "test", "ours=checkpoint.pt"]
    done = subprocess.run(
        command,
        env=os.environ | {"CSV": str(tmp_path / "rows.csv")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "'exported ...=FILE' or 'CTranslate2 ...=FILE'" in done.stderr
    assert not (tmp_path / "rows.csv").exists()


def test_the_time_of_two_threads_is_told_by_operators(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    command = ["python", SCRIPTS / "threads.py", "--batch-size", 1, "--runs", 1]
    run(*command, "--csv", tmp_path / "t.csv", cwd=tmp_path)
    with open(tmp_path / "t.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["model"] for row in rows} == {"exported", "exported int8"}
    for model in ("exported", "exported int8"):
        ms = {row["part"]: float(row["one_ms"]) for row in rows if row["model"] == model}
        assert ms.pop("all") == pytest.approx(sum(ms.values()), abs=0.02)
        assert ms["MatMul"] > 0 and ms["rest"] >= 0
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]  # no profile is left


def test_what_starts_is_measured_against_an_import_of_torch(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    run("python", SCRIPTS / "startup.py", "--rounds", 1, "--csv", tmp_path / "s.csv")
    with open(tmp_path / "s.csv", newline="") as stream:
        rows = {row["rival"]: row for row in csv.DictReader(stream)}
    assert rows["import torch"]["ratio"] == "1.00"
    # What imports torch takes its memory, whatever the machine does beside.
    heavy = float(rows["import torch"]["memory_mib"])
    assert float(rows["translate, checkpoint"]["memory_mib"]) > heavy
    for name in ("resmlp-mt --help", "translate --help", "translate, exported"):
        assert float(rows[name]["memory_mib"]) < heavy


@pytest.mark.parametrize("script", ["translate.sh", "train.sh", "images.sh", "pareto.sh"])
def test_scripts_of_races_are_shell(script):
    subprocess.run(["bash", "-n", SCRIPTS / script], check=True)


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
    with open(tmp_path / "s.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["splitter"], row["language"]) for row in rows] == [
        (name, language) for language in ("en", "de") for name in ("resmlp_mt", "sentencex")
    ]
    # "A dog sleeps. Two men sit." and what has "Dr." within.
    assert {(row["pairs"], row["abbreviations"]) for row in rows} == {("1", "7")}
    assert {row["misses"] for row in rows} == {row["false_pairs"] for row in rows} == {"0.00"}
