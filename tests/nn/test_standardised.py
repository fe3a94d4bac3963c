"""Standardised weights are kept in eval(), and never those of other weights."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from torch.testing import assert_close

from resmlp_mt.nn.standardised import StandardisedConv

X = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))


def expected(weight, x=X):
    weight = weight.detach().double().flatten(1)
    weight = weight - weight.mean(1, keepdim=True)
    weight = weight / (weight.square().mean(1, keepdim=True) + 1e-8).sqrt()
    return F.conv2d(x.double(), weight.view(-1, 3, 3, 3), None, 2, 1).to(x.dtype)


@pytest.fixture
def conv():
    """One in eval() that has kept what it standardised."""
    torch.manual_seed(1)
    conv = StandardisedConv(3, 4, 3, 2, 1).eval()
    with torch.no_grad():
        assert_close(conv(X), expected(conv.weight))
    return conv


def count_standardised(conv, monkeypatch, calls):
    made, standardise = [], F.batch_norm

    def count(*arguments, **options):
        made.append(1)
        return standardise(*arguments, **options)

    monkeypatch.setattr(F, "batch_norm", count)
    for _ in range(calls):
        conv(X)
    monkeypatch.undo()
    return len(made)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_weights_are_standardised_once_in_eval_and_at_each_call_in_training(mode, monkeypatch):
    conv = StandardisedConv(3, 4, 3)
    with mode():
        assert count_standardised(conv.eval(), monkeypatch, 3) == 1
        assert count_standardised(conv, monkeypatch, 3) == 0
        assert count_standardised(conv.train(), monkeypatch, 3) == 3
        assert count_standardised(conv.eval(), monkeypatch, 3) == 1


def fill(weight):
    with torch.no_grad():
        weight.copy_(torch.randn_like(weight))


def train(conv):
    optimizer = torch.optim.SGD(conv.train().parameters(), lr=1.0)
    conv(X).square().sum().backward()
    optimizer.step()
    conv.eval()


def exchange_twice(conv):
    """Two other weights in turn, the second perhaps where the first lay."""
    for _ in range(2):
        conv.weight.data = torch.randn_like(conv.weight)


CHANGES = {
    "in place": lambda conv: fill(conv.weight),
    "through data": lambda conv: conv.weight.data.normal_(),
    "other data": exchange_twice,
    "other weights": lambda conv: setattr(conv, "weight", nn.Parameter(torch.randn(4, 3, 3, 3))),
    "loaded": lambda conv: conv.load_state_dict({"weight": torch.randn(4, 3, 3, 3)}),
    "assigned": lambda conv: conv.load_state_dict({"weight": torch.randn(4, 3, 3, 3)}, assign=True),
    "trained": train,
    "pruned": lambda conv: prune.random_unstructured(conv, "weight", 0.5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_weights_are_standardised_anew(change, conv):
    before = conv.weight.detach().clone()
    change(conv)
    with torch.no_grad():
        assert_close(conv(X), expected(conv.weight))
    assert not conv.weight.equal(before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda conv: pickle.loads(pickle.dumps(conv))])
def test_a_copy_has_weights_of_its_own(copied, conv):
    other = copied(conv)
    assert len(pickle.dumps(other)) < len(pickle.dumps(conv.state_dict())) + 2000
    fill(other.weight)
    with torch.no_grad():
        assert_close(other(X), expected(other.weight))
        assert_close(conv(X), expected(conv.weight))


def test_gradients_in_eval_are_those_of_training(conv):
    found = []
    for mode in (False, True):
        x = X.clone().requires_grad_()
        conv.train(mode)(x).square().sum().backward()
        found.append((x.grad, conv.weight.grad))
        conv.weight.grad = None
    assert found[1][1].abs().max() > 0.01
    assert_close(found[0], found[1])


def test_the_gradient_of_the_input_passes_frozen_weights(conv):
    x = X.clone().requires_grad_()
    conv(x).square().sum().backward()
    conv.weight.requires_grad_(False)
    with torch.inference_mode():  # what is kept from here serves outside, too
        conv.eval()(X)
    other = X.clone().requires_grad_()
    conv(other).square().sum().backward()
    assert_close(other.grad, x.grad)


def test_several_dtypes_and_devices_take_turns(conv):
    with torch.no_grad():
        for dtype in (torch.float64, torch.bfloat16, torch.float32):
            conv.to(dtype)
            tolerance = dict(rtol=0.02, atol=0.1) if dtype == torch.bfloat16 else {}
            assert_close(conv(X.to(dtype)), expected(conv.weight, X.to(dtype)), **tolerance)
        conv.to("meta")
        assert conv(X.to("meta")).shape == conv(X.to("meta")).shape == (2, 4, 3, 3)


def test_functions_of_the_weights_see_theirs(conv):
    weights = torch.randn(5, 4, 3, 3, 3)
    apply = lambda weight: torch.func.functional_call(conv, {"weight": weight}, (X,))  # noqa: E731
    with torch.no_grad():
        each = torch.vmap(apply)(weights)
        assert_close(conv(X), expected(conv.weight))
    for one, weight in zip(each, weights, strict=True):
        assert_close(one, expected(weight))


def test_compiled_it_follows_its_weights(conv):
    compiled = torch.compile(conv, backend="eager", fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            assert_close(compiled(X), expected(conv.weight))
            conv.weight.data.normal_()
