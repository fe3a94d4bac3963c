"""MLPs over channels whose hidden layer is halved by a gate, and the block of gMLP."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.mixers import FreeMatrix, LinearMixer


class SiluGate(nn.Module):
    """u * SiLU(v) for the two halves u and v of the channels (SwiGLU, arXiv 2002.05202)."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., 2C) -> (..., C)."""
        u, v = x.chunk(2, dim=-1)
        return u * F.silu(v)


class SpatialGate(nn.Module):
    """u * (A norm(v) + b) for the two halves u and v of GELU(x) (gMLP, equation 3).

    It starts with A near 0 and b = 1: each position passes its own u.

    Args:
        dim: Channels of each half.
        positions: N.
    """

    def __init__(self, dim: int, positions: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix_tokens = LinearMixer(FreeMatrix(positions, 1, causal=False, init_std=1e-6))
        nn.init.ones_(self.mix_tokens.matrix.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, 2C) -> (B, N, C)."""
        u, v = F.gelu(x).chunk(2, dim=-1)
        return u * self.mix_tokens(self.norm(v))


class GatedMLP(nn.Module):
    """fc2(gate(fc1(x))).

    Args:
        dim: Number of channels C.
        hidden_dim: Number of hidden channels, of which the gate leaves half.
        gate: Maps (B, N, hidden_dim) to (B, N, hidden_dim / 2).

    Raises:
        UserError: If the hidden channels have no halves.
    """

    def __init__(self, dim: int, hidden_dim: int, gate: nn.Module):
        super().__init__()
        check_halves(hidden_dim)
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.gate = gate
        self.fc2 = nn.Linear(hidden_dim // 2, dim)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, C)."""
        return self.fc2(self.gate(self.fc1(x)))


class GMLPBlock(nn.Module):
    """x = x + drop(mix_channels(norm(x))): one residual line, whose gate mixes tokens.

    Args:
        norm, mix_channels: The line.
        drop: Its dropout. It has no weights.
    """

    def __init__(self, *, norm: nn.Module, mix_channels: GatedMLP, drop: nn.Module):
        super().__init__()
        self.norm, self.mix_channels, self.drop = norm, mix_channels, drop

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, C)."""
        return x + self.drop(self.mix_channels(self.norm(x)))


def check_halves(hidden: int) -> None:
    """Refuse a hidden layer that a gate cannot halve.

    Raises:
        UserError: If its width is odd.
    """
    if hidden % 2:
        raise UserError(f"a gate halves the hidden layer: its width must be even, not {hidden}")


@torch.no_grad()
def open_gate(fc1: nn.Linear) -> None:
    """Let the half that gates start near 0, with a bias of 1, as timm does."""
    half = fc1.out_features // 2
    nn.init.trunc_normal_(fc1.weight[half:], std=1e-6)
    nn.init.ones_(fc1.bias[half:])
