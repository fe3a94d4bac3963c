"""The stages of an image model, between its stem and its pooling."""

from collections.abc import Iterable

from torch import Tensor, nn

from resmlp_mt.nn.grids import Grid


class Stage(nn.Module):
    """Blocks on one grid, and what brings the features to that grid.

    Args:
        grid: Rows and columns of the positions that the blocks see.
        downsample: Brings the features of the stage before to this grid and its channels;
            `nn.Identity()` for a first stage.
        blocks: The blocks. They decide whether features are (B, N, C) or (B, C, rows, columns).
    """

    def __init__(self, grid: Grid, downsample: nn.Module, blocks: Iterable[nn.Module]):
        super().__init__()
        self.grid = grid
        self.downsample = downsample
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Bring features to the grid, and mix them."""
        x = self.downsample(x)
        for block in self.blocks:
            x = block(x)
        return x
