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
    for compute in (lambda: np.ones(3) @ np.ones(4), lambda: np.ones(3)[[7]]):
        with pytest.raises(BrokenModel, match="^model: a broken export"), computing("model"):
            compute()
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
    said = f"^model: a broken export .* another ONNX Runtime .{onnxruntime.__version__}"
    with pytest.raises(BrokenModel, match=said), computing("model"):
        onnxruntime.InferenceSession(b"junk")
