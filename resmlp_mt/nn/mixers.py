"""Token mixers, which stand in the place of self-attention.

The contract. A mixer maps (B, L, C) to (B, L, C). It takes a padding mask, (B, L), and zeroes
padded positions right before A: the norm's bias and A's bias make pads non-zero after the first
layer, and pads must neither influence others nor matter.

A causal mixer promises that y[:, t] depends on x[:, :t+1] alone, in values and in gradients. It
also takes a state: a dict, empty at first, in which it keeps whatever tensors it likes, as long as
their first dimension is the batch. With a state it continues from the positions seen so far, and
returns the same y[:, t] as the full pass. The search reorders a batch by `index_select(0, order)`
on each tensor of the state. A mixer puts new tensors into the state and never changes one in place:
others may hold it.

Two more things a mixer may have. `resize(weights, old, new)` takes its weights for one grid of an
image to another grid, or refuses with a `UserError`; without it, its weights fit any grid.
`fold(norm, scale)` gives what `fold.py` makes of it for inference; without it, a classifier is
exported as it is, and a translator is not.

The mixers here are one of three things around a matrix: `LinearMixer` applies it, `GatedMixer`
applies it to a projection and multiplies the result with a gate, `ProjectedMixer` projects that
once more. A matrix knows its weights, nothing else. It is called with a start and a stop, and
returns rows start to stop of A[:stop, :stop], and their bias or None. A is the same for all
lengths: its rows must not depend on the stop, since exports cut them out of the longest A.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.fold import FoldedMixer, fold_product, split_norm
from resmlp_mt.nn.grids import READ, WRITTEN, Grid, resize


class FreeMatrix(nn.Module):
    """A in R^(H x N x N): a weight for every pair of positions, a bias for every position.

    The paper's A has one head. Shorter inputs take the submatrix A[:L, :L], longer ones are
    refused. The decoder's A is lower-triangular; what lies above the diagonal gets no gradient.

    Args:
        positions: N, the longest input.
        heads: H; head h mixes its own C/H channels.
        causal: Keep the lower triangle only.
        init_std: Standard deviation that the weights start with (truncated normal).
    """

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__()
        self.causal = causal
        self.weight = nn.Parameter(torch.empty(heads, positions, positions))
        self.bias = nn.Parameter(torch.zeros(heads, positions))
        nn.init.trunc_normal_(self.weight, std=init_std)

    def forward(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Rows start to stop of A[:stop, :stop], shape (H, stop - start, stop), and their bias.

        Raises:
            UserError: If `stop` is beyond N.
        """
        positions = self.weight.size(-1)
        if stop > positions:
            raise UserError(
                f"{stop} tokens do not fit a mixing matrix for {positions} positions; shorten the "
                "text, or train with larger --max-source-positions and --max-target-positions"
            )
        rows = self.weight[:, start:stop, :stop]
        if self.causal:
            rows = rows.tril(start)
        return rows, self.bias[:, start:stop]

    def resize(self, weights: dict[str, Tensor], old: Grid, new: Grid) -> dict[str, Tensor]:
        """The weights for the positions of one grid, interpolated for another (see `grids.py`)."""
        roles = {"weight": (WRITTEN, READ), "bias": (WRITTEN,)}
        return {name: resize(weight, roles[name], old, new) for name, weight in weights.items()}


class ToeplitzMatrix(nn.Module):
    """A[h, i, j] = w[h, i - j]: a weight for every distance, N times fewer than a free matrix.

    It knows no longest input: positions N or more apart do not see each other. So it also loads
    the weights of another N, with zeros for distances that those do not know. It has no bias,
    which would tie it to absolute positions. Arguments as for `FreeMatrix`.
    """

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__()
        self.nearest, self.farthest = (0 if causal else 1 - positions), positions - 1
        self.weight = nn.Parameter(torch.empty(heads, self.farthest - self.nearest + 1))
        nn.init.trunc_normal_(self.weight, std=init_std)

    def forward(self, start: int, stop: int) -> tuple[Tensor, None]:
        """Rows start to stop of A[:stop, :stop]. Shape: (H, stop - start, stop)."""
        # The rows hold the distances start - (stop - 1) to stop - 1. Negative padding crops.
        first, last = start - stop + 1, stop - 1
        band = F.pad(self.weight, (self.nearest - first, last - self.farthest))
        return band.unfold(-1, stop, 1).flip(-1), None

    def _load_from_state_dict(self, state_dict, prefix, *args) -> None:
        weight = state_dict.get(f"{prefix}weight")
        if weight is not None and weight.dim() == 2 and len(weight) == len(self.weight):
            farther = (self.weight.size(1) - weight.size(1)) // (1 if self.nearest == 0 else 2)
            nearer = 0 if self.nearest == 0 else farther
            state_dict[f"{prefix}weight"] = F.pad(weight, (nearer, farther))
        super()._load_from_state_dict(state_dict, prefix, *args)


