"""ONNX graphs of classifiers that have no compiled form, from files that a stranger may have made.

Graphs that reach beyond the file are refused. The fields of ONNX's protocol buffers are read here
byte by byte. The package `onnx` is not needed to run a model, and would copy all weights to look at
them.
"""

from collections.abc import Callable, Iterator

import numpy as np

from resmlp_mt.extras import import_extra
from resmlp_mt.files.export_layout import CLASSIFIER

# Bytes of a graph without its weights: 24 layers have 0.04 MB. ONNX Runtime takes hundreds of times
# as much memory for them.
_MAX_STRUCTURE = 2**18
# The kinds of fields of a protocol buffer, and the bytes of those that always have as many.
_NUMBER, _CONTENT, _SIZES = 0, 2, {1: 8, 5: 4}

# The messages of onnx.proto that lead to what is forbidden. By the number of a field: the message
# in it, or what is wrong with it. Other fields reach no further.
_EXTERNAL, _SPARSE = "weights in another file", "a sparse tensor"
_NESTED, _FUNCTION, _TRAINING = "a graph within the graph", "a function", "what training needs"
_MESSAGES: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: _TRAINING, 25: _FUNCTION},
    "graph": {1: "node", 5: "tensor", 15: _SPARSE},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: _NESTED, 10: "tensor", 11: _NESTED, 22: _SPARSE, 23: _SPARSE},
    "tensor": {13: _EXTERNAL},
}
_DATA_LOCATION, _RAW_DATA = 14, 9  # of a tensor


def start_graph(graph: bytes, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """Pixels, uint8 (B, in_chans, rows, columns) -> logits (B, K), by ONNX Runtime on the CPU.

    Args:
        graph: As `trace_classifier` made it.
        threads: Of ONNX Runtime.

    Raises:
        ValueError: If it is no ONNX graph, names other files, or nests graphs, which can take
            memory and time without end.
        UserError: If ONNX Runtime is not installed. It has errors of its own, for `computing`.
    """
    onnxruntime = import_extra("onnxruntime", "a classifier without compiled form")
    # ONNX Runtime looks here for the mark of a format of its own.
    if graph[4:8] == b"ORTM":
        raise ValueError(f"{CLASSIFIER} is in the format of ONNX Runtime, not of ONNX")
    _check_size(memoryview(graph))
    if fault := next(_find_faults(memoryview(graph), "model"), None):
        raise ValueError(f"{CLASSIFIER} has {fault}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
    return lambda pixels: session.run(["logits"], {"pixels": pixels})[0]


def _find_faults(data: memoryview, kind: str) -> Iterator[str]:
    """Yield the forbidden things in a message, at any depth."""
    for number, _, content in _fields(data):
        held = _MESSAGES[kind].get(number)
        if held in _MESSAGES:
            yield from _find_faults(content, held)
        elif held:
            yield held
        elif kind == "tensor" and number == _DATA_LOCATION:
            yield _EXTERNAL


def _check_size(data: memoryview) -> None:
    """Refuse a graph with more structure than a model, at the first byte too much. Copies nothing.

    Structure is everything but the raw data of the graph's tensors.
    """
    to_weights = (("model", "graph"), ("graph", "tensor"), ("tensor", None))
    structure, parts = 0, [(data, 0)]
    while parts:
        part, depth = parts.pop()
        kind, inner = to_weights[depth]
        for number, head, content in _fields(part):
            on_the_way = inner is not None and _MESSAGES[kind].get(number) == inner
            is_weights = inner is None and number == _RAW_DATA
            structure += head + (0 if on_the_way or is_weights else len(content))
            if structure > _MAX_STRUCTURE:
                raise ValueError(
                    f"{CLASSIFIER} has more than {_MAX_STRUCTURE:,} bytes beside weights"
                )
            if on_the_way:
                parts.append((content, depth + 1))


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield of each field of a protocol buffer its number, bytes before its content, and content.

    A field that is a number has no content: all its bytes are before it.
    """
    place = 0
    while place < len(data):
        start = place
        key, place = _read_number(data, place)
        if key >> 32:  # which other readers cut off, and then take it for another field
            raise ValueError("not an ONNX graph")
        kind, size = key & 7, _SIZES.get(key & 7)
        if kind in (_NUMBER, _CONTENT):
            number, place = _read_number(data, place)
            size = number if kind == _CONTENT else 0
        if size is None:
            raise ValueError("not an ONNX graph")
        end = place + size
        if end > len(data):
            raise ValueError("a graph that breaks off")
        yield key >> 3, place - start, data[place:end]
        place = end


def _read_number(data: memoryview, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("a graph that breaks off")
        value |= (data[place] & 127) << shift
        place += 1
        if data[place - 1] < 128:
            return value, place
    raise ValueError("a number of more than 64 bits")
