"""Checkpoints appear whole or not at all."""

import resource
import signal

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

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


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(AttributeError, match="pickle"):
        checkpoint_utils.torch_persistent_save({"x": lambda: None}, str(tmp_path / "x.pt"))
    assert not list(tmp_path.iterdir())


def test_another_fault_is_named_as_what_it_is_and_where(tmp_path):
    with pytest.raises(UserError, match="none/x.pt.tmp: No such file .* Put that right") as found:
        checkpoint_utils.torch_persistent_save({"x": 1}, str(tmp_path / "none" / "x.pt"))
    assert "room" not in str(found.value)
    # It can be opened, but not be read from its start.
    with pytest.raises(UserError, match="^/proc/self/mem: Input/output error"):
        PathManager.copy("/proc/self/mem", str(tmp_path / "x.pt"))
    assert not list(tmp_path.iterdir())
