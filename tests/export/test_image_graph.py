"""Folded classifiers in ONNX Runtime against the models that they were made of."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch.testing import assert_close

from resmlp_mt.data.augment import Normalise
from resmlp_mt.errors import UserError
from resmlp_mt.models.image_classification import ResMLPImageModel

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")

from resmlp_mt.export.image_graph import build_classifier  # noqa: E402
from resmlp_mt.inference.onnx_search import start  # noqa: E402

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]


def build(randomised, **flags):
    cfg = SimpleNamespace(layers=3, embed_dim=12, patch_size=4, ffn_embed_dim=20, **flags)
    ARCH_CONFIG_REGISTRY["resmlp_cifar"](cfg)
    model = ResMLPImageModel(cfg, 3, 16, torch.nn.Linear(12, 7))
    return randomised(model).float().eval()


def logits(model, pixels, int8=False):
    session = start(build_classifier(model, MEAN, STD, int8), threads=1)
    return torch.from_numpy(session.run(["logits"], {"pixels": pixels.numpy()})[0])


@pytest.mark.parametrize("pooling", ["average", "class-mlp"])
@pytest.mark.parametrize("norm", ["affine", "layer"])
def test_the_graph_of_a_classifier_gives_its_logits(norm, pooling, randomised):
    model = build(randomised, norm=norm, pooling=pooling)
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    with torch.no_grad():
        expected = model(Normalise(MEAN, STD)(pixels))
    assert_close(logits(model, pixels), expected, rtol=1e-4, atol=1e-4)
    assert_close(logits(model, pixels[:1]), expected[:1], rtol=1e-4, atol=1e-4)
    near = logits(model, pixels, int8=True)
    error = (near - expected).abs().max() / expected.abs().max()
    assert 0 < error < 0.1


@pytest.mark.parametrize("mixer", ["none", "mlp", "depthwise3x3"])
def test_other_mixers_are_refused(mixer, randomised):
    with pytest.raises(UserError, match="--token-mixer linear"):
        build_classifier(build(randomised, token_mixer=mixer), MEAN, STD, False)


def test_int8_weights_have_a_scale_for_each_output(randomised):
    model = build(randomised)
    with torch.no_grad():
        model.head.weight *= torch.logspace(-3, 0, 7)[:, None]
        model.head.bias.zero_()
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    exact, near = logits(model, pixels), logits(model, pixels, int8=True)
    relative = (near - exact).abs().amax(0) / exact.abs().amax(0)
    assert np.all(relative.numpy() < 0.1)
