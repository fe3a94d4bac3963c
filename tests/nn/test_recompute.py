import weakref
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from resmlp_mt.errors import UserError
from resmlp_mt.nn.blocks import ChannelMLP
from resmlp_mt.nn.recompute import recompute
from resmlp_mt.nn.stages import Stage

POINTWISE = partial(nn.Conv2d, kernel_size=1)


@pytest.fixture(params=[(nn.Linear, (2, 3, 8)), (POINTWISE, (2, 8, 3, 5))], ids=["text", "map"])
def mlp_and_input(request):
    linear, shape = request.param
    torch.manual_seed(1)
    return ChannelMLP(8, 32, linear=linear).train(), torch.randn(shape, requires_grad=True)


def gradients(y, *inputs):
    return torch.autograd.grad(y.square().sum(), inputs)


def test_gradients_of_a_channel_mlp_are_those_of_its_formula(mlp_and_input):
    mlp, x = mlp_and_input
    plain = mlp.fc2(nn.functional.gelu(mlp.fc1(x)))
    assert torch.equal(mlp(x), plain)
    inputs = x, *mlp.parameters()
    for found, expected in zip(gradients(mlp(x), *inputs), gradients(plain, *inputs), strict=True):
        assert torch.equal(found, expected)


def test_second_derivatives_are_right(mlp_and_input):
    mlp, x = mlp_and_input
    assert torch.autograd.gradgradcheck(mlp.double(), x.detach().double().requires_grad_())


def test_the_hidden_layer_is_not_kept_after_its_activation(mlp_and_input, monkeypatch):
    mlp, x = mlp_and_input
    kept = []
    mlp.activate.register_forward_hook(lambda _, __, y: kept.append(weakref.ref(y)))
    y = mlp(x)
    assert kept[0]() is None
    y.sum().backward()
    assert mlp.fc2.weight.grad is not None
    assert len(kept) == 2  # computed again, once


def test_what_checkpointing_recomputes_is_not_kept(mlp_and_input):
    mlp, x = mlp_and_input
    kept = []
    mlp.fc1.register_forward_hook(lambda _, __, y: kept.append(weakref.ref(y)))
    (expected,) = torch.autograd.grad(mlp(x).sum(), x)
    y = checkpoint(mlp, x, use_reentrant=False)
    assert kept[1]() is None
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected)


def test_blocks_that_would_count_a_batch_twice_are_not_computed_again():
    blocks = [nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2))]
    Stage((3, 3), nn.Identity(), blocks)
    with pytest.raises(UserError, match="--checkpoint-activations: BatchNorm"):
        Stage((3, 3), nn.Identity(), blocks, recomputes=True)


def test_gradients_of_torch_func_are_those_of_autograd(mlp_and_input):
    mlp, x = mlp_and_input
    (expected,) = torch.autograd.grad(mlp(x).sum(), x)
    assert torch.equal(torch.func.grad(lambda x: mlp(x).sum())(x.detach()), expected)


def test_other_tensors_are_kept_as_they_are():
    x = torch.randn(4, requires_grad=True)
    other, computed = x.exp(), []
    with recompute(other, lambda: computed.append(1)):
        y = x.sin() * x.cos()
    y.sum().backward()
    assert torch.allclose(x.grad, (2 * x.detach()).cos())
    assert not computed
