"""Kinds of weights that an optimizer treats apart.

An optimizer of fairseq gets weights without their names, and copies of them in half precision. So
the weights are marked. fairseq keeps that mark, `param_group`, in its copies.
"""

from collections.abc import Iterable

from torch import nn

_UNDECAYED, _MAP, _OTHER = "no decay", "map", "other"
# The names of the layers that write logits, in models of ours and of fairseq.
_OUTPUTS = ("output", "output_projection", "head")


def mark_undecayed(model: nn.Module) -> None:
    """Mark the weights without decay in timm: vectors, and those that are called a bias."""
    for name, weight in model.named_parameters():
        if weight.dim() <= 1 or name.endswith(".bias"):
            weight.param_group = _UNDECAYED


def mark_maps(model: nn.Module) -> None:
    """Mark the matrices of linear layers, but for those that write logits, and the other weights.

    They map features to features. Embeddings are rows of a table, and a mixing matrix A maps
    positions.
    """
    for weight in model.parameters():
        weight.param_group = _OTHER
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] not in _OUTPUTS:
            module.weight.param_group = _MAP


def is_map(weight: nn.Parameter) -> bool:
    """Whether `mark_maps` marked it."""
    return getattr(weight, "param_group", None) == _MAP


def is_marked(weight: nn.Parameter) -> bool:
    """Whether the kind of a weight is known."""
    return hasattr(weight, "param_group")


def group_by_decay(weights: Iterable[nn.Parameter]) -> list:
    """The groups that an optimizer takes: the weights without decay are one of their own.

    Args:
        weights: All weights. Where none is marked so, they come back as they are.
    """
    weights = list(weights)
    groups = {False: [], True: []}
    for weight in weights:
        groups[getattr(weight, "param_group", None) == _UNDECAYED].append(weight)
    if not groups[True]:
        return weights
    return [{"params": groups[False]}, {"params": groups[True], "weight_decay": 0.0}]
