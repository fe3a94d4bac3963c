"""Biases, norms and LayerScale without weight decay, as timm leaves them out."""

import pytest
import torch
from models.test_families import FAMILIES, tiny
from optim import test_adamw, test_lamb

from resmlp_mt.nn.marks import group_by_decay, mark_undecayed
from resmlp_mt.optim.adamw import FusedAdamW

OPTIMIZERS = {
    "adamw": lambda weights: FusedAdamW(test_adamw.CFG, weights),
    "lamb": lambda weights: test_lamb.build(weights, 0.2, True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_without_gradients_the_matrices_alone_change(name):
    model = tiny("resmlp_s12", pooling="class-mlp")
    mark_undecayed(model)
    optimizer = OPTIMIZERS[name](model.parameters())
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    changed = {n for n, weight in model.named_parameters() if not weight.equal(before[n])}
    layers = ("proj", "matrix", "fc1", "fc2", "aggregate", "head")
    assert changed == {n for n in before if n.endswith(tuple(f"{x}.weight" for x in layers))}
    assert len(changed) == 14


@pytest.mark.parametrize("preset", FAMILIES)
def test_the_groups_are_those_of_timm(preset, timm):
    from timm.optim import param_groups_weight_decay

    model = tiny(preset)
    mark_undecayed(model)
    ours = group_by_decay(model.parameters())
    theirs = param_groups_weight_decay(model, 0.1)
    found = [{id(weight) for weight in group["params"]} for group in (*ours, *theirs)]
    assert found[0] == found[3] and found[1] == found[2] and found[0]


def test_weights_without_a_mark_stay_one_group():
    weights = list(tiny("mixer_s16").parameters())
    assert all(a is b for a, b in zip(group_by_decay(weights), weights, strict=True))
