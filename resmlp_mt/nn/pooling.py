"""Pooling of an image model: patches to one vector."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from resmlp_mt.nn.grids import READ, Grid, resize


class AveragePooling(nn.Module):
    """The mean of the normalised patches.

    Args:
        norm: The norm before it.
    """

    def __init__(self, norm: nn.Module):
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) or (B, rows, columns, C) -> (B, C)."""
        return self.norm(x).flatten(1, -2).mean(1)


class MapPooling(nn.Module):
    """The mean of a map, normalised.

    Args:
        norm: The norm after it, on (B, C).
    """

    def __init__(self, norm: nn.Module):
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, rows, columns) -> (B, C)."""
        return self.norm(x.mean((2, 3)))


class Aggregate(nn.Linear):
    """y = a x + b: one row over the patches, the same for all channels. (..., N) -> (..., 1).

    Args:
        positions: Number of patches N.
    """

    def __init__(self, positions: int):
        super().__init__(positions, 1)

    def resize(self, weights: dict[str, Tensor], old: Grid, new: Grid) -> dict[str, Tensor]:
        """The weights for the patches of one grid, interpolated for another (see `grids.py`)."""
        roles = {"weight": (READ,), "bias": ()}
        return {name: resize(weight, roles[name], old, new) for name, weight in weights.items()}


class ClassMLPLayer(nn.Module):
    """Update the class embedding from the patches, which stay as they are.

    c = c + scale_1 * (a norm_1(x)), where a is one row over the N patches, with a bias;
    c = c + scale_2 * mlp(norm_2(c)).

    Args:
        norm_1, aggregate, scale_1: The first line; `aggregate` is an `Aggregate`.
        norm_2, mix_channels, scale_2: The second line.
    """

    def __init__(
        self,
        *,
        norm_1: nn.Module,
        aggregate: nn.Module,
        scale_1: nn.Module,
        norm_2: nn.Module,
        mix_channels: nn.Module,
        scale_2: nn.Module,
    ):
        super().__init__()
        # Checkpoints keep the optimizer's state in the order of the parameters. Keep this order.
        self.norm_1, self.scale_1 = norm_1, scale_1
        self.norm_2, self.scale_2 = norm_2, scale_2
        self.aggregate, self.mix_channels = aggregate, mix_channels

    def forward(self, embedding: Tensor, x: Tensor) -> Tensor:
        """embedding: (B, C); x: the patches, (B, N, C). Returns the new embedding, (B, C)."""
        gathered = self.aggregate(self.norm_1(x).transpose(1, 2)).squeeze(2)
        embedding = embedding + self.scale_1(gathered)
        return embedding + self.scale_2(self.mix_channels(self.norm_2(embedding)))


class ClassMLP(nn.Module):
    """Class-MLP (section 2): CaiT's class attention, with linear layers in place of attention.

    A learned class embedding is updated by each layer. The code was never released; with two
    layers the shapes reproduce the published parameter counts (17.7M, 32.4M and 47.1M).

    Args:
        dim: Number of channels C.
        layers: The layers.
        norm: The norm of the embedding after them.
    """

    def __init__(self, dim: int, layers: Iterable[ClassMLPLayer], norm: nn.Module):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(dim))
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        nn.init.trunc_normal_(self.embedding, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, C)."""
        embedding = self.embedding.expand(x.size(0), -1)
        for layer in self.layers:
            embedding = layer(embedding, x)
        return self.norm(embedding)
