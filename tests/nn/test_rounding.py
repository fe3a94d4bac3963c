"""Rounded layers against numbers rounded one by one, and their gradients."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from resmlp_mt.nn.norm import Affine
from resmlp_mt.nn.rounding import RoundedEmbedding, RoundedLinear, round_norm

B, L, C, OUT, V = 2, 3, 8, 5, 7


def naive(row: np.ndarray, largest: int) -> np.ndarray:
    """A row in steps, of which its largest number has so many; rounded to even."""
    step = max(abs(x) for x in row) / largest
    return np.array([round(float(x / step)) * step if step else 0.0 for x in row])


@pytest.fixture
def layers(request):
    """A norm, or None, and a linear layer behind it, of which no two weights are alike."""
    norm = {"affine": Affine(C), "layer": nn.LayerNorm(C), None: None}[request.param]
    linear = nn.Linear(C, OUT)
    for part in filter(None, (norm, linear)):
        for weight in part.parameters():
            nn.init.normal_(weight, 0.7)
    return norm, linear


@pytest.mark.parametrize("bits", [4, 6, 8])
@pytest.mark.parametrize("layers", ["affine", "layer", None], indirect=True)
def test_a_rounded_layer_computes_with_whole_steps(layers, bits):
    norm, linear = layers
    x = torch.randn(B, L, C)
    x[0, 0] = 0
    rounded_norm = norm and round_norm(norm)
    rounded = RoundedLinear(linear, bits, rounded_norm)
    found = rounded(rounded_norm(x) if norm else x)
    weight, bias = linear.weight.detach().double().numpy(), linear.bias.detach().double().numpy()
    for row, y in zip(x.flatten(0, 1).double().numpy(), found.flatten(0, 1), strict=True):
        if isinstance(norm, nn.LayerNorm):
            row = (row - row.mean()) / np.sqrt(row.var() + norm.eps)
        alpha = list(norm.parameters())[0].detach().double().numpy() if norm else np.ones(C)
        beta = list(norm.parameters())[1].detach().double().numpy() if norm else np.zeros(C)
        inputs = naive(row, 127)
        for output in range(OUT):
            weights = naive(weight[output] * alpha, 2 ** (bits - 1) - 1)
            expected = weights @ inputs + weight[output] @ beta + bias[output]
            assert y[output].item() == pytest.approx(expected, abs=1e-4)


def test_rows_of_a_table_are_rounded_and_padding_learns_nothing():
    table = nn.Embedding(V, C, padding_idx=1)
    rounded = RoundedEmbedding(table, 6)
    indices = torch.tensor([[0, 1, 5], [5, 2, 6]])
    found = rounded(indices)
    for row, index in zip(found.flatten(0, 1), indices.flatten(), strict=True):
        expected = naive(table.weight[index].detach().double().numpy(), 31)
        assert_close(row.detach().double(), torch.from_numpy(expected), atol=1e-6, rtol=0)
    found.sum().backward()
    assert table.weight.grad[5].eq(2).all() and table.weight.grad[1].eq(0).all()


@pytest.mark.parametrize("layers", ["affine", "layer"], indirect=True)
def test_gradients_pass_as_if_nothing_was_rounded(layers):
    """With many steps, so that the rounded factors of the gradients are nearly the factors."""
    plain, gradients = nn.Sequential(*layers), []
    rounded = copy.deepcopy(plain)
    rounded[0] = round_norm(rounded[0])
    rounded[1] = RoundedLinear(rounded[1], 8, rounded[0])
    rounded[1].steps = 10**5
    inputs = torch.randn(B, L, C)
    for model in (plain, rounded):
        x = inputs.clone().requires_grad_()
        model(x).square().sum().backward()
        gradients.append([x.grad, *(weight.grad for weight in model.parameters())])
    for one, other in zip(*gradients, strict=True):
        assert other.abs().sum() > 0
        assert (one - other).norm() < 0.05 * one.norm()


def test_weights_stay_where_checkpoints_and_optimizers_know_them():
    norm, linear = nn.LayerNorm(C), nn.Linear(C, OUT)
    before = nn.ModuleDict({"norm": norm, "linear": linear})
    rounded_norm = round_norm(norm)
    after = nn.ModuleDict({"norm": rounded_norm, "linear": RoundedLinear(linear, 8, rounded_norm)})
    pairs = zip(before.named_parameters(), after.named_parameters(), strict=True)
    assert all(a == b and x is y for (a, x), (b, y) in pairs)
