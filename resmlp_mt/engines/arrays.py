"""Arrays from a safetensors file, with NumPy alone."""

import json
import math
import zlib
from pathlib import Path

import numpy as np

# Bytes of JSON. Parsed, they take 30 times as much memory.
_MAX_HEADER = 2**22
# The types in the file, and the types that they are read as. Each array is aligned.
_TYPES = {"F32": ("<f4", "f4"), "F16": ("<f2", "f4"), "I8": ("i1", "i1"), "I32": ("<i4", "i4")}


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays that `export_model` wrote: of float32 (or float16 in the file), int8, int32.

    A name that ends in .gz stands for a compressed file.

    The format (github.com/huggingface/safetensors): the length of a header in 8 bytes, the header
    in JSON with the type, shape and place of each array, and the arrays.

    Raises:
        ValueError: If the file has another format, or is damaged. The message names it.
    """
    data = _expand(path) if path.suffix == ".gz" else path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    if size > min(_MAX_HEADER, len(data) - 8):
        raise ValueError(f"{path.name} has {size:,} bytes of JSON")
    try:
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        found = {name: _find_array(memoryview(data)[8 + size :], **a) for name, a in header.items()}
        if sum(array.nbytes for array, _ in found.values()) > len(data):
            raise ValueError("arrays that overlap")  # each copy would take memory
        return {name: array.astype(wanted) for name, (array, wanted) in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error}") from None


def _expand(path: Path) -> bytes:
    """Unpack a .gz file, to no more bytes than `export_model` could have packed in it."""
    data = path.read_bytes()
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS + 16)
    try:
        # Each byte took at least a bit.
        expanded = reader.decompress(data, 8 * len(data))
    except zlib.error as error:
        raise ValueError(f"{path.name}: {error}") from None
    if not reader.eof:
        raise ValueError(f"{path.name} breaks off, or expands to more than 8 times its size")
    return expanded


def _find_array(
    data: memoryview, dtype: str, shape: list, data_offsets: list
) -> tuple[np.ndarray, np.dtype]:
    """An array as it lies in the file, and the type that it is read as."""
    start, end = data_offsets
    for number in (start, end, *shape):
        if type(number) is not int or number < 0:
            raise ValueError(f"{number!r:.40} is no size")
    written, wanted = map(np.dtype, _TYPES.get(dtype, ("V9", "V9")))
    if dtype not in _TYPES or end > len(data) or end - start != written.itemsize * math.prod(shape):
        raise ValueError(f"no array of {shape!r:.40} in {dtype!r:.40}")
    return np.frombuffer(data[start:end], written).reshape(shape), wanted
