"""The two ends of an image model: pixels to patches, and patches to one vector."""

import torch
from torch import Tensor, nn

from resmlp_mt.nn.blocks import ChannelMLP
from resmlp_mt.nn.norm import NORMS, LayerScale


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
        """(B, in_chans, H patch, W patch) -> (B, N = H W, C), row by row."""
        return self.proj(images).flatten(2).transpose(1, 2)


class AveragePooling(nn.Module):
    """The mean of the normalised patches.

    Args:
        dim: Number of channels C.
        norm: A name in NORMS.
    """

    def __init__(self, dim: int, norm: str):
        super().__init__()
        self.norm = NORMS[norm](dim)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, C)."""
        return self.norm(x).mean(1)


class ClassMLPLayer(nn.Module):
    """Update the class embedding from the patches, which stay as they are.

    c = c + scale_1 * (a norm_1(x)), where a is one row over the N patches, with a bias;
    c = c + scale_2 * mlp(norm_2(c)).

    Args:
        dim: Number of channels C.
        positions: Number of patches N.
        hidden_dim: Hidden channels of the channel MLP.
        norm: A name in NORMS.
        scale_init: Initial LayerScale.
    """

    def __init__(self, dim: int, positions: int, hidden_dim: int, norm: str, scale_init: float):
        super().__init__()
        self.norm_1, self.scale_1 = NORMS[norm](dim), LayerScale(dim, scale_init)
        self.norm_2, self.scale_2 = NORMS[norm](dim), LayerScale(dim, scale_init)
        self.aggregate = nn.Linear(positions, 1)
        self.mix_channels = ChannelMLP(dim, hidden_dim)

    def forward(self, embedding: Tensor, x: Tensor) -> Tensor:
        """embedding: (B, C); x: the patches, (B, N, C). Returns the new embedding, (B, C)."""
        gathered = self.aggregate(self.norm_1(x).transpose(1, 2)).squeeze(2)
        embedding = embedding + self.scale_1(gathered)
        return embedding + self.scale_2(self.mix_channels(self.norm_2(embedding)))


class ClassMLP(nn.Module):
    """Class-MLP (section 2): CaiT's class attention, with linear layers in place of attention.

    A learned class embedding is updated by two layers. The code was never released; the shapes
    are those that reproduce the published parameter counts (17.7M, 32.4M and 47.1M).

    Args:
        dim, positions, hidden_dim, norm, scale_init: As for `ClassMLPLayer`.
    """

    def __init__(self, dim: int, positions: int, hidden_dim: int, norm: str, scale_init: float):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(dim))
        self.layers = nn.ModuleList(
            ClassMLPLayer(dim, positions, hidden_dim, norm, scale_init) for _ in range(2)
        )
        self.norm = NORMS[norm](dim)
        nn.init.trunc_normal_(self.embedding, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, C)."""
        embedding = self.embedding.expand(x.size(0), -1)
        for layer in self.layers:
            embedding = layer(embedding, x)
        return self.norm(embedding)
