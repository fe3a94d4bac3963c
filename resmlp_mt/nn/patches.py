"""The stem of an image model, and the convolutions that make its grid coarser."""

from typing import NamedTuple

from torch import Tensor, nn


def init_linear(module: nn.Module) -> None:
    """Initialise a linear layer as the released code does. Others keep torch's defaults."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def init_pointwise(module: nn.Module) -> None:
    """The same, for a linear layer that is written as a convolution of size 1 too."""
    if isinstance(module, nn.Conv2d) and module.kernel_size == (1, 1):
        nn.init.trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
    else:
        init_linear(module)


def init_lecun(module: nn.Module) -> None:
    """Initialise a linear layer or a convolution with a variance of 1 / inputs, as flax does."""
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        # A normal distribution that is cut at two deviations has 0.8796 of its deviation left.
        std = module.weight[0].numel() ** -0.5 / 0.87962566103423978
        nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)
        nn.init.zeros_(module.bias)


class PatchEmbedding(nn.Module):
    """Cut an image into patches and project each to C channels.

    Args:
        in_chans: Channels of the image.
        dim: Number of channels C.
        patch_size: Side of a patch, in pixels.
        norm: The norm of the patches; none unless given.
    """

    def __init__(self, in_chans: int, dim: int, patch_size: int, norm: nn.Module | None = None):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, dim, patch_size, stride=patch_size)
        self.norm = norm or nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, height, width) -> (B, N, C): the patches, row by row."""
        return self.norm(self.proj(images).flatten(2).transpose(1, 2))


class MoveChannels(nn.Module):
    """Make another dimension the one of the channels.

    Args:
        source, target: The dimension of the channels before, and after.
    """

    def __init__(self, source: int, target: int):
        super().__init__()
        self.source, self.target = source, target

    def forward(self, x: Tensor) -> Tensor:
        """The same features in another order."""
        return x.movedim(self.source, self.target)


class Step(NamedTuple):
    """A convolution that makes a grid coarser: its kernel, its stride, and the zeros around."""

    kernel: int
    stride: int
    padding: int

    def build(self, in_dim: int, dim: int) -> nn.Conv2d:
        """(B, in_dim, rows, columns) -> (B, C = dim, fewer rows, fewer columns)."""
        return nn.Conv2d(in_dim, dim, self.kernel, self.stride, self.padding)

    def count(self, side: int) -> int:
        """The positions along a side that are left of so many; 0 where it cannot be applied."""
        return max(side + 2 * self.padding - self.kernel + self.stride, 0) // self.stride
