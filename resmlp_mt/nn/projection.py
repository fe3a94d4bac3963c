"""The head of DINO (arXiv 2104.14294): features to cosines with prototypes."""

from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.patches import init_linear


class ProjectionHead(nn.Module):
    """z = mlp(x); y[i] = cos(z, prototypes[i]).

    The published head is l2-normalisation, then a weight-normalised layer whose magnitudes are
    fixed at 1. That is a matrix of unit rows. Here they are a plain parameter, brought to length 1
    when it is used. So what copies, averages or casts parameters needs no special case.

    The head also keeps DINO's centre, the running mean of the teacher's output. The student's is
    the one in use. The moving average of the model has a copy that lags behind and is never read.

    Args:
        dim: Number of channels C of the features.
        hidden_dim: Hidden channels of the MLP.
        bottleneck_dim: Channels of z.
        out_dim: Number of prototypes.

    Raises:
        UserError: If a size is below 1.
    """

    def __init__(self, dim: int, hidden_dim: int, bottleneck_dim: int, out_dim: int):
        super().__init__()
        for name, size in (
            ("hidden", hidden_dim),
            ("bottleneck", bottleneck_dim),
            ("out", out_dim),
        ):
            if size < 1:
                raise UserError(f"the head's {name} dimension must be at least 1, not {size}")
        layers = {
            "fc1": nn.Linear(dim, hidden_dim),
            "activate_1": nn.GELU(),
            "fc2": nn.Linear(hidden_dim, hidden_dim),
            "activate_2": nn.GELU(),
            "fc3": nn.Linear(hidden_dim, bottleneck_dim),
        }
        self.mlp = nn.Sequential(OrderedDict(layers))
        self.prototypes = nn.Parameter(torch.empty(out_dim, bottleneck_dim))
        self.register_buffer("centre", torch.zeros(out_dim))
        self.mlp.apply(init_linear)
        nn.init.kaiming_uniform_(self.prototypes, a=5**0.5)

    def bottleneck(self, x: Tensor) -> Tensor:
        """The direction of z. (B, C) -> (B, bottleneck_dim), each of length 1."""
        return F.normalize(self.mlp(x).float(), dim=-1)

    def directions(self) -> Tensor:
        """The prototypes, each brought to length 1. (out_dim, bottleneck_dim)."""
        return F.normalize(self.prototypes.float(), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Compare with the prototypes: (B, C) -> (B, out_dim).

        In float32, whatever the model's precision. bfloat16 rounds a cosine to two digits, and
        DINO divides by a temperature of 0.04, which enlarges the error.
        """
        return F.linear(self.bottleneck(x), self.directions())

    @torch.no_grad()
    def update_centre(self, output: Tensor, momentum: float) -> None:
        """c = momentum c + (1 - momentum) mean(output), the mean of all workers' batches.

        Without any output the centre stays.

        Args:
            output: The output of the teacher's head. (..., out_dim). A worker may have none, but
                all of them have to call this.
            momentum: Share of the old centre.
        """
        total = output.flatten(0, -2).sum(0, dtype=torch.float32)
        count = total.new_tensor(output.numel() // output.size(-1))
        if dist.is_available() and dist.is_initialized():
            dist.all_reduce(total)
            dist.all_reduce(count)
        self.centre.lerp_(total / count.clamp(min=1), (1 - momentum) * count.clamp(max=1))

    def rest_prototypes(self) -> None:
        """After a backward pass: leave the prototypes as they are in this update."""
        if self.prototypes.grad is not None:
            self.prototypes.grad.zero_()

    def _apply(self, fn, recurse=True):
        # --bf16 casts the whole model; steps of a tenth towards a mean need finer numbers.
        centre = self.centre
        super()._apply(fn, recurse)
        self.centre = centre.to(self.centre.device)
        return self
