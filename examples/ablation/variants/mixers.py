"""Mixers and matrices that were tried and are not part of the package."""

import torch
from torch import Tensor, nn

from resmlp_mt.nn.mixers import FreeMatrix, LinearMixer, ToeplitzMatrix

GATES = {"linear": nn.Identity, "sigmoid": nn.Sigmoid, "silu": nn.SiLU}


class LowRankMatrix(FreeMatrix):
    """A = U V, of rank 16: of 2 rank N weights a head instead of N^2."""

    rank = 16

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__(positions, heads, causal, init_std)
        del self.weight
        # The product's elements then have a standard deviation of init_std.
        std = (init_std / self.rank**0.5) ** 0.5
        self.rows = nn.Parameter(torch.randn(heads, positions, self.rank) * std)
        self.columns = nn.Parameter(torch.randn(heads, self.rank, positions) * std)

    @property
    def weight(self) -> Tensor:
        """A, as `FreeMatrix` has it. Shape: (H, N, N)."""
        return self.rows @ self.columns


class BothMatrices(nn.Module):
    """A free matrix that corrects a Toeplitz one, from zero on."""

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__()
        self.toeplitz = ToeplitzMatrix(positions, heads, causal, init_std)
        self.free = FreeMatrix(positions, heads, causal, init_std)
        nn.init.zeros_(self.free.weight)

    def forward(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Rows start to stop of A[:stop, :stop], as `FreeMatrix`."""
        rows, bias = self.free(start, stop)
        return rows + self.toeplitz(start, stop)[0], bias


class UnbiasedMatrix(FreeMatrix):
    """A free matrix without the bias of a position."""

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__(positions, heads, causal, init_std)
        del self.bias

    def forward(self, start: int, stop: int) -> tuple[Tensor, None]:
        """Rows start to stop of A[:stop, :stop], as `FreeMatrix`."""
        rows = self.weight[:, start:stop, :stop]
        return (rows.tril(start) if self.causal else rows), None


class ExponentialMatrix(FreeMatrix):
    """exp(A), for rows that a mixer normalises. No bias."""

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__(positions, heads, causal, init_std)
        del self.bias

    def forward(self, start: int, stop: int) -> tuple[Tensor, None]:
        """Rows start to stop of A[:stop, :stop], as `FreeMatrix`."""
        rows = self.weight[:, start:stop, :stop].exp()
        return (rows.tril(start) if self.causal else rows), None


class SoftmaxMixer(LinearMixer):
    """Rows of softmax(A) over the words that there are (Random Synthesizer, arXiv 2005.00743)."""

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


MATRICES = {
    "free": FreeMatrix,
    "toeplitz": ToeplitzMatrix,
    "both": BothMatrices,
    "low-rank": LowRankMatrix,
    "no-bias": UnbiasedMatrix,
    "softmax": ExponentialMatrix,
}


@torch.no_grad()
def start_from(init: str, matrix: nn.Module) -> None:
    """Fill a free or a Toeplitz matrix with the named start instead of chance.

    zero: nothing is mixed. identity: every position gets itself. local: 2^-|i - j|, what is near
    counts most. average: 1/16 everywhere, about the mean of a typical sentence; in a decoder's free
    matrix the mean of what it has seen.

    Raises:
        ValueError: For other matrices.
    """
    if type(matrix) not in (FreeMatrix, UnbiasedMatrix, ToeplitzMatrix):
        raise ValueError(f"--matrix-init is for free and Toeplitz matrices, not {type(matrix)}")
    causal = matrix.causal if isinstance(matrix, FreeMatrix) else matrix.nearest == 0
    if isinstance(matrix, FreeMatrix):
        i = torch.arange(matrix.weight.size(-1), dtype=torch.float)
        distance = i.unsqueeze(1) - i
        mean = (1 / (1 + i)).unsqueeze(1) if causal else torch.tensor(1 / 16)
    else:
        distance = torch.arange(matrix.nearest, matrix.farthest + 1, dtype=torch.float)
        mean = torch.tensor(1 / 16)
    matrix.weight.copy_(
        {
            "zero": torch.zeros_like(distance),
            "identity": (distance == 0).float(),
            "local": 2.0 ** -distance.abs(),
            "average": mean.expand_as(distance),
        }[init]
    )


class VariantMixer(nn.Module):
    """y = W (g_o(G x) * A (g_i(G x) * V x)), with each of W, G and V there or not.

    Args:
        dim: Number of channels C.
        mix: The mixer that holds A.
        value: Whether V is there.
        gate: A name in GATES, or None for no G.
        gate_on: "input" or "output" of A.
        project_out: Whether W is there.
    """

    def __init__(
        self,
        dim: int,
        mix: LinearMixer,
        value: bool,
        gate: str | None,
        gate_on: str,
        project_out: bool,
    ):
        super().__init__()
        self.value = nn.Linear(dim, dim) if value else nn.Identity()
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
        if self.gate and self.gate_on == "input":
            y = self.gate(x) * y
        y = self.mix(y, padding_mask, state)
        if self.gate and self.gate_on == "output":
            y = self.gate(x) * y
        return self.out(y)
