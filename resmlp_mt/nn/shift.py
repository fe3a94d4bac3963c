"""The token mixer of S2-MLP (arXiv 2106.07477): channels that move by a patch."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.errors import UserError


def shift(x: Tensor) -> Tensor:
    """Move four groups of channels by one patch: to the right, left, down and up.

    The patches at the border that a group comes from keep their own values.

    Args:
        x: (B, rows, columns, C), where 4 divides C.
    """
    # Each group is read from x as it was: moved in place, a value would run on and on.
    right, left, down, up = x.chunk(4, dim=-1)
    moved = (
        torch.cat([right[:, :, :1], right[:, :, :-1]], dim=2),
        torch.cat([left[:, :, 1:], left[:, :, -1:]], dim=2),
        torch.cat([down[:, :1], down[:, :-1]], dim=1),
        torch.cat([up[:, 1:], up[:, -1:]], dim=1),
    )
    return torch.cat(moved, dim=-1)


class ShiftMLP(nn.Module):
    """after(shift(GELU(before(x)))), with a linear layer over channels on each side of the shift.

    Its weights fit any image size.

    Args:
        dim: Number of channels C.
        columns: Columns of the grid.

    Raises:
        UserError: If 4 does not divide C.
    """

    def __init__(self, dim: int, columns: int):
        super().__init__()
        if dim % 4:
            raise UserError(f"--embed-dim must be a multiple of 4, which shift apart; not {dim}")
        self.before, self.after = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.columns = columns

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbours, then channels. (B, N, C)."""
        x = F.gelu(self.before(x)).unflatten(1, (-1, self.columns))
        return self.after(shift(x).flatten(1, 2))
