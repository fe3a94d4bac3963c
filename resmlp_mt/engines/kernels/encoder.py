"""The encoder of a folded translator in compiled code, without padding.

In 8 bits each position is quantized with a scale of its own. So a sentence gets the same keys and
values in any batch.

Shapes as in `nn/__init__.py`. Besides, D is layers of the decoder, and E heads of its attention.
"""

import ctypes
from dataclasses import dataclass

import numpy as np

from resmlp_mt.engines.kernels.library import find_library, load_function
from resmlp_mt.engines.kernels.structures import STRUCTURES
from resmlp_mt.engines.kernels.weights import BLOCK, GROUP, Weights, read_number


@dataclass(frozen=True)
class KeysAndValues:
    """The keys and values that the decoder attends to, in float32 or float16.

    Attributes:
        keys: (D, B, E, C / E, S), S padded to groups.
        values: (D, B, E, S, C / E), C / E padded to groups.
        lengths: Of the sources, which are padded on the right. (B,).
    """

    keys: np.ndarray
    values: np.ndarray
    lengths: np.ndarray


class EncoderKernel:
    """Tokens to the keys and values of every decoder layer.

    Args:
        described: From `describe_encoder`.
        arrays: The weights that it names; "encoder.matrix", as for `Weights.find_matrices`; where
            the model has them "encoder.bias", (D, H, N), and "encoder.positions", (N, C).
        symbols, positions: V and N of the encoder.
        sides: (2 D, E, C / E) of the decoder's attention.

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
        sides: tuple[int, int, int],
    ):
        self._compute = load_function("encode", "EncoderLayer", "Encoder", "Encoding")
        self._weights, self._sides, self.positions = Weights(arrays), sides, positions
        take, pack = self._weights.take, self._weights.pack
        self._table, self._scales = self._weights.find_table(described["embedding"], symbols)
        self._factor = read_number(described["embedding_scale"])
        channels, hidden = self._table.shape[1], described["hidden"]
        self._weights.take_some("encoder.positions", (positions, channels))
        self._positions = arrays.get("encoder.positions")
        matrices = self._weights.find_matrices("encoder.matrix", positions)
        layers, heads = matrices.shape[:2]
        if channels % heads or len(described["layers"]) != layers:
            raise ValueError(f"{channels} channels of {heads} heads in {layers} layers")
        toeplitz = matrices.ndim == 3
        # A row of a Toeplitz matrix is read backwards from its weights, and so are the rows.
        matrices = np.ascontiguousarray(matrices[:, :, ::-1] if toeplitz else matrices)
        layout = (positions - 1, -1) if toeplitz else (0, positions)
        matrix = self._weights.keep(matrices)
        bias = self._weights.take_some("encoder.bias", (layers, heads, positions))
        self._layers = (STRUCTURES["EncoderLayer"] * layers)()
        for number, (layer, parts) in enumerate(
            zip(self._layers, described["layers"], strict=True)
        ):
            layer.norm, norm = map(read_number, parts["norms"])
            self._weights.pack_gate(layer, parts, channels)
            layer.mlp = self._weights.pack_mlp(norm, parts, channels, hidden)
            layer.matrix = matrix + number * matrices[0].nbytes
            layer.bias = bias and bias + number * heads * positions * 4
            for name in ("scale", "shift", "bias_scale"):
                setattr(layer, name, take(parts[name], (channels,)))
        self._stride = channels + -channels % BLOCK
        self._struct = STRUCTURES["Encoder"](
            layers,
            channels,
            heads,
            positions,
            matrices[0, 0].size,
            *layout,
            sides[1],
            sides[0],
            ctypes.addressof(self._layers),
            read_number(described["norm"]),
            pack(described["memory"], (channels, int(np.prod(sides)))),
        )

    def __call__(self, tokens: np.ndarray, real: np.ndarray) -> KeysAndValues:
        """The keys and values, in 16 bits where the weights have 8.

        Args:
            tokens: Padded on the right. (B, S).
            real: Where they are no padding. (B, S).

        Raises:
            ValueError: If there are more positions than N.
        """
        (both, heads, width), (sentences, source) = self._sides, tokens.shape
        if source > self.positions:
            raise ValueError(f"{source} tokens for {self.positions} positions")
        kind = np.float32 if self._scales is None else np.float16
        shape = both // 2, sentences, heads
        made = KeysAndValues(
            np.empty((*shape, width, source + -source % GROUP), kind),
            np.empty((*shape, source, width + -width % GROUP), kind),
            np.count_nonzero(real, axis=1),
        )
        starts = np.concatenate([[0], np.cumsum(made.lengths)])
        x = self._embed(tokens[real], np.nonzero(real)[1])
        places = [array.ctypes.data for array in (starts, x, made.keys, made.values)]
        half, make = kind is np.float16, STRUCTURES["Encoding"]
        encoding = make(*tokens.shape, *places[:2], half, *places[2:])
        call = ctypes.byref(self._struct), ctypes.byref(encoding)
        room = np.empty(find_library().count_encoder_room(*call), np.uint8)
        encoding.room = room.ctypes.data
        self._compute(*call)
        return made

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
