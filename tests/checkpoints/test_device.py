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


def test_a_device_that_is_not_there_is_refused():
    assert choose_device("cpu") == "cpu"
    with pytest.raises(UserError, match="^device nowhere: "):
        choose_device("nowhere")
