"""Graphs that reach for more than what is in them."""

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
onnx = pytest.importorskip("onnx", reason="the extra [export] is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from resmlp_mt.engines.onnx_graph import read_graph  # noqa: E402

PLANTED = np.array([3, 1, 4, 1], np.float32)


def external() -> TensorProto:
    """A tensor whose values are in the file `planted`."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    place = tensor.external_data.add()
    place.key, place.value = "location", "planted"
    return tensor


def make(nodes, initializers=(), **others) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "main", [x], [y], initializers)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=10, **others)


def read() -> onnx.NodeProto:
    return helper.make_node("Max", ["x", "w"], ["y"])


def branch(nodes, initializers=()) -> onnx.NodeProto:
    """A condition with these nodes in both of its graphs."""
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "branch", [], [y], initializers)
    return helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)


def as_initializer():
    return make([read()], [external()])


def as_attribute():
    return make([helper.make_node("Constant", [], ["w"], value=external()), read()])


def in_a_branch():
    true = numpy_helper.from_array(np.array(True), "c")
    return make([branch([read()], [external()])], [true])


def in_a_branch_of_a_branch():
    true = numpy_helper.from_array(np.array(True), "c")
    constant = helper.make_node("Constant", [], ["w"], value=external())
    return make([branch([branch([constant, read()])])], [true])


def in_a_function():
    nodes = [helper.make_node("Constant", [], ["w"], value=external()), read()]
    versions = [helper.make_opsetid("", 18)]
    function = helper.make_function("own", "Read", ["x"], ["y"], nodes, versions)
    return make([helper.make_node("Read", ["x"], ["y"], domain="own")], functions=[function])


def in_a_sparse_tensor():
    model = make([read()])
    sparse = model.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(external())
    sparse.indices.CopyFrom(numpy_helper.from_array(np.arange(4), "places"))
    return model


def in_a_sparse_attribute():
    model = make([helper.make_node("Constant", [], ["w"]), read()])
    attribute = model.graph.node[0].attribute.add(name="sparse_value")
    attribute.type = onnx.AttributeProto.SPARSE_TENSOR
    attribute.sparse_tensor.dims[:] = [4]
    attribute.sparse_tensor.values.CopyFrom(external())
    attribute.sparse_tensor.indices.CopyFrom(numpy_helper.from_array(np.arange(4), "places"))
    return model


def in_the_format_of_onnx_runtime():
    model = make([read()], [numpy_helper.from_array(PLANTED, "w")])
    model.producer_name = "ORTM"
    return model


READERS = [
    (as_initializer, "weights in another file"),
    (as_attribute, "weights in another file"),
    (in_a_branch, "a graph within the graph"),
    (in_a_branch_of_a_branch, "a graph within the graph"),
    (in_a_function, "a function"),
    (in_a_sparse_tensor, "a sparse tensor"),
    (in_a_sparse_attribute, "a sparse tensor"),
    (in_the_format_of_onnx_runtime, "format of ONNX Runtime"),
]


@pytest.mark.parametrize(("build", "said"), READERS, ids=[build.__name__ for build, _ in READERS])
def test_a_graph_that_reads_another_file_is_refused(build, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted").write_bytes(PLANTED.tobytes())
    data = build().SerializeToString()
    if build is in_a_branch:  # what ONNX Runtime would make of it
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        (answer,) = session.run(["y"], {"x": np.zeros(4, np.float32)})
        assert answer.tolist() == PLANTED.tolist()
    (tmp_path / "forged.onnx").write_bytes(data)
    with pytest.raises(ValueError, match=f"^forged.onnx .*{said}"):
        read_graph(tmp_path / "forged.onnx")


def number(value: int) -> bytes:
    """As protocol buffers write it."""
    more = []
    while value > 127:
        more.append(value & 127 | 128)
        value >>= 7
    return bytes([*more, value])


def test_a_field_with_a_number_that_others_cut_off_hides_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted").write_bytes(PLANTED.tobytes())
    place = external().external_data[0].SerializeToString()
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]).SerializeToString()
    # Fields 13 and 14, external_data and data_location, with a bit above those that count.
    weight += number(13 << 3 | 2 | 1 << 32) + number(len(place)) + place
    weight += number(14 << 3 | 1 << 32) + number(TensorProto.EXTERNAL)
    graph = number(5 << 3 | 2) + number(len(weight)) + weight
    data = make([read()]).SerializeToString() + number(7 << 3 | 2) + number(len(graph)) + graph
    (tmp_path / "forged.onnx").write_bytes(data)
    # What ONNX Runtime makes of it.
    session = onnxruntime.InferenceSession("forged.onnx", providers=["CPUExecutionProvider"])
    (answer,) = session.run(["y"], {"x": np.zeros(4, np.float32)})
    assert answer.tolist() == PLANTED.tolist()
    with pytest.raises(ValueError, match="not an ONNX graph"):
        read_graph(tmp_path / "forged.onnx")


def test_a_graph_without_such_is_read(tmp_path):
    data = make([read()], [numpy_helper.from_array(PLANTED, "w")]).SerializeToString()
    (tmp_path / "plain.onnx").write_bytes(data)
    assert read_graph(tmp_path / "plain.onnx") == data


@pytest.mark.parametrize(
    "data",
    [
        make([read()] * 50_000).SerializeToString(),
        make([read()], [TensorProto(float_data=[1.0] * 10**5)]).SerializeToString(),
        make([read()], [TensorProto()] * 10**5 * 2).SerializeToString(),
        b"\x08\x01" * 10**5 * 2,
    ],
    ids=["nodes", "values", "empty tensors", "numbers"],
)
def test_a_graph_of_more_structure_than_weights_is_not_parsed(data, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "load_from_string", None)
    (tmp_path / "large.onnx").write_bytes(data)
    with pytest.raises(ValueError, match="large.onnx has more than 262,144 bytes beside weights"):
        read_graph(tmp_path / "large.onnx")


@pytest.mark.parametrize("data", [b"\x3a\xff", b"\x3a\x05\x00", b"\xff" * 20, b"\x0b\x0c", b""])
def test_what_breaks_off_is_refused(data, tmp_path):
    (tmp_path / "torn.onnx").write_bytes(data)
    if data:
        with pytest.raises(ValueError, match="breaks off|64 bits|not an ONNX"):
            read_graph(tmp_path / "torn.onnx")
    else:
        assert read_graph(tmp_path / "torn.onnx") == b""  # which ONNX Runtime refuses
