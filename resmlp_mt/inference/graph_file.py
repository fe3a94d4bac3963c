"""ONNX graphs from files that a stranger may have made: read, and refused if they reach further."""

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, Message

# Of a graph everything but its weights. That of 24 layers takes 0.04 MB. What ONNX Runtime makes of
# it takes hundreds of times as much memory.
_MAX_STRUCTURE = 2**18
# Where the weights are: ModelProto.graph, GraphProto.initializer, TensorProto.raw_data.
_TO_WEIGHTS = (7, 5, 9)
# What a field of a protocol buffer holds, and its bytes where they are always as many.
_NUMBER, _CONTENT, _SIZES = 0, 2, {1: 8, 5: 4}
_REFUSED = {
    "GraphProto": "a graph within the graph",
    "FunctionProto": "a function",
    "SparseTensorProto": "a sparse tensor",
    "TrainingInfoProto": "what training needs",
}


def read_graph(path: Path) -> bytes:
    """Read a graph such as `Graph.build` makes: nodes, and weights that are in the file.

    ONNX Runtime would read other files that a graph names, which may be any on this machine.

    Raises:
        ValueError: If it is no ONNX graph, names other files, or nests graphs, which can take
            memory and time without end.
    """
    data = path.read_bytes()
    _check_size(memoryview(data), path.name)
    # ONNX Runtime looks here for the mark of a format of its own.
    if data[4:8] == b"ORTM":
        raise ValueError(f"{path.name} is in the format of ONNX Runtime, not of ONNX")
    try:
        model = onnx.load_from_string(data)
    except DecodeError as error:
        raise ValueError(f"{path.name}: {error}") from None
    if fault := next(_find_faults(model), None):
        raise ValueError(f"{path.name} has {fault}")
    return data


def _find_faults(message: Message) -> Iterator[str]:
    """Yield what a graph may not have, wherever in it that is."""
    if message.DESCRIPTOR.name == "TensorProto":
        if message.external_data or message.data_location != onnx.TensorProto.DEFAULT:
            yield "weights in another file"
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        is_root = message.DESCRIPTOR.name == "ModelProto" and field.name == "graph"
        if field.message_type.name in _REFUSED and not is_root:
            yield _REFUSED[field.message_type.name]
        for child in value if field.is_repeated else (value,):
            yield from _find_faults(child)


def _check_size(data: memoryview, name: str) -> None:
    """Refuse what has more structure than a model, at the first byte too much. Copies nothing."""
    structure, parts = 0, [(data, 0)]
    while parts:
        part, depth = parts.pop()
        for number, head, content in _fields(part):
            is_on_the_way = number == _TO_WEIGHTS[depth]
            structure += head + (0 if is_on_the_way else len(content))
            if structure > _MAX_STRUCTURE:
                raise ValueError(f"{name} has more than {_MAX_STRUCTURE:,} bytes beside weights")
            if is_on_the_way and depth + 1 < len(_TO_WEIGHTS):
                parts.append((content, depth + 1))


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield of each field of a protocol buffer its number, bytes before its content, and content.

    The content of a number counts with what is before it.
    """
    place = 0
    while place < len(data):
        start = place
        key, place = _read_number(data, place)
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
