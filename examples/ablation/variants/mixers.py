"""Mixers that were tried and are not part of the package."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.nn.mixers import LinearMixer

GATES = {"linear": nn.Identity, "sigmoid": nn.Sigmoid, "silu": nn.SiLU}


class SoftmaxMixer(LinearMixer):
    """Rows of softmax(A) over the words that there are (Random Synthesizer, arXiv 2005.00743).

    Its matrix holds exp(A).
    """

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix as `LinearMixer` does: (B, L, C) -> (B, L, C)."""
        y = super().forward(x, padding_mask, state)
        seen = y.size(1) if state is None else state["inputs"].size(1)
        rows, _ = self.matrix(seen - y.size(1), seen)
        words = x.new_ones(len(x), seen)
        if padding_mask is not None:
            words = words.masked_fill(padding_mask, 0)
        total = torch.einsum("hij,bj->bih", rows, words)
        return (y.unflatten(-1, (rows.size(0), -1)) / total.unsqueeze(-1)).flatten(-2)


class VariantMixer(nn.Module):
    """y = W (g_o(G x) * A (g_i(G x) * K x * V x)), with each of W, G, K and V there or not.

    With all of them it is the operator of H3 (arXiv 2212.14052), where A is a long convolution.

    Args:
        dim: Number of channels C.
        mix: The mixer that holds A.
        value: Whether V is there.
        key: Whether K is there.
        gate: A name in GATES, or None for no G.
        gate_on: "input" or "output" of A.
        project_out: Whether W is there.
    """

    def __init__(
        self,
        dim: int,
        mix: LinearMixer,
        value: bool,
        key: bool,
        gate: str | None,
        gate_on: str,
        project_out: bool,
    ):
        super().__init__()
        self.value = nn.Linear(dim, dim) if value else nn.Identity()
        self.key = nn.Linear(dim, dim) if key else None
        self.mix = mix
        self.gate = nn.Sequential(nn.Linear(dim, dim), GATES[gate]()) if gate else None
        self.gate_on = gate_on
        self.out = nn.Linear(dim, dim) if project_out else nn.Identity()

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix as `LinearMixer` does: (B, L, C) -> (B, L, C)."""
        y = self.value(x)
        if self.key:
            y = self.key(x) * y
        if self.gate and self.gate_on == "input":
            y = self.gate(x) * y
        y = self.mix(y, padding_mask, state)
        if self.gate and self.gate_on == "output":
            y = self.gate(x) * y
        return self.out(y)


class SpatialGateMixer(nn.Module):
    """y = W (u * (A norm(v) + b)), where u and v are the halves of GELU(U x) (gMLP, 2105.08050).

    b starts at 1, so that with A near 0 each position passes its own u. A block of gMLP is this on
    3C channels, and nothing else. Here u and v have C channels, since the channel MLP stays.

    Args:
        dim: Number of channels C.
        mix: The mixer that holds A.
    """

    def __init__(self, dim: int, mix: LinearMixer):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.norm, self.mix = nn.LayerNorm(dim), mix
        self.bias = nn.Parameter(torch.ones(dim))

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix as `LinearMixer` does: (B, L, C) -> (B, L, C)."""
        u, v = F.gelu(self.fc1(x)).chunk(2, dim=-1)
        return self.fc2(u * (self.mix(self.norm(v), padding_mask, state) + self.bias))


class TokenMLP(nn.Module):
    """An MLP over positions, as in MLP-Mixer, with K hidden units for each position.

        z[i, k] = GELU(b[k] + sum over j of A[k, i, j] x[j])
        y[i] = sum over j and k of B[k, i, j] z[j, k]

    The same for each channel. Where A and B are causal, z[i] and y[i] see x[:i + 1] alone: the
    weights of both layers are triangular in blocks. A shorter sentence has fewer hidden units, so
    a translation does not depend on how far its batch is padded.

    Args:
        first, second: A and B, matrices of K heads.
        hidden: K.
    """

    def __init__(self, first: nn.Module, second: nn.Module, hidden: int):
        super().__init__()
        self.first, self.second = first, second
        self.bias = nn.Parameter(torch.zeros(hidden, 1))

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix as `LinearMixer` does: (B, L, C) -> (B, L, C)."""
        inputs = _join("inputs", _clear(x, padding_mask), state)
        place = inputs.size(1) - x.size(1), inputs.size(1)
        rows, bias = self.first(*place)
        hidden = torch.einsum("kij,bjc->bikc", rows, inputs) + self.bias
        if bias is not None:
            hidden = hidden + bias.t().unsqueeze(-1)
        # A pad has hidden units too, which have seen words.
        hidden = _join("hidden", _clear(F.gelu(hidden), padding_mask), state)
        rows, bias = self.second(*place)
        y = torch.einsum("kij,bjkc->bic", rows, hidden)
        return y if bias is None else y + bias.sum(0).unsqueeze(-1)


def _clear(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """x with zeros where it is padded. (B, L, ...)."""
    if padding_mask is None:
        return x
    return x.masked_fill(padding_mask.view(*padding_mask.shape, *[1] * (x.dim() - 2)), 0)


def _join(name: str, new: Tensor, state: dict[str, Tensor] | None) -> Tensor:
    """The positions of earlier steps and the new ones, which are left in the state. (B, L, ...)."""
    if state is None:
        return new
    state[name] = torch.cat([state[name], new], dim=1) if name in state else new
    return state[name]
