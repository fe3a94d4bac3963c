"""Affine and LayerScale (ResMLP, arXiv 2105.03404, equations 1 to 3)."""

import torch
from torch import Tensor, nn


class Affine(nn.Module):
    """Aff(x) = Diag(alpha) x + beta (equation 1): a norm without statistics.

    Args:
        dim: Number of channels C.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Rescale and shift each channel. Shape: (..., C) -> (..., C)."""
        return torch.addcmul(self.beta, x, self.alpha)


class LayerScale(nn.Module):
    """The Aff after a sublayer, as released: a scale per channel and no bias.

    Equations 2 and 3 write a bias here. The released image code and the published parameter counts
    have none: the sublayer before it ends in a bias of its own.

    Args:
        dim: Number of channels C.
        init: Value that every channel's scale starts from.
        trailing: Dimensions behind the channels: 0 for (B, L, C), 2 for (B, C, rows, columns).
    """

    def __init__(self, dim: int, init: float, trailing: int = 0):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), float(init)))
        self.trailing = trailing

    def forward(self, x: Tensor) -> Tensor:
        """Rescale each channel; the shape stays."""
        return x * self.gamma.view(-1, *[1] * self.trailing)
