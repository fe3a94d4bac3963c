"""Convolutions with weight standardisation, and the residual block of BiT (arXiv 1912.11370)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class StandardisedConv(nn.Conv2d):
    """A convolution, each of whose outputs has weights of mean 0 and variance 1 (1903.10520).

    It has no bias. Other arguments as for `nn.Conv2d`. In `eval()` on a CPU, where no gradient of
    the weights is wanted, they are standardised once, and again when they were changed.
    """

    EPS = 1e-8
    # Which weights were standardised, and what came of them.
    _kept: tuple[Tensor, tuple, Tensor] | None = None

    def __init__(self, in_dim: int, dim: int, kernel: int, stride: int = 1, padding: int = 0):
        super().__init__(in_dim, dim, kernel, stride, padding, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_dim, rows, columns) -> (B, dim, rows / stride, columns / stride)."""
        return F.conv2d(x, self._find_weight(x.dtype), None, self.stride, self.padding)

    def __getstate__(self) -> dict:
        """Without the weights that are kept: a copy has its own."""
        return self.__dict__ | {"_kept": None}

    def fold(self) -> nn.Conv2d:
        """The same function with weights that are standardised already."""
        sizes = self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding
        conv = nn.Conv2d(*sizes, bias=False, device="meta")
        with torch.no_grad():
            conv.weight = nn.Parameter(self._standardise(self.weight.dtype))
        return conv.train(self.training)

    def _find_weight(self, dtype: torch.dtype) -> Tensor:
        weight = self.weight
        if (
            self.training
            or torch.compiler.is_compiling()
            or (torch.is_grad_enabled() and weight.requires_grad)
            or type(weight) is not nn.Parameter  # torch.func or pruning put another in its place
            or weight.is_inference()  # torch does not count its changes
            or weight.device.type != "cpu"  # the sum would have to be waited for
        ):
            self._kept = None
            return self._standardise(dtype)
        # torch counts changes, but not those through weight.data. The sum tells of them.
        now = weight.data_ptr(), weight._version, weight.sum().item(), dtype
        if self._kept is None or self._kept[1] != now:
            with torch.inference_mode(False), torch.no_grad():
                # While the first lives, other weights lie elsewhere.
                self._kept = weight.detach(), now, self._standardise(dtype)
        return self._kept[2]

    def _standardise(self, dtype: torch.dtype) -> Tensor:
        # In half precision epsilon would be 0.
        weight = self.weight if self.weight.dtype == torch.float64 else self.weight.float()
        # torch's fastest way to the mean and the variance: each output is a channel, over all else.
        flat = weight.reshape(1, len(weight), -1)
        flat = F.batch_norm(flat, None, None, training=True, momentum=0.0, eps=self.EPS)
        return flat.view_as(weight).to(dtype)


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
        drop: The dropout of the line. It has no weights.
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
        # In place: nobody else has what a norm returns, and large maps take time to allocate.
        y = F.relu(self.norm_1(x), inplace=True)
        kept = x if self.shortcut is None else self.shortcut(y)
        y = self.conv_2(F.relu(self.norm_2(self.conv_1(y)), inplace=True))
        return kept + self.drop(self.conv_3(F.relu(self.norm_3(y), inplace=True)))
