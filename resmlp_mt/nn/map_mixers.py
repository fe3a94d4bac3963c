"""Token mixers for maps of features, (B, C, rows, columns): those of the models with stages."""

import torch
from torch import Tensor, nn

from resmlp_mt.nn.grids import Grid


class Pooling(nn.Module):
    """The mean of a position and its neighbours, less the position (PoolFormer, equation 4).

    At the border the mean is over the neighbours that there are. The residual line adds the
    position again.
    """

    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbours. (B, C, rows, columns)."""
        return self.pool(x) - x


class AxisWeights(nn.Module):
    """W of AdaFC: each channel's weight for each distance, down the rows and along the columns.

    One belongs to a stage, and all its blocks use it.

    Args:
        dim: Number of channels C.
        grid: Rows and columns.
        frozen: Whether W stays as it was drawn.
    """

    def __init__(self, dim: int, grid: Grid, frozen: bool):
        super().__init__()
        self.vertical, self.horizontal = (
            nn.Parameter(0.1 * torch.randn(dim, side), requires_grad=not frozen) for side in grid
        )

    def forward(self) -> tuple[Tensor, Tensor]:
        """The matrices of both directions, (C, rows, rows) and (C, columns, columns)."""
        return turn(self.vertical.softmax(1)), turn(self.horizontal.softmax(1))

    def find_grid(self, weights: dict[str, Tensor]) -> Grid | None:
        """The grid that its weights are for, or None if that cannot be told."""
        found = [weights.get(name) for name in ("vertical", "horizontal")]
        if any(weight is None or weight.dim() != 2 for weight in found):
            return None
        return found[0].size(1), found[1].size(1)

    def resize(self, weights: dict[str, Tensor], old: Grid, new: Grid) -> dict[str, Tensor]:
        """The weights for one grid, interpolated for another: the same at the same share of a turn.

        The output for a constant map stays as it was: each channel's weights sum to 1.
        """
        sides = dict(vertical=new[0], horizontal=new[1])
        return {name: _stretch(weights[name], side) for name, side in sides.items()}


class AdaFC(nn.Module):
    """A circular correlation down the rows, then along the columns, then a linear layer.

    It is the token mixer of "Exploring Token-Mixing Structure for Transformer" (Asakura, Uto and
    Shinoda, JSAI 2022), algorithm 1.

    Args:
        dim: Number of channels C.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.out = nn.Conv2d(dim, dim, 1)

    def forward(self, x: Tensor, vertical: Tensor, horizontal: Tensor) -> Tensor:
        """Mix rows, then columns, then channels.

        Args:
            x: (B, C, rows, columns).
            vertical, horizontal: The output of the stage's `AxisWeights`.
        """
        x = torch.einsum("cpq,bcqs->bcps", vertical, x)
        return self.out(torch.einsum("cpq,bcrq->bcrp", horizontal, x))


def turn(weights: Tensor) -> Tensor:
    """The matrices that correlate with weights around a circle.

    Args:
        weights: For each distance. (C, P).

    Returns:
        [c, p, q] = weights[c, (q - p) mod P]. (C, P, P).
    """
    twice = torch.cat([weights, weights], dim=1)
    return twice.unfold(1, weights.size(1), 1)[:, 1:].flip(1)


def _stretch(weights: Tensor, side: int) -> Tensor:
    """Interpolate around a circle. (C, P) -> (C, side)."""
    old = weights.size(1)
    place = torch.arange(side, dtype=torch.float64) * old / side
    before = place.long()
    share = place - before
    x = weights.double()
    return (x[:, before] * (1 - share) + x[:, (before + 1) % old] * share).to(weights.dtype)
