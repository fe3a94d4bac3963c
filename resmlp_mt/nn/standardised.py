"""Convolutions with weight standardisation, and the residual block of BiT (arXiv 1912.11370)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class StandardisedConv(nn.Conv2d):
    """A convolution, each of whose outputs has weights of mean 0 and variance 1 (1903.10520).

    It has no bias. Other arguments as for `nn.Conv2d`.
    """

    EPS = 1e-8

    def __init__(self, in_dim: int, dim: int, kernel: int, stride: int = 1, padding: int = 0):
        super().__init__(in_dim, dim, kernel, stride, padding, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_dim, rows, columns) -> (B, dim, rows / stride, columns / stride)."""
        # In half precision epsilon would be 0.
        weight = self.weight if self.weight.dtype == torch.float64 else self.weight.float()
        variance, mean = torch.var_mean(weight, (1, 2, 3), correction=0, keepdim=True)
        weight = ((weight - mean) * torch.rsqrt(variance + self.EPS)).to(x.dtype)
        return F.conv2d(x, weight, None, self.stride, self.padding)


class PaddedMaxPool(nn.MaxPool2d):
    """The largest of 3 x 3, at every second position, with zeros around the map."""

    def __init__(self):
        super().__init__(3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, rows, columns) -> (B, C, rows / 2, columns / 2)."""
        return super().forward(F.pad(x, (1, 1, 1, 1)))


class PreActivationBlock(nn.Module):
    """Three convolutions, each after a norm and ReLU, beside a shortcut (arXiv 1603.05027).

        y = ReLU(norm_1(x))
        x = shortcut(y) + drop(conv_3(ReLU(norm_3(conv_2(ReLU(norm_2(conv_1(y))))))))

    Without a shortcut, x itself is added. Works on (B, C, rows, columns).

    Args:
        norm_1, conv_1, norm_2, conv_2, norm_3, conv_3: The line.
        shortcut: A convolution where the grid or the channels change, else None.
        drop: What the line leaves out in training. It has no weights.
    """

    def __init__(
        self,
        *,
        norm_1: nn.Module,
        conv_1: nn.Module,
        norm_2: nn.Module,
        conv_2: nn.Module,
        norm_3: nn.Module,
        conv_3: nn.Module,
        shortcut: nn.Module | None,
        drop: nn.Module,
    ):
        super().__init__()
        # Checkpoints keep the optimizer's state in the order of the parameters. Keep this order.
        self.norm_1, self.conv_1 = norm_1, conv_1
        self.norm_2, self.conv_2 = norm_2, conv_2
        self.norm_3, self.conv_3 = norm_3, conv_3
        self.shortcut, self.drop = shortcut, drop

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbours and channels."""
        y = F.relu(self.norm_1(x))
        kept = x if self.shortcut is None else self.shortcut(y)
        y = self.conv_2(F.relu(self.norm_2(self.conv_1(y))))
        return kept + self.drop(self.conv_3(F.relu(self.norm_3(y))))
