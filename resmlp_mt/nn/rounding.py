"""Products as an export in 8 bits computes them, to train what will be exported.

Weights and activations are rounded in the forward pass. The backward pass takes rounding for the
identity: the straight-through estimator (arXiv 1308.3432). A row of weights has a step of its own,
and so has a row of activations. The largest number of a row is a whole number of steps.

An export folds a norm's alpha and beta into the products behind it (`fold.py`), and rounds what
comes out. So a norm here returns its input without alpha and beta, and the layers behind it have
them.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.nn.fold import fold_product, normalise, split_norm
from resmlp_mt.nn.norm import Affine

# Steps of the largest activation. Processors without 8-bit products of four take 126, and larger
# ones: see native/products.h.
_STEPS = 127
_LEAST = 1e-12  # of a step, so that a row of zeros stays so


class _RoundRows(torch.autograd.Function):
    @staticmethod
    def forward(context, x: Tensor, steps: int) -> Tensor:
        wide = x.float()
        step = (wide.abs().amax(-1, keepdim=True) / steps).clamp(min=_LEAST)
        return (wide / step).round().mul_(step).to(x.dtype)

    @staticmethod
    def backward(context, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def round_rows(x: Tensor, steps: int = _STEPS) -> Tensor:
    """Each row in steps, of which its largest number has so many. Shape: (..., C)."""
    return _RoundRows.apply(x, steps)


class RoundedAffine(Affine):
    """An `Affine` for `RoundedLinear` layers behind it: x, rounded. (..., C) -> (..., C)."""

    def forward(self, x: Tensor) -> Tensor:
        """Round; alpha and beta are folded into the layers behind. The shape stays."""
        return round_rows(x)


class RoundedLayerNorm(nn.LayerNorm):
    """A LayerNorm for `RoundedLinear` layers: x, normalised and rounded. (..., C) -> (..., C)."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise and round; alpha and beta are folded into the layers behind."""
        return round_rows(normalise(x, self.eps))


def round_norm(norm: nn.Module) -> nn.Module:
    """The same norm for `RoundedLinear` layers behind it, with its weights.

    Args:
        norm: An `Affine` or a LayerNorm.
    """
    _, alpha, beta = split_norm(norm)
    if isinstance(norm, Affine):
        rounded: nn.Module = RoundedAffine(len(alpha))
        rounded.alpha, rounded.beta = alpha, beta
    else:
        rounded = RoundedLayerNorm(norm.normalized_shape, norm.eps)
        rounded.weight, rounded.bias = alpha, beta
    return rounded


class RoundedLinear(nn.Linear):
    """A linear layer whose weights and inputs are rounded.

    Args:
        linear: The layer whose weights it has.
        bits: Of a weight; an input has 8.
        norm: The norm before it, from `round_norm`. Without one it rounds its input itself.
    """

    def __init__(self, linear: nn.Linear, bits: int, norm: nn.Module | None = None):
        has_bias = linear.bias is not None
        super().__init__(linear.in_features, linear.out_features, has_bias, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.steps = _count_steps(bits)
        self._norm = (norm,)  # whose weights are its own: no module of this one

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., in) -> (..., out)."""
        (norm,) = self._norm
        if norm is None:
            return F.linear(round_rows(x), round_rows(self.weight, self.steps), self.bias)
        folded = fold_product(self, norm)
        return F.linear(x, round_rows(folded.weight, self.steps), folded.bias)


class RoundedEmbedding(nn.Embedding):
    """A table whose rows are rounded.

    Args:
        table: The one whose weights it has.
        bits: Of a weight.
    """

    def __init__(self, table: nn.Embedding, bits: int):
        super().__init__(*table.weight.shape, table.padding_idx, device="meta")
        self.weight, self.steps = table.weight, _count_steps(bits)

    def forward(self, indices: Tensor) -> Tensor:
        """Shape: (...) -> (..., C)."""
        return round_rows(super().forward(indices), self.steps)


def _count_steps(bits: int) -> int:
    return 2 ** (bits - 1) - 1
