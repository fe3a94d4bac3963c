"""Token mixers for the patches of an image: the paper's matrix and what its ablation puts there.

They keep the contract of `mixers.py` for features that have no padding: (B, N, C) -> (B, N, C),
where the N = H W positions are the patches of a grid, row by row. `none`, `mlp` and the three
convolutions are those of table 3 of ResMLP (arXiv 2105.03404); their shapes are what reproduces its
parameter counts.
"""

from torch import Tensor, nn

from resmlp_mt.nn.mixers import FreeMatrix, LinearMixer


class NoMixer(nn.Module):
    """y = x: patches do not communicate."""

    def forward(self, x: Tensor, padding_mask: None = None) -> Tensor:
        """Return the features. (B, N, C)."""
        return x


class PatchMLP(nn.Module):
    """y = (B GELU(A x^T))^T: N -> 4N -> N positions, the same for all channels (appendix A).

    Args:
        positions: N.
    """

    def __init__(self, positions: int):
        super().__init__()
        self.fc1 = nn.Linear(positions, 4 * positions)
        self.fc2 = nn.Linear(4 * positions, positions)

    def forward(self, x: Tensor, padding_mask: None = None) -> Tensor:
        """Mix each channel across positions. (B, N, C)."""
        return self.fc2(nn.functional.gelu(self.fc1(x.transpose(1, 2)))).transpose(1, 2)


class GridConvolution(nn.Sequential):
    """Convolutions over the grid, one after the other, with zeros around it.

    Args:
        width: Columns W of the grid.
        convolutions: Each maps (B, C, H, W) to (B, C, H, W).
    """

    def __init__(self, width: int, *convolutions: nn.Conv2d):
        super().__init__(*convolutions)
        self.width = width

    def forward(self, x: Tensor, padding_mask: None = None) -> Tensor:
        """Mix neighbours. (B, N, C)."""
        x = x.transpose(1, 2).unflatten(2, (-1, self.width))
        return super().forward(x).flatten(2).transpose(1, 2)


def _linear(dim: int, grid: tuple[int, int]) -> LinearMixer:
    return LinearMixer(FreeMatrix(grid[0] * grid[1], heads=1, causal=False, init_std=0.02))


def _convolution(dim: int, grid: tuple[int, int]) -> GridConvolution:
    return GridConvolution(grid[1], nn.Conv2d(dim, dim, 3, padding=1))


def _depthwise(dim: int, grid: tuple[int, int]) -> GridConvolution:
    return GridConvolution(grid[1], nn.Conv2d(dim, dim, 3, padding=1, groups=dim))


def _separable(dim: int, grid: tuple[int, int]) -> GridConvolution:
    return GridConvolution(
        grid[1], nn.Conv2d(dim, dim, 3, padding=1, groups=dim), nn.Conv2d(dim, dim, 1)
    )


# name: builder(dim, (rows, columns) of the grid)
GRID_MIXERS = {
    "linear": _linear,
    "none": lambda dim, grid: NoMixer(),
    "mlp": lambda dim, grid: PatchMLP(grid[0] * grid[1]),
    "conv3x3": _convolution,
    "depthwise3x3": _depthwise,
    "separable3x3": _separable,
}


def build_grid_mixer(name: str, dim: int, grid: tuple[int, int]) -> nn.Module:
    """Build the mixer called `name` in GRID_MIXERS.

    Args:
        name: linear (the paper's A), none, mlp, conv3x3, depthwise3x3 or separable3x3.
        dim: Number of channels C.
        grid: Rows H and columns W of the patches.
    """
    return GRID_MIXERS[name](dim, grid)
