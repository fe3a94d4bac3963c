"""The decoder of a folded translator, as the compiled code reads it.

Shapes as in `nn/__init__.py`. Besides, D is layers of the decoder, and E heads of its attention.
"""

import ctypes

import numpy as np

from resmlp_mt.engines.kernels.library import load_function
from resmlp_mt.engines.kernels.structures import STRUCTURES
from resmlp_mt.engines.kernels.weights import PackedProduct, Weights, read_number


class DecoderKernel:
    """The decoder of a folded translator, for the compiled code.

    Attributes:
        dtype: Of the numbers that a step leaves for later steps: float16 where the output layer
            has 8 bits.
        layers, channels, heads: D, C and E.
        output: Features to the logits of all symbols.

    Args:
        described: From `describe_decoder`.
        arrays: The weights that it names; "decoder.matrix", as for `Weights.find_matrices`, and
            "decoder.scale", (D C,), which its rows are multiplied with; where the model has them
            "decoder.offset", (N, D C), and "decoder.positions", (N, C).
        symbols, positions: V and N.
        banned: Symbols that no translation has.
        end: The end of a sentence.
        preview: From `learn_preview`: the search then looks at all symbols through it, and at
            the best of them in full.

    Raises:
        ValueError: If something does not fit.
        UserError: If there is no compiled code, or it is of an older build.
    """

    def __init__(
        self,
        described: dict,
        arrays: dict[str, np.ndarray],
        symbols: int,
        positions: int,
        banned: list[int],
        end: int,
        preview: dict[str, np.ndarray] | None = None,
    ):
        self.compute = load_function("search", "Layer", "Preview", "Decoder", "Step", "Search")
        self.positions, self._weights = positions, Weights(arrays)
        take, pack = self._weights.take, self._weights.pack
        self._rows = rows, scales = self._weights.find_table(described["output"], symbols)
        self.output = self._embedding = PackedProduct(rows.T, scales, None)
        self.channels = channels = rows.shape[1]
        self.dtype = np.float16 if rows.dtype == np.int8 else np.float32
        if described["embedding"] != described["output"]:
            table, scales = self._weights.find_table(described["embedding"], symbols)
            if table.shape != rows.shape:
                raise ValueError(f"an embedding of {table.shape}")
            self._embedding = PackedProduct(table.T, scales, None)
        matrices = self._weights.find_matrices("decoder.matrix", positions)
        self.layers, heads = matrices.shape[:2]
        if len(described["layers"]) != self.layers:
            raise ValueError(f"{len(described['layers'])} layers, not {self.layers}")
        self._layers = (STRUCTURES["Layer"] * self.layers)()
        for layer, parts in zip(self._layers, described["layers"], strict=True):
            layer.norm_1, layer.norm_c, norm = map(read_number, parts["norms"])
            self._weights.pack_gate(layer, parts, channels)
            layer.query = pack(parts["query"], (channels, channels))
            layer.out = pack(parts["out"], (channels, channels))
            layer.mlp = self._weights.pack_mlp(norm, parts, channels, described["hidden"])
        self._banned = np.array(banned, np.int64)
        if not all(0 <= symbol < symbols for symbol in [*banned, end]):
            raise ValueError(f"symbols {banned} and {end} of {symbols}")
        self.heads = described["heads"]
        for count in (self.heads, heads):
            if type(count) is not int or count < 1 or channels % count:
                raise ValueError(f"{count!r:.40} heads of {channels} channels")
        self.struct = STRUCTURES["Decoder"](
            self.layers,
            channels,
            self.heads,
            ctypes.addressof(self._layers),
            self._embedding.struct,
            read_number(described["embedding_scale"]),
            read_number(described["norm"]),
            *(take(described[name], (channels,)) for name in ("alpha", "beta")),
            self._banned.ctypes.data,
            len(banned),
            end,
            self._read_preview(preview) if preview else None,
        )
        self.mixing = self._lay_out_mixing(matrices)

    def _lay_out_mixing(self, matrices: np.ndarray) -> dict[str, int | None]:
        """The fields of a `Search` for the matrices, by name."""
        (layers, heads), positions = matrices.shape[:2], self.positions
        take, width = self._weights.take_some, layers * self.channels
        if (scale := take("decoder.scale", (width,))) is None:
            raise ValueError("no decoder.scale")
        found = {"positions": positions, "heads": heads, "scale": scale}
        found["offsets"] = take("decoder.offset", (positions, width))
        found["embeddings"] = take("decoder.positions", (positions, self.channels))
        if matrices.ndim == 4:
            return found | {"matrix": self._weights.keep(np.ascontiguousarray(matrices))}
        # A row of a Toeplitz matrix is the end of its last one, here for every channel.
        last = matrices[:, :, positions - 1 :][:, :, ::-1].transpose(2, 0, 1)
        last = np.repeat(last.reshape(positions, -1), self.channels // heads, axis=1)
        return found | {"last": self._weights.keep(last * self._weights.arrays["decoder.scale"])}

    @property
    def sides(self) -> tuple[int, int, int]:
        """The shape of the keys and values that it attends to: (2 D, E, C / E)."""
        return 2 * self.layers, self.heads, self.channels // self.heads

    def _read_preview(self, arrays: dict[str, np.ndarray]) -> int:
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
        products = (product.struct for product in self._preview)
        self._look = STRUCTURES["Preview"](*products, *places)
        return ctypes.addressof(self._look)

    def select(self, candidates: np.ndarray) -> PackedProduct:
        """The product with some rows of the output layer. (K,)."""
        weight, scales = self._rows
        return PackedProduct(
            weight[candidates].T, None if scales is None else scales[candidates], None
        )
