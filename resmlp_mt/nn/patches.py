"""The stem of an image model: pixels to patches."""

from torch import Tensor, nn


def init_linear(module: nn.Module) -> None:
    """Initialise a linear layer as the released code does. Others keep torch's defaults."""
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
