"""A classifier in Python: what it takes, in threads and processes, and what is left of it."""

import io
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from resmlp_mt import Classifier
from resmlp_mt.errors import UserError
from resmlp_mt.export.writer import export_model
from resmlp_mt.files.finding import PRETRAINED

PICTURES = [Image.linear_gradient("L"), Image.new("RGB", (40, 30), "red")]


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared") / "fast"
    export_model("cifar10", folder, int8=False)
    return folder


@pytest.fixture(scope="module")
def classifier():
    return Classifier.from_pretrained("cifar10", "cpu")


def test_threads_are_those_of_an_export_and_torchs_of_a_checkpoint(fast):
    expected = list(Classifier.from_pretrained(fast, threads=1).classify(PICTURES))
    assert list(Classifier.from_pretrained(fast, threads=3).classify(PICTURES)) == expected
    threads = torch.get_num_threads()
    try:
        Classifier.from_pretrained(PRETRAINED / "cifar10" / "model.pt", "cpu", threads=threads + 1)
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    for wrong in (0, "2", 1.5, True):
        with pytest.raises(ValueError, match="threads .* must be a whole number, 1 or more"):
            Classifier.from_pretrained(fast, threads=wrong)


def test_it_frees_its_model_at_the_end_of_a_block(fast):
    with Classifier.from_pretrained(fast) as classifier:
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


@pytest.fixture
def picture(tmp_path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    return tmp_path / "x.png"


def test_whatever_holds_a_picture_is_taken(classifier, picture):
    data, written = picture.read_bytes(), io.BytesIO()
    with Image.open(picture) as image, open(picture, "rb") as file:
        image.save(written, "PNG")  # which leaves it at its end
        pixels, grey = np.asarray(image), np.asarray(image.convert("L"))
        same = [picture, str(picture), data, bytearray(data), memoryview(data), file, written]
        same += [image, pixels, np.repeat(pixels, 2, 1)[:, ::2]]
        expected = classifier.classify(picture)
        assert [classifier.classify(one) for one in same] == [expected] * len(same)
        # Again, as what was read once: all in one batch, whose sums may differ in their last bits.
        for best in classifier.classify(same):
            assert [guess.name for guess in best] == [guess.name for guess in expected]
        alpha = np.arange(grey.size, dtype=np.uint8).reshape(grey.shape)
        clear = np.dstack([pixels, alpha])
        for array, alike in (
            (grey, image.convert("L")), (grey[..., None], image.convert("L")),
            (clear, Image.fromarray(clear)),
        ):  # fmt: skip
            assert classifier.classify(array) == classifier.classify(alike)
    assert len(list(classifier.classify(np.stack([pixels] * 3)))) == 3
    assert len(list(classifier.classify(np.array([str(picture)] * 2)))) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        None, 3, [[0]], torch.zeros(3, 4), io.StringIO("x"), b"", b"text", io.BytesIO(b"text"),
        Image.new("RGB", (0, 5)), np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint16),
        np.zeros((4, 4, 2), np.uint8), np.array("photo.jpg"), np.zeros((0, 4, 3), np.uint8),
        np.zeros(9, np.uint8),
    ],
    ids=lambda wrong: type(wrong).__name__,
)  # fmt: skip
def test_what_is_no_picture_is_named_by_its_number(wrong, classifier):
    before, several = [], classifier.classify([*PICTURES, wrong])
    with pytest.raises(ValueError, match="^picture 3: "):
        before.extend(next(several) for _ in range(2))
        next(several)
    assert len(before) == 2
    if not isinstance(wrong, list):
        with pytest.raises(ValueError, match="^picture 1: "):
            classifier.classify(wrong)


def test_an_image_that_pillow_cannot_read_to_its_end_is_named(classifier, picture):
    cut = Image.open(io.BytesIO(picture.read_bytes()[:200]))
    with pytest.raises(ValueError, match="^picture 1: .*truncated"):
        classifier.classify(cut)


def test_grey_in_16_bits_looks_as_it_does_in_8_and_what_may_be_neither_is_refused(classifier):
    deep = np.random.default_rng(0).integers(0, 2**16, (9, 12), dtype=np.uint16)
    expected = classifier.classify((deep // 256).astype(np.uint8))
    for form in ("PNG", "PPM", "TIFF"):  # Pillow opens PGM in mode I
        Image.fromarray(deep).save(file := io.BytesIO(), form)
        assert classifier.classify(Image.open(file)) == expected, form
    older = Image.fromarray(deep.astype(np.int32))
    older.format = "PNG"  # as older versions of Pillow open it
    assert classifier.classify(older) == expected
    # As 16 bits these would be black. By its values a dark picture of 16 bits would be bright.
    for kind in (np.int32, np.float32):
        unknown = Image.fromarray(np.full((9, 9), 200, kind))
        unknown.save(file := io.BytesIO(), "TIFF")
        for image in (unknown, Image.open(file)):
            said = f"^picture 3: mode {image.mode} .* scale it to 8 bits"
            with pytest.raises(ValueError, match=said):
                list(classifier.classify([*PICTURES, image]))


def test_scores_are_of_none_or_of_pictures_in_any_mode(classifier):
    grey = PICTURES[0].convert("L")
    one, same = classifier.scores([grey, grey.convert("RGBA")])
    assert np.array_equal(one, same)
    none = classifier.scores([])
    assert none.shape == (0, len(classifier.classes)) and none.dtype == one.dtype
    assert list(classifier.classify([])) == []


def test_what_names_no_model_and_scores_that_are_no_numbers_are_refused(classifier):
    with pytest.raises(ValueError, match="model 3 must be a model's name, folder or checkpoint"):
        Classifier.from_pretrained(3)
    shape = 1, len(classifier.classes)
    broken = Classifier(lambda _: np.full(shape, np.nan), classifier.cut, classifier.classes)
    with pytest.raises(UserError, match="its weights are broken"):
        broken.classify(PICTURES[0])
