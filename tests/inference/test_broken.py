"""What is a fault of an export, and what is not."""

import numpy as np
import pytest

from resmlp_mt.errors import BrokenModel
from resmlp_mt.inference.engines.broken import computing
from resmlp_mt.inference.search.stopping import Stopped


@pytest.mark.parametrize(
    "error", [MemoryError(), Stopped(), TimeoutError(), RuntimeError("can't start new thread")]
)
def test_what_is_no_fault_of_the_export_is_raised_as_it_is(error):
    with pytest.raises(type(error)) as caught, computing("model"):
        raise error
    assert caught.value is error


def test_what_does_not_fit_is_a_fault_of_the_export():
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    for compute in (
        lambda: onnxruntime.InferenceSession(b"junk"),
        lambda: np.ones(3) @ np.ones(4),
        lambda: np.ones(3)[[7]],
    ):
        with pytest.raises(BrokenModel, match="^model: a broken export .*"), computing("model"):
            compute()
