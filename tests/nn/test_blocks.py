"""float64 with assert_close's defaults (1e-7): only the order of the sums differs."""

from functools import partial

import parts
import pytest
import reference
import torch
from torch import nn
from torch.testing import assert_close

from resmlp_mt.models.parts import SEQUENCE_MIXERS, SEQUENCE_NORMS, build_norm
from resmlp_mt.nn.blocks import ChannelMLP, DropPath, ResMLPBlock
from resmlp_mt.nn.norm import LayerScale

B, S, T, C, M, N = 2, 7, 5, 16, 12, 9
MASK = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])

every_mixer = pytest.mark.parametrize("name", SEQUENCE_MIXERS)
every_norm = pytest.mark.parametrize("norm", SEQUENCE_NORMS)


@pytest.fixture
def encoder_block(randomised):
    def build(name="linear", norm="affine", **drops):
        return randomised(parts.encoder_block(name, norm, C, N, 2, **drops))

    return build


@pytest.fixture
def decoder_block(randomised):
    def build(name="linear", norm="affine", **drops):
        return randomised(parts.decoder_block(name, norm, C, M, N, 2, **drops))

    return build


def features(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@every_mixer
@every_norm
def test_the_block_equals_its_naive_twin_in_outputs_and_gradients(name, norm, encoder_block):
    block, x = encoder_block(name, norm), features(B, S, C)
    noise, inputs = torch.randn_like(x), [x, *block.parameters()]

    def mix_tokens(x, mask):
        return reference.mix(name, block.mix_tokens, x, False, N, mask)

    got = reference.outputs_and_gradients(block(x, MASK), noise, *inputs)
    naive = reference.encoder_block(block, x, norm, mix_tokens, MASK)
    assert_close(got, reference.outputs_and_gradients(naive, noise, *inputs))


@every_mixer
@every_norm
def test_the_decoder_block_equals_its_naive_twin_in_outputs_weights_and_gradients(
    name, norm, decoder_block
):
    block, x, memory = decoder_block(name, norm), features(B, T, C), features(B, S, M)
    noise, inputs = torch.randn_like(x), [x, memory, *block.parameters()]

    def mix_tokens(x, mask):
        return reference.mix(name, block.mix_tokens, x, True, N, mask)

    got = reference.outputs_and_gradients(block(x, memory, MASK), noise, *inputs)
    naive, weights = reference.decoder_block(block, x, memory, norm, mix_tokens, MASK)
    assert_close(got, reference.outputs_and_gradients(naive, noise, *inputs))

    shown = block.source_weights(x, memory, MASK)
    assert_close(shown.double(), weights, rtol=1e-5, atol=1e-6)  # shown in float32
    assert_close(shown.sum(-1), torch.ones(B, T))


@every_mixer
def test_the_decoder_block_in_steps_equals_its_full_pass(name, decoder_block):
    block, x, memory = decoder_block(name), features(B, T, C), features(B, S, M)
    state = block.start()
    full, weights = block(x, memory, MASK), block.source_weights(x, memory, MASK)
    for t in range(T):
        step, before = x[:, t : t + 1], {name: dict(part) for name, part in state.items()}
        shown = block.source_weights(step, memory, MASK, state)
        for name, part in before.items():
            assert state[name].keys() == part.keys()
            assert all(state[name][key] is tensor for key, tensor in part.items())
        assert_close(shown, weights[:, t : t + 1])  # assert_close's defaults for float32
        assert_close(block(step, memory, MASK, state), full[:, t : t + 1])


@every_mixer
@every_norm
def test_layer_scale_zero_makes_a_block_the_identity(name, norm, encoder_block, decoder_block):
    x, memory = features(B, S, C), features(B, S, M)
    blocks = encoder_block(name, norm), decoder_block(name, norm)
    with torch.no_grad():
        for block in blocks:
            for scale in {"scale_1", "scale_c", "scale_2"} & dict(block.named_children()).keys():
                getattr(block, scale).gamma.zero_()
    assert torch.equal(blocks[0](x, MASK), x)
    assert torch.equal(blocks[1](x, memory, MASK), x)


def test_dropout_acts_on_each_residual_in_training_only(encoder_block, decoder_block):
    x, memory = features(B, S, C), features(B, S, M)
    for build, inputs in (encoder_block, (x, MASK)), (decoder_block, (x, memory, MASK)):
        # All dropped: nothing but the residual connection is left.
        assert torch.equal(build(drop=nn.Dropout(1.0)).train()(*inputs), x)
        block = build(drop=nn.Dropout(0.5))
        assert not torch.equal(block.train()(*inputs), block(*inputs))
        assert torch.equal(block.eval()(*inputs), block(*inputs))


def test_activation_dropout_acts_on_hidden_activations_in_training_only(
    encoder_block, decoder_block
):
    x = features(B, S, C)
    for build in encoder_block, decoder_block:
        mlp = build(activation_dropout=1.0).train().mix_channels
        # All dropped: nothing but the last bias is left.
        assert torch.equal(mlp(x), mlp.fc2.bias.expand_as(x))
        assert_close(mlp.eval()(x), reference.mix_channels(mlp, x))


def test_attention_dropout_acts_on_attention_weights_in_training_only(decoder_block):
    x, memory = features(1, 400, C), features(1, S, M)
    attention = decoder_block(attention_dropout=0.5).attend.train()
    full = reference.attend(attention.eval(), x[:, :T], memory)[0]
    assert_close(attention(x[:, :T], memory), full)
    # One memory position, seen with weight 1: kept (and doubled) or dropped, head by head.
    memory, width = memory[:, :1], C // 4
    with torch.no_grad():
        attention.out.weight.copy_(torch.eye(C))
        attention.out.bias.zero_()
    kept = attention.train()(x, memory) / attention.value(memory)
    heads = kept.unflatten(-1, (4, width))
    assert_close(heads, heads[..., :1].expand_as(heads))
    assert set(heads.round(decimals=6).unique().tolist()) == {0.0, 2.0}
    assert 0.4 < heads[..., 0].count_nonzero() / heads[..., 0].numel() < 0.6  # 1600 coins: 8 sigma


def test_drop_path_leaves_whole_samples_out_and_keeps_the_expectation():
    drop, x = DropPath(0.3), torch.ones(20_000, 2, 3)
    y = drop(x)
    kept = y[:, 0, 0] != 0
    assert torch.equal(y, x * kept.view(-1, 1, 1) / 0.7)
    # Five standard deviations of a mean of 20,000 draws.
    assert abs(kept.float().mean() - 0.7) < 5 * (0.3 * 0.7 / 20_000) ** 0.5
    assert torch.equal(drop.eval()(x), x)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_drop_path_rate_that_is_no_probability_is_refused(rate):
    with pytest.raises(ValueError, match=str(rate)):
        DropPath(rate)


def test_a_block_drops_each_of_its_two_paths_for_itself(encoder_block):
    block, x = encoder_block(drop=DropPath(0.5)), features(200, S, C)
    kept = block.train()(x)
    with torch.no_grad():
        mixed = block.scale_1(block.mix_tokens(block.norm_1(x)))
    outcomes = set()
    for b in range(200):
        for tokens in (0, 1):
            y = x[b : b + 1] + 2 * tokens * mixed[b : b + 1]
            for channels in (0, 1):
                z = y + 2 * channels * block.scale_2(block.mix_channels(block.norm_2(y)))
                if torch.allclose(kept[b], z[0]):
                    outcomes.add((tokens, channels))
    assert outcomes == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_block_works_on_pictures_with_parts_that_do(randomised):
    conv = partial(nn.Conv2d, kernel_size=1)
    pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
    block = randomised(
        ResMLPBlock(
            norm_1=build_norm("group", C, eps=0.1),
            mix_tokens=pool,
            scale_1=LayerScale(C, 0.2, trailing=2),
            norm_2=nn.Identity(),
            mix_channels=ChannelMLP(C, 20, linear=conv),
            scale_2=nn.Identity(),
            drop=DropPath(0.5),
        )
    )
    x = torch.randn(200, C, 3, 4, dtype=torch.float64)
    y = block.eval()(x)
    mean, variance = x.mean((1, 2, 3), keepdim=True), x.var((1, 2, 3), False, keepdim=True)
    alpha, beta, gamma = (
        p[:, None, None] for p in (block.norm_1.weight, block.norm_1.bias, block.scale_1.gamma)
    )
    pooled = pool(alpha * (x - mean) / (variance + 0.1).sqrt() + beta)
    z = x + gamma * pooled
    layers = (
        (layer.weight[:, :, 0, 0], layer.bias)
        for layer in (block.mix_channels.fc1, block.mix_channels.fc2)
    )
    (w1, b1), (w2, b2) = layers
    hidden = nn.functional.gelu(z.movedim(1, -1) @ w1.t() + b1)
    assert_close(y, z + (hidden @ w2.t() + b2).movedim(-1, 1))
    # Whole pictures are left out: where both lines are, nothing happened.
    kept = block.train()(x)
    alike = (kept == x).flatten(1)
    assert set(alike.all(1).tolist()) == {True, False}
    assert torch.equal(alike.any(1), alike.all(1))
