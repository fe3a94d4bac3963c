"""Every patch mends what is wrong in fairseq today, and knows which functions it replaces."""

import re
import shutil
import signal
from pkgutil import resolve_name

import fairseq
import pytest
import torch
from cli.commands import ROOT, run, start, wait_for
from compat import defects
from compat.written import write_checkpoint

from resmlp_mt.compat.patching import REPLACED, apply
from resmlp_mt.errors import UserError

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


def test_every_patch_has_a_defect_and_a_section_and_is_in_place():
    page = (ROOT / "docs/patches.md").read_text(encoding="utf-8")
    assert re.findall("^### (.+)$", page, re.M) == sorted(map(str.capitalize, defects.OF_PATCHES))
    named = re.findall(r"`(fairseq\.[\w.\[\]]+)`", page)
    assert sorted(named) == sorted(target.replace(":", ".") for target in REPLACED)
    assert len(named) <= 15
    for target, ours in REPLACED.items():
        name, _, key = target.rstrip("]").partition("[")
        found = resolve_name(name)[key] if key else resolve_name(name)
        assert ours in (found, getattr(found, "ours", None)), target


def test_another_fairseq_is_refused(monkeypatch):
    apply()
    monkeypatch.setattr(fairseq, "__version__", "0.13.0")
    with pytest.raises(UserError, match=r"fairseq 0\.13\.0 .*pip install ve-fairseq==0\.12\.3"):
        apply()
