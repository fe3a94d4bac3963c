"""Matrices that were tried and are not part of the package, and what a matrix starts from."""

import torch
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.mixers import FreeMatrix, ToeplitzMatrix


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


class DroppedMatrix(nn.Module):
    """Another matrix whose entries are dropped in training, as attention drops its weights.

    One draw serves all sentences of a batch and all channels of a head.

    Args:
        matrix: The other one.
        p: Probability to drop an entry. What stays is scaled by 1 / (1 - p).
    """

    def __init__(self, matrix: nn.Module, p: float):
        super().__init__()
        self.matrix = matrix
        self.drop = nn.Dropout(p)

    def forward(self, start: int, stop: int) -> tuple[Tensor, Tensor | None]:
        """Rows start to stop of A[:stop, :stop], as the other matrix has them."""
        rows, bias = self.matrix(start, stop)
        return self.drop(rows), bias


class PoolingMatrix(ToeplitzMatrix):
    """The mean of three positions less the position itself (PoolFormer, arXiv 2111.11418).

    A fixed band: one position on each side, or, where it is causal, the two before. Beyond the ends
    stand zeros, which count in the mean. PoolFormer leaves them out, which would be no Toeplitz
    matrix. It has no weights.
    """

    window = 3

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__(positions, heads, causal, init_std)
        distance, first = _list_distances(self), 0 if causal else -1
        near = (distance >= first) & (distance < first + self.window)
        _fix(self, near.float() / self.window - (distance == 0).float())


class ShiftMatrix(ToeplitzMatrix):
    """Each head passes one position on (the shift of S2-MLP, arXiv 2106.07477, for a row of words).

    Head 0 passes on the position itself. The others pass on the one before, the one after, the
    second before and so on; where it is causal, the one before, the second before and so on.
    Beyond the ends stand zeros, where S2-MLP repeats the border. It has no weights.
    """

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__(positions, heads, causal, init_std)
        shift = torch.arange(heads).unsqueeze(1)
        if not causal:
            shift = (shift + 1) // 2 * (-1) ** (shift + 1)
        _fix(self, (_list_distances(self) == shift).float())


class AdaptiveMatrix(ToeplitzMatrix):
    """w = softmax over the distances: AdaFC (Asakura et al., JSAI 2022), a head for its channels.

    AdaFC rolls w around the ends of an image. A row of words has no length of its own to roll
    around, so what reaches beyond an end is lost. The rows are not normalised again: the first row
    of a causal matrix sums to w[0], not to 1. So it stays a Toeplitz matrix, and what a word gets
    from another depends on their distance alone.
    """

    def __init__(self, positions: int, heads: int, causal: bool, init_std: float):
        super().__init__(positions, heads, causal, init_std)
        self.scores = nn.Parameter(self.weight.detach())
        del self.weight

    @property
    def weight(self) -> Tensor:
        """w, as `ToeplitzMatrix` has it. Shape: (H, distances)."""
        return self.scores.softmax(-1)


class ExponentialToeplitzMatrix(AdaptiveMatrix):
    """exp of AdaFC's scores, for rows that a mixer normalises over the words that there are."""

    @property
    def weight(self) -> Tensor:
        """exp(scores), as `ToeplitzMatrix` has it. Shape: (H, distances)."""
        return self.scores.exp()


def _list_distances(matrix: ToeplitzMatrix) -> Tensor:
    """The distance i - j that each weight of a head is for."""
    return torch.arange(matrix.nearest, matrix.farthest + 1)


def _fix(matrix: ToeplitzMatrix, constants: Tensor) -> None:
    """Put constants in the place of the weights. (H, distances) or (distances,)."""
    constants = constants.expand_as(matrix.weight).clone()
    del matrix.weight
    matrix.register_buffer("weight", constants, persistent=False)


MATRICES = {
    "free": FreeMatrix,
    "toeplitz": ToeplitzMatrix,
    "both": BothMatrices,
    "low-rank": LowRankMatrix,
    "no-bias": UnbiasedMatrix,
    "softmax": ExponentialMatrix,
    "pooling": PoolingMatrix,
    "shift": ShiftMatrix,
    "adafc": AdaptiveMatrix,
    "adafc-normalised": ExponentialToeplitzMatrix,
}
# A mixer divides their rows by the sums.
NORMALISED = ("softmax", "adafc-normalised")


@torch.no_grad()
def start_from(init: str, matrix: nn.Module) -> None:
    """Fill a free or a Toeplitz matrix with the named start instead of chance.

    zero: nothing is mixed. identity: every position gets itself. local: 2^-|i - j|, what is near
    counts most. average: 1/16 everywhere, about the mean of a typical sentence; in a decoder's free
    matrix the mean of what it has seen.

    Raises:
        UserError: For other matrices.
    """
    if type(matrix) not in (FreeMatrix, UnbiasedMatrix, ToeplitzMatrix):
        (name,) = (name for name, kind in MATRICES.items() if kind is type(matrix))
        raise UserError(f"--matrix-init is for free, no-bias and toeplitz, not --matrix {name}")
    causal = matrix.causal if isinstance(matrix, FreeMatrix) else matrix.nearest == 0
    if isinstance(matrix, FreeMatrix):
        i = torch.arange(matrix.weight.size(-1), dtype=torch.float)
        distance = i.unsqueeze(1) - i
        mean = (1 / (1 + i)).unsqueeze(1) if causal else torch.tensor(1 / 16)
    else:
        distance = _list_distances(matrix).float()
        mean = torch.tensor(1 / 16)
    matrix.weight.copy_(
        {
            "zero": torch.zeros_like(distance),
            "identity": (distance == 0).float(),
            "local": 2.0 ** -distance.abs(),
            "average": mean.expand_as(distance),
        }[init]
    )
