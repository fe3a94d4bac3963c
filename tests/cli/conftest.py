import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from cli.commands import IMAGE_RECIPE, IMAGE_SIZES, PLUGIN, RECIPE, SIZES, once, prepare, run
from cli.pictures import draw_pictures

from examples.lesson import write_lesson


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Path:
    """A folder that the test workers share."""
    root = tmp_path_factory.getbasetemp()
    return root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root


@pytest.fixture(scope="session")
def raw(shared) -> Path:
    return once(shared / "raw", partial(write_lesson, train=400, valid=20, test=30))


@pytest.fixture(scope="session")
def prepared(shared, raw) -> Path:
    """A data-bin folder."""
    return once(shared / "data-bin", partial(prepare, raw))


@pytest.fixture(scope="session")
def much_to_validate(shared, prepared) -> Path:
    """A data-bin folder whose validation set is the training set."""

    def make(out):
        shutil.copytree(prepared, out)
        (out / "report.json").unlink()  # it has the sums of another validation set
        for path in out.glob("train.*"):
            shutil.copy(path, path.with_name(path.name.replace("train", "valid")))

    return once(shared / "much-to-validate", make)


def fairseq_train(data, out, *flags) -> None:
    """A training by fairseq's own command, whose log is in its folder."""
    command = ["fairseq-train", data, *PLUGIN, *flags, "--save-dir", out]
    run(*command, "--log-file", out.with_suffix(".log"))
    out.with_suffix(".log").rename(out / "train.log")


@pytest.fixture(scope="session")
def trained(shared, prepared) -> Path:
    """The folder of a training run of three epochs."""
    flags = ["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE, "--max-epoch", 3]
    return once(shared / "trained", lambda out: fairseq_train(prepared, out, *flags))


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    """A copy of it."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture(scope="session")
def packed(shared, trained) -> Path:
    """The trained model as a folder of its own."""
    command = ["resmlp-mt", "pack", trained / "checkpoint_best.pt", "--out"]
    return once(shared / "packed", lambda out: run(*command, out))


@pytest.fixture(scope="session")
def pictures(shared) -> Path:
    """A folder of images to train and validate on: 16 x 16 pixels, three classes."""
    return once(shared / "pictures", partial(draw_pictures, counts={"train": 32, "val": 10}))


@pytest.fixture(scope="session")
def classifier(shared, pictures) -> Path:
    """The folder of a training run on the pictures, long enough to know them."""
    flags = [*IMAGE_SIZES, *IMAGE_RECIPE, "--store-ema", "--ema-decay", 0.8, "--max-epoch", 6]
    return once(shared / "classifier", lambda out: fairseq_train(pictures, out, *flags))
