"""The encoder of a folded translator in compiled code of our own, where that was built.

It computes what the graph of `build_encoder` computes, without padding. In 8 bits each position is
quantized with a scale of its own. So a sentence gets the same keys and values in any batch.

Shapes as in `nn/__init__.py`. Besides, D is layers of the decoder, and E heads of its attention.
"""

import ctypes
from collections.abc import Callable

import numpy as np

from resmlp_mt.engines.compiled_code.code import (
    BLOCK,
    Float,
    Integer,
    MlpStruct,
    NativeWeights,
    Pointer,
    ProductStruct,
    check_structures,
    find_library,
    read_number,
)
from resmlp_mt.engines.compiled_code.memory import NativeMemory


class _Layer(ctypes.Structure):
    _fields_ = [("norm", Float), ("gated", ctypes.c_int32)]
    _fields_ += [(name, ProductStruct) for name in ("mix", "project")]
    _fields_ += [(n, Pointer) for n in ("matrix", "scale", "shift", "bias", "bias_scale")]
    _fields_ += [("mlp", MlpStruct)]


class _Encoder(ctypes.Structure):
    _fields_ = [(name, Integer) for name in ("layers", "channels", "heads", "positions")]
    _fields_ += [(name, Integer) for name in ("size", "start", "next")]
    _fields_ += [(name, Integer) for name in ("attention_heads", "sides")]
    _fields_ += [("layer", ctypes.POINTER(_Layer)), ("norm", Float), ("memory", ProductStruct)]


class _Encoding(ctypes.Structure):
    _fields_ = [(name, Integer) for name in ("sentences", "longest")]
    _fields_ += [("starts", Pointer), ("x", Pointer), ("half", Integer)]
    _fields_ += [(name, Pointer) for name in ("keys", "values", "room")]


class NativeEncoder:
    """Tokens to the keys and values of every decoder layer.

    Args:
        described: What `describe_encoder` wrote.
        arrays: The weights that it names.
        weights: "encoder.matrix", as for `MixingMatrices`; where the model has them "encoder.bias",
            (D, H, N), and "encoder.positions", (N, C).
        symbols, positions: V and N of the encoder.
        sides: (2 D, E, C / E) of the decoder's attention.
        compute: `encode_avx512` of the library, or that of another kind.

    Raises:
        ValueError: If something does not fit.
        UserError: If the compiled code is of an older build.
    """

    def __init__(
        self,
        described: dict,
        arrays: dict[str, np.ndarray],
        weights: dict[str, np.ndarray],
        symbols: int,
        positions: int,
        sides: tuple[int, int, int],
        compute: Callable,
    ):
        check_structures("encode", _Layer, _Encoder, _Encoding)
        self._weights, self._compute, self._sides = NativeWeights(arrays), compute, sides
        self._table, self._scales, _ = self._weights.find(described["embedding"])
        self._factor = read_number(described["embedding_scale"])
        self._positions = weights.get("encoder.positions")
        matrices, biases = weights["encoder.matrix"], weights.get("encoder.bias")
        layers, heads = matrices.shape[:2]
        kind = np.float32 if self._scales is None else np.int8
        if self._table.ndim != 2 or len(self._table) != symbols or self._table.dtype != kind:
            raise ValueError(f"an embedding of {self._table.shape} for {symbols} symbols")
        channels, hidden = self._table.shape[1], described["hidden"]
        if self._scales is not None and self._scales.shape != (symbols,):
            raise ValueError(f"scales of {self._scales.shape} for {symbols} symbols")
        if self._positions is not None and self._positions.shape != (positions, channels):
            raise ValueError(f"encoder.positions {self._positions.shape}")
        if min(layers, heads) < 1 or channels % heads or len(described["layers"]) != layers:
            raise ValueError(f"{channels} channels of {heads} heads in {layers} layers")
        toeplitz = matrices.ndim == 3
        # A row of a Toeplitz matrix is read backwards from its weights, and so are the rows.
        matrices = np.ascontiguousarray(matrices[:, :, ::-1] if toeplitz else matrices)
        layout = (positions - 1, -1) if toeplitz else (0, positions)
        self._kept = matrices, biases
        self._layers = (_Layer * layers)()
        take, pack = self._weights.take, self._weights.pack
        for number, (layer, parts) in enumerate(
            zip(self._layers, described["layers"], strict=True)
        ):
            layer.norm, norm = map(read_number, parts["norms"])
            layer.gated = parts["mix"] is not None
            if layer.gated:
                layer.mix = pack(parts["mix"], (channels, 2 * channels))
            if layer.gated and parts.get("project"):
                layer.project = pack(parts["project"], (channels, channels))
            layer.mlp = self._weights.pack_mlp(norm, parts, channels, hidden)
            layer.matrix = matrices[number].ctypes.data
            layer.bias = None if biases is None else biases[number].ctypes.data
            for name in ("scale", "shift", "bias_scale"):
                setattr(layer, name, take(parts[name], (channels,)))
        self._stride = channels + -channels % BLOCK
        self._struct = _Encoder(
            layers,
            channels,
            heads,
            positions,
            matrices[0, 0].size,
            *layout,
            sides[1],
            sides[0],
            self._layers,
            read_number(described["norm"]),
            pack(described["memory"], (channels, int(np.prod(sides)))),
        )

    def __call__(self, tokens: np.ndarray, real: np.ndarray) -> NativeMemory:
        """The keys and values, in 16 bits where the weights have 8.

        Args:
            tokens: Padded on the right. (B, S).
            real: Where they are no padding. (B, S).

        Raises:
            ValueError: If there are more positions than N.
        """
        if tokens.shape[1] > self._struct.positions:
            raise ValueError(f"{tokens.shape[1]} tokens for {self._struct.positions} positions")
        half = self._scales is not None
        memory = NativeMemory.make_room(self._sides, real, np.float16 if half else np.float32)
        starts = np.concatenate([[0], np.cumsum(memory.lengths)])
        x = self._embed(tokens[real], np.nonzero(real)[1])
        places = [array.ctypes.data for array in (starts, x, memory.keys, memory.values)]
        encoding = _Encoding(*tokens.shape, *places[:2], half, *places[2:])
        call = ctypes.byref(self._struct), ctypes.byref(encoding)
        room = np.empty(find_library().count_encoder_room(*call), np.uint8)
        encoding.room = room.ctypes.data
        self._compute(*call)
        return memory

    def _embed(self, tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Rows of the table, padded to whole blocks. (R,), (R,) -> (R, C)."""
        rows = self._table[tokens] * np.float32(self._factor)
        if self._scales is not None:
            rows *= self._scales[tokens][:, None]
        if self._positions is not None:
            rows += self._positions[positions]
        padded = np.zeros((len(rows), self._stride), np.float32)  # faster than np.pad
        padded[:, : rows.shape[1]] = rows
        return padded
