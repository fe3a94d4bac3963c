"""The mixers of examples/ablation are equal to loops; test_ablation.py holds the contract."""

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from reference import outputs_and_gradients
from torch.testing import assert_close

from resmlp_mt.nn.fold import make_offset
from resmlp_mt.nn.mixers import GatedMixer, LinearMixer

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "ablation"))
from variants import matrices, mixers  # noqa: E402

sys.path.pop(0)

B, L, N, C, H = 3, 7, 8, 8, 4
every_direction = pytest.mark.parametrize("causal", [False, True], ids=["both-ways", "causal"])


def build_linear(name, causal):
    kind = mixers.SoftmaxMixer if name in matrices.NORMALISED else LinearMixer
    return kind(matrices.MATRICES[name](N, H, causal, 0.1))


BUILDERS = {
    **{
        name: lambda causal, name=name: build_linear(name, causal)
        for name in ("pooling", "shift", "adafc", "adafc-normalised")
    },
}
every_mixer = pytest.mark.parametrize("name", BUILDERS)


@pytest.fixture
def build(randomised):
    return lambda name, causal: randomised(BUILDERS[name](causal))


def features(length=L):
    return torch.randn(B, length, C, dtype=torch.float64, requires_grad=True)


def mean_of_three(mixer, x, t, c, causal):
    seen = range(t - 2, t + 1) if causal else range(t - 1, t + 2)
    return sum(x[:, s, c] for s in seen if 0 <= s < x.size(1)) / 3 - x[:, t, c]


def one_position(mixer, x, t, c, causal):
    head = c // (C // H)
    s = t - head if causal else t - [0, 1, -1, 2][head]
    return x[:, s, c] if 0 <= s < x.size(1) else 0 * x[:, 0, c]


def softmax_of_distances(mixer, x, t, c, causal):
    scores = mixer.matrix.scores[c // (C // H)].exp()
    zero = 0 if causal else N - 1
    seen = range(t + 1) if causal else range(x.size(1))
    return sum(scores[t - s + zero] * x[:, s, c] for s in seen) / scores.sum()


def softmax_of_what_is_seen(mixer, x, t, c, causal):
    scores = mixer.matrix.scores[c // (C // H)].exp()
    zero = 0 if causal else N - 1
    seen = range(t + 1) if causal else range(x.size(1))
    total = sum(scores[t - s + zero] for s in seen)
    return sum(scores[t - s + zero] * x[:, s, c] for s in seen) / total


LOOPS = {
    "pooling": mean_of_three,
    "shift": one_position,
    "adafc": softmax_of_distances,
    "adafc-normalised": softmax_of_what_is_seen,
}


@every_mixer
@every_direction
def test_a_mixer_equals_its_loop_in_outputs_and_gradients(name, causal, build):
    mixer, x = build(name, causal), features(5)
    columns = [[LOOPS[name](mixer, x, t, c, causal) for c in range(C)] for t in range(x.size(1))]
    naive = torch.stack([torch.stack(row, -1) for row in columns], 1)
    noise, inputs = torch.randn_like(x), [x, *mixer.parameters()]
    got = outputs_and_gradients(mixer(x), noise, *inputs)
    assert_close(got, outputs_and_gradients(naive, noise, *inputs))


@pytest.mark.parametrize("name", ["pooling", "shift", "adafc"])
@every_direction
def test_a_toeplitz_matrix_of_any_kind_folds(name, causal, randomised):
    """In both mixers of the package, which know nothing of it."""
    norm, scale, x = randomised(torch.nn.LayerNorm(C)), torch.rand(C).double(), features()
    for mixer in (LinearMixer, lambda matrix: GatedMixer(C, matrix)):
        mixer = randomised(mixer(matrices.MATRICES[name](N, H, causal, 0.1)))
        folded, plain = mixer.fold(norm, scale), F.layer_norm(x, (C,))
        value = plain if folded.value is None else folded.value(plain)
        rows, _ = folded.matrix(0, L)
        mixed = torch.einsum("hij,bjhc->bihc", rows, value.unflatten(-1, (H, -1))).flatten(-2)
        if folded.gate is None:
            found = folded.scale * mixed + make_offset(folded, L)
        else:
            found = folded.gate(plain) * mixed
        assert_close(found, scale * mixer(norm(x)))
