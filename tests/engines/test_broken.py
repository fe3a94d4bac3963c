"""The faults of an export, and others."""

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
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
    for compute in (
        lambda: onnxruntime.InferenceSession(b"junk"),
        lambda: np.ones(3) @ np.ones(4),
        lambda: np.ones(3)[[7]],
    ):
        with pytest.raises(BrokenModel, match="^model: a broken export"), computing("model"):
            compute()


def test_what_onnxruntime_cannot_do_is_said_to_be_its_own():
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
    helper = pytest.importorskip("onnx", reason="the extra [export] is not installed").helper
    x, y = (helper.make_tensor_value_info(name, 1, [3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "of_tomorrow", [x], [y])
    tomorrow = helper.make_model(graph, ir_version=999).SerializeToString()
    said = f"^model: a broken export .*999.*another ONNX Runtime .{onnxruntime.__version__}"
    with pytest.raises(BrokenModel, match=said), computing("model"):
        onnxruntime.InferenceSession(tomorrow)
