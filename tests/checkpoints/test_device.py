import pytest
import torch

from resmlp_mt.checkpoints.device import choose_device
from resmlp_mt.errors import UserError


@pytest.mark.parametrize(("there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_asks_no_more_than_torch_2_6_can_answer(monkeypatch, there, expected):
    # The signatures of torch 2.6, the oldest that setup.py takes.
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: there)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert choose_device("auto") == expected


def test_a_device_that_is_not_there_is_refused_in_a_few_words():
    assert choose_device("cpu") == "cpu"
    for name in "nowhere", "cuda:x", "meta", "xla":  # the third is there, and computes nothing
        with pytest.raises(UserError, match=f"^device {name}: .{{1,100}}; take auto") as error:
            choose_device(name)
        assert "\n" not in str(error.value)
