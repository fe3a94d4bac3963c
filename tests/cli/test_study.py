"""study: matrices, sparsity and curves, of a shipped model, one just trained, and classifiers."""

import csv
import os
import shutil
import threading
from collections import Counter

import numpy as np
import pytest
import sacrebleu
from cli.commands import IMAGE_SIZES, assert_refused, call, entries, refuse, run
from compat.written import write_checkpoint
from PIL import Image

from resmlp_mt.analysis.matrices import measure_sparsity, read_matrices
from resmlp_mt.files.finding import PRETRAINED

SHIPPED = "multi30k-en-de"
RED, BLUE, ZERO = (103, 0, 31), (5, 48, 97), (247, 246, 246)  # the ends and middle of RdBu_r


@pytest.fixture
def untrained(tmp_path, pictures):
    """untrained(mixer): a checkpoint of a classifier."""

    def save(mixer):
        flags = ["--task", "image_classification", *IMAGE_SIZES, "--token-mixer", mixer]
        write_checkpoint(path := tmp_path / f"{mixer}.pt", *flags, data=pictures)
        return path

    return save


def colours(path, above=1.0):
    """How many pixels of the upper part of a PNG have each colour."""
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    image = Image.open(path).convert("RGB")
    assert min(image.size) > 400
    image = image.crop((0, 0, image.width, int(image.height * above)))
    return Counter({c: count for count, c in image.getcolors(image.width * image.height)})


def test_old_names_say_what_they_are_called_now_and_work(tmp_path):
    command = ["plot-mixing", SHIPPED, "--layers", "3,0", "--positions", 40, "--out", "new/a.png"]
    done = run("resmlp-mt", *command, cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "resmlp-mt plot-mixing: from 0.3 on only 'resmlp-mt study mixing'",
        "wrote new/a.png",
    ]
    found = colours(tmp_path / "new/a.png", above=0.8)
    assert found[RED] > 50 and found[BLUE] > 50 and len(found) > 200
    # Of the decoder's maps, 40 x 39 / 2 of 40 x 40 entries look ahead: near half of half of all.
    assert found[ZERO] > 0.15 * sum(found.values())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.png"]
    gone = run("resmlp-mt", "benchmark", "train", check=False)
    assert_refused(gone, "examples/benchmarks/race.py")


def test_the_table_the_csv_and_the_model_agree(tmp_path, capsys):
    files = ["--csv", tmp_path / "s.csv", "--out", tmp_path / "s.png"]
    call("study", "sparsity", SHIPPED, *files, "--threshold", 0.1)
    head, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["part", "layer", "A", "B", "C"] and len(lines) == 4 + 4
    printed = {(line[0], line[1], head[i]): line[i] for line in lines for i in (2, 3, 4)}
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["part", "layer", "matrix", "share", "weights"]
    written = {(row["part"], row["layer"], row["matrix"]): row for row in rows}
    measured = measure_sparsity(read_matrices(SHIPPED)[1], 0.1)
    assert printed.keys() == written.keys() and len(measured) == len(rows) == 24
    for row in measured:
        name = (row.part, str(row.layer), row.matrix)
        assert printed[name] == f"{row.share:.4f}"
        assert written[name]["share"] == f"{row.share:.6f}"
        assert int(written[name]["weights"]) == row.weights
    found = colours(tmp_path / "s.png")
    for line in ((31, 119, 180), (255, 127, 14), (44, 160, 44)):
        assert found[line] > 200


