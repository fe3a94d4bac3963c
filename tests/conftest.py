"""Fixtures of all tests: a seed, dictionaries, and tiny models of any preset."""

import logging
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from hypothesis import HealthCheck, settings

from resmlp_mt.models.translation import ResMLPModel

# A busy machine may take its time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Importing fairseq here, before the package, has set it to DEBUG.
logging.getLogger().setLevel(logging.INFO)

# All different, so that no axis can stand for another.
SIZES = dict(
    encoder_embed_dim=16,
    encoder_ffn_embed_dim=20,
    encoder_layers=2,
    decoder_embed_dim=24,
    decoder_ffn_embed_dim=28,
    decoder_layers=3,
    max_source_positions=11,
    max_target_positions=9,
    dropout=0.0,
)


def pytest_collection_modifyitems(items):
    # The longest test first: begun last, it would run on while the other workers have nothing left.
    items.sort(key=lambda item: "test_quickstart" not in item.nodeid)


@pytest.fixture(scope="session")
def timm():
    """timm, where it can be imported: torchvision must fit the torch that is installed."""
    try:
        import timm
    except Exception as error:  # torchvision's are of any kind
        pytest.skip(f"timm cannot be imported: {error}")
    return timm


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


@pytest.fixture(scope="session")
def dictionary():
    """dictionary(size): that many symbols, the four special ones among them."""

    def make(size: int) -> Dictionary:
        symbols = Dictionary()
        for i in range(size - len(symbols)):
            symbols.add_symbol(f"word{i}")
        return symbols

    return make


@pytest.fixture(scope="session")
def task(dictionary):
    """task(): what a model asks of its task, with dictionaries of 17 and 19 symbols."""

    def make(joined=False, left_pad_target=False) -> SimpleNamespace:
        return SimpleNamespace(
            source_dictionary=dictionary(17),
            target_dictionary=dictionary(17 if joined else 19),
            cfg=SimpleNamespace(left_pad_target=left_pad_target),
        )

    return make


@pytest.fixture(scope="session")
def randomised():
    """randomised(module): in float64, no parameter zero, one or equal to another, as if trained."""

    def randomise(module: torch.nn.Module) -> torch.nn.Module:
        module.double()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return module

    return randomise


@pytest.fixture(scope="session")
def kept_by():
    """kept_by(model, compute): train once by compute(model); how many numbers the graph keeps."""

    def train(model: torch.nn.Module, compute: Callable) -> int:
        numbers = []

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            numbers.append(tensor.numel())
            return tensor

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = compute(model.train()).square().sum()
        loss.backward()
        return sum(numbers)

    return train


@pytest.fixture(scope="session")
def build_model(task, randomised):
    """build_model(preset, **flags): the preset at the sizes above, randomised, in eval mode."""

    def build(preset="resmlp_wmt_en_de", task=task(), fresh=False, **flags) -> ResMLPModel:  # noqa: B008
        cfg = SimpleNamespace(**SIZES | flags)
        ARCH_CONFIG_REGISTRY[preset](cfg)
        model = ResMLPModel.build_model(cfg, task)
        return (model if fresh else randomised(model)).eval()

    return build
