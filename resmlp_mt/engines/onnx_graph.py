"""ONNX graphs of classifiers that have no compiled form, from files that a stranger may have made.

Those that reach beyond the file are refused: ONNX Runtime would read any file that a graph names.
The package `onnx` is not needed to run a model. protobuf, which ONNX Runtime brings, reads the few
fields that matter.
"""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from resmlp_mt.extras import import_with_onnx
from resmlp_mt.files.export_layout import CLASSIFIER

# Of a graph everything but its weights. That of 24 layers takes 0.04 MB. What ONNX Runtime makes of
# it takes hundreds of times as much memory.
_MAX_STRUCTURE = 2**18

# The messages of onnx.proto that lead to what is forbidden. By the number of a field: the message
# in it, or what is wrong with it. Other fields reach no further.
_EXTERNAL, _SPARSE, _WEIGHTS = "weights in another file", "a sparse tensor", ""
_NESTED, _FUNCTION, _TRAINING = "a graph within the graph", "a function", "what training needs"
_MESSAGES: dict[str, dict[int, str]] = {
    "Model": {7: "Graph", 20: _TRAINING, 25: _FUNCTION},
    "Graph": {1: "Node", 5: "Tensor", 15: _SPARSE},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: _NESTED, 10: "Tensor", 11: _NESTED, 22: _SPARSE, 23: _SPARSE},
    "Tensor": {9: _WEIGHTS, 13: _EXTERNAL, 14: _EXTERNAL},
}
_NUMBERS = (14,)  # the fields that hold no content but a number: the kind of place of a tensor


def start_graph(graph: bytes, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """Pixels, uint8 (B, in_chans, rows, columns) -> logits (B, K), by ONNX Runtime on the CPU.

    Args:
        graph: As `trace_classifier` made it.
        threads: Of its own.

    Raises:
        ValueError: If it is no ONNX graph, names other files, or nests graphs, which can take
            memory and time without end.
        UserError: If ONNX Runtime is not installed. It has errors of its own, for `computing`.
    """
    onnxruntime = import_with_onnx("onnxruntime")
    # ONNX Runtime looks here for the mark of a format of its own.
    if graph[4:8] == b"ORTM":
        raise ValueError(f"{CLASSIFIER} is in the format of ONNX Runtime, not of ONNX")
    if fault := next(_find_faults(_read(graph)), None):
        raise ValueError(f"{CLASSIFIER} has {fault}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
    return lambda pixels: session.run(["logits"], {"pixels": pixels})[0]


def _read(data: bytes):
    """The message in the bytes of a model."""
    from google.protobuf.message import DecodeError

    try:
        model = _make_message().FromString(data)
    except DecodeError:
        raise ValueError(f"{CLASSIFIER} is no ONNX graph, or breaks off") from None
    tensors = (tensor for graph in model.field_7 for tensor in graph.field_5)
    if len(data) - sum(len(raw) for t in tensors for raw in t.field_9) > _MAX_STRUCTURE:
        raise ValueError(f"{CLASSIFIER} has more than {_MAX_STRUCTURE:,} bytes beside weights")
    return model


@cache
def _make_message() -> type:
    """The class of a model, with the fields of `_MESSAGES` alone. All may come several times."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    file = FileDescriptorProto(name="graph.proto")
    for name, held in _MESSAGES.items():
        fields = file.message_type.add(name=name).field
        for number, what in held.items():
            field = fields.add(name=f"field_{number}", number=number)
            field.label = FieldDescriptorProto.LABEL_REPEATED
            if what in _MESSAGES:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, what
            elif number in _NUMBERS:
                field.type = FieldDescriptorProto.TYPE_INT64
            else:
                field.type = FieldDescriptorProto.TYPE_BYTES
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("Model"))


def _find_faults(message) -> Iterator[str]:
    """Yield what is forbidden in a message, at any depth."""
    for field, values in message.ListFields():
        held = _MESSAGES[message.DESCRIPTOR.name][field.number]
        if held in _MESSAGES:
            for value in values:
                yield from _find_faults(value)
        elif held:
            yield held
