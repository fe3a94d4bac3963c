"""The weights of a folded model by name, in full precision or in 8 bits."""

import hashlib

import numpy as np
from torch import Tensor

from resmlp_mt.nn.fold import Product


class SharedWeights:
    """Weights that lie beside what describes them, each once, whoever names it.

    Args:
        bits: Of a weight in int8, at most 8.

    Attributes:
        arrays: Of each name its array.
        most: The largest number in int8.
    """

    def __init__(self, bits: int = 8):
        self.most = 2 ** (bits - 1) - 1
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[bytes, str] = {}

    def add(self, array: np.ndarray) -> str:
        """The name of an array; of an equal one that was added before, if there is one.

        What is kept is a copy: the array may be a parameter's.
        """
        described = f"{array.dtype} {array.shape} ".encode()
        digest = hashlib.sha256(described + array.tobytes()).digest()
        name = self._names.setdefault(digest, f"weight_{len(self._names)}")
        if name not in self.arrays:
            self.arrays[name] = array.copy()
        return name


class NamedWeights:
    """Gives names to the weights of products and embeddings.

    Args:
        int8: Keep their weights as int8.
        shared: Where they go.
    """

    def __init__(self, int8: bool, shared: SharedWeights):
        self.int8, self.shared = int8, shared

    def weight(self, value: np.ndarray) -> str:
        """Add a weight of a product or an embedding."""
        return self.shared.add(np.ascontiguousarray(value))

    def name_product(self, product: Product) -> dict[str, str | None]:
        """Weight, (in, out), scales where it is int8, and bias of a product: their names."""
        weight, bias = product.weight.detach().numpy(), product.bias.detach().numpy()
        rounded, scales = self._round(weight)
        return {
            "weight": self.weight(rounded.T),
            "scales": self.weight(scales) if self.int8 else None,
            "bias": self.weight(bias),
        }

    def name_table(self, table: Tensor) -> dict[str, str | None]:
        """`name_product` of a table, (V, C), whose rows stay in their order."""
        table = table.detach().numpy()
        rounded, scales = self._round(table)
        return {
            "weight": self.weight(rounded),
            "scales": self.weight(scales) if self.int8 else None,
            "bias": None,
        }

    def _round(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows in int8, (out, in), and the scale of each, (out,); else the rows as they are."""
        if not self.int8:
            return weight, None
        return round_rows(weight, self.shared.most)


def round_rows(weight: np.ndarray, most: int = 127) -> tuple[np.ndarray, np.ndarray]:
    """Rows in int8, up to `most`, and the scale of each."""
    scales = np.maximum(np.abs(weight).max(1) / most, 1e-12).astype(np.float32)
    return np.round(weight / scales[:, None]).astype(np.int8), scales
