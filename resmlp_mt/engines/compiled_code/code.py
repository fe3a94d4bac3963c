"""The compiled code of `resmlp_mt/native`, where it was built, and products as it reads them."""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

from resmlp_mt.errors import UserError

GROUP, BLOCK, INPUTS = 16, 64, 8  # as in native/decoder.h
KINDS = "avx512", "avxvnni", "avx2", "i8mm", "dotprod", "plain"  # of processors, the fastest first
Integer, Float, Pointer = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


class ProductStruct(ctypes.Structure):
    """`Product` of native/decoder.h."""

    _fields_ = [(name, Integer) for name in ("outputs", "inputs")]
    _fields_ += [(name, Pointer) for name in ("bytes", "floats", "scale", "bias")]


class MlpStruct(ctypes.Structure):
    """`Mlp` of native/decoder.h."""

    _fields_ = [("norm", Float), ("first", ProductStruct), ("second", ProductStruct)]


_FOLDER = Path(__file__).parents[2] / "native"
_FUNCTIONS = "step", "search", "encode", "classify"
_BUILD_AGAIN = (
    "build it again, with pip install -e . in a checkout, or set RESMLP_CPU_ISA=none to do without"
)


@cache
def find_library() -> ctypes.CDLL | None:
    """The compiled code; None where it was not built.

    Raises:
        UserError: If it cannot be loaded, as where it was built for another kind of machine, or
            lacks functions, as a build of older sources does.
    """
    for suffix in EXTENSION_SUFFIXES:
        if (path := _FOLDER / f"kernels{suffix}").is_file():
            try:
                library = ctypes.CDLL(path)
                for name in ("count_room", "count_encoder_room", "count_classifier_room"):
                    getattr(library, name).restype = Integer
                for kind in KINDS:
                    if getattr(library, f"has_{kind}")():  # other machines have no such functions
                        _ = [getattr(library, f"{name}_{kind}") for name in _FUNCTIONS]
            except (OSError, AttributeError) as error:  # their messages name the file
                raise UserError(f"the compiled code is broken ({error}): {_BUILD_AGAIN}") from None
            return library
    return None


def find_kind() -> str | None:
    """The kind of this processor; None where it is of no kind, or nothing was built.

    Raises:
        UserError: If RESMLP_CPU_ISA names what cannot run here.
    """
    wanted = os.environ.get("RESMLP_CPU_ISA", "").lower()
    if wanted not in ("", "none", *KINDS):
        raise UserError(f"RESMLP_CPU_ISA={wanted}? It is one of {', '.join(KINDS)} and none")
    # With none not even a broken file is looked at.
    library = None if wanted == "none" else find_library()
    for kind in KINDS:
        if wanted in ("", kind) and library and getattr(library, f"has_{kind}")():
            return kind
    if wanted in KINDS:
        lacks = "this processor has none" if library else "the compiled code was not built"
        raise UserError(f"RESMLP_CPU_ISA={wanted}: {lacks}")
    return None


def find_compute(name: str) -> Callable | None:
    """A function of `_FUNCTIONS` for this processor; else as `find_kind`."""
    kind = find_kind()
    return kind and getattr(find_library(), f"{name}_{kind}")


def check_structures(name: str, *structures: type[ctypes.Structure]) -> None:
    """Check that a function was built for the structures that it is given.

    Args:
        name: As for `find_compute`.
        structures: In the order of native/library.c.

    Raises:
        UserError: If these have other sizes, as where a newer version was put beside an older
            build.
    """
    try:
        built = (Integer * len(structures)).in_dll(find_library(), f"{name}_structures")
    except ValueError:  # before there were any
        built = ()
    if [*built] != [ctypes.sizeof(structure) for structure in structures]:
        raise UserError(
            f"the compiled code was built from other sources than these: {_BUILD_AGAIN}"
        )


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
        self.weight = _pack(rows, 0, 1, 1) if whole else _pack(rows, 128, INPUTS, 4)
        self.scales = None if whole else self._pad(scales)
        self.bias = self._pad(np.zeros(self.outputs, np.float32) if bias is None else bias)
        place = self.weight.ctypes.data
        self.struct = ProductStruct(
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
        return np.pad(values, (0, -len(values) % BLOCK))


def _pack(weight: np.ndarray, fill: int, to: int, together: int) -> np.ndarray:
    """(in, out) -> (groups, in / together, 16, together), with inputs padded to a multiple."""
    inputs, outputs = weight.shape
    room = (0, -inputs % to), (0, -outputs % BLOCK)
    weight = np.pad(weight, room, constant_values=fill)
    weight = weight.reshape(-1, together, weight.shape[1] // GROUP, GROUP)
    return np.ascontiguousarray(weight.transpose(2, 0, 3, 1))


def pad_last(array: np.ndarray, to: int, fill: float = 0) -> np.ndarray:
    """An array of its own whose last axis is a multiple of `to`."""
    size = array.shape[-1]
    padded = np.full((*array.shape[:-1], size + -size % to), fill, np.float32)
    padded[..., :size] = array
    return padded


def read_number(value) -> float:
    """A number of a description, -1 for none.

    Raises:
        ValueError: If it is none.
    """
    if value is None:
        return -1.0
    if type(value) is not float or not np.isfinite(value):
        raise ValueError(f"{value!r:.40} is no number")
    return value


class NativeWeights:
    """The weights of a folded model, as the compiled code takes them. What it hands out it keeps.

    Args:
        arrays: By name.
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays
        self._kept: list = []

    def take(self, name: str, shape: tuple[int, ...], to: int = 1) -> int:
        """Where a float32 array begins, whose last axis is padded with zeros to a multiple.

        Raises:
            ValueError: If it has another shape or type.
        """
        array = self._arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise ValueError(f"{name} {array.shape} in {array.dtype}, not {shape}")
        self._kept.append(pad_last(array, to))
        return self._kept[-1].ctypes.data

    def find(self, names: dict) -> list[np.ndarray | None]:
        """Weight, scales and bias of a product, of which the last two may be missing."""
        found = [names[part] and self._arrays[names[part]] for part in ("scales", "bias")]
        return [self._arrays[names["weight"]], *found]

    def pack(self, names: dict, shape: tuple[int, int]) -> ProductStruct:
        """A product, whose weight is (in, out).

        Raises:
            ValueError: If it has another shape.
        """
        weight, scales, bias = self.find(names)
        if weight.shape != shape:
            raise ValueError(f"{names['weight']} {weight.shape}, not {shape}")
        self._kept.append(PackedProduct(weight, scales, bias))
        return self._kept[-1].struct

    def pack_mlp(self, norm: float, parts: dict, channels: int, hidden: int) -> MlpStruct:
        """The channel MLP of a layer, whose products are the parts "first" and "second".

        Raises:
            ValueError: If these have other shapes.
        """
        first = self.pack(parts["first"], (channels, hidden))
        return MlpStruct(norm, first, self.pack(parts["second"], (hidden, channels)))
