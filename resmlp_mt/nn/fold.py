"""Norms and scales folded into the products beside them: the same function in fewer operations.

An Aff before a product moves into it: W (alpha x + beta) + b = (W Diag(alpha)) x + (W beta + b). A
LayerScale after the product moves into it too. The mixing matrix acts on positions, so alpha
commutes with it. beta becomes beta times the sums of A's rows: a vector for each position.
LayerNorm keeps its statistics. Its alpha and beta move like those of Aff.

A mixer that has a folded form has `fold(norm, scale)`. Models with other mixers are exported as
they are.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.nn.norm import Affine

# Those that `split_norm` knows.
FOLDED_NORMS = (Affine, nn.LayerNorm)


@dataclass
class Product:
    """y = weight x + bias.

    Attributes:
        weight: (out, in).
        bias: (out,).
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Shape: (..., in) -> (..., out)."""
        return F.linear(x, self.weight, self.bias)


@dataclass
class FoldedMixer:
    """y = gate(x) * (A value(x) + b), or y = scale * (A x) + offset where nothing is gated.

    Where there is an `out`, y = out(sigmoid(gate(x)) * (A value(x) + b)).

    Attributes:
        matrix: The unfolded mixer's matrix.
        gate, value: Products with the norm folded in, and LayerScale in the gate unless there is
            an `out`; None where nothing is gated.
        out: The product after the gate, with LayerScale folded in; None where there is none.
        scale: The factor of the channels of A x: alpha and LayerScale. (C,).
        shift: The factor of the sums of A's rows: beta and LayerScale. (C,).
        bias_scale: The factor of the bias of A. (C,).
    """

    matrix: nn.Module
    gate: Product | None
    value: Product | None
    scale: Tensor
    shift: Tensor
    bias_scale: Tensor
    out: Product | None = None


def has_offset(mixer: FoldedMixer) -> bool:
    """Whether a vector is added to each position."""
    return mixer.gate is None or has_bias(mixer)


def has_bias(mixer: FoldedMixer) -> bool:
    """Whether its matrix has a bias beside its rows."""
    return mixer.matrix(0, 1)[1] is not None


def make_offset(mixer: FoldedMixer, positions: int) -> Tensor:
    """The vector that a mixer adds to each position, if no position is padded. (N, C)."""
    rows, bias = mixer.matrix(0, positions)
    offset = _by_channel(rows.sum(2), mixer.shift)
    return offset if bias is None else offset + _by_channel(bias, mixer.bias_scale)


def _by_channel(heads: Tensor, channels: Tensor) -> Tensor:
    # (H, N), (C,) -> (N, C): each channel takes the values of its head
    return heads.t().repeat_interleave(len(channels) // len(heads), dim=1) * channels


def split_norm(norm: nn.Module) -> tuple[float | None, Tensor, Tensor]:
    """The parts of a norm: the epsilon of its statistics (None if it has none), alpha, beta."""
    if isinstance(norm, Affine):
        return None, norm.alpha, norm.beta
    return norm.eps, norm.weight, norm.bias


def normalise(x: Tensor, epsilon: float | None) -> Tensor:
    """A norm without its alpha and beta, which are folded elsewhere. Shape: (..., C)."""
    return x if epsilon is None else F.layer_norm(x, x.shape[-1:], eps=epsilon)


def fold_product(
    linear: nn.Linear, norm: nn.Module | None = None, scale: Tensor | None = None
) -> Product:
    """Diag(scale) linear(norm(x)) as a product of the normalised x.

    Args:
        linear: The layer.
        norm: The norm before it.
        scale: The LayerScale after it, or any factor of its outputs. (out,) or ().
    """
    weight = linear.weight
    bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias
    if norm is not None:
        _, alpha, beta = split_norm(norm)
        weight, bias = weight * alpha, weight @ beta + bias
    if scale is not None:
        weight, bias = weight * scale.reshape(-1, 1), bias * scale
    return Product(weight, bias)


def fold_mixer(mixer: nn.Module, norm: nn.Module, scale: Tensor) -> FoldedMixer:
    """scale * mixer(norm(x)), as the mixer itself folds it.

    Raises:
        TypeError: If it has no folded form.
    """
    if not hasattr(mixer, "fold"):
        raise TypeError(f"no way to fold a {type(mixer).__name__}")
    return mixer.fold(norm, scale)


def fold_channels(block: nn.Module) -> tuple[Product, Product]:
    """The two products of a block's second residual line: GELU stands between them."""
    return (
        fold_product(block.mix_channels.fc1, block.norm_2),
        fold_product(block.mix_channels.fc2, scale=block.scale_2.gamma),
    )
