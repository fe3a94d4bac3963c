"""torch.nn.MultiheadAttention with the same weights is the judge."""

import pytest
import reference
import torch
from torch.testing import assert_close

from resmlp_mt.nn.attention import SourceAttention

B, S, T, C, M, H = 2, 7, 5, 16, 12, 4


@pytest.fixture
def attention(randomised):
    return randomised(SourceAttention(C, M, H, dropout=0.0))


@pytest.fixture
def twin(attention):
    """torch's, and its parameters in the order of ours."""
    twin = torch.nn.MultiheadAttention(C, H, kdim=M, vdim=M, batch_first=True).double()
    parts = attention.query, attention.key, attention.value
    with torch.no_grad():
        for name, part in zip("qkv", parts, strict=True):
            getattr(twin, f"{name}_proj_weight").copy_(part.weight)
        twin.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    twin.out_proj.load_state_dict(attention.out.state_dict())
    return twin


@pytest.fixture
def inputs():
    shapes = (B, T, C), (B, S, M)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


MASK = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])


@pytest.mark.parametrize("mask", [None, MASK], ids=["all-seen", "padded"])
def test_attention_equals_that_of_torch_in_outputs_weights_and_gradients(
    attention, twin, inputs, mask
):
    x, memory = inputs
    noise, linear = torch.randn_like(x), [attention.query, attention.key, attention.value]
    ours = [*inputs, *(p.weight for p in linear), *(p.bias for p in linear)]
    ours += [attention.out.weight, attention.out.bias]
    y, *grads = reference.outputs_and_gradients(attention(x, memory, mask), noise, *ours)
    grads[5:8] = [torch.cat(grads[5:8])]

    theirs = [*inputs, twin.q_proj_weight, twin.k_proj_weight, twin.v_proj_weight]
    theirs += [twin.in_proj_bias, twin.out_proj.weight, twin.out_proj.bias]
    expected, weights = twin(x, memory, memory, key_padding_mask=mask)
    expected = reference.outputs_and_gradients(expected, noise, *theirs)
    assert_close([y, *grads], expected)  # float64: only the order of the sums differs

    shown = attention.weights(x, memory, mask)
    assert_close(shown.double(), weights, rtol=1e-5, atol=1e-6)  # shown in float32
    assert_close(shown.sum(-1), torch.ones(B, T))


def test_state_keeps_the_keys_and_values_of_the_memory(attention, inputs):
    x, memory = inputs
    full, state = attention(x, memory, MASK), {}
    for t in range(T):
        # From the second step on the memory is not read again.
        step = attention(x[:, t : t + 1], memory if t == 0 else None, MASK, state)
        assert_close(step, full[:, t : t + 1])
    assert all(tensor.size(0) == B for tensor in state.values())


def test_heads_must_divide_the_channels():
    with pytest.raises(ValueError, match=r"3 attention heads.*16 channels"):
        SourceAttention(16, 16, 3, dropout=0.0)


def test_rows_of_one_sentence_share_its_memory(attention, inputs):
    x, memory = inputs
    rows = torch.randn(B * 3, T, C, dtype=torch.float64)
    expanded = memory.repeat_interleave(3, 0), MASK.repeat_interleave(3, 0)
    assert_close(attention(rows, memory, MASK), attention(rows, *expanded))
    assert_close(attention.weights(rows, memory, MASK), attention.weights(rows, *expanded))


def test_weights_drop_in_a_search_where_that_is_asked_for(inputs):
    x, memory = inputs
    attention = SourceAttention(C, M, H, dropout=0.5).double()
    attention.make_generation_fast_("decoder.blocks.0.attend", retain_dropout=True)
    attention.eval()
    assert not torch.equal(attention(x, memory, MASK, {}), attention(x, memory, MASK, {}))
