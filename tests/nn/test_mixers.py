"""float64 with assert_close's defaults (1e-7): only the order of the sums differs."""

import pytest
import reference
import torch
from torch.testing import assert_close

from resmlp_mt.models.parts import SEQUENCE_MIXERS, build_mixer
from resmlp_mt.nn.mixers import FreeMatrix, LinearMixer, ToeplitzMatrix

B, N, C = 3, 64, 8
STD = 0.02

every_mixer = pytest.mark.parametrize("name", SEQUENCE_MIXERS)
every_direction = pytest.mark.parametrize("causal", [False, True], ids=["both-ways", "causal"])


@pytest.fixture
def build(randomised):
    def build(name, causal, heads=2, positions=N):
        return randomised(build_mixer(name, C, positions, heads=heads, causal=causal))

    return build


def features(length, batch=B):
    return torch.randn(batch, length, C, dtype=torch.float64, requires_grad=True)


def test_the_naive_mixer_is_right_on_two_by_two():
    x = torch.tensor([[[10.0], [1.0]]], requires_grad=True)
    weight = torch.tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    bias = torch.tensor([[0.5, 0.25]], requires_grad=True)
    y = reference.LinearMix.apply(x, weight, bias, "free", False, 2)
    assert y.flatten().tolist() == [12.5, 34.25]
    y.backward(torch.tensor([[[1.0], [100.0]]]))
    assert x.grad.flatten().tolist() == [301, 402]
    assert weight.grad.tolist() == [[10, 1, 1000, 100]]
    assert bias.grad.tolist() == [[1, 100]]
    toeplitz = torch.tensor([[1.0, 2.0, 3.0]])  # distances -1, 0, 1
    y = reference.LinearMix.apply(x, toeplitz, 0 * bias, "toeplitz", False, 2)
    assert y.flatten().tolist() == [21, 32]


@every_mixer
@every_direction
@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 2, 7, 63])
def test_a_mixer_equals_its_naive_twin_in_outputs_and_gradients(name, causal, heads, length, build):
    mixer, x = build(name, causal, heads), features(length)
    noise, inputs = torch.randn_like(x), [x, *mixer.parameters()]
    got = reference.outputs_and_gradients(mixer(x), noise, *inputs)
    naive = reference.mix(name, mixer, x, causal, N)
    assert_close(got, reference.outputs_and_gradients(naive, noise, *inputs))


@every_mixer
def test_a_causal_output_ignores_later_inputs_in_value_and_gradient(name, build):
    mixer, x = build(name, causal=True), features(7)
    y = mixer(x)
    for t in range(7):
        changed = x.detach().clone()
        changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
        assert torch.equal(mixer(changed)[:, : t + 1], y[:, : t + 1])
        (grad,) = torch.autograd.grad(y[:, t].sum(), x, retain_graph=True)
        assert not grad[:, t + 1 :].any()
        assert grad[:, : t + 1].all()


def test_a_causal_free_matrix_has_no_gradient_above_the_diagonal(build):
    mixer = build("linear", causal=True)
    mixer(features(N)).square().sum().backward()
    grad = mixer.matrix.weight.grad
    assert not grad.triu(1).any()
    assert torch.equal(grad != 0, torch.ones_like(grad).tril() != 0)


@every_mixer
def test_pads_neither_influence_words_nor_get_gradients(name, build):
    mixer, x = build(name, causal=False), features(7)
    lengths = torch.tensor([7, 4, 1])
    mask = torch.arange(7) >= lengths.unsqueeze(1)
    y = mixer(x, mask)
    changed = torch.where(mask.unsqueeze(-1), torch.randn_like(x), x)
    assert torch.equal(mixer(changed, mask)[~mask], y[~mask])
    for i, length in enumerate(lengths):
        assert_close(mixer(x[i : i + 1, :length])[0], y[i, :length])
    (grad,) = torch.autograd.grad(y[~mask].square().sum(), x)
    assert not grad[mask].any()
    assert grad[~mask].all()


