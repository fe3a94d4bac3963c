"""Versions of fairseq that read checkpoints otherwise."""

import os
from pathlib import Path

import pytest
import torch
from cli.commands import ROOT, run
from fairseq import checkpoint_utils
from hostile.checkpoints import Payload

MODEL = ROOT / "resmlp_mt/pretrained/multi30k-en-de"
# Import fairseq's module from a file of ours.
FINDER = """
import importlib.util, sys

class Changed:
    def find_spec(self, name, path, target=None):
        if name == "fairseq.checkpoint_utils":
            return importlib.util.spec_from_file_location(name, {file!r})

sys.meta_path.insert(0, Changed())
"""
CALL = 'torch.load(f, map_location=torch.device("cpu"))'
READER = "def load_checkpoint_to_cpu(path, arg_overrides=None, load_on_all_ranks=False):"


@pytest.fixture
def other_fairseq(tmp_path):
    """other_fairseq(reader): an environment whose fairseq passes weights_only=False to torch."""

    def change(reader):
        source = Path(checkpoint_utils.__file__).read_text()
        assert CALL in source and READER in source
        source = source.replace(CALL, CALL[:-1] + ", weights_only=False)")
        (tmp_path / "changed.py").write_text(source.replace(READER, reader))
        finder = FINDER.format(file=str(tmp_path / "changed.py"))
        (tmp_path / "sitecustomize.py").write_text(finder)
        return {"PYTHONPATH": f"{tmp_path}:{ROOT}"}

    return change


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (READER, "refused, since it holds pickled code"),
        (READER.replace("):", ", anew=False):"), ""),
    ],
    ids=["main", "unknown"],
)
def test_code_in_a_checkpoint_is_refused_whatever_fairseq_tells_torch(
    reader, said, other_fairseq, tmp_path
):
    state = torch.load(MODEL / "model.pt", weights_only=True)
    torch.save(state | {"x": Payload(os.mkdir, str(tmp_path / "pwned"))}, tmp_path / "evil.pt")
    command = ["fairseq-generate", MODEL, "--user-dir", ROOT / "resmlp_mt"]
    command += ["-s", "en", "-t", "de", "--path", tmp_path / "evil.pt"]
    result = run(*command, env=other_fairseq(reader), check=False)
    assert result.returncode and not (tmp_path / "pwned").exists()
    assert said in result.stderr
    if not said:  # what is not known is named, and torch refuses by itself
        assert "fairseq.checkpoint_utils:load_checkpoint_to_cpu differs" in result.stderr
        assert "Weights only load failed" in result.stderr
