"""Dropout that is fast on CPUs."""

import torch
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """What `nn.Dropout` does, with a faster mask in training on a CPU.

    There torch draws each number of a mask by itself, and keeps masks in the features' type. Here
    four come from one random integer, and a mask takes a byte for each feature.

    Args:
        p: Probability to drop a feature; on CPUs rounded to a multiple of 2^-16. What stays is
            scaled by 1 / (1 - p), so that the mean stays.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Drop features in training; the shape stays."""
        dropped = round(self.p * 2**16)
        if not self.training or x.device.type != "cpu" or dropped in (0, 2**16):
            return super().forward(x)
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device)
        draws = draws.random_(-(2**63), None).view(torch.int16)[: x.numel()].view(x.shape)
        # A comparison into whole numbers is vectorised, one into booleans is not.
        kept = torch.ge(draws, dropped - 2**15, out=torch.empty_like(draws)).to(torch.uint8)
        return _Masked.apply(x, kept, 2**16 / (2**16 - dropped))


class _Masked(torch.autograd.Function):
    # x * mask * scale.
    @staticmethod
    def forward(ctx, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return (x * mask.to(x.dtype)).mul_(scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (mask,) = ctx.saved_tensors
        return (grad * mask.to(grad.dtype)).mul_(ctx.scale), None, None
