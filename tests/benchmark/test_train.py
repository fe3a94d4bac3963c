"""The race of trainings: what its figures are figures of."""

import signal

import pytest
import torch

from resmlp_mt.benchmark.train import SIZES, Case, list_rivals
from resmlp_mt.errors import UserError

V = 60


def build(name: str, *flags: str):
    (rival,) = (r for r in list_rivals("tiny", list(flags)) if r.name == name)
    return rival.build(**rival.arguments | {"vocabulary": V})


def count_products(name: str, length: int) -> int:
    """Multiplications with additions of a sentence forward, by hand."""
    dim, hidden, layers, *_ = SIZES["tiny"]
    linear, positions = length * dim * dim, length * length * dim  # projections; L x L matrices
    attention = 4 * linear + 2 * positions
    mixing = {
        "transformer": attention,
        "resmlp_tiny": positions,
        "resmlp_plus_tiny": 2 * linear + positions,  # values and gate
    }[name]
    channels = 2 * length * dim * hidden
    return layers * (2 * (mixing + channels) + attention) + length * dim * V


@pytest.mark.parametrize("name", ["transformer", "resmlp_tiny", "resmlp_plus_tiny"])
def test_operations_of_an_update_are_those_counted_by_hand(name):
    training = build(name, "--cpu")
    for length in (4, 9):
        # Two operations a multiplication with its addition; backward there are two products more.
        assert training.count(length) * length == 2 * 3 * count_products(name, length)


def test_an_update_that_finds_no_memory_does_not_count_as_a_fast_one():
    before = signal.getsignal(signal.SIGTERM)
    training = build("resmlp_tiny", "--cpu")
    # Nor does a race that is told to end wait for a checkpoint.
    assert signal.getsignal(signal.SIGTERM) == before

    def fail(*given):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    training.trainer.model.encoder.register_forward_pre_hook(fail)
    with pytest.raises(UserError, match="^8 tokens are too many for the device's memory: CUDA out"):
        training(Case(length=4, tokens=8, updates=1))


def test_a_failure_in_an_update_is_raised_as_it_is_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    training = build("resmlp_tiny", "--cpu")

    def fail(*given):
        raise ArithmeticError("broken")

    training.trainer.model.encoder.register_forward_pre_hook(fail)
    with pytest.raises(ArithmeticError, match="broken"):
        training(Case(length=4, tokens=8, updates=1))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_memory_on_a_gpu_is_the_peak_of_an_update_and_given_back():
    training = build("transformer", "--bf16")
    case = Case(length=16, tokens=2**15, updates=2)
    logits = case.tokens * V * 2 / 2**20
    held = [torch.cuda.memory_reserved() / 2**20]
    for _ in range(2):
        assert training(case)["memory_mib"] > logits + torch.cuda.memory_allocated() / 2**20
        held.append(torch.cuda.memory_reserved() / 2**20)
    assert held[2] <= held[1] + 1
