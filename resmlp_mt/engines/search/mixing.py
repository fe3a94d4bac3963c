"""A of an exported model, cut for what is translated."""

import numpy as np


class MixingMatrices:
    """The matrices of the encoder's mixers, by length.

    Args:
        matrices: A of every layer, (D, H, N, N); or, of Toeplitz matrices, their weights from the
            distance 1 - N to N - 1, (D, H, 2 N - 1).
    """

    def __init__(self, matrices: np.ndarray):
        if matrices.ndim == 3:
            positions = (matrices.shape[2] + 1) // 2
            windows = np.lib.stride_tricks.sliding_window_view(matrices, positions, axis=2)
            matrices = windows[..., ::-1]  # a view: row i, column j is w[N - 1 + i - j]
        self.matrices = matrices

    def squares(self, length: int) -> list[np.ndarray]:
        """A[:length, :length] of every layer. D of (H, length, length)."""
        return [np.ascontiguousarray(layer[:, :length, :length]) for layer in self.matrices]


class MixingRows:
    """The rows of the decoder's matrices, one at a time, for every channel.

    Args:
        matrices: As for `MixingMatrices`.
        scale: What the rows are multiplied with. (D C,).
        tables: What a step adds at its position, by the name of its input: "offset", (N, D C), and
            "position", (N, C), where the model has it.
    """

    def __init__(
        self, matrices: np.ndarray, scale: np.ndarray, tables: dict[str, np.ndarray] | None = None
    ):
        self.matrices, self.scale, self.tables = matrices, scale, tables or {}
        self.layers, self.channels = len(matrices), len(scale) // len(matrices)
        # A row of a Toeplitz matrix is the end of its last one.
        toeplitz, unseen = matrices.ndim == 3, matrices.shape[2] // 2
        self.positions = matrices.shape[2] - unseen if toeplitz else matrices.shape[2]
        self.last = self._spread(matrices[:, :, unseen:][:, :, ::-1]) if toeplitz else None

    @classmethod
    def from_weights(cls, weights: dict[str, np.ndarray]) -> "MixingRows":
        """Those of "decoder.matrix", "decoder.scale", "decoder.offset" and "decoder.positions"."""
        tables = {"offset": "decoder.offset", "position": "decoder.positions"}
        tables = {name: weights[key] for name, key in tables.items() if key in weights}
        return cls(weights["decoder.matrix"], weights["decoder.scale"], tables)

    def __getitem__(self, position: int) -> np.ndarray:
        """The row of a position up to itself. (position + 1, D C).

        Raises:
            ValueError: If the matrices have no such row.
        """
        if not 0 <= position < self.positions:
            raise ValueError(f"position {position} of {self.positions}")
        if self.last is not None:
            return self.last[len(self.last) - 1 - position :]
        return self._spread(self.matrices[:, :, position, : position + 1])

    def added(self, position: int) -> dict[str, np.ndarray]:
        """What the tables have for a position. Each (1, D C) or (1, C)."""
        return {name: table[position : position + 1] for name, table in self.tables.items()}

    def feed(self, position: int) -> dict[str, np.ndarray]:
        """Inputs of the graph of a step, by name, that depend on its position alone."""
        row = self[position]
        feed = {"row": row[:-1, None, None]} | self.added(position)
        now = row[-1].reshape(self.layers, 1, self.channels)
        return feed | {f"now_{layer}": own for layer, own in enumerate(now)}

    def make_room(self, length: int) -> np.ndarray:
        """Room for a row of this length. (length, D C)."""
        return np.empty((length, len(self.scale)), np.float32)

    def _spread(self, row: np.ndarray) -> np.ndarray:
        row = row.transpose(2, 0, 1).reshape(row.shape[2], -1)
        return np.repeat(row, len(self.scale) // row.shape[1], axis=1) * self.scale
