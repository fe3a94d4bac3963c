"""The step of a search in compiled code of our own, `resmlp_mt/native`, where that was built.

It computes what the graph of `build_step` computes, in one call without ONNX Runtime. Each row is
quantized with a scale of its own, so a sentence gets the same scores in any batch.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

from resmlp_mt.errors import UserError
from resmlp_mt.inference.beams import Beams
from resmlp_mt.inference.mixing import MixingRows
from resmlp_mt.inference.shortlist import Choice

_GROUP, _BLOCK = 16, 64  # as in native/decoder.h
_KINDS = "avx512", "avx2"  # of processors, the fastest first
_Integer, _Float, _Pointer = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


class _Product(ctypes.Structure):
    _fields_ = [(name, _Integer) for name in ("outputs", "inputs")]
    _fields_ += [(name, _Pointer) for name in ("bytes", "floats", "scale", "bias")]


class _Layer(ctypes.Structure):
    _fields_ = [(name, _Float) for name in ("norm_1", "norm_c", "norm_2")]
    _fields_ += [("gated", ctypes.c_int32)]
    _fields_ += [(name, _Product) for name in ("mix", "query", "out", "first", "second")]


class _Decoder(ctypes.Structure):
    _fields_ = [(name, _Integer) for name in ("layers", "channels", "heads", "hidden")]
    _fields_ += [("layer", ctypes.POINTER(_Layer)), ("embedding", _Product)]
    _fields_ += [(name, _Float) for name in ("embedding_scale", "norm")]
    _fields_ += [(name, _Pointer) for name in ("alpha", "beta", "banned")]
    _fields_ += [(name, _Integer) for name in ("bans", "end")]


class _Step(ctypes.Structure):
    _fields_ = [(name, _Integer) for name in ("sentences", "beam", "source", "past")]
    _fields_ += [
        (name, _Pointer)
        for name in ("tokens", "scores", "history", "ancestors", "row", "offset", "position")
    ]
    _fields_ += [("all", _Integer)]
    _fields_ += [(name, _Pointer) for name in ("at_work", "keys", "mask", "memory")]
    _fields_ += [("output", ctypes.POINTER(_Product))]
    _fields_ += [(name, _Pointer) for name in ("candidates", "barred")]
    _fields_ += [(name, _Integer) for name in ("best", "width")]
    _fields_ += [
        (name, _Pointer)
        for name in ("best_scores", "best_tokens", "best_places", "ends", "values", "query")
    ]
    _fields_ += [(name, _Pointer) for name in ("log_p", "room")]


@cache
def find_library() -> ctypes.CDLL | None:
    """The compiled code; None where it was not built."""
    folder = Path(__file__).parents[1] / "native"
    for suffix in EXTENSION_SUFFIXES:
        if (path := folder / f"kernels{suffix}").is_file():
            library = ctypes.CDLL(path)
            library.count_room.restype = _Integer
            return library
    return None


def find_compute() -> Callable | None:
    """The step for this processor; None where there is none, or nothing was built.

    Raises:
        UserError: If RESMLP_CPU_ISA names what cannot run here.
    """
    library, wanted = find_library(), os.environ.get("RESMLP_CPU_ISA", "").lower()
    if wanted not in ("", "none", *_KINDS):
        raise UserError(f"RESMLP_CPU_ISA={wanted}? It is one of {', '.join(_KINDS)} and none")
    for kind in _KINDS:
        if wanted in ("", kind) and library and getattr(library, f"has_{kind}")():
            return getattr(library, f"step_{kind}")
    if wanted in _KINDS:
        lacks = "this processor has none" if library else "the compiled search was not built"
        raise UserError(f"RESMLP_CPU_ISA={wanted}: {lacks}")
    return None


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
        # What was -128 to 127 becomes 0 to 255.
        rows = weight if whole else weight.view(np.uint8) ^ np.uint8(128)
        self.weight = _pack(rows, 0, 1) if whole else _pack(rows, 128, 4)
        self.scales = None if whole else self._pad(scales)
        self.bias = self._pad(np.zeros(self.outputs, np.float32) if bias is None else bias)
        place = self.weight.ctypes.data
        self.struct = _Product(
            self.outputs,
            self.inputs,
            None if whole else place,
            place if whole else None,
            None if whole else self.scales.ctypes.data,
            self.bias.ctypes.data,
        )

    def _pad(self, values: np.ndarray) -> np.ndarray:
        if values.shape != (self.outputs,) or values.dtype != np.float32:
            raise ValueError(f"{values.shape} in {values.dtype} for {self.outputs} outputs")
        return np.pad(values, (0, -len(values) % _BLOCK))


def _pack(weight: np.ndarray, fill: int, together: int) -> np.ndarray:
    """(in, out) -> (groups, in / together, 16, together)."""
    inputs, outputs = weight.shape
    room = (0, -inputs % together), (0, -outputs % _BLOCK)
    weight = np.pad(weight, room, constant_values=fill)
    weight = weight.reshape(-1, together, weight.shape[1] // _GROUP, _GROUP)
    return np.ascontiguousarray(weight.transpose(2, 0, 3, 1))


class NativeDecoder:
    """The decoder of an exported translator, for the compiled code.

    Args:
        described: What `describe_decoder` wrote.
        arrays: The weights that it names.
        symbols, channels, layers: V, C and D that the rest of the export has.
        banned: Symbols that no translation has.
        end: The end of a sentence.
        compute: `step_avx512` or `step_avx2` of the library.

    Raises:
        ValueError: If something does not fit.
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
    ):
        self._arrays, self.compute = arrays, compute
        self.channels, self.layers = channels, layers
        self._rows, self.output = self._read_table(described["output"], symbols)
        self._embedding = self.output
        if described["embedding"] != described["output"]:
            _, self._embedding = self._read_table(described["embedding"], symbols)
        self._layers = (_Layer * layers)()
        self._kept, hidden = [], described["hidden"]
        if len(described["layers"]) != layers:
            raise ValueError(f"{len(described['layers'])} layers, not {layers}")
        for layer, parts in zip(self._layers, described["layers"], strict=True):
            layer.norm_1, layer.norm_c, layer.norm_2 = map(_number, parts["norms"])
            layer.gated = parts["mix"] is not None
            shapes = {"query": (channels, channels), "out": (channels, channels)}
            shapes |= {"first": (channels, hidden), "second": (hidden, channels)}
            if layer.gated:
                shapes["mix"] = channels, 2 * channels
            for name, shape in shapes.items():
                setattr(layer, name, self._pack_product(parts[name], shape).struct)
        self._ends = [self._take(described[n], (channels,)) for n in ("alpha", "beta")]
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
            hidden,
            self._layers,
            self._embedding.struct,
            _number(described["embedding_scale"]),
            _number(described["norm"]),
            *(end.ctypes.data for end in self._ends),
            self._banned.ctypes.data,
            len(banned),
            end,
        )

    def _take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        array = self._arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise ValueError(f"{name} {array.shape} in {array.dtype}, not {shape}")
        return np.ascontiguousarray(array)

    def _pack_product(self, names: dict, shape: tuple[int, int]) -> PackedProduct:
        weight, scales, bias = self._find(names)
        if weight.shape != shape:
            raise ValueError(f"{names['weight']} {weight.shape}, not {shape}")
        self._kept.append(PackedProduct(weight, scales, bias))
        return self._kept[-1]

    def _find(self, names: dict) -> list[np.ndarray | None]:
        """Weight, scales and bias, of which the last two may be missing."""
        found = [names[part] and self._arrays[names[part]] for part in ("scales", "bias")]
        return [self._arrays[names["weight"]], *found]

    def _read_table(self, names: dict, symbols: int) -> tuple[tuple, PackedProduct]:
        """The rows of a table with their scales, and the product with all of them."""
        weight, scales, _ = self._find(names)
        if weight.shape != (symbols, self.channels):
            raise ValueError(f"{names['weight']} {weight.shape} for {symbols} symbols")
        return (weight, scales), PackedProduct(weight.T, scales, None)

    def select(self, candidates: np.ndarray) -> dict[str, PackedProduct]:
        """The product with some rows of the output layer. (K,)."""
        weight, scales = self._rows
        scales = None if scales is None else scales[candidates]
        return {"product": PackedProduct(weight[candidates].T, scales, None)}


