"""Which classes a classifier mixes up, as a user asks for it."""

import csv
import io
import shutil
import tarfile
from collections import Counter
from contextlib import redirect_stdout

import numpy as np
import pytest
from cli.commands import assert_refused, call, entries, refuse, run
from cli.pictures import CLASSES
from matplotlib import pyplot
from PIL import Image

from resmlp_mt import Classifier
from resmlp_mt.analysis.confusion import Confusion
from resmlp_mt.cli.study.confusion import draw

FOLDERS = ("bird", "cat", "frog", "truck")  # of the ten classes that cifar10 knows


def confusion(*arguments) -> str:
    """The output of `study confusion`, in this process."""
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as said:
        call("study", "confusion", *arguments)
    said.seek(0)
    return said.read()


def patches(number: int) -> Image.Image:
    """A picture of coarse random patches, which cifar10 takes for this and that."""
    pixels = np.random.default_rng(number).integers(0, 256, (3, 3, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((32, 32), Image.Resampling.BILINEAR)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of four classes, and an empty one of a fifth."""
    root = tmp_path_factory.mktemp("confusion") / "pictures"
    for number in range(40):
        path = root / FOLDERS[number * number % 4 + number % 3] / ("more" * (number % 5 == 0))
        path.mkdir(parents=True, exist_ok=True)
        patches(number).save(path / f"{number}.png")
    (root / "ship").mkdir()
    return root


def test_it_counts_what_plain_loops_count_and_lists_the_lowest_recall_first(folder, tmp_path):
    classifier = Classifier.from_pretrained("cifar10", "cpu")
    pairs, top1, top5 = Counter(), 0, 0
    for path in folder.rglob("*.png"):
        true = path.relative_to(folder).parts[0]
        guesses = [guess.name for guess in classifier.classify(path)]
        pairs[true, guesses[0]] += 1
        top1 += true == guesses[0]
        top5 += true in guesses
    said = confusion("cifar10", folder, "--batch-size", 7, "--csv", tmp_path / "found.csv")
    with open(tmp_path / "found.csv", newline="") as stream:
        head, *rows = csv.reader(stream)
    assert head == ["class", "guess", "images"]
    assert {(true, guess): int(count) for true, guess, count in rows} == pairs
    first, *lines = said.splitlines()
    assert first == f"40 images: top1 {100 * top1 / 40:.2f}, top5 {100 * top5 / 40:.2f}"
    assert 0 < top1 < top5 < 40
    table = {row[0]: row[1:] for row in map(str.split, lines) if row and row[0] in FOLDERS}
    for name, (images, recall, precision, mistaken, number) in table.items():
        row = {guess: n for (true, guess), n in pairs.items() if true == name}
        column = sum(n for (_, guess), n in pairs.items() if guess == name)
        hits, total = row.pop(name, 0), sum(row.values())
        assert (images, recall) == (str(total + hits), f"{100 * hits / (total + hits):.2f}")
        assert precision == (f"{100 * hits / column:.2f}" if column else "-")
        assert row[mistaken] == max(row.values()) and number == f"({row[mistaken]})"
    recalls = [float(row[1]) for row in table.values()]
    assert len(table) == 4 and recalls == sorted(recalls)
    said = "No image of 6 of the model's classes: airplane, automobile, deer, "
    assert lines[-1].startswith(said)
    short = confusion("cifar10", folder, "--worst", 2).splitlines()
    assert [line.split()[0] for line in short[3:5]] == list(table)[:2]
    assert short[6].startswith("Shown: 2 of 4 classes")


def test_top1_is_that_of_the_validation_in_training(classifier, pictures):
    log = entries((classifier / "train.log").read_text(), "valid_top1")[-1]
    said = confusion(classifier / "checkpoint_last.pt", pictures, "--split", "valid")
    top1, top5 = (float(log[f"valid_{name}"]) for name in ("top1", "top5"))
    assert said.startswith(f"30 images: top1 {top1:.2f}, top5 {top5:.2f}\n")
    assert all(name in said for name in CLASSES)


def test_broken_pictures_are_named_and_the_others_still_counted(folder, tmp_path):
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "cat/cut\n.png").write_bytes(next(folder.rglob("*.png")).read_bytes()[:50])
    (broken / "frog/empty.jpg").touch()
    (broken / "frog/notes.txt").touch()
    command = ["resmlp-mt", "study", "confusion", "cifar10"]
    done = run(*command, broken, "--out", tmp_path / "x.png", check=False)
    assert_refused(done, "cut\\n.png: broken", "frog/empty.jpg: ", "2 of 42 images")
    assert done.stdout == confusion("cifar10", folder)
    assert (tmp_path / "x.png").exists()
    (tmp_path / "all/cat").mkdir(parents=True)
    (tmp_path / "all/cat/empty.jpg").touch()
    done = run(*command, tmp_path / "all", "--out", tmp_path / "all.png", check=False)
    assert_refused(done, "1 of 1 images")
    assert done.stdout == "" and not (tmp_path / "all.png").exists()


@pytest.mark.parametrize("form", ["", ".tar"])
@pytest.mark.parametrize(
    ("names", "arguments", "said"),
    [
        (["cat/1", "fi\nsh\x1b/1"], [], "no class fi\\nsh\\x1b"),
        (["val/cat/1", "train/cat/1"], [], "--split"),
        (["cat/1"], ["--split", "valid"], "no valid images"),
        (["1"], [], "a folder per class"),
    ],
)
def test_folders_that_do_not_fit_are_one_message(names, arguments, said, form, tmp_path):
    folder = tmp_path / f"x{form}"
    for name in names:
        path = tmp_path / "x" / (name if name.endswith(".txt") else f"{name}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        patches(0).save(path, "PNG")
    if form:
        with tarfile.open(folder, "w") as tar:
            tar.add(tmp_path / "x", ".")
    refused = refuse("study", "confusion", "cifar10", folder, *arguments)
    assert str(folder) in refused and said in refused


def test_a_reader_may_stop(folder, tmp_path):
    out = tmp_path / "new" / "x.pdf"
    command = f"resmlp-mt study confusion cifar10 '{folder}' --out"
    done = run("bash", "-c", f"{command} '{out}' | head -c 2")
    assert (done.stdout, done.stderr) == ("40", f"wrote {out}\n")
    assert out.read_bytes().startswith(b"%PDF")
    script = f"{command} '{tmp_path}/full.png' > /dev/full"
    assert run("bash", "-c", script, check=False).returncode == 2
    assert (tmp_path / "full.png").exists()


def counts(num_classes: int, pairs: dict) -> Confusion:
    """The counts of so many images for each (true, guessed)."""
    found = Confusion(num_classes)
    for (true, guess), images in pairs.items():
        for _ in range(images):
            found.add(true, [guess])
    return found


def labels(axis) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def test_the_picture_has_true_classes_down_and_guesses_across():
    pairs = {(0, 0): 9, (0, 2): 1, (1, 1): 3, (1, 0): 1, (2, 2): 1}
    names = ["ant", "$x^", "a name as long as those of ImageNet are", "no image"]
    figure, said = draw(counts(4, pairs), names, 20)
    axes = figure.axes[0]
    expected = np.zeros((4, 4))
    for (true, guess), images in pairs.items():
        expected[true, guess] = 100 * images / sum(n for (t, _), n in pairs.items() if t == true)
    np.testing.assert_allclose(axes.images[0].get_array(), expected)
    written = {tuple(map(int, text.get_position()[::-1])): text for text in axes.texts}
    assert {place: int(text.get_text()) for place, text in written.items()} == pairs
    shown = ["ant", "$x^", "a name as long as tho...", "no image"]
    assert labels(axes.xaxis) == labels(axes.yaxis) == shown
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("guessed", "true")
    assert said == "\n15 images: top1 86.67, top5 86.67"
    pyplot.close()
