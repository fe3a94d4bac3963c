"""Folded layers compute what the layers do. float64: only the order of the sums differs."""

import parts
import pytest
import torch
from torch.testing import assert_close

from resmlp_mt.models.parts import SEQUENCE_MIXERS, SEQUENCE_NORMS
from resmlp_mt.nn.fold import (
    fold_channels,
    fold_mixer,
    fold_product,
    has_offset,
    normalise,
    split_norm,
)
from resmlp_mt.nn.grid_mixers import PatchMLP
from resmlp_mt.nn.norm import Affine

B, L, C, N, H = 3, 7, 16, 9, 4

every_norm = pytest.mark.parametrize("norm", SEQUENCE_NORMS)


def build(randomised, mixer, norm, causal=False):
    if causal:
        return randomised(parts.decoder_block(mixer, norm, C, C, N, H))
    return randomised(parts.encoder_block(mixer, norm, C, N, H))


@every_norm
@pytest.mark.parametrize("causal", [False, True], ids=["both-ways", "causal"])
@pytest.mark.parametrize("name", SEQUENCE_MIXERS)
def test_a_folded_mixer_is_norm_mixer_and_scale(name, causal, norm, randomised):
    block, x = build(randomised, name, norm, causal), torch.randn(B, L, C, dtype=torch.float64)
    mask = torch.arange(L) >= torch.tensor([[7], [4], [1]])
    folded = fold_mixer(block.mix_tokens, block.norm_1, block.scale_1.gamma)
    core = normalise(x, split_norm(block.norm_1)[0])

    value = folded.value(core) if folded.value else core
    rows, bias = folded.matrix(0, L)
    by_head = value.masked_fill(mask[..., None], 0).unflatten(-1, (H, -1))
    y = torch.einsum("hij,bjhc->bihc", rows, by_head).flatten(-2) * folded.scale
    sums = torch.einsum("hij,bj->bih", rows, (~mask).double())
    y = y + sums.repeat_interleave(C // H, -1) * folded.shift
    if bias is not None:
        y = y + bias.t().repeat_interleave(C // H, -1) * folded.bias_scale
    assert has_offset(folded) == (bias is not None or not folded.shift.eq(0).all())
    if folded.gate:
        gate = folded.gate(core)
        y = (gate.sigmoid() if folded.out else gate) * y
    if folded.out:
        y = folded.out(y)

    unfolded = block.scale_1(block.mix_tokens(block.norm_1(x), mask))
    real = ~mask[..., None].expand_as(y)
    assert_close(y[real], unfolded[real])


@every_norm
def test_the_folded_channel_mlp_is_norm_mlp_and_scale(norm, randomised):
    block, x = build(randomised, "linear", norm), torch.randn(B, L, C, dtype=torch.float64)
    first, second = fold_channels(block)
    hidden = torch.nn.functional.gelu(first(normalise(x, split_norm(block.norm_2)[0])))
    assert_close(second(hidden), block.scale_2(block.mix_channels(block.norm_2(x))))


def test_a_product_without_bias_gets_the_norms(randomised):
    norm, linear = randomised(Affine(C)), randomised(torch.nn.Linear(C, 5, bias=False))
    x = torch.randn(B, C, dtype=torch.float64)
    assert_close(fold_product(linear, norm)(x), linear(norm(x)))


def test_other_mixers_are_refused():
    with pytest.raises(TypeError, match="PatchMLP"):
        fold_mixer(PatchMLP(N, 5), Affine(C), torch.ones(C))