def test_pruned_models_are_scored_beside_the_whole_one(
    classifier, trained, pictures, raw, tmp_path, capsys
):
    last, files = classifier / "checkpoint_last.pt", ["--csv", tmp_path / "c.csv"]
    files += ["--out", tmp_path / "c.png"]
    call("study", "pruning", last, "--threshold", 1, 0.1, "--data", pictures, *files)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["threshold", "zero", "top1"]
    whole, tenth, largest = ([float(cell) for cell in line.split()] for line in lines[1:])
    log = entries((classifier / "train.log").read_text(), "valid_top1")
    assert (whole[0], whole[1]) == (0, 0) and whole[2] == float(log[-1]["valid_top1"])
    assert tenth[0] == 0.1 and 0 < tenth[1] < largest[1]
    # Of each of 2 layers, whose A is between 4 x 4 patches, the largest weight is left.
    assert largest[1] == pytest.approx(1 - 2 / (2 * 16 * 16), abs=1e-4)
    rows = (tmp_path / "c.csv").read_text().splitlines()
    assert rows[0] == "threshold,share,top1" and len(rows) == 4
    found = colours(tmp_path / "c.png")
    assert all(found[line] > 200 for line in ((31, 119, 180), (255, 127, 14)))

    for name, side in (("in", "en"), ("ref", "de")):
        lines = (raw / f"test.{side}").read_text().splitlines(True)[:5]
        (tmp_path / name).write_text("".join(lines))
    text = ["--input", tmp_path / "in", "--reference", tmp_path / "ref", "--tokenize", "char"]
    call("study", "pruning", trained, "--threshold", 0.5, *text, "--matrices", "BC")
    bleu = [float(line.split()[2]) for line in capsys.readouterr().out.splitlines()[1:]]
    call("translate", "--model", trained, "--input", tmp_path / "in")
    references = (tmp_path / "ref").read_text().splitlines()
    translated = capsys.readouterr().out.splitlines()
    expected = sacrebleu.corpus_bleu(translated, [references], tokenize="char").score
    assert bleu[0] == pytest.approx(expected, abs=0.01)

    for model, flags, said in (
        (last, [], "--data"),
        (last, ["--data", pictures, *text], "--input"),
        (trained, text[:2], "--reference"),
        (trained, ["--data", pictures, *text], "--data"),
        (trained, [*text, "--tokenize", "x"], "--tokenize x"),
    ):
        assert said in refuse("study", "pruning", model, *flags)


def test_a_classifier_without_a_has_no_share_of_it(untrained, tmp_path, capsys):
    call("study", "sparsity", untrained("none"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["image", str(i), "-"] for i in range(2)]
    assert len({len(line) for line in lines}) == 1
    said = refuse("study", "mixing", untrained("mlp"), "--out", tmp_path / "a.png")
    assert "'mlp' has no matrix A" in said and not (tmp_path / "a.png").exists()


def test_curves_are_a_picture_of_the_log(trained, tmp_path):
    call("study", "curves", trained / "train.log", "--out", tmp_path / "loss.png")
    image = np.asarray(Image.open(tmp_path / "loss.png").convert("RGB"), int)
    blue = image[..., 2] > image[..., 0] + 60  # matplotlib's first colour
    assert image.shape[1] > 600 and blue.sum() > 200
    # A pipe is read once, and has no ending to its name.
    os.mkfifo(tmp_path / "pipe")
    written = ['{"loss": "3", "num_updates": "1"}\n']
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=written, daemon=True)
    writer.start()
    call("study", "curves", tmp_path / "pipe", "--out", tmp_path / "piped.png")
    assert (tmp_path / "piped.png").exists()


@pytest.mark.parametrize(
    "log",
    [
        "epoch 1 | loss 3\n",
        '{}\n{"nll_loss": "good", "num_updates": "1"}\n',
        '{"valid_nll_loss": "3"}\n',
    ],
)
def test_a_log_without_figures_is_refused(tmp_path, log):
    (tmp_path / "train.log").write_text(log)
    said = refuse("study", "curves", tmp_path / "train.log", "--out", tmp_path / "x.png")
    assert "train.log" in said and "nll_loss" in said and not (tmp_path / "x.png").exists()


def test_what_is_read_is_not_written(tmp_path):
    model = shutil.copytree(PRETRAINED / SHIPPED, tmp_path / "model")
    (text := tmp_path / "text").write_text("A dog.\n")
    (tmp_path / "link").symlink_to(model / "model.pt")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for command in (
        ["study", "sparsity", model, "--csv", tmp_path / "link"],
        ["study", "pruning", SHIPPED, "--input", text, "--reference", text, "--csv", text],
        ["translate", "--model", model, "--input", text, "--output", model / "model.pt"],
        ["study", "probe", "cifar10", model, "--csv", model / "text.json"],  # a folder of data
    ):
        assert "read and written" in refuse(*command)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
