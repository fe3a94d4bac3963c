"""The two ends of an image model: pixels to patches, and patches to one vector."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def init_linear(module: nn.Module) -> None:
    """Initialise a linear layer as released; others, convolutions too, keep torch's way."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)


class PatchEmbedding(nn.Module):
    """Cut an image into patches and project each to C channels.

    Args:
        in_chans: Channels of the image.
        dim: Number of channels C.
        patch_size: Side of a patch, in pixels.
    """

    def __init__(self, in_chans: int, dim: int, patch_size: int):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, dim, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, height, width) -> (B, N, C): the patches, row by row."""
        return self.proj(images).flatten(2).transpose(1, 2)


class AveragePooling(nn.Module):
    """The mean of the normalised patches.

    Args:
        norm: The norm before it.
    """

    def __init__(self, norm: nn.Module):
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, C)."""
        return self.norm(x).mean(1)


class ClassMLPLayer(nn.Module):
    """Update the class embedding from the patches, which stay as they are.

    c = c + scale_1 * (a norm_1(x)), where a is one row over the N patches, with a bias;
    c = c + scale_2 * mlp(norm_2(c)).

    Args:
        norm_1, aggregate, scale_1: The first line; `aggregate` is a linear layer from N to 1.
        norm_2, mix_channels, scale_2: The second line.
    """

    def __init__(
        self,
        *,
        norm_1: nn.Module,
        aggregate: nn.Linear,
        scale_1: nn.Module,
        norm_2: nn.Module,
        mix_channels: nn.Module,
        scale_2: nn.Module,
    ):
        super().__init__()
        # Checkpoints keep the optimizer's state in the order of the parameters: this one stays.
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
