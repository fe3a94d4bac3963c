"""Small classifiers to export."""

from types import SimpleNamespace

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from models.test_families import sizes
from torch import nn

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]


def build(randomised, preset="resmlp_cifar", **flags):
    cfg = SimpleNamespace(ffn_embed_dim=20, **sizes(preset, layers=3), **flags)
    ARCH_CONFIG_REGISTRY[preset](cfg)
    task = SimpleNamespace(in_chans=3, image_size=16, build_head=lambda dim: nn.Linear(dim, 7))
    model = ARCH_MODEL_REGISTRY[preset].build_model(cfg, task)
    return randomised(model).float().eval()
