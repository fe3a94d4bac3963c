"""What ONNX Runtime reads by its address lives as long as it is read.

From 1.30 on a binding holds what it was given. Before, nothing does but the caller.
"""

import gc
import weakref

import pytest
from PIL import Image

from resmlp_mt import Classifier, Translator
from resmlp_mt.export.writer import export_model


@pytest.fixture
def onnxruntime(monkeypatch):
    monkeypatch.setenv("RESMLP_CPU_ISA", "none")
    return pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def test_what_a_step_is_bound_to_outlives_its_run(onnxruntime, tmp_path, monkeypatch):
    bound, runs = {}, []

    def binding_of_old(side):
        def bind(binding, name, value):
            bound[side, name] = weakref.ref(value)
            getattr(binding._iobinding, f"bind_ortvalue_{side}")(name, value._ortvalue)

        return bind

    for side in ("input", "output"):
        monkeypatch.setattr(onnxruntime.IOBinding, f"bind_ortvalue_{side}", binding_of_old(side))
    compute = onnxruntime.InferenceSession.run_with_iobinding

    def run(session, binding, *options):
        gc.collect()
        runs.append([name for name, value in bound.items() if value() is None])
        assert not runs[-1]
        compute(session, binding, *options)

    monkeypatch.setattr(onnxruntime.InferenceSession, "run_with_iobinding", run)
    export_model("multi30k-en-de", tmp_path / "fast", int8=True)
    translator = Translator.from_pretrained(tmp_path / "fast", threads=1)
    assert translator.translate(["A man rides a bike. Two dogs play in the snow.", "A car."])
    assert len(runs) > 5


@pytest.mark.parametrize("name", ["multi30k-en-de", "cifar10"])
def test_weights_beside_a_graph_outlive_its_session(name, onnxruntime, tmp_path, monkeypatch):
    made, make = [], onnxruntime.OrtValue.ortvalue_from_numpy

    def remember(array, *where):
        made.extend(map(weakref.ref, [array, value := make(array, *where)]))
        return value

    export_model(name, tmp_path / "fast", int8=True)
    monkeypatch.setattr(onnxruntime.OrtValue, "ortvalue_from_numpy", remember)
    loaded = (Classifier if name == "cifar10" else Translator).from_pretrained(tmp_path / "fast")
    gc.collect()
    assert made and all(of_it() is not None for of_it in made)
    if name == "cifar10":
        assert loaded.scores([Image.new("RGB", (32, 32))]).shape == (1, 10)
