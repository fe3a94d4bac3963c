"""Token mixers for maps of features, (B, C, rows, columns): those of the models with stages."""

from torch import Tensor, nn


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
