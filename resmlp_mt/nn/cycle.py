"""The token mixer of CycleMLP (arXiv 2107.10224), on (B, rows, columns, C)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS, COLUMNS = 1, 2  # the dimensions along which channels are staggered


def stagger(x: Tensor, dim: int) -> Tensor:
    """Read channel 0 where it is, 1 from the next position, 2 from the one before, and so on.

    Beyond the border are zeros.

    Args:
        x: (B, rows, columns, C).
        dim: ROWS or COLUMNS.
    """
    side = x.size(dim)
    padding = (0, 0, 1, 1) if dim == COLUMNS else (0, 0, 0, 0, 1, 1)
    padded = F.pad(x, padding)
    before, after = padded.narrow(dim, 0, side), padded.narrow(dim, 2, side)
    turn = torch.arange(x.size(-1), device=x.device) % 3
    return torch.where(turn == 0, x, torch.where(turn == 1, after, before))


class CycleFC(nn.Linear):
    """A linear layer over channels that are read from three neighbours in turn (equation 3).

    Its weights fit any image size.

    Args:
        dim: Number of channels C.
        along: ROWS or COLUMNS: where the neighbours are.
    """

    def __init__(self, dim: int, along: int):
        super().__init__(dim, dim)
        self.along = along

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbours and channels. (B, rows, columns, C)."""
        return super().forward(stagger(x, self.along))


class SplitAttention(nn.Module):
    """The sum of branches, weighed for each image and channel (ResNeSt, arXiv 2004.08955).

    The weights are the softmax over branches of fc2(GELU(fc1(mean))), where the mean is that of the
    branches' sum over all positions.

    Args:
        dim: Number of channels C.
        branches: Their number.
    """

    def __init__(self, dim: int, branches: int):
        super().__init__()
        hidden_dim = max(dim // 4, 1)
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, branches * dim)
        self.branches = branches

    def forward(self, *branches: Tensor) -> Tensor:
        """Each (B, rows, columns, C), and so is the sum."""
        mean = sum(branches).mean((1, 2))
        weights = self.fc2(F.gelu(self.fc1(mean))).unflatten(1, (-1, self.branches)).softmax(2)
        weighed = zip(branches, weights[:, None, None].unbind(-1), strict=True)
        return sum(branch * weight for branch, weight in weighed)


class CycleMLP(nn.Module):
    """out(attention(columns(x), rows(x), channels(x))): three branches and a linear layer.

    Args:
        dim: Number of channels C.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.columns, self.rows = CycleFC(dim, COLUMNS), CycleFC(dim, ROWS)
        self.channels = nn.Linear(dim, dim, bias=False)
        self.attention = SplitAttention(dim, branches=3)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbours, then channels. (B, rows, columns, C)."""
        return self.out(self.attention(self.columns(x), self.rows(x), self.channels(x)))
