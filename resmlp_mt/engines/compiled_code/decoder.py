"""The decoder as the compiled code reads it, and the structures that its steps are handed.

They are those of native/decoder.h.
"""

import ctypes
from collections.abc import Callable

import numpy as np

from resmlp_mt.engines.compiled_code.code import (
    Float,
    Integer,
    MlpStruct,
    NativeWeights,
    PackedProduct,
    Pointer,
    ProductStruct,
    check_structures,
    read_number,
)


class _Layer(ctypes.Structure):
    _fields_ = [("norm_1", Float), ("norm_c", Float), ("gated", ctypes.c_int32)]
    _fields_ += [(name, ProductStruct) for name in ("mix", "project", "query", "out")]
    _fields_ += [("mlp", MlpStruct)]


class _Preview(ctypes.Structure):
    _fields_ = [("narrow", ProductStruct), ("wide", ProductStruct)]
    _fields_ += [("bytes", Pointer), ("floats", Pointer)]


class _Decoder(ctypes.Structure):
    _fields_ = [(name, Integer) for name in ("layers", "channels", "heads")]
    _fields_ += [("layer", ctypes.POINTER(_Layer)), ("embedding", ProductStruct)]
    _fields_ += [(name, Float) for name in ("embedding_scale", "norm")]
    _fields_ += [(name, Pointer) for name in ("alpha", "beta", "banned")]
    _fields_ += [(name, Integer) for name in ("bans", "end")]
    _fields_ += [("preview", ctypes.POINTER(_Preview))]


class Step(ctypes.Structure):
    """What a step reads and writes."""

    _fields_ = [(name, Integer) for name in ("sentences", "beam", "source", "past")]
    _fields_ += [("tokens", Pointer), ("scores", Pointer), ("half_history", Integer)]
    _fields_ += [(name, Pointer) for name in ("history", "ancestors", "row", "offset", "position")]
    _fields_ += [
        ("all", Integer),
        ("at_work", Pointer),
        ("lengths", Pointer),
        ("half_memory", Integer),
    ]
    _fields_ += [(name, Pointer) for name in ("keys", "memory")]
    _fields_ += [("output", ctypes.POINTER(ProductStruct))]
    _fields_ += [(name, Pointer) for name in ("candidates", "barred")]
    _fields_ += [(name, Integer) for name in ("best", "width")]
    _fields_ += [
        (name, Pointer)
        for name in ("best_scores", "best_tokens", "best_places", "ends", "values", "query")
    ]
    _fields_ += [(name, Pointer) for name in ("log_p", "forced", "room")]


class Search(ctypes.Structure):
    """What the search between steps reads and writes."""

    _fields_ = [(name, Integer) for name in ("beam", "until", "enough", "used", "capacity")]
    _fields_ += [
        (name, Pointer)
        for name in ("places", "told", "reached", "tokens", "scores", "parents", "moved")
    ]
    _fields_ += [("unfinished", Pointer), ("longest", Integer)]
    _fields_ += [(name, Pointer) for name in ("found", "lengths", "found_tokens", "found_reached")]
    _fields_ += [(name, Integer) for name in ("positions", "heads")]
    _fields_ += [
        (name, Pointer) for name in ("last", "matrix", "scale", "row", "offsets", "embeddings")
    ]


