"""float64 with assert_close's defaults (1e-7): only the order of the sums differs."""

import pytest
import torch
from torch.testing import assert_close

from resmlp_mt.models.parts import GRID_MIXERS, build_mixer

# A grid that is not square, so that rows and columns cannot change places.
B, H, W, C = 2, 3, 4, 5
N = H * W

every_mixer = pytest.mark.parametrize("name", GRID_MIXERS)


def convolve(x, weight, bias, groups=1):
    """y[b, (r, s), d] from the 3 x 3 neighbours of (r, s), zeros around the grid; plain loops."""
    y, per_group = [], x.size(2) // groups
    for b in range(x.size(0)):
        for r in range(H):
            for s in range(W):
                sums = []
                for d in range(weight.size(0)):
                    first = d // (weight.size(0) // groups) * per_group
                    total = bias[d]
                    for i in (-1, 0, 1):
                        for j in (-1, 0, 1):
                            if 0 <= r + i < H and 0 <= s + j < W:
                                neighbour = x[b, (r + i) * W + s + j, first : first + per_group]
                                kernel = weight[d, :, i + 1, j + 1]
                                total = total + (kernel * neighbour[: len(kernel)]).sum()
                    sums.append(total)
                y.append(torch.stack(sums))
    return torch.stack(y).view(x.size(0), N, -1)


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


def naive(name, mixer, x):
    if name == "none":
        return x
    if name == "linear":
        a, b = mixer.matrix.weight[0], mixer.matrix.bias[0]
        return torch.stack([a @ image + b.unsqueeze(1) for image in x])
    if name == "mlp":
        channels = [x[:, :, c] for c in range(C)]
        hidden = [gelu(z @ mixer.fc1.weight.t() + mixer.fc1.bias) for z in channels]
        return torch.stack([z @ mixer.fc2.weight.t() + mixer.fc2.bias for z in hidden], 2)
    if name == "conv3x3":
        return convolve(x, mixer.spatial.weight, mixer.spatial.bias)
    y = convolve(x, mixer.spatial.weight, mixer.spatial.bias, groups=C)
    if name == "separable3x3":
        y = y @ mixer.pointwise.weight.flatten(1).t() + mixer.pointwise.bias
    return y


@every_mixer
def test_a_mixer_equals_its_naive_twin_in_outputs_and_gradients(name, randomised):
    mixer = randomised(build_mixer(name, C, (H, W)))
    x = torch.randn(B, N, C, dtype=torch.float64, requires_grad=True)
    noise, inputs = torch.randn_like(x), [x, *mixer.parameters()]
    got, expected = mixer(x), naive(name, mixer, x)
    assert_close(got, expected)
    assert_close(
        torch.autograd.grad((got * noise).sum(), inputs),
        torch.autograd.grad((expected * noise).sum(), inputs),
    )


def test_the_mlp_has_four_times_as_many_hidden_positions():
    mixer = build_mixer("mlp", C, (H, W))
    assert mixer.fc1.weight.shape == (4 * N, N)


def test_the_matrix_starts_with_weights_of_a_standard_deviation_of_002_and_no_bias():
    matrix = build_mixer("linear", C, (14, 14)).matrix
    assert 0.0195 < matrix.weight.std() < 0.0205
    assert not matrix.bias.any()
