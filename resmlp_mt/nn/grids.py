"""Weights that lie on a grid of positions, interpolated for another grid.

A mixing matrix maps the positions of a grid to the positions of the same grid. So its rows lie on a
grid of two dimensions, and its columns too. All four are interpolated:
A' = U A D. U interpolates what A gives from the old grid to the new one (bicubic; antialiased where
the grid shrinks). D averages the positions of the new grid to those of the old one: U transposed,
with each row scaled to the sum 1. For n times as many positions, each column gets about 1/n of the
weight, and what A makes of a constant image stays exactly as it was.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from resmlp_mt.errors import UserError

Grid = tuple[int, int]  # rows and columns
# The use that a weight makes of the positions along one of its dimensions.
READ, WRITTEN = "read", "written"


def square_grid(positions: int) -> Grid:
    """The square grid of so many positions.

    Raises:
        UserError: If there is none.
    """
    side = math.isqrt(positions)
    if side * side != positions:
        raise UserError(
            f"the weights are for {positions} patches, which are no square grid: they cannot be "
            "interpolated to another image size"
        )
    return side, side


def resize(weight: Tensor, roles: tuple[str, ...], old: Grid, new: Grid) -> Tensor:
    """Interpolate each dimension that stands for the positions of a grid.

    Args:
        weight: (H, N, ...): behind the heads, a dimension of N positions for each role.
        roles: READ or WRITTEN, for each of these dimensions.
        old, new: The grids, of N and of N' positions.

    Returns:
        Shape: (H, N', ...). What is of another shape than the old grid's stays as it is.
    """
    count = len(roles)
    if weight.dim() != 1 + count or weight.shape[1:] != (math.prod(old),) * count:
        return weight
    x = weight.double().reshape(-1, *old * count)
    for dim in range(2 * count):
        up = _interpolation(old[dim % 2], new[dim % 2]).to(x)
        matrix = up if roles[dim // 2] == WRITTEN else _averaging(up).t()
        x = torch.tensordot(x, matrix, dims=([1 + dim], [1])).movedim(-1, 1 + dim)
    return x.to(weight.dtype).reshape(-1, *(math.prod(new),) * count)


def _interpolation(old: int, new: int) -> Tensor:
    """U along one side of the grid. Every row sums to 1. (new, old)."""
    # Interpolated as an image whose channels are the old positions: torch 2.13 antialiases wrongly
    # where there is one channel and one column.
    image = torch.eye(old, dtype=torch.float64).view(1, old, 1, old)
    up = F.interpolate(
        image, size=(1, new), mode="bicubic", align_corners=False, antialias=new < old
    )
    return up.view(old, new).t()


def _averaging(up: Tensor) -> Tensor:
    """D for U along the same side. Every row sums to 1. (new, old) -> (old, new)."""
    return up.t() / up.sum(0).unsqueeze(1)
