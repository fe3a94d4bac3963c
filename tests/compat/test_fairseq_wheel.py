"""fairseq's wheel without compiled code does what the published one does."""

import importlib.metadata
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from cli.commands import RECIPE, ROOT, SIZES, run
from cli.conftest import prepared, raw, shared  # noqa: F401  (fixtures)
from fairseq.data import data_utils_fast
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.compat import batch_by_size, fairseq_wheel

SIZE = st.integers(1, 12)
needs_compiled = pytest.mark.skipif(
    not data_utils_fast.__file__.endswith(".so"), reason="fairseq has no compiled code here"
)


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """The wheel, made of what is installed here, which is what the published one installs."""
    folder = tmp_path_factory.mktemp("fairseq")
    package = importlib.metadata.distribution("ve-fairseq")
    with zipfile.ZipFile(folder / "published.whl", "w") as archive:
        for file in package.files:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                archive.write(package.locate_file(file), str(file))
    return fairseq_wheel.strip(folder / "published.whl", folder)


@pytest.fixture(scope="module")
def pure(stripped, tmp_path_factory):
    """Where pip has installed it."""
    folder = tmp_path_factory.mktemp("pure")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, "--target", folder, stripped], check=True, capture_output=True)
    assert not [*folder.rglob("*.so")]
    return folder


@needs_compiled
@given(
    sizes=st.lists(SIZE, max_size=40),
    tokens=st.sampled_from([-1, 0, 12, 20, 60]),
    sentences=st.sampled_from([-1, 0, 1, 3, 5, 16]),
    multiple=st.sampled_from([1, 2, 4, 8]),
)
def test_batches_are_those_of_the_compiled_code(sizes, tokens, sentences, multiple):
    sizes = np.array(sizes, np.int64)
    indices = np.arange(len(sizes))[::-1].copy()
    found, expected = (
        [batch.tolist() for batch in make(indices, sizes, tokens, sentences, multiple)]
        for make in (batch_by_size.batch_by_size_vec, data_utils_fast.batch_by_size_vec)
    )
    assert found == expected
    by_index = sizes[::-1].tolist().__getitem__
    assert found == [
        batch.tolist()
        for batch in batch_by_size.batch_by_size_fn(indices, by_index, tokens, sentences, multiple)
    ]


def test_the_same_wheel_gives_the_same_bytes(stripped, tmp_path):
    again = fairseq_wheel.strip(stripped.with_name("published.whl"), tmp_path)
    assert again.read_bytes() == stripped.read_bytes()
    assert again.name == "ve_fairseq-0.12.3-py3-none-any.whl"


def test_the_hash_is_that_of_the_lock():
    asked = f"ve-fairseq=={fairseq_wheel.VERSION} \\\n"
    lock = (ROOT / "requirements.lock").read_text()
    assert f"--hash=sha256:{fairseq_wheel.SHA256}" in lock.split(asked)[1].split("==")[0]


def test_a_training_needs_no_compiled_code(pure, prepared, tmp_path):  # noqa: F811
    command = ["fairseq-train", prepared, "--user-dir", ROOT / "resmlp_mt", "--max-update", 1]
    command += ["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE, "--no-save"]
    run(*command, "--disable-validation", own=True, env={"PYTHONPATH": f"{pure}:{ROOT}"})


def test_bleu_in_compiled_code_is_refused_by_name(pure, raw):  # noqa: F811
    command = ["fairseq-score", "--sys", raw / "test.de", "--ref", raw / "test.de"]
    result = run(*command, own=True, check=False, env={"PYTHONPATH": f"{pure}:{ROOT}"})
    assert result.returncode and "libbleu" in result.stderr and "sacrebleu" in result.stderr


@needs_compiled
def test_an_optional_flag_of_python_3_14_is_read_as_the_type_without(pure):
    """`Optional[int]` is `int | None` there, and fairseq makes flags when it is imported."""
    code = """if True:
        from typing import List, Optional
        from fairseq.dataclass.utils import interpret_dc_type as read
        print(*(read(kind) for kind in (int | None, Optional[int], int, Optional[List[str]])))
    """
    kept = "<class 'int'> <class 'int'> typing.List[str]\n"
    for path, first in ((str(pure), "<class 'int'> "), ("", "int | None ")):
        done = run("python", "-c", code, own=True, env={"PYTHONPATH": path})
        assert done.stdout == first + kept, "the published wheel has mended it"