class NativeDecoder:
    """The decoder of a folded translator, for the compiled code.

    Attributes:
        dtype: Of the numbers that a step leaves for later ones: float16 where the output layer
            has 8 bits.

    Args:
        described: What `describe_decoder` wrote.
        arrays: The weights that it names.
        symbols, channels, layers: V, C and D that the rest of the model has.
        banned: Symbols that no translation has.
        end: The end of a sentence.
        compute: `step_avx512` of the library, or that of another kind.
        search: `search_avx512`, of the same.
        preview: What `learn_preview` found: the search then looks at all symbols through it, and at
            the best of them in full.

    Raises:
        ValueError: If something does not fit.
        UserError: If the compiled code is of an older build.
    """

    def __init__(
        self,
        described: dict,
        arrays: dict[str, np.ndarray],
        symbols: int,
        channels: int,
        layers: int,
        banned: list[int],
        end: int,
        compute: Callable,
        search: Callable,
        preview: dict[str, np.ndarray] | None = None,
    ):
        check_structures("step", _Layer, _Preview, _Decoder, Step, Search)
        self._weights, self.compute, self.search = NativeWeights(arrays), compute, search
        self.channels, self.layers = channels, layers
        self._rows, self.output = self._read_table(described["output"], symbols)
        self.dtype = np.float16 if self._rows[0].dtype == np.int8 else np.float32
        self._embedding = self.output
        if described["embedding"] != described["output"]:
            _, self._embedding = self._read_table(described["embedding"], symbols)
        self._layers = (_Layer * layers)()
        hidden, pack = described["hidden"], self._weights.pack
        if layers < 1 or len(described["layers"]) != layers:
            raise ValueError(f"{len(described['layers'])} layers, not {layers}")
        for layer, parts in zip(self._layers, described["layers"], strict=True):
            layer.norm_1, layer.norm_c, norm = map(read_number, parts["norms"])
            layer.gated = parts["mix"] is not None
            if layer.gated:
                layer.mix = pack(parts["mix"], (channels, 2 * channels))
            if layer.gated and parts.get("project"):  # which older exports do not know
                layer.project = pack(parts["project"], (channels, channels))
            layer.query = pack(parts["query"], (channels, channels))
            layer.out = pack(parts["out"], (channels, channels))
            layer.mlp = self._weights.pack_mlp(norm, parts, channels, hidden)
        ends = [self._weights.take(described[n], (channels,)) for n in ("alpha", "beta")]
        self._banned = np.array(banned, np.int64)
        if not all(0 <= symbol < symbols for symbol in [*banned, end]):
            raise ValueError(f"symbols {banned} and {end} of {symbols}")
        self.heads = described["heads"]
        if type(self.heads) is not int or self.heads < 1 or channels % self.heads:
            raise ValueError(f"{self.heads!r:.40} heads of {channels} channels")
        self.struct = _Decoder(
            layers,
            channels,
            self.heads,
            self._layers,
            self._embedding.struct,
            read_number(described["embedding_scale"]),
            read_number(described["norm"]),
            *ends,
            self._banned.ctypes.data,
            len(banned),
            end,
            self._read_preview(preview) if preview else None,
        )

    @property
    def sides(self) -> tuple[int, int, int]:
        """Of the keys and values that it attends to: (2 D, E, C / E)."""
        return 2 * self.layers, self.heads, self.channels // self.heads

    def _read_table(self, names: dict, symbols: int) -> tuple[tuple, PackedProduct]:
        """The rows of a table with their scales, and the product with all of them."""
        weight, scales, _ = self._weights.find(names)
        if weight.shape != (symbols, self.channels):
            raise ValueError(f"{names['weight']} {weight.shape} for {symbols} symbols")
        return (weight, scales), PackedProduct(weight.T, scales, None)

    def _read_preview(self, arrays: dict[str, np.ndarray]) -> "ctypes.pointer[_Preview]":
        narrow, wide, scales = (arrays[name] for name in ("narrow", "wide", "scales"))
        symbols, size = len(self._rows[0]), narrow.shape[-1] if narrow.ndim else 0
        if narrow.shape != (self.channels, size) or not 1 <= size <= self.channels:
            raise ValueError(f"a preview through {narrow.shape} for {self.channels} channels")
        if wide.shape != (symbols, size):
            raise ValueError(f"a preview of {wide.shape} for {symbols} symbols")
        if not all(np.isfinite(array).all() for array in (narrow, scales)):
            raise ValueError("a preview that is not of finite numbers")
        self._preview = PackedProduct(narrow, None, None), PackedProduct(wide.T, scales, None)
        rows = np.ascontiguousarray(self._rows[0])
        self._rows = rows, self._rows[1]
        places = (rows.ctypes.data, None) if rows.dtype == np.int8 else (None, rows.ctypes.data)
        return ctypes.pointer(_Preview(*(product.struct for product in self._preview), *places))

    def select(self, candidates: np.ndarray) -> dict[str, PackedProduct]:
        """The product with some rows of the output layer. (K,)."""
        weight, scales = self._rows
        scales = None if scales is None else scales[candidates]
        return {"product": PackedProduct(weight[candidates].T, scales, None)}
