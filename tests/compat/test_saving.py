"""Checkpoints appear whole or not at all, and logs are done without."""

import resource
import signal
from unittest.mock import MagicMock

import pytest
import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from resmlp_mt.errors import UserError


@pytest.fixture
def small_disk():
    """The limit on the size of a file stands for the room on a disk: 1 MB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


# The last of many small ones is written where torch closes the file.
@pytest.mark.parametrize("sizes", [[400_000], [9000] * 40], ids=["one large", "many small"])
def test_a_full_disk_leaves_what_was_there(sizes, small_disk, tmp_path):
    path = tmp_path / "checkpoint.pt"
    checkpoint_utils.torch_persistent_save({"x": 1}, str(path))
    state = {str(i): torch.zeros(size) for i, size in enumerate(sizes)}
    with pytest.raises(UserError, match="checkpoint.pt: File too large: .* Make room"):
        checkpoint_utils.torch_persistent_save(state, str(path))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]
    assert torch.load(path) == {"x": 1}


def test_a_program_may_give_no_more_than_fairseq_reads_of_a_configuration():
    resets = [f"reset_{name}" for name in ("optimizer", "lr_scheduler", "meters", "dataloader")]
    rest = {"optimizer_overrides": "{}", "restore_file": "x.pt", "finetune_from_model": None}
    (trainer := MagicMock(checkpoint_suffix="")).load_checkpoint.return_value = None
    cfg = OmegaConf.create(dict.fromkeys(resets, False) | rest)
    state, epochs = checkpoint_utils.load_checkpoint(cfg, trainer)
    assert state is None and epochs is trainer.get_train_iterator.return_value
