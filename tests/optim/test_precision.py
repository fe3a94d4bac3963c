"""Optimizers with weights of 16 bits."""

import contextlib

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FP16Optimizer

from resmlp_mt.errors import UserError


def configure(*flags):
    parser = options.get_training_parser()
    words = ["data", "--arch", "resmlp_tiny", "--lr", "0.1", *flags]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))


@pytest.mark.parametrize("name", ["adagrad", "lamb", "muon"])
def test_weights_stay_apart_for_optimizers_that_take_no_joined_ones(name):
    cfg = configure("--fp16", "--optimizer", name)
    weights = [torch.ones(shape).half().requires_grad_() for shape in ((3, 2), (4,))]
    weights[0].param_group = "map"  # as a task marks it for Muon
    optimizer = FP16Optimizer.build_optimizer(cfg, weights)
    assert cfg.common.fp16_no_flatten_grads
    optimizer.backward(sum(weight.float().square().sum() for weight in weights))
    optimizer.step()
    for weight in weights:
        assert weight.dtype == torch.half and (weight < 1).all()


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_weights_are_joined_for_optimizers_that_take_them_so(name):
    cfg = configure("--fp16", "--optimizer", name)
    with contextlib.suppress(AssertionError):  # fairseq joins them on a GPU alone
        FP16Optimizer.build_optimizer(cfg, [torch.ones(3).half().requires_grad_()])
    assert not cfg.common.fp16_no_flatten_grads


@pytest.mark.parametrize("flag", ["--memory-efficient-fp16", "--memory-efficient-bf16"])
@pytest.mark.parametrize("name", ["adagrad", "lamb", "muon", "adamw"])
def test_an_optimizer_that_needs_fp32_weights_is_refused_without_them(name, flag):
    said = f"--optimizer {name} .* {flag} .* --{flag[-4:]}, or --optimizer adam"
    with pytest.raises(UserError, match=said):
        configure(flag, "--optimizer", name)
