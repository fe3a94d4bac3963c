"""Token mixers for the patches of an image, which stand in the place of the paper's matrix A.

They map (B, N, C) to (B, N, C), where the N positions are the patches of a grid, row by row. An
image has no padding, so they take the features alone. They are those of table 3 of ResMLP (arXiv
2105.03404). Their shapes reproduce its parameter counts.
"""

from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.gates import SiluGate, check_halves
from resmlp_mt.nn.grids import READ, WRITTEN, Grid, resize


class PatchMLP(nn.Module):
    """fc2(gate(fc1(x^T)))^T: an MLP over positions, the same for all channels (appendix A).

    Args:
        positions: N.
        hidden_positions: Width of the hidden layer, 4N in the paper.
        gated: Whether one half of it gates the other; else the gate is GELU.

    Raises:
        UserError: If a hidden layer to be gated has no halves.
    """

    def __init__(self, positions: int, hidden_positions: int, gated: bool = False):
        super().__init__()
        if gated:
            check_halves(hidden_positions)
        self.fc1 = nn.Linear(positions, hidden_positions)
        self.gate = SiluGate() if gated else nn.GELU()
        self.fc2 = nn.Linear(hidden_positions // 2 if gated else hidden_positions, positions)

    def forward(self, x: Tensor) -> Tensor:
        """Mix each channel across positions. (B, N, C)."""
        return self.fc2(self.gate(self.fc1(x.transpose(1, 2)))).transpose(1, 2)

    def resize(self, weights: dict[str, Tensor], old: Grid, new: Grid) -> dict[str, Tensor]:
        """The weights for the positions of one grid, interpolated for another (see `grids.py`).

        The hidden layer stays as it is: for a constant image it holds the same on both grids.

        Raises:
            UserError: If the hidden layer has another size, which it has where its size depends on
                the grid.
        """
        if weights["fc1.weight"].size(0) != self.fc1.weight.size(0):
            raise UserError(
                "the weights are of another image size, and the token mixer 'mlp' cannot be "
                "interpolated: the size of its hidden layer depends on the number of patches"
            )
        resized = {
            "fc1.weight": resize(weights["fc1.weight"], (READ,), old, new),
            "fc2.weight": resize(weights["fc2.weight"].t(), (WRITTEN,), old, new).t(),
            "fc2.bias": resize(weights["fc2.bias"][None], (WRITTEN,), old, new)[0],
        }
        return weights | resized


class GridConvolution(nn.Module):
    """A convolution over the grid, with zeros around it.

    Args:
        columns: Columns of the grid.
        spatial: Maps (B, C, rows, columns) to the same shape.
        pointwise: A second convolution, of size 1, or `nn.Identity()`.
    """

    def __init__(self, columns: int, spatial: nn.Module, pointwise: nn.Module):
        super().__init__()
        self.columns = columns
        self.spatial, self.pointwise = spatial, pointwise

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbours. (B, N, C)."""
        x = x.transpose(1, 2).unflatten(2, (-1, self.columns))
        return self.pointwise(self.spatial(x)).flatten(2).transpose(1, 2)