class LinearMixer(nn.Module):
    """y = A x + b over positions, the same for all channels of a head (equation 2).

    Args:
        matrix: A `FreeMatrix` or a `ToeplitzMatrix`.
    """

    def __init__(self, matrix: nn.Module):
        super().__init__()
        self.matrix = matrix

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix each channel across positions.

        Args:
            x: Normalised features; with a state, those of the new positions only. (B, L, C).
            padding_mask: True where padded. (B, L).
            state: The state after earlier steps. The dict is updated, its tensors are replaced.

        Returns:
            Mixed features of the positions in x. (B, L, C).
        """
        if padding_mask is not None:
            x = x.masked_fill(padding_mask.unsqueeze(-1), 0)
        start = 0
        if state is not None:
            if "inputs" in state:
                start = state["inputs"].size(1)
                x = torch.cat([state["inputs"], x], dim=1)
            state["inputs"] = x
        rows, bias = self.matrix(start, x.size(1))
        y = torch.einsum("hij,bjhc->bihc", rows, x.unflatten(-1, (rows.size(0), -1)))
        if bias is not None:
            y = y + bias.t().unsqueeze(-1)
        return y.flatten(-2)

    def fold(self, norm: nn.Module, scale: Tensor) -> FoldedMixer:
        """scale * mixer(norm(x)); see `fold.py`."""
        _, alpha, beta = split_norm(norm)
        return FoldedMixer(self.matrix, None, None, scale * alpha, scale * beta, scale)


class GatedMixer(nn.Module):
    """y = gate(x) * A value(x): the gate makes mixing depend on content, for two more products.

    Not in the paper. It is like the gate of gMLP (arXiv 2105.08050), but linear, and with a value
    projection of full width.

    Args:
        dim: Number of channels C.
        matrix: A `FreeMatrix` or a `ToeplitzMatrix`.
    """

    def __init__(self, dim: int, matrix: nn.Module):
        super().__init__()
        self.value = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)
        self.mix = LinearMixer(matrix)

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix and gate; arguments and shapes as for `LinearMixer`."""
        return self.gate(x) * self.mix(self.value(x), padding_mask, state)

    def fold(self, norm: nn.Module, scale: Tensor) -> FoldedMixer:
        """scale * mixer(norm(x)); see `fold.py`."""
        gate, value = fold_product(self.gate, norm, scale), fold_product(self.value, norm)
        ones, zeros = torch.ones_like(scale), torch.zeros_like(scale)
        return FoldedMixer(self.mix.matrix, gate, value, ones, zeros, ones)


class ProjectedMixer(GatedMixer):
    """y = out(sigmoid(gate(x)) * A value(x)): a gate between 0 and 1, and a projection after it.

    Not in the paper. As in attention, `out` lets channels exchange what their heads have mixed.
    Arguments as for `GatedMixer`.
    """

    def __init__(self, dim: int, matrix: nn.Module):
        super().__init__(dim, matrix)
        self.out = nn.Linear(dim, dim)

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix, gate and project; arguments and shapes as for `LinearMixer`."""
        return self.out(self.gate(x).sigmoid() * self.mix(self.value(x), padding_mask, state))

    def fold(self, norm: nn.Module, scale: Tensor) -> FoldedMixer:
        """scale * mixer(norm(x)); see `fold.py`."""
        folded = super().fold(norm, torch.ones_like(scale))
        return replace(folded, out=fold_product(self.out, scale=scale))
