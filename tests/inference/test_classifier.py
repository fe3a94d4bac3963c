"""A classifier in Python: in threads and processes, and what is left of it after its end."""

import multiprocessing
import pickle
import threading
import typing
import weakref
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import torch
from PIL import Image

from resmlp_mt import Classifier
from resmlp_mt.export.writer import export_model
from resmlp_mt.inference.classifier import Prediction
from resmlp_mt.inference.native_code import find_compute

PICTURES = [Image.linear_gradient("L"), Image.new("RGB", (40, 30), "red")]


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    folder = tmp_path_factory.mktemp("shared") / "fast"
    export_model("cifar10", folder, int8=False)
    return folder


@pytest.fixture
def classifier():
    return Classifier.from_pretrained("cifar10", "cpu")


def test_threads_are_those_of_an_export_and_torchs_of_a_checkpoint(fast):
    expected = list(Classifier.from_pretrained(fast, threads=1).classify(PICTURES))
    before = set(threading.enumerate())
    shared = Classifier.from_pretrained(fast, threads=3)
    for found, best in zip(shared.classify(PICTURES), expected, strict=True):
        assert [guess.name for guess in found] == [guess.name for guess in best]
    if find_compute("classify"):  # else they are ONNX Runtime's, which Python does not see
        assert len(set(threading.enumerate()) - before) == 3
    threads = torch.get_num_threads()
    try:
        Classifier.from_pretrained("cifar10", "cpu", threads=threads + 1)
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    for wrong in (0, "2", 1.5, True):
        with pytest.raises(ValueError, match="threads .* must be a whole number, 1 or more"):
            Classifier.from_pretrained(fast, threads=wrong)


def test_processes_load_it_from_any_folder(fast, monkeypatch, tmp_path):
    monkeypatch.chdir(fast.parent)
    classifier = Classifier.from_pretrained(Path("fast"), threads=1)
    monkeypatch.chdir(tmp_path)
    expected = classifier.classify(PICTURES[0])
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(classifier.classify, PICTURES[0]).result() == expected
    with pytest.raises(TypeError, match="only a classifier that from_pretrained has loaded"):
        pickle.dumps(Classifier(classifier.compute, classifier.cfg, classifier.classes))


def test_a_shipped_one_is_pickled_by_its_name(classifier):
    copy = pickle.loads(pickle.dumps(classifier))
    assert copy.classify(PICTURES[1]) == classifier.classify(PICTURES[1])


@pytest.mark.parametrize("model", ["fast", "cifar10"])
def test_it_frees_its_model_at_the_end_of_a_block(model, request):
    model = request.getfixturevalue("fast") if model == "fast" else model
    with Classifier.from_pretrained(model, "cpu") as classifier:
        begun = classifier.classify(PICTURES, batch_size=1)
        assert len(next(begun)) == 5
        compute = weakref.ref(classifier.compute)
    assert compute() is None
    for classify in (
        lambda: classifier.classify(PICTURES[0]),
        lambda: classifier.classify(PICTURES),  # at once, not when it is read
        lambda: next(begun),
    ):
        with pytest.raises(ValueError, match="the classifier is closed"):
            classify()


def test_types_say_that_one_picture_has_a_list_and_several_an_iterator():
    one, several = (typing.get_type_hints(f) for f in typing.get_overloads(Classifier.classify))
    assert one["return"] == list[Prediction]
    assert several["return"] == Iterator[list[Prediction]]
