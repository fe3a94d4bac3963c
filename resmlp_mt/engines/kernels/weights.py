"""Weights of a folded model in the order in which the compiled code reads them."""

import ctypes

import numpy as np

from resmlp_mt.engines.kernels.structures import STRUCTURES

GROUP, BLOCK, INPUTS = 16, 64, 8  # as in native/decoder.h


Product, Mlp = STRUCTURES["Product"], STRUCTURES["Mlp"]


class PackedProduct:
    """A product in the order in which the compiled code reads it.

    Args:
        weight: int8 or float32. (in, out).
        scales: Of the outputs, where the weight is int8. (out,).
        bias: (out,); None for zeros.

    Raises:
        ValueError: If they do not fit.
    """

    def __init__(self, weight: np.ndarray, scales: np.ndarray | None, bias: np.ndarray | None):
        whole = weight.dtype == np.float32
        if weight.ndim != 2 or not (whole or weight.dtype == np.int8) or whole != (scales is None):
            raise ValueError(f"a product of {weight.shape} in {weight.dtype}")
        self.inputs, self.outputs = weight.shape
        # Values of -128 to 127 become 0 to 255.
        rows = weight if whole else weight.view(np.uint8) ^ np.uint8(128)
        self.weight = _pack(rows, 0, 1, 1) if whole else _pack(rows, 128, INPUTS, 4)
        self.scales = None if whole else self._pad(scales)
        self.bias = self._pad(np.zeros(self.outputs, np.float32) if bias is None else bias)
        self.struct = Product(self.outputs, self.inputs, bias=self.bias.ctypes.data)
        if whole:
            self.struct.floats = self.weight.ctypes.data
        else:
            self.struct.bytes, self.struct.scale = self.weight.ctypes.data, self.scales.ctypes.data

    def _pad(self, values: np.ndarray) -> np.ndarray:
        if values.shape != (self.outputs,) or values.dtype != np.float32:
            raise ValueError(f"{values.shape} in {values.dtype} for {self.outputs} outputs")
        return np.pad(values, (0, -len(values) % BLOCK))


def _pack(weight: np.ndarray, fill: int, to: int, together: int) -> np.ndarray:
    """(in, out) -> (groups, in / together, 16, together), with inputs padded to a multiple."""
    inputs, outputs = weight.shape
    room = (0, -inputs % to), (0, -outputs % BLOCK)
    weight = np.pad(weight, room, constant_values=fill)
    weight = weight.reshape(-1, together, weight.shape[1] // GROUP, GROUP)
    return np.ascontiguousarray(weight.transpose(2, 0, 3, 1))


def read_number(value) -> float:
    """A number of a description, -1 for none.

    Raises:
        ValueError: If it is no finite float.
    """
    if value is None:
        return -1.0
    if type(value) is not float or not np.isfinite(value):
        raise ValueError(f"{value!r:.40} is no number")
    return value


class Weights:
    """The weights of a folded model for the compiled code, kept while it points to them.

    Args:
        arrays: By name.
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays
        self._kept: list = []

    def take(self, name: str, shape: tuple[int, ...], to: int = 1) -> int:
        """The address of a float32 array, its last axis padded with zeros to a multiple of `to`.

        Raises:
            ValueError: If it has another shape or type.
        """
        array = self.arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise ValueError(f"{name} {array.shape} in {array.dtype}, not {shape}")
        room = [(0, 0)] * (array.ndim - 1) + [(0, -shape[-1] % to)]
        return self.keep(np.pad(array, room) if room[-1][1] else np.ascontiguousarray(array))

    def take_some(self, name: str, shape: tuple[int, ...]) -> int | None:
        """`take`, or None where there is no such array."""
        return self.take(name, shape) if name in self.arrays else None

    def keep(self, array: np.ndarray) -> int:
        """Keep an array; returns its address."""
        self._kept.append(array)
        return array.ctypes.data

    def find_matrices(self, name: str, positions: int) -> np.ndarray:
        """A of every layer, (D, H, N, N); or the weights of Toeplitz matrices, (D, H, 2 N - 1).

        Toeplitz weights go from the distance 1 - N to N - 1.

        Raises:
            ValueError: If they are not for N positions, or not of finite numbers.
        """
        found = self.arrays[name]
        if found.shape[2:] not in ((positions, positions), (2 * positions - 1,)) or not found.size:
            raise ValueError(f"{name} {found.shape} for {positions} positions")
        if found.dtype != np.float32 or not np.isfinite(found).all():
            raise ValueError(f"{name} is not of finite numbers in float32")
        return found

    def find_table(self, names: dict, symbols: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows of a table, (V, C) in float32 or int8, and for int8 the scale of each, (V,).

        Raises:
            ValueError: If they do not fit.
        """
        rows, scales, _ = self.find(names)
        kind, size = np.float32 if scales is None else np.int8, (symbols,)
        if rows.ndim != 2 or len(rows) != symbols or rows.dtype != kind:
            raise ValueError(f"{names['weight']} {rows.shape} in {rows.dtype}, of {symbols} rows")
        if scales is not None and (scales.shape != size or scales.dtype != np.float32):
            raise ValueError(f"{names['scales']} {scales.shape} for {symbols} rows")
        return rows, scales

    def find(self, names: dict) -> list[np.ndarray | None]:
        """Weight, scales and bias of a product, of which the last two may be missing."""
        found = [names[part] and self.arrays[names[part]] for part in ("scales", "bias")]
        return [self.arrays[names["weight"]], *found]

    def pack(self, names: dict, shape: tuple[int, int]) -> Product:
        """A product, whose weight is (in, out).

        Raises:
            ValueError: If it has another shape.
        """
        weight, scales, bias = self.find(names)
        if weight.shape != shape:
            raise ValueError(f"{names['weight']} {weight.shape}, not {shape}")
        self._kept.append(PackedProduct(weight, scales, bias))
        return self._kept[-1].struct

    def pack_mlp(self, norm: float, parts: dict, channels: int, hidden: int) -> Mlp:
        """The channel MLP of a layer, whose products are the parts "first" and "second".

        Raises:
            ValueError: If these have other shapes.
        """
        first = self.pack(parts["first"], (channels, hidden))
        return Mlp(norm, first, self.pack(parts["second"], (hidden, channels)))

    def pack_gate(self, layer: ctypes.Structure, parts: dict, channels: int) -> None:
        """Pack the products of a gated mixer: "mix", and perhaps "project"."""
        layer.gated = parts["mix"] is not None
        if layer.gated:
            layer.mix = self.pack(parts["mix"], (channels, 2 * channels))
        if layer.gated and parts.get("project"):
            layer.project = self.pack(parts["project"], (channels, channels))
