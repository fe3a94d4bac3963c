"""The parts that a model takes by name: norms and token mixers.

A block of `nn/` gets its parts ready made; a model builds them from its flags with these tables. A
new norm or mixer is a class in `nn/`, a row here, and its name in the tuple of the models that can
use it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.grid_mixers import GridConvolution, PatchMLP
from resmlp_mt.nn.map_mixers import AdaFC, Pooling
from resmlp_mt.nn.mixers import (
    FreeMatrix,
    GatedMixer,
    LinearMixer,
    ProjectedMixer,
    ToeplitzMatrix,
)
from resmlp_mt.nn.norm import Affine

# name: builder(dim, eps); eps is what a norm adds to a variance, if it has one.
NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "affine": lambda dim, eps: Affine(dim),
    "layer": lambda dim, eps: nn.LayerNorm(dim, eps),
    "group": lambda dim, eps: nn.GroupNorm(1, dim, eps),
}
# They treat each position alone, in (B, L, C). "group" takes all of (B, C, rows, columns) together.
SEQUENCE_NORMS = ("affine", "layer")


def build_norm(name: str, dim: int, eps: float = 1e-5) -> nn.Module:
    """Build the norm called `name` in NORMS for C = `dim` channels."""
    return NORMS[name](dim, eps)


@dataclass(frozen=True)
class MixerOptions:
    """Options of the mixers. Each reads those that it has.

    Attributes:
        heads: H matrices A a layer, each for its share of the channels.
        causal: Whether a position sees itself and the earlier ones alone.
        init_std: Standard deviation that A starts with.
        hidden_positions: Width of an MLP over positions; 0 for 4N, as in the paper.
        gated: Whether one half of that width gates the other.
        kernel_size: Rows and columns of a convolution.
    """

    heads: int = 1
    causal: bool = False
    init_std: float = 0.02
    hidden_positions: int = 0
    gated: bool = False
    kernel_size: int = 3


# The places that a mixer mixes: N positions in a row, or the rows and columns of a grid.
Place = int | tuple[int, int]


def _count(place: Place) -> int:
    return place if isinstance(place, int) else math.prod(place)


def _matrix(kind: type, dim: int, place: Place, options: MixerOptions) -> nn.Module:
    if dim % options.heads:
        raise UserError(f"{options.heads} mixing heads do not divide {dim} channels")
    return kind(_count(place), options.heads, options.causal, options.init_std)


def _linear(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    return LinearMixer(_matrix(FreeMatrix, dim, place, options))


def _toeplitz(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    return LinearMixer(_matrix(ToeplitzMatrix, dim, place, options))


def _gated_linear(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    return GatedMixer(dim, _matrix(FreeMatrix, dim, place, options))


def _gated_toeplitz(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    return GatedMixer(dim, _matrix(ToeplitzMatrix, dim, place, options))


def _projected_toeplitz(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    return ProjectedMixer(dim, _matrix(ToeplitzMatrix, dim, place, options))


def _none(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    return nn.Identity()


def _mlp(dim: int, place: Place, options: MixerOptions) -> nn.Module:
    positions = _count(place)
    return PatchMLP(positions, options.hidden_positions or 4 * positions, options.gated)


def _square(dim: int, groups: int, options: MixerOptions) -> nn.Conv2d:
    return nn.Conv2d(dim, dim, options.kernel_size, padding="same", groups=groups)


def _convolution(dim: int, grid: tuple[int, int], options: MixerOptions) -> nn.Module:
    return GridConvolution(grid[1], _square(dim, 1, options), nn.Identity())


def _depthwise(dim: int, grid: tuple[int, int], options: MixerOptions) -> nn.Module:
    return GridConvolution(grid[1], _square(dim, dim, options), nn.Identity())


def _separable(dim: int, grid: tuple[int, int], options: MixerOptions) -> nn.Module:
    return GridConvolution(grid[1], _square(dim, dim, options), nn.Conv2d(dim, dim, 1))


def _pooling(dim: int, grid: tuple[int, int], options: MixerOptions) -> nn.Module:
    return Pooling()


def _adafc(dim: int, grid: tuple[int, int], options: MixerOptions) -> nn.Module:
    return AdaFC(dim)


def _fc(dim: int, grid: tuple[int, int], options: MixerOptions) -> nn.Module:
    return nn.Conv2d(dim, dim, 1)


# name: builder(dim, place, options)
MIXERS: dict[str, Callable[[int, Place, MixerOptions], nn.Module]] = {
    "linear": _linear,
    "toeplitz": _toeplitz,
    "gated-linear": _gated_linear,
    "gated-toeplitz": _gated_toeplitz,
    "projected-toeplitz": _projected_toeplitz,
    "none": _none,
    "mlp": _mlp,
    "conv3x3": _convolution,
    "depthwise3x3": _depthwise,
    "separable3x3": _separable,
    "pooling": _pooling,
    "adafc": _adafc,
    "fc": _fc,
}
# They take a padding mask and a state, as the contract in `nn/mixers.py` says.
SEQUENCE_MIXERS = ("linear", "toeplitz", "gated-linear", "gated-toeplitz", "projected-toeplitz")
GRID_MIXERS = ("linear", "none", "mlp", "conv3x3", "depthwise3x3", "separable3x3")
# They take (B, C, rows, columns), and "adafc" what its stage shares.
MAP_MIXERS = ("pooling", "adafc", "fc")


def build_mixer(name: str, dim: int, place: Place, **options) -> nn.Module:
    """Build the mixer called `name` in MIXERS for C = `dim` channels.

    Args:
        name: The name.
        dim: Number of channels C.
        place: N positions, or (rows, columns) of a grid.
        **options: Those of `MixerOptions`.

    Raises:
        UserError: If the heads do not divide the channels.
        TypeError: If there is no such option.
    """
    return MIXERS[name](dim, place, MixerOptions(**options))
