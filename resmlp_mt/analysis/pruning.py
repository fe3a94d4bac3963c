"""Models without the weights that are next to nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from resmlp_mt.analysis.matrices import acting_weights, find_matrix
from resmlp_mt.errors import UserError


@contextmanager
@torch.no_grad()
def prune(model: nn.Module, letters: str, threshold: float) -> Iterator[float]:
    """Set weights to zero that are below `threshold` times the largest of their matrix.

    That is what `measure_sparsity` counts: each mixing head is a matrix of its own, and of a
    decoder's A only the weights that look back count. Afterwards the weights are as they were.
    `letters` are of A, B and C.

    Yields:
        The share of the weights of these matrices that are zero.

    Raises:
        UserError: If the model has no such matrix.
    """
    chosen = []
    for name, weight in model.named_parameters():
        found = find_matrix(name)
        if found and found[1] in letters:
            chosen.append((weight, found[1], found[0] == "decoder"))
    if not chosen:
        raise UserError(f"nothing to prune: the model has no matrix {' or '.join(letters)}")
    before = [weight.clone() for weight, _, _ in chosen]
    zeros = total = 0
    for weight, letter, causal in chosen:
        weight[_find_small(letter, weight, causal, threshold)] = 0
        acting = acting_weights(letter, weight, causal)
        zeros, total = zeros + int((acting == 0).sum()), total + acting.numel()
    try:
        yield zeros / total
    finally:
        for (weight, _, _), old in zip(chosen, before, strict=True):
            weight.copy_(old)


def _find_small(letter: str, weight: Tensor, causal: bool, threshold: float) -> Tensor:
    """Which weights are small, in the shape of the weight."""
    sizes = weight.double().abs()
    largest = acting_weights(letter, sizes, causal).amax(1)
    if letter == "A":  # one for each head
        largest = largest.view(-1, *[1] * (weight.dim() - 1))
    return sizes < threshold * largest
