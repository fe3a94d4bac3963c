"""Dropout that is fast on CPUs, and that a search may keep."""

import torch
from torch import Tensor, nn


class KeepsDropout(nn.Module):
    """A part that drops in training, and in a search too where fairseq's --retain-dropout asks.

    It then stays in training mode, whatever mode its model is in.
    """

    retained = False

    def train(self, mode: bool = True):
        """Set the mode, but for a part that shall drop in all of them."""
        return super().train(mode or self.retained)

    def make_generation_fast_(
        self,
        name: str,
        retain_dropout: bool = False,
        retain_dropout_modules: str | list[str] | None = None,
        **kwargs,
    ) -> None:
        """fairseq calls this before it generates.

        Args:
            name: Of this part in its model, as `encoder.blocks.0.drop`.
            retain_dropout: Whether parts shall drop.
            retain_dropout_modules: Which: these and all within them, as `encoder`; None for all.
        """
        self.retained = retain_dropout and (
            retain_dropout_modules is None
            or any(f"{name}.".startswith(f"{m}.") for m in split_names(retain_dropout_modules))
        )


def split_names(modules: str | list[str]) -> list[str]:
    """The names in --retain-dropout-modules, which have commas between them."""
    return modules.split(",") if isinstance(modules, str) else list(modules)


class Dropout(KeepsDropout, nn.Dropout):
    """`nn.Dropout`, with a faster mask in training on a CPU.

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
