"""The stem of an image model: pixels to patches."""

from torch import Tensor, nn


def init_linear(module: nn.Module) -> None:
    """Initialise a linear layer as the released code does. Others keep torch's defaults."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)


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
        norm: What normalises the patches; nothing unless given.
    """

    def __init__(self, in_chans: int, dim: int, patch_size: int, norm: nn.Module | None = None):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, dim, patch_size, stride=patch_size)
        self.norm = norm or nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, height, width) -> (B, N, C): the patches, row by row."""
        return self.norm(self.proj(images).flatten(2).transpose(1, 2))
