"""What is a fault of an export, and what is not."""

import numpy as np
import pytest

from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.search.stopping import Stopped
from resmlp_mt.errors import BrokenModel


@pytest.mark.parametrize(
    "error", [MemoryError(), Stopped(), TimeoutError(), RuntimeError("can't start new thread")]
)
def test_what_is_no_fault_of_the_export_is_raised_as_it_is(error):
    with pytest.raises(type(error)) as caught, computing("model"):
        raise error
    assert caught.value is error


def test_what_does_not_fit_is_a_fault_of_the_export():
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for compute in (
        lambda: onnxruntime.InferenceSession(b"junk"),
        lambda: np.ones(3) @ np.ones(4),
        lambda: np.ones(3)[[7]],
    ):
        with pytest.raises(BrokenModel, match="^model: a broken export .*"), computing("model"):
            compute()


def test_what_onnxruntime_cannot_do_is_said_to_be_its_own():
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper = pytest.importorskip("onnx", reason="onnx is not installed").helper
    value = helper.make_tensor_value_info("x", 1, [3])
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "of_tomorrow", [value], [])
    graph.output.append(helper.make_tensor_value_info("y", 1, [3]))
    versions = [helper.make_opsetid("", 18)]
    tomorrow = helper.make_model(graph, opset_imports=versions, ir_version=999)
    today = helper.make_model(graph, opset_imports=versions, ir_version=10).SerializeToString()
    said = f"^model: ONNX Runtime {onnxruntime.__version__} cannot run this export .*999"
    with pytest.raises(BrokenModel, match=said), computing("model"):
        onnxruntime.InferenceSession(tomorrow.SerializeToString())
    with pytest.raises(BrokenModel, match="cannot run this export"), computing("model"):
        onnxruntime.InferenceSession(today).run(None, {"x": np.ones(4, np.float32)})
