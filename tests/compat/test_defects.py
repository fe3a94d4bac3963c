"""Every patch mends what is wrong in fairseq today, and knows which functions it replaces."""

import shutil
import signal

import patches_table
import pytest
import torch
from cli.commands import run, start, wait_for
from compat import defects
from compat.written import write_checkpoint
from fairseq.data import data_utils

from resmlp_mt.compat import patching
from resmlp_mt.compat.patching import PATCHES, Patch

IN_PROCESS = list(defects.OF_PATCHES.values())
IN_PROCESS.remove(defects.sigterm_is_left_to_kill)


@pytest.fixture(scope="module")
def asks(tmp_path_factory):
    """A checkpoint whose configuration asks for a secret."""
    path = tmp_path_factory.mktemp("asks") / "asks.pt"
    write_checkpoint(path, "--arch", "resmlp_tiny")
    state = torch.load(path, weights_only=True)
    state["cfg"]["task"]["data"] = "${oc.env:SECRET}"
    torch.save(state, path)
    return path


@pytest.fixture
def folder(asks, tmp_path):
    """A folder of its own with that checkpoint."""
    shutil.copy(asks, tmp_path)
    return tmp_path


@pytest.mark.parametrize("defect", IN_PROCESS, ids=lambda defect: defect.__name__)
def test_fairseq_has_not_mended_it(defect, folder):
    result = run("python", defects.__file__, defect.__name__, folder, check=False, plugin=False)
    said = "nobody needs this patch, or part of it, any more"
    assert result.returncode == 0, said + result.stderr[-2000:]


def test_fairseq_is_still_killed_by_sigterm(tmp_path):
    process = start("python", defects.__file__, "sigterm_is_left_to_kill", tmp_path, own=True)
    wait_for('"ups"', process)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == -signal.SIGTERM, said[-2000:]
    assert not list((tmp_path / "out").glob("*.pt"))


def test_every_patch_has_a_defect_and_a_section():
    assert sum(len(patch.replacements) for patch in PATCHES) <= 15
    assert {patch.name for patch in PATCHES} == set(defects.OF_PATCHES)
    document = patches_table.DOCUMENT.read_text(encoding="utf-8")
    assert patches_table.build_sections() in document, "run scripts/patches_table.py"


def test_every_patch_is_in_place():
    for patch in PATCHES:
        assert patch.apply(), patch.name
        assert patch.replacements


def test_a_function_that_is_not_known_is_left_as_it_is_with_a_warning(caplog, monkeypatch):
    monkeypatch.setattr(patching, "PATCHES", [])
    patch = Patch("tried", "It does harm.", "somebody", "Nothing.")
    before = data_utils.batch_by_size, data_utils.numpy_seed

    @patch.replaces("fairseq.data.data_utils:batch_by_size", patching.digest(before[0]))
    def known(*args):
        raise AssertionError

    @patch.replaces("fairseq.data.data_utils:numpy_seed", "0123456789ab", "(seed)")
    def changed(*args):
        raise AssertionError

    @patch.replaces("fairseq.data.nowhere:nothing", "0123456789ab")
    def gone(*args):
        raise AssertionError

    assert not patch.apply()
    assert (data_utils.batch_by_size, data_utils.numpy_seed) == before
    (said,) = caplog.messages
    assert "numpy_seed, fairseq.data.nowhere:nothing differs" in said and "does harm" in said
    assert "batch_by_size" not in said