def _pad_group(array: np.ndarray, fill: float) -> np.ndarray:
    """An array of its own whose last axis is whole groups."""
    size = array.shape[-1]
    padded = np.full((*array.shape[:-1], size + -size % _GROUP), fill, np.float32)
    padded[..., :size] = array
    return padded


def _number(value) -> float:
    """A number of the description, -1 for none."""
    if value is None:
        return -1.0
    if type(value) is not float or not np.isfinite(value):
        raise ValueError(f"{value!r:.40} is no number")
    return value


class NativeStep:
    """Runs the steps of a batch, as `OnnxStep` does.

    Args:
        decoder: The decoder.
        memory, mask, beams, choice, rows, tables: As for `OnnxStep`.

    Raises:
        ValueError: If the decoder does not fit the encoder.
    """

    def __init__(
        self,
        decoder: NativeDecoder,
        memory: np.ndarray,
        mask: np.ndarray,
        beams: Beams,
        choice: Choice | None,
        rows: MixingRows,
        tables: dict[str, np.ndarray],
    ):
        self._decoder, self._beams, self._rows, self._tables = decoder, beams, rows, tables
        sentences, source, width = len(mask), memory.shape[3], decoder.channels // decoder.heads
        shape = 2 * decoder.layers, sentences, decoder.heads, source, width
        if memory.shape != shape:
            raise ValueError(f"keys and values of {memory.shape}, not {shape}")
        self._memory = {
            "keys": _pad_group(memory[::2].swapaxes(3, 4), 0),
            "mask": _pad_group(mask, -np.inf),
            "memory": _pad_group(memory[1::2], 0),
        }
        self._sizes = sentences, source
        self.bind(choice)

    def bind(self, choice: Choice | None) -> None:
        """Take the beams as they are, from the next run on; forget all other `answer`s."""
        beams, (sentences, source) = self._beams, self._sizes
        step = self._step = _Step(*beams.tokens.shape, source)
        self._kept, step.all = {}, sentences
        for name, array in self._memory.items():
            self._point(name, array)
        product = choice.output["product"] if choice else self._decoder.output
        if choice:
            self._point("candidates", choice.candidates)
            self._point("barred", np.ascontiguousarray(choice.barred))
        step.output = ctypes.pointer(product.struct)
        step.best, step.width = beams.best_tokens.shape[1], beams.width
        self._point("at_work", beams.at_work)
        for name in ("tokens", "scores", "best_scores", "best_tokens", "best_places", "ends"):
            self.answer(name, getattr(beams, name))
        self._call = ctypes.byref(self._decoder.struct), ctypes.byref(step)
        self._point("room", np.empty(find_library().count_room(*self._call), np.uint8))

    def run(self, position: int) -> None:
        """Find the best continuations at a position. All before it were run."""
        beams, step = self._beams, self._step
        step.past = position
        self._point("row", np.ascontiguousarray(self._rows[position]))
        for name, table in self._tables.items():
            self._point(name, table[position : position + 1])
        self._point("ancestors", np.ascontiguousarray(beams.places))
        beams.make_room()
        self._point("history", beams.history)
        self._point("values", beams.remember())
        self._decoder.compute(*self._call)

    def _point(self, name: str, array: np.ndarray) -> None:
        self._kept[name] = array
        setattr(self._step, name, array.ctypes.data)

    def answer(self, name: str, into: np.ndarray) -> None:
        """Write an output into an array, from the next run on."""
        self._point(name, into)
