"""Graphs that reach for more than what is in them."""

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
onnx = pytest.importorskip("onnx", reason="the extra [export] is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from resmlp_mt.engines.onnx_graph import start_graph  # noqa: E402

PLANTED = np.array([3, 1, 4, 1], np.float32)
READ = helper.make_node("Max", ["x", "w"], ["y"])


def external() -> TensorProto:
    """A tensor whose values are in the file `planted`."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="planted")
    return tensor


CONSTANT = helper.make_node("Constant", [], ["w"], value=external())


def make(nodes, initializers=(), **others) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph(nodes, "main", [x], [y], initializers)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=10, **others)


def in_a_branch():
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([READ], "branch", [], [y], [external()])
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    return make([node], [numpy_helper.from_array(np.array(True), "c")])


def in_a_function():
    versions = [helper.make_opsetid("", 18)]
    function = helper.make_function("own", "Read", ["x"], ["y"], [CONSTANT, READ], versions)
    return make([helper.make_node("Read", ["x"], ["y"], domain="own")], functions=[function])


def in_a_sparse_tensor():
    model = make([READ])
    sparse = model.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(external())
    sparse.indices.CopyFrom(numpy_helper.from_array(np.arange(4), "places"))
    return model


def in_the_format_of_onnx_runtime():
    model = make([READ], [numpy_helper.from_array(PLANTED, "w")])
    model.producer_name = "ORTM"
    return model


READERS = {
    "initializer": (lambda: make([READ], [external()]), "weights in another file"),
    "attribute": (lambda: make([CONSTANT, READ]), "weights in another file"),
    "branch": (in_a_branch, "a graph within the graph"),
    "function": (in_a_function, "a function"),
    "sparse": (in_a_sparse_tensor, "a sparse tensor"),
    "format": (in_the_format_of_onnx_runtime, "format of ONNX Runtime"),
}


def run(model) -> list[float]:
    """What ONNX Runtime makes of a model, or of the name of its file."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": np.zeros(4, np.float32)})[0].tolist()


@pytest.mark.parametrize(("build", "said"), READERS.values(), ids=READERS)
def test_a_graph_that_reads_another_file_is_refused(build, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted").write_bytes(PLANTED.tobytes())
    data = build().SerializeToString()
    if build is in_a_branch:
        assert run(data) == PLANTED.tolist()
    with pytest.raises(ValueError, match=f"^classifier.onnx .*{said}"):
        start_graph(data, 1)


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
    data = make([READ]).SerializeToString() + number(7 << 3 | 2) + number(len(graph)) + graph
    (tmp_path / "forged.onnx").write_bytes(data)
    assert run("forged.onnx") == PLANTED.tolist()
    with pytest.raises(ValueError, match="weights in another file|no ONNX graph"):
        start_graph(data, 1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (make([READ] * 50_000).SerializeToString(), "262,144 bytes beside weights"),
        (make([READ], [TensorProto()] * 2 * 10**5).SerializeToString(), "bytes beside weights"),
        (b"\x08\x01" * 10**5 * 2, "bytes beside weights"),
        *((torn, "no ONNX graph") for torn in (b"\x3a\xff", b"\x3a\x05\x00", b"\xff" * 20)),
    ],
    ids=["nodes", "tensors", "numbers", "size", "content", "number"],
)
def test_what_breaks_off_or_has_more_structure_than_weights_is_refused(data, said):
    with pytest.raises(ValueError, match=said):
        start_graph(data, 1)
