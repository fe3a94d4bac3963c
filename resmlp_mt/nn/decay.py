"""Weights that weight decay leaves out: biases, norms and LayerScale.

An optimizer of fairseq gets weights without their names, and copies of them in half precision. So
the weights are marked. fairseq keeps that mark, `param_group`, in its copies.
"""

from collections.abc import Iterable

from torch import nn

_MARK = "no decay"


def mark_undecayed(model: nn.Module) -> None:
    """Mark what timm leaves out: vectors, and what is called a bias."""
    for name, weight in model.named_parameters():
        if weight.dim() <= 1 or name.endswith(".bias"):
            weight.param_group = _MARK


def group_by_decay(weights: Iterable[nn.Parameter]) -> list:
    """What an optimizer is built with: the marked weights as a group without decay.

    Args:
        weights: Where none is marked, they come back as they are.
    """
    weights = list(weights)
    groups = {False: [], True: []}
    for weight in weights:
        groups[getattr(weight, "param_group", None) == _MARK].append(weight)
    if not groups[True]:
        return weights
    return [{"params": groups[False]}, {"params": groups[True], "weight_decay": 0.0}]
