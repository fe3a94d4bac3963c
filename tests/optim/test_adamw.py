"""--optimizer adamw against fairseq's own Adam."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.adam import Adam

from resmlp_mt.optim.adamw import FusedAdamW

CFG = SimpleNamespace(lr=[3e-2], adam_betas="(0.9, 0.98)", adam_eps=1e-8, weight_decay=0.1)


def weights():
    torch.manual_seed(5)
    return [torch.randn(shape, requires_grad=True) for shape in ((7, 5), (5,), (1, 4, 4))]


def step(optimizer, params, number):
    torch.manual_seed(number)
    for parameter in params:
        parameter.grad = torch.randn_like(parameter)
    params[1].grad = None  # as of a weight that a batch did not reach
    optimizer.step()


def test_the_updates_are_those_of_fairseqs_adam():
    ours, theirs = weights(), weights()
    fused = FusedAdamW(CFG, ours)
    adam = Adam(theirs, lr=3e-2, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)
    for number in range(20):
        for group in (*fused.param_groups, *adam.param_groups):
            group["lr"] = 3e-2 / (1 + number)
        step(fused, ours, number)
        step(adam, theirs, number)
    torch.testing.assert_close(ours, theirs)
    assert fused.optimizer.param_groups[0]["fused"]


def test_it_goes_on_where_it_was_saved_with_the_rate_of_today():
    whole, parts = weights(), weights()
    fused = FusedAdamW(CFG, whole)
    for number in range(4):
        step(fused, whole, number)
    before = FusedAdamW(CFG, parts)
    for number in range(2):
        step(before, parts, number)
    after = FusedAdamW(CFG, parts)
    after.load_state_dict(before.state_dict(), {"lr": 3e-2})
    for number in range(2, 4):
        step(after, parts, number)
    torch.testing.assert_close(parts, whole, rtol=0, atol=0)
    after.load_state_dict(before.state_dict(), {"lr": 0.5})
    assert after.get_lr() == 0.5


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_it_takes_the_weights_of_every_precision(precision):
    params = [weight.detach().to(precision).requires_grad_() for weight in weights()]
    fused = FusedAdamW(CFG, params)
    before = params[0].detach().clone()
    step(fused, params, 0)
    assert fused.supports_flat_params and (params[0] != before).all()
