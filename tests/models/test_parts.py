"""Norms and mixers by name. What they compute: tests/nn."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from resmlp_mt.models.parts import (
    GRID_MIXERS,
    MAP_MIXERS,
    MIXERS,
    NORMS,
    SEQUENCE_MIXERS,
    SEQUENCE_NORMS,
    build_mixer,
    build_norm,
)
from resmlp_mt.nn.map_mixers import AxisWeights


def test_every_mixer_is_offered_by_a_model_and_every_offer_is_in_the_table():
    assert set(SEQUENCE_MIXERS) | set(GRID_MIXERS) | set(MAP_MIXERS) == set(MIXERS)
    assert set(SEQUENCE_NORMS) <= set(NORMS)


@pytest.mark.parametrize("name", MIXERS)
def test_every_mixer_is_built_alike_and_keeps_the_shape(name):
    x = torch.randn(2, 8, 3, 4) if name in MAP_MIXERS else torch.randn(2, 12, 8)
    shared = AxisWeights(8, (3, 4), frozen=False)() if name == "adafc" else ()
    assert build_mixer(name, 8, (3, 4))(x, *shared).shape == x.shape
    with pytest.raises(TypeError, match="hedas"):
        build_mixer(name, 8, (3, 4), hedas=2)


def test_widths_and_kernels_are_options():
    assert build_mixer("mlp", 8, (3, 4)).fc1.weight.shape == (48, 12)
    assert build_mixer("mlp", 8, 12, hidden_positions=5).fc1.weight.shape == (5, 12)
    for name in ("conv3x3", "depthwise3x3", "separable3x3"):
        mixer = build_mixer(name, 8, (3, 4), kernel_size=5)
        assert mixer.spatial.weight.shape[2:] == (5, 5)
        assert mixer(torch.randn(2, 12, 8)).shape == (2, 12, 8)


def test_a_sequence_mixer_takes_a_grid_for_its_positions():
    for name in ("linear", "toeplitz"):
        shapes = [build_mixer(name, 8, place).matrix.weight.shape for place in (12, (3, 4))]
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_takes_its_eps(name):
    norm, x = build_norm(name, 6, eps=0.5), torch.randn(2, 6, 3, 4)
    if name == "affine":  # no statistics
        assert torch.equal(norm(x[..., 0, 0]), x[..., 0, 0])
    elif name == "layer":
        x = x[..., 0]
        mean, variance = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
        assert_close(norm(x.transpose(1, 2)).transpose(1, 2), (x - mean) / (variance + 0.5).sqrt())
    else:
        mean, variance = x.mean((1, 2, 3), True), x.var((1, 2, 3), correction=0, keepdim=True)
        assert_close(norm(x), (x - mean) / (variance + 0.5).sqrt())
    assert isinstance(build_norm("layer", 6), nn.LayerNorm) and build_norm("layer", 6).eps == 1e-5
