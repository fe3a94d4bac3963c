import pytest
import torch
from torch.testing import assert_close

from resmlp_mt.models.parts import SEQUENCE_NORMS, build_norm
from resmlp_mt.nn.blocks import ChannelMLP
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.pooling import Aggregate, AveragePooling, ClassMLP, ClassMLPLayer

B, H, W, C = 2, 3, 4, 6

every_norm = pytest.mark.parametrize("norm", SEQUENCE_NORMS)


def normalise(norm, x):
    if hasattr(norm, "alpha"):
        return norm.alpha * x + norm.beta
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return norm.weight * centred / deviation + norm.bias


@every_norm
def test_average_pooling_is_the_mean_of_normalised_patches(norm, randomised):
    pool = randomised(AveragePooling(build_norm(norm, C)))
    x = torch.randn(B, H * W, C, dtype=torch.float64)
    assert_close(pool(x), sum(normalise(pool.norm, x[:, i]) for i in range(H * W)) / (H * W))


@every_norm
def test_class_mlp_updates_one_embedding_from_patches_that_stay(norm, randomised):
    layers = [
        ClassMLPLayer(
            norm_1=build_norm(norm, C),
            aggregate=Aggregate(H * W),
            scale_1=LayerScale(C, 0.1),
            norm_2=build_norm(norm, C),
            mix_channels=ChannelMLP(C, 7),
            scale_2=LayerScale(C, 0.1),
        )
        for _ in range(2)
    ]
    pool = randomised(ClassMLP(C, layers, build_norm(norm, C)))
    x = torch.randn(B, H * W, C, dtype=torch.float64)
    for b in range(B):
        c = pool.embedding
        for layer in pool.layers:
            patches = normalise(layer.norm_1, x[b])
            gathered = layer.aggregate.bias + sum(
                layer.aggregate.weight[0, i] * patches[i] for i in range(H * W)
            )
            c = c + layer.scale_1.gamma * gathered
            first, second = layer.mix_channels.fc1, layer.mix_channels.fc2
            hidden = first.weight @ normalise(layer.norm_2, c) + first.bias
            hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
            c = c + layer.scale_2.gamma * (second.weight @ hidden + second.bias)
        assert_close(pool(x)[b], normalise(pool.norm, c))
