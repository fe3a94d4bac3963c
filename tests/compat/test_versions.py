"""Versions of fairseq that differ from the one that is pinned."""

import os
from pathlib import Path

import fairseq.version
import pytest
import torch
from cli.commands import ROOT, assert_refused, run
from fairseq import checkpoint_utils
from hostile.checkpoints import Payload

MODEL = ROOT / "resmlp_mt/pretrained/multi30k-en-de"
# Import fairseq's module from a file of ours.
FINDER = """
import importlib.util, sys

class Changed:
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            return importlib.util.spec_from_file_location(name, {file!r})

sys.meta_path.insert(0, Changed())
"""
CALL = 'torch.load(f, map_location=torch.device("cpu"))'


@pytest.mark.parametrize(
    ("module", "old", "new", "said"),
    [
        # As its main branch has it.
        (checkpoint_utils, CALL, CALL[:-1] + ", weights_only=False)", "pickled code"),
        (fairseq.version, fairseq.version.__version__, "0.13.0", "pip install ve-fairseq"),
    ],
    ids=["main", "unknown"],
)
def test_code_in_a_checkpoint_is_refused_whatever_fairseq_does(module, old, new, said, tmp_path):
    source = Path(module.__file__).read_text()
    assert old in source
    (tmp_path / "changed.py").write_text(source.replace(old, new))
    finder = FINDER.format(name=module.__name__, file=str(tmp_path / "changed.py"))
    (tmp_path / "sitecustomize.py").write_text(finder)
    state = torch.load(MODEL / "model.pt", weights_only=True)
    torch.save(state | {"x": Payload(os.mkdir, str(tmp_path / "pwned"))}, tmp_path / "evil.pt")
    command = ["fairseq-generate", MODEL, "--user-dir", ROOT / "resmlp_mt"]
    command += ["-s", "en", "-t", "de", "--path", tmp_path / "evil.pt"]
    result = run(*command, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, check=False)
    assert_refused(result, said)
    assert not (tmp_path / "pwned").exists()
