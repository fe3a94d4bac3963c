import os
import shutil
from pathlib import Path

import pytest
from cli.commands import IMAGE_RECIPE, IMAGE_SIZES, RECIPE, ROOT, SIZES, prepare, run
from cli.pictures import draw_pictures
from filelock import FileLock

from examples.lesson import write_lesson


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Path:
    """A folder that the test workers share."""
    root = tmp_path_factory.getbasetemp()
    return root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root


@pytest.fixture(scope="session")
def raw(shared) -> Path:
    with FileLock(shared / "raw.lock"):
        if not (shared / "raw").exists():
            write_lesson(shared / "raw", train=400, valid=20, test=30)
    return shared / "raw"


@pytest.fixture(scope="session")
def prepared(shared, raw) -> Path:
    """A data-bin folder."""
    out = shared / "data-bin"
    with FileLock(shared / "prepared.lock"):
        if not out.exists():
            prepare(raw, out)
    return out


@pytest.fixture(scope="session")
def much_to_validate(shared, prepared) -> Path:
    """A data-bin folder whose validation set is the training set."""
    out = shared / "much-to-validate"
    with FileLock(shared / "much-to-validate.lock"):
        if not out.exists():
            shutil.copytree(prepared, out)
            (out / "report.json").unlink()  # it has the sums of another validation set
            for path in out.glob("train.*"):
                shutil.copy(path, path.with_name(path.name.replace("train", "valid")))
    return out


@pytest.fixture(scope="session")
def trained(shared, prepared) -> Path:
    """The folder of a training run of three epochs."""
    out = shared / "trained"
    with FileLock(shared / "trained.lock"):
        if not out.exists():
            train = ["fairseq-train", prepared, "--user-dir", ROOT / "resmlp_mt"]
            train += ["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE, "--max-epoch", 3]
            run(*train, "--save-dir", out, "--log-file", out.with_suffix(".log"))
            out.with_suffix(".log").rename(out / "train.log")
    return out


@pytest.fixture(scope="session")
def packed(shared, trained) -> Path:
    """The trained model as a folder of its own."""
    out = shared / "packed"
    with FileLock(shared / "packed.lock"):
        if not out.exists():
            run("resmlp-mt", "pack", trained / "checkpoint_best.pt", "--out", out)
    return out


@pytest.fixture(scope="session")
def pictures(shared) -> Path:
    """A folder of images to train and validate on: 16 x 16 pixels, three classes."""
    out = shared / "pictures"
    with FileLock(shared / "pictures.lock"):
        if not out.exists():
            draw_pictures(out, {"train": 32, "val": 10})
    return out


@pytest.fixture(scope="session")
def classifier(shared, pictures) -> Path:
    """The folder of a training run on the pictures, long enough to know them."""
    out = shared / "classifier"
    with FileLock(shared / "classifier.lock"):
        if not out.exists():
            train = ["fairseq-train", pictures, "--user-dir", ROOT / "resmlp_mt"]
            train += [*IMAGE_SIZES, *IMAGE_RECIPE, "--store-ema", "--ema-decay", 0.8]
            run(*train, "--max-epoch", 6, "--save-dir", out, "--log-file", out.with_suffix(".log"))
            out.with_suffix(".log").rename(out / "train.log")
    return out
