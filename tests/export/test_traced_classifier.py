"""Classifiers without folds, as torch's exporter writes them for ONNX Runtime."""

import numpy as np
import pytest
import torch
from export.classifiers import MEAN, STD, build
from models.test_families import FAMILIES
from torch import nn
from torch.testing import assert_close

from resmlp_mt.data.augment import Normalise
from resmlp_mt.engines.onnx_graph import start_graph
from resmlp_mt.errors import UserError
from resmlp_mt.export.folded_classifier import can_fold
from resmlp_mt.models.presets import IMAGE_PRESETS
from resmlp_mt.nn.patches import PatchEmbedding
from resmlp_mt.nn.standardised import StandardisedConv

pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
onnx = pytest.importorskip("onnx", reason="the extra [export] is not installed")

from resmlp_mt.export.traced_classifier import trace_classifier  # noqa: E402

# What 8 bits may change. Without VNNI, ONNX Runtime's sums of two products overflow in 16 bits.
ROUNDING = 0.2 if torch.cpu._is_vnni_supported() else 0.8


def build_transformer(randomised) -> nn.Module:
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    pool = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 7))
    return randomised(nn.Sequential(PatchEmbedding(3, 12, 4), encoder, pool)).float().eval()


@pytest.mark.parametrize("name", ["none", "mlp", "separable3x3", "transformer", *FAMILIES[1:]])
def test_a_classifier_without_a_fold_is_exported_as_it_is(name, randomised, capfd):
    flags = dict(preset=name) if name in IMAGE_PRESETS else dict(token_mixer=name)
    stranger = name == "transformer"
    model = build_transformer(randomised) if stranger else build(randomised, **flags)
    assert not can_fold(model)
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    with torch.no_grad():
        expected = model(Normalise(MEAN, STD)(pixels))
    for int8, error in ((False, 1e-4), (True, ROUNDING)):
        compute = start_graph(trace_classifier(model, MEAN, STD, 16, int8), threads=1)
        for batch in (pixels, pixels[:1]):
            found = torch.from_numpy(compute(batch.numpy()))
            assert_close(found, expected[: len(batch)], rtol=error, atol=error)
    assert capfd.readouterr() == ("", "")


def test_standardised_weights_are_constants_of_the_graph():
    conv = StandardisedConv(3, 4, 3)
    model = nn.Sequential(conv, nn.Flatten(), nn.Linear(4 * 14 * 14, 7))
    graph = onnx.load_from_string(trace_classifier(model, MEAN, STD, 16, False)).graph
    (node,) = (node for node in graph.node if node.op_type == "Conv")
    weights = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}
    flat = weights[node.input[1]].reshape(4, -1)
    assert np.allclose(flat.mean(1), 0, atol=1e-5) and np.allclose(flat.std(1), 1, atol=1e-5)
    shapes = [weight.shape for weight in weights.values()]
    assert shapes.count((4, 3, 3, 3)) == 1  # what it was made of is left out


def test_what_a_graph_cannot_follow_is_refused():
    class Unknown(nn.Module):
        def forward(self, images):
            return torch.linalg.eigvals(images.mean(1)).real

    class Fixed(nn.Module):
        def forward(self, images):
            return images.flatten().view(len(images), -1)

    for model in (Unknown(), Fixed()):
        with pytest.raises(UserError, match=f"torch cannot export a {type(model).__name__}"):
            trace_classifier(model, MEAN, STD, 16, False)
