"""Checkpoints that are read, and those that are refused."""

from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from compat.written import write_checkpoint
from fairseq import checkpoint_utils

from resmlp_mt.compat import checkpoints
from resmlp_mt.compat.messages import explain
from resmlp_mt.criterions.dino import cross_entropy
from resmlp_mt.errors import UserError


def read(path, *args):
    return checkpoint_utils.load_checkpoint_to_cpu(str(path), *args)


@pytest.fixture
def checkpoint(tmp_path):
    write_checkpoint(tmp_path / "checkpoint.pt", "--arch", "resmlp_tiny")
    return tmp_path / "checkpoint.pt"


def test_what_other_threads_build_is_no_part_of_a_checkpoint(checkpoint):
    def build(*args):
        return torch.nn.Linear(10**5, 10**5, device="meta")

    def build_elsewhere(*args):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(build).result()

    assert checkpoints.load_models(build_elsewhere, [str(checkpoint)])
    with pytest.raises(UserError, match="of a model with more weights than it holds"):
        checkpoints.load_models(build, [str(checkpoint)])


def flip_a_bit(data: bytes) -> bytes:
    place = data.index(torch.ones(9).numpy().tobytes()) + 17
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


DAMAGE = {
    "a flipped bit": (flip_a_bit, "corrupt checkpoint .wrong checksum of .*data/0.; copy it again"),
    "half": (lambda data: data[: len(data) // 2], "truncated or corrupt"),
    "nothing": (lambda data: b"", "it ends too early"),
    "zeros": (lambda data: bytes(len(data)), "corrupt checkpoint .it begins with zeros"),
    "zeros at first": (lambda data: bytes(99) + data[99:], "corrupt checkpoint .wrong checksum"),
    "zeros at last": (lambda data: data[:-99] + bytes(99), "truncated or corrupt"),
    "text": (lambda data: b"version https://git-lfs", "not a checkpoint, or a corrupt one"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_called_damaged(checkpoint, damage, said):
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    with pytest.raises(UserError, match=f"checkpoint.pt: .*{said}"):
        read(checkpoint)


ASKED = "${oc.env:SECRET}"
PLACES = {
    "a flag": lambda state: state["cfg"]["model"].update(norm=ASKED),
    "within": lambda state: state["cfg"]["task"].update(data="${task.${oc.env:SECRET}}"),
    "beside": lambda state: state["cfg"]["task"].update(data="${task.target_lang}x"),
    "a list": lambda state: state["cfg"]["optimization"].update(lr=[ASKED]),
    "a part": lambda state: state["cfg"].update(task=ASKED),
    "flags of old": lambda state: state["cfg"].update(model=Namespace(x=[ASKED])),
    "a checkpoint of old": lambda state: state.update(cfg=None, args=Namespace(data=ASKED)),
}


@pytest.mark.parametrize("overrides", [None, {"dropout": 0.5}])
@pytest.mark.parametrize("ask", PLACES.values(), ids=PLACES)
def test_what_a_checkpoint_asks_for_is_not_looked_up(checkpoint, ask, overrides, monkeypatch):
    monkeypatch.setenv("SECRET", "shibboleth")
    state = torch.load(checkpoint, weights_only=True)
    ask(state)
    torch.save(state, checkpoint)
    with pytest.raises(UserError, match="asks for what is not in it") as refusal:
        read(checkpoint, overrides)
    assert "shibboleth" not in str(refusal.value)


def test_a_field_may_name_another_field(checkpoint):
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["model"]["max_source_positions"] = "${task.max_source_positions}"
    torch.save(state, checkpoint)
    assert read(checkpoint)["cfg"].model.max_source_positions == 1024


def test_only_what_is_meant_so_is_told_to_a_user():
    mistake, bug = UserError("--lr must be positive"), None
    try:
        cross_entropy(torch.ones(1, 2, 3), torch.ones(1, 2, 3))  # raises ValueError, of ours
    except ValueError as error:
        bug = error
    assert explain(mistake) == "--lr must be positive" and isinstance(mistake, ValueError)
    assert bug is not None and explain(bug) is None
