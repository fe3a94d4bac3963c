import pytest
import torch
from torch.testing import assert_close

from resmlp_mt.models.parts import SEQUENCE_NORMS, build_norm
from resmlp_mt.nn.norm import Affine, LayerScale


@pytest.fixture
def x():
    return torch.randn(2, 5, 16, dtype=torch.float64)


def test_affine_is_the_identity_at_first(x):
    assert torch.equal(Affine(16).double()(x), x)


def test_affine_is_alpha_x_plus_beta_with_its_gradients(randomised, x):
    affine = randomised(Affine(16))
    y = affine(x.requires_grad_())
    noise = torch.randn_like(y)
    for b, t, c in torch.cartesian_prod(torch.arange(2), torch.arange(5), torch.arange(16)):
        assert_close(y[b, t, c], affine.alpha[c] * x[b, t, c] + affine.beta[c])
    (y * noise).sum().backward()
    assert_close(x.grad, noise * affine.alpha)
    assert_close(affine.alpha.grad, (noise * x).sum((0, 1)))
    assert_close(affine.beta.grad, noise.sum((0, 1)))


def test_layer_scale_multiplies_by_one_vector_that_starts_at_init_and_has_no_bias(x):
    scale = LayerScale(16, 0.25).double()
    assert torch.equal(scale(x), x / 4)
    assert [(name, p.shape) for name, p in scale.named_parameters()] == [("gamma", (16,))]


@pytest.mark.parametrize("name", SEQUENCE_NORMS)
def test_a_norm_treats_each_position_alone(name, randomised, x):
    norm = randomised(build_norm(name, 16))
    changed = x.clone()
    changed[:, 3] += 1
    others = [0, 1, 2, 4]
    assert torch.equal(norm(changed)[:, others], norm(x)[:, others])
    assert not torch.equal(norm(changed), norm(x))
