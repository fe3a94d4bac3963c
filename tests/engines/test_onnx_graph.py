"""Graphs that reach for more than what is in them."""

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
onnx = pytest.importorskip("onnx", reason="the extra [export] is not installed")

from google.protobuf.internal.encoder import _VarintBytes as number  # noqa: E402
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper  # noqa: E402

from resmlp_mt.engines.onnx_graph import start_graph  # noqa: E402

PLANTED = np.array([3, 1, 4, 1], np.float32)
READ = helper.make_node("Max", ["x", "w"], ["y"])
# A tensor whose values are in the file `planted`.
EXTERNAL = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
EXTERNAL.data_location = TensorProto.EXTERNAL
EXTERNAL.external_data.add(key="location", value="planted")
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])


def make(nodes, initializers=()) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "main", [x], [Y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def in_a_branch() -> ModelProto:
    graph = helper.make_graph([READ], "branch", [], [Y], [EXTERNAL])
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    return make([node], [numpy_helper.from_array(np.array(True), "c")])


CONSTANT = helper.make_node("Constant", [], ["w"], value=EXTERNAL)
READERS = {
    "initializer": (make([READ], [EXTERNAL]), "weights in another file"),
    "attribute": (make([CONSTANT, READ]), "weights in another file"),
    "branch": (in_a_branch(), "a graph within the graph"),
    "function": (ModelProto(functions=[onnx.FunctionProto(node=[CONSTANT])]), "a function"),
    "sparse": (
        ModelProto(graph=GraphProto(sparse_initializer=[onnx.SparseTensorProto(values=EXTERNAL)])),
        "a sparse tensor",
    ),
    "format": (ModelProto(ir_version=10, producer_name="ORTM"), "format of ONNX Runtime"),
}


def run(model) -> list[float]:
    """The output of ONNX Runtime for a model, or for the name of its file."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": np.zeros(4, np.float32)})[0].tolist()


@pytest.mark.parametrize(("model", "said"), READERS.values(), ids=READERS)
def test_a_graph_that_reads_another_file_is_refused(model, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted").write_bytes(PLANTED.tobytes())
    if model is READERS["branch"][0]:
        assert run(model.SerializeToString()) == PLANTED.tolist()
    with pytest.raises(ValueError, match=f"^classifier.onnx .*{said}"):
        start_graph(model.SerializeToString(), 1)


def test_a_field_with_a_number_that_others_cut_off_hides_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted").write_bytes(PLANTED.tobytes())
    place = EXTERNAL.external_data[0].SerializeToString()
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]).SerializeToString()
    # Fields 13 and 14, external_data and data_location, with a bit above those that count.
    weight += number(13 << 3 | 2 | 1 << 32) + number(len(place)) + place
    weight += number(14 << 3 | 1 << 32) + number(TensorProto.EXTERNAL)
    graph = number(5 << 3 | 2) + number(len(weight)) + weight
    data = make([READ]).SerializeToString() + number(7 << 3 | 2) + number(len(graph)) + graph
    (tmp_path / "forged.onnx").write_bytes(data)
    assert run("forged.onnx") == PLANTED.tolist()
    with pytest.raises(ValueError, match="not an ONNX graph"):
        start_graph(data, 1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (make([READ] * 50_000).SerializeToString(), "262,144 bytes beside weights"),
        (make([READ], [TensorProto()] * 2 * 10**5).SerializeToString(), "bytes beside weights"),
        (b"\x08\x01" * 10**5 * 2, "bytes beside weights"),
        *((torn, "breaks off|64 bits|not an ONNX") for torn in (b"\x3a\xff", b"\x3a\x05\x00")),
        *((torn, "breaks off|64 bits|not an ONNX") for torn in (b"\xff" * 20, b"\x0b\x0c")),
    ],
    ids=["nodes", "tensors", "numbers", "size", "content", "number", "kind"],
)
def test_what_breaks_off_or_has_more_structure_than_weights_is_refused(data, said):
    with pytest.raises(ValueError, match=said):
        start_graph(data, 1)
