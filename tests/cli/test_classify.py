"""Naming what is in pictures, as a user does."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
import torch
from cli.commands import assert_refused, run
from cli.pictures import CLASSES
from PIL import Image

from resmlp_mt import Classifier


def classify(*arguments, **options):
    return run("resmlp-mt", "classify", *arguments, **options)


@pytest.fixture(scope="module")
def every(classifier, pictures):
    """The classes of every validation picture, as JSON."""
    return json.loads(classify(classifier, pictures / "val", "--json", "--topk", 3).stdout)


def test_json_names_each_picture_with_classes_in_order_of_probability(every, pictures):
    assert [entry["path"] for entry in every] == sorted(map(str, pictures.glob("val/*/*.png")))
    for entry in every:
        predictions = entry["predictions"]
        assert {p["index"]: p["class"] for p in predictions} == dict(enumerate(CLASSES))
        probabilities = [p["probability"] for p in predictions]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1)
    right = [entry["predictions"][0]["class"] in entry["path"] for entry in every]
    assert sum(right) > 0.9 * len(right)


def test_broken_pictures_are_named_and_the_others_still_classified(classifier, pictures, tmp_path):
    good = shutil.copy(pictures / "val/over/0.png", tmp_path / "good.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:50])
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "folder.png").mkdir()
    (tmp_path / ".hidden.png").touch()
    (tmp_path / "notes.txt").touch()
    result = classify(classifier, f"{tmp_path}/**", "--json", check=False)
    assert_refused(result, "cut.png", "empty.jpg", "2 of 3 images could not be read")
    assert [entry["path"] for entry in json.loads(result.stdout)] == [str(good)]


def test_links_globs_of_what_is_hidden_and_pipes_are_followed(classifier, pictures, tmp_path):
    (tmp_path / ".hidden" / ".more").mkdir(parents=True)
    for name in (".hidden/1.png", ".hidden/.2.png", ".hidden/.more/3.png"):
        shutil.copy(pictures / "val/over/0.png", tmp_path / name)
    (tmp_path / "all").mkdir()
    (tmp_path / "all/linked").symlink_to("../.hidden")

    def names(*images, **options):
        lines = classify(classifier, *images, "--topk", 1, **options).stdout.splitlines()
        return [line.split("\t")[0].removeprefix(f"{tmp_path}/") for line in lines]

    assert names(tmp_path / "all", f"{tmp_path}/.hidden/*.png", f"{tmp_path}/*/*") == [
        "all/linked/1.png", ".hidden/1.png",
    ]  # fmt: skip
    data = (tmp_path / ".hidden/1.png").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[data], daemon=True).start()
    assert names("-", tmp_path / "pipe", stdin=data) == ["-", "pipe"]
    (tmp_path / "all/round").symlink_to(".")
    refused = classify(classifier, tmp_path / "all", check=False)
    assert_refused(refused, "all/round: a link to a folder that it lies in; remove it")


def test_a_packed_classifier_needs_nothing_else(every, classifier, pictures, tmp_path):
    packed = tmp_path / "packed"
    run("resmlp-mt", "pack", classifier / "checkpoint_best.pt", "--half", "--out", packed)
    assert [path.name for path in packed.iterdir()] == ["model.pt"]
    moved = shutil.move(packed, tmp_path / "moved")
    weights = torch.load(tmp_path / "moved/model.pt", weights_only=True)["model"]
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    model = Classifier.from_pretrained(moved, device="cpu")
    # A palette holds all colours that such a small picture has.
    images = [Image.open(entry["path"]).quantize(256) for entry in every]
    for entry, guesses in zip(every, model.classify(images, topk=1), strict=True):
        assert guesses[0].name == entry["predictions"][0]["class"]
        expected = entry["predictions"][0]["probability"]
        assert guesses[0].probability == pytest.approx(expected, abs=0.01)
    assert model.classify(every[0]["path"]) == next(model.classify([Path(every[0]["path"])]))


def test_pictures_in_python_are_turned_as_their_files_are(pictures, tmp_path):
    model = Classifier.from_pretrained("cifar10", device="cpu")
    exif = Image.Exif()
    exif[0x0112] = 6
    with Image.open(sorted(pictures.rglob("*.png"))[0]) as image:
        wide = image.convert("RGB").resize((48, 32))
    wide.save(tmp_path / "turned.jpg", exif=exif)
    with Image.open(tmp_path / "turned.jpg") as turned:
        assert model.classify(turned) == model.classify(tmp_path / "turned.jpg")
        assert turned.size == (48, 32)  # the caller's own stays
    assert model.classify(wide) != model.classify(tmp_path / "turned.jpg")
    for wrong in ({"topk": 0}, {"topk": "3"}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="must be a whole number, 1 or more"):
            model.classify([wide], **wrong)