@every_mixer
@every_direction
def test_shorter_input_takes_the_submatrix(name, causal, build):
    length, x = 5, features(5)
    long, short = build(name, causal), build(name, causal, positions=length)
    state = long.state_dict()
    for key, values in state.items():
        if key.endswith("matrix.weight") and "toeplitz" in name:
            middle = 0 if causal else N - 1
            state[key] = values[:, max(middle - length + 1, 0) : middle + length]
        elif key.endswith("matrix.weight"):
            state[key] = values[:, :length, :length]
        elif key.endswith("matrix.bias"):
            state[key] = values[:, :length]
    short.load_state_dict(state)
    assert_close(short(x), long(x))


@every_direction
def test_a_free_matrix_refuses_longer_input_and_names_both_lengths(causal):
    mixer = LinearMixer(FreeMatrix(11, 1, causal, STD))
    with pytest.raises(ValueError, match=r"\b12\b.*\b11\b"):
        mixer(torch.zeros(1, 12, C))
    assert mixer(torch.zeros(1, 11, C)).shape == (1, 11, C)


@every_direction
def test_toeplitz_takes_longer_input_and_far_positions_do_not_see_each_other(causal, build):
    mixer, x = build("toeplitz", causal, positions=4), features(13)
    y = mixer(x)
    assert_close(y, reference.mix("toeplitz", mixer, x, causal, 4))
    for t in range(13):
        (grad,) = torch.autograd.grad(y[:, t].sum(), x, retain_graph=True)
        seen = [s for s in range(13) if abs(t - s) < 4 and not (causal and s > t)]
        assert grad[0, :, 0].nonzero().flatten().tolist() == seen


@pytest.mark.parametrize("causal", [False, True], ids=["both-ways", "causal"])
@pytest.mark.parametrize("positions", [3, 9])
def test_toeplitz_loads_the_weights_of_another_n(positions, causal, build):
    trained, x = build("toeplitz", causal, positions=5), features(7)
    other = build("toeplitz", causal, positions=positions)
    other.load_state_dict(trained.state_dict())
    assert_close(other(x[:, :3]), trained(x[:, :3]))
    with torch.no_grad():  # what only one of them knows is not seen
        middle = 0 if causal else 4
        trained.matrix.weight[:, middle + positions :] = 0
        trained.matrix.weight[:, : max(middle - positions + 1, 0)] = 0
    assert_close(other(x), trained(x))


@pytest.mark.parametrize("matrix", [FreeMatrix, ToeplitzMatrix])
@every_direction
def test_rows_from_a_start_are_those_of_the_whole_matrix(matrix, causal):
    matrix = matrix(11, 2, causal, STD)
    whole = matrix(0, 9)[0]
    for start in range(9):
        assert torch.equal(matrix(start, 9)[0], whole[:, start:])


@every_mixer
@pytest.mark.parametrize("chunks", [[1] * 7, [1, 2, 1, 3], [7]], ids=str)
@pytest.mark.parametrize("positions", [N, 4], ids=["long", "short"])
def test_steps_with_state_and_reordering_equal_the_full_pass(name, chunks, positions, build):
    if positions < 7 and "toeplitz" not in name:
        positions = 7  # N exactly
    mixer, state, history = build(name, True, positions=positions), {}, features(0)
    for chunk in chunks:
        order, new = torch.randint(B, (B,)), features(chunk)
        state = {key: tensor.index_select(0, order) for key, tensor in state.items()}
        history = torch.cat([history[order], new], dim=1)
        assert_close(mixer(new, state=state), mixer(history)[:, -chunk:])


@every_mixer
def test_heads_must_divide_the_channels(name):
    with pytest.raises(ValueError, match=r"3 mixing heads.*8 channels"):
        build_mixer(name, 8, N, heads=3)
