"""The stages of an image model, between its stem and its pooling."""

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from resmlp_mt.errors import UserError
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.recompute import recompute_block, run_block


class Stage(nn.Module):
    """Blocks on one grid, and the module that brings the features to that grid.

    Args:
        grid: Rows and columns of the positions that the blocks see.
        downsample: Brings the features of the stage before to this grid and its channels;
            `nn.Identity()` for a first stage, or where the first block does that.
        blocks: The blocks. They decide whether features are (B, N, C), (B, rows, columns, C) or
            (B, C, rows, columns).
        shared: The weights that all blocks of the stage use, if they do. Called without arguments,
            it gives a tuple: the arguments of each block besides its features.
        recomputes: Whether the backward pass computes the blocks again, to save memory.

    Raises:
        UserError: If it recomputes BatchNorm, which would count each batch twice.
    """

    def __init__(
        self,
        grid: Grid,
        downsample: nn.Module,
        blocks: Iterable[nn.Module],
        shared: nn.Module | None = None,
        recomputes: bool = False,
    ):
        super().__init__()
        self.grid = grid
        self.downsample = downsample
        self.shared = shared
        self.blocks = nn.ModuleList(blocks)
        self.run_block = recompute_block if recomputes else run_block
        if recomputes and any(isinstance(part, _BatchNorm) for part in self.blocks.modules()):
            raise UserError(
                "--checkpoint-activations: BatchNorm would count each batch twice; leave it out"
            )

    def forward(self, x: Tensor) -> Tensor:
        """Bring features to the grid, and mix them."""
        x = self.downsample(x)
        context = self.shared() if self.shared is not None else ()
        for block in self.blocks:
            x = self.run_block(block, x, *context)
        return x
