"""Mutations of what `resmlp-mt export` wrote: configuration, arrays and graphs."""

import gzip
import json
import struct
from random import Random

import onnx

from hostile.mutate import mutate_bytes, mutate_tree


def mutate_export(rng: Random, data: bytes) -> bytes:
    """Change bytes of one of its files, or what they mean."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    if data.startswith(b"{"):
        return json.dumps(mutate_tree(rng, json.loads(data))).encode()
    if data.startswith(b"\x1f\x8b"):
        return gzip.compress(mutate_export(rng, gzip.decompress(data)))
    if data[8:9] == b"{":
        return _mutate_safetensors(rng, data)
    return _mutate_graph(rng, data)


def _mutate_safetensors(rng: Random, data: bytes) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    values = data[8 + length :]
    name = rng.choice([name for name in header if name != "__metadata__"])
    entry = header[name]
    how = rng.randrange(6)
    if how == 0:  # the same bytes in another shape
        shape = entry["shape"]
        rng.shuffle(shape)
    elif how == 1:
        size = entry["data_offsets"][1] - entry["data_offsets"][0]
        count = size // 4
        entry["shape"] = rng.choice(([count], [count, 1], [1, 1, 1, count], [1, count, 1]))
    elif how == 2:
        entry["dtype"] = rng.choice(("I32", "U32"))
    elif how == 3:
        start, end = entry["data_offsets"]
        bad = struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e38)))
        values = values[:start] + bad * ((end - start) // 4) + values[end:]
    elif how == 4:
        other = rng.choice(list(header))
        header[name], header[other] = header[other], header[name]
    else:
        header = mutate_tree(rng, header)
    text = json.dumps(header).encode()
    length = rng.choice((len(text),) * 9 + (2**63,))
    return struct.pack("<Q", length) + text + values


def _mutate_graph(rng: Random, data: bytes) -> bytes:
    model = onnx.load_from_string(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(_OF_GRAPHS)(rng, model.graph)
    return model.SerializeToString()


def _change_constant(rng: Random, graph: onnx.GraphProto) -> None:
    constant = rng.choice(graph.initializer)
    how = rng.randrange(7)
    if how == 0 and constant.dims:
        place = rng.randrange(len(constant.dims))
        constant.dims[place] = rng.choice((0, -1, 1, 2**31, 2**62, constant.dims[place] + 1))
    elif how == 1:
        constant.dims[:] = rng.sample(list(constant.dims), len(constant.dims))
    elif how == 2:
        constant.data_type = rng.randrange(24)
    elif how == 3:
        constant.raw_data = mutate_bytes(rng, constant.raw_data)
    elif how == 4:
        values = [rng.choice((-1, 0, 1, 7, 2**40, -(2**62)))] * (len(constant.raw_data) // 8)
        constant.raw_data = struct.pack(f"<{len(values)}q", *values)
    elif how == 5:
        constant.data_location = onnx.TensorProto.EXTERNAL
        place = constant.external_data.add()
        place.key, place.value = "location", rng.choice(("model/dict.en.txt", "/etc/passwd"))
    else:
        other = rng.choice(graph.initializer)
        constant.dims[:], constant.raw_data = list(other.dims), other.raw_data


def _change_node(rng: Random, graph: onnx.GraphProto) -> None:
    node = rng.choice(graph.node)
    how = rng.randrange(6)
    if how == 0:
        node.op_type = rng.choice([other.op_type for other in graph.node] + ["Loop", "If", "Scan"])
    elif how == 1 and node.input:
        names = [name for other in graph.node for name in (*other.input, *other.output)]
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif how == 2 and node.input:
        rng.choice((node.input.pop, lambda: node.input.append(node.input[0])))()
    elif how == 3 and node.attribute:
        attribute = rng.choice(node.attribute)
        attribute.i = rng.choice((-1, 0, 2, 3, 10**6, 2**62))
        attribute.f = rng.choice((0.0, -1.0, float("nan")))
        attribute.ints[:] = [rng.choice((-5, 0, 1, 2, 9)) for _ in attribute.ints]
    elif how == 4:
        node.domain = rng.choice(("", "com.microsoft", "ai.onnx.ml", "x"))
    else:
        graph.node.remove(node)


def _change_ends(rng: Random, graph: onnx.GraphProto) -> None:
    ends = rng.choice((graph.input, graph.output))
    if not ends:
        return
    end = rng.choice(ends)
    how = rng.randrange(4)
    if how == 0:
        ends.remove(end)
    elif how == 1:
        end.name += "x"
    elif how == 2:
        end.type.tensor_type.elem_type = rng.randrange(20)
    else:
        shape = end.type.tensor_type.shape
        shape.dim.add().dim_value = rng.choice((0, 1, 9))


def _insert_node(rng: Random, graph: onnx.GraphProto) -> None:
    """Put something after a node that makes much of little, or something else of another shape."""
    node = rng.choice([node for node in graph.node if node.output])
    name, new = node.output[0], f"before_{node.output[0]}"
    node.output[0] = new
    size = rng.choice((1, 2, 10**3, 10**6, 10**12))
    shape = onnx.helper.make_tensor(f"shape_{new}", 7, [3], [size, 1, 1])
    kind = rng.choice(("Expand", "Tile", "Reshape"))
    graph.initializer.append(shape)
    place = list(graph.node).index(node) + 1
    graph.node.insert(place, onnx.helper.make_node(kind, [new, shape.name], [name]))


def _nest_node(rng: Random, graph: onnx.GraphProto) -> None:
    """Put a node in both branches of a condition, and that in another, which is twice as much."""
    node = rng.choice([node for node in graph.node if node.output])
    truth = onnx.helper.make_tensor(f"truth_{node.output[0]}", onnx.TensorProto.BOOL, [], [True])
    graph.initializer.append(truth)
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    for _ in range(rng.choice((1, 4, 15))):
        branch = onnx.helper.make_graph([inner], "branch", [], outputs)
        inner = onnx.helper.make_node(
            "If", [truth.name], list(node.output), then_branch=branch, else_branch=branch
        )
    node.CopyFrom(inner)


def _hide_constant(rng: Random, graph: onnx.GraphProto) -> None:
    """Let a constant be the attribute of a node, with its values in another file."""
    constant = rng.choice(graph.initializer)
    hidden = onnx.TensorProto(name="x", dims=constant.dims, data_type=constant.data_type)
    hidden.data_location = onnx.TensorProto.EXTERNAL
    place = hidden.external_data.add()
    place.key, place.value = "location", "model/dict.en.txt"
    graph.node.insert(0, onnx.helper.make_node("Constant", [], [constant.name], value=hidden))
    graph.initializer.remove(constant)


_OF_GRAPHS = (
    _change_constant, _change_constant, _change_node, _change_ends, _insert_node, _nest_node,
    _hide_constant,
)  # fmt: skip
